"""Plain additions, found in entities and edges; and what waits for what once they are free among themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph2vid.flow import FlowGraph
from graph2vid.text.learned import parse_by_model
from graph2vid.text.learned.additions import Addition, freed, plain_additions
from graph2vid.text.learned.decode import Candidate
from graph2vid.text.learned.learned_parser import SHIPPED
from graph2vid.text.learned.words import Span
from graph2vid.text.parsed_text import Instruction, Procedure

needs_weights = pytest.mark.skipif(not SHIPPED.is_file(), reason="the weights are not in this checkout")


def is_plain(sentence: str, kinds: dict[str, str], *edges: tuple[str, str, str]) -> bool:
    """Tell whether a sentence is a plain addition, given the classes of some words and edges between them."""
    words = sentence.split()
    spans = [Span(at, at + 1, kinds[word]) for at, word in enumerate(words) if word in kinds]
    names = [words[span.start] for span in spans]
    found = [Candidate(1.0, names.index(a), names.index(b), label) for a, b, label in edges]
    return 0 in plain_additions(words, [0] * len(words), spans, found)


def test_what_a_plain_addition_is() -> None:
    sugar = {"Add": "Ac", "sugar": "F"}
    assert is_plain("Add the sugar .", sugar, ("sugar", "Add", "t"))
    assert is_plain("Stir in the milk .", {"Stir": "Ac", "milk": "F"}, ("milk", "Stir", "t"))
    eggs = {"Crack": "Ac", "eggs": "F", "bowl": "T"}
    assert is_plain("Crack the eggs into a bowl .", eggs, ("eggs", "Crack", "t"), ("bowl", "Crack", "d"))
    mug = {"Add": "Ac", "coffee": "F", "warmed": "Ac", "mug": "T"}
    assert is_plain("Add coffee to the warmed mug .", mug, ("coffee", "Add", "t"), ("mug", "Add", "d"))


def test_what_it_is_not() -> None:
    eggs = {
        "Add": "Ac",
        "eggs": "F",
        "beat": "Ac",
        "Crack": "Ac",
        "Stir": "Ac",
        "bowl": "T",
        "minute": "D",
        "hot": "Sf",
    }
    assert not is_plain("Add the eggs and beat .", eggs, ("eggs", "Add", "t"))  # more is done
    assert not is_plain("Add .", eggs)  # nothing is named
    assert not is_plain("When hot , Add the eggs .", eggs, ("eggs", "Add", "t"))  # not at any time
    assert not is_plain("Add the eggs for a minute .", eggs, ("eggs", "Add", "t"), ("minute", "Add", "t"))
    assert not is_plain("Crack the eggs .", eggs, ("eggs", "Crack", "t"))  # where to?
    assert not is_plain("Stir in a bowl the eggs .", eggs, ("eggs", "Stir", "t"))  # stirred there, not added


def test_additions_to_one_pile_are_free_and_what_uses_it_waits_for_all() -> None:
    # 0 heat -> 1 add -> 2 add -> 3 add -> 4 serve, each entity an action in its own instruction
    edges = [Candidate(1.0, at, at + 1, "d") for at in range(3)] + [Candidate(1.0, 3, 4, "t")]
    additions = {at: Addition(at, frozenset()) for at in (1, 2, 3)}
    assert set(freed(range(5), edges, additions)) == {
        *((0, at, "d") for at in (1, 2, 3)),
        *((at, 4, "t") for at in (1, 2, 3)),
    }
    assert set(freed(range(5), edges, {})) == {edge[1:] for edge in edges}


def test_what_is_added_was_made_before() -> None:
    # 0 squeeze makes the juice that 1 adds; only 2 waits for it, not what is added beside it
    edges = [Candidate(1.0, 0, 2, "f-eq"), Candidate(1.0, 1, 3, "d"), Candidate(1.0, 3, 4, "d")]
    units = [0, 1, 1, 2, 3]  # entities: squeeze | add, juice | add | stir
    additions = {1: Addition(1, frozenset()), 2: Addition(3, frozenset())}
    assert set(freed(units, edges, additions)) == {(0, 2, "f-eq"), (3, 4, "d"), (1, 4, "d")}


@given(st.data())
def test_precedences_are_never_invented(data: st.DataObject) -> None:
    """What must come first afterwards had to come first before, whatever the edges and additions are."""
    count = data.draw(st.integers(2, 9))
    pairs = data.draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=16))
    labels = data.draw(st.lists(st.sampled_from("dt"), min_size=len(pairs), max_size=len(pairs)))
    edges = [Candidate(1.0, a, b, label) for (a, b), label in zip(pairs, labels, strict=True) if a < b]
    additions = {at: Addition(at, frozenset()) for at in data.draw(st.sets(st.integers(0, count - 1)))}
    steps = [str(step) for step in range(count)]
    before = FlowGraph.from_edges(steps, {edge[1:3] for edge in edges})
    after = FlowGraph.from_edges(steps, {edge[:2] for edge in freed(range(count), edges, additions)})
    assert all(less & ~more == 0 for less, more in zip(after.ancestors, before.ancestors, strict=True))
    if not additions:
        assert after.ancestors == before.ancestors


@needs_weights
def test_a_drink_may_be_put_together_in_any_order() -> None:
    texts = ("Heat a mug with hot water.", "Add coffee to the warmed mug.", "Mix in brown sugar.", "Add your whiskey.")
    found = parse_by_model(Procedure(tuple(map(Instruction, (*texts, "Top your coffee with whipped cream.")))))
    assert set(found.flow.edges) == {(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)}
    assert set(found.flow.edges) <= {(reason.before, reason.after) for reason in found.reasons}


@needs_weights
def test_what_names_no_action_is_not_made_to_lead_on() -> None:
    texts = ("Pull out the dipstick and wipe it.", "The dipstick has two marks.", "Pour oil into the engine.")
    found = parse_by_model(Procedure(tuple(map(Instruction, texts))))
    assert not found.flow.descendants[1]
