"""Flow graphs in files: the suffix of a file names its format."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from graph2vid._files import STDOUT, parse_json, read_text, write_text
from graph2vid.errors import FormatError
from graph2vid.flow import dot_format, flow_json, text_format
from graph2vid.flow.flow_graph import FlowGraph
from graph2vid.flow.messages import quoted


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
