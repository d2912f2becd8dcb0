"""Many videos of many procedures aligned: costs, alignments and confidences of those alike side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid._memory import FREE_BYTES
from graph2vid._options import GroundOptions
from graph2vid._stopping import native_watch, within
from graph2vid.alignment import (
    LONG,
    ClipCosts,
    Problem,
    Resources,
    gamma_bounds,
    native,
    procedure,
    solve_side_by_side,
    widened,
)
from graph2vid.batch.row_costs import COST_OPTIONS, SIDE_BY_SIDE, costs_of_many, repeat_costs_of_many
from graph2vid.batch.settings import DEFAULTS, EXTENDED
from graph2vid.errors import Graph2VidError, TooLargeError
from graph2vid.evidence import Costs, Evidence
from graph2vid.flow import FlowGraph
from graph2vid.grounding import LIKELY, Grounding, durations_of, forced_steps, ground_evidence
from graph2vid.tsort import TSortGraph

Floats64: TypeAlias = NDArray[np.float64]

_THREADS = 1  # a worker is there for each processor
_LANE_BYTES = 64 << 20  # videos whose tables are larger than this are answered one after the other


class Request(NamedTuple):
    """A video to be aligned.

    Attributes
    ----------
    flow : FlowGraph
        Its procedure, of K steps.
    tsort : TSortGraph or None
        Compiled; None if it cannot be.
    evidence : Evidence
    options : mapping
        Those of a row, in their own types; with paths in full.
    video : str or None
        The path of the video, for the result.
    document : Path or None
        Where the grounding is written.
    """

    flow: FlowGraph
    tsort: TSortGraph | None
    evidence: Evidence
    options: Mapping[str, Any]
    video: str | None = None
    document: Path | None = None


@dataclass(frozen=True, eq=False)
class Answers:
    """What is found of V videos of one procedure, with S segments in all.

    Attributes
    ----------
    requests : sequence of Request [V]
    cost, gap : float64 [V]
        Of the alignments; each lies at most ``gap`` above the optimum.
    n_clips : int64 [V]
    confidence_of_video : float64 [V]
        The mean of the confidences over all clips that show a step; NaN where it is not known.
    first : int64 [V + 1]
        The segments of video v are ``first[v]`` to ``first[v + 1]``, in order of time.
    steps : int64 [S]
    starts, ends : float64 [S]
        Seconds.
    confidence : float64 [S]
        Calibrated; NaN where it is not known, or no calibrator fits the evidence.
    posterior : float64 [S]
        Mean posterior probability of the step over the segment's clips; NaN where it is not known.
    doubtful : bool [S]
    """

    requests: Sequence[Request]
    cost: Floats64
    gap: Floats64
    n_clips: NDArray[np.int64]
    confidence_of_video: Floats64
    first: NDArray[np.int64]
    steps: NDArray[np.int64]
    starts: Floats64
    ends: Floats64
    confidence: Floats64
    posterior: Floats64
    doubtful: NDArray[np.bool_]


class Found(NamedTuple):
    """What is found of one video: its place among others."""

    answers: Answers
    at: int

    @property
    def request(self) -> Request:
        """What was asked."""
        return self.answers.requests[self.at]


def align_requests(requests: Sequence[Request]) -> list[Found | Exception]:
    """Align videos, those of one procedure and the same options side by side; an answer or an error for each.

    The answer to a request does not depend on the others, to the bit. It is that of :func:`graph2vid.ground`: to the
    bit in labels, times and costs, and in the posteriors of the extended model and of videos with skip costs in
    float64, as all with narration have. Other confidences are computed in the precision of the scores, in float32
    within 1e-6 of those of ``ground``, since in float64 all the work on 20,000 videos takes 1.6 times as long. A
    document holds what ``ground`` finds.
    """
    found: dict[int, Found | Exception] = {}
    groups: dict[Any, list[int]] = {}
    known: dict[Any, Any] = {}
    for at, request in enumerate(requests):
        same = id(request.options), request.evidence.preset
        if same not in known:
            known[same] = _in_common(request)
        plain = request.document is None and not _is_calibrated(request)
        solvable = request.tsort is not None or _is_open(request.flow)
        if known[same] and plain and solvable and native() is not None:
            groups.setdefault((id(request.flow), known[same]), []).append(at)
        else:
            found[at] = _alone(request)
    for members in groups.values():
        found |= zip(members, _together([requests[at] for at in members]), strict=True)
    return [found[at] for at in range(len(requests))]


def grounding_options(options: Mapping[str, Any]) -> GroundOptions:
    """Return the options of a row that :func:`graph2vid.ground` knows."""
    return GroundOptions.from_mapping({name: value for name, value in options.items() if name != "duration"})


def _cost_options(request: Request) -> Mapping[str, Any]:
    """Return the options of a request, with the settings of costs that suit its evidence where none are chosen."""
    preset = request.evidence.preset
    return request.options if preset is None else {"preset": preset, **request.options}


def _in_common(request: Request) -> Any:
    """Return what requests that are answered together have in common; None where each is answered alone."""
    options = _cost_options(request)
    policies = [options.get(name) for name in COST_OPTIONS]
    scalar = all(value is None or isinstance(value, str | float) for value in (*policies, options.get("repeat")))
    if not scalar or options.get("method") != DEFAULTS.get("method"):
        return None
    extras = [options.get(name) for name in EXTENDED]
    if options.get("durations") is not None:
        extras.append(options["clip_seconds"])
    names = ("contiguous", "confidence", "gamma", "time_limit")
    return *policies, *extras, *(options.get(name) for name in names)


def _is_open(flow: FlowGraph) -> bool:
    """Tell whether a procedure has alternatives, and no guesses, which each video is asked about alone."""
    return bool(flow.alternatives) and not flow.confidences


def _is_extended(request: Request) -> bool:
    """Tell whether a video is aligned with the extended model."""
    options = request.options
    return _is_open(request.flow) or any(options.get(name) != DEFAULTS.get(name) for name in EXTENDED)


def _is_calibrated(request: Request) -> bool:
    """Tell whether there may be a calibrator, which looks at one video at a time."""
    options = request.options
    return bool(options["confidence"] and (options.get("calibration") or "narration" in request.evidence.about))


def _alone(request: Request) -> Found | Exception:
    asked = grounding_options(request.options)
    try:
        found = ground_evidence(request.tsort or request.flow, request.evidence, asked, video=request.video)
        if request.document is not None:
            request.document.parent.mkdir(parents=True, exist_ok=True)
            found.save(request.document)
        return Found(_answers_of_one(request, found), 0)
    except (InterruptedError, TimeoutError):  # of a watch over all of them
        raise
    except Exception as error:
        return error


def _answers_of_one(request: Request, found: Grounding) -> Answers:
    segments = found.segments
    told = [(one.confidence, one.posterior, one.duration, one.start, one.end) for one in segments]
    sure, raw, lengths, starts, ends = np.array(told, dtype=np.float64).reshape(-1, 5).T.copy()
    mean = min(float(sure @ lengths / lengths.sum()), 1.0) if len(segments) else np.nan
    return Answers(
        requests=[request],
        cost=np.array([found.cost]),
        gap=np.array([found.options["alignment"].get("gap", 0.0)], dtype=np.float64),
        n_clips=np.array([len(found.labels)]),
        confidence_of_video=np.array([mean]),
        first=np.array([0, len(segments)]),
        steps=np.array([one.step for one in segments], dtype=np.int64),
        starts=starts,
        ends=ends,
        confidence=sure,
        posterior=raw,
        doubtful=np.array([one.is_doubtful for one in segments], dtype=bool),
    )


class _Solved(NamedTuple):
    """A video that the kernels had an answer for; ``sure`` is flat, [(K + 1) N + K], or None."""

    request: Request
    costs: Costs
    cost: float
    labels: NDArray[np.int64]
    sure: NDArray[np.floating[Any]] | None


def _together(requests: Sequence[Request]) -> list[Found | Exception]:
    """Answer requests of one procedure and the same options."""
    n_steps, extended = len(requests[0].flow), _is_extended(requests[0])
    options = _cost_options(requests[0])
    own_skip = "skip" not in options and requests[0].evidence.skip is not None
    arrays = [
        {**request.evidence.arrays, "skip": request.evidence.skip} if own_skip else request.evidence.arrays
        for request in requests
    ]
    costs = costs_of_many(arrays, n_steps, options)
    found: dict[int, Found | Exception] = {at: cost for at, cost in enumerate(costs) if isinstance(cost, Exception)}
    alike: dict[Any, dict[int, Costs]] = {}
    for at, cost in enumerate(costs):
        if isinstance(cost, Costs) and (extended or _table_bytes(requests[0].tsort, cost) <= _LANE_BYTES):
            alike.setdefault(cost.match.dtype, {})[at] = cost
    for members in alike.values():
        if solved := _solve(requests, members, extended):
            answers = _answers(list(solved.values()), n_steps)
            found |= {at: Found(answers, place) for place, at in enumerate(solved)}
    # The rest is too large, or has no answer, or none in its precision or time: `ground` finds it, or says why not.
    return [found[at] if at in found else _alone(request) for at, request in enumerate(requests)]


def _table_bytes(tsort: TSortGraph | None, costs: Costs) -> int:
    """Return how large the table of a posterior is at most, one lane of eight in use."""
    assert tsort is not None
    states = tsort.n_states + 3 * tsort.n_ideals
    return int(8 * states * costs.match.itemsize * (costs.match.shape[1] + 1))


_Aligned: TypeAlias = tuple[Sequence[tuple[float, Any]], Sequence[tuple[float, Any]]]
"""Of each video the cost and the labels; and the soft cost and the probabilities, or 0 and None."""


def _solve(requests: Sequence[Request], members: Mapping[int, Costs], extended: bool) -> dict[int, _Solved]:
    """Align videos of one procedure and one dtype; those with an answer that can be relied on."""
    first = requests[next(iter(members))]
    options, costs = first.options, list(members.values())
    limit = options.get("time_limit")
    try:
        with within(None if limit is None else limit * len(members)):
            if extended:
                aligned, likely = _aligned_on_automaton(first.tsort or first.flow, costs, options)
            else:
                assert first.tsort is not None
                aligned, likely = _aligned(first.tsort, costs, options)
    except TooLargeError:
        return {}
    suits = _suits(options["gamma"], costs) if options["confidence"] else [True] * len(members)
    return {
        at: _Solved(requests[at], members[at], cost, labels, sure)
        for at, suited, (cost, labels), (soft, sure) in zip(members, suits, aligned, likely, strict=True)
        if suited and isfinite(cost) and isfinite(soft) and _is_told_apart(members[at], cost)
    }


def _aligned_on_automaton(flow: FlowGraph | TSortGraph, costs: Sequence[Costs], options: Mapping[str, Any]) -> _Aligned:
    """Do the same with the extended model; costs are ∞ where it is left to `ground`."""
    steps = flow if isinstance(flow, FlowGraph) else flow.flow
    gamma = options["gamma"] if options["confidence"] else None
    given = [(inf, None)] * len(costs)
    aligned: list[tuple[float, Any]] = list(given)
    likely: list[tuple[float, Any]] = list(given)
    try:
        lengths = durations_of(steps, options["clip_seconds"], options.get("durations"), options["min_clips"])
        policy = options.get("repeat")
        repeats = [None] * len(costs) if policy is None else repeat_costs_of_many(costs, policy)
        problems: dict[int, Problem] = {}
        known: dict[bytes | None, Problem] = {}  # by the costs of repeats: the rest is the same for all
        for at, (one, repeat) in enumerate(zip(costs, repeats, strict=True)):
            same = None if repeat is None else repeat.tobytes()
            if same in known:
                problems[at] = known[same].of_video(one.match, one.drop, one.skip)
            else:
                extras = repeat, lengths, options.get("violation", 1.0), (), options["contiguous"]
                problems[at] = known[same] = Problem(flow, one.match, one.drop, one.skip, *extras)
    except Graph2VidError:  # `ground` says of which, and why
        return aligned, likely
    side_by_side = {at: problem for at, problem in problems.items() if problem.is_extended}
    resources = Resources.check(workers=_THREADS, memory_limit=_LANE_BYTES)
    for found in solve_side_by_side(side_by_side, False, resources, gamma):
        for at, (cost, labels, soft) in found.items():
            aligned[at] = cost, labels
            likely[at] = (0.0, None) if soft is None else (soft.cost, soft.probability.ravel())
    return aligned, likely


def _aligned(tsort: TSortGraph, costs: Sequence[Costs], options: Mapping[str, Any]) -> _Aligned:
    """Align videos of one dtype with the plain model."""
    kernels, compiled, contiguous = native(), procedure(tsort), options["contiguous"]
    assert kernels is not None
    matches, drops, skips = ([getattr(cost, name) for cost in costs] for name in ("match", "drop", "skip"))
    aligned = compiled.solve_many(matches, drops, skips, contiguous, False, 0, _THREADS, native_watch())
    if not options["confidence"]:
        return aligned, [(0.0, None)] * len(costs)
    # Each video in a lane of its own, so that the last bits do not depend on how many there are.
    how = options["gamma"], False, contiguous, True, False, True, _THREADS, FREE_BYTES
    return aligned, kernels.soft_many([compiled] * len(costs), matches, drops, skips, *how, native_watch())


def _is_told_apart(costs: Costs, found: float) -> bool:
    """Tell whether the dtype of costs tells their sums apart, as :func:`graph2vid.align` asks it."""
    if costs.match.shape[1] <= LONG and abs(found) <= LONG:
        return True
    given = ClipCosts(costs.match, costs.drop, costs.skip)
    return widened(given) is given


def _suits(gamma: float, videos: Sequence[Costs]) -> Sequence[bool]:
    """Tell for which videos gamma is neither too small nor too large beside the costs; for all at once."""
    parts = [array for one in videos for array in (one.match.ravel(), one.drop, one.skip) if array is not None]
    sizes = [one.match.size + one.drop.size + (0 if one.skip is None else one.skip.size) for one in videos]
    flat, begins = np.concatenate(parts), np.append(0, np.cumsum(sizes)[:-1])
    largest = np.maximum(np.maximum.reduceat(flat, begins), -np.minimum.reduceat(flat, begins)).astype(np.float64)
    if np.isinf(largest).any():  # what is forbidden does not count
        flat[np.isinf(flat)] = 0.0
        largest = np.maximum.reduceat(np.abs(flat), begins).astype(np.float64)
    least, most = gamma_bounds(largest, np.array([one.match.shape[1] for one in videos]))
    suited: list[bool] = ((least <= gamma) & (gamma <= most)).tolist()
    return suited


def _answers(solved: Sequence[_Solved], n_steps: int) -> Answers:
    """Describe alignments; all at once, for there are many and they are short."""
    lengths = np.array([len(one.labels) for one in solved])
    ends = np.cumsum(lengths)
    begins = ends - lengths
    labels = np.concatenate([one.labels for one in solved])
    new = np.empty(len(labels), dtype=bool)
    new[0] = True
    new[1:] = labels[1:] != labels[:-1]
    new[begins] = True  # no run goes on into the next video
    first = np.flatnonzero(new)
    stop = np.append(first[1:], len(labels))
    sums = np.add.reduceat(_likelihoods(solved, labels, lengths, n_steps), first)
    video = np.searchsorted(ends, first, side="right")
    forced = (labels[first] >= 0) & _forced(solved, n_steps)[video, labels[first]]
    # What is one clip long, and forced by the order alone, is not shown.
    shown = (labels[first] >= 0) & ~(forced & (stop - first == 1) & (lengths[video] > 1))
    first, stop, sums, video, forced = (column[shown] for column in (first, stop, sums, video, forced))
    seconds, offset = (
        np.array([one.request.options[name] for one in solved])[video] for name in ("clip_seconds", "offset")
    )
    posterior = np.minimum(sums / (stop - first), 1.0)
    sliver = (stop - first == 1) & (posterior < LIKELY) & (lengths[video] > 1)
    return Answers(
        requests=[one.request for one in solved],
        cost=np.array([one.cost for one in solved], dtype=np.float64),
        gap=np.zeros(len(solved)),
        n_clips=lengths,
        confidence_of_video=np.full(len(solved), np.nan),
        first=np.searchsorted(video, np.arange(len(solved) + 1)),
        steps=labels[first],
        starts=offset + (first - begins[video]) * seconds,
        ends=offset + (stop - begins[video]) * seconds,
        confidence=np.full(len(first), np.nan),
        posterior=posterior,
        doubtful=forced | sliver,
    )


def _forced(solved: Sequence[_Solved], n_steps: int) -> NDArray[np.bool_]:
    """Return which steps are where they are by the order alone, [V, K]; of many videos of one length at once."""
    forced = np.empty((len(solved), n_steps), dtype=bool)
    of_length: dict[int, list[int]] = {}
    for at, one in enumerate(solved):
        of_length.setdefault(len(one.labels), []).append(at)
    for places in of_length.values():
        for start in range(0, len(places), SIDE_BY_SIDE):
            some = places[start : start + SIDE_BY_SIDE]
            match, drop = (np.stack([getattr(solved[at].costs, name) for at in some]) for name in ("match", "drop"))
            forced[some] = forced_steps(drop[:, np.newaxis] - match, np.stack([solved[at].labels for at in some]))
    return forced


def _likelihoods(
    solved: Sequence[_Solved], labels: NDArray[np.int64], lengths: NDArray[np.int64], n_steps: int
) -> Floats64:
    """Return how probable the label of each clip is, for the clips of all videos; NaN where that is not known."""
    flat = [one.sure for one in solved if one.sure is not None]
    if len(flat) < len(solved):
        return np.full(len(labels), np.nan)
    of_video = np.cumsum([0, *(len(one) for one in flat[:-1])])
    begins = np.cumsum(lengths) - lengths
    row = np.where(labels < 0, n_steps, labels)  # the row after the steps' is background's
    place = np.arange(len(labels)) + np.repeat(of_video - begins, lengths) + row * np.repeat(lengths, lengths)
    found: Floats64 = np.concatenate(flat)[place].astype(np.float64)
    return found
