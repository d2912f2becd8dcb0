"""Shot boundaries, and what is made of them in the experiment about borders of steps."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.shot_borders import pooled, shot_boundaries, snapped


def test_shots_begin_where_the_picture_is_another() -> None:
    rng = np.random.default_rng(0)
    shots = [rng.integers(low, low + 60, (90, 160, 3)).astype(np.uint8) for low in (0, 120, 190)]
    pictures = [(at / 4, np.roll(shots[at // 20], at, axis=1)) for at in range(60)]
    assert shot_boundaries(iter(pictures)) == [5.0, 10.0]


def test_evidence_is_drawn_towards_the_mean_of_its_shot() -> None:
    odds = np.array([[0.0, 2.0, 4.0, 4.0, 8.0]])
    assert pooled(odds, np.array([0, 2]))[0] == pytest.approx([0.5, 1.5, 14 / 3, 14 / 3, 20 / 3])


def test_borders_go_to_cuts_nearby() -> None:
    labels = np.repeat([-1, 0, 1], [5, 5, 5])
    assert snapped(labels, np.array([0, 3, 14])).tolist() == np.repeat([-1, 0, 1], [3, 7, 5]).tolist()
