"""Rows out of Parquet files, a little at a time, however the files are laid out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.batch._packages import arrow, parquet
from graph2vid.errors import FormatError

TABLE_ROWS = 4096
_TABLE_BYTES = 32 << 20
_BATCH_ROWS = 256


def open_rows(path: str | Path) -> Any:
    """Open a Parquet file so that what was read does not stay in memory."""
    pa = arrow()
    try:
        return parquet().ParquetFile(path, buffer_size=1 << 20, pre_buffer=False, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as error:
        raise FormatError(f"{path} is not a readable Parquet file: {_line(error)}") from error


def rows_at_once(meta: Any) -> int:
    """Return how many rows of a Parquet file may be held in memory together, by how large they are."""
    total = sum(meta.row_group(at).total_byte_size for at in range(meta.num_row_groups))
    return int(max(1, _TABLE_BYTES * max(meta.num_rows, 1) // max(total, 1)))


def group_edges(meta: Any) -> NDArray[np.int64]:
    """Return where the row groups of a Parquet file begin, and where the last ends, in rows."""
    return np.cumsum([0, *(meta.row_group(at).num_rows for at in range(meta.num_row_groups))])


def rows_of(holder: Any, places: NDArray[np.int64]) -> Any:
    """Return the rows of something of Arrow at places that rise; without a copy where they lie together."""
    first, count = int(places[0]), len(places)
    together = places[-1] + 1 - first == count
    return holder.slice(first, count) if together else holder.take(arrow().array(places))


def tables(path: Path) -> Iterator[Any]:
    """Yield the rows of a Parquet file in tables that are never large."""
    with open_rows(path) as file:
        size = min(TABLE_ROWS, rows_at_once(file.metadata))
        for batch in _batches(file, path, size, 0):
            yield arrow().Table.from_batches([batch])


class RowReader:
    """Reads rows of a Parquet file by their places; it is quick where the places rise.

    Parameters
    ----------
    path : path
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = open_rows(path)
        self._edges = group_edges(self._file.metadata)
        self._size = min(_BATCH_ROWS, rows_at_once(self._file.metadata))
        self._stream: Iterator[Any] = iter(())
        self._first = self._stop = -1
        self._held: Any = None

    def read(self, places: Sequence[int]) -> Any:
        """Return the table of the rows at some places, which rise."""
        pa = arrow()
        asked = np.asarray(places)
        group = int(np.searchsorted(self._edges, asked[0], side="right")) - 1
        if asked[0] < self._first or self._stop < self._edges[group]:
            self._stream = _batches(self._file, self._path, self._size, group)
            self._first = self._stop = int(self._edges[group])
            self._held = None
        pieces = []
        while len(asked):
            here = int(np.searchsorted(asked, self._stop))
            if here:
                pieces.append(rows_of(self._held, asked[:here] - self._first))
                asked = asked[here:]
            else:
                self._held = next(self._stream)
                self._first, self._stop = self._stop, self._stop + len(self._held)
        return pa.Table.from_batches(pieces)


def _batches(file: Any, path: str | Path, size: int, group: int) -> Iterator[Any]:
    """Yield the rows of a file from a row group on, ``size`` at a time."""
    pa = arrow()
    try:
        yield from file.iter_batches(batch_size=size, row_groups=range(group, file.num_row_groups), use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise FormatError(f"{path} is damaged: {_line(error)}") from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
