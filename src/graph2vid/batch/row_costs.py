"""Costs of many videos of one procedure: clips of those alike stand side by side, and policies look at all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graph2vid import evidence
from graph2vid._arrays import Floats
from graph2vid.errors import InputError
from graph2vid.evidence import Choice, Costs, policies

_Float = TypeVar("_Float", bound=np.floating[Any])

COST_OPTIONS = ("preset", "match", "drop", "skip", "temperature")

_BY_CLIP = frozenset({"likelihood", "likelihood_bg", "raw"})
"""Match policies that look at one clip at a time: the clips of several videos may stand side by side."""

_OF_ALL = frozenset({"constant"})
"""Repeat policies that look at no evidence: what they say of one video, they say of all."""

SIDE_BY_SIDE = 32
"""Videos whose arrays together stay in the processor's cache."""

_LARGEST = 1e30  # larger costs may overflow, and are looked at one by one


def costs_of_many(
    videos: Sequence[Mapping[str, Any]], n_steps: int, options: Mapping[str, Any]
) -> list[Costs | Exception]:
    """Return the costs of each video: those of :func:`graph2vid.evidence.costs_from_arrays`, to the bit, or its error.

    Parameters
    ----------
    videos : sequence of mappings
        For each ``scores``, ``log_probabilities``, or ``clips`` and ``steps``; and ``skip``, if it has its own.
    n_steps : int
        Of their procedure.
    options : mapping
        ``preset``, ``match``, ``drop``, ``skip`` and ``temperature`` of all of them, where given.
    """
    chosen = {name: options[name] for name in COST_OPTIONS if options.get(name) is not None}
    settings = dict(evidence.PRESETS.get(chosen.get("preset", ""), {})) | chosen
    found: dict[int, Costs | Exception] = {}
    if settings.get("match", "likelihood") in _BY_CLIP and isinstance(settings.get("drop", ""), str):
        alike: dict[Any, dict[int, tuple[Floats, Floats]]] = {}
        for at, given in enumerate(videos):
            if (pair := _for_fast_way(given, n_steps)) is not None:
                alike.setdefault((pair[0].dtype, *given), {})[at] = pair
        for (_, kind, *_), members in alike.items():
            usual = evidence.SCORE_TEMPERATURE if kind == "scores" else evidence.COSINE_TEMPERATURE
            temperature = settings.get("temperature", usual)
            for start in range(0, len(members), SIDE_BY_SIDE):
                some = dict(islice(members.items(), start, start + SIDE_BY_SIDE))
                with suppress(InputError):  # of one of them, or of a policy: it is found below
                    found |= _side_by_side(some, temperature, settings)
    for at, given in enumerate(videos):
        if at not in found:
            try:
                found[at] = evidence.costs_from_arrays(**(chosen | dict(given)), n_steps=n_steps)
            except Exception as error:
                found[at] = error
    return [found[at] for at in range(len(videos))]


def repeat_costs_of_many(videos: Sequence[Costs], repeat: Choice) -> list[NDArray[np.float64]]:
    """Return the costs of repeating each step [K] of each video: those of :func:`graph2vid.evidence.repeat_costs`."""
    policy, _ = evidence.resolve_choice(repeat, evidence.REPEAT_POLICIES, of_array="given")
    if policy in _OF_ALL:
        return [evidence.repeat_costs(videos[0], repeat)[0]] * len(videos)
    return [evidence.repeat_costs(one, repeat)[0] for one in videos]


def _for_fast_way(given: Mapping[str, Any], n_steps: int) -> tuple[Floats, Floats] | None:
    """Return how similar steps and clips are, [K, N], and numbers that differ where steps do, as a rule, [K].

    None if the arrays are out of the ordinary.
    """
    if given.keys() == {"scores"}:
        similarity = apart = np.asarray(given["scores"])
    elif given.keys() == {"clips", "steps"}:
        try:
            similarity, apart = evidence.cosine_similarity(given["steps"], given["clips"]), np.asarray(given["steps"])
        except InputError:
            return None
    else:
        return None
    if similarity.dtype not in (np.float32, np.float64) or similarity.ndim != 2 or len(similarity) != n_steps:
        return None
    # A single column is summed in another order; a single step has a policy of its own.
    return None if similarity.shape[1] < 2 or n_steps < 2 else (similarity, apart[:, 0])


