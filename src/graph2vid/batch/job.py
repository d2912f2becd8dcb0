"""What an engine is to do, and which rows are worked on together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.batch._packages import arrow, compute
from graph2vid.batch.parquet import TABLE_ROWS, group_edges, open_rows, rows_at_once, rows_of
from graph2vid.batch.rows import FILES, KINDS, Kind, texts
from graph2vid.batch.settings import Context, RunOptions

BATCH_ROWS: dict[Kind, int] = {"arrays": 256, "captions": 16, "speech": 1}
"""How many videos are worked on together: enough to fill the lanes, few enough to lose little."""

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
    ids : Arrow array of str [B]
    """

    path: Path
    places: NDArray[np.int64]
    ids: Any

    def __len__(self) -> int:
        return len(self.places)

    def slice(self, start: int, count: int) -> Batch:
        """Return some of them."""
        return Batch(self.path, self.places[start : start + count], self.ids.slice(start, count))


def kinds_of(table: Any) -> NDArray[np.int8]:
    """Return where the evidence of each row comes from, as a place in ``KINDS``."""
    pc = compute()
    found = np.full(len(table), KINDS.index("arrays"), dtype=np.int8)
    for name, kind in (("video", "speech"), ("captions", "captions")):  # captions of a video win
        if name in table.column_names:
            column = texts(table, name)
            there = pc.fill_null(pc.not_equal(column, ""), False).to_numpy(zero_copy_only=False)
            found[there.astype(bool)] = KINDS.index(kind)
    return found


def without(table: Any, done: Any) -> Any:
    """Return the rows that are not done."""
    pc = compute()
    return table.filter(pc.invert(pc.is_in(texts(table, "id"), value_set=done))) if len(done) else table


def stretches(job: Job, workers: int) -> Iterator[list[Batch]]:
    """Cut the rows into batches of one kind, in their order; batches of a stretch lie together in the file.

    Which rows share a batch changes nothing in their results.
    """
    with open_rows(job.rows) as file:
        names = [name for name in ("id", *FILES) if name in file.schema_arrow.names]
        table = file.read(columns=names)
        ids = texts(table, "id")
        edges = group_edges(file.metadata)
        holds_matrices = any(arrow().types.is_nested(field.type) for field in file.schema_arrow)
        most = rows_at_once(file.metadata)
    kinds = kinds_of(table)
    left = np.ones(len(table), dtype=bool)
    if len(job.done):
        left = ~compute().is_in(ids, value_set=job.done).to_numpy(zero_copy_only=False)
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
                yield [Batch(job.rows, chosen, rows_of(ids, chosen)) for chosen in batches]
            first = end
