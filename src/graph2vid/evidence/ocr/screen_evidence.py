"""Evidence from on-screen text: how much what is written speaks for each step while it is shown."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.evidence.arrays import cosine_similarity
from graph2vid.evidence.captions import Cue
from graph2vid.evidence.embed import Grid
from graph2vid.evidence.embed.interface import TextFunction
from graph2vid.evidence.language import content_words
from graph2vid.evidence.ocr.screen_cues import CAPTION

Matrix = NDArray[np.float64]

# The first three by maximum likelihood: which instruction of a how-to text is each step name of CrossTask about (18
# tasks, 241 names; some are about none, and so are those of other tasks)? They are taken for what captions are like.
_SHARPNESS = 11.4  # nats for each unit of likeness
_WHOLE = 0.68  # the weight of whole texts beside that of their words
_NONE = 0.32  # the likeness to no step at all that a caption has, if three captions of four are about a step
_NUMBER = 9.0  # nats that a step's number is worth where numbers can be relied on
_MOST = 5.0  # nats, either way
_IDLE = -0.5  # nats where nothing is written
_AFTER = 1.0  # nats just after a caption: what it names goes on for a while
_FADES = 5.0  # seconds in which that falls by as many nats
_FAR = 20.0  # seconds from any caption: what is done there, captions do not tell
_ALIKE = 0.82  # of the letters of a word that was misread
_WORD = r"(?:step|schritt|paso|étape|no\.?|nr\.?|#)"
_NUMBERED = re.compile(
    rf"^\W*(?:{_WORD}\s*(\d{{1,2}})\b|(\d{{1,2}})\s*[.):]\s|(\d{{1,2}})\s*(?:/|of)\s*(\d{{1,2}})\b)", re.IGNORECASE
)


CALIBRATION = (-2.21, 1.94)
"""Level and slope of on-screen text as a source of evidence (:class:`graph2vid.evidence.Source`): on four rendered
videos, by ``benchmarks/fusion_experiment.py``; there are no annotated videos with captions in the picture here."""


@dataclass(frozen=True, eq=False)
class ScreenEvidence:
    """What on-screen text says about the steps.

    Attributes
    ----------
    log_odds : float64 [K, N]
        How much likelier step i is than background in clip j, in nats.
    skip : float64 [K]
        The cost of not showing a step, in nats; negative for a step that no caption names.
    probability : float64 [C, K]
        That each caption is about each step; what is missing to 1 is about none.
    numbered : bool
        Whether numbers of steps were used: as many are written as the procedure has steps, and the words beside them
        do not contradict them.
    near : bool [N]
        Whether a caption is there, or within 20 seconds: elsewhere other evidence counts, where there is some.
    """

    log_odds: Matrix
    skip: Matrix
    probability: Matrix
    numbered: bool
    near: NDArray[np.bool_]


def screen_evidence(
    steps: Sequence[str], cues: Sequence[Cue], embed: TextFunction, grid: Grid, *, title: str = ""
) -> ScreenEvidence:
    """Say how much on-screen text speaks for each step in each clip, against background.

    Parameters
    ----------
    steps : sequence of str
        The K texts.
    cues : sequence of Cue
        On-screen text; only captions count, not titles, lists of ingredients and watermarks. What is written is shown
        while it is done: there is no lag.
    embed : callable
        From texts to embeddings.
    grid : Grid
        The clips.
    title : str
        Of the procedure: a caption that is more like it than like a step is about none.
    """
    captions = [cue for cue in cues if cue.kind == CAPTION and cue.text.strip()]
    n_steps, n_clips = len(steps), grid.n_clips or 0
    if not captions:
        idle, nothing = np.full((n_steps, n_clips), _IDLE), np.zeros((0, n_steps))
        return ScreenEvidence(idle, np.zeros(n_steps), nothing, numbered=False, near=np.zeros(n_clips, dtype=np.bool_))
    texts = [_without_number(cue.text) for cue in captions]
    names = [*steps, title] if title.strip() else list(steps)
    like = _likeness(names, texts, embed)  # [names, C]
    logits = _SHARPNESS * np.vstack([like[:n_steps], np.maximum(like[n_steps:].max(axis=0, initial=-1.0), _NONE)])
    numbers = _numbers([cue.text for cue in captions], n_steps)
    beside = [like[:n_steps, at] for at, number in enumerate(numbers) if number is not None]
    numbered = _consistent([number for number in numbers if number is not None], beside)
    if numbered:
        for at, number in enumerate(numbers):
            if number is not None:
                logits[number, at] += _NUMBER
    logits -= logits.max(axis=0)
    share = np.exp(logits)
    probability = (share / share.sum(axis=0))[:n_steps].T  # [C, K]
    bounded = np.clip(probability, 1e-6, 1.0 - 1e-6)
    nats = np.clip(np.log(bounded / (1.0 - bounded)), -_MOST, _MOST)
    begins = grid.offset + grid.clip_seconds * np.arange(n_clips)
    apart = [np.maximum(cue.start - begins - grid.clip_seconds, begins - cue.end) for cue in captions]
    near = np.min(apart, axis=0) < _FAR
    return ScreenEvidence(_over_time(captions, nats, grid), nats.max(axis=0), probability, numbered, near)


def _over_time(captions: Sequence[Cue], nats: Matrix, grid: Grid) -> Matrix:
    """Lay the nats of captions [C, K] on clips [K, N]: whole while a caption is there, less and less after it."""
    n_clips = grid.n_clips or 0
    begins = grid.offset + grid.clip_seconds * np.arange(n_clips)
    found = np.full((nats.shape[1], n_clips), _IDLE)
    spoken = sorted(range(len(captions)), key=lambda at: captions[at].start)
    useful = [at for at in spoken if nats[at].max() > 0]
    for number, at in enumerate(useful):  # what a caption names goes on until the next one
        until = captions[useful[number + 1]].start if number + 1 < len(useful) else math.inf
        passed = begins - captions[at].end
        after = (passed >= -grid.clip_seconds / 2) & (begins + grid.clip_seconds / 2 < until)
        step = int(nats[at].argmax())
        found[step, after] = np.maximum(found[step, after], _AFTER * (1.0 - np.maximum(passed[after], 0.0) / _FADES))
    covered = np.zeros(n_clips)
    total = np.zeros_like(found)
    for at in spoken:
        start, end = captions[at].start, captions[at].end
        share = np.clip(np.minimum(begins + grid.clip_seconds, end) - np.maximum(begins, start), 0.0, None)
        share /= grid.clip_seconds
        if nats[at].max() <= 0:  # it is about no step: a little against all
            share = 0.2 * share
        total += nats[at][:, np.newaxis] * share
        covered += share
    part = np.minimum(covered, 1.0)
    mean = total / np.maximum(covered, 1e-9)
    result: Matrix = part * mean + (1.0 - part) * found
    return result


# -- likeness of texts ---------------------------------------------------------------------------------------


def _likeness(names: Sequence[str], texts: Sequence[str], embed: TextFunction) -> Matrix:
    """Return how like each other names and texts are, about 0 … 1: by whole texts, and by their words."""
    whole = np.asarray(cosine_similarity(embed(list(names)), embed(list(texts))), dtype=np.float64)
    of_name = [content_words(name) for name in names]
    of_text = [content_words(text) for text in texts]
    known = sorted({word for words in (*of_name, *of_text) for word in words})
    place = {word: at for at, word in enumerate(known)}
    vectors = embed(known)
    alike = np.maximum(np.asarray(cosine_similarity(vectors, vectors), dtype=np.float64), 0.0) ** 2
    names_with = Counter(word for words in of_name for word in set(words))
    tells = {word: math.log1p(len(names) / max(names_with[word], 1)) for word in known}
    found = np.zeros((len(names), len(texts)))
    for column, words in enumerate(of_text):
        joined = "".join(texts[column].casefold().split())
        for row, wanted in enumerate(of_name):
            if words and wanted:
                match = alike[np.ix_([place[word] for word in wanted], [place[word] for word in words])]
                match = np.maximum(match, _misread(wanted, words))
                within = np.array([float(len(word) > 3 and word in joined) for word in wanted])
                recall = _mean(np.maximum(match.max(axis=1), within), wanted, tells)
                precision = _mean(match.max(axis=0), words, tells)
                found[row, column] = (recall + precision) / 2
    return _WHOLE * whole + (1.0 - _WHOLE) * found


def _mean(values: Matrix, words: Sequence[str], tells: dict[str, float]) -> float:
    return float(np.average(values, weights=[tells[word] for word in words]))


def _misread(wanted: Sequence[str], words: Sequence[str]) -> Matrix:
    """Return 1 where two words are the same but for a letter or an ending [wanted, words]."""
    same: Any = [
        [one[0] == other[0] and SequenceMatcher(None, one, other, autojunk=False).ratio() >= _ALIKE for other in words]
        for one in wanted
    ]
    return np.array(same, dtype=np.float64)


# -- numbers of steps ----------------------------------------------------------------------------------------


def _without_number(text: str) -> str:
    rest = _NUMBERED.sub("", text).strip(" .:-–—)")
    return rest or text


def _numbers(texts: Sequence[str], n_steps: int) -> list[int | None]:
    """Return the step that each text numbers ("Step 3", "3/8"), if as many are numbered as there are steps."""
    found: list[tuple[int, int | None] | None] = []
    for text in texts:
        match = _NUMBERED.match(text)
        if match is None:
            found.append(None)
            continue
        word, mark, part, whole = match.groups()
        found.append((int(word or mark or part), int(whole) if whole else None))
    given = [one for one in found if one is not None]
    totals = {whole for _, whole in given if whole is not None}
    largest = max((number for number, _ in given), default=0)
    if len({number for number, _ in given}) < 2 or (totals or {largest}) != {n_steps}:
        return [None] * len(found)
    return [one[0] - 1 if one is not None and 1 <= one[0] <= n_steps else None for one in found]


def _consistent(numbers: Sequence[int], likeness: Sequence[Matrix]) -> bool:
    """Say whether the words beside numbers are about the steps of these numbers, as far as they are about any."""
    told = [(number, like) for number, like in zip(numbers, likeness, strict=True) if like.max() > _NONE]
    right = sum(int(like.argmax()) == number for number, like in told)
    return bool(numbers) and right >= 0.6 * len(told)
