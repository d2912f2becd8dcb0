"""Several sources of evidence made one: narration, frames, given scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid.errors import InputError
from graph2vid.evidence.arrays import as_matrix, as_vector, refuse
from graph2vid.evidence.odds import log_odds


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
    """

    name: str
    log_likelihood: ArrayLike
    weight: float = 1.0
    skip: ArrayLike | None = None


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
        The weighted sum of the skip costs of the sources that tell some; None where none does.
    """
    if not sources:
        raise InputError("there is no source of evidence to fuse")
    shape: tuple[int, ...] = ()
    total = np.zeros(0)
    skip: NDArray[np.float64] | None = None
    for source in sources:
        if not 0 <= source.weight < math.inf:
            raise InputError(f"source {source.name!r}: the weight must be a number from 0 on, not {source.weight!r}")
        found = as_matrix(source.log_likelihood, source.name, ("steps", "clips")).astype(np.float64)
        if not shape:
            shape, first = found.shape, source.name
            total = np.zeros(shape)
        if found.shape != shape:
            raise InputError(
                f"source {source.name!r} is about {found.shape} steps and clips, but {first!r} about {shape}: "
                "cut the video into the same clips"
            )
        refuse(np.isinf(found), found, source.name, ("step", "clip"), "likelihoods are numbers, or NaN where unknown")
        total += source.weight * _completed(found)
        if source.skip is not None:
            cost = as_vector(source.skip, f"skip of {source.name}", shape[0], "step").astype(np.float64)
            skip = source.weight * cost + (0.0 if skip is None else skip)
    return log_odds(total, level=level), skip


def _completed(nats: NDArray[np.float64]) -> NDArray[np.float64]:
    """Put the mean of a step's known entries in the place of NaN [K, N]; 0 where there are none."""
    known = ~np.isnan(nats)
    count = known.sum(axis=1, keepdims=True)
    mean = np.where(known, nats, 0.0).sum(axis=1, keepdims=True) / np.maximum(count, 1)
    return np.where(known, nats, mean)
