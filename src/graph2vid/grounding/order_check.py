"""Steps that a video leaves out, does out of order, or repeats.

The evidence is aligned anew with the order left open: a step may be left out, repeated, or done in another order than
expected, each at a cost. What the cheapest alignment does otherwise than expected is explained by as few steps as
possible: those that moved. So one event is reported once.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Any, Literal, NamedTuple

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
from graph2vid.tsort import TSortGraph, order_costs

Kind = Literal["skipped", "out of order", "repeated"]
Costs64 = NDArray[np.float64]

KIND = "graph2vid-check"
VERSION = 1

_MOST_UPDATES = 2**23
"""States × clips of an alignment, which it takes about 0.1 s to work out."""

_LIKELY = math.log(9.0)
"""The margin of what has a certainty of 0.9."""

_SUREST = 30.0
"""The log-odds of an order that is kept whatever else it costs; a confidence is below 1 up to 36."""


@dataclass(frozen=True)
class Deviation:
    """One way in which a video does not follow its procedure.

    Attributes
    ----------
    kind : {"skipped", "out of order", "repeated"}
    step : int
        The step that is left out, done too late or too early, or done again.
    after : int or None
        Out of order, too late: the first step that was done before, although it was expected after this one.
    start, end : float or None
        When the step is done, in seconds; None if it is left out.
    margin : float
        How much more the best explanation without this deviation costs, in units of the evidence; may be +∞, and
        negative where the explanation without it is the better one.
    certainty : float
        1 / (1 + exp(-margin / gamma)): the odds of the best explanation with it against the best without. Noise looks
        like a deviation somewhere, so that the margin counts less by the logarithm of the number of places where it
        may: of a step done again log(clips), of one done too early log(steps²), for any might be, before any other.
    before : int or None
        Out of order, too early: the first step that was done after, although it was expected before this one.
    """

    kind: Kind
    step: int
    after: int | None
    start: float | None
    end: float | None
    margin: float
    certainty: float
    before: int | None = None


@dataclass(frozen=True, eq=False)
class OrderCheck:
    """Deviations of a video from its procedure.

    Attributes
    ----------
    flow : FlowGraph
        The procedure.
    deviations : tuple of Deviation
        Those that are sure enough, in order of time, what is left out last.
    unsure : tuple of Deviation
        Those that are as little certain as their absence is, likewise. Every step that the procedure wants and the
        result does not show is here or among the deviations; with a time where it might be all the same.
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
        """True if nothing is missing or doubtful, and nothing speaks for a deviation."""
        return not (self.deviations or self.unsure or self.count.missing or self.count.doubtful)

    @property
    def verdict(self) -> str:
        """The outcome in one line."""
        doubtful = {*self.count.doubtful, *(deviation.step for deviation in self.unsure)}
        likely = sum(deviation.certainty >= 0.5 for deviation in self.unsure)
        if self.deviations:
            said = counted(len(self.deviations), "deviation")
        elif likely:
            said = f"{likely} deviation{'s are' if likely != 1 else ' is'} likely, none certain"
        elif self.count.missing:
            said = "no deviation is certain, nor that the video follows the procedure"
        else:
            said = "the video follows the procedure"
            if doubtful:
                are = "steps are" if len(doubtful) > 1 else "step is"
                said += f", as far as it is certain; {len(doubtful)} {are} doubtful"
        return f"{said} ({self.count})"

    def describe(self, deviation: Deviation) -> str:
        """Say a deviation in words; steps by their places in the procedure."""
        return f"{self._name(deviation.step, range(1, len(self.flow) + 1))} {self.words(deviation)}"

    def words(self, deviation: Deviation, numbers: Sequence[int | None] | None = None) -> str:
        """Say a deviation in words that follow the name of its step.

        Parameters
        ----------
        deviation : Deviation
        numbers : sequence of int or None, optional
            The numbers by which other steps are called; by default their places in the procedure.
        """
        step, after, before = deviation.step, deviation.after, deviation.before
        span = f"{format_time(deviation.start or 0.0)}–{format_time(deviation.end or 0.0)}"
        if deviation.kind == "skipped":
            if deviation.start is not None:
                return f"may be at {span}, where the result does not show it"
            return "is skipped" + (": its place in the result is doubtful" if step in self.count.doubtful else "")
        other, is_early = (before, True) if after is None else (after, False)
        if other is None:
            return f"is done again at {span}"
        side = f"{'before' if is_early else 'after'} {self._name(other, numbers or range(1, len(self.flow) + 1))}"
        waits, awaited = (step, other) if is_early else (other, step)
        if self.flow.sure.ancestors[waits] >> awaited & 1:
            rule = "which it had to wait for" if is_early else "which had to wait for it"
            return f"is done out of order at {span}, {side}, {rule}"
        expected = "written" if not self.flow.sure.edges else "expected"
        return f"is done {'earlier' if is_early else 'later'} than {expected}, at {span}: {side}"

    def _name(self, step: int, numbers: Sequence[int | None]) -> str:
        text = (self.flow.texts[step] or self.flow.ids[step]).strip().rstrip(".")
        return text if numbers[step] is None else f"step {numbers[step]} ({text})"

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
            "doubtful": [self.flow.ids[step] for step in self.count.doubtful],
            **{key: [self._entry(one) for one in getattr(self, key)] for key in ("deviations", "unsure")},
        }

    def _entry(self, one: Deviation) -> dict[str, Any]:
        after, before = (None if step is None else self.flow.ids[step] for step in (one.after, one.before))
        margin = one.margin if math.isfinite(one.margin) else None
        named = {"kind": one.kind, "step": self.flow.ids[one.step], "number": one.step + 1}
        return named | {
            "after": after,
            "before": before,
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
            others = entry["after"], entry.get("before")
            after, before = (None if step is None else flow.index(step) for step in others)
            start, end = (None if entry[key] is None else float(entry[key]) for key in ("start", "end"))
            margin = math.inf if entry["margin"] is None else float(entry["margin"])
            certainty = float(entry["certainty"])
            return Deviation(entry["kind"], flow.index(entry["step"]), after, start, end, margin, certainty, before)

        try:
            deviations, unsure = (
                tuple(deviation(entry) for entry in document.get(key, ())) for key in ("deviations", "unsure")
            )
            absent = {one.step for one in deviations if one.kind == "skipped"}  # all that older versions wrote
            shown = document.get("shown", [flow.ids[step] for step in range(len(flow)) if step not in absent])
            doubtful = [flow.index(step) for step in document.get("doubtful", ())]
            count = count_steps(flow, [*(flow.index(step) for step in shown), *doubtful], doubtful)
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
        step (one that is done against a certain edge costs both; against a guessed order, what that costs);
        ``certainty``, how certain a deviation must be to be reported, 0.5 … 1, or its absence to be left out; and
        ``gamma``, what margins are divided by for certainties.

    Returns
    -------
    OrderCheck
    """
    if grounding.evidence is None:
        raise InputError("the result has no evidence: ground the video again with this version of graph2vid")
    of_video = grounding.evidence, grounding.clip_seconds, grounding.offset
    doubtful = grounding.count.doubtful
    return find_deviations(grounding.flow, *of_video, shown=grounding.order, doubtful=doubtful, **options)


@renamed(threads="workers")
def find_deviations(
    flow: FlowGraph,
    evidence: ArrayLike,
    clip_seconds: float = 1.0,
    offset: float = 0.0,
    *,
    shown: Sequence[int] | None = None,
    doubtful: Sequence[int] = (),
    workers: int | None = None,
    **options: Any,
) -> OrderCheck:
    """Do the same from evidence [K, N]: by how much each step explains each clip better than background does.

    ``shown`` are the steps that a result shows, ``doubtful`` those of them that are; by default those that the check
    itself sees.
    """
    (chosen,) = deal(options, CheckOptions)
    search = _Search(flow, np.asarray(evidence, np.float64), chosen.skip, chosen.repeat, workers)
    count = count_steps(flow, list(search.first) if shown is None else shown, doubtful)
    findings = search.deviations(count)
    margins = search.margins(findings)
    sure: list[Deviation] = []
    unsure: list[Deviation] = []
    for finding, margin in zip(findings, margins, strict=True):
        odds = (margin - math.log(search.places(finding))) / chosen.gamma
        probability = 1.0 / (1.0 + math.exp(min(max(-odds, -700.0), 700.0)))
        segment = finding.segment
        clips = (None, None) if segment is None else (segment.start, segment.stop)
        start, end = (None if clip is None else offset + clip * clip_seconds for clip in clips)
        deviation = Deviation(
            finding.kind, finding.step, finding.after, start, end, margin, probability, finding.before
        )
        if probability >= chosen.certainty:
            sure.append(deviation)
        elif probability > 1.0 - chosen.certainty or finding.kind == "skipped":
            unsure.append(deviation)
    for deviations in (sure, unsure):
        deviations.sort(key=lambda one: (one.start is None, one.start or 0.0, one.step))
    return OrderCheck(flow, tuple(sure), tuple(unsure), count, chosen.to_json(), search.found)


class _Finding(NamedTuple):
    """A deviation that has no margin yet; a step that is left out has the segment where it might be all the same."""

    kind: Kind
    step: int
    segment: ClipSegment | None = None
    after: int | None = None
    before: int | None = None


class _Search:
    """The alignment with the order left open at a cost, its deviations, and what others would cost."""

    def __init__(self, flow: FlowGraph, evidence: Costs64, skip: float, repeat: float, workers: int | None) -> None:
        self.flow = flow
        # Of a clip that must show a step it is only known which steps it may show.
        forced = np.isposinf(evidence).any(axis=0)
        self.match = np.where(np.isposinf(evidence), 0.0, -evidence)
        self.repeat, self.workers = repeat, workers
        soft = order_costs(flow)
        soft = np.zeros((len(flow), len(flow))) if soft is None else soft
        self.charge = max(skip + repeat, 0.0)
        # Beyond what any alignment costs otherwise, so that what costs this much is done only where it must be.
        finite = np.abs(self.match[np.isfinite(self.match)])
        sums = float(finite.sum() + soft.sum()) + (self.charge + abs(skip)) * len(flow) ** 2
        self.huge = 2.0 * (sums + repeat * evidence.shape[1] + 1.0)
        self.violation = self.huge / _SUREST
        self.drop = np.where(forced, self.huge, 0.0)
        rank = np.argsort(flow.topological_order)
        later = [[mask >> step & 1 for step in range(len(flow))] for mask in flow.sure.descendants]
        certain = np.array(later, bool)
        self.expected = certain | ((rank[:, None] < rank) & (soft > soft.T))
        for group in flow.alternatives:  # an order of steps between them would put one branch before another
            ranks = [rank[step] for branch in group for step in branch]
            inside = (rank >= min(ranks)) & (rank <= max(ranks))
            self.expected &= certain | ~(inside[:, None] & inside)
        self.distance = np.abs(rank[:, None] - rank)
        self.free: frozenset[int] = frozenset()
        self._align(skip)
        self.free = self._candidates()
        while self.free:
            try:
                self._align(skip)
            except TooLargeError:
                self.free = frozenset()
                self._align(skip)
            if not (idle := self.free & {*self.order} - {*self.moved}):
                break
            self.free -= idle

    def _candidates(self) -> frozenset[int]:
        """Return the steps that may be done anywhere at a cost, however far they moved.

        These are steps that are left out with much evidence somewhere. In an order that was guessed they are those that
        moved, too, and those that are shown with much more evidence elsewhere.
        """
        free = {*self.moved} if self.flow.confidences else set()
        for step in {*range(len(self.flow))} - {*self.flow.optional, *chain(*chain(*self.flow.alternatives))}:
            segment = self.first.get(step)
            if segment is not None and not self.flow.confidences:
                continue  # measured on CaptainCook4D: noise elsewhere would hide that others are skipped
            shown = self.skip[step] if segment is None else -self.match[step, segment.start : segment.stop].sum()
            if self._strongest(step)[0] - shown > self.charge + _LIKELY:
                free.add(step)
        return frozenset(free - {*self.flow.optional})

    def _align(self, skip: float) -> None:
        """Find the cheapest alignment, the steps that moved in it, and its cost."""
        self.reach = self._longest_reach()
        self.opened = self._open()
        self.skip = np.full(len(self.flow), skip)
        self.skip[list(self.free)] -= self.charge
        costs = self.match, self.drop, self.skip
        found = align(self.opened, *costs, repeat=self.repeat, violation=self.violation, workers=self.workers)
        self.found = replace(found, flow=self.flow, cost=found.cost + self.charge * len(self.free))
        self.first = {segment.step: segment for segment in reversed(self.found.segments)}
        self.order = sorted(self.first, key=lambda step: self.first[step].start)
        self.pairs = [(a, b) for a, b in combinations(self.order, 2) if self.expected[b, a]]
        self.moved = smallest_cover(self.pairs, self.order)

    def _open(self, held: int = -1, reach: int | None = None) -> FlowGraph:
        """Return the procedure with its order at a cost; that of the step ``held``, and of far steps, is kept."""
        reach, free = self.reach if reach is None else reach, self.free
        order = self.flow.sure.transitive_closure()
        order = order.with_edges({edge: 1.0 for edge in order.edges if not free & {*edge}}).transitive_reduction()
        # Edges that others imply cost nothing: a step that overtakes many costs as much as if it overtook one.
        charges = dict.fromkeys(order.edges, self.charge)
        soft = {edge: sure for edge, sure in self.flow.confidence.items() if sure < 1.0 and not free & {*edge}}
        charges |= {edge: math.log(sure / (1.0 - sure)) for edge, sure in soft.items() if edge not in charges}
        sure = {edge: 1.0 / (1.0 + math.exp(-charge / self.violation)) for edge, charge in charges.items()}
        for before, after in np.argwhere(self.expected).tolist():
            edge = before, after
            if free & {*edge} - {held}:
                continue
            if self.distance[edge] > reach:
                sure[edge] = 1.0
            elif held in edge:
                sure[edge] = 1.0 / (1.0 + math.exp(-_SUREST))
        return self.flow.with_edges(sure)

    def _longest_reach(self) -> int:
        """Return how far apart steps may be expected and yet change places, for the alignment to be quick."""
        steps, states = len(self.flow), _MOST_UPDATES // self.match.shape[1]

        def is_large(reach: int) -> bool:
            try:
                return bool(TSortGraph.compile(self._open(reach=reach).sure, states).n_states > states)
            except TooLargeError:
                return True

        if steps << steps - 1 <= states:
            return steps
        if self.free and is_large(0):
            raise TooLargeError(f"{len(self.free)} of {steps} steps anywhere are too many")
        return bisect_left(range(1, steps), True, key=is_large)

    def deviations(self, count: StepCount) -> list[_Finding]:
        """Return what the alignment does otherwise than expected, and what a result that shows ``count`` leaves out."""
        findings: list[_Finding] = []
        for step in self.moved:
            after = [a for a, b in self.pairs if b == step and a not in self.moved]
            before = [b for a, b in self.pairs if a == step and b not in self.moved]
            others = (after[0], None) if len(after) >= len(before) else (None, before[0])
            findings.append(_Finding("out of order", step, self.first[step], *others))
        again = (segment for segment in self.found.segments if segment != self.first[segment.step])
        findings += [_Finding("repeated", segment.step, segment) for segment in again]
        # A step is skipped if neither the result shows it beyond doubt nor the check; one that moved is not said twice.
        sure = {*count.shown} - {*count.doubtful}
        missing = {*count_steps(self.flow, self.order).missing} - sure | {*count.missing} - {*self.moved}
        return findings + [_Finding("skipped", step, self._elsewhere(step)) for step in sorted(missing)]

    def _elsewhere(self, step: int) -> ClipSegment | None:
        """Return the segment of a step that the result does not show, if there is one or there might be."""
        if step in self.first or not self.flow.confidences:
            return self.first.get(step)
        evidence, segment = self._strongest(step, self.found.labels != -1)
        return segment if evidence > math.log(self.match.shape[1]) else None  # noise is as strong somewhere

    def _strongest(self, step: int, taken: NDArray[np.bool_] | None = None) -> tuple[float, ClipSegment]:
        """Return the segment of a step with the most evidence, anywhere but in clips that are taken."""
        evidence = np.maximum(-self.match[step], -self.huge)
        sums = np.concatenate(([0.0], np.cumsum(evidence if taken is None else np.where(taken, -self.huge, evidence))))
        gains = sums - np.minimum.accumulate(sums)
        stop = int(gains.argmax())
        return float(gains[stop]), ClipSegment(int(sums[: stop + 1].argmin()), stop, step)

    def places(self, finding: _Finding) -> int:
        """Return in how many places noise may look like a deviation, which it then does in one of them."""
        if finding.kind == "repeated":
            return int(self.match.shape[1])
        return len(self.flow) ** 2 if finding.before is not None else 1

    def _instead(self, step: int) -> list[int]:
        """Return what must not be left out either for a step to be done: the branches beside its own."""
        groups = ([other for branch in group for other in branch] for group in self.flow.alternatives)
        return next((steps for steps in groups if step in steps and not {*steps} & {*self.first}), [step])

    def _beside(self, step: int) -> list[int]:
        """Return the steps of the branches that are taken instead of that of a step, if that is not taken."""
        for group in self.flow.alternatives:
            others = [other for branch in group if step not in branch for other in branch]
            if any(step in branch and not {*branch} & {*self.first} for branch in group):
                return others if {*others} & {*self.first} else []
        return []

    def margins(self, findings: Sequence[_Finding]) -> list[float]:
        """Return how much more the best alignment without each deviation costs."""
        problems: list[_Without] = []
        for number, (kind, step, segment, _, _) in enumerate(findings):
            if kind == "skipped" and step in self.first:  # the result leaves out what the check sees
                problems.append(self._without(number, step, slice(None)))
                continue
            if kind != "repeated":  # done in its place
                costly, match = self.skip.copy(), self.match
                # Beyond reach the order is certain, and others must not be late by being skipped before.
                related = self.expected[step] | self.expected[:, step]
                far = {other for other in self.order if related[other] and self.distance[step, other] > self.reach}
                costly[[*(far - self.free), *(self._instead(step) if kind == "skipped" else [step])]] = self.huge
                if kind == "skipped" and (barred := self._beside(step)):  # the branch of the step, not another
                    match = match.copy()
                    match[barred], costly[barred] = np.inf, self.huge
                problems.append(_Without(number, self._open(step), match, self.drop, costly))
            if kind == "skipped" or segment is None:
                continue
            # Not done there; or, of what is done again, not before; or all the time since then.
            begin, stop = segment.start, segment.stop
            spans = [slice(begin, stop), slice(begin)] if kind == "repeated" else [slice(None)]
            problems += [self._without(number, step, span) for span in spans]
            if kind == "repeated":
                since = max(other.stop for other in self.found.segments if other.step == step and other.stop < stop)
                match, drop = self.match.copy(), self.drop.copy()
                match[np.arange(len(match)) != step, since:begin] = drop[since:begin] = self.huge
                problems.append(_Without(number, self.opened, match, drop, self.skip))
        columns: Any = [[getattr(problem, name) for problem in problems] for name in ("flow", "match", "drop", "skip")]
        how: Any = {"repeats": self.repeat, "violation": self.violation, "workers": self.workers}
        extra = [math.inf] * len(findings)
        for problem, other in zip(problems, align_many(*columns, cost_only=True, **how), strict=True):
            charged = self.charge * sum(bool(problem.skip[step] < self.huge) for step in self.free)
            more = max(other.cost + charged - self.found.cost, 0.0)
            if more < self.huge / 2:
                extra[problem.number] = min(extra[problem.number], more)
        for number, (kind, step, segment, _, _) in enumerate(findings):
            if kind == "skipped" and step in self.first:  # the deviation is the worse explanation of the two
                extra[number] *= -1.0
            elif kind == "skipped" and segment is not None:  # done there
                extra[number] = min(extra[number], max(self.charge - self._strongest(step)[0], 0.0))
        return extra

    def _without(self, number: int, step: int, span: slice) -> _Without:
        """Return the alignment in which a step is not shown in a span of clips."""
        match = self.match.copy()
        match[step, span] = np.inf
        return _Without(number, self.opened, match, self.drop, self.skip)


@dataclass(frozen=True, eq=False)
class _Without:
    """An alignment whose cost is needed for a finding: its procedure and its costs."""

    number: int
    flow: FlowGraph
    match: Costs64
    drop: Costs64
    skip: Costs64


def smallest_cover(pairs: Sequence[tuple[int, int]], order: Sequence[int]) -> list[int]:
    """Return the fewest steps that stand in all pairs, in order; of as few those in the most pairs, and the later.

    Parameters
    ----------
    pairs : sequence of (int, int)
        Steps done in another order than expected, the one done first in front.
    order : sequence of int
        The steps as they are done.
    """
    weight = dict.fromkeys(order, 0.0)
    for first, second in pairs:
        weight[first] += 1.0
        weight[second] += 1.0 + 1.0 / len(order) ** 3

    def cover(left: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        degree = Counter(step for pair in left for step in pair)
        if not degree:
            return ()
        step = max(degree, key=lambda step: (degree[step], weight[step]))
        mine = step, *cover([pair for pair in left if step not in pair])
        if degree[step] == 1:  # so have all others
            return mine
        near = {other for pair in left if step in pair for other in pair} - {step}
        others = *near, *cover([pair for pair in left if not near & {*pair}])
        return min(mine, others, key=lambda steps: (len(steps), -sum(weight[step] for step in steps)))

    return sorted(cover(pairs), key=order.index)
