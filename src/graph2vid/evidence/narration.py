"""Evidence from narration: how much the transcript speaks for a step in a clip."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid._one_thread import one_thread
from graph2vid.errors import InputError
from graph2vid.evidence.arrays import cosine_similarity
from graph2vid.evidence.captions import Cue
from graph2vid.evidence.embed import Grid
from graph2vid.evidence.embed.interface import TextFunction
from graph2vid.evidence.fusion import log_likelihood, log_odds
from graph2vid.evidence.language import FUNCTION_WORDS, content_words, words

Matrix: TypeAlias = NDArray[np.float64]

_WINDOW = 3.0  # seconds before and after a clip in which a step's words are looked for
_TINY = 1e-6
_SMALLEST_STRENGTH = 0.02
_REACH = 4.0  # standard deviations after which a kernel ends
_NO_STEPS = "there are no steps to compare the narration with"
CALIBRATION = (-2.56, 1.35)
"""Level and slope of narration as a :class:`graph2vid.evidence.Source`: on the 777 videos of CrossTask and YouCook2,
each of the same weight, by ``benchmarks/fusion_experiment.py``."""
_MOST_AWAY = 0.6  # nats a clip; more, and what is done far from where it is written could not be seen at all
_MARGIN = 0.12  # share of a video before the first step and after the last


@dataclass(frozen=True)
class NarrationSettings:
    """How a transcript becomes evidence.

    The defaults were set by hand in many trials on the videos of CrossTask and YouCook2 and are no search's result.
    A cross-validated one ends elsewhere, with no better figures on the videos left out (docs, "Narration").

    Attributes
    ----------
    spread, lag : float
        Seconds. A word at time s speaks for what is shown around s + ``lag``, within about ``spread`` (the
        standard deviation of a Gaussian).
    later, later_spread, later_lag : float
        The weight beside it of a second, wider Gaussian: people often say what they are about to do.
    words : float
        The weight of the step's single words beside that of whole cues.
    silence : float
        How much silence there must be for the evidence to lie halfway between that of the words and the step's mean, as
        a share of the time around a clip; silence is uncertain, not "no match".
    gain : float
        Nats that a clip gains for each standard deviation by which it stands out among the clips of its step.
    rivalry : float
        How much a clip that speaks for every step speaks for none: the share of log Σ exp over the steps that is
        taken off.
    edges, edge_share : float
        Nats by which background is likelier where the video begins, and over which share of its length that fades;
        half of it holds where the video ends.
    order, order_spread : float
        The weight of a Gaussian around the place that the step has in the text, and its standard deviation as a share
        of the video: steps tend to be shown where they are written. 0 switches it off.
    level : float
        The score of background in any video. The other half of background's score is the middle one of the clips'
        best scores in this video.
    skip_gain, skip_strength : float
        A step is expensive to leave out when some words in the video are more like it than ``skip_strength`` (a cosine
        above the step's mean), by ``skip_gain`` nats for each factor of e, and to be left out when less.
    """

    spread: float = 1.5
    lag: float = 1.5
    later: float = 0.2
    later_spread: float = 5.0
    later_lag: float = 9.0
    words: float = 0.75
    silence: float = 0.3
    gain: float = 0.75
    rivalry: float = 0.3
    edges: float = 3.0
    edge_share: float = 0.06
    order: float = 0.35
    order_spread: float = 0.25
    level: float = -1.0
    skip_gain: float = 10.0
    skip_strength: float = 0.25

    def __post_init__(self) -> None:
        for least, what, names in (
            (math.ulp(0.0), "a positive number", "spread later_spread edge_share order_spread gain skip_strength"),
            (0.0, "a number from 0 on", "later words silence rivalry edges order skip_gain"),
            (-sys.float_info.max, "a finite number", "lag later_lag level"),
        ):
            for name in names.split():
                if not least <= getattr(self, name) < math.inf:
                    raise InputError(f"narration: {name} must be {what}, not {getattr(self, name)!r}")


@dataclass(frozen=True, eq=False)
class Compared:
    """The transcript of the clips of a video, compared with the steps of a procedure.

    Attributes
    ----------
    cue : float64 [K, N]
        The mean cosine of each step and the cues of the clip, embeddings centred over the video's cues and over the
        steps, times the share of the clip in which something is said.
    spoken : float64 [N]
        That share (more than 1 where cues overlap).
    word : float64 [K, N]
        The share of a step's words that are said, or something like them, within a few seconds; rare words count more.
    near : float64 [N]
        1 where a word is said within these seconds, else 0.
    clip_seconds : float
    """

    cue: Matrix
    spoken: Matrix
    word: Matrix
    near: Matrix
    clip_seconds: float


@dataclass(frozen=True, eq=False)
class NarrationEvidence:
    """What narration says about the steps.

    Attributes
    ----------
    log_likelihood : float64 [K, N]
        How much speaks for step i in clip j, in nats; what is fused with other sources.
    log_odds : float64 [K, N]
        How much likelier step i is than background in clip j, in nats: a match cost is its negative, beside a drop
        cost of 0.
    skip : float64 [K]
        The cost of not showing a step, in nats; negative for a step that hardly a word speaks for.
    strength : float64 [K]
        How much more like the step the words are in its best place than on average.
    """

    log_likelihood: Matrix
    log_odds: Matrix
    skip: Matrix
    strength: Matrix


def narration_evidence(
    steps: Sequence[str],
    cues: Sequence[Cue],
    n_clips: int,
    embed: TextFunction,
    *,
    clip_seconds: float = 1.0,
    offset: float = 0.0,
    settings: NarrationSettings | None = None,
) -> NarrationEvidence:
    """Say how much the transcript of a video speaks for each step in each clip, against background.

    Parameters
    ----------
    steps : sequence of str
        The K texts, in the order in which they are written.
    cues : sequence of Cue
        The transcript.
    n_clips : int
        Clip j covers ``offset + j * clip_seconds`` to ``offset + (j + 1) * clip_seconds``.
    embed : callable
        From texts to embeddings (see :func:`graph2vid.evidence.embed.text_embedder`); it is given cues and single
        words.
    clip_seconds, offset : float
        Seconds.
    settings : NarrationSettings, optional

    Returns
    -------
    NarrationEvidence
    """
    return weigh(compare_narration(steps, cues, embed, Grid(clip_seconds, n_clips, offset)), settings)


@one_thread()
def compare_narration(steps: Sequence[str], cues: Sequence[Cue], embed: TextFunction, grid: Grid) -> Compared:
    """Compare the transcript of each clip with the steps: what :func:`weigh` makes evidence of. See there."""
    if not steps:
        raise InputError(_NO_STEPS)
    said = [cue for cue in cues if cue.text.strip()]
    share = _shares(said, grid)
    cue = np.zeros((len(steps), share.shape[1]))
    if said:
        # What all cues share (the topic, the small words), or all steps, tells none of them from the others.
        vectors = _centred(embed(steps)), _centred(embed([cue.text for cue in said]))
        cue = np.asarray(cosine_similarity(*vectors), dtype=np.float64) @ share
    word, near = _word_recall(steps, said, grid, embed)
    return Compared(cue, share.sum(axis=0), word, near, grid.clip_seconds)


def weigh(compared: Compared, settings: NarrationSettings | None = None) -> NarrationEvidence:
    """Make evidence of what was compared: smooth it in time, and set it against background."""
    chosen = settings or NarrationSettings()
    kernel, before = _kernel(chosen, compared.clip_seconds)
    silence = chosen.silence
    found = _smoothed(compared.cue, compared.spoken, kernel, before, silence)
    if chosen.words:
        found = found + chosen.words * _smoothed(compared.word * compared.near, compared.near, kernel, before, silence)
    strength = found.max(axis=1)
    likelihood = log_likelihood(found, gain=chosen.gain, rivalry=chosen.rivalry)
    likelihood += _where_in_video(len(found), found.shape[1], chosen)
    skip = chosen.skip_gain * np.log((strength + _SMALLEST_STRENGTH) / chosen.skip_strength)
    return NarrationEvidence(likelihood, log_odds(likelihood, level=chosen.level), skip, strength)


def narration_similarity(
    steps: Sequence[str],
    cues: Sequence[Cue],
    n_clips: int,
    embed: TextFunction,
    *,
    clip_seconds: float = 1.0,
    offset: float = 0.0,
) -> NDArray[np.floating[Any]]:
    """Compare the texts of steps with the cues of each clip, and do nothing more.

    Parameters
    ----------
    steps : sequence of str
        The K texts.
    cues : sequence of Cue
        The transcript. A cue belongs to every clip that it touches, from the one that holds its start to
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
    Grid(clip_seconds, n_clips, offset)  # checks
    if not steps:
        raise InputError(_NO_STEPS)
    similarity = np.zeros((len(steps), n_clips), dtype=np.float32)
    if cues:
        cosine = cosine_similarity(embed(steps), embed([cue.text for cue in cues]))
        for at, cue in enumerate(cues):
            first = max(math.floor((cue.start - offset) / clip_seconds), 0)
            stop = max(math.floor((cue.end - offset) / clip_seconds) + 1, 0)
            touched = similarity[:, first:stop]
            np.maximum(touched, cosine[:, at : at + 1], out=touched)
    return similarity


# -- clips and words -------------------------------------------------------------------------------------------------


def _shares(cues: Sequence[Cue], grid: Grid) -> Matrix:
    """Return the share of each clip that each cue fills [cues, N]."""
    edges = np.arange((grid.n_clips or 0) + 1, dtype=np.float64)
    times = np.array([(cue.start, cue.end) for cue in cues], dtype=np.float64).reshape(-1, 2, 1)
    start, end = np.moveaxis((times - grid.offset) / grid.clip_seconds, 1, 0)
    shares: Matrix = np.maximum(np.minimum(end, edges[1:]) - np.maximum(start, edges[:-1]), 0.0)
    return shares


def _centred(vectors: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Return vectors less what they share; a single one has nothing to be set apart from and stays as it is."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(length > 0, length, 1.0)
    if len(unit) == 1:
        return unit
    apart = unit - unit.mean(axis=0)
    apart[length[:, 0] == 0] = 0.0  # an unknown text stays unlike all
    return apart if np.linalg.norm(apart, axis=1).max() > _TINY else unit


def _word_recall(steps: Sequence[str], cues: Sequence[Cue], grid: Grid, embed: TextFunction) -> tuple[Matrix, Matrix]:
    """Return what share of each step's words is said near each clip [K, N], and where anything is said [N]."""
    of_step = [content_words(step) for step in steps]
    wanted = sorted({word for found in of_step for word in found})
    spoken, times = _spoken_words(cues)
    n_clips = grid.n_clips or 0
    first = np.floor((times - grid.offset) / grid.clip_seconds)
    inside = (first >= 0) & (first < n_clips)
    recall, near = np.zeros((len(steps), n_clips)), np.zeros(n_clips)
    if not wanted or not inside.any():
        return recall, near
    known = sorted(set(spoken))
    number = {word: at for at, word in enumerate(known)}
    alike = np.maximum(cosine_similarity(embed(wanted), embed(known)), 0.0)
    said = np.zeros((len(wanted), n_clips))
    reach = max(0, round(_WINDOW / grid.clip_seconds))
    for word, clip, there in zip(spoken, first.astype(np.int64).tolist(), inside.tolist(), strict=True):
        if there:
            span = slice(max(clip - reach, 0), clip + reach + 1)
            np.maximum(said[:, span], alike[:, number[word], np.newaxis], out=said[:, span])
            near[span] = 1.0
    steps_with = Counter(word for found in of_step for word in set(found))
    # What every step says tells none of them.
    tells = {word: math.log1p(len(steps) / steps_with[word]) for word in wanted}
    weight = np.array([[tells[word] if word in found else 0.0 for word in wanted] for found in map(set, of_step)])
    weight /= np.maximum(weight.sum(axis=1, keepdims=True), _TINY)
    return weight @ said, near


def _spoken_words(cues: Sequence[Cue]) -> tuple[list[str], Matrix]:
    """Return the telling words of cues and when each is said (seconds); without times of words, spread evenly."""
    spoken: list[tuple[str, float]] = []
    for cue in cues:
        timed = [(word.text, (word.start + word.end) / 2) for word in cue.words]
        if not timed:
            parts, lasts = words(cue.text), cue.end - cue.start
            timed = [(word, cue.start + lasts * (at + 0.5) / len(parts)) for at, word in enumerate(parts)]
        spoken += ((word, time) for text, time in timed for word in words(text) if word not in FUNCTION_WORDS)
    return [word for word, _ in spoken], np.array([time for _, time in spoken], dtype=np.float64)


# -- weighing ------------------------------------------------------------------------------------------------


def _kernel(settings: NarrationSettings, clip_seconds: float) -> tuple[Matrix, int]:
    """Return weights by the time between word and deed, in clips, that sum to 1, and the place of no time."""
    parts = [(1.0, settings.spread, settings.lag)]
    if settings.later:
        parts.append((settings.later, settings.later_spread, settings.later_lag))
    first = math.floor(min(lag - _REACH * spread for _, spread, lag in parts) / clip_seconds)
    last = math.ceil(max(lag + _REACH * spread for _, spread, lag in parts) / clip_seconds)
    first, last = min(first, 0), max(last, 0)
    times = np.arange(first, last + 1) * clip_seconds
    kernel = np.zeros(len(times))
    for weight, spread, lag in parts:
        bell = np.exp(-0.5 * ((times - lag) / spread) ** 2)
        total = bell.sum()
        if total > 0:
            kernel += weight * bell / total
        else:  # far narrower than a clip
            kernel[round(lag / clip_seconds) - first] += weight
    return kernel / kernel.sum(), -first


def _smoothed(amount: Matrix, weight: Matrix, kernel: Matrix, before: int, silence: float) -> Matrix:
    """Return the weighted mean of evidence around each clip, less its mean over the video [K, N].

    ``amount`` [K, N] is evidence times ``weight`` [N]. Where there is little weight, the mean of the video takes its
    place.
    """
    total = weight.sum()
    if total <= _TINY:
        return np.zeros_like(amount)
    mean = amount.sum(axis=1, keepdims=True) / total
    n_clips = amount.shape[1]
    around = slice(before, before + n_clips)
    near = np.convolve(weight, kernel)[around] + silence + _TINY
    rows = np.stack([np.convolve(row, kernel)[around] for row in amount])
    smoothed: Matrix = (rows + (silence + _TINY) * mean) / near - mean
    return smoothed


def _where_in_video(n_steps: int, n_clips: int, settings: NarrationSettings) -> Matrix:
    """Return what the place in the video alone says about each step [K, N], in nats."""
    place = (np.arange(n_clips) + 0.5) / n_clips
    edges = np.exp(-place / settings.edge_share) + 0.5 * np.exp(-(1.0 - place) / settings.edge_share)
    # The first and the last step do not lie at the very ends, where videos greet and say good-bye.
    expected = _MARGIN + (1.0 - 2.0 * _MARGIN) * (np.arange(n_steps) + 0.5) / n_steps
    away = (place - expected[:, np.newaxis]) / settings.order_spread
    return -settings.edges * edges - np.minimum(0.5 * settings.order * away**2, _MOST_AWAY)


# -- vectors that training can start from -------------------------------------------------------------------

_SHORTEST = 1e-9  # length of a vector that has a direction


@dataclass(frozen=True)
class SaidSettings:
    """How a transcript becomes vectors.

    Attributes
    ----------
    spread, lag : float
        Seconds. A cue at time s counts around s + ``lag``, within about ``spread`` (the standard deviation of
        a Gaussian): people say what they are about to do.
    silence : float
        The length of silence beside that of words, which is 1 where somebody speaks all the time. Silence has an axis
        of its own, on which no step lies: where little is said, a clip is unlike every step, and a model can see why.
    """

    spread: float = 2.0
    lag: float = 2.0
    silence: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.spread < math.inf or not 0 < self.silence < math.inf or not math.isfinite(self.lag):
            raise InputError(f"spread and silence must be positive numbers and lag a number, not {self}")


def step_vectors(steps: Sequence[str], embed: TextFunction) -> NDArray[np.float32]:
    """Embed the K steps of a procedure by what sets them apart: [K, D + 1], 0 on the axis of silence."""
    vectors = _apart(embed(steps))
    return np.pad(vectors, ((0, 0), (0, 1))).astype(np.float32)


def said_vectors(
    cues: Sequence[Cue],
    n_clips: int,
    embed: TextFunction,
    *,
    clip_seconds: float = 1.0,
    offset: float = 0.0,
    settings: SaidSettings = SaidSettings(),  # noqa: B008
) -> NDArray[np.float32]:
    """Embed the transcript around each clip.

    Parameters
    ----------
    cues : sequence of Cue
        The transcript; its embeddings are centred over the video, so that its topic does not drown the rest.
    n_clips : int
        Clip j covers ``offset + j * clip_seconds`` to ``offset + (j + 1) * clip_seconds``.
    embed : callable
        From texts to embeddings of D dimensions.
    clip_seconds, offset : float
        Seconds.
    settings : SaidSettings

    Returns
    -------
    float32 array [N, D + 1]
        The mean of the cues around the clip; the last axis is that of silence.
    """
    Grid(clip_seconds, n_clips, offset)  # checks
    said = [cue for cue in cues if cue.text.strip()]
    vectors = _apart(embed([cue.text for cue in said] or ["silence"]))
    weights = cue_weights(said, n_clips, clip_seconds, offset, settings)
    mean = weights @ vectors[: len(said)]
    return np.pad(mean, ((0, 0), (0, 1)), constant_values=settings.silence).astype(np.float32)


def _apart(embedded: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return vectors of length 1 without what all of them share; one alone, or one like all others, stays."""
    unit = _unit(np.asarray(embedded, dtype=np.float64))
    apart = unit - unit.mean(axis=0)
    known = np.linalg.norm(unit, axis=1, keepdims=True) > _SHORTEST
    alike = np.linalg.norm(apart, axis=1, keepdims=True) < 1e-6
    return np.where(known, _unit(np.where(alike, unit, apart)), 0.0)


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    unit: NDArray[np.float64] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _SHORTEST)
    return unit


def cue_weights(
    cues: Sequence[Cue], n_clips: int, clip_seconds: float, offset: float, settings: SaidSettings
) -> NDArray[np.float64]:
    """Return how much of each cue belongs to each clip [N, cues]: shares of time, at most about 1 in sum."""
    reach, error = _REACH * settings.spread, np.vectorize(math.erf, otypes=[np.float64])
    weights = np.zeros((n_clips, len(cues)))
    middles = offset + clip_seconds * (np.arange(n_clips) + 0.5)
    for at, cue in enumerate(cues):
        start, end = cue.start + settings.lag, cue.end + settings.lag
        first, stop = np.searchsorted(middles, [start - reach, end + reach])
        near = middles[first:stop, np.newaxis]
        edges = (near - np.array([end, start])) / settings.spread
        below = 0.5 * (1.0 + error(edges / math.sqrt(2.0)))  # the share of a Gaussian
        weights[first:stop, at] = np.diff(below, axis=1)[:, 0]
    return weights
