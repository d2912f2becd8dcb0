"""Evidence from frames: how much what is seen in a clip speaks for a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.evidence.embed import Embedder
from graph2vid.evidence.embed.interface import Vectors
from graph2vid.evidence.odds import log_likelihood


@dataclass(frozen=True, eq=False)
class Seen:
    """What is seen in the clips of a video.

    Attributes
    ----------
    clips : float32 [N, D]
        The clips' embeddings (:func:`graph2vid.evidence.embed.video_clips`); a row of zeros where nothing is seen.
    embedder : Embedder
        What they are from; it embeds the steps in the same space.
    """

    clips: Vectors
    embedder: Embedder


def frames_similarity(steps: Sequence[str], seen: Seen) -> NDArray[np.float64]:
    """Compare the texts of K steps with N clips as the embedder's authors do; [K, N], NaN where nothing is seen."""
    if not steps:
        raise InputError("there are no steps to compare the frames with")
    found = seen.embedder.similarity(seen.embedder.texts(steps), seen.clips).astype(np.float64)
    found[:, ~seen.clips.any(axis=1)] = np.nan
    return found


def frames_evidence(steps: Sequence[str], seen: Seen) -> NDArray[np.float64]:
    """Say how much what is seen in each clip speaks for each step.

    Parameters
    ----------
    steps : sequence of str
        The K texts.
    seen : Seen
        The N clips.

    Returns
    -------
    float64 array [K, N]
        Nats (:func:`graph2vid.evidence.log_likelihood` of the similarities), for a
        :class:`graph2vid.evidence.Source`; NaN where nothing is seen.
    """
    similarity = frames_similarity(steps, seen)
    is_seen = ~np.isnan(similarity[0])
    if not is_seen.any():
        raise InputError(f"embedder {seen.embedder.name!r} sees nothing in any of the {len(is_seen)} clips")
    similarity[:, is_seen] = log_likelihood(similarity[:, is_seen])
    return similarity


def frames_likeness(steps: Sequence[str], seen: Seen) -> float:
    """Return the mean over the steps of the largest similarity with a clip: it ranks procedures for one video."""
    similarity = frames_similarity(steps, seen)
    return float(np.max(similarity, axis=1, where=~np.isnan(similarity), initial=-np.inf).mean())
