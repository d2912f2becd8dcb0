"""Optional steps, alternatives and edges that are not certain: in every format, and the messages about bad input."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dags import dags
from graph2vid.errors import GraphError
from graph2vid.flow import FlowGraph
from graph2vid.flow.mine import add_soft_precedence

POTATOES = """\
title: Potatoes
peel: peel the potatoes
fry:  fry them
boil: boil them
drain:
serve:
peel -> fry, boil
boil -> drain
fry, drain -0.75-> serve
optional: peel
alternatives: fry | boil, drain   # not both
"""


@st.composite
def open_flows(draw: st.DrawFn) -> FlowGraph:
    """Draw a flow graph with some of everything."""
    flow = draw(dags(max_steps=6))
    sure = st.just(1.0) | st.floats(1e-9, 1.0, exclude_min=True)
    edges = [(a, b, draw(sure)) for a, b in flow.edges]
    optional = draw(st.sets(st.integers(0, len(flow) - 1)))
    groups = []
    if len(flow) > 1:
        order = draw(st.permutations(range(len(flow))))
        first = draw(st.integers(0, len(flow) - 1))
        groups = [[order[:first], order[first : first + 1]]] if first else []
    try:
        return FlowGraph.from_edges(flow.steps, edges, "T", optional=optional, alternatives=groups)
    except GraphError:  # an order between the branches
        return FlowGraph.from_edges(flow.steps, edges, "T", optional=optional)


@settings(deadline=None)
@given(open_flows())
def test_round_trips(flow: FlowGraph) -> None:
    assert FlowGraph.from_text(flow.to_text()) == flow
    assert FlowGraph.from_dot(flow.to_dot()) == flow
    assert FlowGraph.from_json(json.loads(json.dumps(flow.to_json()))) == flow
    assert FlowGraph.from_networkx(flow.to_networkx()) == flow
    assert pickle.loads(pickle.dumps(flow)) == flow
    assert "<svg" in flow.to_svg()


def test_the_text_notation() -> None:
    flow = FlowGraph.from_text(POTATOES)
    assert flow.optional == (0,)
    assert flow.alternatives == (((1,), (2, 3)),)
    assert flow.confidence == {(0, 1): 1.0, (0, 2): 1.0, (2, 3): 1.0, (1, 4): 0.75, (3, 4): 0.75}
    assert flow.sure.edges == ((0, 1), (0, 2), (2, 3))
    assert not flow.is_plain and FlowGraph.chain(["a", "b"]).is_plain
    assert flow.to_json()["version"] == 2 and FlowGraph.chain(["a"]).to_json()["version"] == 1


def test_steps_may_still_be_called_optional() -> None:
    flow = FlowGraph.from_edges([("optional", "x"), ("a|b", "y"), ("alternatives", "z")], [(0, 1)])
    assert FlowGraph.from_text(flow.to_text()) == flow
    assert FlowGraph.from_text("a|b: x\nc: y\na|b -> c").edges == ((0, 1),)


def test_graphs_made_of_graphs_keep_what_is_open() -> None:
    flow = FlowGraph.from_text(POTATOES)
    without = flow.without(["boil"])
    assert without.optional == (0,) and without.alternatives == (((1,), (2,)),)
    assert without.confidence == {(0, 1): 1.0, (0, 2): 1.0, (1, 3): 0.75, (2, 3): 0.75}
    assert flow.without(["fry"]).alternatives == ()
    assert flow.transitive_closure().confidence[0, 4] == 0.75
    assert flow.relabel({"fry": "roast"}).alternatives == flow.alternatives


def test_an_edge_goes_only_where_surer_ones_imply_it() -> None:
    flow = FlowGraph.from_edges(list("abc"), [(0, 1, 0.9), (1, 2), (0, 2)])
    assert flow.transitive_reduction() == flow
    flow = FlowGraph.from_edges(list("abc"), [(0, 1, 0.9), (1, 2), (0, 2, 0.8)])
    assert flow.transitive_reduction().confidence == {(0, 1): 0.9, (1, 2): 1.0}


def test_mined_graphs_have_confidences() -> None:
    sequences = [["a", "b", "c"]] * 6 + [["b", "a", "c"]] * 2
    plain = FlowGraph.mine(sequences, tolerance=0.3)
    mined = FlowGraph.mine(sequences, tolerance=0.3, confidences=True)
    assert plain.is_plain and mined.edges == plain.edges
    assert mined.confidence == {(0, 1): 0.7, (1, 2): 0.9}
    hard = FlowGraph.mine(sequences)
    soft = add_soft_precedence(hard, sequences)
    assert soft.sure == hard and soft.confidence[0, 1] == 0.7


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FlowGraph.from_edges(list("ab"), [(0, 1, 0.0)]), "a confidence is a number above 0 and at most 1"),
        (lambda: FlowGraph.from_edges(list("ab"), [(0, 1, 1.5)]), "not 1.5"),
        (lambda: FlowGraph.from_edges(list("ab"), [], optional=[2]), "there is no step 2"),
        (lambda: FlowGraph.from_edges(list("ab"), [], alternatives=[[0]]), "two branches or more are needed, not 1"),
        (lambda: FlowGraph.from_edges(list("ab"), [], alternatives=[[[0], []]]), "a branch without steps"),
        (
            lambda: FlowGraph.from_edges(list("abc"), [], alternatives=[[0, 1], [1, 2]]),
            "group 2: step '2' stands in two branches (first in group 1)",
        ),
        (
            lambda: FlowGraph.from_edges(list("abc"), [(0, 1), (1, 2)], alternatives=[[0, 2]]),
            "step '1' must come before '3', but they are alternatives",
        ),
        (lambda: FlowGraph.from_text("a: x\noptional: b"), "line 2: unknown step 'b'"),
        (lambda: FlowGraph.from_text("a: x\nb: y\nalternatives: a | b |"), "a name is missing at the end"),
        (lambda: FlowGraph.from_text("a: x\nb: y\noptional: a | b"), "line 3"),
        (lambda: FlowGraph.chain(["a"]).with_confidence({(0, 1): 0.5}), "there is no edge (0, 1)"),
        (lambda: FlowGraph.from_dot('digraph { a -> b [confidence="much"] }'), "confidence"),
    ],
)
def test_bad_input_is_named(make: Callable[[], FlowGraph], message: str) -> None:
    with pytest.raises(Exception) as caught:
        make()
    assert isinstance(caught.value, GraphError) or "line" in str(caught.value)
    assert message in str(caught.value)


def test_twenty_thousand_branches_are_checked_in_linear_time() -> None:
    """Looking at each pair of branches took minutes."""
    names = [f"b{number}" for number in range(19_999)]
    text = "\n".join([*(f"{name}:" for name in names), f"alternatives: {' | '.join(names)}"])
    assert len(FlowGraph.from_text(text).alternatives[0]) == 19_999
    with pytest.raises(GraphError, match="'b7' must come before 'b9'"):
        FlowGraph.from_text(f"{text}\nb7 -> b9")
