"""The procedures of a corpus: each is read once, and compiled once in a process."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from graph2vid import __version__
from graph2vid._files import parse_json
from graph2vid.errors import InputError, TooLargeError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

_KEPT = 512
_FLOWS = (".flow", ".dot", ".gv")  # files that never hold words


@lru_cache(maxsize=_KEPT)
def flow_of(procedure: str, parser: str, folder: str, cache: str | None) -> FlowGraph:
    """Return the flow graph of a row's procedure.

    Parameters
    ----------
    procedure : str
        A flow graph as JSON, words (with a line break), or the path of a file with either, from ``folder``.
    parser : str
        Who finds the flow graph of words; what it finds is kept in the folder ``cache``.
    """
    if procedure.lstrip().startswith("{"):
        return FlowGraph.from_json(parse_json(procedure, "procedure"), source="procedure")
    path = None if "\n" in procedure else Path(folder) / procedure
    if path is not None and not path.is_file():
        raise InputError(f"procedure {path} is not there (words within the manifest hold a line break)")
    if path is not None and path.suffix.lower() in _FLOWS:
        return FlowGraph.load(path)
    from graph2vid.evidence import Cache, content_hash, text_hash  # here: most procedures of large corpora are graphs
    from graph2vid.text import chosen_parser, parse, procedure_from_text, read_flow

    content = text_hash(procedure) if path is None else content_hash(path)
    key = {"content": content, "parser": chosen_parser(parser), "graph2vid": __version__}

    def found() -> dict[str, object]:
        flow = parse(procedure_from_text(procedure), parser).flow if path is None else read_flow(path, parser)
        return flow.to_json()

    kept = Cache(cache).json("flow", key if path is None else key | {"suffix": path.suffix.lower()}, found)
    return FlowGraph.from_json(kept, source="kept flow graph")


@lru_cache(maxsize=_KEPT)
def procedure_of(procedure: str, parser: str, folder: str, cache: str | None) -> tuple[FlowGraph, TSortGraph | None]:
    """Return :func:`flow_of` and :func:`compiled` of it."""
    flow = flow_of(procedure, parser, folder, cache)
    return flow, compiled(flow)


def compiled(flow: FlowGraph) -> TSortGraph | None:
    """Return the tSort graph of a procedure; None if it has none: too large, or with steps that need not be done."""
    try:
        return TSortGraph.compile(flow) if flow.is_plain else None
    except TooLargeError:
        return None
