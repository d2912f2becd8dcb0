"""Procedures with too many ideals: lower bounds, and a beam over ideals that they guide.

For the bounds some steps are kept, the others may recur at a cost.

Of the *kept* steps it is known at any time which are done, so each comes once and in order; their ideals are few. Any
other step may be shown whenever the kept ones allow it, as often as it likes, but each segment costs its Lagrange
multiplier, and the multipliers of those that are still to come are given back. Every legal alignment costs the
same as before, so the cheapest of all alignments that are now allowed is a lower bound, from every point of
the video on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid._stopping import go_on
from graph2vid.alignment.alignment_result import BACKGROUND, Labels
from graph2vid.flow import FlowGraph, bits, mask_of
from graph2vid.tsort import Masks, TSortGraph, flags_of, words_of

Costs64 = NDArray[np.float64]
Indices = NDArray[np.int64]

_STATE_BYTES = 8  # kept of a state of the beam for the traceback, for each clip
_MOVE_BYTES = 90  # working memory for each way on from a state, and for each word of its set
_WORD_BYTES = 40


class Video(NamedTuple):
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


class Completions(NamedTuple):
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
        is_done = np.zeros((0, 2), bool)
        self._next = np.zeros((0, 2), np.int64)  # the ideal reached by a kept step; beyond the ideals: none
        if kept:
            tsort = TSortGraph.compile(FlowGraph.from_edges([str(step) for step in kept], pairs), limit)
            self.n_ideals = tsort.n_ideals
            self._next = np.full((len(kept), self.n_ideals + 1), self.n_ideals)
            self._next[tsort.state_step, tsort.state_from] = tsort.ideal_of_state
            is_done = np.pad(flags_of(tsort.masks, len(kept)).T, ((0, 0), (0, 1)))
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

    def path(self, multipliers: Costs64, found: Completions) -> tuple[Labels, list[int]]:
        """Return the cheapest relaxed alignment: its labels [N], and the steps of its segments."""
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
            rest, goes_on, pauses = video.drop[clip] + found.free[clip + 1, ideal], np.inf, np.inf
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
        return labels, order


class Swept(NamedTuple):
    """What one sweep over the video found.

    Attributes
    ----------
    cost : float
        Of the cheapest alignment found; +∞ where none is cheaper than what was known.
    labels : int64 [N] or None
    dropped : float
        The least that any alignment costs which the beam was too narrow to follow; +∞: it followed all that matter.
    """

    cost: float
    labels: Labels | None
    dropped: float


class _States(NamedTuple):
    """States after some clips, by their sets of done steps; those of one set lie together.

    Attributes
    ----------
    done : uint64 [n, W]
        The steps that are done or were passed over.
    step : int64 [n]
        What may go on, or -1.
    cost : [n]
        What the clips so far cost.
    ideal : int64 [n]
        The kept steps among those done, as an ideal of the relaxation.
    left : int64 [n]
        How many steps must still be shown.
    """

    done: Masks
    step: Indices
    cost: Costs64
    ideal: Indices
    left: Indices

    def where(self, which: Indices) -> _States:
        return _States(*(part[which] for part in self))  # type: ignore[arg-type]


class Beam:
    """The search over one video with one procedure.

    Parameters
    ----------
    flow : FlowGraph
        The procedure, of K steps.
    video : Video
    """

    def __init__(self, flow: FlowGraph, video: Video) -> None:
        self.video, self.n_steps = video, len(flow)
        self._own = words_of((1 << step for step in range(len(flow))), len(flow))
        self._before = words_of(flow.ancestors, len(flow))
        self._words: int = self._own.shape[1]
        self._is_needed = np.isinf(video.skip)
        self._may_skip = words_of([mask_of(np.flatnonzero(~self._is_needed).tolist())], len(flow))
        self._has_skips = bool(self._may_skip.any())

    def widest(self, memory: int) -> int:
        """Return how many states a sweep may follow within these bytes."""
        each = _STATE_BYTES * len(self.video.drop) + (_MOVE_BYTES + _WORD_BYTES * self._words) * self.n_steps
        return max(1, memory // each)

    def sweep(self, relaxation: Relaxation, bounds: Completions, upper: float, width: int) -> Swept:
        """Follow the ``width`` most promising states from clip to clip.

        Parameters
        ----------
        upper : float
            Only alignments that cost less are looked for.
        """
        video = self.video
        skips = np.where(video.skip < np.inf, video.skip, 0.0)
        weights = (_Weights(bounds.reward, self._words), _Weights(skips, self._words))
        nothing, needed = np.zeros((1, self._words), np.uint64), np.array([self._is_needed.sum()])
        states = _States(nothing, np.array([BACKGROUND]), np.zeros(1), np.zeros(1, np.int64), needed)
        traceback: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []
        dropped = np.inf
        for clip in range(len(video.drop)):
            go_on()
            states, came_from, labels, missed = self._advance(states, clip, relaxation, bounds, weights, upper, width)
            dropped = min(dropped, missed)
            if not len(states.cost):
                return Swept(np.inf, None, dropped)
            traceback.append((came_from.astype(np.int32), labels.astype(np.int32)))
        left = ~states.done & np.bitwise_or.reduce(self._own)
        total = states.cost + weights[1](left)
        total[(left & ~self._may_skip).any(axis=1)] = np.inf
        at = int(total.argmin())
        if not total[at] < upper:
            return Swept(np.inf, None, dropped)
        found = np.empty(len(video.drop), np.int64)
        for clip in range(len(found) - 1, -1, -1):
            before, shown = traceback[clip]
            found[clip], at = shown[at], int(before[at])
        return Swept(video.cost(found), found, dropped)

    def _advance(
        self,
        states: _States,
        clip: int,
        relaxation: Relaxation,
        bounds: Completions,
        weights: tuple[_Weights, _Weights],
        upper: float,
        width: int,
    ) -> tuple[_States, Indices, Indices, float]:
        """Return the states after one more clip, where each came from and what the clip shows, and the least bound of
        what was dropped for want of room."""
        video, (reward, skip) = self.video, weights
        n_states = len(states.cost)
        match, drop = video.match[:, clip], video.drop[clip]
        is_first = np.ones(n_states, bool)
        is_first[1:] = (states.done[1:] != states.done[:-1]).any(axis=1)
        starts = np.flatnonzero(is_first)
        least = np.minimum.reduceat(states.cost, starts)[np.cumsum(is_first) - 1]
        # The cheapest of those with the same steps done; of several, any.
        cheapest = np.flatnonzero(states.cost == least)
        cheapest = cheapest[np.unique(np.cumsum(is_first)[cheapest], return_index=True)[1]]

        # The step goes on; background; another step begins.
        goes_on = np.flatnonzero(states.step != BACKGROUND)
        rests = cheapest if video.contiguous else np.arange(n_states)
        missing = self._before & ~states.done[cheapest][:, None, :]
        is_open = ~((states.done[cheapest][:, None, :] & self._own).any(axis=2))
        is_open &= ~(missing & ~self._may_skip).any(axis=2)
        row, begun = np.nonzero(is_open)
        begins = cheapest[row]
        waived = skip(missing[row, begun]) if self._has_skips else 0.0
        kept_open = states.step[rests] if not video.contiguous else np.full(len(rests), BACKGROUND)
        came_from = np.concatenate([goes_on, rests, begins])
        step = np.concatenate([states.step[goes_on], kept_open, begun])
        labels = np.concatenate([states.step[goes_on], np.full(len(rests), BACKGROUND), begun])
        new = slice(len(goes_on) + len(rests), None)
        rest_costs = np.full(len(rests), drop)
        cost = states.cost[came_from] + np.concatenate([match[states.step[goes_on]], rest_costs, match[begun]])
        cost[new] += waived
        done = states.done[came_from]
        done[new] |= self._own[begun]
        if self._has_skips:
            done[new] |= self._before[begun]
        ideal = states.ideal[came_from]
        ideal[new] = relaxation.reach[begun, ideal[new]]
        left = states.left[came_from]
        left[new] -= self._is_needed[begun]

        table, free = bounds.going[clip + 1], bounds.free[clip + 1]
        to_come = np.where(step == BACKGROUND, free[ideal], table[step, ideal])
        at_least = cost + to_come - (bounds.reward.sum() - reward(done))
        chosen = np.flatnonzero((at_least < upper) & (left < len(video.drop) - clip))  # a clip for each is needed
        missed = np.inf
        if len(chosen) > width:
            parted = np.argpartition(at_least[chosen], width)
            missed = float(at_least[chosen[parted[width]]])
            chosen = chosen[parted[:width]]
        # One state for each set and step, the cheapest.
        order = chosen[np.lexsort((cost[chosen], step[chosen], *done[chosen].T))]
        is_new = np.ones(len(order), bool)
        is_new[1:] = (done[order[1:]] != done[order[:-1]]).any(axis=1) | (step[order[1:]] != step[order[:-1]])
        order = order[is_new]
        return _States(done, step, cost, ideal, left).where(order), came_from[order], labels[order], missed


class _Weights:
    """Sums of numbers [K] over sets of steps, by tables of eight steps each."""

    def __init__(self, weights: Costs64, words: int) -> None:
        padded = np.zeros(64 * words)
        padded[: len(weights)] = weights
        bits = np.arange(256)[:, None] >> np.arange(8) & 1
        self._tables = (bits @ padded.reshape(-1, 8).T).T
        self._used = [table for table in range(8 * words) if self._tables[table].any()]

    def __call__(self, sets: Masks) -> Costs64:
        """Return the sums over sets, uint64 [n, W]."""
        total = np.zeros(len(sets))
        for table in self._used:
            word, place = divmod(table, 8)
            total += self._tables[table][(sets[:, word] >> np.uint64(8 * place) & np.uint64(255)).astype(np.intp)]
        return total
