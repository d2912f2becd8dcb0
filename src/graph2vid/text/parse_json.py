"""The JSON form of a parse.

    {"format": "graph2vid-parse", "version": 1, "graph2vid": "0.1.0", "parser": "rules",
     "procedure": {"title": …, "source": …, "ingredients": […],
                   "instructions": [{"text": …, "section": …, "source": …}, …]},
     "flow": {"format": "graph2vid-flow", …},
     "reasons": [{"before": 0, "after": 2, "rule": …, "words": …}, …], "backward": […],
     "entities": null or {"entities": [{"instruction": 0, "start": …, "end": …, "token": …, "text": …, "tag": …}, …],
                          "edges": [{"source": 0, "target": 3, "label": …}, …]}}

Instructions, characters, tokens and entities are counted from 0; instruction n is step n of the flow graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, TypeVar, get_type_hints

from graph2vid import __version__
from graph2vid._files import check_format
from graph2vid.errors import FormatError, InputError
from graph2vid.flow import FlowGraph
from graph2vid.text.parsed_text import Entity, EntityEdge, EntityGraph, Instruction, Parse, Procedure, Reason

KIND = "graph2vid-parse"
VERSION = 1

T = TypeVar("T")


def to_json(parse: Parse) -> dict[str, Any]:
    """Return the JSON document of a parse."""
    procedure, graph = parse.procedure, parse.entities
    return {
        "format": KIND,
        "version": VERSION,
        "graph2vid": __version__,
        "parser": parse.parser,
        "procedure": {
            "title": procedure.title,
            "source": procedure.source,
            "ingredients": list(procedure.ingredients),
            "instructions": _written(procedure.instructions),
        },
        "flow": parse.flow.to_json(),
        "reasons": _written(parse.reasons),
        "backward": _written(parse.backward),
        "entities": graph and {"entities": _written(graph.entities), "edges": _written(graph.edges)},
    }


def _written(records: Iterable[Instruction | Reason | Entity | EntityEdge]) -> list[dict[str, Any]]:
    return [asdict(record) for record in records]


def from_json(value: Any, source: str = "parse") -> Parse:
    """Read the JSON document of a parse; messages name ``source`` and the path within it.

    Raises
    ------
    FormatError
        It is no such document, or of a newer version.
    """
    document = check_format(value, kind=KIND, version=VERSION, source=source)
    try:
        procedure = _procedure(document.get("procedure"))
        flow = FlowGraph.from_json(document.get("flow"), source="flow")
        if len(flow) != len(procedure):
            raise FormatError(f"flow has {len(flow)} steps, but there are {len(procedure)} instructions")
        entities = document.get("entities")
        return Parse(
            procedure,
            flow,
            _text(document, "parser", ""),
            _records(Reason, document, "reasons", below={"before": len(flow), "after": len(flow)}),
            _records(Reason, document, "backward", below={"before": len(flow), "after": len(flow)}),
            None if entities is None else _entities(entities, len(flow)),
        )
    except InputError as error:
        raise FormatError(f"{source}: {error}") from None


def _procedure(value: Any) -> Procedure:
    if not isinstance(value, dict):
        raise FormatError("procedure must be an object")
    ingredients = value.get("ingredients", [])
    if not isinstance(ingredients, list) or not all(isinstance(entry, str) for entry in ingredients):
        raise FormatError("procedure.ingredients must be a list of strings")
    return Procedure(
        _records(Instruction, value, "instructions"), _text(value, "title"), tuple(ingredients), _text(value, "source")
    )


def _entities(value: Any, steps: int) -> EntityGraph:
    if not isinstance(value, dict):
        raise FormatError("entities must be an object or null")
    entities = _records(Entity, value, "entities", below={"instruction": steps})
    ends = {"source": len(entities), "target": len(entities)}
    return EntityGraph(entities, _records(EntityEdge, value, "edges", below=ends))


def _text(value: dict[str, Any], key: str, default: str = "") -> str:
    text = value.get(key, default)
    if not isinstance(text, str):
        raise FormatError(f"{key} must be a string")
    return text


def _records(kind: type[T], value: dict[str, Any], key: str, below: dict[str, int] | None = None) -> tuple[T, ...]:
    """Read a list of objects with the fields of ``kind``; those in ``below`` are places in a list of that length."""
    entries = value.get(key)
    if not isinstance(entries, list):
        raise FormatError(f"{key} must be a list")
    types = get_type_hints(kind)
    records = []
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise FormatError(f"{key}[{number}] must be an object")
        given = {name: entry[name] for name in types if name in entry}
        for name, found in given.items():
            if type(found) is not types[name]:
                raise FormatError(f"{key}[{number}].{name} must be {'a string' if types[name] is str else 'a number'}")
            if name in (below or {}) and not 0 <= found < (below or {})[name]:
                raise FormatError(f"{key}[{number}].{name} is {found}; there is no such place")
        try:
            records.append(kind(**given))
        except TypeError:
            missing = ", ".join(name for name in types if name not in given)
            raise FormatError(f"{key}[{number}] lacks {missing}") from None
    return tuple(records)
