"""From similarities to log-odds: how much likelier a step is than background in a clip, in nats."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid.errors import InputError
from graph2vid.evidence.arrays import as_matrix, refuse

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
