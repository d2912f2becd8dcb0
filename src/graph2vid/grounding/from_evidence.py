"""From evidence to a grounding: costs, alignment, posterior, margins."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from graph2vid._options import GroundOptions
from graph2vid.alignment import BACKGROUND, Constraint, Problem, check_costs, order_trust
from graph2vid.errors import InputError, TooLargeError
from graph2vid.evidence import Evidence, repeat_costs
from graph2vid.flow import FlowGraph
from graph2vid.grounding.assessment import assess
from graph2vid.grounding.doubt import Conflict, free_hidden, order_slivers, overruled, relax, suspend
from graph2vid.grounding.durations_file import durations_of
from graph2vid.grounding.grounding_result import GroundedSegment, Grounding
from graph2vid.grounding.times import clips_in_span, format_time
from graph2vid.tsort import TSortGraph

_PLAIN = (type(None), bool, int, float, str)  # what JSON knows


def ground_evidence(
    flow: FlowGraph | TSortGraph,
    evidence: Evidence,
    options: GroundOptions = GroundOptions(),  # noqa: B008
    *,
    constraints: Iterable[Constraint] = (),
    video: str | None = None,
) -> Grounding:
    """Say when each step happens, from evidence that was acquired.

    Parameters
    ----------
    flow : FlowGraph or TSortGraph
        The procedure (K steps); compile it once if it is applied to many videos.
    evidence : Evidence
        For these steps.
    options : GroundOptions
        Those of costs and alignment, and the length of clips.
    constraints : iterable of Constraint
        Pins and forbidden spans, in **seconds**. A clip belongs to a span if its middle lies in start ≤ t <
        stop; ±∞ is an open end. A span that holds no clip is an error.
    video : str, optional
        The path or URL of the video, for the result.

    Returns
    -------
    Grounding
        Complete. Where confidences or margins need more memory or time than there is, a warning says so and they are
        None.
    """
    procedure = flow if isinstance(flow, FlowGraph) else flow.flow
    asked = options.alignment
    costs = evidence.costs(options.costs, len(procedure))
    n_clips = costs.match.shape[1]
    in_seconds = tuple(constraints)
    in_clips = tuple(_in_clips(c, procedure, n_clips, options) for c in in_seconds)
    repeat, repeat_policy = (None, None) if asked.repeat is None else repeat_costs(costs, asked.repeat)
    durations = durations_of(procedure, options.evidence.clip_seconds, asked.durations, asked.min_clips)
    violation = asked.violation
    if violation is None:
        violation = order_trust(procedure, check_costs(procedure, costs.match, costs.drop, costs.skip))
    of_steps = repeat, durations, violation
    problem = Problem(flow, costs.match, costs.drop, costs.skip, *of_steps, in_clips, asked.contiguous)
    problem, found, moved = suspend(problem, problem.align(asked.method, time_limit=asked.time_limit))
    problem, found = free_hidden(problem, found)
    dropped: list[Conflict] = []
    if asked.relax:
        problem, found, dropped = relax(problem, found)
        procedure = problem.flow
    known = assess(problem, found, evidence, costs.options, options)
    clip_seconds, offset = options.evidence.clip_seconds, options.evidence.offset
    slivers = order_slivers(problem, found)
    labels = found.labels.copy()
    for one in compress(found.segments, slivers):
        labels[one.start : one.stop] = BACKGROUND
    in_time = [
        replace(one, start=offset + one.start * clip_seconds, end=offset + one.end * clip_seconds)
        for one in known.elsewhere
    ]
    spare, of_order = None, {}
    if asked.margins:
        try:
            spare = problem.margins(found, time_limit=asked.time_limit)
            if asked.contiguous:  # how much more the second-best order costs
                best = problem.k_best(2, time_limit=asked.time_limit)
                of_order = {"order_margin": best[1].cost - best[0].cost if len(best) > 1 else "inf"}
        except TooLargeError as error:  # the alignment was not an exact one, and its alternatives would not be
            warnings.warn(f"not all margins are given: {error}", stacklevel=2)
    about = costs.options | {
        "repeat": repeat_policy,
        "durations": durations is not None,
        **({"violation": violation} if procedure.confidences else {}),
        "contiguous": asked.contiguous,
        "constraints": [_described(constraint, procedure) for constraint in in_seconds],
        "gamma": None,
        **known.about,
        **({"relaxed": [one.to_json(procedure) for one in dropped]} if asked.relax else {}),
        **of_order,
        "alignment": {key: value if isinstance(value, _PLAIN) else str(value) for key, value in found.options.items()},
        "settings": options.to_json(),
        **evidence.about,
    }
    segments = [
        GroundedSegment(
            step=one.step,
            id=procedure.ids[one.step],
            text=procedure.texts[one.step],
            start=offset + one.start * clip_seconds,
            end=offset + one.stop * clip_seconds,
            confidence=known.confidences[number],
            margin=None if spare is None else float(spare[number]),
            posterior=known.posteriors[number],
            why=known.why[number],
        )
        for number, one in enumerate(found.segments)
        if not slivers[number]
    ]
    with np.errstate(invalid="ignore"):  # forbidden both ways: ∞ - ∞
        over_background = costs.drop - costs.match
    return Grounding(
        flow=procedure,
        segments=tuple(segments),
        not_shown=tuple(sorted({*range(len(procedure))} - {one.step for one in segments})),
        order=tuple(dict.fromkeys(one.step for one in segments)),
        cost=float(found.cost),
        labels=labels,
        clip_seconds=clip_seconds,
        offset=offset,
        options=about,
        video=video,
        cues=evidence.cues,
        evidence=np.where(np.isnan(over_background), -np.inf, over_background),
        absent=known.absent,
        probability=known.probability,
        sources=dict(evidence.sources),
        overruled=overruled(procedure, found),
        suspended=moved,
        elsewhere=tuple(in_time),
    )


def _in_clips(constraint: Constraint, flow: FlowGraph, n_clips: int, options: GroundOptions) -> Constraint:
    """Return a constraint in seconds as one in clips."""
    clip_seconds, offset = options.evidence.clip_seconds, options.evidence.offset
    start, stop = clips_in_span(constraint.start, constraint.stop, n_clips, clip_seconds, offset)
    if start >= stop:
        of_step = "" if constraint.step is None else f" of step {flow.ids[flow.index(constraint.step)]!r}"
        raise InputError(
            f"constraint {constraint.kind!r}{of_step} from {constraint.start:g} s to {constraint.stop:g} s: "
            f"no clip has its middle in this span ({n_clips} clips of {clip_seconds:g} s from "
            f"{format_time(offset)} to {format_time(offset + n_clips * clip_seconds)})"
        )
    return replace(constraint, start=start, stop=stop)


def _described(constraint: Constraint, flow: FlowGraph) -> dict[str, Any]:
    """Return a constraint in seconds in a form fit for JSON; an open end is None."""
    start, stop = (float(at) if math.isfinite(at) else None for at in (constraint.start, constraint.stop))
    step = None if constraint.step is None else flow.ids[constraint.step]
    return {"kind": constraint.kind, "step": step, "start": start, "stop": stop}
