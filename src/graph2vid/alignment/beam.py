"""A beam over ideals, guided by lower bounds (:mod:`graph2vid.alignment.relaxed`).

It goes from the ideals of few steps to those of many. Of each it finds at once what the clips so far cost at the
least, after any number of clips: a row of numbers, in which only those are kept whose bounds promise an alignment that
is cheaper than what is known. Where too many ideals have the same number of steps, those of the least bounds are
followed, and the least bound of the others is kept: no alignment that was missed costs less.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid._stopping import go_on, native_watch
from graph2vid.alignment.alignment_result import BACKGROUND, Labels
from graph2vid.alignment.backends import native
from graph2vid.alignment.relaxed import Completions, Costs64, Video
from graph2vid.flow import FlowGraph, bits, mask_of
from graph2vid.tsort import words_of

_KERNEL_WORDS = (1, 2, 4, 16)  # sets of so many words are compiled
_KERNEL_BYTES, _WORD_BYTES, _WAY_BYTES = (
    300,
    60,
    48,
)  # working memory of the compiled beam, for each ideal that it follows
_WIDEST = 1 << 22  # so that what it follows can be counted in 32 bits
_ROWS = 8  # that of the NumPy beam for each way to an ideal
_SLACK = 0.1  # where ideals are left out: from their least bound to what is known, how far the bounds of others may lie


class Swept(NamedTuple):
    """What one sweep over the ideals found.

    Attributes
    ----------
    cost : float
        Of the cheapest alignment found; +∞ where none is cheaper than what was known.
    labels : int64 [N] or None
    dropped : float
        The least that any alignment costs which the beam was too narrow to follow; +∞: it followed all that matter.
    expanded : int
        States that were followed: an ideal after a number of clips.
    """

    cost: float
    labels: Labels | None
    dropped: float
    expanded: int


class _Wanted:
    """An ideal that is yet to be looked at.

    Attributes
    ----------
    bound : float
        The least of what leads to it.
    ways : list of (ideal, step)
        The ideals that lead to it, and the steps that begin after them.
    """

    def __init__(self) -> None:
        self.bound = np.inf
        self.ways: list[tuple[int, int]] = []


class Beam:
    """The search over one video with one procedure; ideals are bit masks.

    Parameters
    ----------
    flow : FlowGraph
        The procedure, of K steps.
    video : Video
    backend : {"native", "reference"}
    memory : int
        Bytes that a sweep may use.

    Attributes
    ----------
    widest : int
        How many ideals with the same number of steps it may follow with these; 0: none.
    """

    def __init__(self, flow: FlowGraph, video: Video, backend: str, memory: int) -> None:
        self.video, self.n_steps = video, len(flow)
        self._before = flow.ancestors
        self._is_needed = np.isinf(video.skip)
        self._needed = mask_of(np.flatnonzero(self._is_needed).tolist())
        self._skip = np.where(self._is_needed, 0.0, video.skip)
        before = words_of(flow.ancestors, len(flow))
        n_clips, words = len(video.drop), before.shape[1]
        compiled = next((number for number in _KERNEL_WORDS if number >= words), 0)
        self._is_native = backend == "native" and compiled > 0
        # After how many clips at the most each step must be done, and any so many steps.
        can_show = np.isfinite(video.match)
        self._last = np.where(self._is_needed, n_clips - 1 - can_show[:, ::-1].argmax(axis=1), n_clips)
        self._last[self._is_needed & ~can_show.any(axis=1)] = -1
        self._by_room = np.concatenate([[n_clips], np.flatnonzero(can_show.any(axis=0))[::-1]])
        # Steps that are passed over lead several levels further.
        levels = 1 + max((mask & ~self._needed).bit_count() for mask in self._before)
        if self._is_native:
            self._words = np.ascontiguousarray(np.pad(before, ((0, 0), (0, compiled - words))))
            memory -= 8 * (n_clips + 32) * (5 * len(flow) + 8)  # tables, and an ideal of each size
            self._bytes = memory // 2
            each = 2 * levels * (_KERNEL_BYTES + _WORD_BYTES * compiled + _WAY_BYTES * len(flow))
        else:
            each = 8 * (n_clips + 1) * (len(flow) + _ROWS * len(flow))
        self.widest = max(0, min(memory // each, _WIDEST))

    def sweep(self, bounds: Completions, upper: float, width: int) -> Swept:
        """Follow the ``width`` most promising ideals of each size.

        Parameters
        ----------
        upper : float
            Only alignments that cost less are looked for.
        """
        video = self.video
        if self._is_native:
            kernel: Any = native()
            given = (video.match, video.drop, video.skip, *bounds, self._words, video.contiguous)
            _, labels, dropped, expanded = kernel.sweep(*given, upper, width, self._bytes, native_watch())
            return Swept(np.inf if labels is None else video.cost(labels), labels, dropped, expanded)
        wanted: list[dict[int, _Wanted]] = [{} for _ in range(self.n_steps + 1)]
        wanted[0][0] = _Wanted()
        rows: dict[int, Costs64] = {}  # what the clips so far cost at the least [N+1], of each ideal
        cost, last, dropped, expanded = np.inf, 0, np.inf, 0
        for level in wanted:
            go_on()
            limit = upper
            if len(level) > width:
                ranked = sorted(level, key=lambda done: level[done].bound)
                least = level[ranked[width]].bound
                dropped, limit = min(dropped, least), min(upper, least + _SLACK * (upper - least))
                for done in ranked[width:]:
                    del level[done]
            for done, best in self._costs_so_far(level, rows, bounds, limit).items():
                rows[done] = best
                expanded += int(np.isfinite(best).sum())
                if not self._needed & ~done:
                    total = float(best[-1]) + self._waived(~done & ~self._needed)
                    if total < min(cost, upper):
                        cost, last = total, done
                self._enter(done, best, bounds, upper, wanted)
            level.clear()
        if cost == np.inf:
            return Swept(np.inf, None, dropped, expanded)
        labels = self._trace(rows, last)
        return Swept(video.cost(labels), labels, dropped, expanded)

    def _waived(self, steps: int) -> float:
        """Return what it costs to pass over the steps of a set."""
        return float(sum(self._skip[step] for step in bits(steps & (1 << self.n_steps) - 1)))

    def _given(self, done: int, weight: Costs64) -> Costs64:
        """Return the sums [N+1] of weights over a set."""
        return np.asarray(weight[list(bits(done))].sum(axis=0), np.float64)

    def _last_of(self, done: int) -> int:
        """Return after how many clips at the most an ideal is of use: the steps that are left need a clip each."""
        left = list(bits(self._needed & ~done))
        return int(min([self._by_room[len(left)], *self._last[left]])) if len(left) < len(self._by_room) else -1

    def _costs_so_far(
        self, level: dict[int, _Wanted], rows: dict[int, Costs64], bounds: Completions, limit: float
    ) -> dict[int, Costs64]:
        """Return what the clips so far cost at the least [N+1], of all ideals of a level where it is below a limit."""
        video = self.video
        n_clips, ideals = len(video.drop), list(level)
        best = np.full((n_clips + 1, len(ideals)), np.inf)
        given = np.array([self._given(done, bounds.weight) for done in ideals]).reshape(-1, n_clips + 1).T
        ways = [(at, *way) for at, done in enumerate(ideals) for way in level[done].ways]
        if ways:
            to = np.array([at for at, _, _ in ways])
            step = np.array([step for _, _, step in ways])
            before = np.array([rows[ideal] + self._passed(ideal, step, ideals[at]) for at, ideal, step in ways]).T
            first = np.flatnonzero(np.diff(to, prepend=-1))
            going = np.full(len(ways), np.inf)
            for clip in range(n_clips):
                shown = video.match[step, clip] + np.minimum(before[clip], going)
                going = shown if video.contiguous else np.minimum(shown, video.drop[clip] + going)
                at_least = going + bounds.going[step, clip + 1] + given[clip + 1, to]
                best[clip + 1] = np.minimum.reduceat(np.where(at_least < limit, going, np.inf), first)
        else:
            best[0] = 0.0
        last = np.array([self._last_of(done) for done in ideals])
        for clip in range(n_clips + 1):
            if clip > 0 and (video.contiguous or not ways):
                np.minimum(best[clip], best[clip - 1] + video.drop[clip - 1], out=best[clip])
            at_least = best[clip] + bounds.free[clip] + given[clip]
            best[clip, ~(at_least < limit) | (last < clip)] = np.inf
        return {done: row for done, row in zip(ideals, best.T.copy(), strict=True) if np.isfinite(row).any()}

    def _passed(self, ideal: int, step: int, done: int) -> float:
        """Return what the steps cost that are passed over between two ideals."""
        return self._waived(done & ~ideal & ~(1 << step))

    def _enter(
        self, ideal: int, best: Costs64, bounds: Completions, upper: float, wanted: list[dict[int, _Wanted]]
    ) -> None:
        """Put the ideals that another one leads to into their levels."""
        for step, before in enumerate(self._before):
            passed = before & ~ideal
            if ideal >> step & 1 or passed & self._needed:
                continue
            done = ideal | passed | 1 << step
            to_come = bounds.going[step, 1:] + self._given(done, bounds.weight)[1:]
            bound = float((best[:-1] + self.video.match[step] + to_come).min()) + self._waived(passed)
            if bound < upper:
                found = wanted[done.bit_count()].setdefault(done, _Wanted())
                found.bound = min(found.bound, bound)
                found.ways.append((ideal, step))

    def _trace(self, rows: dict[int, Costs64], done: int) -> NDArray[np.int64]:
        """Return the labels of the cheapest alignment that ends with an ideal."""
        video = self.video
        clip = len(video.drop)
        labels = np.full(clip, BACKGROUND)
        while done:
            row = rows[done]
            if video.contiguous and clip > 0 and row[clip - 1] + video.drop[clip - 1] == row[clip]:
                clip -= 1
                continue
            before, step, shown = next(
                (ideal, step, shown)
                for ideal in reversed(rows)
                if not ideal & ~done
                for step in bits(done & ~ideal)
                if ideal | self._before[step] | 1 << step == done
                and (shown := self._shown(rows[ideal] + self._passed(ideal, step, done), step, clip))[clip] == row[clip]
            )
            goes_on = True
            while goes_on:
                here = shown[clip]
                clip -= 1
                if video.contiguous or video.drop[clip] + shown[clip] != here:
                    labels[clip] = step
                    goes_on = video.match[step, clip] + shown[clip] == here
            done = before
        return labels

    def _shown(self, before: Costs64, step: int, clip: int) -> list[float]:
        """Return what segments of a step cost that end before each clip up to one."""
        video = self.video
        shown = [np.inf]
        for at in range(clip):
            cost = float(video.match[step, at] + min(before[at], shown[-1]))
            shown.append(cost if video.contiguous else min(cost, float(video.drop[at] + shown[-1])))
        return shown
