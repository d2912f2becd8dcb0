"""Columns of Arrow tables, from Python values and numpy arrays and back.

``pyarrow.array`` and ``pyarrow.scalar``, and what calls them, load pandas where it is installed, to see whether they
are handed something of it. That takes longer than the work on a thousand videos: what a run needs is made otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graph2vid.batch.settings import ROW_OPTIONS

FILES = ("video", "captions")
ARRAYS = ("scores", "log_probabilities", "clips", "steps")
COLUMNS = ("id", "procedure", *FILES, *ARRAYS, *ROW_OPTIONS)
"""The columns of a manifest."""


def strings(values: Iterable[str | bytes | None]) -> Any:
    """Return texts, or bytes, as an Arrow array of text."""
    builder = pa.lib.StringBuilder()
    builder.append_values(values)
    return builder.finish()


def numbers(values: NDArray[Any]) -> Any:
    """Return numbers as an Arrow array, of the same type and in the same memory; NaN are not known."""
    unknown = np.isnan(values)
    valid = pa.py_buffer(np.packbits(~unknown, bitorder="little")) if unknown.any() else None
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [valid, pa.py_buffer(values)])


def repeated(value: str | None, count: int) -> Any:
    """Return an Arrow array of the same text again and again."""
    return pa.repeat(strings([value])[0], count)


def to_numpy(array: Any) -> NDArray[Any]:
    """Return an Arrow array of numbers or truth values as numpy has them, NaN for numbers that are not there."""
    if pa.types.is_boolean(array.type):
        return to_numpy(array.cast(pa.uint8())).view(np.bool_)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    found: NDArray[Any] = array.to_numpy(zero_copy_only=False) if array.null_count else np.from_dlpack(array)
    return found


def texts(table: Any, name: str) -> Any:
    """Return a column as text, whatever else it holds: numbers as ids, words by their numbers in a dictionary."""
    return table.column(name).cast(pa.string(), safe=False)  # that it is UTF-8 was checked


def not_empty(column: Any) -> Any:
    """Tell of each value of a column whether there is one, and no empty text."""
    there = column.is_valid()
    return pc.and_kleene(there, pc.binary_length(column).cast(pa.bool_())) if pa.types.is_string(column.type) else there


def is_list(kind: Any) -> bool:
    """Tell whether a type is that of lists: a column of it holds matrices themselves, and not paths."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def by_row(columns: Iterable[Sequence[Any]], count: int) -> list[tuple[Any, ...]]:
    """Return the values of some columns row by row; there are ``count`` rows."""
    return list(zip(*columns, strict=True)) or [()] * count


def matrices(column: Any) -> list[NDArray[Any] | str | None]:
    """Return a column of matrices (lists of lists of numbers, all of a matrix equally long), or of paths.

    A matrix that is not one (its lists differ in length) is empty, [0, 0]: no procedure fits it.
    """
    if not is_list(column.type):
        return [value or None for value in column.to_pylist()]
    kind = column.type.value_type.value_type
    rows = column.cast(pa.large_list(pa.large_list(kind))).combine_chunks()
    if isinstance(rows, pa.ChunkedArray):  # a table without rows has no chunk to combine
        return []
    outer, inner, values = to_numpy(rows.offsets), to_numpy(rows.values.offsets), to_numpy(rows.values.values)
    heights, widths = np.diff(outer), np.diff(inner)
    used = widths[outer[0] : outer[-1]]
    if not rows.null_count and used.size and used[0] > 0 and (heights == heights[0]).all() and (used == used[0]).all():
        whole = values[inner[outer[0]] : inner[outer[-1]]]
        return list(whole.reshape(len(heights), heights[0], used[0]))  # all of one shape, as in most manifests
    found: list[NDArray[Any] | str | None] = []
    for there, first, stop in zip(rows.is_valid().to_pylist(), outer[:-1].tolist(), outer[1:].tolist(), strict=True):
        width = int(widths[first]) if stop > first else 0
        if not there:
            found.append(None)
        elif width == 0 or (widths[first:stop] != width).any():
            found.append(np.zeros((0, 0), dtype=np.float32))
        else:
            found.append(values[inner[first] : inner[stop]].reshape(stop - first, width))
    return found
