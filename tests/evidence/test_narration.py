"""How much what is said is like a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.evidence import Cue, narration_similarity, text_embedder


def embed(texts: Sequence[str]) -> NDArray[np.floating[Any]]:
    """Count letters: alike words have alike letters."""
    return np.array([[text.count(letter) for letter in "abc"] for text in texts], dtype=np.float32).reshape(-1, 3)


def test_largest_cosine_of_the_cues_that_touch_a_clip() -> None:
    cues = [Cue(1.0, 2.9, "a"), Cue(2.5, 4.0, "ab"), Cue(9.5, 30.0, "c")]
    similarity = narration_similarity(["a", "b"], cues, 11, embed)
    half = np.sqrt(0.5)
    assert np.allclose(similarity[0], [0, 1, 1, half, half, 0, 0, 0, 0, 0, 0])
    assert np.allclose(similarity[1], [0, 0, half, half, half, 0, 0, 0, 0, 0, 0])


def test_other_words_are_no_worse_than_silence() -> None:
    def opposite(texts: Sequence[str]) -> NDArray[np.floating[Any]]:
        return np.array([[1.0] if text == "a" else [-1.0] for text in texts], dtype=np.float32)

    assert narration_similarity(["a"], [Cue(0, 0.5, "z")], 2, opposite).tolist() == [[0, 0]]


def test_clip_length_and_offset() -> None:
    similarity = narration_similarity(["a"], [Cue(1.0, 6.9, "a")], 3, embed, clip_seconds=2.0, offset=5.0)
    assert similarity.tolist() == [[1, 0, 0]]


def test_silence_is_zero_and_impossible_clips_are_refused() -> None:
    assert narration_similarity(["a"], [], 2, embed).tolist() == [[0, 0]]
    with pytest.raises(InputError):
        narration_similarity(["a"], [], 0, embed)
    with pytest.raises(InputError):
        narration_similarity([], [], 1, embed)


def test_wordllama_knows_what_is_alike() -> None:
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    words = text_embedder("wordllama")
    assert words([]).shape == (0, 256)
    similarity = narration_similarity(["cut the tomato", "boil water"], [Cue(0, 0.5, "slicing tomatoes")], 1, words)
    assert similarity[0, 0] > 0.3 > similarity[1, 0]


def test_unknown_embedders_are_refused() -> None:
    with pytest.raises(InputError, match=r"unknown embedder 'none'; known: .*wordllama"):
        text_embedder("none")
