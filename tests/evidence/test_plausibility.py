"""Whether a video shows a procedure at all."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.narration_experiment import fit_plausibility
from graph2vid.errors import InputError
from graph2vid.evidence import Cue, likeness, plausibilities, plausibility, text_embedder

TOAST = ("Make French toast", ("whisk the eggs and milk", "dip the bread", "fry the bread in butter"))
SHELF = ("Build a shelf", ("saw the board", "sand the edges", "screw the bracket to the wall"))
SAID = [
    Cue(0, 4, "hello and welcome, today we make french toast"),
    Cue(4, 8, "whisk two eggs with some milk"),
    Cue(8, 12, "dip your bread into it"),
    Cue(12, 16, "and fry it in a lot of butter"),
]


@pytest.fixture
def embed():  # type: ignore[no-untyped-def]
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    return text_embedder("wordllama")


def test_the_own_procedure_is_plausible_and_another_is_not(embed) -> None:  # type: ignore[no-untyped-def]
    own, other = plausibilities([TOAST, SHELF], SAID, embed)
    assert own.probability > 0.8 and not own.is_unlikely
    assert other.probability < 0.2 and other.is_unlikely
    assert own.score > other.score
    assert plausibility(TOAST[1], SAID, embed, title=TOAST[0]) == own
    assert plausibility(TOAST[1], SAID, embed).probability > 0.5  # without its title


def test_silence_and_noise_are_unlikely(embed) -> None:  # type: ignore[no-untyped-def]
    noise = [Cue(float(at), at + 1.0, "la la la") for at in range(20)]
    for cues in ([], [Cue(0, 1, " ")], noise):
        assert plausibility(TOAST[1], cues, embed, title=TOAST[0]).is_unlikely


def test_likeness_of_texts(embed) -> None:  # type: ignore[no-untyped-def]
    own, other = (likeness(steps, SAID, embed) for _, steps in (TOAST, SHELF))
    assert all(own[name] > other[name] for name in ("mean", "closest", "said"))
    assert own["said"] == pytest.approx(6 / 6) and other["said"] == 0.0
    assert set(likeness(TOAST[1], [], embed).values()) == {0.0}


def test_a_procedure_without_steps_is_refused(embed) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError):
        plausibility([], SAID, embed)


def test_calibration_finds_the_curve() -> None:
    rng = np.random.default_rng(1)
    score = rng.normal(0.4, 0.1, 20_000)
    own = rng.random(20_000) < 1 / (1 + np.exp(-25 * (score - 0.4)))
    slope, middle = fit_plausibility(score, own)
    assert slope == pytest.approx(25, rel=0.1) and middle == pytest.approx(0.4, abs=0.01)
    apart = fit_plausibility([0.0, 0.1, 0.8, 0.9], [False, False, True, True])
    assert apart[0] > 5 and 0.1 < apart[1] < 0.8
    for own in ([True, True], [False, False]):
        with pytest.raises(InputError):
            fit_plausibility([0.1, 0.2], own)
