"""A beam over ideals, clip by clip, guided by lower bounds: what is not followed is known to cost at least so much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph2vid._stopping import go_on
from graph2vid.alignment.alignment_result import BACKGROUND, Labels
from graph2vid.alignment.relaxed import Completions, Costs64, Relaxation, Video
from graph2vid.flow import FlowGraph, mask_of

Masks = NDArray[np.uint64]
Indices = NDArray[np.int64]

_STATE_BYTES = 8  # kept of a state for the traceback, for each clip
_MOVE_BYTES = 90  # working memory for each way on from a state, and for each word of its set
_WORD_BYTES = 40


@dataclass(frozen=True, eq=False)
class Swept:
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


@dataclass(frozen=True, eq=False)
class _States:
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

    def __getitem__(self, which: Indices) -> _States:
        return _States(self.done[which], self.step[which], self.cost[which], self.ideal[which], self.left[which])


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
        self._words = (len(flow) + 63) // 64
        self._own = self._masks([1 << step for step in range(len(flow))])
        self._before = self._masks(list(flow.ancestors))
        self._is_needed = np.isinf(video.skip)
        self._may_skip = self._masks([mask_of(np.flatnonzero(~self._is_needed).tolist())])[0]
        self._has_skips = bool(self._may_skip.any())

    def _masks(self, masks: list[int]) -> Masks:
        raw = b"".join(mask.to_bytes(8 * self._words, "little") for mask in masks)
        return np.frombuffer(raw, dtype="<u8").astype(np.uint64).reshape(len(masks), self._words)

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
        weights = (
            _Weights(bounds.reward, self._words),
            _Weights(np.where(video.skip < np.inf, video.skip, 0.0), self._words),
        )
        states = _States(
            np.zeros((1, self._words), np.uint64),
            np.array([BACKGROUND]),
            np.zeros(1),
            np.zeros(1, np.int64),
            np.array([self._is_needed.sum()]),
        )
        traceback: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []
        dropped = np.inf
        for clip in range(len(video.drop)):
            go_on()
            states, came_from, labels, missed = self._advance(states, clip, relaxation, bounds, weights, upper, width)
            dropped = min(dropped, missed)
            if not len(states.cost):
                return Swept(np.inf, None, dropped)
            traceback.append((came_from.astype(np.int32), labels.astype(np.int32)))
        left = ~states.done & self._masks([(1 << self.n_steps) - 1])
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
        cost = np.concatenate(
            [
                states.cost[goes_on] + match[states.step[goes_on]],
                states.cost[rests] + drop,
                states.cost[begins] + match[begun] + waived,
            ]
        )
        done = states.done[came_from]
        new = slice(len(goes_on) + len(rests), None)
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
        return _States(done, step, cost, ideal, left)[order], came_from[order], labels[order], missed


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
