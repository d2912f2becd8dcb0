"""Flow graphs from and to networkx."""

from __future__ import annotations

from typing import Any

from graph2vid.errors import GraphError
from graph2vid.flow.flow_graph import FlowGraph
from graph2vid.flow.messages import quoted
from graph2vid.flow.steps import Step


def to_networkx(flow: FlowGraph) -> Any:
    """Return a :class:`networkx.DiGraph` over the ids; nodes carry ``text``, the graph carries ``title``.

    Where there are such: optional nodes carry ``optional``, edges that are not certain ``confidence``, the graph
    ``alternatives`` (groups of branches of ids).
    """
    import networkx

    graph = networkx.DiGraph(title=flow.title)
    graph.add_nodes_from((step.id, {"text": step.text}) for step in flow.steps)
    for step in flow.optional:
        graph.nodes[flow.ids[step]]["optional"] = True
    for (a, b), sure in flow.confidence.items():
        graph.add_edge(flow.ids[a], flow.ids[b], **({"confidence": sure} if sure < 1.0 else {}))
    if flow.alternatives:
        graph.graph["alternatives"] = [
            [[flow.ids[step] for step in branch] for branch in group] for group in flow.alternatives
        ]
    return graph


def from_networkx(graph: Any) -> FlowGraph:
    """Read a directed networkx graph.

    Nodes become ids through ``str``. The text of a step is its node attribute ``text``, else ``label``, else
    its id.
    """
    if not (hasattr(graph, "is_directed") and hasattr(graph, "nodes")):
        raise GraphError(f"not a networkx graph: {quoted(graph)}")
    if not graph.is_directed():
        raise GraphError("the networkx graph is undirected; a flow graph needs a DiGraph")
    steps = []
    for node, attributes in graph.nodes(data=True):
        text = attributes.get("text", attributes.get("label", str(node)))
        steps.append(Step(str(node), str(text)))
    edges = [(str(a), str(b), sure) for a, b, sure in graph.edges(data="confidence", default=1.0)]
    return FlowGraph.from_edges(
        steps,
        edges,
        str(graph.graph.get("title", "")),
        optional=[str(node) for node, optional in graph.nodes(data="optional", default=False) if optional],
        alternatives=graph.graph.get("alternatives", ()),
    )
