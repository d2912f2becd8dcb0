"""What an engine is to do, and which rows are worked on together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from graph2vid.scale._packages import compute
from graph2vid.scale.manifest import tables
from graph2vid.scale.rows import KINDS, Kind
from graph2vid.scale.settings import Context, RunOptions

BATCH_ROWS: dict[Kind, int] = {"arrays": 256, "captions": 16, "speech": 1}
"""How many videos are worked on together: enough to fill the lanes, few enough to lose little."""


@dataclass(frozen=True)
class Job:
    """What an engine is to do.

    Attributes
    ----------
    rows : Path
        A Parquet file with the rows of a checked manifest.
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
    done: Any
    attempt: int
    kinds: dict[Kind, int]
    context: Context
    options: RunOptions


def kinds_of(table: Any) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    """Return where the evidence of each row comes from, as a place in ``KINDS``."""
    pc = compute()
    found = np.full(len(table), KINDS.index("arrays"), dtype=np.int8)
    for name, kind in (("video", "speech"), ("captions", "captions")):  # captions of a video win
        if name in table.column_names:
            column = table.column(name)
            there = pc.fill_null(pc.not_equal(column, ""), False).to_numpy(zero_copy_only=False)
            found[there.astype(bool)] = KINDS.index(kind)
    return found


def without(table: Any, done: Any) -> Any:
    """Return the rows that are not done."""
    pc = compute()
    return table.filter(pc.invert(pc.is_in(table.column("id"), value_set=done))) if len(done) else table


def batches(job: Job) -> Iterator[Any]:
    """Cut the rows into batches of one kind, in their order; which rows share a batch depends on the rows alone."""
    for table in tables(job.rows):
        kinds = kinds_of(table)
        edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(table)]
        for first, stop in pairwise(edges):
            size = BATCH_ROWS[KINDS[kinds[first]]] if stop > first else 1
            for start in range(first, stop, size):
                batch = without(table.slice(start, min(size, stop - start)), job.done)
                if len(batch):
                    yield batch
