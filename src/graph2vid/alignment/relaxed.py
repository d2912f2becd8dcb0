"""Lower bounds for procedures with too many ideals: some steps are kept, the others may recur at a cost.

Of the *kept* steps it is known at any time which are done, so each comes once and in order; their ideals are few. Any
other step may be shown whenever the kept ones allow it, as often as it likes, but each segment costs its Lagrange
multiplier, and the multipliers of those that are still to come are given back. Every legal alignment costs the
same as before, so the cheapest of all alignments that are now allowed is a lower bound, from every point of
the video on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph2vid._stopping import go_on
from graph2vid.alignment.alignment_result import BACKGROUND, Labels
from graph2vid.flow import FlowGraph, bits, mask_of
from graph2vid.tsort import TSortGraph

Costs64 = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Video:
    """Costs in float64 of K steps and N clips.

    Attributes
    ----------
    match : [K, N]
    drop : [N]
    skip : [K]
        +∞: the step must be shown.
    contiguous : bool
        Whether background inside a step ends it.
    """

    match: Costs64
    drop: Costs64
    skip: Costs64
    contiguous: bool

    def cost(self, labels: Labels) -> float:
        """Return what labels [N] cost, skipped steps included."""
        shown = np.flatnonzero(labels != BACKGROUND)
        spent = self.match[labels[shown], shown].sum() + self.drop[labels == BACKGROUND].sum()
        return float(spent + self.skip[np.setdiff1d(np.arange(len(self.skip)), labels)].sum())

    def size(self) -> float:
        """Return how large sums of the costs can become."""
        match, drop, skip = (np.abs(np.where(np.isinf(c), 0.0, c)) for c in (self.match, self.drop, self.skip))
        return float(np.maximum(match.max(axis=0), drop).sum() + skip.sum())


@dataclass(frozen=True, eq=False)
class Completions:
    """What the rest of the video costs at the least, where the kept steps of ideal q are done.

    The last column of both tables, one beyond the ideals, is infinite: it stands for what cannot be reached.

    Attributes
    ----------
    reward : [K]
        What is given back for each step that is not kept and still to come; 0 for those kept.
    free : [N+1, I+1]
        From clip j on, where no step goes on.
    going : [N+1, K, I+1]
        From clip j on, where step k may go on.
    bound : float
        What the whole video costs at the least.
    """

    reward: Costs64
    free: Costs64
    going: Costs64
    bound: float


@dataclass(frozen=True, eq=False)
class RelaxedPath:
    """The cheapest relaxed alignment.

    Attributes
    ----------
    labels : int64 [N]
    order : int64 [R]
        The steps of its segments.
    """

    labels: Labels
    order: NDArray[np.int64]


class Relaxation:
    """A procedure of which only some steps are kept.

    Parameters
    ----------
    flow : FlowGraph
        The procedure, of K steps.
    video : Video
    kept : tuple of int
        The steps kept, ascending.
    limit : int
        The largest number of ideals of the kept steps.

    Attributes
    ----------
    reach : int64 [K, I+1]
        The ideal that holds a step, where it is kept, and all kept steps before it, beside ideal q.

    Raises
    ------
    TooLargeError
        Where there are more ideals.
    """

    def __init__(self, flow: FlowGraph, video: Video, kept: tuple[int, ...], limit: int) -> None:
        self.video, self.kept = video, np.array(kept, dtype=np.int64)
        place = {step: row for row, step in enumerate(kept)}
        among = mask_of(kept)
        pairs = [(place[a], place[b]) for b in kept for a in bits(flow.ancestors[b] & among)]
        n_steps, self.n_ideals = len(flow), 1
        is_done = np.zeros((len(kept), 2), bool)
        self._next = np.full((len(kept), 2), 1)  # the ideal reached by a kept step; beyond the ideals: none
        if kept:
            tsort = TSortGraph.compile(FlowGraph.from_edges([str(step) for step in kept], pairs), limit)
            self.n_ideals = tsort.n_ideals
            self._next = np.full((len(kept), self.n_ideals + 1), self.n_ideals)
            ideal_of_state = np.repeat(np.arange(self.n_ideals), np.diff(tsort.state_start))
            self._next[tsort.state_step, tsort.state_from] = ideal_of_state
            is_done = np.zeros((len(kept), self.n_ideals + 1), bool)
            for row in range(len(kept)):
                is_done[row, :-1] = tsort.masks[:, row // 64] >> np.uint64(row % 64) & np.uint64(1)
        rows = [place[step] for step in flow.topological_order if step in place]
        self.reach = np.empty((n_steps, self.n_ideals + 1), np.int64)
        self._is_open = np.zeros((n_steps, self.n_ideals + 1), bool)
        for step in range(n_steps):
            before = [row for row in rows if flow.ancestors[step] >> kept[row] & 1]
            after = [row for row in rows if flow.descendants[step] >> kept[row] & 1]
            self._is_open[step] = is_done[before].all(axis=0) & ~is_done[after].any(axis=0)
            reached = np.arange(self.n_ideals + 1)
            for row in [*before, *([place[step]] if step in place else [])]:
                forward = self._next[row, reached]
                reached = np.where(forward < self.n_ideals, forward, reached)
            self.reach[step] = reached
        self._skippable = [row for row in reversed(rows) if np.isfinite(video.skip[kept[row]])]

    def solve(self, multipliers: Costs64, into: Completions | None = None) -> Completions:
        """Return what the rest of the video costs at the least, from everywhere, at these multipliers [K].

        Parameters
        ----------
        into : Completions, optional
            Of this relaxation, not needed any more: its tables are used again.
        """
        video = self.video
        n_steps, n_clips = video.match.shape
        shape = (n_clips + 1, n_steps, self.n_ideals + 1)
        free, going = (into.free, into.going) if into is not None else (np.empty(shape[::2]), np.empty(shape))
        reward = np.maximum(multipliers, -video.skip)
        reward[self.kept] = 0.0
        gate = np.where(self._is_open, multipliers[:, None], np.inf)
        columns = np.arange(self.n_ideals + 1)
        free[n_clips] = np.inf
        free[n_clips, self.n_ideals - 1] = 0.0
        self._waive(free[n_clips])
        going[n_clips] = free[n_clips]
        shown, entered = np.empty(shape[1:]), np.empty(shape[1:])
        for clip in range(n_clips - 1, -1, -1):
            go_on()
            np.add(going[clip + 1], video.match[:, clip, None], out=shown)
            np.add(shown, gate, out=entered)
            if len(self.kept):
                entered[self.kept] = np.take_along_axis(shown[self.kept], self._next, axis=1)
            first = entered.argmin(axis=0)
            best = entered[first, columns]
            rest = free[clip + 1] + video.drop[clip]
            np.minimum(best, rest, out=free[clip])
            waived = self._waive(free[clip])
            np.minimum(shown, free[clip], out=going[clip])
            # What follows a segment is not another one of the same step.
            entered[first, columns] = np.inf
            other = np.minimum(np.minimum(entered.min(axis=0), rest), waived)
            going[clip, first, columns] = np.minimum(shown[first, columns], other)
            if not video.contiguous:
                np.minimum(going[clip], going[clip + 1] + video.drop[clip], out=going[clip])
        return Completions(reward, free, going, float(free[0, 0] - reward.sum()))

    def _waive(self, free: Costs64) -> Costs64:
        """Allow for kept steps that are skipped, in place; return the least cost where at least one is."""
        least = np.full(self.n_ideals + 1, np.inf)
        for row in self._skippable:  # the last first: what is skipped with it has been allowed for
            waived = free[self._next[row]] + self.video.skip[self.kept[row]]
            np.minimum(least, waived, out=least)
            np.minimum(free, waived, out=free)
        return least

    def path(self, multipliers: Costs64, found: Completions) -> RelaxedPath:
        """Return the cheapest relaxed alignment."""
        video = self.video
        n_clips = len(video.drop)
        labels = np.full(n_clips, BACKGROUND, np.int64)
        order: list[int] = []
        ideal, current, clip = 0, BACKGROUND, 0
        gate = np.where(self._is_open, multipliers[:, None], np.inf)
        skip = video.skip[self.kept]
        while clip < n_clips:
            after = found.going[clip + 1]
            shown = video.match[:, clip] + after[:, ideal]
            entered = shown + gate[:, ideal]
            entered[self.kept] = video.match[self.kept, clip] + after[self.kept, self._next[:, ideal]]
            rest, goes_on = video.drop[clip] + found.free[clip + 1, ideal], np.inf
            pauses = np.inf
            if current != BACKGROUND:
                entered[current] = np.inf
                goes_on = shown[current]
                pauses = np.inf if video.contiguous else video.drop[clip] + after[current, ideal]
            waived = found.free[clip, self._next[:, ideal]] + skip
            step = int(entered.argmin())
            least = min(goes_on, pauses, rest, entered[step])
            if len(waived) and waived.min() < least:
                ideal, current = int(self._next[int(waived.argmin()), ideal]), BACKGROUND
                continue
            if goes_on == least:
                labels[clip] = current
            elif entered[step] == least:
                labels[clip], current = step, step
                order.append(step)
                if step in self.kept:
                    ideal = int(self.reach[step, ideal])
            elif pauses != least:
                current = BACKGROUND
            clip += 1
        return RelaxedPath(labels, np.array(order, np.int64))
