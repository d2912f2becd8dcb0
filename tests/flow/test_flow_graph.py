"""FlowGraph: building, refusing, looking, and making another."""

from __future__ import annotations

import pickle
import random
from itertools import pairwise

import networkx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dags import dags
from graph2vid.errors import GraphError
from graph2vid.flow import FlowGraph, Step
from graph2vid.flow.order import bits


def by_index(flow: FlowGraph) -> networkx.DiGraph:
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(len(flow)))
    graph.add_edges_from(flow.edges)
    return graph


def salad() -> FlowGraph:
    return FlowGraph.from_edges(["cut tomato", "cut cucumber", "mix"], [(0, 2), (1, 2)])


def test_texts_are_numbered_from_one() -> None:
    flow = salad()
    assert flow.ids == ("1", "2", "3")
    assert flow.texts == ("cut tomato", "cut cucumber", "mix")
    assert len(flow) == 3
    assert flow.title == ""


def test_steps_and_edges_in_every_form() -> None:
    steps = [Step("a", "A"), ("b", "B"), "C"]
    flow = FlowGraph.from_edges(steps, [("a", 1), (np.int64(1), "3"), ["a", "b"]], title="t")
    assert flow.steps == (Step("a", "A"), Step("b", "B"), Step("3", "C"))
    assert flow.edges == ((0, 1), (1, 2))
    assert FlowGraph.from_edges(["x", "y"], np.array([[0, 1]])).edges == ((0, 1),)
    assert flow.index("b") == flow.index(1) == 1


def test_chain_and_bag() -> None:
    assert FlowGraph.chain(["a", "b", "c"]).edges == ((0, 1), (1, 2))
    assert FlowGraph.chain(["a"]).edges == ()
    assert FlowGraph.bag(["a", "b"]).edges == ()
    assert FlowGraph.chain(iter("abc")).width == 1
    assert FlowGraph.bag(["a", "b", "c"]).width == 3


