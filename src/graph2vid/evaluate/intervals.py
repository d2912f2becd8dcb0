"""Means over videos and bootstrap intervals of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from graph2vid.errors import InputError

_BLOCK = 1 << 22
"""Resampled values held at once: 32 MiB."""


@dataclass(frozen=True)
class Interval:
    """A mean over videos and the interval it lies in.

    Attributes
    ----------
    mean, low, high : float
        The mean, and the bounds of the interval; NaN where there was nothing to average.
    level : float
        The share of resampled means inside.
    videos : int
        How many videos the mean is over.
    """

    mean: float
    low: float
    high: float
    level: float
    videos: int


def mean_over_videos(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each metric over the videos where it is defined (not NaN), and ``videos``.

    Parameters
    ----------
    rows : sequence of mappings
        One per video, as from :func:`~graph2vid.evaluate.evaluate_video`, all with the same metrics.
    """
    if not rows:
        raise InputError("there are no videos to average over")
    names = list(rows[0])
    if any(list(row) != names for row in rows):
        raise InputError("the videos must have the same metrics")
    return {name: defined_mean([row[name] for row in rows]) for name in names} | {"videos": len(rows)}


def bootstrap_interval(values: ArrayLike, *, level: float = 0.95, samples: int = 10_000, seed: int = 0) -> Interval:
    """Return the mean of one value per video with a percentile bootstrap interval over the videos.

    Parameters
    ----------
    values : array [videos]
        NaN is left out.
    level : float
        The share of resampled means inside the interval.
    samples : int
        How many times the videos are drawn anew, with replacement.
    seed : int
        The same seed gives the same interval.
    """
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1:
        raise InputError(f"one value per video is needed, not shape {found.shape}")
    if not 0 < level < 1 or samples < 1:
        raise InputError(f"impossible level {level} or number of samples {samples}")
    found = found[~np.isnan(found)]
    count = len(found)
    if count == 0:
        return Interval(np.nan, np.nan, np.nan, level, 0)
    random = np.random.default_rng(seed)
    means = np.empty(samples)
    block = max(1, _BLOCK // count)
    for start in range(0, samples, block):
        drawn = random.integers(count, size=(min(block, samples - start), count))
        means[start : start + len(drawn)] = found[drawn].mean(axis=1)
    low, high = np.percentile(means, [50 * (1 - level), 50 * (1 + level)])
    return Interval(float(found.mean()), float(low), float(high), level, count)


def paired_interval(
    first: ArrayLike, second: ArrayLike, *, level: float = 0.95, samples: int = 10_000, seed: int = 0
) -> Interval:
    """Return the mean difference first - second over the same videos, with its bootstrap interval.

    Videos where either is NaN are left out.
    """
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != other.shape:
        raise InputError(f"the values {one.shape} and {other.shape} must be of the same videos (axis 0)")
    return bootstrap_interval(one - other, level=level, samples=samples, seed=seed)


def defined_mean(values: Sequence[float]) -> float:
    """Return the mean of the values that are not NaN; NaN where there are none."""
    array = np.array(values, dtype=np.float64)
    defined = array[~np.isnan(array)]
    return float(defined.mean()) if defined.size else np.nan
