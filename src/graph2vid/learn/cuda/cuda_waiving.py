"""Which steps are waived as others begin, as the kernels with videos in packs read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.learn.cuda.cuda_graphs import Ints, Layout, Waivers

LANES = 32  # of a warp
MOST_ROWS = 4  # arcs of a wide root that a lane takes, if it is not a large one
LARGE = 16  # arcs from which on a wide root takes a whole warp, or a part of it with others
MOST_LINKS = 8  # of a path
MOST_STEPS = 56  # of a set; the bits above are the video's
ALL = np.uint64(2**64 - 1)  # of what is no arc


@dataclass(frozen=True)
class Path:
    """A chain of ideals, each with one step more than the one before, and the roots that are entered from them.

    Attributes
    ----------
    arcs : tuple of int
        One arc from each ideal, the smallest first, all into one root.
    roots : tuple of int
        The root that is entered from all ideals up to each, as a state; -1: none.
    """

    arcs: tuple[int, ...]
    roots: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Waiving:
    """The arcs of a pack of videos of one procedure whose steps may be left out.

    A state that something can be waived for is a root. Where what can be waived is a chain of steps, the ideals it is
    entered from are a path, and the minimum over the ideals up to each of a path takes one operation each: a lane
    follows the path. Other roots are wide: a warp takes them by jobs, of some rows of 32 arcs, of which as many lanes
    of each row belong to one root as the job says. Backward, the lane of an ideal adds up what is passed along the arcs
    of roots out of it; those of the lanes of a warp lie in rows, too.

    Attributes
    ----------
    layout : Layout
    videos : int
    paths : bool
        Whether there are paths; else all roots are wide, and any warp does any job.
    """

    layout: Layout
    videos: int
    paths: bool

    @property
    def _waivers(self) -> Waivers:
        assert self.layout.waivers is not None
        return self.layout.waivers

    @property
    def roots(self) -> int:
        """Roots of all videos."""
        return self.videos * self.layout.roots

    @cached_property
    def _own_paths(self) -> list[Path]:
        """The paths of one video, the longest first; every root whose arcs are a chain is on one of them."""
        waivers = self._waivers
        sets = [int(number) for number in waivers.sets[:, 0]]
        chains: list[tuple[int, list[int], list[int]]] = []  # root, its arcs from the smallest ideal on, and their sets
        for root in waivers.roots.tolist() if self.paths else ():
            arcs = sorted(
                range(waivers.start[root], waivers.start[root + 1]),
                key=lambda arc: -sets[waivers.waived[arc]].bit_count(),
            )
            waived = [sets[waivers.waived[arc]] for arc in arcs]
            if len(arcs) <= MOST_LINKS and all(
                more.bit_count() == less.bit_count() + 1 and less & ~more == 0 for more, less in pairwise(waived)
            ):
                chains.append((root, arcs, waived))
        # By the ideal that roots are entered from, and what can be waived there.
        waiting: dict[tuple[int, int], list[int]] = {}
        for root, arcs, waived in chains:
            waiting.setdefault((int(waivers.origin[arcs[-1]]), waived[0]), []).append(root)
        found = []
        for root, arcs, waived in sorted(chains, key=lambda chain: -len(chain[1])):
            if root not in waiting[int(waivers.origin[arcs[-1]]), waived[0]]:
                continue  # another path has it
            served = [-1]
            for arc, own in zip(arcs[1:], waived[1:], strict=True):
                here = waiting.get((int(waivers.origin[arc]), waived[0] & ~own), [])
                mine = root if arc == arcs[-1] else here[0] if here else -1
                served.append(mine)
                if mine >= 0:
                    here.remove(mine)
            found.append(Path(tuple(arcs), tuple(served)))
        return sorted(found, key=lambda path: -len(path.arcs))

    @property
    def chains(self) -> int:
        """Roots on paths, of all videos; they are numbered first."""
        return self.videos * sum(root >= 0 for path in self._own_paths for root in path.roots)

    @cached_property
    def _followed(self) -> list[list[tuple[int, Path]]]:
        """What the lanes of a warp follow at a time: video and path."""
        paths = [(video, path) for path in self._own_paths for video in range(self.videos)]
        return [paths[first : first + LANES] for first in range(0, len(paths), LANES)]

    @staticmethod
    def _links(followed: Sequence[tuple[int, Path]]) -> int:
        return max(len(path.arcs) for _, path in followed)

    @property
    def link_rows(self) -> int:
        """Rows of links of all paths."""
        return sum(map(self._links, self._followed))

    @cached_property
    def number(self) -> NDArray[np.int64]:
        """The number of each root, those on paths first; -1: a state is none: [videos, states]."""
        found, states = np.full(self.videos * self.layout.states, -1), self.layout.states
        order = [
            video * states + root
            for followed in self._followed
            for at in range(MOST_LINKS)
            for video, path in followed
            for root in path.roots[at : at + 1]
            if root >= 0
        ]
        order += [int(root) for *_, roots in self._wide for root in roots]
        found[order] = np.arange(self.roots)
        return found.reshape(self.videos, states)

    @cached_property
    def _is_wide(self) -> NDArray[np.bool_]:
        """Whether a state is a wide root: [states]."""
        wide: NDArray[np.bool_] = self._waivers.counts > 1
        wide[[root for path in self._own_paths for root in path.roots if root >= 0]] = False
        return wide

    @cached_property
    def lane(self) -> NDArray[np.int64]:
        """The ideals of all videos in the order of lanes forward, those of most states first; -1: none.

        Those with wide roots have warps of their own, which have most to do.
        """
        ideal = np.concatenate([np.arange(size) for size in np.diff(self.layout.place)])
        wide = np.tile(np.bincount(ideal, self._is_wide, self.layout.ideals) * self.paths > 0, self.videos)
        found = np.lexsort((-np.tile(self.layout.count, self.videos), wide))
        narrow = len(found) - int(wide.sum())
        return np.insert(found, narrow, np.full(-narrow % LANES if wide.any() else 0, -1))

    @cached_property
    def _wide(self) -> list[tuple[int, int, int, NDArray[np.int64]]]:
        """The jobs, those of a warp together: warp, lanes of a root, rows, and the roots as video * states + state."""
        counts, states = self._waivers.counts, self.layout.states
        wide = np.flatnonzero(np.tile(self._is_wide, self.videos))
        ideal = np.concatenate([np.arange(size) for size in np.diff(self.layout.place)])
        place = np.empty(self.videos * self.layout.ideals, np.int64)
        place[self.lane[self.lane >= 0]] = np.flatnonzero(self.lane >= 0)
        video, state = np.divmod(wide, states)
        warp = place[video * self.layout.ideals + ideal[state]] // LANES if self.paths else 0 * wide
        arcs = counts[state].astype(np.int64)
        lanes = np.ones_like(arcs)
        if self.paths:  # as many as make one job of all that a warp has
            members = np.bincount(warp, arcs > LARGE)[warp].clip(1, LANES).astype(np.int64)
            lanes[arcs > LARGE] = 2 ** np.log2(LANES // members).astype(np.int64)[arcs > LARGE]
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
    def jobs(self) -> int:
        """Jobs of wide roots."""
        return len(self._wide)

    @cached_property
    def rows(self) -> int:
        """Rows of arcs of all jobs."""
        return sum(rows for _, _, rows, _ in self._wide)

    @cached_property
    def _of_roots(self) -> NDArray[np.bool_]:
        """Which arcs are those of roots."""
        return np.repeat(self._waivers.counts > 1, self._waivers.counts)

    @cached_property
    def back_region(self) -> NDArray[np.int64]:
        """A number for each ideal of each video, by which lanes are sorted backward: states first, then arcs."""
        key = np.diff(self.layout.out_start) * (self._out_counts.max() + 1) + self._out_counts
        return np.unique(-np.tile(key, self.videos), return_inverse=True)[1].reshape(-1)

    @cached_property
    def _out_counts(self) -> NDArray[np.int64]:
        """Arcs of roots out of each ideal: [ideals]."""
        return np.bincount(self._waivers.origin[self._of_roots], minlength=self.layout.ideals)

    @cached_property
    def back_rows(self) -> Ints:
        """Where the rows of each warp begin backward: [warps + 1]."""
        counts = np.tile(self._out_counts, self.videos)[np.argsort(self.back_region, kind="stable")]
        counts = np.append(counts, np.zeros(-len(counts) % LANES, np.int64)).reshape(-1, LANES).max(axis=1)
        return np.cumsum([0, *counts]).astype(np.int32)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of ``Pack``: roots, those on paths, warps' worth of paths, jobs, rows of arcs, also backward."""
        return (self.roots, self.chains, len(self._followed), self.jobs, self.rows, int(self.back_rows[-1]))

    def forward(self, told: NDArray[np.integer]) -> dict[str, Any]:
        """Return what lanes and jobs read forward; ``told`` [videos * ideals] is where ideals are told."""
        waivers, ideals, none = self._waivers, self.layout.ideals, self.videos * self.layout.ideals
        sets = waivers.sets[:, 0]
        link = np.full((self.link_rows, LANES, 2), (none, -1), np.int32)  # from where, and to which root
        link_waived = np.full((self.link_rows, LANES), ALL)
        path = np.zeros((len(self._followed), 2), np.int32)
        row = 0
        for at, followed in enumerate(self._followed):
            links = self._links(followed)
            path[at] = row, links
            for lane, (video, own) in enumerate(followed):
                begin = row + links - len(own.arcs)
                for n, (arc, root) in enumerate(zip(own.arcs, own.roots, strict=True)):
                    link[begin + n, lane, 0] = told[video * ideals + waivers.origin[arc]]
                    if root >= 0:
                        link[begin + n, lane, 1] = self.number[video, root]
                    if n:
                        step = sets[waivers.waived[own.arcs[n - 1]]] & ~sets[waivers.waived[arc]]
                        link_waived[begin + n, lane] = step | _of_video(video)
            row += links
        job = np.zeros((self.jobs, 4), np.int32)
        wide_arc, waived = np.full((self.rows, LANES), none, np.int32), np.full((self.rows, LANES), ALL)
        row, number = 0, self.chains
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
        warps = np.arange(-(-len(self.lane) // LANES) + 1)
        starts = np.searchsorted([warp for warp, *_ in self._wide], warps).astype(np.int32)
        found = {"path_link": link, "link_waived": link_waived, "path": path}
        return found | {"wide_arc": wide_arc, "wide_waived": waived, "job": job, "job_start": starts}

    def backward(self, back_lane: NDArray[np.integer]) -> dict[str, Any]:
        """Return of each arc of a root what it waives and its root, by the lanes that they come from."""
        waivers, ideals = self._waivers, self.layout.ideals
        rows = int(self.back_rows[-1])
        arc, waived = np.zeros((rows, LANES), np.int32), np.full((rows, LANES), ALL)
        root_of = np.repeat(self.number, waivers.counts, axis=1)  # of each arc
        sets = waivers.sets[:, 0]
        for lane, which in enumerate(back_lane.tolist()):
            video, ideal = divmod(which, ideals)
            out = waivers.out[waivers.out_start[ideal] : waivers.out_start[ideal + 1]]
            out = out[self._of_roots[out]]
            where = (self.back_rows[lane // LANES] + np.arange(len(out)), lane % LANES)
            arc[where] = root_of[video, out]
            waived[where] = sets[waivers.waived[out]] | _of_video(video)
        return {"back_waived": waived, "back_arc": arc, "back_rows": self.back_rows}

    @property
    def missing(self) -> NDArray[np.uint64]:
        """What is waived by ending with each ideal: [videos * ideals]."""
        return np.tile(self._waivers.sets[self._waivers.ends, 0], self.videos)


def _of_video(video: int) -> np.uint64:
    return np.uint64(video << MOST_STEPS)


@lru_cache(maxsize=256)
def waiving_of(layout: Layout, videos: int, paths: bool) -> Waiving:
    """Return the arcs of so many videos of a procedure; made once."""
    return Waiving(layout, videos, paths)
