"""Alignment of procedures with too many ideals: a good answer at any time, and how far from the best it can be.

A relaxation (:mod:`graph2vid.alignment.relaxed`) says from every point of the video on what the rest costs at the
least; a beam over ideals, guided by that, finds alignments, and the least bound of
what it had no room for is a lower bound of the whole. Between the sweeps the multipliers of the relaxation climb, it
keeps the steps that were most often shown twice, not at all or out of order, and the beam widens, until both bounds
meet or the time is up.
"""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from graph2vid._stopping import Watch, watched
from graph2vid.alignment.alignment_result import BACKGROUND, Labels
from graph2vid.alignment.backends import Resources, memory_bound, solve_plain
from graph2vid.alignment.clip_costs import ClipCosts
from graph2vid.alignment.relaxed import Beam, Completions, Costs64, Relaxation, Video
from graph2vid.errors import TooLargeError
from graph2vid.flow import FlowGraph, bits
from graph2vid.tsort import TSortGraph, flags_of, sections, words_of

EXACT_UPDATES = 2**36
"""States × clips up to which ``method=None`` is exact: a minute or two of one processor."""

TIME_LIMIT = 30.0
"""Seconds that a search takes at the most, unless told otherwise; where its bounds meet it ends at once."""

_MEMORY = 2 << 30  # bytes, unless told otherwise
_KEPT_IDEALS = (32, 128, 512, 2048, 8192)  # of the kept steps, from stage to stage
_SLOW = 16  # how much sooner than elsewhere an exact answer counts as slow, where several are needed
_CLIMBS = 50  # times that multipliers are changed in a stage, at the most
_CLIMB_SHARE = 0.2  # of the time that is left, at the most, for the multipliers of one stage
_CALLS = 200  # ideals that take as long as what solving a relaxation costs besides
_PATIENCE = 5  # changes without a better bound after which they become smaller
_WIDTH = 256  # states that the first sweep follows
_WIDER = 4  # how much wider each sweep is than the one before
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
        return _Search(flow, costs, contiguous, resources.time_limit or TIME_LIMIT, memory).run()
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


def split(flow: FlowGraph) -> FlowGraph:
    """Add steps between parts of a procedure of which all of one come before all of the other.

    They are comparable with all other steps: whether they are done says which part the video has come to.
    """
    parts = [list(bits(section)) for section in sections(flow, (1 << len(flow)) - 1)]
    edges, n_steps = list(flow.edges), len(flow)
    for part, following in pairwise(parts):
        if min(len(part), len(following)) > 1:  # a part of one step is such a step itself
            edges += [(step, n_steps) for step in part] + [(n_steps, step) for step in following]
            n_steps += 1
    return FlowGraph.from_edges([str(step) for step in range(n_steps)], edges)


def _in_one_order(flow: FlowGraph, costs: ClipCosts, contiguous: bool) -> tuple[float, Labels | None]:
    """Align in one legal order: of the steps that are ready, the one comes first that has its best clip first."""
    clip = np.argmin(costs.match - costs.drop if np.isfinite(costs.drop).all() else costs.match, axis=1)
    ranked = np.argsort(clip, kind="stable").tolist()
    place = {step: at for at, step in enumerate(ranked)}
    by_clip = FlowGraph.from_edges([flow.steps[step] for step in ranked], [(place[a], place[b]) for a, b in flow.edges])
    order = [ranked[at] for at in by_clip.topological_order]
    chain = TSortGraph.compile(FlowGraph.chain([flow.steps[step] for step in order]))
    in_order = ClipCosts(costs.match[order], costs.drop, None if costs.skip is None else costs.skip[order])
    cost, labels = solve_plain(chain, in_order, contiguous, False, Resources.check(workers=1))
    return cost, None if labels is None else np.append(order, BACKGROUND)[labels]


