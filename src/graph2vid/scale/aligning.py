"""Many videos of many procedures aligned: costs, alignments and confidences of those alike side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.alignment import Alignment, align, align_many, posterior
from graph2vid.alignment.backends import native
from graph2vid.alignment.soft import soft_costs
from graph2vid.errors import TooLargeError
from graph2vid.evidence import Costs
from graph2vid.flow import FlowGraph
from graph2vid.scale.costs import COST_OPTIONS, costs_of_many
from graph2vid.tsort import TSortGraph


@dataclass(frozen=True, eq=False)
class Request:
    """A video to be aligned.

    Attributes
    ----------
    flow : FlowGraph
        Its procedure, of K steps.
    tsort : TSortGraph or None
        Compiled; None if it cannot be.
    evidence : mapping
        Arrays as :func:`graph2vid.evidence.costs_from_arrays` takes them.
    options : mapping
        How evidence becomes costs, ``contiguous``, ``confidence``, ``gamma``, ``clip_seconds``, ``offset``.
    plausibility : float or None
        That the video shows the procedure at all, where narration tells.
    """

    flow: FlowGraph
    tsort: TSortGraph | None
    evidence: Mapping[str, Any]
    options: Mapping[str, Any]
    plausibility: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What is written about a video.

    Attributes
    ----------
    request : Request
    cost, gap : float
        Of the alignment; it lies at most ``gap`` above the optimum.
    n_clips : int
    steps : int array [S]
        The steps of its segments, in order of time.
    starts, ends : float arrays [S]
        Seconds.
    confidence : float array [S] or None
        Mean posterior probability of the step over the segment's clips.
    confidence_of_video : float or None
        The mean over all clips that show a step.
    """

    request: Request
    cost: float
    gap: float
    n_clips: int
    steps: NDArray[np.int64]
    starts: NDArray[np.float64]
    ends: NDArray[np.float64]
    confidence: NDArray[np.float64] | None
    confidence_of_video: float | None


def align_requests(requests: Sequence[Request], threads: int | None = None) -> list[Found | Exception]:
    """Align videos, those of one procedure and the same options together; an answer or an error for each.

    The answer to a request does not depend on the others, to the bit.
    """
    found: dict[int, Found | Exception] = {}
    groups: dict[Any, list[int]] = {}
    for at, request in enumerate(requests):
        groups.setdefault(_alike(request, at), []).append(at)
    for members in groups.values():
        group = [requests[at] for at in members]
        costs = costs_of_many([request.evidence for request in group], len(group[0].flow), group[0].options)
        usable = [(at, request, cost) for at, request, cost in zip(members, group, costs, strict=True)]
        found |= {at: cost for at, _, cost in usable if isinstance(cost, Exception)}
        usable = [entry for entry in usable if not isinstance(entry[2], Exception)]
        if usable:
            places, asked, priced = zip(*usable, strict=True)
            found |= zip(places, _answers(asked, priced, threads), strict=True)
    return [found[at] for at in range(len(requests))]


def _alike(request: Request, at: int) -> Any:
    """Return what requests that may be answered together have in common."""
    options = request.options
    policies = [options.get(name) for name in COST_OPTIONS]
    if request.tsort is None or not all(value is None or isinstance(value, str | float) for value in policies):
        return at  # policies with arrays, and procedures without a table: each alone
    others = (options["contiguous"], options["confidence"], options["gamma"])
    return id(request.tsort), *policies, *others


def _answers(requests: Sequence[Request], costs: Sequence[Costs], threads: int | None) -> list[Found | Exception]:
    """Answer requests of one procedure and the same options."""
    first = requests[0]
    contiguous = first.options["contiguous"]
    alignments: list[Alignment | Exception]
    try:
        if first.tsort is None:
            raise TooLargeError("the procedure has no table")
        alignments = list(
            align_many(
                first.tsort,
                [cost.match for cost in costs],
                [cost.drop for cost in costs],
                [cost.skip for cost in costs],
                contiguous,
                threads=threads,
            )
        )
    except Exception:  # of one of them: it is found by asking for each alone
        alignments = [_alone(first.tsort or first.flow, cost, contiguous, threads) for cost in costs]
    solved = {at: answer for at, answer in enumerate(alignments) if not isinstance(answer, Exception)}
    sure: list[NDArray[np.floating[Any]] | None] = [None] * len(solved)
    if first.options["confidence"]:
        sure = _probabilities(first, [costs[at] for at in solved], threads)
    found = iter(_found([requests[at] for at in solved], list(solved.values()), sure))
    return [answer if isinstance(answer, Exception) else next(found) for answer in alignments]


