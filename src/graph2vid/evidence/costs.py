"""From similarities, embeddings or log-probabilities to match, drop and skip costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from graph2vid._options import CostOptions
from graph2vid.errors import InputError
from graph2vid.evidence import policies
from graph2vid.evidence.arrays import Floats, as_matrix, cosine_similarity, distinct_rows, read_array, refuse
from graph2vid.registry import Registry

Choice: TypeAlias = str | float | ArrayLike | tuple[str, Any]
"""A drop or skip policy and its value.

``"percentile"`` (a name), ``"percentile:20"`` (a name and a number), ``"vector:FILE.npy"`` (a name and an array in a
file), ``("vector", array)`` (a name and any value), ``1.5`` (short for ``"constant:1.5"``), or an array (short for
``("vector", array)`` or ``("given", array)``).
"""

PRESETS: Mapping[str, dict[str, Any]] = {
    "paper": {"match": "likelihood", "drop": "percentile:30"},
    # The drop level is the lowest of the top 10% of similarities.
    "released": {"match": "raw", "temperature": 10.0, "drop": "top:10"},
    # Scores that are log-odds against background: a clip shows a step where that is likelier than not.
    "log_odds": {"match": "raw", "temperature": 1.0, "drop": "constant:0"},
}
"""Named settings of ``match``, ``drop`` and ``temperature``; an option given beside a preset overrules it."""

SCORE_TEMPERATURE = 1.0
COSINE_TEMPERATURE = 0.1


@dataclass(frozen=True)
class Costs:
    """What an alignment minimises.

    Attributes
    ----------
    match : array [K, N]
        How badly step i explains clip j; +∞ = forbidden there.
    drop : array [N]
        The cost of calling clip j background.
    skip : array [K] or None
        The cost of not showing step i; None = every step must appear.
    options : dict
        The settings these costs were made with, in a form fit for JSON.

    All arrays have the dtype of the input: float32 or float64.
    """

    match: Floats
    drop: Floats
    skip: Floats | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Costs({self.match.shape[0]} steps, {self.match.shape[1]} clips, {self.match.dtype})"


def costs_from_arrays(
    options: CostOptions | None = None,
    *,
    scores: ArrayLike | None = None,
    clips: ArrayLike | None = None,
    steps: ArrayLike | None = None,
    log_probabilities: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    n_steps: int | None = None,
    **fields: Any,
) -> Costs:
    """Make costs from one of three kinds of evidence.

    Parameters
    ----------
    options : CostOptions, optional
        ``preset`` is a name in :data:`PRESETS`. ``match`` is a name in ``MATCH_POLICIES``; by default ``likelihood``
        (over one distinct step, where a likelihood says nothing, ``likelihood_bg``), and ``raw`` for
        log-probabilities. ``drop`` is a policy of ``DROP_POLICIES`` (:data:`Choice`), by default ``auto``, and
        ``prototype`` for log-probabilities with a row of background; the value of ``prototype`` and ``relative`` is a
        background embedding [D] beside embeddings, else background's scores [N], and may be left out where
        log-probabilities have it. ``skip`` is a policy of ``SKIP_POLICIES``; by default every step
        must appear. ``temperature`` divides the similarities; by default 1, and 0.1 for cosines.
    scores : array [K, N], optional
        Similarities or scores: higher is a better match. Finite.
    clips, steps : arrays [N, D] and [K, D], optional
        Embeddings, compared by cosine; given together.
    log_probabilities : array [K, N] or [K + 1, N], optional
        log p(step i | clip j); -∞ forbids the step there. By default the costs are their negatives (match
        policy ``raw`` at temperature 1). Beside ``n_steps`` there may be a last row more, of background.
    classes : int array [K], optional
        Steps with one number are one and the same for softmax and percentiles, and share the evidence of
        the first of them; by default steps with identical rows of scores, embeddings or log-probabilities.
    n_steps : int, optional
        How many steps the procedure has, to be checked against the arrays.
    **fields
        Fields of :class:`CostOptions`, in place of ``options``.

    Returns
    -------
    Costs
    """
    chosen = CostOptions(**fields) if options is None else options
    arrays = {"scores": scores, "clips": clips, "steps": steps, "log_probabilities": log_probabilities}
    kind, name = _kind({name for name, array in arrays.items() if array is not None})
    settings = _settings(chosen.preset, match=chosen.match, drop=chosen.drop, temperature=chosen.temperature)
    axes = ("steps", "dimensions" if kind == "embeddings" else "clips")
    given = similarity = as_matrix(arrays[name], name, axes)  # type: ignore[arg-type]
    background = None
    if kind == "log_probabilities" and n_steps is not None and len(given) == n_steps + 1:
        _check_sums(given)
        given, background = given[:-1], given[-1]
        similarity = given
    _check_step_count(given, name, axes, n_steps)
    drop = settings.get("drop", "auto" if background is None else "prototype")
    if clips is not None:
        similarity = cosine_similarity(given, clips)
        drop = _embedded_prototype(drop, clips)
    elif kind == "scores":
        refuse(~np.isfinite(similarity), similarity, kind, ("step", "clip"), "scores must be finite")
    else:
        slack = 1e-3 if similarity.dtype == np.float32 else 1e-6  # rounding may carry a logarithm that far above 0
        rule = "the logarithm of a probability is at most 0; hand other numbers in as scores"
        refuse(~(similarity <= slack), similarity, kind, ("step", "clip"), rule)
    number = _class_numbers(classes, given)  # not of the cosines, which need not round alike
    likelihood = "likelihood_bg" if number.max() == 0 else "likelihood"
    match = settings.get("match", "raw" if kind == "log_probabilities" else likelihood)
    temperature = settings.get("temperature", COSINE_TEMPERATURE if kind == "embeddings" else SCORE_TEMPERATURE)

    match_policy = policies.MATCH_POLICIES.get(match)
    drop_name, drop_value = resolve_choice(drop, policies.DROP_POLICIES, of_array="vector")
    if drop_name in ("prototype", "relative") and drop_value is None:
        drop_value = background
    drop_policy = policies.DROP_POLICIES.get(drop_name)
    distinct = np.unique(number, return_index=True)[1]
    shape, dtype = similarity.shape, similarity.dtype

    def drop_rule(evidence: policies.ClipEvidence) -> NDArray[np.float64]:
        return _checked(drop_policy(evidence, drop_value), shape[1:], f"drop policy {drop_name!r}", ("clip",))

    with np.errstate(over="ignore"):
        # In one order, whatever that of the given array: so sums over steps round alike.
        raw = -(np.ascontiguousarray(similarity[distinct], dtype=np.float64) / temperature)
    too_large = np.isfinite(similarity[distinct]) & ~(np.abs(raw) <= np.finfo(dtype).max)
    rule = f"divided by temperature {temperature:g} it exceeds the range of {dtype}"
    refuse(too_large, similarity[distinct], "similarity", ("step", "clip"), rule)
    of_distinct, drop_costs = match_policy(raw, temperature, drop_rule)
    match_costs = _checked(of_distinct, raw.shape, f"match policy {match!r}", ("step", "clip"))[number]
    drop_costs = _checked(drop_costs, shape[1:], f"match policy {match!r}", ("clip",))
    skip_costs, skip = None, None
    if chosen.skip is not None:
        found, skip = _step_costs(
            policies.SKIP_POLICIES, chosen.skip, policies.StepEvidence(match_costs, drop_costs, distinct)
        )
        skip_costs = _cast(found, dtype, "skip costs")
    told = {"match": match, "drop": _described(drop_name, drop_value), "skip": skip, "temperature": temperature}
    return Costs(
        match=np.ascontiguousarray(_cast(match_costs, dtype, "match costs")),
        drop=_cast(drop_costs, dtype, "drop costs"),
        skip=skip_costs,
        options={"evidence": kind} | ({} if chosen.preset is None else {"preset": chosen.preset}) | told,
    )


def costs_from_similarity(similarity: ArrayLike, *, classes: ArrayLike | None = None, **fields: Any) -> Costs:
    """Make costs from similarities or scores [K, N]: :func:`costs_from_arrays` with match policy ``likelihood``."""
    return costs_from_arrays(scores=similarity, classes=classes, **{"match": "likelihood"} | fields)


def repeat_costs(costs: Costs, repeat: Choice) -> tuple[NDArray[np.float64], str]:
    """Return the cost of repeating each step, [K], by a policy of ``REPEAT_POLICIES``, and what it is called."""
    distinct = np.unique(distinct_rows(costs.match), return_index=True)[1]
    evidence = policies.StepEvidence(costs.match.astype(np.float64), costs.drop.astype(np.float64), distinct)
    return _step_costs(policies.REPEAT_POLICIES, repeat, evidence)


def _step_costs(
    registry: Registry[policies.SkipPolicy], choice: Choice, evidence: policies.StepEvidence
) -> tuple[NDArray[np.float64], str]:
    name, value = resolve_choice(choice, registry, of_array="given")
    found = registry.get(name)(evidence, value)
    return _checked(found, evidence.match.shape[:1], f"{registry.kind} {name!r}", ("step",)), _described(name, value)


def check_policies(costs: CostOptions, repeat: Choice | None = None) -> None:
    """Refuse names of presets and policies that nothing knows, before evidence is acquired at great cost."""
    if costs.match is not None:
        policies.MATCH_POLICIES.get(costs.match)
    for choice, registry, of_array in (
        (_settings(costs.preset, drop=costs.drop).get("drop"), policies.DROP_POLICIES, "vector"),
        (costs.skip, policies.SKIP_POLICIES, "given"),
        (repeat, policies.REPEAT_POLICIES, "given"),
    ):
        if choice is not None:
            registry.get(resolve_choice(choice, registry, of_array=of_array)[0])


def resolve_choice(choice: Choice, registry: Registry[Any], *, of_array: str) -> tuple[str, Any]:
    """Return the name and the value (or None) of a policy; see :data:`Choice`.

    Parameters
    ----------
    of_array : str
        The policy that a bare array is short for.
    """
    if isinstance(choice, tuple) and len(choice) == 2 and isinstance(choice[0], str):
        return choice[0], choice[1]
    if isinstance(choice, str):
        name, colon, rest = choice.partition(":")
        if rest.endswith(".npy"):
            return name, read_array(rest)
        number = rest if colon else name
        try:
            value = float(number)
        except ValueError:
            if colon:
                raise InputError(f"{registry.kind} {choice!r}: {rest!r} is not a number") from None
            return name, None
        return (name, value) if colon else ("constant", value)
    if np.ndim(choice) == 0:
        return "constant", choice
    return of_array, choice


# -- checks --------------------------------------------------------------------------------------------------


def _kind(given: set[str]) -> tuple[str, str]:
    """Return what kind of evidence the arrays given are, and the name of the one with a row per step."""
    if given == {"clips", "steps"}:
        return "embeddings", "steps"
    if given in ({"scores"}, {"log_probabilities"}):
        (kind,) = given
        return kind, kind
    if given in ({"clips"}, {"steps"}):
        missing = {"clips", "steps"} - given
        raise InputError(f"{given.pop()} need {missing.pop()} beside them: the embeddings of both are compared")
    kinds = {"scores": {"scores"}, "clips and steps": {"clips", "steps"}, "log_probabilities": {"log_probabilities"}}
    found = ", and ".join(kind for kind, names in kinds.items() if names & given) or "nothing"
    raise InputError(f"give one of scores, clips and steps, or log_probabilities; found {found}")


def _settings(preset: str | None, **given: Any) -> dict[str, Any]:
    """Return the options of the preset, overruled by those given (not None)."""
    if preset is not None and preset not in PRESETS:
        raise InputError(f"unknown preset {preset!r}; known: {', '.join(sorted(PRESETS))}")
    chosen = {name: value for name, value in given.items() if value is not None}
    return (PRESETS[preset] if preset is not None else {}) | chosen


def _check_step_count(array: Floats, name: str, axes: tuple[str, str], n_steps: int | None) -> None:
    if n_steps is None or array.shape[0] == n_steps:
        return
    message = (
        f"{name} has shape {array.shape}, but the flow graph has {n_steps} step{'s'[: n_steps != 1]}: "
        f"shape ({n_steps}, {axes[1]}) is needed, and axis 0 ({axes[0]}) is {array.shape[0]}"
    )
    if array.shape[1] == n_steps:
        message += "; it looks transposed: hand in its .T (on the command line, --transpose)"
    raise InputError(message)


def _check_sums(log_probabilities: Floats) -> None:
    """Refuse a row more than there are steps, unless the probabilities of each clip sum to 1 with it."""
    sums = np.exp(np.minimum(log_probabilities, 0.0), dtype=np.float64).sum(axis=0)
    if not (abs(sums - 1.0) < 0.02).all():  # they may have been stored in half precision
        raise InputError(
            f"log_probabilities has shape {log_probabilities.shape}, one row more than the flow graph has steps: that "
            "is taken for a last row of background only where the probabilities of each clip sum to 1; here they sum "
            f"to {sums.min():.3g} to {sums.max():.3g}"
        )


def _class_numbers(classes: ArrayLike | None, similarity: Floats) -> NDArray[np.int64]:
    """Return the class of each step [K] as 0, 1, …; identical rows by default."""
    if classes is None:
        return distinct_rows(similarity)
    found = np.asarray(classes)
    if found.shape != (len(similarity),) or found.dtype.kind not in "iu":
        wanted = f"whole numbers of shape ({len(similarity)},), one per step"
        raise InputError(f"classes must be {wanted}, not {found.dtype} of shape {found.shape}")
    return np.asarray(np.unique(found, return_inverse=True)[1], dtype=np.int64)


def _embedded_prototype(drop: Choice, clips: ArrayLike) -> Choice:
    """Turn the background embedding [D] of ``prototype`` and ``relative`` into similarities to the clips [N]."""
    name, value = resolve_choice(drop, policies.DROP_POLICIES, of_array="vector")
    if name not in ("prototype", "relative") or value is None:
        return drop
    prototype = np.asarray(value)
    width = np.asarray(clips).shape[1]
    if prototype.shape != (width,):
        wanted = f"one background embedding of shape ({width},), as wide as the clips', not {prototype.shape}"
        raise InputError(f"drop policy {name!r} beside embeddings needs {wanted}")
    return name, cosine_similarity(prototype[np.newaxis], clips)[0]


def _checked(found: Any, shape: tuple[int, ...], name: str, axes: tuple[str, ...]) -> NDArray[np.float64]:
    array = np.asarray(found, dtype=np.float64)
    if array.shape != shape:
        raise InputError(f"{name} must give costs of shape {shape}, not {array.shape}")
    bad = np.isnan(array) | (array == -np.inf)
    refuse(bad, array, f"the cost from {name}", axes, "costs must be numbers or +inf")
    return array


def _cast(array: NDArray[np.float64], dtype: DTypeLike, name: str) -> Floats:
    """Return ``array`` in ``dtype``; a finite cost must not become an infinite one."""
    with np.errstate(over="ignore"):
        result: Floats = array.astype(dtype)
    if (np.isinf(result) & np.isfinite(array)).any():
        raise InputError(f"{name} exceed the range of {np.dtype(dtype)}; hand in float64 or raise the temperature")
    return result


def _described(name: str, value: Any) -> str:
    """Return a policy and its value as one string; arrays go without their numbers."""
    return f"{name}:{float(value):g}" if value is not None and np.ndim(value) == 0 else name
