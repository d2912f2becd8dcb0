"""Findings: legal, and still likely a slip."""

from __future__ import annotations

from hypothesis import given

from dags import dags
from graph2vid.flow import FlowGraph
from graph2vid.flow.validate import findings


def messages(flow: FlowGraph) -> list[str]:
    return [finding.message for finding in findings(flow)]


def test_findings() -> None:
    steps = [("a", "Cut it"), ("b", "cut  it"), ("c", ""), ("d", "alone")]
    assert messages(FlowGraph.from_edges(steps, [(0, 1), (1, 2), (0, 2)])) == [
        "step 'd' has no edges: it may come at any time",
        "step 'c' has no text",
        "steps 'a', 'b' have the same text 'Cut it'",
        "edge 'a' → 'c' says nothing new: 'b' lies between",
    ]
    assert messages(FlowGraph.bag(["x", "y"])) == ["there are no edges: every order of the steps is legal"]
    assert messages(FlowGraph.bag(["x"])) == []
    assert messages(FlowGraph.chain(["x", "y"])) == []


@given(dags())
def test_redundant_edges_are_those_the_reduction_drops(flow: FlowGraph) -> None:
    found = {finding.steps for finding in findings(flow) if finding.kind == "redundant edge"}
    kept = set(flow.transitive_reduction().edges)
    assert found == {(flow.ids[a], flow.ids[b]) for a, b in flow.edges if (a, b) not in kept}
