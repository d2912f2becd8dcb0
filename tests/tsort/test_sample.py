"""Random legal orders."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph, random_sorts


def test_all_sorts_are_equally_likely() -> None:
    # Choosing a ready step at random would favour beginning with step 3.
    tsort = TSortGraph.compile(FlowGraph.from_edges(list("abcd"), [(0, 1), (1, 2)]))
    drawn = Counter(random_sorts(tsort, 4000, np.random.default_rng(1)))
    assert set(drawn) == set(tsort.paths())
    assert all(abs(count - 1000) < 120 for count in drawn.values())


def test_counts_beyond_64_bits() -> None:
    flow = FlowGraph.from_edges(map(str, range(60)), [(step, step + 2) for step in range(58)])
    (order,) = random_sorts(TSortGraph.compile(flow), 1, np.random.default_rng(1))
    assert all(order.index(a) < order.index(b) for a, b in flow.edges)


def test_seeded_and_bounded() -> None:
    tsort = TSortGraph.compile(FlowGraph.bag(list("abcde")))
    assert random_sorts(tsort, 5, np.random.default_rng(3)) == random_sorts(tsort, 5, np.random.default_rng(3))
    assert random_sorts(tsort, 0, np.random.default_rng(3)) == []
    with pytest.raises(InputError):
        random_sorts(tsort, -1, np.random.default_rng(3))
