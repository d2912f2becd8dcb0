"""Costs of many videos of one procedure at once: those of :func:`graph2vid.evidence.costs_from_arrays`, to the bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.evidence import Costs, costs_from_arrays
from graph2vid.evidence.arrays import Floats, cosine_similarity
from graph2vid.evidence.costs import COSINE_TEMPERATURE, PRESETS, SCORE_TEMPERATURE, resolve_choice
from graph2vid.evidence.policies import (
    DEFAULT_DROP_PERCENTILE,
    DROP_POLICIES,
    MATCH_POLICIES,
    SKIP_POLICIES,
    ClipEvidence,
    StepEvidence,
)

COST_OPTIONS = ("preset", "match", "drop", "skip", "temperature")

_BY_CLIP = frozenset({"likelihood", "likelihood_bg", "raw"})
"""Match policies that look at one clip at a time: the clips of several videos may stand side by side."""

_SIDE_BY_SIDE = 64  # videos whose arrays together stay in the processor's cache
_LARGEST = 1e30  # larger costs may overflow, and are looked at one by one


@dataclass(frozen=True, eq=False)
class _Video:
    """A video for the fast way.

    Attributes
    ----------
    similarity : array [K, N]
        Of steps that all differ.
    order : int array [K]
        The steps as :func:`costs_from_arrays` sorts them, so that sums round alike.
    temperature : float
    """

    similarity: Floats
    order: NDArray[np.int64]
    temperature: float


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
        together: dict[tuple[Any, float], dict[int, _Video]] = {}
        for at, given in enumerate(evidence):
            video = _for_fast_way(given, n_steps, settings.get("temperature"))
            if video is not None:
                together.setdefault((video.similarity.dtype, video.temperature), {})[at] = video
        for members in together.values():
            for start in range(0, len(members), _SIDE_BY_SIDE):
                places = list(members)[start : start + _SIDE_BY_SIDE]
                with suppress(InputError):  # of one of them, or of a policy: it is found below
                    found |= zip(places, _side_by_side([members[at] for at in places], settings), strict=True)
    for at, given in enumerate(evidence):
        if at not in found:
            try:
                found[at] = costs_from_arrays(**(chosen | dict(given)), n_steps=n_steps)
            except Exception as error:
                found[at] = error
    return [found[at] for at in range(len(evidence))]


def _for_fast_way(given: Mapping[str, Any], n_steps: int, temperature: float | None) -> _Video | None:
    """Return a video for the fast way; None if something about it is out of the ordinary."""
    if given.keys() == {"scores"}:
        similarity = apart = np.asarray(given["scores"])
        usual = SCORE_TEMPERATURE
    elif given.keys() == {"clips", "steps"}:
        try:
            similarity, apart = cosine_similarity(given["steps"], given["clips"]), np.asarray(given["steps"])
        except InputError:
            return None
        usual = COSINE_TEMPERATURE
    else:
        return None
    if similarity.dtype not in (np.float32, np.float64) or similarity.ndim != 2 or len(similarity) != n_steps:
        return None
    # A single column is summed in another order; a single step has a policy of its own.
    if similarity.shape[1] < 2 or n_steps < 2:
        return None
    chosen = usual if temperature is None else temperature
    if not np.abs(similarity).max() / chosen < _LARGEST:
        return None
    first = apart[:, 0]
    if len(set(first.tolist())) < n_steps:  # perhaps one step twice, which counts as one
        return None
    return _Video(similarity, np.argsort(first), chosen)


def _side_by_side(videos: Sequence[_Video], settings: Mapping[str, Any]) -> list[Costs]:
    """Return the costs of videos of one dtype and temperature."""
    dtype, temperature = videos[0].similarity.dtype, videos[0].temperature
    ends = np.cumsum([video.similarity.shape[1] for video in videos]).tolist()
    spans = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    drop_name, drop_value = resolve_choice(
        settings.get("drop", f"percentile:{DEFAULT_DROP_PERCENTILE:g}"), DROP_POLICIES, of_array="vector"
    )
    drop_policy = DROP_POLICIES.get(drop_name)

    def drop_rule(evidence: ClipEvidence) -> NDArray[np.float64]:
        if drop_name == "percentile" and len({video.similarity.shape for video in videos}) == 1:
            return _percentiles(evidence.match, len(videos), drop_value)
        prices = np.empty(ends[-1])
        for span in spans:
            prices[span] = drop_policy(
                ClipEvidence(evidence.match[:, span], evidence.normaliser[span], evidence.temperature), drop_value
            )
        return prices

    stacked = np.concatenate([video.similarity[video.order] for video in videos], axis=1).astype(np.float64)
    match, drop = MATCH_POLICIES.get(settings.get("match", "likelihood"))(
        -(stacked / temperature), temperature, drop_rule
    )
    result = []
    for video, span in zip(videos, spans, strict=True):
        of_video = np.empty(video.similarity.shape)
        of_video[video.order] = match[:, span]
        skip = None
        if "skip" in settings:
            name, value = resolve_choice(settings["skip"], SKIP_POLICIES, of_array="given")
            price = SKIP_POLICIES.get(name)(StepEvidence(of_video, drop[span], video.order), value)
            skip = np.asarray(price, dtype=dtype)
        result.append(Costs(of_video.astype(dtype), drop[span].astype(dtype), skip))
    return result


def _percentiles(match: NDArray[np.float64], videos: int, percent: Any) -> NDArray[np.float64]:
    """Return what the drop policy ``percentile`` says of videos of one length: costs [K, V N] to prices [V N]."""
    chosen = DEFAULT_DROP_PERCENTILE if percent is None else float(percent)
    if not 0.0 <= chosen <= 100.0:
        raise InputError(f"drop policy 'percentile': the percentile must lie in 0 … 100, not {chosen:g}")
    of_video = match.reshape(len(match), videos, -1).swapaxes(0, 1).reshape(videos, -1)
    return np.repeat(np.percentile(of_video, chosen, axis=1), match.shape[1] // videos)
