"""Doubt that shows: segments that cannot be relied on, and edges of the flow graph that fight the evidence."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.alignment import Alignment, Problem
from graph2vid.errors import InfeasibleError, TooLargeError
from graph2vid.flow import FlowGraph, counted

Floats = NDArray[np.float64]
Edge = tuple[int, int]

LIKELY = 0.5
"""A segment of one clip must be likelier than this not to be doubtful."""

LEAST_GAIN, LEAST_RELIEVED = 10.0, 2
"""In units of cost, and steps: an edge whose removal gains less is not worth a question (on narration it is noise)."""

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
            other = without(problem, edge).align("exact", cost_only=True, time_limit=left)
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


def relax(problem: Problem, found: Alignment, most: int = MOST_RELAXED) -> tuple[Problem, Alignment, list[Conflict]]:
    """Drop the edges that fight the evidence, the worst first, each after those before it were dropped.

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
    odds = log_odds(problem)
    dropped: list[Conflict] = []
    while len(dropped) < most and (before := weak(found, odds)):
        gains = conflicts(problem, found)[0]
        if not gains or gains[0].gain < LEAST_GAIN:
            break
        worst = gains[0]
        other = without(problem, (worst.before, worst.after))
        then = other.align()
        if before - weak(then, odds) < LEAST_RELIEVED:
            break
        dropped.append(replace(worst, relieved=before - weak(then, odds)))
        problem, found = other, then
    return problem, found, dropped


def without(problem: Problem, *edges: Edge) -> Problem:
    """Return the problem without some edges of its flow graph."""
    costs = problem.costs
    return Problem(
        without_edges(problem.flow, edges),
        costs.match,
        costs.drop,
        costs.skip,
        problem.repeat,
        problem.durations,
        problem.violation,
        (),
        problem.contiguous,
    )


def without_edges(flow: FlowGraph, edges: Sequence[Edge]) -> FlowGraph:
    """Return a flow graph without some of its edges."""
    kept = {edge: sure for edge, sure in flow.confidence.items() if edge not in edges}
    return replace(flow, edges=tuple(kept), confidences=tuple(kept.values()))


def log_odds(problem: Problem) -> Floats:
    """Return by how much each step explains each clip better than background does, [K, N]."""
    with np.errstate(invalid="ignore"):  # forbidden both ways: ∞ - ∞
        odds = problem.costs.drop.astype(np.float64) - problem.costs.match.astype(np.float64)
    return np.nan_to_num(odds, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
