"""Transcripts around clips as vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from graph2vid.errors import InputError
from graph2vid.evidence.arrays import cosine_similarity
from graph2vid.evidence.captions import Cue
from graph2vid.evidence.narration import SaidSettings, said_vectors, step_vectors

WORDS = ("bread", "egg", "pan")


def embed(texts: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Count words; one axis is in every text."""
    return np.array([[1.0, *(float(word in text) for word in WORDS)] if text != "?" else [0.0] * 4 for text in texts])


def test_words_count_after_they_are_said_and_fade() -> None:
    cues = [Cue(10.0, 12.0, "bread"), Cue(30.0, 32.0, "egg")]
    clips = said_vectors(cues, 40, embed, settings=SaidSettings(spread=1.0, lag=3.0, silence=0.5))
    assert clips.shape == (40, 5) and clips.dtype == np.float32
    likeness = cosine_similarity(step_vectors(["bread", "egg"], embed), clips)
    assert likeness[0].argmax() in (13, 14) and likeness[1].argmax() in (33, 34)
    assert likeness[0, 13] > 0.7 and abs(likeness[0, 22]) < 1e-3
    assert np.all(clips[:, -1] == 0.5)


def test_a_cue_counts_by_its_length() -> None:
    long, short = ([Cue(10.0, 10.0 + seconds, "bread"), Cue(30.0, 32.0, "egg")] for seconds in (8.0, 0.5))
    lengths = [np.linalg.norm(said_vectors(cues, 40, embed)[:, :-1], axis=1) for cues in (long, short)]
    assert lengths[0][15] > 3 * lengths[1].max(initial=0.0, where=np.arange(40) < 25)


def test_clips_of_other_lengths_have_the_same_words() -> None:
    cues = [Cue(10.0, 16.0, "bread"), Cue(30.0, 36.0, "egg")]
    fine = said_vectors(cues, 80, embed, clip_seconds=0.5)
    coarse = said_vectors(cues, 40, embed, clip_seconds=1.0)
    later = said_vectors(cues, 30, embed, clip_seconds=1.0, offset=10.0)
    assert np.allclose(coarse, (fine[::2] + fine[1::2]) / 2, atol=0.02)
    assert np.allclose(coarse[10:], later)


def test_silence_is_unlike_every_step() -> None:
    nothing = said_vectors([Cue(0.0, 1.0, "  ")], 4, embed)
    assert np.all(nothing[:, :-1] == 0) and np.all(nothing[:, -1] > 0)
    assert np.all(cosine_similarity(step_vectors(WORDS, embed), nothing) == 0)


def test_a_step_alone_or_unknown_stays_what_it_is() -> None:
    assert np.allclose(np.linalg.norm(step_vectors(["egg"], embed), axis=1), 1.0)
    assert np.all(step_vectors(["egg", "?", "pan"], embed)[1] == 0)


@pytest.mark.parametrize("settings", [{"spread": 0.0}, {"silence": -1.0}, {"lag": np.nan}])
def test_impossible_settings_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InputError, match="must be positive"):
        SaidSettings(**settings)


def test_impossible_clips_are_refused() -> None:
    with pytest.raises(InputError, match="impossible clips"):
        said_vectors([], 0, embed)
