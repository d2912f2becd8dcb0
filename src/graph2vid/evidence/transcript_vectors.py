"""The transcript around each clip as a vector: features that training can start from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.evidence.captions import Cue
from graph2vid.evidence.narration import EmbedTexts

_REACH = 4.0  # standard deviations beyond which a cue has no weight
_TINY = 1e-9


@dataclass(frozen=True)
class SaidSettings:
    """How a transcript becomes vectors.

    Attributes
    ----------
    spread, lag : float
        Seconds. A cue at time s counts around s + ``lag``, within about ``spread`` (the standard deviation of
        a Gaussian): people say what they are about to do.
    silence : float
        The length of silence beside that of words, which is 1 where somebody speaks all the time. Silence has an axis
        of its own, on which no step lies: where little is said, a clip is unlike every step, and a model can see why.
    """

    spread: float = 2.0
    lag: float = 2.0
    silence: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.spread < math.inf or not 0 < self.silence < math.inf or not math.isfinite(self.lag):
            raise InputError(f"spread and silence must be positive numbers and lag a number, not {self}")


def step_vectors(steps: Sequence[str], embed: EmbedTexts) -> NDArray[np.float32]:
    """Embed the K steps of a procedure by what sets them apart: [K, D + 1], 0 on the axis of silence."""
    vectors = _apart(embed(steps))
    return np.pad(vectors, ((0, 0), (0, 1))).astype(np.float32)


def said_vectors(
    cues: Sequence[Cue],
    n_clips: int,
    embed: EmbedTexts,
    *,
    clip_seconds: float = 1.0,
    offset: float = 0.0,
    settings: SaidSettings = SaidSettings(),  # noqa: B008
) -> NDArray[np.float32]:
    """Embed the transcript around each clip.

    Parameters
    ----------
    cues : sequence of Cue
        The transcript; its embeddings are centred over the video, so that its topic does not drown the rest.
    n_clips : int
        Clip j covers ``offset + j * clip_seconds`` to ``offset + (j + 1) * clip_seconds``.
    embed : callable
        From texts to embeddings of D dimensions.
    clip_seconds, offset : float
        Seconds.
    settings : SaidSettings

    Returns
    -------
    float32 array [N, D + 1]
        The mean of the cues around the clip; the last axis is that of silence.
    """
    if n_clips < 1 or not 0 < clip_seconds < math.inf or not math.isfinite(offset):
        raise InputError(f"impossible clips: {n_clips} of {clip_seconds} s from {offset} s")
    said = [cue for cue in cues if cue.text.strip()]
    vectors = _apart(embed([cue.text for cue in said] or ["silence"]))
    weights = _weights(said, n_clips, clip_seconds, offset, settings)
    mean = weights @ vectors[: len(said)]
    return np.pad(mean, ((0, 0), (0, 1)), constant_values=settings.silence).astype(np.float32)


def _apart(embedded: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return vectors of length 1 without what all of them share; one alone, or one like all others, stays."""
    unit = _unit(np.asarray(embedded, dtype=np.float64))
    apart = unit - unit.mean(axis=0)
    known = np.linalg.norm(unit, axis=1, keepdims=True) > _TINY
    alike = np.linalg.norm(apart, axis=1, keepdims=True) < 1e-6
    return np.where(known, _unit(np.where(alike, unit, apart)), 0.0)


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    unit: NDArray[np.float64] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _TINY)
    return unit


def _weights(
    cues: Sequence[Cue], n_clips: int, clip_seconds: float, offset: float, settings: SaidSettings
) -> NDArray[np.float64]:
    """Return how much of each cue belongs to each clip [N, cues]: shares of time, at most about 1 in sum."""
    reach = _REACH * settings.spread
    weights = np.zeros((n_clips, len(cues)))
    middles = offset + clip_seconds * (np.arange(n_clips) + 0.5)
    for at, cue in enumerate(cues):
        start, end = cue.start + settings.lag, cue.end + settings.lag
        first, stop = np.searchsorted(middles, [start - reach, end + reach])
        near = middles[first:stop, np.newaxis]
        edges = (near - np.array([end, start])) / settings.spread
        weights[first:stop, at] = np.diff(_gaussian_below(edges), axis=1)[:, 0]
    return weights


def _gaussian_below(deviations: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of a Gaussian below each number of standard deviations."""
    error = np.vectorize(math.erf, otypes=[np.float64])
    below: NDArray[np.float64] = 0.5 * (1.0 + error(deviations / math.sqrt(2.0)))
    return below
