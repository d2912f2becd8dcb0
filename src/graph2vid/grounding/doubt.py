"""Doubt that shows: segments that cannot be relied on, and edges of the flow graph that fight the evidence."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.alignment import Alignment, Problem
from graph2vid.errors import InfeasibleError, TooLargeError
from graph2vid.flow import FlowGraph, counted
from graph2vid.grounding.times import format_time

Floats = NDArray[np.float64]
Edge = tuple[int, int]

LIKELY = 0.5
"""A segment of one clip must be likelier than this not to be doubtful."""

LEAST_GAIN = 8.0
"""In units of cost: what gains less is not worth a question (on narration it is noise)."""

MOST_PLACES = 8
"""Steps that are looked for elsewhere."""

MOST_NAMED = 3
"""Edges that are named."""

MOST_RELAXED = 5
"""Edges that are dropped."""

_NOTHING = 1.0  # in units of cost: where background explains every clip better by this, nothing speaks for the step

SECONDS = 2.0
"""For the gains of all edges of a procedure; those that the evidence contradicts most come first."""


@dataclass(frozen=True)
class Conflict:
    """An edge of the flow graph that fights the evidence.

    Attributes
    ----------
    before, after : int
        The steps of the edge.
    gain : float
        How much less the best alignment costs without the edge.
    relieved : int
        How many doubtful segments fewer there are without it.
    """

    before: int
    after: int
    gain: float
    relieved: int = 0

    def to_json(self, flow: FlowGraph) -> dict[str, Any]:
        """Return the edge by the ids of its steps, and the numbers."""
        return {
            "before": flow.ids[self.before],
            "after": flow.ids[self.after],
            "gain": round(self.gain, 4),
            "relieved": self.relieved,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], flow: FlowGraph) -> Conflict:
        """Read what :meth:`to_json` wrote."""
        before, after = (flow.index(str(value.get(key))) for key in ("before", "after"))
        return cls(before, after, float(value.get("gain", 0.0)), int(value.get("relieved", 0)))

    def question(self, flow: FlowGraph) -> str:
        """Return what to ask: is the edge right?"""
        few = f" and leaves {counted(self.relieved, 'step')} in doubt" if self.relieved else ""
        return f"{flow.ids[self.before]} before {flow.ids[self.after]} costs {self.gain:.1f}{few}: is it right?"


def reasons(
    found: Alignment,
    odds: Floats,
    confidences: Sequence[float | None],
    posteriors: Sequence[float | None],
    least: float,
) -> list[str]:
    """Return for each segment why it is doubtful; an empty string where it is not.

    Parameters
    ----------
    found : Alignment
    odds : float64 [K, N]
        By how much each step explains each clip better than background does.
    confidences, posteriors : sequence of float or None
        Of each segment: calibrated, and not; None where it is not known.
    least : float
        The confidence below which a segment is doubtful.
    """
    told, forced = [], forced_steps(odds, found.labels)
    for part, sure, raw in zip(found.segments, confidences, posteriors, strict=True):
        why = []
        if sure is not None and sure < least:
            why.append(f"a confidence below {least:.0%}")
        if forced[part.step]:
            why.append("placed here only by the order, or because it must be shown")
        likely = sure if sure is not None else raw
        if part.stop - part.start == 1 and len(found.labels) > 1 and (why or (likely is not None and likely < LIKELY)):
            why.append("one clip long")
        told.append("; ".join(why))
    return told


def conflicts(problem: Problem, found: Alignment, seconds: float = SECONDS) -> tuple[list[Conflict], bool]:
    """Return what dropping each certain edge would gain, the most first, and whether all of them were tried.

    Each is exact: the procedure is aligned without the edge. Edges that others imply gain nothing and are left out.

    Parameters
    ----------
    problem : Problem
    found : Alignment
        Its answer.
    seconds : float
        After which no further edge is tried.
    """
    flow = problem.flow
    certain = [edge for edge in flow.transitive_reduction().edges if flow.confidence.get(edge, 1.0) == 1.0]
    place = log_odds(problem).argmax(axis=1)
    certain.sort(key=lambda edge: int(place[edge[1]] - place[edge[0]]))  # the most contradicted first
    gains, began = [], time.monotonic()
    for edge in certain:
        left = seconds - (time.monotonic() - began)
        if left <= 0:
            break
        try:
            other = problem.with_flow(_cut(flow, edge)).align("exact", cost_only=True, time_limit=left)
        except (TooLargeError, InfeasibleError):
            continue
        gains.append(Conflict(*edge, max(found.cost - other.cost, 0.0)))
    return sorted(gains, key=lambda one: -one.gain), len(gains) == len(certain)


def weak(found: Alignment, odds: Floats) -> int:
    """Return how many steps have no evidence where they are shown, or are not shown at all."""
    return len(found.skipped) + int(forced_steps(odds, found.labels).sum())


def forced_steps(odds: NDArray[np.floating[Any]], labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each step whether a single clip elsewhere speaks more for it than all that is said to show it.

    So is a step for which nothing speaks where it is shown.

    Parameters
    ----------
    odds : [..., K, N]
        By how much each step explains each clip better than background does; of one video, or of several of one length.
    labels : int64 [..., N]

    Returns
    -------
    bool [..., K]
    """
    here = labels[..., np.newaxis, :] == np.arange(odds.shape[-2])[:, np.newaxis]
    peak, elsewhere = (np.where(there, odds, -np.inf).max(axis=-1, initial=-np.inf) for there in (here, ~here))
    total = np.maximum(np.where(here, odds, 0.0).sum(axis=-1), peak)
    forced: NDArray[np.bool_] = here.any(axis=-1) & ((total < elsewhere) | (peak < -_NOTHING))
    return forced


