"""Flow graphs mined from sequences."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dags import dags
from graph2vid.errors import GraphError
from graph2vid.flow import FlowGraph
from graph2vid.flow.mine import mine_precedences
from graph2vid.tsort import TSortGraph, random_sorts


def test_what_never_breaks_is_an_edge() -> None:
    flow = FlowGraph.mine([["a", "b", "c"], ["b", "a", "c"]], min_support=2)
    assert flow.ids == ("a", "b", "c")
    assert flow.edges == ((0, 2), (1, 2))


def test_result_is_transitively_reduced() -> None:
    assert FlowGraph.mine([["a", "b", "c"]] * 5).edges == ((0, 1), (1, 2))


def test_rare_pairs_say_nothing() -> None:
    sequences = [["a", "b"]] * 5 + [["b", "c"]] * 4
    assert FlowGraph.mine(sequences).edges == ((0, 1),)
    assert FlowGraph.mine(sequences, min_support=4).edges == ((0, 1), (1, 2))


def test_tolerance_is_a_share_of_violations() -> None:
    sequences = [["a", "b"]] * 9 + [["b", "a"]]
    assert FlowGraph.mine(sequences).edges == ()
    assert FlowGraph.mine(sequences, tolerance=0.1).edges == ((0, 1),)
    assert FlowGraph.mine(sequences, tolerance=0.09).edges == ()


def test_first_occurrences_count() -> None:
    assert FlowGraph.mine([["a", "b", "a", "b"]] * 5).edges == ((0, 1),)


def test_confidence_grows_with_support_and_falls_with_violations() -> None:
    mined = mine_precedences([["a", "b"]] * 8 + [["a", "c"]] * 5 + [["c", "a"]], tolerance=0.2)
    assert mined.flow.edges == ((0, 1), (0, 2))
    assert mined.support == {(0, 1): 8, (0, 2): 6}
    assert mined.honoured == {(0, 1): 8, (0, 2): 5}
    assert mined.confidence == {(0, 1): 9 / 10, (0, 2): 6 / 8}
    assert mined.dropped == ()


def test_of_a_cycle_the_surest_edge_stays() -> None:
    # Any two of the three would imply the contrary of the third, which never breaks.
    mined = mine_precedences([["a", "b"]] * 7 + [["b", "c"]] * 6 + [["c", "a"]] * 5)
    assert mined.flow.edges == ((0, 1),)
    assert mined.dropped == ((1, 2), (2, 0))


def test_of_a_longer_cycle_the_surest_edges_stay() -> None:
    # a and c were never seen together, so that a before b before c contradicts nothing; c before d would.
    mined = mine_precedences([["a", "b"]] * 8 + [["b", "c"]] * 7 + [["c", "d"]] * 6 + [["d", "a"]] * 5)
    assert mined.flow.edges == ((0, 1), (1, 2))
    assert mined.dropped == ((2, 3), (3, 0))


def test_nothing_is_implied_that_breaks() -> None:
    # a before b and b before c hold wherever seen; yet a and c come in both orders.
    sequences = [["a", "b"]] * 7 + [["b", "c"]] * 6 + [["a", "c"], ["c", "a"]] * 3
    mined = mine_precedences(sequences)
    assert mined.flow.edges == ((0, 1),)
    assert mined.dropped == ((1, 2),)


def test_steps_may_be_stated_and_named_by_index() -> None:
    flow = FlowGraph.mine([[2, 0]] * 5, ["chop", "rest", "wash"], title="Soup")
    assert flow.texts == ("chop", "rest", "wash")
    assert flow.edges == ((2, 0),)
    assert flow.title == "Soup"


@pytest.mark.parametrize(
    ("sequences", "options", "message"),
    [
        ([["a"]], {"min_support": 0}, "min_support"),
        ([["a"]], {"tolerance": 0.5}, "tolerance"),
        ([["a"]], {"tolerance": float("nan")}, "tolerance"),
        ([], {}, "nothing to mine"),
        ([[1, 2]], {}, "by its index"),
        (["ab"], {}, "must be a list of steps"),
        ([["a", "z"]], {"steps": [("a", "do a")]}, "sequence 0: unknown step 'z'"),
    ],
)
def test_bad_input(sequences: list[list[str]], options: dict[str, object], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        FlowGraph.mine(sequences, **options)  # type: ignore[arg-type]


@settings(max_examples=30, deadline=None)
@given(dags(max_steps=6), st.integers(0, 2**32 - 1))
def test_mined_graph_contains_the_true_one(flow: FlowGraph, seed: int) -> None:
    orders = random_sorts(TSortGraph.compile(flow), 12, np.random.default_rng(seed))
    mined = FlowGraph.mine(orders, flow.steps)
    closure = set(mined.transitive_closure().edges)
    assert set(flow.edges) <= closure
    for order in orders:
        assert not {(b, a) for a, b in combinations(order, 2)} & closure


@settings(max_examples=50, deadline=None)
@given(st.lists(st.permutations("abcde").flatmap(lambda row: st.integers(0, 5).map(lambda n: row[:n])), max_size=12))
def test_every_mined_edge_keeps_its_promise(sequences: list[list[str]]) -> None:
    mined = mine_precedences(sequences, [(name, name) for name in "abcde"], min_support=2, tolerance=0.3)
    for a, b in mined.flow.transitive_closure().edges:
        both = [row for row in sequences if {"abcde"[a], "abcde"[b]} <= set(row)]
        broken = sum(row.index("abcde"[a]) > row.index("abcde"[b]) for row in both)
        assert len(both) < 2 or broken <= 0.3 * len(both) + 1e-9
