"""Flow graphs in files, where the suffix names the format; as JSON documents; from and to networkx.

Other files of graph2vid embed the JSON form:

    {"format": "graph2vid-flow", "version": 1, "title": "Salad",
     "steps": [{"id": "tomato", "text": "cut the tomato"}, …],
     "edges": [["tomato", "mix"], …]}

Keys that are not known are ignored; a step without "text" has its id as text. What a procedure leaves open makes
it version 2: a step with ``"optional": true``, an edge with its confidence (``["tomato", "mix", 0.8]``), and groups
of which one branch is done: ``"alternatives": [[["fry"], ["boil", "drain"]], …]``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from graph2vid._files import STDOUT, check_format, parse_json, read_text, write_text
from graph2vid.errors import FormatError, GraphError
from graph2vid.flow import dot_format, text_format
from graph2vid.flow.choices import check_confidence
from graph2vid.flow.flow_graph import FlowGraph
from graph2vid.flow.messages import quoted, unknown_step
from graph2vid.flow.steps import Step

KIND = "graph2vid-flow"
VERSION = 2


def to_json(flow: FlowGraph) -> dict[str, Any]:
    """Return the JSON document of a flow graph."""
    ids = flow.ids
    document: dict[str, Any] = {
        "format": KIND,
        "version": 1 if flow.is_plain else VERSION,
        "title": flow.title,
        "steps": [{"id": step.id, "text": step.text} for step in flow.steps],
        "edges": [[ids[a], ids[b], *[sure] * (sure < 1.0)] for (a, b), sure in flow.confidence.items()],
    }
    for step in flow.optional:
        document["steps"][step]["optional"] = True
    if flow.alternatives:
        document["alternatives"] = [[[ids[step] for step in branch] for branch in group] for group in flow.alternatives]
    return document


def from_json(value: Any, source: str) -> FlowGraph:
    """Read the JSON document of a flow graph; messages name ``source`` and the path within it."""
    document = check_format(value, kind=KIND, version=VERSION, source=source)
    try:
        title = _typed(document.get("title", ""), str, "title")
        entries = dict(_entries(_member(document, "steps", list), "steps", dict))
        steps = [_step(entry, path) for path, entry in entries.items()]
        known = {step.id: index for index, step in enumerate(steps)}
        edges = []
        for path, pair in _entries(_member(document, "edges", list), "edges", list):
            if len(pair) not in (2, 3):
                raise FormatError(f"{path} must hold two step ids, and perhaps a confidence, not {len(pair)} things")
            before, after = _ids(pair[:2], path, known)
            edges.append((before, after, check_confidence(pair[2], f"{path}[2]") if len(pair) == 3 else 1.0))
        choices = (_typed(entry.get("optional", False), bool, f"{path}.optional") for path, entry in entries.items())
        optional = [step.id for step, is_optional in zip(steps, choices, strict=True) if is_optional]
        groups = _entries(_typed(document.get("alternatives", []), list, "alternatives"), "alternatives", list)
        alternatives = [
            [_ids(branch, inner, known) for inner, branch in _entries(group, path, list)] for path, group in groups
        ]
        return FlowGraph.from_edges(steps, edges, title, optional=optional, alternatives=alternatives)
    except (FormatError, GraphError) as error:
        raise type(error)(f"{source}: {error}") from None


_WORDS: dict[type, str] = {str: "a string", list: "a list", dict: "an object", bool: "true or false"}


def _typed(value: Any, kind: type, path: str) -> Any:
    if not isinstance(value, kind):
        raise FormatError(f"{path} must be {_WORDS[kind]}, not {quoted(value)}")
    return value


def _member(value: dict[str, Any], key: str, kind: type, path: str = "") -> Any:
    if key not in value:
        raise FormatError(f"{path}{key} is missing")
    return _typed(value[key], kind, f"{path}{key}")


def _entries(values: list[Any], path: str, kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the entries of a list, each with its path."""
    for place, entry in enumerate(values):
        yield f"{path}[{place}]", _typed(entry, kind, f"{path}[{place}]")


def _ids(values: list[Any], path: str, known: Mapping[str, int]) -> list[str]:
    ids = dict(_entries(values, path, str))
    for place, step_id in ids.items():
        if step_id not in known:
            raise GraphError(f"{place}: {unknown_step(step_id, known)}")
    return list(ids.values())


def _step(entry: dict[str, Any], path: str) -> Step:
    step_id = _member(entry, "id", str, f"{path}.")
    text = _typed(entry.get("text", step_id), str, f"{path}.text")
    try:
        return Step(step_id, text)
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from None


# By suffix, who reads a text and who writes it.
_FORMATS: dict[str, tuple[Callable[[str, str], FlowGraph], Callable[[FlowGraph], str]]] = {
    ".json": (
        lambda text, source: from_json(parse_json(text, source), source),
        lambda flow: json.dumps(to_json(flow), indent=2, ensure_ascii=False) + "\n",
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

    document = to_json(flow)
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
    nodes, about = graph.nodes(data=True), graph.graph
    steps = [Step(str(node), str(data.get("text", data.get("label", node)))) for node, data in nodes]
    edges = [(str(a), str(b), sure) for a, b, sure in graph.edges(data="confidence", default=1.0)]
    optional, groups = [str(node) for node, data in nodes if data.get("optional")], about.get("alternatives", ())
    return FlowGraph.from_edges(steps, edges, str(about.get("title", "")), optional=optional, alternatives=groups)
