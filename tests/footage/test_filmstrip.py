"""A video at a glance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("av")

from films import long_film
from graph2vid.errors import InputError
from graph2vid.footage import filmstrip, loudness
from graph2vid.sample import NarratedFiles


def test_pictures_stand_side_by_side_in_order(tmp_path: Path) -> None:
    path = long_film(tmp_path / "film.mp4", 20)
    told: list[tuple[float, float]] = []
    strip = filmstrip(path, 20.0, 10, height=30, progress=lambda done, total: told.append((done, total)))
    assert strip.shape[0] == 30 and strip.shape[1] % 10 == 0 and strip.dtype == np.uint8
    assert told[-1] == (10, 10)
    bright = strip.reshape(30, 10, -1, 3).mean(axis=(0, 2, 3))  # its left part grows
    assert (np.diff(bright) > 0).all()


def test_a_long_video_is_shown_at_its_key_frames(tmp_path: Path) -> None:
    path = long_film(tmp_path / "film.mp4", 400)
    assert filmstrip(path, 400.0, 8, height=20).shape[0] == 20


def test_speech_is_louder_than_silence() -> None:
    peaks = loudness(NarratedFiles().video, 103.0, 200)
    assert peaks.shape == (200,) and peaks.max() > 40 and peaks.min() < 10


def test_captions_have_no_pictures() -> None:
    with pytest.raises(InputError):
        filmstrip(NarratedFiles().captions, 10.0, 3)
