"""From similarities to log-odds of a step against background in nats: of frames, and of several sources made one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid.errors import InputError
from graph2vid.evidence.arrays import as_matrix, as_vector, refuse
from graph2vid.evidence.embed import Embedder
from graph2vid.evidence.embed.interface import Vectors

_SMALLEST_SPREAD = 0.007  # of cosines for one step over the clips; less is noise
# The weight of a source that nobody calibrated, before it is compared with others: its mean and standard deviation.
_PRIOR, _PRIOR_SPREAD = 1.0, 0.5
_TOGETHER = 10.0  # seconds within which the errors of a source go together
_MOST_WEIGHT = 10.0


def log_likelihood(similarity: ArrayLike, *, gain: float = 0.75, rivalry: float = 0.3) -> NDArray[np.float64]:
    """Turn similarities of steps and clips into nats, so that sources of any scale can be added up.

    A step's row is measured by its own mean and standard deviation, since some texts are like everything and others
    like nothing; and what speaks for every step is discounted.

    Parameters
    ----------
    similarity : array [K, N]
        Higher is more alike; finite.
    gain : float
        Nats for each standard deviation.
    rivalry : float
        The share of log Σ exp over the steps that is taken off each clip.

    Returns
    -------
    float64 array [K, N]
    """
    found = as_matrix(similarity, "similarity", ("steps", "clips")).astype(np.float64)
    refuse(~np.isfinite(found), found, "similarity", ("step", "clip"), "similarities must be finite")
    if not (0 < gain < math.inf and 0 <= rivalry < math.inf):
        raise InputError(f"gain must be positive and rivalry not negative, not {gain!r} and {rivalry!r}")
    away = found - found.mean(axis=1, keepdims=True)
    score: NDArray[np.float64] = gain * away / (found.std(axis=1, keepdims=True) + _SMALLEST_SPREAD)
    highest = score.max(axis=0)
    score -= rivalry * (highest + np.log(np.exp(score - highest).sum(axis=0)))
    return score


def log_odds(log_likelihood: ArrayLike, *, level: float = -1.0) -> NDArray[np.float64]:
    """Set the evidence for steps against background.

    Background has as much as the mean of ``level`` and of the middle one among the clips' best steps: a video in which
    much stands out shows much.

    Parameters
    ----------
    log_likelihood : array [K, N]
        Nats, from one source or the sum of several; finite.
    level : float
        What background has in any video, in nats.

    Returns
    -------
    float64 array [K, N]
        A match cost is its negative, beside a drop cost of 0 (preset ``log_odds``).
    """
    found = as_matrix(log_likelihood, "log_likelihood", ("steps", "clips")).astype(np.float64)
    refuse(~np.isfinite(found), found, "log_likelihood", ("step", "clip"), "likelihoods must be finite")
    if not math.isfinite(level):
        raise InputError(f"the level of background must be a finite number, not {level!r}")
    result: NDArray[np.float64] = found - (float(np.median(found.max(axis=0))) + level) / 2
    return result


@dataclass(frozen=True, eq=False)
class VisualFeatures:
    """The embeddings of the clips of a video.

    Attributes
    ----------
    clips : float32 [N, D]
        The clips' embeddings (:func:`graph2vid.evidence.embed_frames`); a row of zeros where there is no frame.
    embedder : Embedder
        What they are from; it embeds the steps in the same space.
    """

    clips: Vectors
    embedder: Embedder


def frames_similarity(steps: Sequence[str], visual: VisualFeatures) -> NDArray[np.float64]:
    """Compare the texts of K steps with N clips as the embedder's authors do; [K, N], NaN where there is no frame."""
    if not steps:
        raise InputError("there are no steps to compare the frames with")
    found = visual.embedder.similarity(visual.embedder.texts(steps), visual.clips).astype(np.float64)
    found[:, ~visual.clips.any(axis=1)] = np.nan
    return found


def frames_evidence(steps: Sequence[str], visual: VisualFeatures) -> NDArray[np.float64]:
    """Say how much the frames of each clip speak for each step.

    Parameters
    ----------
    steps : sequence of str
        The K texts.
    visual : VisualFeatures
        The N clips.

    Returns
    -------
    float64 array [K, N]
        Nats (:func:`graph2vid.evidence.log_likelihood` of the similarities), for a
        :class:`graph2vid.evidence.Source`; NaN where there is no frame, and for a step that the embedder knows nothing
        like: it says nothing for or against it.
    """
    similarity = frames_similarity(steps, visual)
    has_frame = ~np.isnan(similarity[0])
    if not has_frame.any():
        raise InputError(f"embedder {visual.embedder.name!r} finds no frame in any of the {len(has_frame)} clips")
    known = np.flatnonzero(visual.embedder.texts(steps).any(axis=1))
    if not len(known):
        raise InputError(f"embedder {visual.embedder.name!r} knows nothing like any of the {len(steps)} steps")
    nats = np.full(similarity.shape, np.nan)
    nats[np.ix_(known, has_frame)] = log_likelihood(similarity[np.ix_(known, has_frame)])
    return nats


