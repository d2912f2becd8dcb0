"""Does a video follow its procedure? Steps that it leaves out, does too late, or returns to.

The evidence is aligned anew with the order left open: a step may be left out, and it may be returned to, also after
something that had to wait for it. So every deviation has a price, and is reported where the evidence outweighs it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid import __version__
from graph2vid.alignment import Alignment, ClipSegment, align, align_many
from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph
from graph2vid.grounding.result import Grounding
from graph2vid.grounding.times import format_time

Kind = Literal["skipped", "out of order", "repeated"]
Costs64 = NDArray[np.float64]

SKIP, REPEAT, LEAST_CERTAINTY = 0.0, 6.0, 0.9
"""By default: the price of leaving a step out and of returning to one, and how sure a deviation is at the least."""


@dataclass(frozen=True)
class Deviation:
    """One way in which a video does not follow its procedure.

    Attributes
    ----------
    kind : {"skipped", "out of order", "repeated"}
    step : int
        The step that is left out, done too late, or done again.
    after : int or None
        Out of order: the step that was done before, although it had to wait for this one.
    start, end : float or None
        When the step is done, in seconds; None if it is left out.
    margin : float
        How much more the best explanation without this deviation costs, in units of the evidence; may be +∞.
    certainty : float
        1 / (1 + exp(-margin / gamma)): the odds of the best explanation with it against the best without. Of a step
        done again the margin counts less log(clips): one run more might be anywhere, so noise looks like it somewhere.
    """

    kind: Kind
    step: int
    after: int | None
    start: float | None
    end: float | None
    margin: float
    certainty: float


@dataclass(frozen=True, eq=False)
class OrderCheck:
    """What a check found.

    Attributes
    ----------
    flow : FlowGraph
        The procedure.
    deviations : tuple of Deviation
        In order of time, what is left out last.
    alignment : Alignment
        The alignment with the order left open.
    options : dict
        The prices used.
    """

    flow: FlowGraph
    deviations: tuple[Deviation, ...]
    alignment: Alignment
    options: dict[str, float]

    def describe(self, deviation: Deviation) -> str:
        """Say a deviation in words."""
        name = _name(self.flow, deviation.step)
        if deviation.kind == "skipped":
            return f"{name} is not shown"
        when = f"{format_time(deviation.start or 0.0)}–{format_time(deviation.end or 0.0)}"
        if deviation.after is None:
            return f"{name} is done again at {when}"
        return f"{name} is done at {when}, after {_name(self.flow, deviation.after)}, which had to wait for it"

    def to_json(self) -> dict[str, Any]:
        """Return the findings as a JSON document; steps by id, a margin without limit as null."""
        ids = self.flow.ids
        return {
            "format": "graph2vid-check",
            "version": 1,
            "graph2vid": __version__,
            "options": self.options,
            "deviations": [
                {
                    "kind": one.kind,
                    "step": ids[one.step],
                    "after": None if one.after is None else ids[one.after],
                    "start": one.start,
                    "end": one.end,
                    "margin": one.margin if math.isfinite(one.margin) else None,
                    "certainty": one.certainty,
                }
                for one in self.deviations
            ],
        }


def check_order(
    grounding: Grounding,
    *,
    skip: float = SKIP,
    repeat: float = REPEAT,
    certainty: float = LEAST_CERTAINTY,
    gamma: float = 1.0,
) -> OrderCheck:
    """Say where a video does not follow its procedure.

    Parameters
    ----------
    grounding : Grounding
        With its evidence, which ``ground`` and ``batch`` keep.
    skip : float
        The price of leaving a step out, in units of the evidence (nats, where that is log-odds). 0: a step is shown
        where more speaks for it than against it.
    repeat : float
        The price of returning to a step, at least 0; a step that is done too late costs both.
    certainty : float
        How sure a deviation must be to be reported, 0.5 … 1.
    gamma : float
        What margins are divided by for certainties; more is less sure.

    Returns
    -------
    OrderCheck
    """
    if grounding.evidence is None:
        raise InputError("the result has no evidence: ground the video again with this version of graph2vid")
    return find_deviations(
        grounding.flow,
        grounding.evidence,
        grounding.clip_seconds,
        grounding.offset,
        skip=skip,
        repeat=repeat,
        certainty=certainty,
        gamma=gamma,
    )


def find_deviations(
    flow: FlowGraph,
    evidence: ArrayLike,
    clip_seconds: float = 1.0,
    offset: float = 0.0,
    *,
    skip: float = SKIP,
    repeat: float = REPEAT,
    certainty: float = LEAST_CERTAINTY,
    gamma: float = 1.0,
    threads: int | None = None,
) -> OrderCheck:
    """Do the same from evidence [K, N]: by how much each step explains each clip better than background does."""
    for name, value, low, high in (
        ("skip", skip, -math.inf, math.inf),
        ("repeat", repeat, 0.0, math.inf),
        ("certainty", certainty, 0.5, 1.0),
    ):
        if not (low <= value <= high and math.isfinite(value)):
            raise InputError(f"{name} must be a finite number from {low:g} to {high:g}, not {value!r}")
    if not 0 < gamma < math.inf:
        raise InputError(f"gamma must be a finite number above 0, not {gamma!r}")
    search = _Search(flow, np.asarray(evidence, np.float64), float(skip), float(repeat), threads)
    found = search.deviations()
    deviations = []
    for (kind, step, after, run), margin in zip(found, search.margins(found), strict=True):
        places = search.match.shape[1] if kind == "repeated" else 1
        sure = 1.0 / (1.0 + math.exp(-min((margin - math.log(places)) / gamma, 700.0)))
        if sure < certainty:
            continue
        start = None if run is None else offset + run.start * clip_seconds
        end = None if run is None else offset + run.stop * clip_seconds
        deviations.append(Deviation(kind, step, after, start, end, margin, sure))
    deviations.sort(key=lambda one: (one.start is None, one.start or 0.0, one.step))
    options = {"skip": skip, "repeat": repeat, "certainty": certainty, "gamma": gamma}
    return OrderCheck(flow, tuple(deviations), search.found, options)


_Found = tuple[Kind, int, int | None, ClipSegment | None]


class _Search:
    """The alignment with the order left open, and what it would cost otherwise."""

    def __init__(self, flow: FlowGraph, evidence: Costs64, skip: float, repeat: float, threads: int | None) -> None:
        self.flow = flow
        # Of a clip that must show a step it is only known which steps it may show.
        forced = np.isposinf(evidence).any(axis=0)
        self.match = np.where(np.isposinf(evidence), 0.0, -evidence)
        self.skip = np.full(len(flow), skip)
        # Beyond what any alignment costs otherwise, so that what costs this much is done only where it must be.
        finite = np.abs(self.match[np.isfinite(self.match)])
        self.huge = 2.0 * (float(finite.sum()) + abs(skip) * len(flow) + repeat * evidence.shape[1] + 1.0)
        self.drop = np.where(forced, self.huge, 0.0)
        self.repeat = repeat
        self.threads = threads
        self.found = align(flow, self.match, self.drop, self.skip, repeat=repeat, threads=threads)

    def deviations(self) -> list[_Found]:
        """Return what the alignment shows: kind, step, the step before which it had to come, and its run."""
        flow, ancestors = self.flow, self.flow.sure.ancestors
        found: list[_Found] = []
        shown: list[int] = []
        for run in self.found.segments:
            waited = [step for step in shown if ancestors[step] >> run.step & 1]
            if run.step in shown:
                found.append(("repeated", run.step, None, run))
            elif waited:
                found.append(("out of order", run.step, waited[0], run))
            if run.step not in shown:
                shown.append(run.step)
        needed = set(range(len(flow))) - set(flow.optional)
        for group in flow.alternatives:
            taken = [branch for branch in group if set(branch) & set(shown)] or [group[0]]
            needed -= {step for branch in group if branch not in taken for step in branch}
        return found + [("skipped", step, None, None) for step in sorted(needed - set(shown))]

    def _instead(self, step: int) -> list[int]:
        """Return what must not be left out either for a step to be done: the branches beside its own."""
        for group in self.flow.alternatives:
            members = [other for branch in group for other in branch]
            if step in members and not set(members) & set(self.found.order):
                return members
        return [step]

    def margins(self, found: Sequence[_Found]) -> list[float]:
        """Return how much more the best alignment without each deviation costs."""
        asked: list[tuple[int, Costs64, Costs64, Costs64]] = []
        for number, (kind, step, _, run) in enumerate(found):
            if kind != "repeated":  # done in its place
                dear = self.skip.copy()
                dear[self._instead(step) if kind == "skipped" else [step]] = self.huge
                asked.append((number, self.match, self.drop, dear))
            if kind == "skipped" or run is None:
                continue
            # Not done there; or, of what is done again, not before; or all the time since then.
            for span in [slice(run.start, run.stop), slice(run.start)] if kind == "repeated" else [slice(None)]:
                without = self.match.copy()
                without[step, span] = np.inf
                asked.append((number, without, self.drop, self.skip))
            if kind == "repeated":
                since = max(other.stop for other in self.found.segments if other.step == step and other.stop < run.stop)
                match, drop = self.match.copy(), self.drop.copy()
                match[np.arange(len(match)) != step, since : run.start] = drop[since : run.start] = self.huge
                asked.append((number, match, drop, self.skip))
        margins = [math.inf] * len(found)
        if not asked:
            return margins
        numbers, matches, drops, skips = zip(*asked, strict=True)
        others = align_many(
            self.flow,
            matches,
            drops,
            skips,
            repeats=self.repeat,
            cost_only=True,
            threads=self.threads,
        )
        for number, other in zip(numbers, others, strict=True):
            more = other.cost - self.found.cost
            if more < self.huge / 2:
                margins[number] = min(margins[number], max(more, 0.0))
        return margins


def _name(flow: FlowGraph, step: int) -> str:
    text = flow.texts[step]
    return f"step {flow.ids[step]}" if text == flow.ids[step] else f"step {flow.ids[step]} ({text})"
