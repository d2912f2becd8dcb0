"""The JSON form of a parse.

    {"format": "graph2vid-parse", "version": 1, "graph2vid": "0.1.0", "parser": "rules",
     "procedure": {"title": …, "source": …, "ingredients": […],
                   "instructions": [{"text": …, "section": …, "source": …}, …]},
     "flow": {"format": "graph2vid-flow", …},
     "reasons": [{"before": 0, "after": 2, "rule": …, "words": …}, …], "backward": […],
     "entities": null or {"entities": [{"instruction": 0, "start": …, "end": …, "token": …, "text": …, "tag": …}, …],
                          "edges": [{"source": 0, "target": 3, "label": …}, …]},
     "precedence": null or [[0, 1, 0.93], …]}

"precedence" holds each pair of instructions with the probability that the first must come before the second.
Instructions, characters, tokens and entities are counted from 0; instruction n is step n of the flow graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, get_type_hints

import numpy as np
import numpy.typing as npt

from graph2vid import __version__
from graph2vid._files import check_format
from graph2vid.errors import FormatError, InputError
from graph2vid.flow import FlowGraph
from graph2vid.text.parsed_text import Entity, EntityEdge, EntityGraph, Instruction, Parse, Procedure, Reason

KIND = "graph2vid-parse"
VERSION = 1

T = TypeVar("T")
_NO_LIMITS: Mapping[str, int] = {}


def to_json(parse: Parse) -> dict[str, Any]:
    """Return the JSON document of a parse."""
    about = {"format": KIND, "version": VERSION, "graph2vid": __version__, "parser": parse.parser}
    procedure = _written(parse.procedure, ("title", "source", "ingredients", "instructions"))
    parts = _written(parse, ("reasons", "backward", "entities"))
    parts["precedence"] = None if parse.probabilities is None else _pairs(parse.probabilities)
    return {**about, "procedure": procedure, "flow": parse.flow.to_json(), **parts}


def _pairs(probabilities: npt.NDArray[np.float32]) -> list[tuple[int, int, float]]:
    before, after = (places.tolist() for places in np.triu_indices(len(probabilities), 1))
    return [(i, j, round(float(probabilities[i, j]), 4)) for i, j in zip(before, after, strict=True)]


def _written(value: Any, names: tuple[str, ...] = ()) -> Any:
    """Return records (of one, perhaps, these fields alone) and tuples of them as JSON has them: objects and lists."""
    if isinstance(value, tuple):
        return list(map(_written, value))
    if not is_dataclass(value):
        return value
    return {name: _written(getattr(value, name)) for name in names or (field.name for field in fields(value))}


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
        below = {"before": len(flow), "after": len(flow)}
        reasons, backward = (_records(Reason, document, key, below) for key in ("reasons", "backward"))
        entities = _entities(document.get("entities"), len(flow))
        probabilities = _probabilities(document.get("precedence"), len(flow))
        return Parse(procedure, flow, _text(document, "parser"), reasons, backward, entities, probabilities)
    except InputError as error:
        raise FormatError(f"{source}: {error}") from None


def _procedure(value: Any) -> Procedure:
    if not isinstance(value, dict):
        raise FormatError("procedure must be an object")
    ingredients = value.get("ingredients", [])
    if not isinstance(ingredients, list) or not all(isinstance(entry, str) for entry in ingredients):
        raise FormatError("procedure.ingredients must be a list of strings")
    instructions = _records(Instruction, value, "instructions")
    return Procedure(instructions, _text(value, "title"), tuple(ingredients), _text(value, "source"))


def _entities(value: Any, steps: int) -> EntityGraph | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise FormatError("entities must be an object or null")
    entities = _records(Entity, value, "entities", below={"instruction": steps})
    ends = {"source": len(entities), "target": len(entities)}
    return EntityGraph(entities, _records(EntityEdge, value, "edges", below=ends))


def _probabilities(value: Any, steps: int) -> npt.NDArray[np.float32] | None:
    if value is None:
        return None
    found = np.zeros((steps, steps), dtype=np.float32)
    try:
        for before, after, probability in value:
            if not (0 <= before < after < steps and 0 <= probability <= 1):
                raise ValueError
            found[before, after] = probability
    except (TypeError, ValueError, IndexError):
        raise FormatError("precedence must be null or a list of [before, after, probability]") from None
    return found


def _text(value: dict[str, Any], key: str) -> str:
    text = value.get(key, "")
    if not isinstance(text, str):
        raise FormatError(f"{key} must be a string")
    return text


def _records(kind: type[T], value: dict[str, Any], key: str, below: Mapping[str, int] = _NO_LIMITS) -> tuple[T, ...]:
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
            if name in below and not 0 <= found < below[name]:
                raise FormatError(f"{key}[{number}].{name} is {found}; there is no such place")
        try:
            records.append(kind(**given))
        except TypeError:
            missing = ", ".join(name for name in types if name not in given)
            raise FormatError(f"{key}[{number}] lacks {missing}") from None
    return tuple(records)
