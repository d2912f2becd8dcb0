"""Graphs over sentences and expert graphs."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from graph2vid.datasets import captaincook4d
from graph2vid.datasets.recipe_flowgraph import read_recipes
from graph2vid.evaluate.counts import Counts
from graph2vid.evaluate.parsed import ParsedGraphs
from graph2vid.evaluate.parser.graph_scores import (
    GraphScores,
    Text,
    detokenise,
    expert_texts,
    precedences,
    recipe_texts,
    score_graphs,
    scores_to_json,
    sentence_graph,
    sentence_texts,
)
from graph2vid.flow import FlowGraph
from layouts import captaincook4d as write_captaincook4d
from layouts import real_data
from recipes import corpus

DIAMOND = FlowGraph.from_edges([*"abcd"], [(0, 1), (0, 2), (1, 3), (2, 3)])


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("Stir ( well ) , season .", "Stir (well), season."),
        ("Do n't over-cook it ; it 's hot !", "Don't over-cook it; it's hot!"),
        ("Preheat to 200 C / Gas 6 .", "Preheat to 200 C / Gas 6."),
        ("Add .5cm of water", "Add .5cm of water"),
        (".", "."),
    ],
)
def test_detokenise(tokens: str, text: str) -> None:
    assert detokenise(tokens.split()) == text


def test_sentence_graphs(tmp_path: Path) -> None:
    leeks, pan = read_recipes(corpus(tmp_path), "dev")
    assert sentence_texts(leeks) == ("Boil rice.", "Cut leeks.", "Mix them (well)!")
    assert sentence_graph(leeks).edges == ((0, 2), (1, 2))
    assert sentence_graph(pan).edges == ()  # its only edge between sentences points backwards


def test_edges_and_precedences_by_hand() -> None:
    assert precedences(DIAMOND) == {(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)}
    figures = GraphScores()
    figures.add(FlowGraph.chain([*"abcd"]), DIAMOND)
    assert figures.edges == [Counts(right=2, predicted=3, gold=4)]  # 0→1 and 2→3; 1→2 is wrong
    assert figures.precedences == [Counts(right=5, predicted=6, gold=5)]
    # an edge that others imply is no edge of the reduced graph
    figures.add(FlowGraph.from_edges([*"abc"], [(0, 1), (1, 2), (0, 2)]), FlowGraph.chain([*"abc"]))
    assert figures.edges[1] == Counts(2, 2, 2)
    document = figures.to_json()
    assert document["edge_f1"] == pytest.approx(2 * 4 / (5 + 6))
    assert document["precedence_f1"] == pytest.approx(2 * 8 / (9 + 8))


def test_parsers_beside_the_listed_order() -> None:
    texts = [Text(("a", "b", "c", "d"), DIAMOND), Text(("a", "b"), FlowGraph.chain([*"ab"]))]
    found = score_graphs(ParsedGraphs(["bag", "linear"]), texts)
    document = scores_to_json(found)
    assert document["linear"]["edge_f1"] == pytest.approx(2 * 3 / (4 + 5))
    assert "edge_f1_above_linear" not in document["linear"]
    assert document["bag"]["edge_f1"] == 0
    assert math.isnan(document["bag"]["edge_precision"])
    assert document["bag"]["edge_f1_above_linear"]["mean"] == pytest.approx(-2 / 3)


def test_expert_graphs_are_listed_in_an_order_that_they_allow(tmp_path: Path) -> None:
    dataset = captaincook4d.load(write_captaincook4d(tmp_path))
    (text,) = expert_texts(dataset)
    assert text.texts == ("Boil water", "Pour water", "Stir", "Pour water")
    assert text.gold.edges == ((0, 1), (1, 2), (2, 3))


def test_real_listed_order() -> None:
    recipes = read_recipes(real_data("recipe_flowgraph") / "recipe_flowgraph", "dev")
    document = scores_to_json(score_graphs(ParsedGraphs(["linear"]), recipe_texts(recipes)))
    assert document["linear"]["edge_f1"] == pytest.approx(0.69, abs=0.005)
    assert document["linear"]["precedence_f1"] == pytest.approx(0.77, abs=0.005)
    assert document["linear"]["precedence_recall"] == 1
