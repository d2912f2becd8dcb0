"""The compiled tSort graph: sizes, paths, the paper's two constructions, both builders, refusals."""

from __future__ import annotations

import importlib.util
import math
import pickle
import re
from itertools import islice, pairwise
from random import Random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dags import dags, thread_flow
from graph2vid.errors import InputError, TooLargeError
from graph2vid.flow import FlowGraph, mask_of
from graph2vid.tsort import TSortGraph, ideals_bound
from graph2vid.tsort.complexity import Complexity, even_threads
from graph2vid.tsort.lattice import Builder, Lattice, build_lattice, build_lattice_numpy, words_of
from tsort import transcriptions

compiled = pytest.mark.skipif(
    importlib.util.find_spec("graph2vid._native") is None, reason="the extension is not built"
)


def bag(count: int) -> FlowGraph:
    return FlowGraph.bag([f"step {i}" for i in range(count)])


def chain(count: int) -> FlowGraph:
    return FlowGraph.chain([f"step {i}" for i in range(count)])


def ideal_of(graph: TSortGraph, index: int) -> int:
    return sum(int(word) << 64 * w for w, word in enumerate(graph.masks[index]))


def check_arrays(graph: TSortGraph) -> None:
    """Check every array against its meaning, by way of Python's integers."""
    flow = graph.flow
    ideals = [ideal_of(graph, index) for index in range(graph.n_ideals)]
    assert ideals[0] == 0
    assert ideals[-1] == 2 ** len(flow) - 1
    assert ideals == sorted(set(ideals), key=lambda mask: (mask.bit_count(), mask))
    for level, (start, stop) in enumerate(pairwise(graph.level_start.tolist())):
        assert {mask.bit_count() for mask in ideals[start:stop]} == {level}
    states: list[tuple[int, int]] = []
    for index, mask in enumerate(ideals):
        done = [step for step in range(len(flow)) if mask >> step & 1]
        assert all(flow.ancestors[step] & ~mask == 0 for step in done)
        states.extend((index, step) for step in done if not flow.descendants[step] & mask)
    owner = np.repeat(np.arange(graph.n_ideals), np.diff(graph.state_start))
    assert list(zip(owner.tolist(), graph.state_step.tolist(), strict=True)) == states
    for (index, step), origin in zip(states, graph.state_from.tolist(), strict=True):
        assert ideals[origin] == ideals[index] & ~(1 << step)


@settings(max_examples=60, deadline=None)
@given(dags(max_steps=8))
def test_arrays_mean_what_they_say(flow: FlowGraph) -> None:
    graph = TSortGraph.compile(flow)
    check_arrays(graph)
    shapes = {
        "masks": (np.uint64, (graph.n_ideals, 1)),
        "level_start": (np.int64, (len(flow) + 2,)),
        "state_start": (np.int64, (graph.n_ideals + 1,)),
        "state_step": (np.int32, (graph.n_states,)),
        "state_from": (np.int32, (graph.n_states,)),
    }
    for name, (dtype, shape) in shapes.items():
        array = getattr(graph, name)
        assert array.dtype == dtype
        assert array.shape == shape
        assert array.flags.c_contiguous
        assert not array.flags.writeable


@settings(max_examples=60, deadline=None)
@given(dags(max_steps=6))
def test_both_constructions_of_the_paper_give_this_graph(flow: FlowGraph) -> None:
    graph = transcriptions.with_root_and_sink(flow)
    forward = transcriptions.forward_with_visited_sets(graph)
    renamed = {node: transcriptions.visited_to_front(graph, node) for node in forward}
    assert len(set(renamed.values())) == len(forward)
    backward = transcriptions.backward_with_fronts(graph)
    ours = TSortGraph.compile(flow).to_networkx()
    assert set(ours) == set(renamed.values()) == set(backward)
    assert set(ours.edges) == {(renamed[a], renamed[b]) for a, b in forward.edges} == set(backward.edges)


@settings(max_examples=60, deadline=None)
@given(dags(max_steps=7))
def test_paths_and_counts_equal_enumeration(flow: FlowGraph) -> None:
    plain = nx.DiGraph()
    plain.add_nodes_from(range(len(flow)))
    plain.add_edges_from(flow.edges)
    expected = sorted(map(tuple, nx.all_topological_sorts(plain)))
    graph = TSortGraph.compile(flow)
    assert list(graph.paths()) == expected
    assert graph.n_sorts == len(expected)


@settings(max_examples=30, deadline=None)
@given(dags(max_steps=6))
def test_networkx_sizes_and_paths(flow: FlowGraph) -> None:
    graph = TSortGraph.compile(flow)
    exported = graph.to_networkx()
    root, sink = ("ROOT", frozenset[int]()), ("SINK", frozenset[int]())
    assert len(exported) == graph.n_states + 2
    assert exported.number_of_edges() == graph.n_edges + len(flow.sinks)
    spelled = [tuple(v for v, _ in path[1:-1]) for path in nx.all_simple_paths(exported, root, sink)]
    assert sorted(spelled) == list(graph.paths())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_threads_follow_the_closed_formulas(lengths: list[int]) -> None:
    figures = Complexity.of_threads(lengths)
    graph = TSortGraph.compile(thread_flow(lengths))
    assert graph.n_sorts == figures.sorts.exact
    assert figures.ideals == (graph.n_ideals, ideals_bound(graph.flow)[1])
    assert 1 + graph.n_states == figures.n_nodes
    in_degrees = np.diff(graph.state_start)[graph.state_from]
    assert in_degrees.max() <= len(lengths)


