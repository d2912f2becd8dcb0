"""Evidence from frames: how much the visual features of a clip speak for a step."""

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
        :class:`graph2vid.evidence.Source`; NaN where there is no frame.
    """
    similarity = frames_similarity(steps, visual)
    has_frame = ~np.isnan(similarity[0])
    if not has_frame.any():
        raise InputError(f"embedder {visual.embedder.name!r} finds no frame in any of the {len(has_frame)} clips")
    similarity[:, has_frame] = log_likelihood(similarity[:, has_frame])
    return similarity


def frames_likeness(steps: Sequence[str], visual: VisualFeatures) -> float:
    """Return the mean over the steps of the largest similarity with a clip: it ranks procedures for one video."""
    similarity = frames_similarity(steps, visual)
    return float(np.max(similarity, axis=1, where=~np.isnan(similarity), initial=-np.inf).mean())
