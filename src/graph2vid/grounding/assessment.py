"""How far an alignment can be relied on: calibrated confidences, doubtful segments, edges that fight the evidence."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid._options import GroundOptions
from graph2vid.alignment import Alignment, Posterior, Problem
from graph2vid.errors import InputError, TooLargeError
from graph2vid.evidence import Evidence
from graph2vid.flow import surest
from graph2vid.grounding.calibrator import NARRATION, Calibrator, observe
from graph2vid.grounding.doubt import MOST_NAMED, Elsewhere, conflicts, elsewhere, log_odds, reasons, relax, weak

_BY_DEFAULT = {"preset": "log_odds", "match": "raw", "drop": "constant:0", "skip": "given", "temperature": 1.0}
"""The costs of narration that the calibrator was fitted on."""


@dataclass(frozen=True, eq=False)
class Assessment:
    """What is known about an alignment beside it.

    Attributes
    ----------
    confidences, posteriors : list of float or None
        Of each segment: calibrated, and the mean posterior.
    why : list of str
        Why each segment is doubtful; empty where it is not.
    absent : tuple of float
        The probability of each step that it is not shown; empty where it is not known.
    probability : float64 [K+1, N] or None
        Calibrated, of each label in each clip.
    elsewhere : list of Elsewhere
        Where steps that are doubtful or not shown may be, in clips.
    about : dict
        For the options of a result: ``calibration``, ``conflicts``, ``edges``.
    """

    confidences: list[float | None]
    posteriors: list[float | None]
    why: list[str]
    absent: tuple[float, ...] = ()
    probability: NDArray[np.float64] | None = None
    elsewhere: list[Elsewhere] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)


def assess(
    problem: Problem, found: Alignment, evidence: Evidence, costs: Mapping[str, Any], options: GroundOptions
) -> Assessment:
    """Say how far an alignment can be relied on.

    Parameters
    ----------
    problem : Problem
    found : Alignment
        Its answer.
    evidence : Evidence
    costs : mapping
        The settings that the costs were made with.
    options : GroundOptions
    """
    asked, number = options.alignment, len(found.segments)
    unknown: list[float | None] = [None] * number
    odds = log_odds(problem)
    if not asked.confidence:
        return Assessment(unknown, unknown, reasons(found, odds, unknown, unknown, asked.doubt))
    chosen = calibrator_for(evidence, costs, options)
    posteriors: dict[float, Posterior] = {}
    absent: tuple[float, ...] = ()
    sure, raw, probability = unknown, unknown, None
    try:
        try:
            weighed, posterior = problem, problem.posterior(asked.gamma, time_limit=asked.time_limit)
        except TooLargeError:
            weighed = _near(problem, found)
            posterior = weighed.posterior(asked.gamma, time_limit=asked.time_limit)
        posteriors[asked.gamma] = posterior
        # Rounding in the posterior may carry a mean a hair beyond 1.
        raw = [min(1.0, posterior.confidence(part)) for part in found.segments]
        if chosen is not None:
            seen = observe(
                weighed,
                found,
                clip_seconds=options.evidence.clip_seconds,
                strength=evidence.skip if chosen.evidence == NARRATION else None,
                likeness=evidence.about.get("narration", {}).get("likeness"),
                posteriors=posteriors,
                time_limit=asked.time_limit,
            )
            sure = chosen.confidences(seen).tolist()
            absent, probability = tuple(chosen.absences(seen).tolist()), chosen.probabilities(seen)
    except TooLargeError:  # the posterior needs more memory or time than the alignment, which stands
        warnings.warn(
            "no confidence is given: to weigh all orders that the steps may have takes more memory or time than there "
            "is (add links between steps, or ground fewer steps at once)",
            stacklevel=3,
        )
    about: dict[str, Any] = {
        "gamma": asked.gamma if posteriors else None,
        "calibration": None if chosen is None or not posteriors else {"evidence": chosen.evidence, **chosen.about},
    }
    why = reasons(found, odds, sure, raw, asked.doubt)
    flow = problem.flow
    if weak(found, odds):
        about["conflicts"] = [one.to_json(flow) for one in relax(problem, found, MOST_NAMED)[2]]
    if asked.margins:
        gains, complete = conflicts(problem, found)
        about["edges"] = {"complete": complete, "gains": [one.to_json(flow) for one in gains]}
    unsure = [segment.step for segment, reason in zip(found.segments, why, strict=True) if reason]
    places = elsewhere(problem, found, dict.fromkeys([*unsure, *found.skipped]))
    return Assessment(sure, raw, why, absent, probability, places, about)


def _near(problem: Problem, found: Alignment) -> Problem:
    """Return the problem with the orders alone that are not far from the one found, as many as can be weighed."""
    order = [*found.order, *(step for step in problem.flow.topological_order if step not in {*found.order})]
    even = dict.fromkeys(pairwise(order), 0.5)  # edges at even odds cost nothing, and say which orders are near
    return problem.with_flow(surest(problem.flow, even | {**problem.flow.confidence}))


def calibrator_for(evidence: Evidence, costs: Mapping[str, Any], options: GroundOptions) -> Calibrator | None:
    """Return the calibrator that fits the evidence: the user's, or that of narration; None where none does."""
    told = evidence.about.get("narration")
    is_narration = (
        told is not None
        and evidence.about.keys().isdisjoint(("frames", "on_screen", "extra_scores"))
        and told.get("embedder") == "wordllama"
        and told.get("weight") == 1.0
        and not told.get("settings")
        and options.alignment.contiguous
        and all(costs.get(name) == value for name, value in _BY_DEFAULT.items())
    )
    kind = NARRATION if is_narration else costs["evidence"]
    if not is_narration and not evidence.about.keys().isdisjoint(("narration", "frames", "on_screen", "extra_scores")):
        kind = "fused evidence"
    path = options.alignment.calibration
    if told is not None and "adapted" in told:
        is_narration, kind = False, "task model"
    if path is None and evidence.calibration is not None and options.alignment.contiguous:
        return Calibrator.from_json(evidence.calibration, "the calibrator of the task model")
    if path is None:
        return Calibrator.shipped() if is_narration else None
    given = path if isinstance(path, Calibrator) else Calibrator.load(path)
    if given.evidence != kind:
        raise InputError(f"the calibrator {path} is for {given.evidence}, and the evidence is {kind}")
    return given