class _Search:
    """One search, with what it knows so far."""

    def __init__(self, flow: FlowGraph, costs: ClipCosts, contiguous: bool, seconds: float, memory: int) -> None:
        self.seconds, self.flow = seconds, split(flow)
        n_real, n_clips = costs.match.shape
        n_steps = len(self.flow)
        # What split() added is never shown, and free to skip.
        match, skip = np.full((n_steps, n_clips), np.inf), np.zeros(n_steps)
        match[:n_real] = costs.match
        skip[:n_real] = np.inf if costs.skip is None else costs.skip
        self.video = Video(match, costs.drop.astype(np.float64), skip, contiguous)
        self.beam = Beam(self.flow, self.video)
        self.ends = time.monotonic() + seconds
        # One half for the bounds, one for the beam.
        self.most_ideals = memory // 2 // (8 * (n_clips + 1) * (n_steps + 1)) - 1
        self.widest = self.beam.widest(memory // 2)
        if self.most_ideals < 1 or self.widest < _WIDTH:
            raise TooLargeError(
                f"{n_real} steps and {n_clips:,} clips need more memory than the bound of {memory / 2**20:,.1f} MiB, "
                "even for a search that is not exact: raise memory_limit, or use longer clips"
            )
        self.before = flags_of(words_of(self.flow.descendants, n_steps), n_steps)
        self.rounding = _ROUNDING * self.video.size()
        # To have something: the cheapest alignment in an order that suits the video, and what each clip costs at least.
        self.cost, self.labels = _in_one_order(flow, costs, contiguous)
        if self.labels is not None:
            self.cost = self.video.cost(self.labels)
        least = np.minimum(self.video.match.min(axis=0), self.video.drop)
        self.lower = float(least.sum() + np.minimum(self.video.skip, 0.0).sum())
        self.multipliers = np.zeros(n_steps)
        # To begin with: steps that are comparable with all others split the procedure, and cost few ideals; then those
        # in the middle of much.
        earlier, later = self.before.sum(axis=0), self.before.sum(axis=1)
        self.trouble = np.where(earlier + later == n_steps - 1, 1.0, earlier * later / n_steps**2)
        self.width, self.n_kept = 0, 0

    def run(self) -> Answer:
        """Search until the bounds meet or the time is up."""
        with suppress(TimeoutError), watched(Watch(self._time_left())):
            self._search()
        return self._answer()

    def _search(self) -> None:
        """Keep more steps, let multipliers climb and follow more states, stage by stage; at last only the latter."""
        relaxation, bounds, solving, sweeping, width = Relaxation(self.flow, self.video, (), 1), None, 0.0, 0.0, _WIDTH
        for most_ideals in _KEPT_IDEALS:
            grown = self._keep_more(relaxation, min(most_ideals, self.most_ideals))
            if bounds is not None:
                more = (grown.n_ideals + _CALLS) / (relaxation.n_ideals + _CALLS)
                if grown.n_ideals == relaxation.n_ideals or more * solving > self._time_left() / 4:
                    break
            relaxation, bounds = grown, None  # the last tables go before the next ones come
            self.n_kept = len(relaxation.kept)
            bounds, solving = self._climb(relaxation)
            if not self._is_closed():
                sweeping = self._sweep(relaxation, bounds, width)
            if self._is_closed():
                return
            width = min(_WIDER * width, self.widest)
        assert bounds is not None
        while not self._is_closed():
            factor = min(_WIDER, 0.8 * self._time_left() / max(sweeping, 1e-3), self.widest / self.width)
            if factor < 1.5:
                break
            sweeping = self._sweep(relaxation, bounds, int(factor * self.width))

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
        return _searched(self.cost, self.labels, gap, beam=self.width, kept_steps=self.n_kept)

    # -- the lower bound ----------------------------------------------------------------------------------------

    def _keep_more(self, relaxation: Relaxation, most_ideals: int) -> Relaxation:
        """Return the relaxation that keeps all steps, or those too that make the most trouble, as far as they fit."""
        with suppress(TooLargeError):
            return Relaxation(self.flow, self.video, tuple(range(len(self.flow))), most_ideals)
        for step in np.argsort(-self.trouble, kind="stable").tolist():
            if self.trouble[step] > 0 and step not in relaxation.kept:
                with suppress(TooLargeError):
                    kept = sorted((*relaxation.kept.tolist(), step))
                    relaxation = Relaxation(self.flow, self.video, tuple(kept), most_ideals)
        return relaxation

    def _climb(self, relaxation: Relaxation) -> tuple[Completions, float]:
        """Change the multipliers to raise the bound; return the bounds at the best ones, and what a solution takes (s).

        Subgradient steps of Polyak's length: the multiplier of a step that is shown too often grows, of one
        not shown it shrinks.
        """
        until = time.monotonic() + _CLIMB_SHARE * self._time_left()
        best, best_multipliers, at, daring, idle = -np.inf, self.multipliers, self.multipliers, 1.0, 0
        others = np.setdiff1d(np.arange(len(self.flow)), relaxation.kept)
        found: Completions | None = None
        for number in range(_CLIMBS):
            began = time.monotonic()
            found = relaxation.solve(at, into=found)
            self.lower = max(self.lower, found.bound)
            solving = time.monotonic() - began
            if found.bound > best:
                best, best_multipliers, idle = found.bound, at, 0
            elif (idle := idle + 1) == _PATIENCE:
                daring, idle = daring / 2, 0
            if not np.isfinite(found.bound):
                break
            excess = self._learn_from(*relaxation.path(at, found), at)[others]
            if number == 0 and self.width == 0:
                self._sweep(relaxation, found, _WIDTH // 4)
            if self._is_closed() or not excess.any() or time.monotonic() + solving > until:
                break
            target = self.cost if self.cost < np.inf else found.bound + 0.05 * (abs(found.bound) + self.rounding)
            at = at.copy()
            at[others] += daring * (target - found.bound) / (excess @ excess) * excess
            at = np.maximum(at, -self.video.skip)
        assert found is not None
        self.multipliers = best_multipliers
        if at is not best_multipliers and not self._is_closed():
            found = relaxation.solve(best_multipliers, into=found)
        return found, solving

    def _learn_from(self, labels: Labels, order: list[int], multipliers: Costs64) -> Costs64:
        """Take a relaxed alignment that happens to be legal, note the trouble of others; return by how many
        segments each step is shown too often [K]."""
        n_steps, n_segments = len(self.flow), len(order)
        segments = np.bincount(np.array(order, np.int64), minlength=n_steps).astype(np.float64)
        first, last = np.full(n_steps, n_segments), np.full(n_steps, -1)
        first[order[::-1]] = np.arange(n_segments)[::-1]
        last[order] = np.arange(n_segments)
        out_of_order = self.before & (last[:, None] > first[None, :])
        skipped = multipliers + self.video.skip
        excess: Costs64 = segments - 1.0 + ((skipped < 0) | (skipped == 0) & (segments == 0))
        trouble = np.where((segments == 0) & np.isfinite(self.video.skip), 0.0, np.abs(segments - 1.0))
        trouble += out_of_order.sum(axis=0) + out_of_order.sum(axis=1)
        if not trouble.any() and (cost := self.video.cost(labels)) < self.cost:
            self.cost, self.labels = cost, labels
        self.trouble = 0.9 * self.trouble + trouble
        return excess

    # -- the upper bound ----------------------------------------------------------------------------------------

    def _sweep(self, relaxation: Relaxation, bounds: Completions, width: int) -> float:
        """Send a beam over the video and take what it finds and proves; return the seconds it took."""
        began = time.monotonic()
        swept = self.beam.sweep(relaxation, bounds, self.cost - self.rounding, width)
        self.width = width
        if swept.cost < self.cost:
            self.cost, self.labels = swept.cost, swept.labels
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
