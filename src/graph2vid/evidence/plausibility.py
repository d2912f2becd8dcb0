"""Whether a video shows a procedure at all, by its transcript."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from graph2vid.errors import InputError
from graph2vid.evidence.arrays import cosine_similarity
from graph2vid.evidence.captions import Cue
from graph2vid.evidence.narration import EmbedTexts

UNLIKELY = 0.5
"""Below this probability a warning is due."""

_TITLE = 0.5  # the weight of the title beside that of all steps
_MORE_WORDS = 0.03  # the more is said, the likelier something in it is like anything
# Calibrated on CrossTask videos with their own and with other tasks' procedures (docs, "Narration").
_SLOPE = 19.9
_MIDDLE = 0.257


@dataclass(frozen=True)
class Plausibility:
    """How well the transcript of a video goes with a procedure.

    Attributes
    ----------
    score : float
        The mean over the steps (and the title) of the largest cosine with a cue, less what is to be expected from so
        many cues. It ranks procedures for one video.
    probability : float
        That the procedure is what the video is about, if half of those asked about are; in 0 … 1. Calibrated for the
        embedder wordllama.
    """

    score: float
    probability: float

    @property
    def is_unlikely(self) -> bool:
        """Whether the video hardly shows this procedure."""
        return self.probability < UNLIKELY


def plausibility(steps: Sequence[str], cues: Sequence[Cue], embed: EmbedTexts, *, title: str = "") -> Plausibility:
    """Say how plausible it is that a video shows a procedure.

    Parameters
    ----------
    steps : sequence of str
        The texts of the steps.
    cues : sequence of Cue
        The transcript of the video.
    embed : callable
        From texts to embeddings.
    title : str
        What the procedure makes, where it is known: people say what they make.
    """
    return plausibilities([(title, steps)], cues, embed)[0]


def plausibilities(
    procedures: Sequence[tuple[str, Sequence[str]]], cues: Sequence[Cue], embed: EmbedTexts
) -> tuple[Plausibility, ...]:
    """Say of several procedures, each a title (possibly empty) and its steps, how plausible each is for one video."""
    if any(not steps for _, steps in procedures):
        raise InputError("a procedure without steps cannot be told from any other")
    said = [cue.text for cue in cues if cue.text.strip()]
    vectors = embed(said) if said else None
    found = []
    for title, steps in procedures:
        likeness = 0.0
        if vectors is not None:
            likeness = float(cosine_similarity(embed(steps), vectors).max(axis=1).mean())
            if title.strip():
                of_title = float(cosine_similarity(embed([title]), vectors).max())
                likeness = (likeness + _TITLE * of_title) / (1 + _TITLE)
        score = likeness - _MORE_WORDS * math.log1p(len(said))
        found.append(Plausibility(score, 1 / (1 + math.exp(-_SLOPE * (score - _MIDDLE)))))
    return tuple(found)


def fit(scores: ArrayLike, is_own: ArrayLike) -> tuple[float, float]:
    """Calibrate: fit P(own) = 1 / (1 + exp(-slope (score - middle))), both kinds weighing the same.

    Parameters
    ----------
    scores : array [M]
    is_own : bool array [M]
        Whether the procedure is the video's own.

    Returns
    -------
    slope, middle : float
    """
    x, own = np.asarray(scores, dtype=np.float64), np.asarray(is_own, dtype=bool)
    if x.shape != own.shape or x.ndim != 1 or own.all() or not own.any():
        raise InputError("scores of videos with their own and with other procedures are needed")
    centre, scale = x.mean(), x.std() or 1.0
    design = np.stack([(x - centre) / scale, np.ones(len(x))], axis=1)
    weight = np.where(own, 0.5 / own.sum(), 0.5 / (~own).sum())
    beta = np.zeros(2)
    for _ in range(50):  # Newton's steps; a little ridge keeps scores that do not overlap from running away
        chance = 1 / (1 + np.exp(-design @ beta))
        gradient = design.T @ (weight * (chance - own)) + 1e-4 * beta * [1, 0]
        hessian = (design * (weight * chance * (1 - chance))[:, np.newaxis]).T @ design + 1e-6 * np.eye(2)
        hessian[0, 0] += 1e-4
        beta -= np.linalg.solve(hessian, gradient)
    slope = float(beta[0] / scale)
    return slope, float(centre - beta[1] / slope) if slope else float(centre)