def given_evidence(scores: ArrayLike, n_steps: int, n_clips: int, name: str) -> NDArray[np.float64]:
    """Say how much scores of a model of the user's speak for each step in each clip.

    Parameters
    ----------
    scores : array [K, N]
        Higher is a better match; NaN where the model says nothing. One clip more or less than there are is no matter.
    n_steps, n_clips : int
    name : str
        What messages call them.

    Returns
    -------
    float64 array [K, N]
        Nats, NaN where they are not known.
    """
    found = as_matrix(scores, name, ("steps", "clips")).astype(np.float64)
    if found.shape[0] != n_steps or abs(found.shape[1] - n_clips) > 1:
        raise InputError(f"{name} holds {found.shape} scores, and {n_steps} steps × {n_clips} clips are wanted")
    refuse(np.isinf(found), found, name, ("step", "clip"), "scores are numbers, or NaN where nothing is known")
    found = np.pad(found[:, :n_clips], ((0, 0), (0, max(n_clips - found.shape[1], 0))), constant_values=np.nan)
    known = ~np.isnan(found)
    rows = known.any(axis=1)
    if not rows.any():
        raise InputError(f"{name} holds no score: all are NaN")
    nats = np.full(found.shape, np.nan)
    nats[rows] = log_likelihood(_completed(found[rows]))
    nats[~known] = np.nan
    return nats


def frames_likeness(steps: Sequence[str], visual: VisualFeatures) -> float:
    """Return the mean over the steps of the largest similarity with a clip: it ranks procedures for one video."""
    similarity = frames_similarity(steps, visual)
    return float(np.max(similarity, axis=1, where=~np.isnan(similarity), initial=-np.inf).mean())


@dataclass(frozen=True, eq=False)
class Source:
    """What one source says.

    Attributes
    ----------
    name : str
        For messages and for the result's options.
    log_likelihood : array [K, N]
        How much speaks for step i in clip j, in nats: of narration that of
        :func:`graph2vid.evidence.narration_evidence`, of similarities (frames, given scores) what
        :func:`graph2vid.evidence.log_likelihood` makes of them. NaN: the source says nothing there.
    weight : float or None
        How much a nat of this source counts; None: :func:`source_weights` tells.
    skip : array [K], optional
        The cost of not showing a step, in nats, where the source tells one.
    is_odds : bool
        Whether the nats are log-odds against background already, as those of on-screen text are: they are added to
        what the other sources say once these have been set against background.
    calibration : (float, float) or None
        Level and slope on annotated videos: the log-odds that a clip shows a step are ``level + slope`` times those
        that the source states. None: there were no such videos.
    """

    name: str
    log_likelihood: ArrayLike
    weight: float | None = 1.0
    skip: ArrayLike | None = None
    is_odds: bool = False
    calibration: tuple[float, float] | None = None

    def odds(self, level: float) -> NDArray[np.float64]:
        """Return the log-odds against background that the source states alone [K, N]; 0 where it says nothing."""
        found = np.asarray(self.log_likelihood, dtype=np.float64)
        return _known_odds(found) if self.is_odds else log_odds(_completed(found), level=level)


def source_weights(sources: Sequence[Source], *, clip_seconds: float = 1.0, level: float = -1.0) -> list[float]:
    """Return how much a nat of each source counts beside one of the first source that was calibrated.

    A calibrated source counts by its slope. One that was not is compared with those that were, in this very video:
    given the probability p of a step in a clip by these, its nats are expected to be μ₀ + (μ₁ - μ₀) p, which a
    regression on p finds, and its slope is (μ₁ - μ₀) / σ². One video tells that within wide limits, so that it moves
    the weight away from 1 as far as the regression's standard error allows; a source that contradicts the others comes
    to 0. Weights that are given are kept. Where no source was calibrated, each counts 1.

    Parameters
    ----------
    sources : sequence of Source
        All for the same steps and clips.
    clip_seconds : float
    level : float
        What background has in any video (:func:`graph2vid.evidence.log_odds`).
    """
    calibrated = [source.calibration for source in sources if source.calibration is not None]
    told = sum(
        (source.calibration[1] * source.odds(level) for source in sources if source.calibration is not None),
        start=calibrated[0][0] if calibrated else 0.0,
    )
    weights = []
    for source in sources:
        if source.weight is not None:
            weights.append(source.weight)
        elif not calibrated:
            weights.append(1.0)
        elif source.calibration is not None:
            weights.append(source.calibration[1] / calibrated[0][1])
        else:
            nats = as_matrix(source.log_likelihood, source.name, ("steps", "clips")).astype(np.float64)
            probability = np.asarray(1.0 / (1.0 + np.exp(-told)), dtype=np.float64)
            block = max(round(_TOGETHER / clip_seconds), 1)
            weights.append(_slope_found(nats, probability, block, calibrated[0][1]))
    return weights


