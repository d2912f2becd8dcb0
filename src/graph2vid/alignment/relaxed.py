"""Procedures with too many ideals: lower bounds on what an alignment costs.

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
from graph2vid.flow import FlowGraph

Costs64 = NDArray[np.float64]
Indices = NDArray[np.int64]

_BY_CLIP = 0.02  # how much more slowly multipliers of an edge and a clip are changed than those of a step
_MOMENTUM = 0.96  # how much of the last change is made again
_PATIENCE, _SHORTER = 20, 0.8  # changes without a better bound after which they become that much smaller
_EXPECT = 0.1  # how much one relaxed alignment changes when steps are expected
_TIE = 1e-10  # of their size: by so much costs may differ that count as the same
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

    It is the sum of ``weight[:, j]`` over the set, and ``free[j]``, or ``going[k, j]`` where step k may go on.

    Attributes
    ----------
    free : [N+1]
    going : [K, N+1]
    weight : [K, N+1]
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
        # Of several points that cost the same, up to rounding, the first.
        steps = self._may_skip[skipped]
        size = np.abs(at.once[steps]) + np.abs(self.video.skip[steps]) - waived[skipped]
        where = (passed[skipped] <= (waived[skipped] + _TIE * size)[:, None]).argmax(axis=1)
        return Solved(bound, np.vstack([segments, np.stack([steps, where, where], axis=1)]))

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
        weight = given_back + end + begin - at.once
        return Completions(free, np.ascontiguousarray(going.T), np.ascontiguousarray(weight.T))

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
        self.start()

    def start(self) -> None:
        """Go on from the best multipliers so far, with large changes again."""
        self._now, self._direction = self.best, self.relaxation.start()
        self._daring, self._idle, self.bound = 1.0, 0, -np.inf

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

    def completions(self) -> Completions:
        """Return what the rest of the video costs at the least, at the best multipliers."""
        return self.relaxation.completions(self.best)

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

    def completions(self) -> Completions:
        """Return what the rest of the video costs at the least, at the best multipliers."""
        return Completions(*self._kernel.completions(native_watch()))

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
