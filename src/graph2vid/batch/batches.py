"""What an engine is to do, which rows are worked on together, and how they are read out of Parquet files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from graph2vid.batch.columns import FILES, not_empty, numbers, texts, to_numpy
from graph2vid.batch.results import failures, from_bytes, to_bytes
from graph2vid.batch.rows import decode, row_digests
from graph2vid.batch.settings import KINDS, Context, Kind, RunOptions
from graph2vid.errors import FormatError

BATCH_ROWS: dict[Kind, int] = {"arrays": 256, "captions": 16, "speech": 1}
"""How many videos are worked on together: enough to fill the lanes, few enough to lose little."""

TABLE_ROWS = 4096
_TABLE_BYTES = 32 << 20
_BATCH_ROWS = 256
_STRETCHES = 16  # for each worker: enough that all have work until the end


@dataclass(frozen=True)
class Job:
    """What an engine is to do.

    Attributes
    ----------
    rows : Path
        A Parquet file with the rows of a checked manifest.
    wanted : Arrow table
        Id and digest of the rows of the manifest; see :func:`graph2vid.batch.parts.is_wanted`.
    done : Arrow array of str
        Ids that are left out.
    attempt : int
        What this run is to rows that were tried before: a higher number.
    kinds : dict
        How many rows there are of each kind.
    context : Context
    options : RunOptions
    """

    rows: Path
    wanted: Any
    done: Any
    attempt: int
    kinds: dict[Kind, int]
    context: Context
    options: RunOptions


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows that are worked on together. The worker reads them itself.

    Attributes
    ----------
    path : Path
        A Parquet file of rows.
    places : int64 [B]
        Of the rows in it, rising.
    """

    path: Path
    places: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.places)

    def slice(self, start: int, count: int) -> Batch:
        """Return some of them."""
        return Batch(self.path, self.places[start : start + count])


def stretches(job: Job, workers: int) -> Iterator[list[Batch]]:
    """Cut the rows into batches of one kind, in their order; batches of a stretch lie together in the file.

    Which rows share a batch changes nothing in their results.
    """
    with open_rows(job.rows) as file:
        names = [name for name in ("id", *FILES) if name in file.schema_arrow.names]
        table = file.read(columns=names)
        edges = group_edges(file.metadata)
        holds_matrices = any(pa.types.is_nested(field.type) for field in file.schema_arrow)
        most = rows_at_once(file.metadata)
    kinds = np.full(len(table), KINDS.index("arrays"), dtype=np.int8)
    for name, kind in (("video", "speech"), ("captions", "captions")):  # captions of a video win
        if name in names:
            kinds[to_numpy(not_empty(texts(table, name)))] = KINDS.index(kind)
    left = ~to_numpy(pc.is_in(texts(table, "id"), value_set=job.done))
    shared = min(max(len(table) // (_STRETCHES * workers), 1), TABLE_ROWS)
    for first, stop in pairwise([0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(table)]):
        size = min(BATCH_ROWS[KINDS[kinds[first]]], most)
        # Whoever reads a matrix has to read all before it in its row group: what lies together goes to one worker.
        length = max(shared, size) if holds_matrices else size
        while first < stop:
            end = min(first + length, stop)
            edge = int(edges[np.searchsorted(edges, end, side="right") - 1])
            end = edge if holds_matrices and edge > first else end
            places = np.flatnonzero(left[first:end]) + first
            batches = [places[at : at + size] for at in range(0, len(places), size)]
            if batches:
                yield [Batch(job.rows, chosen) for chosen in batches]
            first = end


@dataclass(frozen=True, slots=True, eq=False)
class RowsTask:
    """Some rows that a worker is to take through the stages: a :class:`graph2vid.batch.workers.Task`.

    The answer is a table of results. A row that takes too long, or whose worker dies again and again, fails with that
    reason; the other rows of its batch are worked on alone.
    """

    rows: Any
    attempt: int
    context: Context

    def message(self) -> bytes:
        """Return what the worker is sent: a :class:`Batch` by its places, a table as a whole."""
        told: dict[str, Any] = {"attempt": self.attempt}
        if isinstance(self.rows, Batch):
            return json.dumps(told | {"path": str(self.rows.path), "places": self.rows.places.tolist()}).encode()
        return json.dumps(told).encode() + b"\n" + to_bytes(self.rows)

    def answer(self, data: bytes) -> Any:
        """Return the table that the worker made."""
        return from_bytes(data)

    def split(self) -> list[RowsTask]:
        """Return a task for each row."""
        return [replace(self, rows=self.rows.slice(at, 1)) for at in range(len(self.rows))]

    def give_up(self, reason: str) -> Any:
        """Return the failure of the row."""
        rows = self.rows
        table = RowReader(str(rows.path)).read(rows.places.tolist()) if isinstance(rows, Batch) else rows
        (row,) = decode(table, self.context)
        return failures([row.id], [reason], self.attempt, row_digests([row], self.context))


# -- rows out of Parquet files ---------------------------------------------------------------------------------


def open_rows(path: str | Path) -> Any:
    """Open a Parquet file so that what was read does not stay in memory."""
    try:
        return pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as error:
        raise FormatError(f"{path} is not a readable Parquet file: {_line(error)}") from error


def rows_at_once(meta: Any) -> int:
    """Return how many rows of a Parquet file may be held in memory together, by how large they are."""
    total = sum(meta.row_group(at).total_byte_size for at in range(meta.num_row_groups))
    return int(max(1, _TABLE_BYTES * max(meta.num_rows, 1) // max(total, 1)))


def group_edges(meta: Any) -> NDArray[np.int64]:
    """Return where the row groups of a Parquet file begin, and where the last ends, in rows."""
    return np.cumsum([0, *(meta.row_group(at).num_rows for at in range(meta.num_row_groups))])


def tables(path: Path) -> Iterator[Any]:
    """Yield the rows of a Parquet file in tables that are never large."""
    with open_rows(path) as file:
        size = min(TABLE_ROWS, rows_at_once(file.metadata))
        for batch in _batches(file, path, size, 0):
            yield pa.Table.from_batches([batch])


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
                chosen = asked[:here] - self._first
                together = chosen[-1] - chosen[0] < here  # and are not copied
                pieces.append(self._held.slice(chosen[0], here) if together else self._held.take(numbers(chosen)))
                asked = asked[here:]
            else:
                self._held = next(self._stream)
                self._first, self._stop = self._stop, self._stop + len(self._held)
        return pa.Table.from_batches(pieces)


def _batches(file: Any, path: str | Path, size: int, group: int) -> Iterator[Any]:
    """Yield the rows of a file from a row group on, ``size`` at a time."""
    try:
        yield from file.iter_batches(batch_size=size, row_groups=range(group, file.num_row_groups), use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise FormatError(f"{path} is damaged: {_line(error)}") from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