def test_neighbours_sources_sinks() -> None:
    flow = FlowGraph.from_edges(["a", "b", "c", "d"], [(0, 1), (1, 2)])
    assert flow.predecessors == ((), (0,), (1,), ())
    assert flow.successors == ((1,), (2,), (), ())
    assert flow.ancestors == (0, 0b001, 0b011, 0)
    assert flow.descendants == (0b110, 0b100, 0, 0)
    assert flow.sources == (0, 3)
    assert flow.sinks == (2, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FlowGraph.bag([]), "the flow graph has no steps; it needs at least one"),
        (lambda: FlowGraph.bag("abc"), "the steps must be a list of texts, not one string"),
        (lambda: FlowGraph.chain("abc"), "the steps must be a list of texts, not one string"),
        (lambda: FlowGraph.bag([3]), "step 0 must be a text, a Step or a pair (id, text), not 3"),  # type: ignore[list-item]
        (lambda: FlowGraph((3,)), "step 0 must be a Step, not 3; FlowGraph.from_edges takes texts"),  # type: ignore[arg-type]
        (
            lambda: FlowGraph.bag([("a", "x"), ("b", "y"), ("a", "z")]),
            "two steps have the id 'a' (steps 0 and 2, ",
        ),
        (
            lambda: FlowGraph.from_edges([("a", "x"), ("a", "y"), ("b", "z")], [(0, 2)]),
            "two steps have the id 'a' (steps 0 and 1, counted from 0)",
        ),
        (lambda: FlowGraph.from_edges(["a"], [(0, 0)]), "step '1' cannot come before itself (self loop)"),
        (
            lambda: FlowGraph.from_edges([("tomato", ""), ("mix", "")], [("tomatoe", "mix")]),
            "edge 0 ('tomatoe' → 'mix'): unknown step 'tomatoe'; did you mean 'tomato'?",
        ),
        (lambda: FlowGraph.from_edges(["a"], [("1", "zzz")]), "edge 0 ('1' → 'zzz'): unknown step 'zzz'"),
        (
            lambda: FlowGraph.from_edges(["a", "b"], [(0, 1), (0, 2)]),
            "edge 1 (0 → 2): there is no step 2; the 2 steps are numbered from 0 to 1",
        ),
        (lambda: FlowGraph.from_edges(["a", "b"], [(0, -1)]), "edge 0 (0 → -1): there is no step -1"),
        (lambda: FlowGraph((Step("a", ""),), ((0, 1),)), "edge (0, 1): there is no step 1"),
        (
            lambda: FlowGraph.from_edges(["a", "b"], [(0, 1.5)]),  # type: ignore[list-item]
            "edge 0 (0 → 1.5): a step is named by its index or id, not by 1.5",
        ),
        (
            lambda: FlowGraph.from_edges(["a", "b"], [(0, True)]),
            "edge 0 (0 → True): a step is named by its index or id, not by True",
        ),
        (lambda: FlowGraph.from_edges(["a"], [(0, 1, 1, 2)]), "edge 0 must be a pair of steps, not (0, 1, 1, 2)"),  # type: ignore[list-item]
        (lambda: FlowGraph.from_edges(["a"], ["12"]), "edge 0 must be a pair of steps, not '12'"),  # type: ignore[list-item]
        (lambda: FlowGraph.from_edges(["a"], [7]), "edge 0 must be a pair of steps, not 7"),  # type: ignore[list-item]
        (
            lambda: FlowGraph.from_edges(["a", "b", "c", "d", "e"], [(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)]),
            "the steps form a cycle: '2' → '3' → '4' → '2'",
        ),
        (lambda: Step("", "x"), "the id of a step must not be empty"),
        (lambda: Step(3, "x"), "the id of a step must be a string, not 3"),  # type: ignore[arg-type]
        (lambda: Step("a", None), "the text of a step must be a string, not None"),  # type: ignore[arg-type]
        (lambda: Step("a", "\ud800"), "the text of a step is not valid Unicode"),
        (lambda: FlowGraph.bag(["a"], title=3), "the title of a flow graph must be a string, not 3"),  # type: ignore[arg-type]
        (lambda: salad().index("4"), "unknown step '4'"),
        (
            lambda: salad().without(["1", "2", "3"]),
            "nothing would be left of the flow graph without these steps",
        ),
        (lambda: salad().without(["mix"]), "unknown step 'mix'"),
        (lambda: salad().relabel({"9": "a"}), "unknown step '9'"),
        (lambda: salad().relabel({"1": "2"}), "two steps have the id '2' (steps 0 and 1, counted from 0)"),
    ],
)
def test_what_is_wrong_is_named(make, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(GraphError) as caught:
        make()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@given(dags(min_steps=2, max_steps=10), st.data())
def test_the_named_cycle_is_one(flow: FlowGraph, data: st.DataObject) -> None:
    closed = flow.transitive_closure().edges
    if not closed:
        return
    a, b = data.draw(st.sampled_from(closed))
    edges = {*flow.edges, (b, a)}
    with pytest.raises(GraphError, match="form a cycle: ") as caught:
        FlowGraph.from_edges(flow.texts, edges)
    named = [int(name.strip("'")) - 1 for name in str(caught.value).split(": ")[1].split(" → ")]
    assert named[0] == named[-1]
    assert len(set(named)) == len(named) - 1
    assert edges.issuperset(pairwise(named))


def test_a_long_cycle_is_shortened() -> None:
    with pytest.raises(GraphError, match="more") as caught:
        FlowGraph.from_edges(["x"] * 300, [(i, (i + 1) % 300) for i in range(300)])
    assert len(str(caught.value)) < 300


def test_immutable_hashable_picklable() -> None:
    flow = salad()
    again = FlowGraph.from_edges(flow.steps, [("2", "3"), ("1", "3"), (0, 2)])
    assert flow == again
    assert hash(flow) == hash(again)
    assert flow != FlowGraph.from_edges(flow.steps, flow.edges, title="salad")
    assert flow != FlowGraph.from_edges(flow.steps, [(0, 2)])
    with pytest.raises(AttributeError):
        flow.title = "no"  # type: ignore[misc]
    assert flow.width == 2  # a filled cache is not pickled
    copied = pickle.loads(pickle.dumps(flow))
    assert copied == flow
    assert "threads" not in vars(copied)
    assert copied.threads == flow.threads


def test_repr_is_short() -> None:
    assert repr(salad()) == "FlowGraph(3 steps, 2 edges)"
    assert repr(FlowGraph.bag(["x"], title="T")) == "FlowGraph('T', 1 step, 0 edges)"
    assert len(repr(FlowGraph.bag(["x"] * 1000, title="long " * 100))) < 110
    assert salad()._repr_svg_().startswith("<svg")


@given(dags(max_steps=10))
def test_closure_reduction_and_masks_as_in_networkx(flow: FlowGraph) -> None:
    graph = by_index(flow)
    assert set(flow.transitive_closure().edges) == set(networkx.transitive_closure_dag(graph).edges)
    assert set(flow.transitive_reduction().edges) == set(networkx.transitive_reduction(graph).edges)
    for step in range(len(flow)):
        assert set(bits(flow.ancestors[step])) == networkx.ancestors(graph, step)
        assert set(bits(flow.descendants[step])) == networkx.descendants(graph, step)
    expected = networkx.lexicographical_topological_sort(graph)
    assert flow.topological_order == tuple(expected)


def assert_chain_cover(flow: FlowGraph) -> None:
    assert sorted(step for chain in flow.chain_cover() for step in chain) == list(range(len(flow)))
    for chain in flow.threads:
        for earlier, later in pairwise(chain):
            assert flow.descendants[earlier] >> later & 1


@given(dags(max_steps=9))
def test_width_is_the_largest_antichain(flow: FlowGraph) -> None:
    assert_chain_cover(flow)
    assert flow.width == max(map(len, networkx.antichains(by_index(flow))))


@given(dags(min_steps=2, max_steps=9), st.data())
def test_without_keeps_the_order_of_the_rest(flow: FlowGraph, data: st.DataObject) -> None:
    removed = data.draw(st.sets(st.sampled_from(flow.ids), max_size=len(flow) - 1))
    smaller = flow.without(removed)
    assert smaller.ids == tuple(step for step in flow.ids if step not in removed)
    assert smaller.title == flow.title
    kept = [flow.index(step) for step in smaller.ids]
    for new_a, a in enumerate(kept):
        for new_b, b in enumerate(kept):
            assert smaller.descendants[new_a] >> new_b & 1 == flow.descendants[a] >> b & 1
    direct = {(smaller.index(flow.ids[a]), smaller.index(flow.ids[b])) for a, b in flow.edges if {a, b} <= {*kept}}
    assert direct <= set(smaller.edges)


def test_without_reconnects() -> None:
    flow = FlowGraph.from_edges(["a", "b", "x", "y", "c", "d"], [(0, 2), (1, 2), (2, 3), (3, 4), (3, 5)])
    assert flow.without([2, "4"]).edges == ((0, 2), (0, 3), (1, 2), (1, 3))
    assert flow.without("3") == flow.without([2])
    assert flow.without([]) == flow


def test_relabel() -> None:
    flow = salad().relabel({"1": "2", "2": "1", "3": Step("mix", "stir")})
    assert flow.steps == (Step("2", "cut tomato"), Step("1", "cut cucumber"), Step("mix", "stir"))
    assert flow.edges == salad().edges


def test_threads_follow_edges() -> None:
    flow = FlowGraph.from_edges(list("abcdef"), [(0, 3), (1, 3), (2, 3), (3, 4), (4, 5)])
    assert flow.threads == ((0, 3, 4, 5), (1,), (2,))


@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(dags(min_steps=65, max_steps=90))
def test_more_than_64_steps(flow: FlowGraph) -> None:
    assert_chain_cover(flow)
    graph = by_index(flow)
    assert set(flow.transitive_closure().edges) == set(networkx.transitive_closure_dag(graph).edges)
    assert set(flow.transitive_reduction().edges) == set(networkx.transitive_reduction(graph).edges)
    half = flow.without(flow.ids[::2])
    assert len(half) == len(flow) // 2


@pytest.mark.parametrize("density", [0.002, 0.01, 0.1, 0.9])
def test_hundreds_of_steps(density: float) -> None:
    chance = random.Random(7)
    edges = [(a, b) for b in range(500) for a in range(b) if chance.random() < density]
    flow = FlowGraph.from_edges(["x"] * 500, edges)
    assert_chain_cover(flow)
    assert len(flow.transitive_reduction().edges) <= len(edges) <= len(flow.transitive_closure().edges)
    # A matching found by another hand: the width is K minus its size.
    graph = networkx.Graph()
    graph.add_nodes_from(range(500))
    graph.add_edges_from((a, b + 500) for a, b in flow.transitive_closure().edges)
    matching = networkx.bipartite.hopcroft_karp_matching(graph, range(500))
    assert flow.width == 500 - len(matching) // 2
