"""Captions, and how much what is said is like a step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graph2vid.errors import FormatError, InputError
from graph2vid.evidence import Cue, narration_similarity, read_captions, text_embedder
from graph2vid.evidence.captions import parse_captions

VTT = """WEBVTT Kind: captions

NOTE made by hand

intro
01:02.500 --> 00:01:04.000 align:start position:0%
<v Ann>cut the <i>tomato</i>
&amp; onion

1:00:00.000 --> 1:00:01.000

00:00:07.000 --> 00:00:08.250
stir
"""


def embed(texts: Sequence[str]) -> NDArray[np.floating[Any]]:
    """Count letters: alike words have alike letters."""
    return np.array([[text.count(letter) for letter in "abc"] for text in texts], dtype=np.float32).reshape(-1, 3)


def test_webvtt() -> None:
    assert parse_captions(VTT) == (Cue(62.5, 64.0, "cut the tomato & onion"), Cue(7.0, 8.25, "stir"))


def test_subrip(tmp_path: Path) -> None:
    path = tmp_path / "a.srt"
    path.write_bytes(
        "\ufeff1\r\n00:00:01,000 --> 00:00:02,500\r\ncut\r\n\r\n2\r\n00:00:03,000 --> 00:00:04,000\r\nmix\r\n".encode()
    )
    assert read_captions(path) == (Cue(1.0, 2.5, "cut"), Cue(3.0, 4.0, "mix"))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.vtt", "1\n00:01.000 --> 00:02.000\nx\n", "a.vtt, line 1: a WebVTT file begins with WEBVTT"),
        ("a.vtt", "WEBVTT\n\n00:01 --> 00:02\nx\n", "a.vtt, line 3: not a cue's times"),
        (
            "a.srt",
            "1\n00:00:03,000 --> 00:00:02,000\nx\n",
            r"line 2: the cue ends \(2.0 s\) before it starts \(3.0 s\)",
        ),
        ("a.txt", "x", "captions are read from .vtt and .srt files"),
    ],
)
def test_bad_captions(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError, match=message):
        read_captions(tmp_path / name)


def test_largest_cosine_of_the_cues_that_touch_a_clip() -> None:
    cues = [Cue(1.0, 2.9, "a"), Cue(2.5, 4.0, "ab"), Cue(9.5, 30.0, "c")]
    similarity = narration_similarity(["a", "b"], cues, 11, embed)
    half = np.sqrt(0.5)
    assert np.allclose(similarity[0], [0, 1, 1, half, half, 0, 0, 0, 0, 0, 0])
    assert np.allclose(similarity[1], [0, 0, half, half, half, 0, 0, 0, 0, 0, 0])


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
    with pytest.raises(InputError, match="unknown text embedder 'none'; known: wordllama"):
        text_embedder("none")