def order_slivers(problem: Problem, found: Alignment) -> list[bool]:
    """Tell which segments are not shown at all: one clip long, and there only because the order forces them.

    What a constraint pins is shown.
    """
    forced = forced_steps(log_odds(problem), found.labels)
    is_long = len(found.labels) > 1
    return [
        is_long and part.stop - part.start == 1 and bool(forced[part.step]) and part.step not in problem.pinned
        for part in found.segments
    ]


def relax(problem: Problem, found: Alignment, most: int = MOST_RELAXED) -> tuple[Problem, Alignment, list[Conflict]]:
    """Drop the certain edges that fight the evidence, the worst first, each after those before it were dropped.

    Tried are each edge with all that follows from it alone, and each step with all that enters or leaves it. Of what
    is dropped, all that the video honours all the same is kept.

    Parameters
    ----------
    problem : Problem
    found : Alignment
        Its answer.
    most : int
        How many edges are dropped at most.

    Returns
    -------
    problem, found : Problem, Alignment
        Without these edges.
    dropped : list of Conflict
    """
    odds, began = log_odds(problem), time.monotonic()
    dropped: list[Conflict] = []
    while len(dropped) < most and (before := weak(found, odds)):
        flow = problem.flow
        certain = flow.sure.transitive_reduction().edges
        loose = [_cut(flow, edge) for edge in certain]
        loose += [_freed(flow, step) for step in sorted({*chain.from_iterable(certain)} - problem.pinned)]
        best = found
        for other in loose:
            left = SECONDS - (time.monotonic() - began)
            if left <= 0:
                break
            with suppress(TooLargeError, InfeasibleError):
                best = min(best, problem.with_flow(other).align("exact", time_limit=left), key=lambda one: one.cost)
        violated = inverted(certain, best)
        if found.cost - best.cost < LEAST_GAIN or not violated:
            break
        problem = problem.with_flow(without_edges(flow, inverted(flow.sure.transitive_closure().edges, best)))
        then = problem.align()
        relieved = max(before - weak(then, odds), 0)
        dropped += [Conflict(*edge, found.cost - then.cost, relieved) for edge in violated]
        found = then
    return problem, found, dropped


def inverted(edges: Iterable[Edge], found: Alignment) -> list[Edge]:
    """Return the pairs of which both steps are shown, the second one first."""
    place = {step: number for number, step in enumerate(found.order)}
    return [(a, b) for a, b in edges if a in place and b in place and place[b] < place[a]]


def _cut(flow: FlowGraph, edge: Edge) -> FlowGraph:
    """Return a flow graph without an edge, and without what follows from it alone."""
    return flow.with_edges({other: sure for other, sure in flow.confidence.items() if other != edge})


def without_edges(flow: FlowGraph, edges: Iterable[Edge]) -> FlowGraph:
    """Return a flow graph without some of its edges; certain order that followed from them by others is kept."""
    gone = {*edges}
    certain = [edge for edge in flow.sure.transitive_closure().edges if edge not in gone]
    kept = flow.with_edges(dict.fromkeys(certain, 1.0)).transitive_reduction().confidence
    return flow.with_edges(
        {edge: sure for edge, sure in flow.confidence.items() if sure < 1.0 and edge not in gone} | {**kept}
    )


def _freed(flow: FlowGraph, step: int) -> FlowGraph:
    """Return a flow graph in which a step may come anywhere."""
    return without_edges(flow, [edge for edge in flow.transitive_closure().edges if step in edge])


def overruled(flow: FlowGraph, found: Alignment) -> tuple[Edge, ...]:
    """Return the soft edges that an alignment shows the other way round."""
    edges = flow.transitive_reduction().confidence.items()
    return tuple(inverted((edge for edge, sure in edges if sure < 1.0), found))


def suspend(problem: Problem, found: Alignment) -> tuple[Problem, Alignment, tuple[int, ...]]:
    """Suspend what is guessed of pinned steps that stand against the guess, and align again.

    A correction is a fact. Were the guesses about its step kept, the other steps would be drawn to where they would be
    if the step were in its place.

    Returns
    -------
    problem, found : Problem, Alignment
    moved : tuple of int
        The pinned steps that are shown in another order than guessed.
    """
    if problem.order is None or not problem.pinned:
        return problem, found, ()
    guesses = inverted(zip(*(ends.tolist() for ends in np.nonzero(problem.order)), strict=True), found)
    moved = tuple(sorted(step for step in problem.pinned if any(step in pair for pair in guesses)))
    if not moved:
        return problem, found, ()
    problem = problem.with_flow(_unguessed(problem.flow, moved))
    return problem, problem.align(), moved


