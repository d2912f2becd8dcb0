"""Evidence from narration: how much what is said in a clip is like a step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.evidence.arrays import cosine_similarity
from graph2vid.evidence.captions import Cue
from graph2vid.evidence.embed import Embedder


def narration_similarity(
    steps: Sequence[str],
    cues: Sequence[Cue],
    n_clips: int,
    embed: Embedder,
    *,
    clip_seconds: float = 1.0,
    offset: float = 0.0,
) -> NDArray[np.floating[Any]]:
    """Compare the texts of steps with what is said in each clip.

    Parameters
    ----------
    steps : sequence of str
        The K texts.
    cues : sequence of Cue
        What is said when. A cue belongs to every clip that it touches, from the one that holds its start to
        the one that holds its end, both included.
    n_clips : int
        Clip j covers ``offset + j * clip_seconds`` to ``offset + (j + 1) * clip_seconds``.
    embed : callable
        From texts to embeddings (see :func:`graph2vid.evidence.embed.text_embedder`).
    clip_seconds, offset : float
        Seconds.

    Returns
    -------
    array [K, N]
        The largest cosine over the cues of a clip, at least 0, which is that of silence: words about something
        else say no more against a step than no words.
    """
    if not steps:
        raise InputError("there are no steps to compare the narration with")
    if n_clips < 1 or not 0 < clip_seconds < math.inf or not math.isfinite(offset):
        raise InputError(f"impossible clips: {n_clips} of {clip_seconds} s from {offset} s")
    similarity = np.zeros((len(steps), n_clips), dtype=np.float32)
    if cues:
        cosine = cosine_similarity(embed(steps), embed([cue.text for cue in cues]))
        for at, cue in enumerate(cues):
            first = max(math.floor((cue.start - offset) / clip_seconds), 0)
            stop = max(math.floor((cue.end - offset) / clip_seconds) + 1, 0)
            touched = similarity[:, first:stop]
            np.maximum(touched, cosine[:, at : at + 1], out=touched)
    return similarity
