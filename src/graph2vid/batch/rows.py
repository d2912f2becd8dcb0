"""The rows of a manifest as the stages see them, taken out of Arrow tables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graph2vid._files import parse_json
from graph2vid.batch.settings import DEFAULTS, RENAMED, ROW_OPTIONS, Context, Kind, check_option
from graph2vid.errors import FormatError, Graph2VidError, InputError
from graph2vid.evidence import content_hash, read_array

FILES = ("video", "captions")
ARRAYS = ("scores", "log_probabilities", "clips", "steps")
COLUMNS = ("id", "procedure", *FILES, *ARRAYS, *ROW_OPTIONS)
"""The columns of a manifest."""

_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, eq=False)
class Row:
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

    @property
    def kind(self) -> Kind:
        """Where its evidence comes from."""
        if "captions" in self.inputs:
            return "captions"
        return "speech" if "video" in self.inputs else "arrays"


def decode(table: Any, context: Context) -> list[Row]:
    """Return the rows of a table; what the check of the manifest refused is left out of ``inputs`` and ``options``."""
    names = [RENAMED.get(name, name) for name in table.column_names]
    table = table.rename_columns(names)
    ids, procedures = texts(table, "id").to_pylist(), texts(table, "procedure").to_pylist()
    inputs = {name: texts(table, name).to_pylist() for name in FILES if name in names}
    inputs |= {name: matrices(table.column(name)) for name in ARRAYS if name in names}
    values = list(zip(*inputs.values(), strict=True)) or [()] * len(ids)
    given = [{name: one for name, one in zip(inputs, row, strict=True) if one is not None} for row in values]
    return [
        Row(name, procedure or "", of_row, options)
        for name, procedure, of_row, options in zip(ids, procedures, given, _options(table, context), strict=True)
    ]


def _options(table: Any, context: Context) -> list[dict[str, Any]]:
    """Return the options of each row; rows with the same options have one and the same dictionary."""
    common = dict(DEFAULTS) | dict(context.options)
    columns = {name: _checked(name, table.column(name)) for name in ROW_OPTIONS if name in table.column_names}
    if not columns:
        return [common] * len(table)
    known: dict[tuple[Any, ...], dict[str, Any]] = {}
    found = []
    for values in zip(*columns.values(), strict=True):
        if values not in known:
            own = {name: value for name, value in zip(columns, values, strict=True) if value is not None}
            known[values] = common | own
        found.append(known[values])
    return found


def _checked(name: str, column: Any) -> list[Any]:
    """Return the values of an option; None where there is none, or a wrong one."""
    known: dict[Any, Any] = {None: None, "": None}
    values = column.to_pylist()
    for value in set(values) - known.keys():
        try:
            known[value] = check_option(name, value)
        except InputError:
            known[value] = None
    return [known[value] for value in values]


def texts(table: Any, name: str) -> Any:
    """Return a column as text, whatever else it holds: numbers as ids, words by their numbers in a dictionary."""
    return table.column(name).cast(pa.string(), safe=False)  # that it is UTF-8 was checked


def holds_lists(column: Any) -> bool:
    """Tell whether a column holds matrices themselves, and not paths."""
    kind = column.type
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def matrices(column: Any) -> list[NDArray[Any] | str | None]:
    """Return a column of matrices (lists of lists of numbers, all of a matrix equally long), or of paths.

    A matrix that is not one (its lists differ in length) is empty, [0, 0]: no procedure fits it.
    """
    if not holds_lists(column):
        found: list[NDArray[Any] | str | None] = column.to_pylist()
        return [value or None for value in found]
    numbers = column.type.value_type.value_type
    rows = column.cast(pa.large_list(pa.large_list(numbers))).combine_chunks()
    if isinstance(rows, pa.ChunkedArray):  # a table without rows has no chunk to combine
        return []
    outer, inner, values = _numpy(rows.offsets), _numpy(rows.values.offsets), _numpy(rows.values.values)
    heights, widths = np.diff(outer), np.diff(inner)
    used = widths[outer[0] : outer[-1]]
    if not rows.null_count and used.size and used[0] > 0 and (heights == heights[0]).all() and (used == used[0]).all():
        whole = values[inner[outer[0]] : inner[outer[-1]]]
        return list(whole.reshape(len(heights), heights[0], used[0]))  # all of one shape, as in most manifests
    there = rows.is_valid().to_pylist()
    matrix: list[NDArray[Any] | str | None] = []
    for at, (first, stop) in enumerate(zip(outer[:-1].tolist(), outer[1:].tolist(), strict=True)):
        if not there[at]:
            matrix.append(None)
            continue
        width = int(widths[first]) if stop > first else 0
        if width == 0 or (widths[first:stop] != width).any():
            matrix.append(np.zeros((0, 0), dtype=np.float32))
            continue
        matrix.append(values[inner[first] : inner[stop]].reshape(stop - first, width))
    return matrix


def _numpy(array: Any) -> NDArray[Any]:
    """Return numbers as numpy has them, NaN where there are none; without pandas, which ``to_numpy`` loads."""
    found: NDArray[Any] = array.to_numpy(zero_copy_only=False) if array.null_count else np.from_dlpack(array)
    return found


def matrix_of(value: Any, folder: str) -> NDArray[Any]:
    """Return the matrix that a row names by a path (from ``folder``), holds as JSON, or is."""
    if not isinstance(value, str):
        return np.asarray(value)
    if not value.lstrip().startswith("["):
        return read_array(Path(folder) / value)
    try:
        return np.array(parse_json(value, "an array within the manifest", infinite=True), dtype=np.float64)
    except FormatError:
        raise
    except (ValueError, TypeError, OverflowError):
        raise InputError("an array within the manifest must be lists of numbers, all equally long") from None


def evidence_of(inputs: Mapping[str, Any], folder: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of a row by their names."""
    return {name: matrix_of(inputs[name], folder) for name in ARRAYS if name in inputs}