def free_hidden(problem: Problem, found: Alignment, most: int = MOST_RELAXED) -> tuple[Problem, Alignment]:
    """Free steps of guesses that hide them: those that are missing, or there by the order alone, but clear elsewhere.

    The guessed order charges for each pair of steps, so that one step that moved far may cost more than all that speaks
    for it. A step that gains at least :data:`LEAST_GAIN` by being free is freed, the one that gains most first;
    tried are those for which most speaks anywhere.
    """
    if problem.order is None:
        return problem, found
    odds = log_odds(problem)
    for _ in range(most):
        hidden = {*found.skipped, *np.flatnonzero(forced_steps(odds, found.labels)).tolist()} - problem.pinned
        clearest = sorted(hidden, key=lambda step: (-_most_gained(odds[step]), step))[:MOST_RELAXED]
        free = [problem.with_flow(_unguessed(problem.flow, [step])) for step in clearest]
        loose = [other for other in free if len(other.flow.edges) < len(problem.flow.edges)]
        best = min(((other, other.align()) for other in loose), key=lambda one: one[1].cost, default=None)
        if best is None or found.cost - best[1].cost < LEAST_GAIN:
            break
        problem, found = best
    return problem, found


def _most_gained(odds: Floats) -> float:
    """Return the largest sum of the log-odds of neighbouring clips."""
    sums = np.concatenate([[0.0], np.cumsum(np.clip(odds, -1e9, 1e9))])
    return float((sums - np.minimum.accumulate(sums)).max())


def _unguessed(flow: FlowGraph, steps: Iterable[int]) -> FlowGraph:
    """Return a flow graph without the soft edges of some steps."""
    gone = {*steps}
    return flow.with_edges(
        {edge: sure for edge, sure in flow.confidence.items() if sure == 1.0 or not gone.intersection(edge)}
    )


@dataclass(frozen=True)
class Elsewhere:
    """Another place where a step may be, the order left open.

    Attributes
    ----------
    step : int
    start, end : float
        Seconds, or clips.
    gain : float
        How much less the best alignment costs with the step there.
    against : tuple of (int, int)
        Edges that stand against it, certain or guessed.
    """

    step: int
    start: float
    end: float
    gain: float
    against: tuple[Edge, ...] = ()

    def question(self, flow: FlowGraph) -> str:
        """Return what to ask, in seconds: is the step there?"""
        name = f"step {self.step + 1} may be at {format_time(self.start)} instead"
        pairs = ", ".join(f"{flow.ids[a]} before {flow.ids[b]}" for a, b in self.against[:MOST_NAMED])
        more = f" and {len(self.against) - MOST_NAMED} more" if len(self.against) > MOST_NAMED else ""
        return f"{name}, against {pairs}{more}" if pairs else name

    def to_json(self, flow: FlowGraph) -> dict[str, Any]:
        """Return the place with steps by their ids."""
        against = [[flow.ids[a], flow.ids[b]] for a, b in self.against]
        span = {"start": self.start, "end": self.end, "gain": round(self.gain, 4)}
        return {"step": flow.ids[self.step], **span, "against": against}


def elsewhere(problem: Problem, found: Alignment, steps: Iterable[int]) -> list[Elsewhere]:
    """Return for each of some steps where it may be if the order is left open, in clips, if anything speaks for it.

    Each is exact: the procedure is aligned with that step free to come anywhere. The :data:`MOST_PLACES` steps for
    which most speaks anywhere are looked for.

    Parameters
    ----------
    problem : Problem
    found : Alignment
        Its answer.
    steps : iterable of int
    """
    odds, places = log_odds(problem), []
    here = {segment.step: segment for segment in found.segments}
    free = {*steps} - problem.pinned
    for step in sorted(free, key=lambda step: (-_most_gained(odds[step]), step))[:MOST_PLACES]:
        try:
            other = problem.with_flow(_freed(problem.flow, step)).align()
        except (TooLargeError, InfeasibleError):
            continue
        gain, now = found.cost - other.cost, here.get(step)
        for segment in (one for one in other.segments if one.step == step):
            if gain >= LEAST_GAIN and (now is None or segment.stop <= now.start or now.stop <= segment.start):
                edges = problem.flow.transitive_reduction().edges  # in all pairs nobody would see the few that count
                against = tuple(edge for edge in inverted(edges, other) if step in edge)
                places.append(Elsewhere(step, segment.start, segment.stop, gain, against))
    return places


def log_odds(problem: Problem) -> Floats:
    """Return by how much each step explains each clip better than background does, [K, N]."""
    with np.errstate(invalid="ignore"):  # forbidden both ways: ∞ - ∞
        odds = problem.costs.drop.astype(np.float64) - problem.costs.match.astype(np.float64)
    return np.nan_to_num(odds, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
