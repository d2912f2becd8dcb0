"""A flow graph from whatever file holds a procedure: a flow graph, or words."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from graph2vid._files import parse_json, read_bytes
from graph2vid.errors import FormatError
from graph2vid.flow import FlowGraph
from graph2vid.flow.flow_json import KIND
from graph2vid.flow.text_format import is_text_notation
from graph2vid.text.parsers import parse
from graph2vid.text.reading import procedure_from_bytes
from graph2vid.text.reading.decoding import MOST_BYTES, decoded

FLOW_SUFFIXES = (".flow", ".dot", ".gv")
_EITHER = (".txt", ".json")  # flow graphs or words


def read_flow(path: str | os.PathLike[str], parser: str = "auto", **options: Any) -> FlowGraph:
    """Read a flow graph, or a procedure in words, whose flow graph is then found.

    Parameters
    ----------
    path : path
        ``.flow``, ``.dot``, ``.gv``, JSON of our own and the text notation in a ``.txt`` file are flow graphs;
        everything else is read by :func:`graph2vid.text.read_procedure`.
    parser : str
        Who finds the flow graph of a procedure in words.
    **options
        Options of that parser.
    """
    path = Path(path)
    if path.suffix.lower() in FLOW_SUFFIXES:
        return FlowGraph.load(path)
    data = read_bytes(path, MOST_BYTES + 1)
    if _holds_flow(data, path):
        return FlowGraph.load(path)
    return parse(procedure_from_bytes(data, source=str(path)), parser, **options).flow


def is_flow_file(path: str | os.PathLike[str]) -> bool:
    """Say whether a file holds a flow graph, not words, as :func:`read_flow` tells them apart."""
    path = Path(path)
    suffix = path.suffix.lower()
    return suffix in FLOW_SUFFIXES or (suffix in _EITHER and _holds_flow(read_bytes(path, MOST_BYTES + 1), path))


def _holds_flow(data: bytes, path: Path) -> bool:
    """Say whether a file that may also hold words is a flow graph; whoever reads it next says what is wrong with it."""
    try:
        text = decoded(data, str(path))
        if path.suffix.lower() == ".txt":
            return is_text_notation(text)
        document = parse_json(text, str(path)) if path.suffix.lower() == ".json" else None
    except FormatError:
        return False
    return isinstance(document, dict) and document.get("format") == KIND
