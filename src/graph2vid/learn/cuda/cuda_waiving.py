"""Which steps are waived as others begin, as the kernels with states in shared memory read it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.learn.cuda.cuda_graphs import Ints, Layout, Waivers
from graph2vid.learn.cuda.cuda_nodes import LANES, rows_of

AHEAD = 4  # arcs that a lane reads before it uses the first
MOST_ROWS = 32  # arcs of a root that a lane takes, if it is not a large one
MOST_WARPS = 24  # of a block forward
JOB_ROWS = 4  # take as long as what a job does beside its own
MOST_STEPS = 56  # of a set; the bits above are the video's
ALL = np.uint64(2**64 - 1)  # of what is no arc


@dataclass(frozen=True, eq=False)
class Waiving:
    """The arcs of a procedure whose steps may be left out.

    A state that something can be waived for is a root. Warps take roots by jobs, of some rows of 32 arcs, of which as
    many lanes of each row belong to one root as the job says; jobs are dealt so that all warps have as much to do.
    Backward, the lane of an ideal adds up what is passed along the arcs of roots out of it; those of the lanes of a
    warp lie in rows, too.

    Attributes
    ----------
    layout : Layout
    """

    layout: Layout

    @property
    def _waivers(self) -> Waivers:
        assert self.layout.waivers is not None
        return self.layout.waivers

    @property
    def roots(self) -> int:
        """The states that something can be waived for."""
        return self.layout.roots

    @cached_property
    def number(self) -> NDArray[np.int64]:
        """The number of each root; -1: a state is none: [states]."""
        found = np.full(self.layout.states, -1)
        found[[root for jobs in self._jobs for *_, roots in jobs for root in roots]] = np.arange(self.roots)
        return found

    @cached_property
    def _jobs(self) -> list[list[tuple[int, int, list[int]]]]:
        """Rows, lanes of a root, and roots of each job of each warp: the largest goes to who has least to do."""
        roots = self._waivers.roots.astype(np.int64)
        arcs = self._waivers.counts[roots].astype(np.int64)
        lanes = np.ones_like(arcs)
        while (small := (arcs > MOST_ROWS * lanes) & (lanes < LANES)).any():
            lanes[small] *= 2
        jobs = []
        for group in np.unique(lanes).tolist():
            members = np.flatnonzero(lanes == group)
            members = members[np.argsort(-arcs[members], kind="stable")]
            for first in range(0, len(members), LANES // group):
                part = members[first : first + LANES // group]
                rows = -(-int(arcs[part].max()) // (group * AHEAD)) * AHEAD
                jobs.append((rows, group, roots[part].tolist()))
        busy = [0] * min(-(-self.layout.ideals // LANES), MOST_WARPS)
        dealt: list[list[tuple[int, int, list[int]]]] = [[] for _ in busy]
        for job in sorted(jobs, reverse=True):
            warp = busy.index(min(busy))
            dealt[warp].append(job)
            busy[warp] += job[0] + JOB_ROWS
        return dealt

    @cached_property
    def rows(self) -> int:
        """Rows of arcs of all jobs."""
        return sum(rows for jobs in self._jobs for rows, *_ in jobs)

    @cached_property
    def _of_roots(self) -> NDArray[np.bool_]:
        """Which arcs are those of roots."""
        return np.repeat(self._waivers.counts > 1, self._waivers.counts)

    @cached_property
    def back_region(self) -> NDArray[np.int64]:
        """A number for each ideal, by which lanes are sorted backward: states first, then arcs."""
        key = np.diff(self.layout.out_start) * (self._out_counts.max() + 1) + self._out_counts
        return np.unique(-key, return_inverse=True)[1].reshape(-1)

    @cached_property
    def _out_counts(self) -> NDArray[np.int64]:
        """Arcs of roots out of each ideal: [ideals]."""
        return np.bincount(self._waivers.origin[self._of_roots], minlength=self.layout.ideals)

    @cached_property
    def back_rows(self) -> Ints:
        """Where the rows of each warp begin backward: [warps + 1]."""
        return rows_of(self._out_counts[np.argsort(self.back_region, kind="stable")])

    def forward(self, told: NDArray[np.integer]) -> dict[str, Any]:
        """Return what jobs read forward; ``told`` [ideals] is where ideals are told."""
        waivers, none = self._waivers, self.layout.ideals
        sets = waivers.sets[:, 0]
        wide_arc, waived = np.full((self.rows, LANES), none, np.int32), np.full((self.rows, LANES), ALL)
        found: list[tuple[int, int, int, int]] = []
        row = number = 0
        for rows, group, roots in chain.from_iterable(self._jobs):
            found.append((row, rows, group.bit_length() - 1 | len(roots) << 8, number))
            for n, root in enumerate(roots):
                arcs = np.arange(waivers.start[root], waivers.start[root + 1])
                place = np.arange(len(arcs))
                where = (row + place // group, n * group + place % group)
                wide_arc[where] = told[waivers.origin[arcs]]
                waived[where] = sets[waivers.waived[arcs]]
            row, number = row + rows, number + len(roots)
        # A block may have more warps than that, of other procedures.
        starts = np.cumsum([0, *map(len, self._jobs)])
        starts = np.append(starts, np.full(MOST_WARPS - len(self._jobs), starts[-1])).astype(np.int32)
        sizes = np.array([self.roots, self.rows, self.back_rows[-1]], np.int32)
        job = np.array(found, np.int32).reshape(-1, 4)
        return {"wide_arc": wide_arc, "wide_waived": waived, "job": job, "job_start": starts, "sizes": sizes}

    def backward(self, back_lane: NDArray[np.integer]) -> dict[str, Any]:
        """Return of each arc of a root what it waives and its root, by the lanes that they come from."""
        waivers, rows = self._waivers, int(self.back_rows[-1])
        arc, waived = np.zeros((rows, LANES), np.int32), np.full((rows, LANES), ALL)
        root_of = np.repeat(self.number, waivers.counts)  # of each arc
        sets = waivers.sets[:, 0]
        for lane, ideal in enumerate(back_lane.tolist()):
            out = waivers.out[waivers.out_start[ideal] : waivers.out_start[ideal + 1]]
            out = out[self._of_roots[out]]
            where = (self.back_rows[lane // LANES] + np.arange(len(out)), lane % LANES)
            arc[where] = root_of[out]
            waived[where] = sets[waivers.waived[out]]
        return {"back_waived": waived, "back_arc": arc, "back_rows": self.back_rows}


@lru_cache(maxsize=256)
def waiving_of(layout: Layout) -> Waiving:
    """Return the arcs of a procedure; made once."""
    return Waiving(layout)
