"""What the user knows already: pins and forbidden spans, written into the costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from graph2vid.alignment.problem import Problem
from graph2vid.errors import InputError

Kind = Literal["within", "forbid", "background", "show"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """One thing that is known about the video, over the half-open span from ``start`` to ``stop``.

    Spans are in clips for :func:`graph2vid.align` and in seconds for :func:`graph2vid.ground`.

    Attributes
    ----------
    kind : {"within", "forbid", "background", "show"}
        ``within``: the step is shown, with at least one clip, and only inside the span. ``forbid``: the step is not
        shown inside the span. ``background``: the span shows no step. ``show``: all of the span shows the step.
    step : int or None
        Index of the step; None for ``background``.
    start, stop : float
        The span. ``stop`` may be infinite.
    """

    kind: Kind
    step: int | None
    start: float
    stop: float

    def __str__(self) -> str:
        about = "" if self.step is None else f" step {self.step}"
        return f"{self.kind}{about} [{self.start:g}, {self.stop:g})"


def constrain(problem: Problem, constraints: Iterable[Constraint]) -> Problem:
    """Write constraints into a copy of the costs as +∞.

    Parameters
    ----------
    problem : Problem
        The costs of K steps and N clips.
    constraints : iterable of Constraint
        With spans in clips.
    """
    constraints = tuple(constraints)
    if not constraints:
        return problem
    steps, clips = problem.match.shape
    match, drop = problem.match.copy(), problem.drop.copy()
    skip = None if problem.skip is None else problem.skip.copy()
    for constraint in constraints:
        if constraint.kind not in ("within", "forbid", "background", "show"):
            raise InputError(f"unknown constraint {constraint.kind!r}; known: within, forbid, background, show")
        span = _clip_span(constraint, clips)
        step = constraint.step
        if constraint.kind == "background":
            if step is not None:
                raise InputError(f"constraint {constraint}: background concerns no step, step must be None")
            match[:, span] = np.inf
            continue
        if not isinstance(step, int | np.integer) or isinstance(step, bool) or not 0 <= step < steps:
            raise InputError(f"constraint {constraint}: there is no step {step!r}, steps are 0 … {steps - 1}")
        if constraint.kind == "forbid":
            match[step, span] = np.inf
            continue
        others = np.ones(match.shape, bool)
        if constraint.kind == "within":
            others[:] = False
            others[step] = True
            others[step, span] = False
        else:
            others[:, : span.start] = False
            others[:, span.stop :] = False
            others[step] = False
            drop[span] = np.inf
        match[others] = np.inf
        if skip is not None:
            skip[step] = np.inf
    return Problem(match, drop, skip)


def _clip_span(constraint: Constraint, clips: int) -> slice:
    try:
        start, stop = max(constraint.start, 0), min(constraint.stop, clips)
    except TypeError as error:
        raise InputError(f"constraint {constraint.kind}: a span is two numbers, not {constraint.start!r} …") from error
    if not (np.isfinite(start) and start == int(start) and np.isfinite(stop) and stop == int(stop)):
        raise InputError(f"constraint {constraint}: spans begin and end at whole clips here")
    if start >= stop:
        raise InputError(f"constraint {constraint}: the span holds no clip of the video, which has {clips}")
    return slice(int(start), int(stop))
