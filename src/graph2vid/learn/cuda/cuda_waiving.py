"""Which steps are waived as others begin, as the kernels with videos in packs read it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.learn.cuda.cuda_graphs import Ints, Layout, Waivers

LANES = 32  # of a warp
MOST_ROWS = 4  # arcs of a wide root that a lane takes, if it is not a large one
LARGE = 16  # arcs from which on a wide root takes a whole warp
MOST_INLINE = 4  # arcs that the lane of a state takes itself
MOST_STEPS = 56  # of a set; the bits above are the video's
ALL = np.uint64(2**64 - 1)  # of what is no arc
Masks = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Waiving:
    """The arcs of a pack of videos of one procedure whose steps may be left out.

    A state that something can be waived for is a root. Forward, the lane of its ideal takes its arcs, or, if there are
    too many, its warp: a job of some rows of 32 arcs, of which as many lanes of each row belong to one wide root as the
    job says. Backward, the lane of an ideal adds up what is passed along the arcs out of it on which something is waived;
    those of the lanes of a warp lie in rows, too.

    Attributes
    ----------
    layout : Layout
    videos : int
    inline : int
        The most arcs that the lane of a state takes itself; 1: all roots are wide, and any warp may do any job.
    """

    layout: Layout
    videos: int
    inline: int

    @property
    def _waivers(self) -> Waivers:
        assert self.layout.waivers is not None
        return self.layout.waivers

    @property
    def roots(self) -> int:
        """Roots of all videos."""
        return self.videos * self.layout.roots

    @cached_property
    def number(self) -> NDArray[np.int64]:
        """The number of each root; -1: a state is none: [videos, states]."""
        if self.inline == 1:
            return self.wide_number
        found, own = np.full((self.videos, self.layout.states), -1), self.layout.roots
        found[:, self._waivers.roots] = np.arange(self.roots).reshape(self.videos, own)
        return found

    @cached_property
    def lane(self) -> NDArray[np.int64]:
        """The ideals of all videos in the order of lanes forward; -1: none.

        They are sorted by their number of states, then by the arcs of these. Those with wide roots have warps of their
        own, since these have most to do.
        """
        counts = self._waivers.counts
        arcs = np.zeros((self.layout.width, self.layout.ideals), np.int64)
        for w, (first, last) in enumerate(zip(self.layout.place[:-1], self.layout.place[1:], strict=True)):
            arcs[w, : last - first] = counts[first:last]
        wide = np.tile((arcs > self.inline).any(axis=0) & (self.inline > 1), self.videos)
        keys = (*(-np.tile(row, self.videos) for row in arcs[::-1]), -np.tile(self.layout.count, self.videos), wide)
        found = np.lexsort(keys)
        narrow = len(found) - int(wide.sum())
        return np.insert(found, narrow, np.full(-narrow % LANES if wide.any() else 0, -1))

    @cached_property
    def _wide(self) -> list[tuple[int, int, int, NDArray[np.int64]]]:
        """The jobs: warp, lanes of a root, rows, and the wide roots as video * states + state, those of a warp together."""
        counts, states = self._waivers.counts, self.layout.states
        wide = np.flatnonzero(np.tile(counts, self.videos) > max(self.inline, 1))
        ideal = np.concatenate([np.arange(size) for size in np.diff(self.layout.place)])
        place = np.empty(self.videos * self.layout.ideals, np.int64)
        place[self.lane[self.lane >= 0]] = np.flatnonzero(self.lane >= 0)
        video, state = np.divmod(wide, states)
        warp = place[video * self.layout.ideals + ideal[state]] // LANES if self.inline > 1 else 0 * wide
        arcs = counts[state].astype(np.int64)
        lanes = np.where(arcs > LARGE, LANES, 1)
        while (small := (arcs > MOST_ROWS * lanes) & (lanes < LANES)).any():
            lanes[small] *= 2
        found = []
        for own, group in sorted({*zip(warp.tolist(), lanes.tolist(), strict=True)}):
            members = np.flatnonzero((warp == own) & (lanes == group))
            members = members[np.argsort(-arcs[members], kind="stable")]
            for first in range(0, len(members), LANES // group):
                part = members[first : first + LANES // group]
                found.append((own, group, -(-int(arcs[part].max()) // group), wide[part]))
        return sorted(found, key=lambda job: (job[0], -job[2] - 2 * (job[1] > 1)))

    @property
    def wides(self) -> int:
        """Wide roots of all videos."""
        return sum(len(roots) for *_, roots in self._wide)

    @property
    def jobs(self) -> int:
        """Their jobs."""
        return len(self._wide)

    @cached_property
    def rows(self) -> int:
        """Rows of arcs of all jobs."""
        return sum(rows for _, _, rows, _ in self._wide)

    @cached_property
    def _waives(self) -> NDArray[np.bool_]:
        """Which arcs are taken by what they come from backward: where something is waived, or that of all roots."""
        counts = self._waivers.counts
        waived: NDArray[np.bool_] = self._waivers.sets[self._waivers.waived].any(axis=1)
        return np.repeat(counts > 1, counts) if self.inline == 1 else waived

    @cached_property
    def back_region(self) -> NDArray[np.int64]:
        """A number for each ideal of each video, by which lanes are sorted backward: states first, then arcs."""
        key = np.diff(self.layout.out_start) * (self._out_counts.max() + 1) + self._out_counts
        return np.unique(-np.tile(key, self.videos), return_inverse=True)[1].reshape(-1)

    @cached_property
    def _out_counts(self) -> NDArray[np.int64]:
        """Such arcs out of each ideal: [ideals]."""
        return np.bincount(self._waivers.origin[self._waives], minlength=self.layout.ideals)

    @cached_property
    def back_rows(self) -> Ints:
        """Where the rows of each warp begin backward: [warps + 1]."""
        counts = np.tile(self._out_counts, self.videos)[np.argsort(self.back_region, kind="stable")]
        counts = np.append(counts, np.zeros(-len(counts) % LANES, np.int64)).reshape(-1, LANES).max(axis=1)
        return np.cumsum([0, *(-(-counts // 2) * 2)]).astype(np.int32)

    def forward(self, told: NDArray[np.integer], states: NDArray[np.integer]) -> dict[str, Any]:
        """Return what lanes and jobs read forward.

        Parameters
        ----------
        told : [videos * ideals]
            Where ideals are told.
        states : [width, lanes]
            The states of each lane as video * states + state; -1: there is none.
        """
        waivers, ideals, none = self._waivers, self.layout.ideals, self.videos * self.layout.ideals
        sets = waivers.sets[:, 0]
        more = max(self.inline - 1, 0)
        arc = np.full((states.shape[0], more, states.shape[1]), none, np.int32)
        arc_waived = np.full(arc.shape, ALL)
        video, state = np.divmod(states, self.layout.states)
        inline = (states >= 0) & (waivers.counts[state] <= self.inline)
        for a in range(more):
            has = inline & (waivers.counts[state] > a + 1)
            which = waivers.start[state[has]] + a + 1
            arc[:, a][has] = told[video[has] * ideals + waivers.origin[which]]
            arc_waived[:, a][has] = sets[waivers.waived[which]] | _of_video(video[has])
        job = np.zeros((self.jobs, 4), np.int32)
        wide_arc, waived = np.full((self.rows, LANES), none, np.int32), np.full((self.rows, LANES), ALL)
        row = number = 0
        for at, (_, group, rows, roots) in enumerate(self._wide):
            job[at] = row, rows, group | len(roots) << 8, number
            for n, which in enumerate(roots.tolist()):
                of, root = divmod(which, self.layout.states)
                arcs = np.arange(waivers.start[root], waivers.start[root + 1])
                place = np.arange(len(arcs))
                where = (row + place // group, n * group + place % group)
                wide_arc[where] = told[of * ideals + waivers.origin[arcs]]
                waived[where] = sets[waivers.waived[arcs]] | _of_video(of)
            row, number = row + rows, number + len(roots)
        warps = -(-states.shape[1] // LANES)
        starts = np.searchsorted([warp for warp, *_ in self._wide], np.arange(warps + 1)).astype(np.int32)
        found = {"arc": arc, "arc_waived": arc_waived, "wide_arc": wide_arc, "wide_waived": waived}
        return found | {"job": job, "job_start": starts}

    @property
    def wide_number(self) -> NDArray[np.int64]:
        """The number of each wide root in the order of jobs; -1: a state is none: [videos, states]."""
        found = np.full(self.videos * self.layout.states, -1)
        found[np.concatenate([np.empty(0, np.int64), *(roots for *_, roots in self._wide)])] = np.arange(self.wides)
        return found.reshape(self.videos, -1)

    def backward(self, back_lane: NDArray[np.integer]) -> dict[str, Any]:
        """Return of each such arc what it waives and its root, by the lanes that they come from."""
        waivers, ideals = self._waivers, self.layout.ideals
        rows = int(self.back_rows[-1])
        arc, waived = np.full((rows, LANES), self.roots, np.int32), np.full((rows, LANES), ALL)
        root_of = np.repeat(self.number, waivers.counts, axis=1)  # of each arc
        sets = waivers.sets[:, 0]
        for lane, which in enumerate(back_lane.tolist()):
            video, ideal = divmod(which, ideals)
            out = waivers.out[waivers.out_start[ideal] : waivers.out_start[ideal + 1]]
            out = out[self._waives[out]]
            where = (self.back_rows[lane // LANES] + np.arange(len(out)), lane % LANES)
            arc[where] = root_of[video, out]
            waived[where] = sets[waivers.waived[out]] | _of_video(video)
        return {"back_waived": waived, "back_arc": arc, "back_rows": self.back_rows}

    @property
    def missing(self) -> Masks:
        """What is waived by ending with each ideal: [videos * ideals]."""
        return np.tile(self._waivers.sets[self._waivers.ends, 0], self.videos)


def _of_video(video: Any) -> Any:
    return np.asarray(video).astype(np.uint64) << np.uint64(MOST_STEPS)


@lru_cache(maxsize=256)
def waiving_of(layout: Layout, videos: int, inline: int) -> Waiving:
    """Return the arcs of so many videos of a procedure; made once."""
    return Waiving(layout, videos, inline)


def inline_arcs(layout: Layout) -> int:
    """Return the most arcs that the lane of a state should take itself."""
    return 1 if layout.waivers is None else min(MOST_INLINE, max(int(layout.waivers.counts.max()), 2))
