"""Costs of many videos of one procedure at once: those of :func:`graph2vid.evidence.costs_from_arrays`, to the bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid._arrays import Floats
from graph2vid.errors import InputError
from graph2vid.evidence import (
    COSINE_TEMPERATURE,
    DEFAULT_DROP_PERCENTILE,
    DROP_POLICIES,
    MATCH_POLICIES,
    PRESETS,
    SCORE_TEMPERATURE,
    SKIP_POLICIES,
    ClipEvidence,
    Costs,
    StepEvidence,
    cosine_similarity,
    costs_from_arrays,
    resolve_choice,
)

COST_OPTIONS = ("preset", "match", "drop", "skip", "temperature")

_BY_CLIP = frozenset({"likelihood", "likelihood_bg", "raw"})
"""Match policies that look at one clip at a time: the clips of several videos may stand side by side."""

_SIDE_BY_SIDE = 32  # videos whose arrays together stay in the processor's cache
_LARGEST = 1e30  # larger costs may overflow, and are looked at one by one


class _Video(NamedTuple):
    """A video for the fast way.

    Attributes
    ----------
    similarity : array [K, N]
    apart : array [K]
        Numbers that differ where steps do, as a rule: where they do not, perhaps one step is there twice.
    """

    similarity: Floats
    apart: NDArray[Any]


def costs_of_many(
    evidence: Sequence[Mapping[str, Any]], n_steps: int, options: Mapping[str, Any]
) -> list[Costs | Exception]:
    """Return the costs of each video, or the error that :func:`costs_from_arrays` has for it.

    Parameters
    ----------
    evidence : sequence of mappings
        For each video ``scores``, ``log_probabilities``, or ``clips`` and ``steps``; and ``skip``, if it has its own.
    n_steps : int
        Of their procedure.
    options : mapping
        ``preset``, ``match``, ``drop``, ``skip`` and ``temperature`` of all of them, where given.
    """
    chosen = {name: options[name] for name in COST_OPTIONS if options.get(name) is not None}
    settings = dict(PRESETS.get(chosen.get("preset", ""), {})) | chosen
    found: dict[int, Costs | Exception] = {}
    if settings.get("match", "likelihood") in _BY_CLIP and isinstance(settings.get("drop", ""), str):
        alike: dict[Any, dict[int, _Video]] = {}
        for at, given in enumerate(evidence):
            video = _for_fast_way(given, n_steps)
            if video is not None:
                alike.setdefault((video.similarity.dtype, *given), {})[at] = video
        for (_, kind, *_), members in alike.items():
            usual = SCORE_TEMPERATURE if kind == "scores" else COSINE_TEMPERATURE
            temperature = settings.get("temperature", usual)
            for start in range(0, len(members), _SIDE_BY_SIDE):
                places = list(members)[start : start + _SIDE_BY_SIDE]
                with suppress(InputError):  # of one of them, or of a policy: it is found below
                    found |= _side_by_side({at: members[at] for at in places}, temperature, settings)
    for at, given in enumerate(evidence):
        if at not in found:
            try:
                found[at] = costs_from_arrays(**(chosen | dict(given)), n_steps=n_steps)
            except Exception as error:
                found[at] = error
    return [found[at] for at in range(len(evidence))]


def _for_fast_way(given: Mapping[str, Any], n_steps: int) -> _Video | None:
    """Return a video for the fast way; None if its arrays are out of the ordinary."""
    if given.keys() == {"scores"}:
        similarity = apart = np.asarray(given["scores"])
    elif given.keys() == {"clips", "steps"}:
        try:
            similarity, apart = cosine_similarity(given["steps"], given["clips"]), np.asarray(given["steps"])
        except InputError:
            return None
    else:
        return None
    if similarity.dtype not in (np.float32, np.float64) or similarity.ndim != 2 or len(similarity) != n_steps:
        return None
    # A single column is summed in another order; a single step has a policy of its own.
    if similarity.shape[1] < 2 or n_steps < 2:
        return None
    return _Video(similarity, apart[:, 0])


def _side_by_side(videos: dict[int, _Video], temperature: float, settings: Mapping[str, Any]) -> dict[int, Costs]:
    """Return the costs of videos of one dtype, by their keys; those with numbers out of the ordinary are left out."""
    edges = np.cumsum([0, *(video.similarity.shape[1] for video in videos.values())])
    stacked = np.concatenate([video.similarity for video in videos.values()], axis=1, dtype=np.float64)
    # Not finite, large, or perhaps one step twice, which counts as one.
    apart = np.sort([video.apart for video in videos.values()], axis=1)
    usable = (apart[:, 1:] > apart[:, :-1]).all(axis=1)
    usable &= np.maximum.reduceat(np.abs(stacked).max(axis=0), edges[:-1]) < _LARGEST * temperature
    if not usable.all():
        left = {at: video for (at, video), good in zip(videos.items(), usable.tolist(), strict=True) if good}
        return _side_by_side(left, temperature, settings) if left else {}
    spans = [slice(start, end) for start, end in pairwise(edges.tolist())]
    of_one_length = len({video.similarity.shape for video in videos.values()}) == 1
    drop_name, drop_value = resolve_choice(
        settings.get("drop", f"percentile:{DEFAULT_DROP_PERCENTILE:g}"), DROP_POLICIES, of_array="vector"
    )
    drop_policy = DROP_POLICIES.get(drop_name)

    def drop_rule(evidence: ClipEvidence) -> NDArray[np.float64]:
        if drop_name == "percentile" and of_one_length:
            return _percentiles(evidence.match, len(videos), drop_value)
        costs = np.empty(edges[-1])
        for span in spans:
            costs[span] = drop_policy(
                ClipEvidence(evidence.match[:, span], evidence.normaliser[span], evidence.temperature), drop_value
            )
        return costs

    stacked /= temperature
    match, drop = MATCH_POLICIES.get(settings.get("match", "likelihood"))(
        np.negative(stacked, out=stacked), temperature, drop_rule
    )
    dtype = next(iter(videos.values())).similarity.dtype
    skips: list[NDArray[Any] | None] = [None] * len(videos)
    if "skip" in settings:
        name, value = resolve_choice(settings["skip"], SKIP_POLICIES, of_array="given")
        policy, distinct = SKIP_POLICIES.get(name), np.arange(len(match))
        skips = [
            np.asarray(policy(StepEvidence(match[:, span], drop[span], distinct), value), dtype=dtype) for span in spans
        ]
    if of_one_length:
        matches = list(np.ascontiguousarray(_by_video(match, len(videos)), dtype=dtype))
    else:
        matches = [np.ascontiguousarray(match[:, span], dtype=dtype) for span in spans]
    drop = drop.astype(dtype)
    return {at: Costs(one, drop[span], skip) for at, one, span, skip in zip(videos, matches, spans, skips, strict=True)}


def _by_video(stacked: NDArray[np.float64], videos: int) -> NDArray[np.float64]:
    """Return what stands side by side, [K, V N], as one matrix for each video, [V, K, N]."""
    return stacked.reshape(len(stacked), videos, -1).swapaxes(0, 1)


def _percentiles(match: NDArray[np.float64], videos: int, percent: Any) -> NDArray[np.float64]:
    """Return what the drop policy ``percentile`` says of videos of one length: costs [K, V N] to drop costs [V N].

    As ``numpy.percentile`` does, to the bit, but several times as quick: it asks for one place in the order, not four.
    """
    chosen = DEFAULT_DROP_PERCENTILE if percent is None else float(percent)
    if not 0.0 <= chosen <= 100.0:
        raise InputError(f"drop policy 'percentile': the percentile must lie in 0 … 100, not {chosen:g}")
    of_video = _by_video(match, videos).reshape(videos, -1)
    place = (of_video.shape[1] - 1) * (chosen / 100)
    lower = int(place)
    upper, share = min(lower + 1, of_video.shape[1] - 1), place - lower
    parted = np.partition(of_video, upper, axis=1)
    high = parted[:, upper]
    low = parted[:, : lower + 1].max(axis=1)
    apart = high - low
    level = low + apart * share if share < 0.5 else high - apart * (1 - share)
    return np.repeat(level, match.shape[1] // videos)
