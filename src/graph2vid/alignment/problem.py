"""The costs that a solver works on, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graph2vid._arrays import Floats, as_floats
from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph


@dataclass(frozen=True, slots=True)
class Problem:
    """Costs of one video, C-contiguous and all of one dtype, float32 or float64.

    Attributes
    ----------
    match : [K, N]
        How badly each step explains each clip; +∞ is forbidden.
    drop : [N]
        The price of calling a clip background; +∞ is forbidden.
    skip : [K] or None
        The price of not showing a step; None: every step is shown.
    """

    match: Floats
    drop: Floats
    skip: Floats | None


def check_problem(flow: FlowGraph, match: Any, drop: Any, skip: Any) -> Problem:
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
    return Problem(checked, dropped, skipped)


def _vector(name: str, value: Any, length: int, axis: str, dtype: Any, match_shape: tuple[int, ...]) -> Floats:
    given = np.ascontiguousarray(as_floats(value, name))
    with np.errstate(over="ignore"):
        array = given.astype(dtype, copy=False)
    if array is not given and np.any(np.isinf(array) & np.isfinite(given)):
        raise InputError(f"{name} holds numbers too large for {dtype}, which match is in: give match as float64")
    if array.ndim == 0 or (array.ndim == 1 and np.ndim(value) == 0):
        return np.full(length, array, dtype)
    if array.shape != (length,):
        raise InputError(
            f"{name} has shape {array.shape}, but match has shape {match_shape}: "
            f"{name} must have one number for each of its {length} {axis}"
        )
    return array


def may_overflow(problem: Problem, gamma: float = 1.0) -> bool:
    """Tell whether sums of the finite costs, divided by ``gamma``, could go beyond what their dtype holds."""
    terms = problem.match.shape[0] + problem.match.shape[1]
    return bool(_largest(problem) > float(np.finfo(problem.match.dtype).max) / terms * min(gamma, 1.0))


LONG = 4096
"""Clips, and cost, from which on it is asked whether float32 tells sums of the costs apart."""

_ROUNDING = 1e4 * float(np.finfo(np.float64).eps)  # so that probabilities are right to four digits
_SINGLE = 2.0**18  # how much larger than the differences between the labels of a clip sums may be in float32


def widened(problem: Problem) -> Problem:
    """Return the problem in float64 where float32 would round away what tells its labels apart; else as it is."""
    if problem.match.dtype != np.float32:
        return problem
    costs = np.vstack([problem.match, problem.drop])
    finite = np.isfinite(costs)
    low, high = (np.where(finite, costs, 0.0), np.where(finite, costs, 0.0))
    largest = float(np.abs(low).max(axis=0).sum(dtype=np.float64))
    low[~finite], high[~finite] = np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        apart = high.max(axis=0).astype(np.float64) - low.min(axis=0)
    apart = apart[apart > 0]
    if not len(apart) or largest <= _SINGLE * float(np.median(apart)):
        return problem
    skip = None if problem.skip is None else problem.skip.astype(np.float64)
    return Problem(problem.match.astype(np.float64), problem.drop.astype(np.float64), skip)


def gamma_bounds(largest: Any, clips: Any) -> tuple[Any, Any]:
    """Return between which numbers gamma must lie, by the largest cost and the number of clips: numbers, or arrays."""
    with np.errstate(over="ignore"):  # beside such costs no gamma is too large
        total = np.multiply(largest, clips)
        return total * _ROUNDING, np.maximum(total, 1.0) / _ROUNDING


def refuse_gamma(problem: Problem, gamma: float) -> None:
    """Refuse a gamma beside which the sums of the costs are all rounding, or nothing at all."""
    largest, clips = _largest(problem), problem.match.shape[1]
    least, most = gamma_bounds(largest, clips)
    if gamma < least:
        raise InputError(
            f"gamma={gamma:g} is lost in the rounding of the sums of the costs, which are up to {largest * clips:.3g}: "
            "raise gamma, or use align"
        )
    if gamma > most:
        raise InputError(f"gamma={gamma:g} is so large that the costs, of up to {largest:.3g}, do not matter: lower it")


def _largest(problem: Problem) -> float:
    """Return the largest finite cost, whatever its sign."""
    costs = [problem.match, problem.drop] if problem.skip is None else [problem.match, problem.drop, problem.skip]
    return max(float(np.max(np.abs(cost), where=np.isfinite(cost), initial=0.0)) for cost in costs)
