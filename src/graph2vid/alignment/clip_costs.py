"""The costs that a solver works on, checked, with pins and forbidden spans written into them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid._arrays import Floats, as_floats
from graph2vid.alignment.durations import Durations
from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph, bits

Flags = NDArray[np.bool_]


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
    costs = ClipCosts(checked, dropped, skipped)
    # One pass over each array: a minimum is NaN if anything is.
    least = np.minimum.reduce
    if not (
        least(checked, None) > -np.inf and least(dropped) > -np.inf and (skipped is None or least(skipped) > -np.inf)
    ):
        bad = ((name, part) for name, part in costs._asdict().items() if part is not None and not part.min() > -np.inf)
        name, part = next(bad)
        at = tuple(np.argwhere(~(part > -np.inf))[0].tolist())
        about = "" if name == "drop" else f" (step {flow.steps[at[0]].id!r})"
        raise InputError(f"{name}{list(at)} is {part[at]}{about}: costs are finite or +inf")
    return costs


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
    # Where in most clips already background and the first step differ by more than is needed, nothing need be summed.
    needed = costs.largest() * len(costs.drop) / _SINGLE
    with np.errstate(invalid="ignore", over="ignore"):
        apart = costs.match[0] - costs.drop
    np.abs(apart, out=apart)
    told = apart > needed * (1.0 + 1e-6)
    told &= apart < np.inf
    if 2 * np.count_nonzero(told) > len(apart):
        return costs
    low = np.minimum(costs.match.min(axis=0), costs.drop)
    high = np.maximum(costs.match.max(axis=0), costs.drop)
    if (high == np.inf).any():  # what is forbidden does not count
        of_label = np.vstack([costs.match, costs.drop])
        high = np.where(of_label < np.inf, of_label, -np.inf).max(axis=0)
        low, high = low[high > -np.inf], high[high > -np.inf]
    largest = float(np.maximum(np.abs(low), np.abs(high)).sum(dtype=np.float64))
    apart = high.astype(np.float64) - low
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
        if constraint.kind == "within":
            match[step, : span.start] = match[step, span.stop :] = np.inf
        else:
            match[np.arange(steps) != step, span] = np.inf
            drop[span] = np.inf
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


# -- why no finite alignment exists, in words ---------------------------------------------------------------------


def why_infeasible(flow: FlowGraph, costs: ClipCosts, durations: Durations | None = None) -> str:
    """Say why a problem has no finite alignment, naming numbers and steps.

    The reasons are tried from the plainest to the most involved; the last one is general.
    """
    match, drop, skip = costs
    clips = match.shape[1]
    needed = np.ones(len(flow), bool) if skip is None else np.isinf(skip)
    needed[[step for group in flow.alternatives for branch in group for step in branch]] = False
    flow = flow.sure
    required = [int(k) for k in np.flatnonzero(needed)]
    possible = np.isfinite(match)

    if durations is not None and required:
        longest = max(required, key=lambda k: int(durations.at_least[k]))
        if durations.at_least[longest] > clips:
            return (
                f"{_named(flow, [longest])} takes at least {durations.at_least[longest]} clips, but the video has "
                f"{clips}: give a smaller number, shorter clips, or skip costs"
            )
        if (together := int(durations.at_least[required].sum())) > clips:
            return (
                f"the {len(required)} steps that must be shown take at least {together} clips together, but the video "
                f"has {clips}: give smaller numbers, shorter clips, or skip costs"
            )
    if len(required) > clips:
        return (
            f"the video has {clips} clips, but {len(required)} steps must each be shown for at least one clip: "
            "give a longer video, shorter clips, or skip costs"
        )
    if nowhere := [k for k in required if not possible[k].any()]:
        return f"{_named(flow, nowhere)} must be shown, but no clip is allowed there (match is +inf in all {clips})"
    dead = np.flatnonzero(np.isinf(drop) & ~possible.any(axis=0))
    if len(dead):
        return (
            f"clip {int(dead[0])} can be neither dropped nor explained by any step (drop and match are all +inf there)"
        )

    earliest = _earliest(flow, possible, needed)
    for step in required:
        allowed = np.flatnonzero(possible[step])
        if allowed[-1] < earliest[step]:
            before = [k for k in bits(flow.ancestors[step]) if needed[k]]
            return (
                f"{_named(flow, [step])} is allowed only up to clip {int(allowed[-1])}, but {_named(flow, before)} "
                f"must come before it, which takes until clip {int(earliest[step])} at the earliest"
            )
    if crowded := _crowded(possible, required):
        shared = int(possible[crowded].any(axis=0).sum())
        return f"{_named(flow, crowded)} need a clip each, but are allowed in only {shared} of them altogether"
    tight = [k for k in required if not possible[k].all()]
    forced = int(np.isinf(drop).sum())
    about = f" Restricted to some clips: {_named(flow, tight)}." if tight else ""
    about += f" {forced} clips must show a step." if forced else ""
    return f"the allowed clips of the steps contradict the order of the procedure or one another.{about}"


def _earliest(flow: FlowGraph, possible: Flags, needed: Flags) -> list[int]:
    """For each step the first clip at which it can begin, by its ancestors alone."""
    earliest = [0] * len(flow)
    for step in flow.topological_order:
        before = [k for k in bits(flow.ancestors[step]) if needed[k]]
        first = max([len(before), *(earliest[k] + 1 for k in before)])
        allowed = np.flatnonzero(possible[step, first:])
        earliest[step] = first + int(allowed[0]) if len(allowed) else first
    return earliest


def _crowded(possible: Flags, required: list[int]) -> list[int]:
    """Return steps that have fewer clips between them than they are, if any: where a matching gets stuck."""
    taken: dict[int, int] = {}  # clip → step

    def place(step: int, seen: set[int]) -> bool:
        for clip in np.flatnonzero(possible[step]).tolist():
            if clip not in seen:
                seen.add(clip)
                if clip not in taken or place(taken[clip], seen):
                    taken[clip] = step
                    return True
        return False

    for step in required:
        seen: set[int] = set()
        if not place(step, seen):
            return sorted({step, *(taken[clip] for clip in seen)})
    return []


def _named(flow: FlowGraph, steps: list[int]) -> str:
    shown = ", ".join(f"{flow.steps[k].id!r} ({flow.steps[k].text})" for k in steps[:4])
    more = f" and {len(steps) - 4} more" if len(steps) > 4 else ""
    return f"step {shown}{more}" if len(steps) == 1 else f"steps {shown}{more}"
