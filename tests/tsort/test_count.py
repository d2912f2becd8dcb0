"""Counts of topological sorts: exact by parts, exact over ideals, or bounded."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dags import dags, thread_flow
from graph2vid.flow import FlowGraph
from graph2vid.tsort import SortCount, TSortGraph, count_sorts
from graph2vid.tsort.bounds import WORK, work_per_ideal
from graph2vid.tsort.complexity import Complexity


def beside(first: FlowGraph, second: FlowGraph, *, after: bool) -> FlowGraph:
    """Return both graphs in one, the second wholly after the first if wished."""
    offset = len(first)
    edges = [*first.edges, *((a + offset, b + offset) for a, b in second.edges)]
    if after:
        edges += [(a, b + offset) for a in first.sinks for b in second.sources]
    return FlowGraph.from_edges([f"step {i}" for i in range(offset + len(second))], edges)


def fence(count: int) -> FlowGraph:
    """Return a zigzag a > b < c > d …, which cannot be split."""
    edges = [(a, b) if a % 2 else (b, a) for a, b in pairwise(range(count))]
    return FlowGraph.from_edges([f"step {i}" for i in range(count)], edges)


@settings(max_examples=80, deadline=None)
@given(dags(max_steps=8))
def test_equals_the_count_over_ideals(flow: FlowGraph) -> None:
    exact = TSortGraph.compile(flow).n_sorts
    assert count_sorts(flow) == SortCount(exact, exact, exact)


@settings(max_examples=60, deadline=None)
@given(dags(max_steps=4), dags(max_steps=4), dags(max_steps=3), st.booleans(), st.booleans())
def test_series_and_parallel_compositions(
    first: FlowGraph, second: FlowGraph, third: FlowGraph, inner: bool, outer: bool
) -> None:
    flow = beside(beside(first, second, after=inner), third, after=outer)
    assert count_sorts(flow).exact == sum(1 for _ in TSortGraph.compile(flow).paths())


@settings(max_examples=100, deadline=None)
@given(dags(max_steps=9))
def test_bounds_hold_where_the_limit_forbids_an_exact_count(flow: FlowGraph) -> None:
    exact = TSortGraph.compile(flow).n_sorts
    bounded = count_sorts(flow, limit=1)
    assert 1 <= bounded.lower <= exact <= bounded.upper
    assert bounded.exact in (None, exact)


def test_bag_of_30() -> None:
    flow = FlowGraph.bag([f"step {i}" for i in range(30)])
    assert count_sorts(flow).exact == math.factorial(30)


def test_long_series_of_parallel_parts() -> None:
    part = FlowGraph.bag(["a", "b", "c"])
    flow = part
    for _ in range(60):
        flow = beside(flow, part, after=True)
    assert count_sorts(flow).exact == 6**61


def test_deeply_nested_parts() -> None:
    """A chain with one loose step at every depth: 300 splits inside each other."""
    flow = FlowGraph.bag(["a"])
    one = FlowGraph.bag(["b"])
    for depth in range(300):
        flow = beside(flow, one, after=depth % 2 == 0)
    expected = math.prod(depth + 2 for depth in range(300) if depth % 2)
    assert count_sorts(flow).exact == expected


def test_fences() -> None:
    # Linear extensions of a zigzag are the alternating permutations: Euler's zigzag numbers.
    zigzag = {2: 1, 3: 2, 4: 5, 5: 16, 6: 61, 7: 272, 8: 1385, 9: 7936, 10: 50521}
    assert {count: count_sorts(fence(count)).exact for count in zigzag} == zigzag


def test_a_part_beyond_the_limit_is_bounded_and_the_rest_exact() -> None:
    small = FlowGraph.bag(["a", "b"])
    flow = beside(small, fence(60), after=True)
    bounded = count_sorts(flow, limit=1000)
    alone = count_sorts(fence(60), limit=1000)
    assert bounded.exact is None
    assert (bounded.lower, bounded.upper) == (2 * alone.lower, 2 * alone.upper)
    assert 1 < alone.lower < alone.upper < math.factorial(60)


def test_many_threads() -> None:
    lengths = (9, 8, 7, 6, 5, 4, 3, 2, 1)
    figures = Complexity.of_threads(lengths)
    assert figures.sorts.exact is not None and figures.n_nodes is not None
    assert count_sorts(thread_flow(lengths)) == figures.sorts
    assert figures.speed_up == Fraction(figures.sorts.exact * 46, 9 * figures.n_nodes)
    assert math.isclose(figures.to_json()["log10_speed_up"], math.log10(float(figures.speed_up)))


def two_threads(length: int) -> FlowGraph:
    """Return two chains that one edge joins so that nothing can be counted apart."""
    edges = [*pairwise(range(length)), *pairwise(range(length, 2 * length)), (0, 2 * length - 1)]
    return FlowGraph.from_edges([f"step {i}" for i in range(2 * length)], edges)


def test_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million ideals of 2,000 steps would take half a minute, and sixty parts of half a million nearly as long."""
    asked: list[int] = []
    build = TSortGraph.compile

    def compile_graph(flow: FlowGraph, limit: int) -> TSortGraph:
        asked.append(limit * work_per_ideal(flow))
        return build(flow, min(limit, 100))

    monkeypatch.setattr(TSortGraph, "compile", compile_graph)
    many = beside(two_threads(60), two_threads(60), after=True)
    for _ in range(3):
        many = beside(many, many, after=True)
    for flow in (two_threads(1000), many):
        asked.clear()
        found = count_sorts(flow)
        assert asked and sum(asked) <= WORK and found.exact is None and found.lower <= found.upper
        Complexity.of_flow(flow)
        assert sum(asked) <= 3 * WORK


def test_two_threads_are_counted() -> None:
    # All shuffles but those in which the whole of the second thread comes before the first.
    exact = math.comb(600, 300) - 1
    assert count_sorts(two_threads(300)) == SortCount(exact, exact, exact)
