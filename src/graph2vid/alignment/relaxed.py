"""Procedures with too many ideals: lower bounds, and a beam over ideals that they guide.

For the bounds, any step may be shown at any time, as often as it likes; what a legal alignment does is bought by
Lagrange multipliers. Each segment of a step costs its multiplier λ, which is given back once. For each edge (a, b) and
each clip there is a multiplier μ ≥ 0: it is charged where b has begun by that clip, and given back where a has ended.
A legal alignment costs what it did before, or less; so the cheapest of all alignments that are now allowed is a lower
bound, whatever the multipliers, and from every point of the video on. A sum over clips of the μ of an edge is but a
cost of beginning b and a reward for ending a, by the clip: solving takes one number for each step and clip.

A step that is skipped is passed over at some point of the video, as if a segment without clips stood there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid._stopping import go_on, native_watch
from graph2vid.alignment.alignment_result import BACKGROUND, Labels
from graph2vid.alignment.backends import native
from graph2vid.flow import FlowGraph, mask_of
from graph2vid.tsort import Masks, words_of

Costs64 = NDArray[np.float64]
Indices = NDArray[np.int64]

_STATE_BYTES = 8  # kept of a state of the beam for the traceback, for each clip
_MOVE_BYTES = 90  # working memory of the NumPy beam for each way on from a state, and for each word of its set
_WORD_BYTES = 40
_KERNEL_BYTES = 500  # that of the compiled beam for each state, and for each word of its set
_KERNEL_WORDS = (1, 2, 4, 16)  # sets of so many words are compiled
_BY_CLIP = 0.02  # how much more slowly multipliers of an edge and a clip are changed than those of a step
_MOMENTUM = 0.7  # how much of the last change is made again
_PATIENCE, _SHORTER = 20, 0.8  # changes without a better bound after which they become that much smaller
_EXPECT = 0.1  # how much one relaxed alignment changes when steps are expected
_LANES = 4  # numbers in a vector of the compiled kernels


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

    @property
    def may_skip(self) -> bool:
        """Whether any step may be skipped."""
        return bool(np.isfinite(self.skip).any())

    def cost(self, labels: Labels) -> float:
        """Return what labels [N] cost, skipped steps included."""
        shown = np.flatnonzero(labels != BACKGROUND)
        spent = self.match[labels[shown], shown].sum() + self.drop[labels == BACKGROUND].sum()
        return float(spent + self.skip[np.setdiff1d(np.arange(len(self.skip)), labels)].sum())

    def size(self) -> float:
        """Return how large sums of the costs can become."""
        match, drop, skip = (np.abs(np.where(np.isinf(c), 0.0, c)) for c in (self.match, self.drop, self.skip))
        return float(np.maximum(match.max(axis=0), drop).sum() + skip.sum())


class Multipliers(NamedTuple):
    """What breaking the rules costs.

    Attributes
    ----------
    once : [K]
        Of each segment of a step.
    order : [E, N]
        At least 0: of each edge and clip, where the later step has begun and the earlier has not ended.
    """

    once: Costs64
    order: Costs64


class Completions(NamedTuple):
    """What the rest of the video costs at the least, from clip j on, where the steps of a set are done.

    It is the sum of ``weight[j]`` over the set, and ``free[j]``, or ``going[j, k]`` where step k may go on.

    Attributes
    ----------
    free : [N+1]
    going : [N+1, K]
    weight : [N+1, K]
    """

    free: Costs64
    going: Costs64
    weight: Costs64


class Solved(NamedTuple):
    """The cheapest relaxed alignment.

    Attributes
    ----------
    bound : float
        What it costs: no legal one costs less.
    segments : int64 [n, 3]
        Step, first clip and the clip behind the last, in order; last the steps skipped, as segments without clips.
    """

    bound: float
    segments: Indices


class Relaxation:
    """A procedure whose rules can be broken.

    Parameters
    ----------
    flow : FlowGraph
        The procedure, of K steps.
    video : Video
    """

    def __init__(self, flow: FlowGraph, video: Video) -> None:
        self.video, self.n_steps = video, len(flow)
        edges = np.array(flow.transitive_reduction().edges, np.int64).reshape(-1, 2)
        self.earlier, self.later = np.ascontiguousarray(edges.T)
        self._may_skip = np.flatnonzero(np.isfinite(video.skip))
        n_clips = len(video.drop)
        # By clip; a row fills whole vectors, with steps that cannot be shown.
        self._width = -(-self.n_steps // _LANES) * _LANES
        self.match = np.full((n_clips, self._width), np.inf)
        self.match[:, : self.n_steps] = video.match.T
        self._begin, self._end, self._going = np.zeros((3, n_clips + 1, self._width))
        self._free = np.empty(n_clips + 1)

    def start(self) -> Multipliers:
        """Return multipliers of 0."""
        return Multipliers(np.zeros(self.n_steps), np.zeros((len(self.later), len(self.video.drop))))

    def solve(self, at: Multipliers) -> Solved:
        """Find the cheapest alignment at these multipliers."""
        passed = self._charge(at)[2]
        self._recur()
        segments = self._segments()
        waived = passed.min(axis=1)
        skipped = waived < 0
        bound = float(self._free[0] - at.once.sum() + waived[skipped].sum())
        where = passed[skipped].argmin(axis=1)
        return Solved(bound, np.vstack([segments, np.stack([self._may_skip[skipped], where, where], axis=1)]))

    def completions(self, at: Multipliers) -> Completions:
        """Return what the rest of the video costs at the least, from everywhere."""
        begin, end, passed = self._charge(at)
        self._recur()
        steps = slice(self.n_steps)
        given_back = np.tile(at.once, (len(begin), 1))  # for each step that is not done
        later = np.minimum.accumulate(passed[:, ::-1], axis=1)[:, ::-1].T
        given_back[:, self._may_skip] -= np.minimum(later, 0.0)
        base = given_back.sum(axis=1)
        free, going = self._free - base, self._going[:, steps] - end - base[:, None]
        return Completions(free, np.ascontiguousarray(going), given_back + end + begin - at.once)

    def _charge(self, at: Multipliers) -> tuple[Costs64, Costs64, Costs64]:
        """Write what beginning and ending segments costs, by clip; return it [N+1, K], and what skipping a step costs,
        passed over at each clip [steps that may be skipped, N+1]."""
        sums = np.zeros((len(at.order), len(self.video.drop) + 1))
        np.cumsum(at.order[:, ::-1], axis=1, out=sums[:, -2::-1])
        begin, end = self._begin[:, : self.n_steps], self._end[:, : self.n_steps]
        begin[:], end[:] = at.once, 0.0
        for earlier, later, of_edge in zip(self.earlier, self.later, sums, strict=True):
            begin[:, later] += of_edge
            end[:, earlier] -= of_edge
        passed = (begin + end)[:, self._may_skip].T + self.video.skip[self._may_skip, None]
        return begin, end, passed

    def _recur(self) -> None:
        """Write what the rest of the video costs, from the last clip backwards."""
        free, going, drop = self._free, self._going, self.video.drop
        free[-1], going[-1] = 0.0, self._end[-1]
        for clip in range(len(drop) - 1, -1, -1):
            go_on()
            shown = self.match[clip] + going[clip + 1]
            entered = shown + self._begin[clip]
            first = int(entered.argmin())
            rest = drop[clip] + free[clip + 1]
            free[clip] = min(entered[first], rest)
            follows = np.full(self._width, free[clip])
            entered[first] = np.inf
            follows[first] = min(entered.min(), rest)  # not another segment of the same step
            going[clip] = np.minimum(shown, self._end[clip] + follows)
            if not self.video.contiguous:
                np.minimum(going[clip], going[clip + 1] + drop[clip], out=going[clip])

    def _segments(self) -> Indices:
        """Return the segments of the cheapest relaxed alignment."""
        free, going, drop = self._free, self._going, self.video.drop
        found: list[list[int]] = []
        current = BACKGROUND
        for clip in range(len(drop)):
            shown = self.match[clip] + going[clip + 1]
            if current != BACKGROUND:
                here = going[clip, current]
                if here in (shown[current], np.inf if self.video.contiguous else going[clip + 1, current] + drop[clip]):
                    continue
                found[-1][2] = clip
            entered = shown + self._begin[clip]
            if current != BACKGROUND:
                entered[current] = np.inf
            current = int(entered.argmin())
            if entered[current] < drop[clip] + free[clip + 1]:
                found.append([current, clip, len(drop)])
            else:
                current = BACKGROUND
        return np.array(found, np.int64).reshape(-1, 3)

    def excess(self, segments: Indices) -> Multipliers:
        """Return by how much an alignment breaks each rule: in the direction of this, multipliers raise the bound."""
        step, start, stop = segments.T
        shape = (self.n_steps, len(self.video.drop) + 1)
        size = shape[0] * shape[1]
        begins, ends = (np.bincount(step * shape[1] + at, minlength=size).reshape(shape) for at in (start, stop))
        order = np.cumsum((begins[self.later] - ends[self.earlier])[:, :-1], axis=1, dtype=np.float64)
        return Multipliers(begins.sum(axis=1) - 1.0, order)


class Climb:
    """Multipliers on their way to a better bound: subgradient steps of Polyak's length, with momentum; breaking
    a rule that is broken costs more each time.

    Parameters
    ----------
    relaxation : Relaxation
    when : [K]
        When each step is expected to begin; relaxed alignments change it.

    Attributes
    ----------
    bound : float
        The best since the last start.
    best : Multipliers
        Those that gave it.
    """

    def __init__(self, relaxation: Relaxation, when: Costs64) -> None:
        self.relaxation, self.when = relaxation, when
        self.best = relaxation.start()
        self.start(1.0)

    def start(self, daring: float) -> None:
        """Go on from the best multipliers so far, with changes of another size."""
        self._now, self._direction = self.best, self.relaxation.start()
        self._daring, self._idle, self.bound = daring, 0, -np.inf

    def run(self, rounds: int, target: float, close: float) -> tuple[int, bool]:
        """Change the multipliers some times.

        Parameters
        ----------
        rounds : int
            How often at the most; an alignment that is legal ends it.
        target : float
            The bound to reach, up to ``close``.

        Returns
        -------
        int, bool
            How often they were changed, and whether the last relaxed alignment is legal.
        """
        for number in range(1, rounds + 1):
            bound, segments = self.relaxation.solve(self._now)
            if bound > self.bound:
                self.bound, self.best, self._idle = bound, self._now, 0
            elif (idle := self._idle + 1) == _PATIENCE:
                self._daring, self._idle = self._daring * _SHORTER, 0
            else:
                self._idle = idle
            if not np.isfinite(bound) or not bound < target - close:
                return number, False
            excess = self.relaxation.excess(segments)
            is_legal = not excess.once.any() and not (excess.order > 0).any()
            self._expect(segments, 1.0 if is_legal else _EXPECT)
            turned = (old * _MOMENTUM + new for old, new in zip(self._direction, excess, strict=True))
            self._direction = direction = Multipliers(*turned)
            direction.order[(self._now.order == 0) & (direction.order < 0)] = 0.0
            length = float(direction.once @ direction.once + _BY_CLIP * np.vdot(direction.order, direction.order))
            if length == 0:
                return number, is_legal
            size = self._daring * (target - bound) / length
            once = self._now.once + size * direction.once
            self._now = Multipliers(once, np.maximum(self._now.order + size * _BY_CLIP * direction.order, 0.0))
            if is_legal:
                return number, True
        return rounds, False

    def _expect(self, segments: Indices, share: float) -> None:
        """Learn from a relaxed alignment when steps begin."""
        step, start, _ = segments.T
        shown = np.bincount(step, minlength=len(self.when))
        found = np.bincount(step, start, len(self.when)) / np.maximum(shown, 1)
        self.when = np.where(shown > 0, (1 - share) * self.when + share * found, self.when)


class CompiledClimb:
    """:class:`Climb` by the compiled kernel."""

    def __init__(self, relaxation: Relaxation, when: Costs64) -> None:
        video, self._shape = relaxation.video, relaxation.start().order.shape
        settings = (_BY_CLIP, _MOMENTUM, _SHORTER, _EXPECT, _PATIENCE)
        costs = (relaxation.match, video.drop, video.skip)
        kernels: Any = native()
        edges = (relaxation.earlier, relaxation.later)
        self._kernel = kernels.Climb(*costs, *edges, when, video.contiguous, settings)
        self.start = self._kernel.start

    def run(self, rounds: int, target: float, close: float) -> tuple[int, bool]:
        """Change the multipliers some times."""
        found: tuple[int, bool] = self._kernel.run(rounds, target, close, native_watch())
        return found

    @property
    def bound(self) -> float:
        """The best since the last start."""
        return float(self._kernel.bound)

    @property
    def best(self) -> Multipliers:
        """The multipliers that gave it."""
        return Multipliers(self._kernel.once, self._kernel.order.reshape(self._shape))

    @property
    def when(self) -> Costs64:
        """When each step is expected to begin."""
        return np.asarray(self._kernel.when, np.float64)


class Swept(NamedTuple):
    """What one sweep over the video found.

    Attributes
    ----------
    cost : float
        Of the cheapest alignment found; +∞ where none is cheaper than what was known.
    labels : int64 [N] or None
    dropped : float
        The least that any alignment costs which the beam was too narrow to follow; +∞: it followed all that matter.
    expanded : int
        States that were followed, over all clips.
    """

    cost: float
    labels: Labels | None
    dropped: float
    expanded: int


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
    left : int64 [n]
        How many steps must still be shown.
    """

    done: Masks
    step: Indices
    cost: Costs64
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
    backend : {"native", "reference"}
    """

    def __init__(self, flow: FlowGraph, video: Video, backend: str) -> None:
        self.video, self.backend, self.n_steps = video, backend, len(flow)
        self._own = words_of((1 << step for step in range(len(flow))), len(flow))
        self._before = words_of(flow.ancestors, len(flow))
        self._words: int = self._own.shape[1]
        self._is_needed = np.isinf(video.skip)
        self._may_skip = words_of([mask_of(np.flatnonzero(~self._is_needed).tolist())], len(flow))
        # From each clip on: in how many a step can be shown at all, and which steps must be done by then.
        can_show = np.isfinite(video.match)
        self._room = np.append(np.cumsum(np.flip(can_show.any(axis=0)))[::-1], 0)
        comes = np.flip(np.logical_or.accumulate(np.flip(can_show, axis=1), axis=1), axis=1)
        due = np.append(self._is_needed[:, None] & ~comes, self._is_needed[:, None], axis=1)
        self._due = words_of((mask_of(np.flatnonzero(steps).tolist()) for steps in due.T), len(flow))
        compiled = next((words for words in _KERNEL_WORDS if words >= self._words), 0)
        self._is_native = backend == "native" and compiled > 0
        if self._is_native:
            self._by_clip = np.ascontiguousarray(video.match.T)
            self._padded = np.ascontiguousarray(np.pad(self._before, ((0, 0), (0, compiled - self._words))))

    def widest(self, memory: int) -> int:
        """Return how many states a sweep may follow within these bytes."""
        each = _STATE_BYTES * len(self.video.drop)
        if self._is_native:
            each += _KERNEL_BYTES + _WORD_BYTES * self._padded.shape[1]
        else:
            each += (_MOVE_BYTES + _WORD_BYTES * self._words) * self.n_steps
        return max(1, memory // each)

    def sweep(self, bounds: Completions, upper: float, width: int) -> Swept:
        """Follow the ``width`` most promising states from clip to clip.

        Parameters
        ----------
        upper : float
            Only alignments that cost less are looked for.
        """
        video = self.video
        if self._is_native:
            kernel: Any = native()
            given = (self._by_clip, video.drop, video.skip, *bounds, self._padded, video.contiguous)
            _, labels, dropped, expanded = kernel.sweep(*given, upper, width, native_watch())
            return Swept(np.inf if labels is None else video.cost(labels), labels, dropped, expanded)
        skips = _Weights(np.where(video.skip < np.inf, video.skip, 0.0), self._words)
        nothing, needed = np.zeros((1, self._words), np.uint64), np.array([self._is_needed.sum()])
        states = _States(nothing, np.array([BACKGROUND]), np.zeros(1), needed)
        traceback: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []
        dropped, expanded = np.inf, 0
        for clip in range(len(video.drop)):
            go_on()
            expanded += len(states.cost)
            states, came_from, labels, missed = self._advance(states, clip, bounds, skips, upper, width)
            dropped = min(dropped, missed)
            if not len(states.cost):
                return Swept(np.inf, None, dropped, expanded)
            traceback.append((came_from.astype(np.int32), labels.astype(np.int32)))
        left = ~states.done & np.bitwise_or.reduce(self._own)
        total = states.cost + skips(left)
        total[(left & ~self._may_skip).any(axis=1)] = np.inf
        at = int(total.argmin())
        if not total[at] < upper:
            return Swept(np.inf, None, dropped, expanded)
        found = np.empty(len(video.drop), np.int64)
        for clip in range(len(found) - 1, -1, -1):
            before, shown = traceback[clip]
            found[clip], at = shown[at], int(before[at])
        return Swept(video.cost(found), found, dropped, expanded)

    def _advance(
        self,
        states: _States,
        clip: int,
        bounds: Completions,
        skip: _Weights,
        upper: float,
        width: int,
    ) -> tuple[_States, Indices, Indices, float]:
        """Return the states after one more clip, where each came from and what the clip shows, and the least bound of
        what was dropped for want of room."""
        video = self.video
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
        waived = skip(missing[row, begun]) if video.may_skip else 0.0
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
        if video.may_skip:
            done[new] |= self._before[begun]
        left = states.left[came_from]
        left[new] -= self._is_needed[begun]

        to_come = np.where(step == BACKGROUND, bounds.free[clip + 1], bounds.going[clip + 1][step])
        at_least = cost + to_come + _Weights(bounds.weight[clip + 1], self._words)(done)
        is_late = (self._due[clip + 1] & ~done).any(axis=1) | (left > self._room[clip + 1])  # a clip for each is needed
        chosen = np.flatnonzero((at_least < upper) & ~is_late)
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
        return _States(done, step, cost, left).where(order), came_from[order], labels[order], missed


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
