"""The colours of steps: the same everywhere, and told apart by all eyes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from graph2vid.flow.colours import PALETTE, colour_of, hatch_of, ink_on

# Machado, Oliveira and Fernandes (2009), severity 1: linear RGB as seen by others.
SIGHTS = {
    "full": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def lab(colour: str, sight: str) -> NDArray[np.float64]:
    """Return a colour in CIE L*a*b*."""
    part = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    t = to_xyz @ np.clip(SIGHTS[sight] @ linear, 0, 1) / to_xyz.sum(axis=1)
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", SIGHTS)
def test_colours_are_told_apart_by_all_eyes(sight: str) -> None:
    seen = [lab(colour, sight) for colour in PALETTE]
    apart = min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2))
    assert apart >= 16  # as the first seven alone: 16.1, for tritanopia
    for ground in ("#ffffff", "#15181c"):
        assert min(float(np.linalg.norm(a - lab(ground, sight))) for a in seen) >= 20


def test_a_step_has_its_colour_by_its_index() -> None:
    assert len(set(PALETTE)) == 14 and [colour_of(step) for step in range(28)] == [*PALETTE, *PALETTE]
    assert hatch_of(13) == "" and len({hatch_of(step) for step in range(0, 70, 14)}) == 5


def test_ink_can_be_read() -> None:
    assert ink_on("#ffffff") == ink_on("#F0E442") == "#000000" and ink_on("#0072B2") == ink_on("#000000") == "#ffffff"
