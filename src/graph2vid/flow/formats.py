"""Flow graphs in files, where the suffix names the format, and from and to networkx."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graph2vid._files import STDOUT, parse_json, read_text, write_text
from graph2vid.errors import FormatError, GraphError
from graph2vid.flow import dot_format, flow_json, text_format
from graph2vid.flow.flow_graph import FlowGraph
from graph2vid.flow.messages import quoted
from graph2vid.flow.steps import Step


def _json_from_string(text: str, source: str) -> FlowGraph:
    return flow_json.from_json(parse_json(text, source), source)


def _json_to_string(flow: FlowGraph) -> str:
    return json.dumps(flow_json.to_json(flow), indent=2, ensure_ascii=False) + "\n"


_READERS: dict[str, Callable[[str, str], FlowGraph]] = {
    ".json": _json_from_string,
    ".flow": text_format.from_text,
    ".txt": text_format.from_text,
    ".dot": dot_format.from_dot,
    ".gv": dot_format.from_dot,
}
_WRITERS: dict[str, Callable[[FlowGraph], str]] = {
    ".json": _json_to_string,
    ".flow": text_format.to_text,
    ".txt": text_format.to_marked_text,
    ".dot": dot_format.to_dot,
    ".gv": dot_format.to_dot,
}


def load(path: str | os.PathLike[str]) -> FlowGraph:
    """Read a flow graph from a file in the format that its suffix names."""
    path = Path(path)
    read = _READERS[known_suffix(path)]
    return read(read_text(path), str(path))


def save(flow: FlowGraph, path: str | os.PathLike[str]) -> None:
    """Write a flow graph to a file in the format that its suffix names, whole or not at all; to ``-`` as JSON."""
    path = Path(path)
    write = _WRITERS[".json" if str(path) == STDOUT else known_suffix(path)]
    write_text(path, write(flow))


def known_suffix(path: Path) -> str:
    """Return the suffix of a flow graph's file; one that names no format is an error."""
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        raise FormatError(
            f"{path}: the suffix {quoted(path.suffix)} names no flow graph format; "
            "use .json, .flow (or .txt) for the text notation, or .dot (or .gv)"
        )
    return suffix


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