def test_even_threads() -> None:
    assert even_threads(10, 4) == (3, 3, 2, 2)
    assert even_threads(6, 6) == (1,) * 6
    with pytest.raises(InputError, match="5 threads"):
        even_threads(4, 5)


@settings(max_examples=60, deadline=None)
@given(dags(max_steps=9))
def test_bounds_hold(flow: FlowGraph) -> None:
    lower, upper = ideals_bound(flow)
    assert lower <= TSortGraph.compile(flow).n_ideals <= upper


def two_chains(length: int) -> FlowGraph:
    """Return two chains whose steps take turns in the numbering, so that both reach into every word."""
    return FlowGraph.from_edges([f"step {i}" for i in range(2 * length)], [(i, i + 2) for i in range(2 * length - 2)])


@compiled
@pytest.mark.parametrize(
    "flow",
    [bag(1), bag(2), bag(12), chain(64), chain(65), chain(200), two_chains(40), two_chains(70)],
    ids=repr,
)
def test_builders_agree_on_large_graphs(flow: FlowGraph) -> None:
    assert_builders_agree(flow)


@compiled
@settings(max_examples=80, deadline=None)
@given(dags(max_steps=10))
def test_builders_agree(flow: FlowGraph) -> None:
    assert_builders_agree(flow)


@compiled
@settings(max_examples=5, deadline=None)
@given(dags(min_steps=2, max_steps=5), st.randoms(use_true_random=False))
def test_builders_agree_across_words(flow: FlowGraph, random: Random) -> None:
    """Small graphs whose steps lie scattered over a chain, beside it, in three words."""
    places = sorted(random.sample(range(130), len(flow)))
    others = [i for i in range(130) if i not in places]
    edges = [(places[a], places[b]) for a, b in flow.edges] + list(pairwise(others))
    assert_builders_agree(FlowGraph.from_edges([f"step {i}" for i in range(130)], edges))


def assert_builders_agree(flow: FlowGraph) -> None:
    before = words_of(map(mask_of, flow.predecessors), len(flow))
    native, reference = build_lattice(before, 2**22), build_lattice_numpy(before, 2**22)
    for name in Lattice._fields:
        array, expected = getattr(native, name), getattr(reference, name)
        assert array.dtype == expected.dtype
        assert array.flags.c_contiguous
        np.testing.assert_array_equal(array, expected)


def test_more_than_64_steps() -> None:
    graph = TSortGraph.compile(chain(200))
    assert (graph.n_ideals, graph.n_states, graph.n_edges, graph.n_sorts) == (201, 200, 200, 1)
    assert list(graph.paths()) == [tuple(range(200))]
    graph = TSortGraph.compile(two_chains(70))
    assert graph.masks.shape == (71 * 71, 3)
    assert graph.n_sorts == math.comb(140, 70)
    assert next(graph.paths())[:3] == (0, 1, 2)
    check_arrays(graph)


def test_paths_are_lazy() -> None:
    paths = TSortGraph.compile(bag(16)).paths()
    first = list(islice(paths, 3))
    assert first[0] == tuple(range(16))
    assert first[1] == (*range(14), 15, 14)
    assert first[2] == (*range(13), 14, 13, 15)


def test_counts_beyond_64_bits() -> None:
    assert TSortGraph.compile(bag(16)).n_sorts == math.factorial(16)
    lengths = (12, 12, 12, 12)
    assert TSortGraph.compile(thread_flow(lengths)).n_sorts == Complexity.of_threads(lengths).sorts.lower > 2**64


def test_refused_before_building() -> None:
    with pytest.raises(TooLargeError) as caught:
        TSortGraph.compile(bag(60), build=lambda before, limit: pytest.fail("must not build"))
    assert str(caught.value) == (
        "60 steps in 60 parallel threads have 1.15e+18 legal sets of done steps (ideals), more than "
        "the limit of 4,194,304: add order between steps or remove steps"
    )
    with pytest.raises(TooLargeError, match="limit of 99: raise `limit=`, add order between steps, or remove steps"):
        TSortGraph.compile(bag(60), limit=99)


@pytest.mark.parametrize("build", [build_lattice, build_lattice_numpy])
def test_refused_while_building(build: Builder) -> None:
    flow = thread_flow([9, 9, 9])
    message = "27 steps in 3 parallel threads have 1,000 legal sets of done steps (ideals), "
    with pytest.raises(TooLargeError, match=re.escape(message) + "more than the limit of 999"):
        TSortGraph.compile(flow, limit=999, build=build)
    assert TSortGraph.compile(flow, limit=1000, build=build).n_ideals == 1000


@pytest.mark.parametrize("limit", [0, -1, 2.5, True, "many"])
def test_bad_limit(limit: object) -> None:
    with pytest.raises(InputError, match="limit must be a whole number"):
        TSortGraph.compile(bag(2), limit=limit)  # type: ignore[arg-type]


def test_repr_and_pickle() -> None:
    graph = TSortGraph.compile(bag(3))
    assert repr(graph) == "TSortGraph(FlowGraph(3 steps, 0 edges), 8 ideals, 12 states)"
    copy = pickle.loads(pickle.dumps(graph))
    assert copy.flow == graph.flow
    np.testing.assert_array_equal(copy.state_from, graph.state_from)
