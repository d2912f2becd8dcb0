"""From similarities, embeddings or log-probabilities to match, drop and skip costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from graph2vid._options import CostOptions
from graph2vid.errors import InputError
from graph2vid.evidence.arrays import Floats, as_matrix, cosine_similarity, distinct_rows, read_array, refuse
from graph2vid.evidence.policies import (
    DEFAULT_DROP_PERCENTILE,
    DROP_POLICIES,
    MATCH_POLICIES,
    REPEAT_POLICIES,
    SKIP_POLICIES,
    ClipEvidence,
    StepEvidence,
)
from graph2vid.registry import Registry

Choice: TypeAlias = str | float | ArrayLike | tuple[str, Any]
"""A drop or skip policy and its value.

``"percentile"`` (a name), ``"percentile:20"`` (a name and a number), ``"vector:FILE.npy"`` (a name and an array in a
file), ``("vector", array)`` (a name and any value), ``1.5`` (short for ``"constant:1.5"``), or an array (short for
``("vector", array)`` or ``("given", array)``).
"""

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {"match": "likelihood", "drop": "percentile:30"},
    # The drop level is the similarity that the top 10% exceed, so the 10th percentile of the costs.
    "released": {"match": "raw", "temperature": 10.0, "drop": "percentile:10"},
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
        log-probabilities. ``drop`` is a policy of ``DROP_POLICIES`` (:data:`Choice`), by default the 30th percentile
        of the match costs; the value of ``prototype`` is a background embedding [D] beside embeddings, else
        background's scores [N]. ``skip`` is a policy of ``SKIP_POLICIES``; by default every step must appear.
        ``temperature`` divides the similarities; by default 1, and 0.1 for cosines.
    scores : array [K, N], optional
        Similarities or scores: higher is a better match. Finite.
    clips, steps : arrays [N, D] and [K, D], optional
        Embeddings, compared by cosine; given together.
    log_probabilities : array [K, N], optional
        log p(step i | clip j); -∞ forbids the step there. By default the costs are their negatives (match
        policy ``raw`` at temperature 1).
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
    preset, skip, drop = chosen.preset, chosen.skip, chosen.drop
    _check_one_kind(scores, clips, steps, log_probabilities)
    settings = _settings(preset, match=chosen.match, drop=drop, temperature=chosen.temperature)
    drop = settings.get("drop", f"percentile:{DEFAULT_DROP_PERCENTILE:g}")
    defaults: dict[str, Any] = {"match": "likelihood", "temperature": SCORE_TEMPERATURE}
    if clips is not None and steps is not None:
        kind = "embeddings"
        embeddings = as_matrix(steps, "steps", ("steps", "dimensions"))
        _check_step_count(embeddings, "steps", ("steps", "dimensions"), n_steps)
        similarity = cosine_similarity(embeddings, clips)
        if classes is None:
            classes = distinct_rows(embeddings)  # not of the products, which need not round alike
        drop = _embedded_prototype(drop, clips)
        defaults["temperature"] = COSINE_TEMPERATURE
    elif scores is not None:
        kind = "scores"
        similarity = as_matrix(scores, "scores", ("steps", "clips"))
        _check_step_count(similarity, "scores", ("steps", "clips"), n_steps)
        refuse(~np.isfinite(similarity), similarity, "scores", ("step", "clip"), "scores must be finite")
    elif log_probabilities is not None:
        kind = "log_probabilities"
        similarity = as_matrix(log_probabilities, kind, ("steps", "clips"))
        _check_step_count(similarity, kind, ("steps", "clips"), n_steps)
        rule = "the logarithm of a probability is at most 0; hand other numbers in as scores"
        refuse(~(similarity <= _log_slack(similarity)), similarity, kind, ("step", "clip"), rule)
        defaults["match"] = "raw"
    number = _class_numbers(classes, similarity)
    if kind != "log_probabilities" and number.max() == 0:
        defaults["match"] = "likelihood_bg"
    settings = defaults | settings
    return _costs(
        similarity,
        match=settings["match"],
        drop=drop,
        skip=skip,
        temperature=settings["temperature"],
        number=number,
        options={"evidence": kind} | ({} if preset is None else {"preset": preset}),
    )


def costs_from_similarity(
    similarity: ArrayLike,
    *,
    match: str = "likelihood",
    drop: Choice = "percentile",
    skip: Choice | None = None,
    temperature: float = SCORE_TEMPERATURE,
    classes: ArrayLike | None = None,
) -> Costs:
    """Make costs from a matrix of similarities or scores [K, N]; see :func:`costs_from_arrays`."""
    return costs_from_arrays(
        scores=similarity, match=match, drop=drop, skip=skip, temperature=temperature, classes=classes
    )


def _costs(
    similarity: Floats,
    *,
    match: str,
    drop: Choice,
    skip: Choice | None,
    temperature: float,
    number: NDArray[np.int64],
    options: dict[str, Any],
) -> Costs:
    """Make costs from checked similarities whose steps belong to the classes ``number`` [K] (0, 1, …)."""
    match_policy = MATCH_POLICIES.get(match)
    drop_name, drop_value = resolve_choice(drop, DROP_POLICIES, of_array="vector")
    drop_policy = DROP_POLICIES.get(drop_name)
    distinct = np.unique(number, return_index=True)[1]
    n_clips = similarity.shape[1]

    def drop_rule(evidence: ClipEvidence) -> NDArray[np.float64]:
        found = np.asarray(drop_policy(evidence, drop_value), dtype=np.float64)
        return _checked(found, (n_clips,), f"drop policy {drop_name!r}", ("clip",))

    with np.errstate(over="ignore"):
        raw = -(similarity[distinct].astype(np.float64) / temperature)
    _check_overflow(raw, similarity[distinct], temperature)
    of_distinct, drop_costs = match_policy(raw, temperature, drop_rule)
    of_distinct = _checked(of_distinct, raw.shape, f"match policy {match!r}", ("step", "clip"))
    drop_costs = _checked(drop_costs, (n_clips,), f"match policy {match!r}", ("clip",))
    match_costs = of_distinct[number]
    options = options | {
        "match": match,
        "drop": _described(drop_name, drop_value),
        "skip": None,
        "temperature": temperature,
    }
    skip_costs: NDArray[np.float64] | None = None
    if skip is not None:
        skip_name, skip_value = resolve_choice(skip, SKIP_POLICIES, of_array="given")
        found = SKIP_POLICIES.get(skip_name)(StepEvidence(match_costs, drop_costs, distinct), skip_value)
        skip_costs = _checked(found, (len(number),), f"skip policy {skip_name!r}", ("step",))
        options["skip"] = _described(skip_name, skip_value)
    dtype = similarity.dtype
    return Costs(
        match=np.ascontiguousarray(_cast(match_costs, dtype, "match costs")),
        drop=_cast(drop_costs, dtype, "drop costs"),
        skip=None if skip_costs is None else _cast(skip_costs, dtype, "skip costs"),
        options=options,
    )


def repeat_costs(costs: Costs, repeat: Choice) -> tuple[NDArray[np.float64], str]:
    """Return the cost of repeating each step, [K], by a policy of ``REPEAT_POLICIES``, and what it is called."""
    name, value = resolve_choice(repeat, REPEAT_POLICIES, of_array="given")
    distinct = np.unique(distinct_rows(costs.match), return_index=True)[1]
    evidence = StepEvidence(costs.match.astype(np.float64), costs.drop.astype(np.float64), distinct)
    found = REPEAT_POLICIES.get(name)(evidence, value)
    return _checked(found, (len(costs.match),), f"repeat policy {name!r}", ("step",)), _described(name, value)


def check_policies(costs: CostOptions, repeat: Choice | None = None) -> None:
    """Refuse names of presets and policies that nothing knows, before evidence is acquired at great cost."""
    if costs.match is not None:
        MATCH_POLICIES.get(costs.match)
    for choice, policies, of_array in (
        (_settings(costs.preset, drop=costs.drop).get("drop"), DROP_POLICIES, "vector"),
        (costs.skip, SKIP_POLICIES, "given"),
        (repeat, REPEAT_POLICIES, "given"),
    ):
        if choice is not None:
            policies.get(resolve_choice(choice, policies, of_array=of_array)[0])


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


def _check_one_kind(
    scores: ArrayLike | None,
    clips: ArrayLike | None,
    steps: ArrayLike | None,
    log_probabilities: ArrayLike | None,
) -> None:
    given = {
        "scores": scores is not None,
        "clips and steps": clips is not None or steps is not None,
        "log_probabilities": log_probabilities is not None,
    }
    kinds = [kind for kind, there in given.items() if there]
    if len(kinds) != 1:
        found = ", and ".join(kinds) or "nothing"
        raise InputError(f"give one of scores, clips and steps, or log_probabilities; found {found}")
    if given["clips and steps"] and (clips is None or steps is None):
        missing, there = ("clips", "steps") if clips is None else ("steps", "clips")
        raise InputError(f"{there} need {missing} beside them: the embeddings of both are compared")


def _settings(preset: str | None, **given: Any) -> dict[str, Any]:
    """Return the options of the preset, overruled by those given (not None)."""
    if preset is not None and preset not in PRESETS:
        raise InputError(f"unknown preset {preset!r}; known: {', '.join(sorted(PRESETS))}")
    settings = dict(PRESETS[preset]) if preset is not None else {}
    return settings | {name: value for name, value in given.items() if value is not None}


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


def _log_slack(array: Floats) -> float:
    """Return how far above 0 rounding may carry the logarithm of a probability."""
    return 1e-3 if array.dtype == np.float32 else 1e-6


def _class_numbers(classes: ArrayLike | None, similarity: Floats) -> NDArray[np.int64]:
    """Return the class of each step [K] as 0, 1, …; identical rows by default."""
    if classes is None:
        return distinct_rows(similarity)
    found = np.asarray(classes)
    if found.shape != (len(similarity),) or found.dtype.kind not in "iu":
        raise InputError(
            f"classes must be whole numbers of shape ({len(similarity)},), one per step, not {found.dtype} "
            f"of shape {found.shape}"
        )
    return np.asarray(np.unique(found, return_inverse=True)[1], dtype=np.int64)


def _embedded_prototype(drop: Choice, clips: ArrayLike) -> Choice:
    """Turn the background embedding [D] of drop policy ``prototype`` into similarities to the clips [N]."""
    name, value = resolve_choice(drop, DROP_POLICIES, of_array="vector")
    if name != "prototype" or value is None:
        return drop
    prototype = np.asarray(value)
    width = np.asarray(clips).shape[1]
    if prototype.shape != (width,):
        raise InputError(
            f"drop policy 'prototype' beside embeddings needs one background embedding of shape ({width},), "
            f"as wide as the clips', not {prototype.shape}"
        )
    return "prototype", cosine_similarity(prototype[np.newaxis], clips)[0]


def _check_overflow(raw: NDArray[np.float64], similarity: Floats, temperature: float) -> None:
    bad = np.isfinite(similarity) & ~(np.abs(raw) <= np.finfo(similarity.dtype).max)
    rule = f"divided by temperature {temperature:g} it exceeds the range of {similarity.dtype}"
    refuse(bad, similarity, "similarity", ("step", "clip"), rule)


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
