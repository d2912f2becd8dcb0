"""Which steps are waived as others begin, as the kernels with states in shared memory read it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.learn.cuda.cuda_graphs import Ints, Layout, Waivers
from graph2vid.learn.cuda.cuda_nodes import LANES, rows_of

MOST_ROWS = 4  # arcs of a root that a lane takes, if it is not a large one
MOST_STEPS = 56  # of a set; the bits above are the video's
ALL = np.uint64(2**64 - 1)  # of what is no arc


@dataclass(frozen=True, eq=False)
class Waiving:
    """The arcs of a procedure whose steps may be left out.

    A state that something can be waived for is a root. Warps take roots by jobs, of some rows of 32 arcs, of which as
    many lanes of each row belong to one root as the job says. Backward, the lane of an ideal adds up what is passed
    along the arcs of roots out of it; those of the lanes of a warp lie in rows, too.

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
        found[[int(root) for *_, roots in self._jobs for root in roots]] = np.arange(self.roots)
        return found

    @cached_property
    def _jobs(self) -> list[tuple[int, int, NDArray[np.int64]]]:
        """Lanes of a root, rows, and roots of each job, the largest first."""
        roots = self._waivers.roots.astype(np.int64)
        arcs = self._waivers.counts[roots].astype(np.int64)
        lanes = np.ones_like(arcs)
        while (small := (arcs > MOST_ROWS * lanes) & (lanes < LANES)).any():
            lanes[small] *= 2
        found = []
        for group in np.unique(lanes).tolist():
            members = np.flatnonzero(lanes == group)
            members = members[np.argsort(-arcs[members], kind="stable")]
            for first in range(0, len(members), LANES // group):
                part = members[first : first + LANES // group]
                found.append((group, -(-int(arcs[part].max()) // group), roots[part]))
        return sorted(found, key=lambda job: -job[1] - 2 * (job[0] > 1))

    @cached_property
    def rows(self) -> int:
        """Rows of arcs of all jobs."""
        return sum(rows for _, rows, _ in self._jobs)

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
        job = np.zeros((len(self._jobs), 4), np.int32)
        wide_arc, waived = np.full((self.rows, LANES), none, np.int32), np.full((self.rows, LANES), ALL)
        row = number = 0
        for at, (group, rows, roots) in enumerate(self._jobs):
            job[at] = row, rows, group | len(roots) << 8, number
            for n, root in enumerate(roots.tolist()):
                arcs = np.arange(waivers.start[root], waivers.start[root + 1])
                place = np.arange(len(arcs))
                where = (row + place // group, n * group + place % group)
                wide_arc[where] = told[waivers.origin[arcs]]
                waived[where] = sets[waivers.waived[arcs]]
            row, number = row + rows, number + len(roots)
        sizes = np.array([self.roots, len(self._jobs), self.rows, self.back_rows[-1]], np.int32)
        return {"wide_arc": wide_arc, "wide_waived": waived, "job": job, "sizes": sizes}

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
