"""The rows of a manifest as the stages see them, taken out of Arrow tables, and their procedures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid import __version__
from graph2vid._files import parse_json
from graph2vid.batch.columns import ARRAYS, FILES, by_row, matrices, texts
from graph2vid.batch.settings import DEFAULTS, POLICIES, RENAMED, ROW_OPTIONS, Context, check_option
from graph2vid.errors import FormatError, Graph2VidError, InputError, TooLargeError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

_DIGEST_BYTES = 16
_FRAMES = "array:"
_FLOWS = (".flow", ".dot", ".gv")  # files that never hold words
_KEPT = 512  # procedures, each read and compiled once in a process


class Row(NamedTuple):
    """One video and its procedure.

    Attributes
    ----------
    id : str
    procedure : str
        A path, words (with a line break), or a flow graph as JSON.
    inputs : dict
        ``video`` and ``captions``: paths; arrays: a path, JSON, or the matrix itself.
    options : dict
        All that is set for it, in its own type.
    """

    id: str
    procedure: str
    inputs: dict[str, Any]
    options: dict[str, Any]


def decode(table: Any, context: Context) -> list[Row]:
    """Return the rows of a table; what the check of the manifest refused is left out of ``inputs`` and ``options``."""
    names = [RENAMED.get(name, name) for name in table.column_names]
    table = table.rename_columns(names)
    ids, procedures = texts(table, "id").to_pylist(), texts(table, "procedure").to_pylist()
    inputs = {name: texts(table, name).to_pylist() for name in FILES if name in names}
    inputs |= {name: matrices(table.column(name)) for name in ARRAYS if name in names}
    values = by_row(inputs.values(), len(ids))
    given = [{name: one for name, one in zip(inputs, row, strict=True) if one is not None} for row in values]
    rows = [
        Row(name, procedure or "", of_row, options)
        for name, procedure, of_row, options in zip(ids, procedures, given, _options(table, context), strict=True)
    ]
    return [_with_model(row, context) for row in rows] if context.adapted else rows


def learnt_with(row: Row) -> str | None:
    """Return what rows that are learnt from together have in common; None of a row that is not learnt from."""
    options = row.options
    media = row.inputs.keys() & set(FILES)
    if not media or {"adapted", "frames", "extra_scores"} & options.keys() or options["narration_weight"] != 1:
        return None
    return json.dumps([row.procedure, *(options.get(name) for name in ("parser", "embedder", "clip_seconds"))])


def _with_model(row: Row, context: Context) -> Row:
    """Return a row with the task model that its procedure has; rows with the same options still share them."""
    path = context.adapted.get(learnt_with(row) or "")
    if path is None:
        return row
    return row._replace(options=_shared(json.dumps(row.options | {"adapted": path})))


@lru_cache(maxsize=4096)
def _shared(options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(options)
    return found


def _options(table: Any, context: Context) -> list[dict[str, Any]]:
    """Return the options of each row; rows with the same options have one and the same dictionary."""
    common = dict(DEFAULTS) | dict(context.options)
    columns = {name: _checked(name, table.column(name)) for name in ROW_OPTIONS if name in table.column_names}
    known: dict[tuple[Any, ...], dict[str, Any]] = {}
    found = by_row(columns.values(), len(table))
    for values in set(found):
        known[values] = common | {name: one for name, one in zip(columns, values, strict=True) if one is not None}
    return [known[values] for values in found]


def _checked(name: str, column: Any) -> list[Any]:
    """Return the values of an option; None where there is none, or a wrong one."""
    known: dict[Any, Any] = {None: None, "": None}
    values = column.to_pylist()
    for value in set(values) - known.keys():
        known[value] = None
        with suppress(InputError):
            known[value] = check_option(name, value)
    return [known[value] for value in values]


def matrix_of(value: Any, folder: str) -> NDArray[Any]:
    """Return the matrix that a row names by a path (from ``folder``), holds as JSON, or is."""
    if not isinstance(value, str):
        return np.asarray(value)
    if not is_json(value):
        from graph2vid.evidence import read_array  # here, and below: the check of most large corpora needs none of it

        return read_array(Path(folder) / value)
    try:
        return np.array(parse_json(value, "an array within the manifest", infinite=True), dtype=np.float64)
    except FormatError:
        raise
    except (ValueError, TypeError, OverflowError):
        raise InputError("an array within the manifest must be lists of numbers, all equally long") from None


def is_json(value: str) -> bool:
    """Tell whether an array is written within the manifest, and not the path of a file."""
    return value.lstrip().startswith("[")


def with_files(options: dict[str, Any], folder: str) -> dict[str, Any]:
    """Return options in which policies hold the arrays of the ``.npy`` files that they name, and paths are full.

    Those that name no file are returned as they are: the very same dictionary.
    """
    read: dict[str, Any] = {}
    for name, paths in _files(options):
        if name in POLICIES:
            read[name] = (options[name].partition(":")[0], matrix_of(paths[0], folder))
        else:
            read[name] = (_FRAMES if name == "frames" else "") + ",".join(str(Path(folder) / path) for path in paths)
    return options | read if read else options


def _files(options: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield the options that name files, and the paths."""
    for name in POLICIES:
        _, _, value = options.get(name, "").partition(":")
        if value.endswith(".npy"):
            yield name, [value]
    for name in ("adapted", "durations", "extra_scores"):
        if name in options:
            yield name, [options[name]]
    if options.get("frames", "").startswith(_FRAMES):
        yield "frames", options["frames"].removeprefix(_FRAMES).split(",")


