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

# By suffix, who reads a text and who writes it.
_FORMATS: dict[str, tuple[Callable[[str, str], FlowGraph], Callable[[FlowGraph], str]]] = {
    ".json": (
        lambda text, source: flow_json.from_json(parse_json(text, source), source),
        lambda flow: json.dumps(flow_json.to_json(flow), indent=2, ensure_ascii=False) + "\n",
    ),
    ".flow": (text_format.from_text, text_format.to_text),
    ".txt": (text_format.from_text, text_format.to_marked_text),
    ".dot": (dot_format.from_dot, dot_format.to_dot),
    ".gv": (dot_format.from_dot, dot_format.to_dot),
}


def load(path: str | os.PathLike[str]) -> FlowGraph:
    """Read a flow graph from a file in the format that its suffix names."""
    path = Path(path)
    read, _ = _FORMATS[known_suffix(path)]
    return read(read_text(path), str(path))


def save(flow: FlowGraph, path: str | os.PathLike[str]) -> None:
    """Write a flow graph to a file in the format that its suffix names, whole or not at all; to ``-`` as JSON."""
    path = Path(path)
    _, write = _FORMATS[".json" if str(path) == STDOUT else known_suffix(path)]
    write_text(path, write(flow))


def known_suffix(path: Path) -> str:
    """Return the suffix of a flow graph's file; one that names no format is an error."""
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
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

    document = flow_json.to_json(flow)
    graph = networkx.DiGraph(**{key: document[key] for key in ("title", "alternatives") if key in document})
    graph.add_nodes_from((step.pop("id"), step) for step in document["steps"])
    graph.add_edges_from((a, b, {"confidence": sure[0]} if sure else {}) for a, b, *sure in document["edges"])
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
    nodes = graph.nodes(data=True)
    return FlowGraph.from_edges(
        [Step(str(node), str(about.get("text", about.get("label", node)))) for node, about in nodes],
        [(str(a), str(b), sure) for a, b, sure in graph.edges(data="confidence", default=1.0)],
        str(graph.graph.get("title", "")),
        optional=[str(node) for node, about in nodes if about.get("optional")],
        alternatives=graph.graph.get("alternatives", ()),
    )
