"""Does a video follow its procedure? Steps that it leaves out, does out of order, or repeats.

The evidence is aligned anew with the order left open: a step may be left out; it may be repeated, also after something
that had to wait for it; and it may be done before what it has to wait for. So every deviation has a cost, and is
reported where the evidence outweighs it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid import __version__
from graph2vid._deprecated import renamed
from graph2vid._files import check_format
from graph2vid._options import CheckOptions, deal
from graph2vid.alignment import Alignment, ClipSegment, align, align_many
from graph2vid.errors import FormatError, InputError, TooLargeError
from graph2vid.flow import FlowGraph, counted
from graph2vid.grounding.grounding_result import Grounding
from graph2vid.grounding.step_count import StepCount, count_steps
from graph2vid.grounding.times import format_time

Kind = Literal["skipped", "out of order", "repeated"]
Costs64 = NDArray[np.float64]

KIND = "graph2vid-check"
VERSION = 1

_TINY = 1e-9
_MOST_TRIED = 3  # steps at a time, the most promising ones
_MOST_EARLY = 8  # steps that are done before what they wait for; each is looked for in the alignment with those before


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
        How much more the best explanation without this deviation costs, in units of the evidence; may be +∞, and
        negative where the explanation without it is the better one.
    certainty : float
        1 / (1 + exp(-margin / gamma)): the odds of the best explanation with it against the best without. Noise looks
        like a deviation somewhere: of a step done again the margin counts less log(clips), for one segment more might
        be anywhere; of one that another has overtaken less log(steps²), for any might be early, before any other.
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
        Those that are sure enough, in order of time, what is left out last.
    unsure : tuple of Deviation
        Those that are possible and not sure enough, likewise; every step that the procedure wants and the result does
        not show is here or among the deviations.
    count : StepCount
        How many steps are shown: those of the result that was checked.
    options : dict
        The costs used.
    alignment : Alignment or None
        The alignment with the order left open; None if the check was read from a file.
    """

    flow: FlowGraph
    deviations: tuple[Deviation, ...]
    unsure: tuple[Deviation, ...]
    count: StepCount
    options: dict[str, float]
    alignment: Alignment | None = None

    def __repr__(self) -> str:
        return f"OrderCheck({len(self.deviations)} deviations, {len(self.unsure)} not certain)"

    @property
    def follows(self) -> bool:
        """Whether the video follows the procedure: nothing is missing, and nothing speaks for a deviation."""
        return not (self.deviations or self.unsure or self.count.missing)

    @property
    def verdict(self) -> str:
        """The outcome in one line."""
        if self.deviations:
            said = counted(len(self.deviations), "deviation")
        elif self.follows:
            said = "the video follows the procedure"
        elif likely := sum(one.certainty >= 0.5 for one in self.unsure):
            said = f"{likely} deviation{'s are' if likely != 1 else ' is'} likely, none certain"
        else:
            said = "no deviation is certain, nor that the video follows the procedure"
        return f"{said} ({self.count})"

    def describe(self, deviation: Deviation) -> str:
        """Say a deviation in words; steps by their places in the procedure."""
        name = _name(self.flow, deviation.step)
        span = f"{format_time(deviation.start or 0.0)}–{format_time(deviation.end or 0.0)}"
        if deviation.kind == "skipped":
            if deviation.step in self.count.shown:
                return f"{name} is not shown where the result places it, nor elsewhere"
            return f"{name} is not shown" + ("" if deviation.start is None else f", unless at {span}")
        if deviation.after is None:
            return f"{name} is done again at {span}"
        return f"{name} is done at {span}, after {_name(self.flow, deviation.after)}, which had to wait for it"

    def to_json(self) -> dict[str, Any]:
        """Return the findings as a JSON document; steps by id and number, a margin without limit as null."""
        return {
            "format": KIND,
            "version": VERSION,
            "graph2vid": __version__,
            "options": self.options,
            "follows": self.follows,
            "count": self.count.to_json(),
            "shown": [self.flow.ids[step] for step in self.count.shown],
            **{key: [self._entry(one) for one in getattr(self, key)] for key in ("deviations", "unsure")},
        }

    def _entry(self, one: Deviation) -> dict[str, Any]:
        after = None if one.after is None else self.flow.ids[one.after]
        margin = one.margin if math.isfinite(one.margin) else None
        named = {"kind": one.kind, "step": self.flow.ids[one.step], "number": one.step + 1}
        return named | {
            "after": after,
            "start": one.start,
            "end": one.end,
            "margin": margin,
            "certainty": one.certainty,
        }

    @classmethod
    def from_json(cls, value: Any, flow: FlowGraph, *, source: str = "check") -> OrderCheck:
        """Read the document of a check of this procedure, with this version of graph2vid or an older one."""
        document = check_format(value, kind=KIND, version=VERSION, source=source)

        def deviation(entry: dict[str, Any]) -> Deviation:
            after = None if entry["after"] is None else flow.index(entry["after"])
            start, end = (None if entry[key] is None else float(entry[key]) for key in ("start", "end"))
            margin = math.inf if entry["margin"] is None else float(entry["margin"])
            return Deviation(
                entry["kind"], flow.index(entry["step"]), after, start, end, margin, float(entry["certainty"])
            )

        try:
            deviations, unsure = (
                tuple(deviation(entry) for entry in document.get(key, ())) for key in ("deviations", "unsure")
            )
            absent = {one.step for one in deviations if one.kind == "skipped"}  # all that older versions wrote
            shown = document.get("shown", [flow.ids[step] for step in range(len(flow)) if step not in absent])
            count = count_steps(flow, (flow.index(step) for step in shown))
            return cls(flow, deviations, unsure, count, dict(document["options"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"{source}: this is no list of deviations ({error})") from None


def check_order(grounding: Grounding, **options: Any) -> OrderCheck:
    """Say where a video does not follow its procedure.

    Parameters
    ----------
    grounding : Grounding
        With its evidence, which ``ground`` and ``batch`` keep.
    **options
        Fields of ``CheckOptions``: ``skip``, the cost of leaving a step out, in units of the evidence (nats, where that
        is log-odds; at 0 a step is shown where more speaks for it than against it); ``repeat``, the cost of repeating a
        step (one that is done out of order costs both); ``certainty``, how certain a deviation must be to be reported,
        0.5 … 1; and ``gamma``, what margins are divided by for certainties.

    Returns
    -------
    OrderCheck
    """
    if grounding.evidence is None:
        raise InputError("the result has no evidence: ground the video again with this version of graph2vid")
    of_video = grounding.evidence, grounding.clip_seconds, grounding.offset
    return find_deviations(grounding.flow, *of_video, shown=grounding.order, **options)


@renamed(threads="workers")
def find_deviations(
    flow: FlowGraph,
    evidence: ArrayLike,
    clip_seconds: float = 1.0,
    offset: float = 0.0,
    *,
    shown: Sequence[int] | None = None,
    workers: int | None = None,
    **options: Any,
) -> OrderCheck:
    """Do the same from evidence [K, N]: by how much each step explains each clip better than background does.

    ``shown`` are the steps that a result shows; by default those that the check itself sees.
    """
    (asked,) = deal(options, CheckOptions)
    search = _Search(flow, np.asarray(evidence, np.float64), asked.skip, asked.repeat, workers)
    count = count_steps(flow, search.found.order if shown is None else shown)
    found = search.deviations()
    # What the result does not show of a branch that the check does not take.
    listed = {step for kind, step, _, _ in found if kind == "skipped"} | {*search.found.order}
    found += [("skipped", step, None, None) for step in count.missing if step not in listed]
    margins = search.margins(found)
    # What the result does not show and the check sees: the deviation is the worse explanation of the two.
    seen: list[_Found] = [
        ("skipped", step, None, search.segment_of(step)) for step in count.missing if step in search.found.order
    ]
    found += seen
    without = [search.without(number, step, slice(None)) for number, (_, step, _, _) in enumerate(seen)]
    margins += [-more for more in search.extra(without, len(seen))]
    sure: list[Deviation] = []
    unsure: list[Deviation] = []
    for (kind, step, after, segment), margin in zip(found, margins, strict=True):
        odds = (margin - math.log(search.places(kind, step))) / asked.gamma
        probability = 1.0 / (1.0 + math.exp(min(max(-odds, -700.0), 700.0)))
        clips = (None, None) if segment is None else (segment.start, segment.stop)
        start, end = (None if clip is None else offset + clip * clip_seconds for clip in clips)
        deviation = Deviation(kind, step, after, start, end, margin, probability)
        (sure if probability >= asked.certainty else unsure).append(deviation)
    for deviations in (sure, unsure):
        deviations.sort(key=lambda one: (one.start is None, one.start or 0.0, one.step))
    return OrderCheck(flow, tuple(sure), tuple(unsure), count, asked.to_json(), search.found)


_Found = tuple[Kind, int, int | None, ClipSegment | None]


class _Search:
    """The alignment with the order left open, and what it would cost otherwise.

    A step that is late is skipped and repeated later, and costs both. A step that is early would cost that for each of
    the steps that it overtakes; so steps that are found to be early are freed of what comes before them, at the same
    cost: one cause, one cost.
    """

    def __init__(self, flow: FlowGraph, evidence: Costs64, skip: float, repeat: float, workers: int | None) -> None:
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
        self.workers = workers
        self.early_cost = skip + repeat
        self.early: frozenset[int] = frozenset()
        self.found = self._align(self.early)
        self.cost = self.found.cost
        for _ in range(_MOST_EARLY):
            if not self._free_another():
                break

    def _align(self, early: frozenset[int]) -> Alignment:
        return align(self._freed(early), self.match, self.drop, self.skip, repeat=self.repeat, workers=self.workers)

    def _freed(self, early: frozenset[int]) -> FlowGraph:
        """Return the procedure without what these steps have to wait for; all else keeps its order."""
        if not early:
            return self.flow
        whole = self.flow.transitive_closure()
        kept = {edge: sure for edge, sure in whole.confidence.items() if edge[1] not in early}
        return replace(whole, edges=tuple(kept), confidences=tuple(kept.values())).transitive_reduction()

    def _free_another(self) -> bool:
        """Free the step whose being early explains the most, if that is worth its cost."""
        best = before = self.cost, self.early, self.found
        for step in self._worth_freeing():
            early = self.early | {step}
            with suppress(TooLargeError):  # what is found without it stands
                found = self._align(early)
                cost = found.cost + self.early_cost * len(early)
                best = (cost, early, found) if cost < best[0] - _TINY else best
        self.cost, self.early, self.found = best
        return best is not before

    def _worth_freeing(self) -> list[int]:
        """Return the steps that may gain the most by being early, and more than it costs, as far as can be foretold.

        Such a step gains its best segment before the last of the steps that it has to wait for, instead of the one it
        has, and others gain the clips of that. Of the steps that it overtakes those that are late no longer cost that,
        and those that are left out can be shown.
        """
        late = {found[1] for found in self.deviations() if found[0] == "out of order"}
        ancestors = self.flow.sure.ancestors
        best = [_best_segment(-row) for row in self.match]
        begins = {segment.step: segment.start for segment in reversed(self.found.segments)}
        worth: list[tuple[float, int]] = []
        for step in range(len(self.flow)):
            before = [other for other in range(len(self.flow)) if ancestors[step] >> other & 1]
            if not before or step in self.early:
                continue
            limit = max(begins.get(other, best[other][1]) for other in before)
            own = self.found.labels == step
            others = np.arange(len(self.flow)) != step
            gain = _best_segment(-self.match[step, :limit])[0] + float(self.match[step][own].sum())
            gain += float(np.maximum(-self.match[np.ix_(others, own)], 0.0).max(axis=0, initial=0.0).sum())
            gain += self.early_cost * sum(other in late for other in before)
            gain += sum(best[other][0] + float(self.skip[other]) for other in before if other not in begins)
            gain += float(self.skip[step]) * (step not in begins)
            if gain > self.early_cost:
                worth.append((-gain, step))
        return [step for _, step in sorted(worth)[:_MOST_TRIED]]

    def places(self, kind: Kind, step: int) -> int:
        """Return in how many places noise may look like a deviation, which it then does in one of them."""
        if kind == "repeated":
            return int(self.match.shape[1])
        overtaken = kind == "out of order" and any(self.flow.sure.ancestors[other] >> step & 1 for other in self.early)
        return len(self.flow) * len(self.flow) if overtaken else 1  # which step is early, and which it overtakes first

    def segment_of(self, step: int) -> ClipSegment | None:
        """Return the first segment of a step."""
        return next((segment for segment in self.found.segments if segment.step == step), None)

    def deviations(self) -> list[_Found]:
        """Return what the alignment shows: kind, step, the step before which it had to come, and its segment."""
        ancestors = self.flow.sure.ancestors
        found: list[_Found] = []
        shown: list[int] = []
        for segment in self.found.segments:
            waited = [step for step in shown if ancestors[step] >> segment.step & 1]
            if segment.step in shown:
                found.append(("repeated", segment.step, None, segment))
            elif waited:
                found.append(("out of order", segment.step, waited[0], segment))
            shown += [segment.step] * (segment.step not in shown)
        return found + [("skipped", step, None, None) for step in count_steps(self.flow, shown).missing]

    def _instead(self, step: int) -> list[int]:
        """Return what must not be left out either for a step to be done: the branches beside its own."""
        groups = ([other for branch in group for other in branch] for group in self.flow.alternatives)
        return next((one for one in groups if step in one and not {*one} & {*self.found.order}), [step])

    def _beside(self, step: int) -> list[int]:
        """Return the steps of the branches that are taken instead of that of a step, if that is not taken."""
        for group in self.flow.alternatives:
            others = [other for branch in group if step not in branch for other in branch]
            if any(step in branch and not {*branch} & {*self.found.order} for branch in group):
                return others if {*others} & {*self.found.order} else []
        return []

    def _in_place(self, step: int) -> frozenset[int]:
        """Return the early steps that stay free where a step is done in its place: those that need not wait for it."""
        return frozenset(other for other in self.early if not self.flow.sure.ancestors[other] >> step & 1)

    def margins(self, found: Sequence[_Found]) -> list[float]:
        """Return how much more the best alignment without each deviation costs."""
        asked: list[_Asked] = []
        for number, (kind, step, _, segment) in enumerate(found):
            if kind != "repeated":  # done in its place
                costly, match = self.skip.copy(), self.match
                costly[self._instead(step) if kind == "skipped" else [step]] = self.huge
                if kind == "skipped" and (barred := self._beside(step)):  # the branch of the step, not another
                    match = match.copy()
                    match[barred], costly[barred] = np.inf, self.huge
                asked.append(_Asked(number, self._in_place(step), match, self.drop, costly))
            if kind == "skipped" or segment is None:
                continue
            # Not done there; or, of what is done again, not before; or all the time since then.
            begin, stop = segment.start, segment.stop
            spans = [slice(begin, stop), slice(begin)] if kind == "repeated" else [slice(None)]
            asked += [self.without(number, step, span) for span in spans]
            if kind == "repeated":
                since = max(other.stop for other in self.found.segments if other.step == step and other.stop < stop)
                match, drop = self.match.copy(), self.drop.copy()
                match[np.arange(len(match)) != step, since:begin] = drop[since:begin] = self.huge
                asked.append(_Asked(number, self.early, match, drop, self.skip))
        return [max(more, 0.0) for more in self.extra(asked, len(found))]

    def without(self, number: int, step: int, span: slice) -> _Asked:
        """Ask what the best alignment costs in which a step is not shown in a span of clips."""
        match = self.match.copy()
        match[step, span] = np.inf
        return _Asked(number, self.early, match, self.drop, self.skip)

    def extra(self, asked: Sequence[_Asked], n: int) -> list[float]:
        """Return for each number what the cheapest alignment asked for it costs more than the one found."""
        margins = [math.inf] * n
        for early in {one.early for one in asked}:
            some = [one for one in asked if one.early == early]
            costs: Any = [[getattr(one, name) for one in some] for name in ("match", "drop", "skip")]
            others = align_many(self._freed(early), *costs, repeats=self.repeat, cost_only=True, workers=self.workers)
            for one, other in zip(some, others, strict=True):
                more = other.cost + self.early_cost * len(early) - self.cost
                if more < self.huge / 2:
                    margins[one.number] = min(margins[one.number], more)
        return margins


@dataclass(frozen=True, eq=False)
class _Asked:
    """An alignment whose cost is asked: for which finding, which steps are free to be early, and the costs."""

    number: int
    early: frozenset[int]
    match: Costs64
    drop: Costs64
    skip: Costs64


def _best_segment(evidence: Costs64) -> tuple[float, int]:
    """Return the largest sum of neighbouring entries, at least 0, and where they begin."""
    sums = np.concatenate(([0.0], np.cumsum(np.maximum(evidence, -1e300))))
    lowest = np.minimum.accumulate(sums)
    end = int((sums - lowest).argmax())
    return float(sums[end] - lowest[end]), int(sums[: end + 1].argmin())


def _name(flow: FlowGraph, step: int) -> str:
    """Name a step: its place in the procedure, and its text."""
    return f"step {step + 1} ({(flow.texts[step] or flow.ids[step]).strip().rstrip('.')})"
