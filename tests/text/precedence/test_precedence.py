"""Probabilities of precedence, and the graph that they become."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graph2vid.errors import FormatError, InputError
from graph2vid.flow import FlowGraph, as_written
from graph2vid.text import Instruction, Procedure, parse, parse_from_json, parse_to_json
from graph2vid.text import precedence as package
from graph2vid.text.learned import SHIPPED as PARSER_WEIGHTS
from graph2vid.text.learned import read_safetensors
from graph2vid.text.precedence import LEAST, OrderNetwork, closed, fold_of, parse_by_pairs
from graph2vid.text.precedence.order_network import SHIPPED
from graph2vid.text.precedence.step_pairs import _mentions

TEA = ("Fill the kettle with water.", "Boil the water.", "Put a tea bag into a cup.", "Pour the water into the cup.")


def procedure(*texts: str, title: str = "") -> Procedure:
    return Procedure(tuple(map(Instruction, texts)), title)


def test_every_pair_has_a_probability_and_the_improbable_ones_are_no_precedences() -> None:
    found = parse(procedure(*TEA, title="Make tea"))
    assert found.parser == "auto"
    chances = found.precedence
    assert chances.shape == (4, 4) and not np.tril(chances).any()
    assert (chances[np.triu_indices(4, 1)] > 0).all() and (chances < 1).all()
    kept = np.zeros((4, 4), dtype=bool)
    for step in range(4):
        for later in range(4):
            kept[step, later] = bool(found.flow.descendants[step] >> later & 1)
    assert (kept == closed(chances >= LEAST)).all()
    assert kept[0, 1] and kept[1, 3] and kept[2, 3]


def test_every_edge_has_a_reason_and_the_entities_are_those_of_the_learned_parser() -> None:
    found = parse(procedure(*TEA))
    needed = replace(found.flow, confidences=()).transitive_reduction().edges
    assert {(reason.before, reason.after) for reason in found.reasons} >= set(needed)
    assert found.entities == parse(procedure(*TEA), "learned").entities


@pytest.mark.parametrize("parser", ["rules", "learned", "linear", "bag"])
def test_every_parser_gives_probabilities(parser: str) -> None:
    if parser == "rules":
        pytest.importorskip("spacy")
    try:
        found = parse(procedure(*TEA), parser)
    except ImportError as error:
        pytest.skip(str(error))
    assert found.precedence.shape == (4, 4)
    assert found.precedence is found.precedence
    assert found.precedence[1, 3] > 0.5


def test_one_step_has_no_precedence() -> None:
    found = parse(procedure("Wait."))
    assert found.precedence.tolist() == [[0]]
    assert found.flow.edges == ()


@pytest.mark.parametrize("texts", [("…", "!!"), ("混ぜる。", "焼く。", "食べる。"), ("Go.",) * 9])
def test_odd_words_still_give_a_graph(texts: tuple[str, ...]) -> None:
    assert len(parse(procedure(*texts)).flow) == len(texts)


def test_a_known_thing_is_linked_with_the_step_that_mentioned_it_last() -> None:
    steps = ("Wash the lettuce.", "Cut the lettuce.", "Fill a bowl.", "Put the green lettuce into your bowl.")
    split = [step.lower().strip(".").split() for step in steps]
    content = [frozenset(words) - {"the", "a", "into", "your"} for words in split]
    mentioned, definite, known, used = _mentions(split, content)
    assert np.argwhere(mentioned).tolist() == [[0, 1], [1, 3], [2, 3]]
    assert (mentioned == definite).all()
    assert known == [0, 0.5, 0, 0.5] and used == [0.5, 0.5, 0.5, 0]


def test_a_long_procedure_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "MOST_STEPS", 3)
    found = parse_by_pairs(procedure(*TEA, *TEA[:3]))
    assert found.precedence[:3, 3:].min() == 1
    assert found.precedence[0, 1] < 1
    assert len(found.flow) == 7


def test_one_network_can_be_asked_alone() -> None:
    chances = [parse_by_pairs(procedure(*TEA), fold=fold).precedence for fold in range(5)]
    assert len({tuple(one.ravel().tolist()) for one in chances}) == 5
    assert fold_of(TEA) == fold_of(TEA[::-1]) and 0 <= fold_of(TEA) < 5


def test_probabilities_are_written_and_read() -> None:
    found = parse(procedure(*TEA))
    document = json.loads(json.dumps(parse_to_json(found)))
    assert document["precedence"][0][:2] == [0, 1]
    assert np.allclose(parse_from_json(document).precedence, found.precedence, atol=1e-4)
    for wrong in ([[0, 9, 0.5]], [[1, 0, 0.5]], [[0, 1, 2]], [[0, 1]], 3, [["a", 1, 0.5]]):
        with pytest.raises(FormatError, match="precedence must be"):
            parse_from_json(document | {"precedence": wrong})


def test_the_shipped_networks_were_trained_with_the_shipped_learned_parser() -> None:
    """Else: graph2vid train order --data DIR -o src/graph2vid/text/precedence/weights/step_order.safetensors."""
    _, metadata = read_safetensors(SHIPPED)
    about = json.loads(metadata["config"])["about"]
    assert about["parser"] == hashlib.sha256(PARSER_WEIGHTS.read_bytes()).hexdigest()


def test_weights_that_are_missing_or_others(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="graph2vid train order"):
        OrderNetwork.load(tmp_path / "none.safetensors")
    with pytest.raises(FormatError):
        OrderNetwork.load(PARSER_WEIGHTS)
    network = OrderNetwork.load()
    few = OrderNetwork({name: array for name, array in network.tensors.items() if name[0] != "4"}, network.calibration)
    few.save(tmp_path / "few.safetensors", {})
    with pytest.raises(FormatError, match="does not fit"):
        OrderNetwork.load(tmp_path / "few.safetensors")


def test_what_is_guessed_is_never_certain_and_costs_more_the_surer_and_the_nearer_it_is() -> None:
    probability = np.array([[0, 0.99, 0.75], [0, 0, 0.42], [0, 0, 0]])
    flow = as_written(FlowGraph.from_edges(["a", "b", "c"], [(0, 1), (1, 2)]), probability)
    nats = {pair: np.log(sure / (1 - sure)) for pair, sure in flow.confidence.items()}
    assert nats[0, 1] == pytest.approx(4 * 0.98, abs=0.01) and nats[0, 2] == pytest.approx(1.0, abs=0.01)
    assert nats[1, 2] == 0.0 and max(parse(procedure(*TEA)).flow.confidences) < 1.0
