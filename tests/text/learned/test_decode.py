"""From scores to tags and edges."""

from __future__ import annotations

from unittest.mock import patch

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graph2vid.text.learned.decode import (
    FORBIDDEN,
    AcyclicEdges,
    Candidate,
    best_links,
    best_tags,
    candidates,
    probabilities,
)
from graph2vid.text.learned.network_numpy import EdgeScores
from graph2vid.text.learned.words import LABELS, TAGS


def random_scores(seed: int, count: int, spread: float) -> EdgeScores:
    generator = np.random.default_rng(seed)
    arc, same = (generator.normal(size=(count, count)).astype(np.float32) * spread for _ in range(2))
    return EdgeScores(arc, same, generator.normal(size=(count, count, len(LABELS))).astype(np.float32) * spread)


@given(st.integers(0, 2**32 - 1), st.integers(0, 20), st.sampled_from([0.5, 3.0, 30.0]))
def test_tags_are_always_valid(seed: int, words: int, spread: float) -> None:
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(words, len(TAGS))).astype(np.float32) * spread
    transitions = generator.normal(size=(len(TAGS), len(TAGS))).astype(np.float32)
    tags = best_tags(scores, transitions)
    assert len(tags) == words
    before = "O"
    for tag in tags:
        assert FORBIDDEN[TAGS.index(before), TAGS.index(tag)] == 0
        before = tag
    with patch("graph2vid.text.learned.decode.native", lambda: None):
        assert best_tags(scores, transitions) == tags


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from([1.0, 5.0, 50.0]))
def test_edges_never_close_a_cycle(seed: int, count: int, spread: float) -> None:
    scores = random_scores(seed, count, spread)
    found = AcyclicEdges(count)
    found.take_all(candidates(probabilities(scores), range(count)))
    graph = nx.DiGraph((edge.dependent, edge.head) for edge in found.edges)
    assert nx.is_directed_acyclic_graph(graph)
    assert all(edge.dependent != edge.head and edge.label in LABELS for edge in found.edges)


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=40))
def test_an_edge_is_refused_only_if_it_closes_a_cycle(pairs: list[tuple[int, int]]) -> None:
    found = AcyclicEdges(8)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(8))
    for dependent, head in pairs:
        closes = nx.has_path(graph, head, dependent)
        assert found.take(Candidate(1.0, dependent, head, "t")) != closes
        if not closes:
            graph.add_edge(dependent, head)


def test_an_entity_may_have_several_heads_or_none() -> None:
    arc = np.full((4, 4), -9, dtype=np.float32)
    arc[0, 1] = arc[0, 2] = 6
    arc[1, 2] = 4
    label = np.zeros((4, 4, len(LABELS)), dtype=np.float32)
    label[..., LABELS.index("t")] = 8
    scores = EdgeScores(arc, np.full((4, 4), -9, dtype=np.float32), label)
    edges = candidates(probabilities(scores), range(4))
    assert {(edge.dependent, edge.head, edge.label) for edge in edges} == {(0, 1, "t"), (0, 2, "t"), (1, 2, "t")}


def test_the_best_link_of_an_instruction_leads_into_a_later_one() -> None:
    scores = random_scores(0, 6, 2.0)
    units = [0, 0, 1, 1, 2, 2]
    links = best_links(probabilities(scores), range(6), units)
    assert set(links) == {0, 1}
    assert all(units[edge.dependent] == unit < units[edge.head] for unit, edge in links.items())
