"""The costs that a solver works on, checked, with pins and forbidden spans written into them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from graph2vid._arrays import Floats, as_floats
from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph


class ClipCosts(NamedTuple):
    """Costs of one video, C-contiguous and all of one dtype, float32 or float64.

    Attributes
    ----------
    match : [K, N]
        How badly each step explains each clip; +∞ is forbidden.
    drop : [N]
        The cost of calling a clip background; +∞ is forbidden.
    skip : [K] or None
        The cost of not showing a step; None: every step is shown.
    """

    match: Floats
    drop: Floats
    skip: Floats | None

    @property
    def dtype(self) -> str:
        """The name of their dtype; NumPy takes longer to say it."""
        return "float32" if self.match.itemsize == 4 else "float64"

    def astype(self, dtype: Any) -> ClipCosts:
        """Return the costs in another floating type; themselves where it is theirs."""
        if self.match.dtype == dtype:
            return self
        return ClipCosts(*(None if part is None else part.astype(dtype) for part in self))  # type: ignore[arg-type]

    def largest(self) -> float:
        """Return the largest finite cost, whatever its sign."""
        largest = 0.0
        for cost in self:
            if cost is not None:
                size = max(float(cost.max()), -float(cost.min()))
                if size == np.inf:
                    size = float(np.max(np.abs(cost), where=np.isfinite(cost), initial=0.0))
                largest = max(largest, size)
        return largest


def check_costs(flow: FlowGraph, match: Any, drop: Any, skip: Any) -> ClipCosts:
    """Check the costs of a video against its procedure and bring them into one form; optional steps are free to skip.

    Parameters
    ----------
    flow : FlowGraph
        The procedure, of K steps.
    match : array-like [K, N]
    drop : array-like [N] or float
    skip : array-like [K], float or None

    Raises
    ------
    InputError
        For a wrong shape (naming it and the axis), NaN or -∞ (naming step and clip).
    """
    if not isinstance(flow, FlowGraph):
        raise InputError(f"the procedure must be a FlowGraph or a TSortGraph, not {type(flow).__name__}")
    steps = len(flow)
    checked = np.ascontiguousarray(as_floats(match, "match"))
    if checked.ndim != 2:
        raise InputError(f"match has shape {checked.shape}; it must be [steps, clips] = [{steps}, N]")
    if checked.shape[0] != steps:
        hint = ": is it [clips, steps]? transpose it" if checked.shape[1] == steps else ""
        raise InputError(
            f"match has shape {checked.shape}: axis 0 is {checked.shape[0]} long, "
            f"but the procedure has {steps} steps{hint}"
        )
    clips = checked.shape[1]
    if clips == 0:
        raise InputError(f"match has shape {checked.shape}: the video has no clips")
    dtype = checked.dtype
    dropped = _vector("drop", drop, clips, "clips", dtype, checked.shape)
    skipped = None if skip is None else _vector("skip", skip, steps, "steps", dtype, checked.shape)
    if flow.optional:
        skipped = np.full(steps, np.inf, dtype) if skipped is None else skipped.copy()
        free = list(flow.optional)
        skipped[free] = np.minimum(skipped[free], 0)
    # One pass over each array: a minimum is NaN if anything is.
    if not checked.min() > -np.inf:
        step, clip = (int(i) for i in np.argwhere(~(checked > -np.inf))[0])
        raise InputError(
            f"match[{step}, {clip}] is {checked[step, clip]} (step {flow.steps[step].id!r}): costs are finite or +inf"
        )
    if not dropped.min() > -np.inf:
        clip = int(np.flatnonzero(~(dropped > -np.inf))[0])
        raise InputError(f"drop[{clip}] is {dropped[clip]}: costs are finite or +inf")
    if skipped is not None and not skipped.min() > -np.inf:
        step = int(np.flatnonzero(~(skipped > -np.inf))[0])
        raise InputError(f"skip[{step}] is {skipped[step]} (step {flow.steps[step].id!r}): costs are finite or +inf")
    return ClipCosts(checked, dropped, skipped)


def _vector(name: str, value: Any, length: int, axis: str, dtype: Any, match_shape: tuple[int, ...]) -> Floats:
    array = given = as_floats(value, name)
    if given.dtype != dtype:
        with np.errstate(over="ignore"):
            array = given.astype(dtype)
        if np.any(np.isinf(array) & np.isfinite(given)):
            raise InputError(f"{name} holds numbers too large for {dtype}, which match is in: give match as float64")
    if array.ndim == 0:
        return np.full(length, array, dtype)
    if array.shape != (length,):
        raise InputError(
            f"{name} has shape {array.shape}, but match has shape {match_shape}: "
            f"{name} must have one number for each of its {length} {axis}"
        )
    return np.ascontiguousarray(array)


def may_overflow(costs: ClipCosts, largest: float, gamma: float = 1.0) -> bool:
    """Tell whether sums of finite costs up to ``largest``, over ``gamma``, could go beyond what their dtype holds."""
    terms = costs.match.shape[0] + costs.match.shape[1]
    return bool(largest > float(np.finfo(costs.match.dtype).max) / terms * min(gamma, 1.0))


LONG = 4096
"""Clips, and cost, from which on it is asked whether float32 tells sums of the costs apart."""

_ROUNDING = 1e4 * float(np.finfo(np.float64).eps)  # so that probabilities are right to four digits
_SINGLE = 2.0**18  # how much larger than the differences between the labels of a clip sums may be in float32


def widened(costs: ClipCosts) -> ClipCosts:
    """Return the costs in float64 where float32 would round away what tells their labels apart; else as they are."""
    if costs.match.dtype != np.float32:
        return costs
    of_label = np.vstack([costs.match, costs.drop])
    finite = np.isfinite(of_label)
    low, high = (np.where(finite, of_label, 0.0), np.where(finite, of_label, 0.0))
    largest = float(np.abs(low).max(axis=0).sum(dtype=np.float64))
    low[~finite], high[~finite] = np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        apart = high.max(axis=0).astype(np.float64) - low.min(axis=0)
    apart = apart[apart > 0]
    if not len(apart) or largest <= _SINGLE * float(np.median(apart)):
        return costs
    return costs.astype(np.float64)


def gamma_bounds(largest: Any, clips: Any) -> tuple[Any, Any]:
    """Return between which numbers gamma must lie, by the largest cost and the number of clips: numbers, or arrays."""
    with np.errstate(over="ignore"):  # beside such costs no gamma is too large
        total = np.multiply(largest, clips)
        return total * _ROUNDING, np.maximum(total, 1.0) / _ROUNDING


def check_gamma(gamma: Any) -> float:
    """Return gamma as a float; it must be finite and above 0."""
    if isinstance(gamma, bool) or not isinstance(gamma, int | float | np.number) or not 0 < gamma < np.inf:
        raise InputError(f"gamma must be a finite number above 0, not {gamma!r}")
    return float(gamma)


def refuse_gamma(costs: ClipCosts, gamma: float) -> None:
    """Refuse a gamma beside which the sums of the costs are all rounding, or nothing at all."""
    largest, clips = costs.largest(), costs.match.shape[1]
    least, most = gamma_bounds(largest, clips)
    if gamma < least:
        raise InputError(
            f"gamma={gamma:g} is lost in the rounding of the sums of the costs, which are up to {largest * clips:.3g}: "
            "raise gamma, or use align"
        )
    if gamma > most:
        raise InputError(f"gamma={gamma:g} is so large that the costs, of up to {largest:.3g}, do not matter: lower it")
    if may_overflow(costs, largest, gamma):
        raise InputError(f"the costs divided by gamma={gamma:g} overflow: scale the costs down or raise gamma")


# -- constraints ------------------------------------------------------------------------------------------------

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


def constrain(costs: ClipCosts, constraints: Iterable[Constraint]) -> ClipCosts:
    """Write constraints into a copy of the costs as +∞.

    Parameters
    ----------
    costs : ClipCosts
        Of K steps and N clips.
    constraints : iterable of Constraint
        With spans in clips.
    """
    steps, clips = costs.match.shape
    match, drop = costs.match.copy(), costs.drop.copy()
    skip = None if costs.skip is None else costs.skip.copy()
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
    return ClipCosts(match, drop, skip)


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
