"""Alignment of procedures with too many ideals: a good answer at any time, and how far from the best it can be.

A relaxation (:mod:`graph2vid.alignment.relaxed`) says from every point of the video on what the rest costs at the
least; a beam over ideals, guided by that, finds alignments, and the least bound of what it had no room for is a lower
bound of the whole. In turns the multipliers of the relaxation climb and the beam widens, until both bounds meet or the
time is up.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from graph2vid._stopping import Watch, watched
from graph2vid.alignment.alignment_result import BACKGROUND, Labels
from graph2vid.alignment.backends import Resources, memory_bound, solve_plain
from graph2vid.alignment.beam import Beam
from graph2vid.alignment.clip_costs import ClipCosts
from graph2vid.alignment.relaxed import Climb, CompiledClimb, Completions, Costs64, Relaxation, Video
from graph2vid.errors import TooLargeError
from graph2vid.flow import FlowGraph, bits
from graph2vid.tsort import TSortGraph

EXACT_UPDATES = 2**36
"""States × clips up to which ``method=None`` is exact: a minute or two of one processor."""

TIME_LIMIT = 30.0
"""Seconds that a search takes at the most, unless told otherwise; where its bounds meet it ends at once."""

_MEMORY = 2 << 30  # bytes, unless told otherwise
_SLOW = 16  # how much sooner than elsewhere an exact answer counts as slow, where several are needed
_ROUNDS = (100, 300, 600)  # times that multipliers are changed before a sweep, at the most; the last from then on
_CLIMB_SHARE = 0.3  # of the time that is left, at the most, for the multipliers before a sweep
_SWEEP_SHARE = 0.5  # of the time that a sweep will take, at the most, for the multipliers before it, from the fourth on
_TRY = 50  # changes after which the order that they suggest is tried, before the first sweep: it finds better ones
_ENOUGH = 0.1  # of the gap before some changes: if less is left, a sweep may well close it
_WIDTH = 64  # ideals of each size that the first sweep follows
_WIDER = 4  # how much wider each sweep is than the one before,
_MUCH_WIDER = 16  # and where it found nothing better
_ROUNDING = 1e-11  # of all costs together: by so much sums of the same costs may differ


class Answer(NamedTuple):
    """What was found, and what is proven.

    Attributes
    ----------
    cost : float
        Of the alignment; +∞: there is none.
    labels : int64 [N] or None
    gap : float
        How far the cost may lie above the optimum; 0: it is the optimum, up to rounding.
    options : dict
        How it was found.
    """

    cost: float
    labels: Labels | None
    gap: float
    options: dict[str, Any]


def _searched(cost: float, labels: Labels | None, gap: float, **more: Any) -> Answer:
    return Answer(cost, labels, gap, {"method": "anytime", "gap": gap, "lower_bound": cost - gap, **more})


def refuse_long(tsort: TSortGraph, clips: int) -> None:
    """Raise where an exact answer takes more than :data:`EXACT_UPDATES`."""
    if tsort.n_states * clips > EXACT_UPDATES:
        raise TooLargeError(
            f"{tsort.n_states:,} states and {clips:,} clips take too long to be solved exactly: use method='exact' to "
            "wait for it, longer clips, or add order between steps"
        )


def solve(
    flow: FlowGraph, costs: ClipCosts, contiguous: bool, resources: Resources, instead_of: TooLargeError | None = None
) -> Answer:
    """Search for the cheapest alignment until it is proven, or the time is up.

    Parameters
    ----------
    flow : FlowGraph
        The procedure, without alternatives and soft edges.
    costs : ClipCosts
    contiguous : bool
    resources : Resources
        An answer, however far from the optimum, is there at once; by default the search takes :data:`TIME_LIMIT`
        seconds and 2 GiB, or half of the memory available if that is less.
    instead_of : TooLargeError, optional
        Why there is no exact answer, to be said where there is none at all.

    Raises
    ------
    TooLargeError
        Where not even the smallest tables fit, or no alignment was found in time.
    """
    memory = memory_bound(resources.memory_limit)
    if resources.memory_limit is None:
        memory = min(memory, _MEMORY)
    try:
        return _Search(flow, costs, contiguous, resources, memory).run()
    except TooLargeError as error:
        raise error if instead_of is None else TooLargeError(f"{instead_of}; a search fails, too: {error}") from None


def solve_alternatives(flow: FlowGraph, costs: ClipCosts, resources: Resources) -> Answer:
    """Choose branches and align what is left, until the choice is proven, cannot be bettered step by step, or the
    time is up; as :func:`solve`, of a procedure with alternatives, all of whose edges count as certain."""
    return _Choice(flow, costs, resources).run()


def solve_quickly(flow: FlowGraph, costs: ClipCosts, resources: Resources) -> Answer:
    """Solve exactly where that is quick, else :func:`solve`; every step has one unbroken segment."""
    with suppress(TooLargeError):
        tsort = TSortGraph.compile(flow)
        refuse_long(tsort, _SLOW * costs.match.shape[1])
        return Answer(*solve_plain(tsort, costs, True, False, resources), 0.0, {})
    return solve(flow, costs, True, resources)


def _in_one_order(flow: FlowGraph, video: Video, when: Costs64) -> tuple[float, Labels | None]:
    """Align in one legal order: of the steps that are ready, the one comes first that is expected first [K]."""
    ranked = np.argsort(when, kind="stable").tolist()
    place = {step: at for at, step in enumerate(ranked)}
    by_clip = FlowGraph.from_edges([flow.steps[step] for step in ranked], [(place[a], place[b]) for a, b in flow.edges])
    order = [ranked[at] for at in by_clip.topological_order]
    chain = TSortGraph.compile(FlowGraph.chain([flow.steps[step] for step in order]))
    in_order = ClipCosts(video.match[order], video.drop, video.skip[order] if video.may_skip else None)
    cost, labels = solve_plain(chain, in_order, video.contiguous, False, Resources.check(workers=1))
    if labels is None:
        return cost, None
    labels = np.append(order, BACKGROUND)[labels]
    return video.cost(labels), labels


class _Search:
    """One search, with what it knows so far."""

    def __init__(self, flow: FlowGraph, costs: ClipCosts, contiguous: bool, resources: Resources, memory: int) -> None:
        n_steps, n_clips = costs.match.shape
        self.flow, self.backend, self.seconds = flow, resources.backend, resources.time_limit or TIME_LIMIT
        self.ends = time.monotonic() + self.seconds
        skip = np.full(n_steps, np.inf) if costs.skip is None else costs.skip.astype(np.float64)
        self.video = Video(costs.match.astype(np.float64), costs.drop.astype(np.float64), skip, contiguous)
        # What the relaxation and its multipliers need; the rest is the beam's.
        tables = 8 * n_clips * (8 * (n_steps + 4) + 6 * len(flow.edges))
        self.beam = Beam(flow, self.video, resources.backend, memory - tables)
        if self.beam.widest < _WIDTH:
            raise TooLargeError(
                f"{n_steps} steps and {n_clips:,} clips need more memory than the bound of {memory / 2**20:,.1f} MiB, "
                "even for a search that is not exact: raise memory_limit, or use longer clips"
            )
        self.rounding = _ROUNDING * self.video.size()
        # To have something: the cheapest alignment in an order that suits the video, and what each clip costs at least.
        match, drop = self.video.match, self.video.drop
        best = np.argmin(match - drop if np.isfinite(drop).all() else match, axis=1)
        self.cost, self.labels = _in_one_order(flow, self.video, best.astype(np.float64))
        self.lower = float(np.minimum(match.min(axis=0), drop).sum() + np.minimum(skip, 0.0).sum())
        self.when = best.astype(np.float64)  # each step is expected to begin, to start with
        self.width, self.n_rounds, self.n_expanded = 0, 0, 0

    def run(self) -> Answer:
        """Search until the bounds meet or the time is up."""
        with suppress(TimeoutError), watched(Watch(self._time_left())):
            self._search()
        return self._answer()

    def _search(self) -> None:
        """Let multipliers climb and follow more states, in turns."""
        relaxation = Relaxation(self.flow, self.video)
        climb = (CompiledClimb if self.backend == "native" else Climb)(relaxation, self.when)
        stage, factor, sweeping = 0, float(_WIDER), np.inf
        while not self._is_closed():
            self._climb(climb, stage, factor * sweeping)
            if self._is_closed():
                break
            if self.width:
                factor = min(factor, 0.8 * self._time_left() / max(sweeping, 1e-3), self.beam.widest / self.width)
                if factor < 0.5:
                    break
            known = self.cost
            sweeping = self._sweep(climb.completions(), int(factor * self.width) or _WIDTH)
            factor = _WIDER if self.cost < known else _MUCH_WIDER
            stage += 1

    def _time_left(self) -> float:
        return self.ends - time.monotonic()

    def _is_closed(self) -> bool:
        return not self.lower < self.cost - self.rounding

    def _answer(self) -> Answer:
        if self.cost == np.inf and self.lower < np.inf:
            raise TooLargeError(
                f"no alignment was found in {self.seconds:g} s, nor shown to be impossible: raise time_limit, add "
                "order between steps, or forbid less"
            )
        gap = 0.0 if self._is_closed() else self.cost - self.lower
        counts = {"beam": self.width, "rounds": self.n_rounds, "expanded": self.n_expanded}
        return _searched(self.cost, self.labels, gap, **counts)

    # -- the lower bound ----------------------------------------------------------------------------------------

    def _climb(self, climb: Climb | CompiledClimb, stage: int, sweep: float) -> None:
        """Change the multipliers to raise the bound, before a sweep of some seconds; at first, try what they tell."""
        seconds = _CLIMB_SHARE * self._time_left()
        if stage >= len(_ROUNDS):
            seconds = min(seconds, _SWEEP_SHARE * sweep)
        until = time.monotonic() + seconds
        enough = _ENOUGH * (self.cost - self.lower)
        climb.start()
        for _ in range(_ROUNDS[min(stage, len(_ROUNDS) - 1)] // _TRY):
            target = self.cost if self.cost < np.inf else self.lower + 0.05 * (abs(self.lower) + self.rounding)
            rounds, is_legal = climb.run(_TRY, target, self.rounding)
            self.n_rounds += rounds
            self.lower = max(self.lower, climb.bound)
            if self._is_closed():
                break
            if stage == 0:
                self._take(*_in_one_order(self.flow, self.video, climb.when))
            elif self.cost - climb.bound < enough:
                break
            if self._is_closed() or (rounds < _TRY and not is_legal) or time.monotonic() > until:
                break

    # -- the upper bound ----------------------------------------------------------------------------------------

    def _take(self, cost: float, labels: Labels | None) -> None:
        if cost < self.cost:
            self.cost, self.labels = cost, labels

    def _sweep(self, bounds: Completions, width: int) -> float:
        """Send a beam over the video and take what it finds and proves; return the seconds it took."""
        began = time.monotonic()
        swept = self.beam.sweep(bounds, self.cost - self.rounding, width)
        self.width = width
        self.n_expanded += swept.expanded
        self._take(swept.cost, swept.labels)
        self.lower = max(self.lower, min(self.cost, swept.dropped))
        return time.monotonic() - began


# -- alternatives -----------------------------------------------------------------------------------------------


class _Choice:
    """Alternatives: a choice of branches that is good, and how far from the best it can be.

    Where all branches may be shown or left out freely, the cheapest alignment costs at most what the best choice does:
    that is the bound. It says which branches the video seems to show; they are chosen, and then changed one by one as
    long as that helps and there is time.
    """

    def __init__(self, flow: FlowGraph, costs: ClipCosts, resources: Resources) -> None:
        self.flow, self.costs, self.resources = flow, costs, resources
        self.seconds = resources.time_limit or TIME_LIMIT
        self.ends = time.monotonic() + self.seconds
        self.in_group = sorted({step for group in flow.alternatives for branch in group for step in branch})

    def run(self) -> Answer:
        steps = np.arange(len(self.flow))
        free = np.full(len(steps), np.inf) if self.costs.skip is None else self.costs.skip.copy()
        free[self.in_group] = np.minimum(free[self.in_group], 0.0)
        relaxed = self._plain(steps, free, self.seconds / 3)
        lower = relaxed.cost - relaxed.gap
        if not np.isfinite(lower):
            return Answer(np.inf, None, 0.0, {"method": "anytime", "gap": 0.0})
        chosen = self._shown(relaxed.labels)
        best = self._with(chosen)
        better = True
        while better and best.cost > lower and time.monotonic() < self.ends:
            better = False
            for number, group in enumerate(self.flow.alternatives):
                for branch in range(len(group)):
                    if branch == chosen[number] or time.monotonic() >= self.ends:
                        continue
                    other = [*chosen[:number], branch, *chosen[number + 1 :]]
                    found = self._with(other)
                    if found.cost < best.cost:
                        best, chosen, better = found, other, True
        if best.labels is None:
            raise TooLargeError(
                f"no choice of alternatives with an alignment was found in {self.seconds:g} s: raise time_limit, or "
                "choose some of them"
            )
        taken = [list(group[at]) for group, at in zip(self.flow.alternatives, chosen, strict=True)]
        return _searched(best.cost, best.labels, max(best.cost - lower, 0.0), branches=taken)

    def _shown(self, labels: Labels | None) -> list[int]:
        """Return the branch of each group that an alignment shows best: that saves most against background."""
        saved = np.zeros(len(self.flow) + 1)
        if labels is not None:
            shown = np.flatnonzero(labels >= 0)
            drop = self.costs.drop[shown]
            gain = np.where(np.isfinite(drop), drop - self.costs.match[labels[shown], shown], 1.0)
            np.add.at(saved, labels[shown], gain)
        return [
            max(range(len(group)), key=lambda at: (saved[list(group[at])].sum(), -at))
            for group in self.flow.alternatives
        ]

    def _with(self, chosen: list[int]) -> Answer:
        """Align with one branch of each group taken; what that shows, and what it costs."""
        taken = {step for group, at in zip(self.flow.alternatives, chosen, strict=True) for step in group[at]}
        steps = np.array([step for step in range(len(self.flow)) if step in taken or step not in self.in_group])
        skip = None if self.costs.skip is None else self.costs.skip[steps]
        return self._plain(steps, skip, max(self.ends - time.monotonic(), 1e-3))

    def _plain(self, steps: Any, skip: Any, seconds: float) -> Answer:
        """Align some of the steps, in the order that holds among them: exactly, or by a search."""
        place = {int(step): at for at, step in enumerate(steps)}
        edges = [(place[a], place[b]) for a in place for b in bits(self.flow.descendants[a]) if b in place]
        flow = FlowGraph.from_edges([str(step) for step in steps], edges).transitive_reduction()
        costs = ClipCosts(np.ascontiguousarray(self.costs.match[steps]), self.costs.drop, skip)
        found = solve_quickly(flow, costs, self.resources._replace(time_limit=seconds))
        if found.labels is None:
            return found
        return found._replace(labels=np.append(steps, BACKGROUND)[found.labels])
