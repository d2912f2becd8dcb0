"""A flow graph from whatever file holds a procedure: a flow graph, or words."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph
from graph2vid.flow.json_format import KIND
from graph2vid.text.parsers import parse
from graph2vid.text.reading import read_procedure

FLOW_SUFFIXES = (".flow", ".dot", ".gv")


def read_flow(path: str | os.PathLike[str], parser: str = "auto", **options: Any) -> FlowGraph:
    """Read a flow graph, or a procedure in words, whose flow graph is then found.

    Parameters
    ----------
    path : path
        ``.flow``, ``.dot``, ``.gv`` and JSON of our own are flow graphs; everything else is read by
        :func:`graph2vid.text.read_procedure`.
    parser : str
        Who finds the flow graph of a procedure in words.
    **options
        Options of that parser.
    """
    path = Path(path)
    if path.suffix.lower() in FLOW_SUFFIXES or _is_flow_document(path):
        return FlowGraph.load(path)
    return parse(read_procedure(path), parser, **options).flow


def _is_flow_document(path: Path) -> bool:
    if path.suffix.lower() != ".json":
        return False
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except ValueError:  # whoever reads it next says what is wrong with it
        return False
    return isinstance(document, dict) and document.get("format") == KIND
