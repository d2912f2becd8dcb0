"""Topic: how plausible it is, by its transcript, that a video shows a procedure at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graph2vid.errors import InputError
from graph2vid.evidence.arrays import cosine_similarity
from graph2vid.evidence.captions import Cue
from graph2vid.evidence.embed.interface import TextFunction
from graph2vid.evidence.language import content_words, words

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


def likeness(steps: Sequence[str], cues: Sequence[Cue], embed: TextFunction) -> dict[str, float]:
    """Say how like each other the texts of a procedure and a transcript are: 0 where nothing is said.

    Returns
    -------
    dict of str to float
        ``mean``: the mean cosine of all steps and all cues, by how long these last; ``closest``: the mean over the
        steps of the largest cosine with a cue; ``said``: the share of the words of the steps that are said.
    """
    spoken = [cue for cue in cues if cue.text.strip() and cue.end > cue.start]
    if not spoken:
        return {"mean": 0.0, "closest": 0.0, "said": 0.0}
    cosine = cosine_similarity(embed(steps), embed([cue.text for cue in spoken]))
    mean = np.average(cosine.mean(axis=0), weights=[cue.end - cue.start for cue in spoken])
    asked = {word for step in steps for word in content_words(step)}
    told = {word for cue in spoken for word in words(cue.text)}
    share = len(asked & told) / max(len(asked), 1)
    return {"mean": float(mean), "closest": float(cosine.max(axis=1).mean()), "said": share}


def plausibility(steps: Sequence[str], cues: Sequence[Cue], embed: TextFunction, *, title: str = "") -> Plausibility:
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
    procedures: Sequence[tuple[str, Sequence[str]]], cues: Sequence[Cue], embed: TextFunction
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
