"""The JSON form of a flow graph, the one that other files of graph2vid embed.

    {"format": "graph2vid-flow", "version": 1, "title": "Salad",
     "steps": [{"id": "tomato", "text": "cut the tomato"}, …],
     "edges": [["tomato", "mix"], …]}

Keys that are not known are ignored; a step without "text" has its id as text. What a procedure leaves open makes
it version 2: a step with ``"optional": true``, an edge with its confidence (``["tomato", "mix", 0.8]``), and groups
of which one branch is done: ``"alternatives": [[["fry"], ["boil", "drain"]], …]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graph2vid._files import check_format
from graph2vid.errors import FormatError, GraphError
from graph2vid.flow.choices import check_confidence
from graph2vid.flow.flow_graph import FlowGraph
from graph2vid.flow.messages import quoted, unknown_step
from graph2vid.flow.steps import Step

KIND = "graph2vid-flow"
VERSION = 2


def to_json(flow: FlowGraph) -> dict[str, Any]:
    """Return the JSON document of a flow graph."""
    document: dict[str, Any] = {
        "format": KIND,
        "version": 1 if flow.is_plain else VERSION,
        "title": flow.title,
        "steps": [{"id": step.id, "text": step.text} for step in flow.steps],
        "edges": [
            [flow.ids[a], flow.ids[b], *([sure] if sure < 1.0 else [])] for (a, b), sure in flow.confidence.items()
        ],
    }
    for step in flow.optional:
        document["steps"][step]["optional"] = True
    if flow.alternatives:
        document["alternatives"] = [
            [[flow.ids[step] for step in branch] for branch in group] for group in flow.alternatives
        ]
    return document


def from_json(value: Any, source: str) -> FlowGraph:
    """Read the JSON document of a flow graph; messages name ``source`` and the path within it."""
    document = check_format(value, kind=KIND, version=VERSION, source=source)
    try:
        title = _typed(document.get("title", ""), str, "title")
        steps = [_step(entry, f"steps[{number}]") for number, entry in enumerate(_list(document, "steps"))]
        known = {step.id: index for index, step in enumerate(steps)}
        edges = []
        for number, entry in enumerate(_list(document, "edges")):
            path = f"edges[{number}]"
            pair = _typed(entry, list, path)
            if len(pair) not in (2, 3):
                raise FormatError(f"{path} must hold two step ids, and perhaps a confidence, not {len(pair)} things")
            ids = _ids(pair[:2], path, known)
            sure = check_confidence(pair[2], f"{path}[2]") if len(pair) == 3 else 1.0
            edges.append((ids[0], ids[1], sure))
        optional = [
            step.id
            for number, step in enumerate(steps)
            if _typed(document["steps"][number].get("optional", False), bool, f"steps[{number}].optional")
        ]
        alternatives = [
            [
                _ids(branch, f"alternatives[{number}][{place}]", known)
                for place, branch in enumerate(_typed(group, list, f"alternatives[{number}]"))
            ]
            for number, group in enumerate(_typed(document.get("alternatives", []), list, "alternatives"))
        ]
        return FlowGraph.from_edges(steps, edges, title, optional=optional, alternatives=alternatives)
    except (FormatError, GraphError) as error:
        raise type(error)(f"{source}: {error}") from None


_WORDS: dict[type, str] = {str: "a string", list: "a list", dict: "an object", bool: "true or false"}


def _typed(value: Any, kind: type, path: str) -> Any:
    if not isinstance(value, kind):
        raise FormatError(f"{path} must be {_WORDS[kind]}, not {quoted(value)}")
    return value


def _list(document: dict[str, Any], key: str) -> list[Any]:
    if key not in document:
        raise FormatError(f"{key} is missing")
    found: list[Any] = _typed(document[key], list, key)
    return found


def _ids(entries: Any, path: str, known: Mapping[str, int]) -> list[str]:
    ids = [_typed(entry, str, f"{path}[{place}]") for place, entry in enumerate(_typed(entries, list, path))]
    for place, step_id in enumerate(ids):
        if step_id not in known:
            raise GraphError(f"{path}[{place}]: {unknown_step(step_id, known)}")
    return ids


def _step(entry: Any, path: str) -> Step:
    _typed(entry, dict, path)
    if "id" not in entry:
        raise FormatError(f"{path}.id is missing")
    step_id = _typed(entry["id"], str, f"{path}.id")
    text = _typed(entry.get("text", step_id), str, f"{path}.text")
    try:
        return Step(step_id, text)
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from None