# -- what a row depends on -----------------------------------------------------------------------------------


def row_digests(rows: Sequence[Row], context: Context) -> list[bytes]:
    """Return a digest of the content of each row: what its result depends on, except for the files' inner values.

    The procedure counts by the bytes of its file, or as it stands in the manifest; matrices within the manifest by
    their numbers; options by their values. Other files (media, captions, ``.npy``, durations) may be too many and too
    large to be read for this: they count by name, size and time of the last change.
    """
    heads: dict[Any, Any] = {}
    found = []
    for row in rows:
        given = {name: one for name, one in row.inputs.items() if not isinstance(one, str)}
        # Rows with the same options share the dictionary.
        key = row.procedure, id(row.options), *((name, one.dtype, one.shape) for name, one in given.items())
        if key not in heads:
            files = [_stamp(path, context) for _, paths in _files(row.options) for path in paths]
            kinds = [(name, one.dtype.str, one.shape) for name, one in given.items()]
            head = [_content_of(row.procedure, context), dict(sorted(row.options.items())), files, kinds]
            heads[key] = hashlib.sha256(json.dumps(head).encode())
        digest = heads[key].copy()
        for name, value in row.inputs.items():
            if name in given:
                digest.update(np.ascontiguousarray(value).data)
            else:
                stamp = None if name in ARRAYS and is_json(value) else _stamp(value, context)
                text = json.dumps([name, value, stamp]).encode()
                digest.update(b"%d " % len(text) + text)
        found.append(digest.digest()[:_DIGEST_BYTES])
    return found


def _content_of(procedure: str, context: Context) -> str | None:
    """Return what a row's procedure says, or the hash of its file (None: it cannot be read)."""
    if "\n" in procedure or procedure.lstrip().startswith("{"):
        return procedure
    from graph2vid.evidence import content_hash

    try:
        return content_hash(Path(context.folder) / procedure)
    except (Graph2VidError, ValueError):
        return None


def _stamp(path: str, context: Context) -> list[int] | None:
    """Return size and time of the last change of a file (None: it is not there)."""
    try:
        status = (Path(context.folder) / path).stat()
    except (OSError, ValueError):
        return None
    return [status.st_size, status.st_mtime_ns]


# -- procedures ----------------------------------------------------------------------------------------------


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
    from graph2vid.evidence import Cache, content_hash, text_hash
    from graph2vid.text import parse, procedure_from_text, read_flow

    content = text_hash(procedure) if path is None else content_hash(path)
    key = {"content": content, "parser": parser, "graph2vid": __version__}

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
