"""From similarities to log-odds of a step against background in nats: of frames, and of several sources made one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid.errors import InputError
from graph2vid.evidence.arrays import as_matrix, as_vector, refuse
from graph2vid.evidence.embed import Embedder
from graph2vid.evidence.embed.interface import Vectors

_SMALLEST_SPREAD = 0.007  # of cosines for one step over the clips; less is noise


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
    weight : float
        How much a nat of this source counts; sources that repeat each other deserve less together than their sum.
    skip : array [K], optional
        The cost of not showing a step, in nats, where the source tells one.
    is_odds : bool
        Whether the nats are log-odds against background already, as those of on-screen text are: they are added to
        what the other sources say once these have been set against background.
    """

    name: str
    log_likelihood: ArrayLike
    weight: float = 1.0
    skip: ArrayLike | None = None
    is_odds: bool = False


def fuse(sources: Sequence[Source], *, level: float = -1.0) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Add up what several sources say, each by its weight, and set the sum against background once.

    Where a source says nothing about a step in a clip, it is taken to say what it says about that step on average: it
    is uncertain, not against. A source that says nothing about a step at all leaves it to the others.

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
    total: NDArray[np.float64] | None = None
    odds: NDArray[np.float64] | float = 0.0
    skip: NDArray[np.float64] | None = None
    for source in sources:
        if not 0 <= source.weight < math.inf:
            raise InputError(f"source {source.name!r}: the weight must be a number from 0 on, not {source.weight!r}")
        found = as_matrix(source.log_likelihood, source.name, ("steps", "clips")).astype(np.float64)
        total = np.zeros(found.shape) if total is None else total
        if found.shape != total.shape:
            about = f"is about {found.shape} steps and clips, but {sources[0].name!r} about {total.shape}"
            raise InputError(f"source {source.name!r} {about}: cut the video into the same clips")
        refuse(np.isinf(found), found, source.name, ("step", "clip"), "likelihoods are numbers, or NaN where unknown")
        if source.is_odds:
            odds = odds + source.weight * _completed(found)
        else:
            total += source.weight * _completed(found)
        if source.skip is not None:
            cost = as_vector(source.skip, f"skip of {source.name}", len(total), "step").astype(np.float64)
            if source.is_odds and skip is not None:  # what one source does not speak of may be shown all the same
                skip = np.maximum(skip, source.weight * cost)
            else:
                skip = source.weight * cost + (0.0 if skip is None else skip)
    if total is None:
        raise InputError("there is no source of evidence to fuse")
    if all(source.is_odds for source in sources):
        return total + odds, skip
    return log_odds(total, level=level) + odds, skip


def _completed(nats: NDArray[np.float64]) -> NDArray[np.float64]:
    """Put the mean of a step's known entries in the place of NaN [K, N]; 0 where there are none."""
    known = ~np.isnan(nats)
    count = known.sum(axis=1, keepdims=True)
    mean = np.where(known, nats, 0.0).sum(axis=1, keepdims=True) / np.maximum(count, 1)
    return np.where(known, nats, mean)