def with_files(options: dict[str, Any], folder: str) -> dict[str, Any]:
    """Return options in which policies hold the arrays of the ``.npy`` files that they name, and paths are full.

    Those that name no file are returned as they are: the very same dictionary.
    """
    read: dict[str, Any] = {}
    for name in ("drop", "skip", "repeat"):
        policy, colon, value = options.get(name, "").partition(":")
        if colon and value.endswith(".npy"):
            read[name] = (policy, read_array(Path(folder) / value))
    if "durations" in options:
        read["durations"] = str(Path(folder) / options["durations"])
    if options.get("frames", "").startswith("array:"):
        paths = options["frames"].removeprefix("array:").split(",")
        read["frames"] = "array:" + ",".join(str(Path(folder) / path) for path in paths)
    return options | read if read else options


# -- what a row depends on -----------------------------------------------------------------------------------


def row_digests(rows: Sequence[Row], context: Context) -> list[bytes]:
    """Return a digest of the content of each row: what its result depends on, except for the files' inner values.

    The procedure counts by the bytes of its file, or as it stands in the manifest; matrices within the manifest by
    their numbers; options by their values. Other files (media, captions, ``.npy``, durations) may be too many and too
    large to be read for this: they count by name, size and time of the last change.
    """
    heads: dict[tuple[str, int], bytes] = {}
    found = []
    for row in rows:
        key = row.procedure, id(row.options)  # rows with the same options share the dictionary
        if key not in heads:
            heads[key] = _text_digest([_content_of(row.procedure, context), _canonical(row.options, context)])
        digest = hashlib.sha256(heads[key])
        for name, value in row.inputs.items():
            if isinstance(value, str):
                within = name in ARRAYS and value.lstrip().startswith("[")
                digest.update(_text_digest([name, value, None if within else _stamp(value, context)]))
            else:
                digest.update(f"{name} {value.dtype.str} {value.shape}".encode())
                digest.update(np.ascontiguousarray(value).data)
        found.append(digest.digest()[:_DIGEST_BYTES])
    return found


def _content_of(procedure: str, context: Context) -> str | None:
    """Return what a row's procedure says, or the hash of its file (None: it cannot be read)."""
    if "\n" in procedure or procedure.lstrip().startswith("{"):
        return procedure
    try:
        return content_hash(Path(context.folder) / procedure)
    except (Graph2VidError, ValueError):
        return None


def _canonical(options: Mapping[str, Any], context: Context) -> list[Any]:
    """Return options, and of the files that they name what :func:`_stamp` says."""
    files = [options["durations"]] if "durations" in options else []
    for name in ("drop", "skip", "repeat"):
        _, _, value = options.get(name, "").partition(":")
        files += [value] if value.endswith(".npy") else []
    if options.get("frames", "").startswith("array:"):
        files += options["frames"].removeprefix("array:").split(",")
    return [dict(sorted(options.items())), [_stamp(path, context) for path in files]]


def _stamp(path: str, context: Context) -> list[int] | None:
    """Return size and time of the last change of a file (None: it is not there)."""
    try:
        status = (Path(context.folder) / path).stat()
    except (OSError, ValueError):
        return None
    return [status.st_size, status.st_mtime_ns]


def _text_digest(value: Any) -> bytes:
    return hashlib.sha256(json.dumps(value).encode()).digest()