def _slope_found(nats: NDArray[np.float64], probability: NDArray[np.float64], block: int, unit: float) -> float:
    """Return the slope of nats [K, N] given probabilities of steps in clips, in units of another, as is expected."""
    known = ~np.isnan(nats)
    count = np.maximum(known.sum(axis=1, keepdims=True), 1)

    def apart(values: NDArray[np.float64]) -> NDArray[np.float64]:
        there = np.where(known, values, 0.0)
        return np.where(known, there - there.sum(axis=1, keepdims=True) / count, 0.0)

    found, chance = apart(nats), apart(probability)
    power = float((chance**2).sum())
    if power < 1e-9:
        return _PRIOR
    gap = float((found * chance).sum()) / power
    rest = np.where(known, found - gap * chance, 0.0)
    variance = max(float((rest**2).sum()) / max(int(known.sum()), 1), 1e-9)
    sums = np.add.reduceat(rest * chance, np.arange(0, nats.shape[1], block), axis=1)
    scale = 1.0 / (variance * unit)
    error = max(float((sums**2).sum()), variance * power) / power**2 * scale**2
    trust = _PRIOR_SPREAD**2 / (_PRIOR_SPREAD**2 + error)
    return min(max(_PRIOR + trust * (gap * scale - _PRIOR), 0.0), _MOST_WEIGHT)


def fuse(sources: Sequence[Source], *, level: float = -1.0) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Add up what several sources say, each by its weight, and set the sum against background once.

    Where a source says nothing about a step in a clip, it is taken to say what it says about that step on average: it
    is uncertain, not against. A source that says nothing about a step at all leaves it to the others, and log-odds that
    are not known are 0.

    Parameters
    ----------
    sources : sequence of Source
        At least one; all for the same steps and clips.
    level : float
        What background has in any video (:func:`graph2vid.evidence.log_odds`).

    Returns
    -------
    log_odds : float64 array [K, N]
        Scores for preset ``log_odds``.
    skip : float64 array [K] or None
        The weighted sum of the skip costs of the sources that tell some, or that of a source of log-odds where it is
        larger; None where no source tells any.
    """
    if not sources:
        raise InputError("there is no source of evidence to fuse")
    for source in sources:
        if source.weight is not None and not 0 <= source.weight < math.inf:
            raise InputError(f"source {source.name!r}: the weight must be a number from 0 on, not {source.weight!r}")
        found = as_matrix(source.log_likelihood, source.name, ("steps", "clips"))
        shape = np.shape(sources[0].log_likelihood)
        if found.shape != shape:
            about = f"is about {found.shape} steps and clips, but {sources[0].name!r} about {shape}"
            raise InputError(f"source {source.name!r} {about}: cut the video into the same clips")
        refuse(np.isinf(found), found, source.name, ("step", "clip"), "likelihoods are numbers, or NaN where unknown")
    weights = source_weights(sources, level=level)
    sources = [replace(source, weight=weight) for source, weight in zip(sources, weights, strict=True)]
    parts = contributions(sources)
    likely = [part for source, part in zip(sources, parts, strict=True) if not source.is_odds]
    stated = [part for source, part in zip(sources, parts, strict=True) if source.is_odds]
    skip: NDArray[np.float64] | None = None
    for source, part, weight in zip(sources, parts, weights, strict=True):
        if source.skip is not None:
            cost = as_vector(source.skip, f"skip of {source.name}", len(part), "step").astype(np.float64)
            if source.is_odds and skip is not None:  # what one source does not speak of may be shown all the same
                skip = np.maximum(skip, weight * cost)
            else:
                skip = weight * cost + (0.0 if skip is None else skip)
    if skip is not None:
        # Others, which tell no cost, may show what one source does not speak of: as far as they count.
        others = [s for s in sources if s.skip is None and not s.is_odds]
        known = [np.isfinite(np.asarray(s.log_likelihood, dtype=np.float64)).any(axis=1) for s in others]
        count = sum((s.weight or 0.0) * there for s, there in zip(others, known, strict=True))
        skip = np.where(skip < 0, skip * np.maximum(1.0 - count, 0.0), skip)
    total = log_odds(sum(likely), level=level) if likely else np.zeros(parts[0].shape)
    return total + sum(stated), skip


def contributions(sources: Sequence[Source]) -> list[NDArray[np.float64]]:
    """Return what each source adds to the sum [K, N]: its nats by its weight, which is given."""
    return [
        (1.0 if source.weight is None else source.weight)
        * (_known_odds if source.is_odds else _completed)(np.asarray(source.log_likelihood, dtype=np.float64))
        for source in sources
    ]


def _known_odds(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Put 0 in the place of NaN [K, N]: neither for a step nor for background."""
    return np.where(np.isnan(odds), 0.0, odds)


def _completed(nats: NDArray[np.float64]) -> NDArray[np.float64]:
    """Put the mean of a step's known entries in the place of NaN [K, N]; 0 where there are none."""
    known = ~np.isnan(nats)
    count = known.sum(axis=1, keepdims=True)
    mean = np.where(known, nats, 0.0).sum(axis=1, keepdims=True) / np.maximum(count, 1)
    return np.where(known, nats, mean)
