"""From arrays of evidence to a grounding."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid import alignment
from graph2vid.alignment import Alignment, Constraint, Durations, Posterior, check_gamma
from graph2vid.errors import InputError, TooLargeError
from graph2vid.evidence import Costs, costs_from_arrays, repeat_costs
from graph2vid.evidence.costs import PRESETS, Choice, resolve_choice
from graph2vid.evidence.policies import DROP_POLICIES, MATCH_POLICIES, REPEAT_POLICIES, SKIP_POLICIES
from graph2vid.flow import FlowGraph
from graph2vid.grounding.grounding_result import GroundedSegment, Grounding
from graph2vid.grounding.times import clips_in_span, format_time
from graph2vid.tsort import TSortGraph

_MOST_SECONDS = 1e9  # thirty years; beyond it times lose their fractions


def ground(
    flow: FlowGraph | TSortGraph,
    *,
    scores: ArrayLike | None = None,
    clips: ArrayLike | None = None,
    steps: ArrayLike | None = None,
    log_probabilities: ArrayLike | None = None,
    clip_seconds: float = 1.0,
    offset: float = 0.0,
    preset: str | None = None,
    match: str | None = None,
    drop: Choice | None = None,
    skip: Choice | None = None,
    temperature: float | None = None,
    classes: ArrayLike | None = None,
    repeat: Choice | None = None,
    durations: Durations | ArrayLike | None = None,
    breaking: float = 1.0,
    constraints: Iterable[Constraint] = (),
    contiguous: bool = True,
    method: str | None = None,
    time_limit: float | None = None,
    confidence: bool = True,
    margins: bool = False,
    gamma: float = 1.0,
) -> Grounding:
    """Say when each step happens, from one kind of evidence.

    Parameters
    ----------
    flow : FlowGraph or TSortGraph
        The procedure (K steps); compile it once if it is applied to many videos.
    scores : array [K, N], optional
        How well each step matches each clip; higher is better.
    clips, steps : arrays [N, D] and [K, D], optional
        Embeddings of clips and steps, compared by cosine.
    log_probabilities : array [K, N], optional
        log p(step | clip).
    clip_seconds : float
        Length of a clip in seconds.
    offset : float
        Where the first clip begins, in seconds.
    preset, match, drop, skip, temperature, classes
        How evidence becomes costs: see :func:`graph2vid.evidence.costs_from_arrays`.
    repeat : choice, optional
        A policy of ``REPEAT_POLICIES``: the price of returning to a step; by default no step is returned to.
    durations, breaking
        As for :func:`graph2vid.align`: what runs cost by their length in clips, or how many clips they have at the
        least; and what the log-odds of doubtful edges are multiplied by.
    constraints : iterable of Constraint
        Pins and forbidden spans, in **seconds**. A clip belongs to a span if its middle lies in start ≤ t <
        stop; ±∞ is an open end. A span that holds no clip is an error.
    contiguous : bool
        Each step in one unbroken run of clips; otherwise background may lie inside a step.
    method : str, optional
        The method of :func:`graph2vid.align`.
    time_limit : float, optional
        Seconds that the search for an alignment may take where an exact answer is out of reach; by default 30. How
        good the answer is proven to be then stands in ``options["alignment"]``: ``lower_bound`` and ``gap``.
    confidence : bool
        Compute a confidence per segment: the mean posterior probability of its step over its clips. Where the
        memory does not suffice for this, a warning says so and the confidences are None.
    margins : bool
        Compute for each segment how much more the best alternative to it costs: an alignment for each. How much more
        the second-best order costs stands in ``options["order_margin"]``, unless not ``contiguous``.
    gamma : float
        Temperature of the posterior, in units of cost: larger is less sure of itself.

    Returns
    -------
    Grounding
    """
    if not isinstance(flow, FlowGraph | TSortGraph):
        raise InputError(f"a FlowGraph or TSortGraph is needed, not {type(flow).__name__}; see FlowGraph.load")
    for name, value in (("clip_seconds", clip_seconds), ("offset", offset)):
        if not isinstance(value, int | float | np.number) or not abs(value) < _MOST_SECONDS:
            raise InputError(f"{name} must be a number of seconds below {_MOST_SECONDS:g}, not {value!r}")
    if clip_seconds <= 0:
        raise InputError(f"clip_seconds must be positive, not {clip_seconds!r}")
    procedure = flow if isinstance(flow, FlowGraph) else flow.flow
    costs = costs_from_arrays(
        scores=scores,
        clips=clips,
        steps=steps,
        log_probabilities=log_probabilities,
        preset=preset,
        match=match,
        drop=drop,
        skip=skip,
        temperature=temperature,
        classes=classes,
        n_steps=len(procedure),
    )
    n_clips = costs.match.shape[1]
    in_seconds = tuple(constraints)
    in_clips = tuple(_in_clips(c, procedure, n_clips, clip_seconds, offset) for c in in_seconds)
    returns, returning = (None, None) if repeat is None else repeat_costs(costs, repeat)
    beyond: dict[str, Any] = {"repeat": returns, "durations": durations, "violation": breaking}
    is_plain = returns is None and durations is None and procedure.is_plain
    if isinstance(flow, FlowGraph) and method not in ("brute", "anytime") and is_plain:
        with suppress(TooLargeError):  # what cannot be compiled is searched
            flow = TSortGraph.compile(flow)  # once, for alignment and posterior
    found = alignment.align(
        flow,
        costs.match,
        costs.drop,
        costs.skip,
        contiguous=contiguous,
        method=method,
        time_limit=time_limit,
        constraints=in_clips,
        **beyond,
    )
    sure = None
    if confidence:
        try:
            sure = alignment.posterior(
                flow,
                costs.match,
                costs.drop,
                costs.skip,
                gamma=gamma,
                contiguous=contiguous,
                constraints=in_clips,
                time_limit=time_limit,
                **beyond,
            )
        except TooLargeError as error:  # the posterior needs more memory or time than the alignment, which stands
            warnings.warn(f"no confidence is given: {error}", stacklevel=2)
    spare, of_order = None, None
    if margins:
        asked = (flow, costs.match, costs.drop, costs.skip)
        try:
            ruled = {"constraints": in_clips, "time_limit": time_limit, **beyond}
            spare = alignment.margins(*asked, found=found, contiguous=contiguous, **ruled)
            of_order = _order_margin(*asked, **ruled) if contiguous else None
        except TooLargeError as error:  # the alignment was not an exact one, and its alternatives would not be
            warnings.warn(f"not all margins are given: {error}", stacklevel=2)
    options = costs.options | {
        "repeat": returning,
        "durations": durations is not None,
        "contiguous": bool(contiguous),
        "constraints": [_described(constraint, procedure) for constraint in in_seconds],
        "gamma": None if sure is None else float(gamma),
        **({} if of_order is None else {"order_margin": of_order}),
        "alignment": _plain(found.options),
    }
    return _grounding(found, sure, spare, _evidence(costs), float(clip_seconds), float(offset), options)


def check_settings(
    *,
    preset: str | None = None,
    match: str | None = None,
    drop: Choice | None = None,
    skip: Choice | None = None,
    repeat: Choice | None = None,
    temperature: float | None = None,
    gamma: float = 1.0,
    clip_seconds: float = 1.0,
) -> None:
    """Refuse settings of :func:`ground` that no evidence could make right, before evidence is made at great cost."""
    if preset is not None and preset not in PRESETS:
        raise InputError(f"unknown preset {preset!r}; known: {', '.join(sorted(PRESETS))}")
    if match is not None:
        MATCH_POLICIES.get(match)
    for choice, policies, of_array in (
        (drop, DROP_POLICIES, "vector"),
        (skip, SKIP_POLICIES, "given"),
        (repeat, REPEAT_POLICIES, "given"),
    ):
        if choice is not None:
            policies.get(resolve_choice(choice, policies, of_array=of_array)[0])
    if temperature is not None and not 0 < temperature < math.inf:
        raise InputError(f"temperature must be a positive number, not {temperature!r}")
    check_gamma(gamma)
    if not 0 < clip_seconds < math.inf:
        raise InputError(f"clip_seconds must be positive, not {clip_seconds!r}")


def _order_margin(*costs: Any, **beyond: Any) -> float | str:
    """Return how much more the second-best order costs; "inf" where there is none."""
    best = alignment.k_best(*costs, k=2, **beyond)
    return best[1].cost - best[0].cost if len(best) > 1 else "inf"


def _evidence(costs: Costs) -> NDArray[np.float64]:
    """Return by how much each step explains each clip better than background does, [K, N]."""
    with np.errstate(invalid="ignore"):  # forbidden both ways: ∞ - ∞
        evidence = costs.drop - costs.match
    return np.where(np.isnan(evidence), -np.inf, evidence)


def _grounding(
    found: Alignment,
    sure: Posterior | None,
    spare: NDArray[np.float64] | None,
    evidence: NDArray[np.float64],
    clip_seconds: float,
    offset: float,
    options: dict[str, Any],
) -> Grounding:
    flow = found.flow
    segments = []
    for number, run in enumerate(found.segments):
        # Rounding in the posterior may carry a mean a hair beyond 1.
        confidence = None if sure is None else min(1.0, sure.confidence(run))
        segments.append(
            GroundedSegment(
                step=run.step,
                id=flow.ids[run.step],
                text=flow.texts[run.step],
                start=offset + run.start * clip_seconds,
                end=offset + run.stop * clip_seconds,
                confidence=confidence,
                margin=None if spare is None else float(spare[number]),
            )
        )
    return Grounding(
        flow=flow,
        segments=tuple(segments),
        not_shown=tuple(found.skipped),
        order=tuple(found.order),
        cost=float(found.cost),
        labels=found.labels,
        clip_seconds=clip_seconds,
        offset=offset,
        options=options,
        evidence=evidence,
    )


def _in_clips(constraint: Constraint, flow: FlowGraph, n_clips: int, clip_seconds: float, offset: float) -> Constraint:
    """Return a constraint in seconds as one in clips."""
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
    return {
        "kind": constraint.kind,
        "step": None if constraint.step is None else flow.ids[constraint.step],
        "start": float(constraint.start) if math.isfinite(constraint.start) else None,
        "stop": float(constraint.stop) if math.isfinite(constraint.stop) else None,
    }


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with anything that JSON does not know written as a string."""
    return {
        key: value if value is None or isinstance(value, bool | int | float | str) else str(value)
        for key, value in options.items()
    }
