"""How different two pictures of a video are, by their histograms: between shots they differ much."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_BINS = 32
_PARTS = 2  # a picture is looked at in 2 × 2 parts, of which the middle one of their distances counts


def histogram_distance(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Return how different two grey pictures [H, W] (0 … 255) are: 0 if their histograms are the same, 1 at the most.

    They are compared in four parts, and the distance is the mean of the middle two: something that moves through one
    part of the picture is no cut.
    """
    distances = sorted(
        0.5 * float(np.abs(_histogram(part) - _histogram(there)).sum())
        for part, there in zip(_quarters(one), _quarters(other), strict=True)
    )
    return (distances[1] + distances[2]) / 2


def _quarters(picture: NDArray[Any]) -> list[NDArray[Any]]:
    return [part for half in np.array_split(picture, _PARTS) for part in np.array_split(half, _PARTS, axis=1)]


def _histogram(part: NDArray[Any]) -> NDArray[np.float64]:
    counts = np.bincount(np.asarray(part, dtype=np.int64).ravel() * _BINS // 256, minlength=_BINS)
    shares: NDArray[np.float64] = counts / max(part.size, 1)
    return shares