def _side_by_side(
    videos: dict[int, tuple[Floats, Floats]], temperature: float, settings: Mapping[str, Any]
) -> dict[int, Costs]:
    """Return the costs of videos of one dtype, by their keys; those with numbers out of the ordinary are left out."""
    similarity, apart = zip(*videos.values(), strict=True)
    edges = np.cumsum([0, *(one.shape[1] for one in similarity)])
    stacked = np.ascontiguousarray(np.concatenate(similarity, axis=1, dtype=np.float64))
    # Not finite, large, or perhaps one step twice, which counts as one.
    steps = np.sort(apart, axis=1)
    usable = (steps[:, 1:] > steps[:, :-1]).all(axis=1)
    usable &= np.maximum.reduceat(np.abs(stacked).max(axis=0), edges[:-1]) < _LARGEST * temperature
    if not usable.all():
        left = {at: video for (at, video), good in zip(videos.items(), usable.tolist(), strict=True) if good}
        return _side_by_side(left, temperature, settings) if left else {}
    spans = [slice(start, end) for start, end in pairwise(edges.tolist())]
    of_one_length = len({one.shape for one in similarity}) == 1
    name, value = evidence.resolve_choice(settings.get("drop", "auto"), evidence.DROP_POLICIES, of_array="vector")
    policy = evidence.DROP_POLICIES.get(name)
    is_likelihood = settings.get("match", "likelihood") == "likelihood"

    def drop_rule(given: evidence.ClipEvidence) -> NDArray[np.float64]:
        percent = evidence.DEFAULT_DROP_PERCENTILE if value is None else value
        if name in ("auto", "percentile") and of_one_length and 0.0 <= percent <= 100.0:
            levels = _percentiles(given.match, len(videos), percent)
            if name == "auto":
                of_steps = spans[:1] if is_likelihood else spans  # likelihoods need not be looked at one by one
                chances = np.array([policies.chance_cost(given.match[:, span]) for span in of_steps])
                levels = policies.level_between(given.match.min(axis=0).reshape(len(videos), -1), levels, chances)
            return np.repeat(levels, given.match.shape[1] // len(videos))
        parts = ((given.match[:, span], given.normaliser[span], given.temperature) for span in spans)
        return np.concatenate([policy(evidence.ClipEvidence(*part), value) for part in parts])

    stacked /= temperature
    match, drop = evidence.MATCH_POLICIES.get(settings.get("match", "likelihood"))(
        np.negative(stacked, out=stacked), temperature, drop_rule
    )
    dtype = similarity[0].dtype
    skips: list[NDArray[Any] | None] = [None] * len(videos)
    if "skip" in settings:
        of_skip, cost = evidence.resolve_choice(settings["skip"], evidence.SKIP_POLICIES, of_array="given")
        skip, distinct = evidence.SKIP_POLICIES.get(of_skip), np.arange(len(match))
        given = (evidence.StepEvidence(match[:, span], drop[span], distinct) for span in spans)
        skips = [_in_dtype(skip(one, cost), dtype) for one in given]
    matched, kept = _in_dtype(match, dtype), _in_dtype(drop, dtype)
    if of_one_length:
        matches = list(np.ascontiguousarray(_by_video(matched, len(videos))))
    else:
        matches = [np.ascontiguousarray(matched[:, span]) for span in spans]
    return {at: Costs(one, kept[span], skip) for at, one, span, skip in zip(videos, matches, spans, skips, strict=True)}


def _in_dtype(costs: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[np.floating[Any]]:
    """Return costs in the dtype of the scores, contiguous; an `InputError` where one is none, or too large."""
    with np.errstate(over="ignore"):
        found: NDArray[np.floating[Any]] = np.ascontiguousarray(costs, dtype=dtype)
    if not (costs > -np.inf).all() or (np.isinf(found) & np.isfinite(costs)).any():
        raise InputError(f"there is no {dtype} for the costs of a policy")
    return found


def _by_video(stacked: NDArray[_Float], videos: int) -> NDArray[_Float]:
    """Return what stands side by side, [K, V N], as one matrix for each video, [V, K, N]."""
    return stacked.reshape(len(stacked), videos, -1).swapaxes(0, 1)


def _percentiles(match: NDArray[np.float64], videos: int, percent: float) -> NDArray[np.float64]:
    """Return the drop cost by policy ``percentile`` of videos of one length: match costs [K, V N] to drop costs [V].

    As ``numpy.percentile`` does, to the bit, but several times as quick: it asks for one place in the order, not four.
    """
    of_video = _by_video(match, videos).reshape(videos, -1)
    place = (of_video.shape[1] - 1) * (percent / 100)
    lower = int(place)
    upper, share = min(lower + 1, of_video.shape[1] - 1), place - lower
    parted = np.partition(of_video, upper, axis=1)
    high = parted[:, upper]
    low = parted[:, : lower + 1].max(axis=1)
    apart = high - low
    level: NDArray[np.float64] = low + apart * share if share < 0.5 else high - apart * (1 - share)
    return level