def _alone(
    procedure: TSortGraph | FlowGraph, cost: Costs, contiguous: bool, threads: int | None
) -> Alignment | Exception:
    try:
        return align(procedure, cost.match, cost.drop, cost.skip, contiguous, threads=threads)
    except Exception as error:
        return error


def _probabilities(
    first: Request, costs: Sequence[Costs], threads: int | None
) -> list[NDArray[np.floating[Any]] | None]:
    """Return the posterior of steps in clips [K, N] of each video; None where the memory does not suffice."""
    tsort, gamma, contiguous = first.tsort, first.options["gamma"], first.options["contiguous"]
    # A price of +∞ for leaving a step out is no price. It is told all the same, because the kernels then compute every
    # video in a lane of its own, and the last bits do not depend on how many there are.
    never = [np.full(len(first.flow), np.inf, cost.match.dtype) if cost.skip is None else cost.skip for cost in costs]
    found: list[NDArray[np.floating[Any]] | None] = [None] * len(costs)
    if native() is not None and tsort is not None and costs:
        for dtype in {cost.match.dtype for cost in costs}:
            members = [at for at, cost in enumerate(costs) if cost.match.dtype == dtype]
            try:
                soft = soft_costs(
                    [tsort] * len(members),
                    [costs[at].match for at in members],
                    [costs[at].drop for at in members],
                    [never[at] for at in members],
                    gamma=gamma,
                    smoothing="softmin",
                    contiguous=contiguous,
                    threads=threads,
                )
            except TooLargeError:
                continue
            for at, video in zip(members, soft, strict=True):
                found[at] = video.match if np.isfinite(video.cost) else None
    for at, cost in enumerate(costs):
        if found[at] is None:  # costs beyond single precision, no kernels, no table, or one too large for some
            try:
                one = posterior(tsort or first.flow, cost.match, cost.drop, cost.skip, contiguous, gamma=gamma)
                found[at] = one.probability[:-1]
            except Exception:
                continue
    return found


def _found(
    requests: Sequence[Request],
    alignments: Sequence[Alignment],
    sure: Sequence[NDArray[np.floating[Any]] | None],
) -> list[Found]:
    """Describe alignments; all at once, for there are many and they are short."""
    if not alignments:
        return []
    lengths = [len(alignment.labels) for alignment in alignments]
    ends = np.cumsum(lengths)
    labels = np.concatenate([alignment.labels for alignment in alignments])
    new = np.empty(len(labels), dtype=bool)
    new[0] = True
    new[1:] = labels[1:] != labels[:-1]
    new[ends[:-1]] = True  # no run goes on into the next video
    first = np.flatnonzero(new)
    stop = np.append(first[1:], len(labels))
    shown = labels[first] >= 0
    sums = np.zeros(len(first))
    if any(video is not None for video in sure):
        sums = np.add.reduceat(np.concatenate(list(map(_of_labels, alignments, sure))), first)
    first, stop, sums = first[shown], stop[shown], sums[shown]
    steps, means = labels[first], np.minimum(sums / (stop - first), 1.0)
    bounds = np.searchsorted(first, [0, *ends]).tolist()
    starts = [0, *ends.tolist()]
    found = []
    for at, (request, alignment) in enumerate(zip(requests, alignments, strict=True)):
        own = slice(bounds[at], bounds[at + 1])
        seconds, offset = request.options["clip_seconds"], request.options["offset"]
        begin, end = first[own] - starts[at], stop[own] - starts[at]
        known = sure[at] is not None and len(begin) > 0
        found.append(
            Found(
                request=request,
                cost=float(alignment.cost),
                gap=float(alignment.gap),
                n_clips=lengths[at],
                steps=steps[own],
                starts=offset + begin * seconds,
                ends=offset + end * seconds,
                confidence=means[own] if known else None,
                confidence_of_video=min(float(sums[own].sum() / (end - begin).sum()), 1.0) if known else None,
            )
        )
    return found


def _of_labels(alignment: Alignment, sure: NDArray[np.floating[Any]] | None) -> NDArray[np.float64]:
    """Return how probable each clip's label is [N]; of background, and where nothing is known, anything."""
    labels = alignment.labels
    if sure is None:
        return np.zeros(len(labels))
    return sure[labels, np.arange(len(labels))].astype(np.float64)
