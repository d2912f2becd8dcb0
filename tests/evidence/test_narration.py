"""How much a transcript is like a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.evidence import Cue, NarrationSettings, narration_evidence, narration_similarity, text_embedder
from graph2vid.evidence.captions import Word
from graph2vid.evidence.embed import Grid
from graph2vid.evidence.language import content_words, words
from graph2vid.evidence.narration import NarrationEvidence, compare_narration, weigh


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


def test_evidence_does_not_depend_on_the_number_of_threads() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    random = np.random.default_rng(0)

    def embed(texts: Sequence[str]) -> NDArray[np.floating[Any]]:
        return np.array([vectors[int(text)] for text in texts])

    vectors = random.standard_normal((1010, 256), dtype=np.float32)
    steps, cues = list(map(str, range(9))), [Cue(0.3 * at, 0.3 * at + 1.5, str(at)) for at in range(9, 1010)]
    compared = []
    for threads in (1, 3):
        with threadpoolctl.threadpool_limits(threads):
            compared.append(compare_narration(steps, cues, embed, Grid(1.0, 300)).cue)
    np.testing.assert_array_equal(*compared)


def test_wordllama_knows_what_is_alike() -> None:
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    words = text_embedder("wordllama")
    assert words([]).shape == (0, 256)
    similarity = narration_similarity(["cut the tomato", "boil water"], [Cue(0, 0.5, "slicing tomatoes")], 1, words)
    assert similarity[0, 0] > 0.3 > similarity[1, 0]


def test_unknown_embedders_are_refused() -> None:
    with pytest.raises(InputError, match=r"unknown embedder 'none'; known: .*wordllama"):
        text_embedder("none")


# -- weighed evidence ----------------------------------------------------------------------------------------

WORDS = ["chop", "onion", "boil", "water", "serve", "cat"]


def count_words(texts: Sequence[str]) -> NDArray[np.floating[Any]]:
    """Embed a text by the words it holds: other words are unlike."""
    return np.array([[word in text.split() for word in WORDS] for text in texts], dtype=np.float32).reshape(-1, 6)


STEPS = ["chop onion", "boil water", "serve"]
CUES = [
    Cue(20, 24, "I chop the onion"),
    Cue(40, 44, "my cat"),
    Cue(60, 64, "we boil some water"),
    Cue(80, 84, "and serve"),
]


def weighed(settings: NarrationSettings | None = None, **clips: Any) -> NarrationEvidence:
    return narration_evidence(STEPS, CUES, clips.pop("n_clips", 100), count_words, settings=settings, **clips)


def test_words_speak_for_the_step_shortly_after() -> None:
    found = weighed(NarrationSettings(order=0.0))
    assert found.log_odds.shape == (3, 100) and found.skip.shape == found.strength.shape == (3,)
    for step, middle in enumerate((22, 62, 82)):
        peak = int(found.log_odds[step].argmax())
        assert middle - 1 <= peak <= middle + 3  # the lag is 1 s
        assert found.log_odds[step, peak] > max(0.0, found.log_odds[step, 42] + 1.0)  # a cat is no step
    assert (found.skip > 0).all()


def test_the_lag_moves_the_evidence_by_as_many_seconds() -> None:
    at_once, later = (
        weighed(NarrationSettings(lag=lag, later=0.0, order=0.0, edges=0.0)).log_odds for lag in (0.0, 5.0)
    )
    assert int(later[1].argmax()) - int(at_once[1].argmax()) == 5
    ahead = weighed(NarrationSettings(lag=-5.0, later=0.0, order=0.0, edges=0.0)).log_odds
    assert int(at_once[1].argmax()) - int(ahead[1].argmax()) == 5


def test_clips_of_other_lengths_tell_the_same() -> None:
    fine, coarse = weighed(), weighed(n_clips=50, clip_seconds=2.0)
    assert np.abs(fine.log_odds.argmax(axis=1) / 2 - coarse.log_odds.argmax(axis=1)).max() <= 1
    shifted = weighed(n_clips=90, offset=10.0)
    assert (np.abs(fine.log_odds.argmax(axis=1) - 10 - shifted.log_odds.argmax(axis=1)) <= 1).all()


def test_a_step_that_nobody_speaks_of_may_be_left_out() -> None:
    found = narration_evidence([*STEPS, "xylophone"], CUES, 100, count_words)
    assert found.skip[3] < 0 < found.skip[:3].min()
    assert found.strength[3] < found.strength[:3].min()


def test_silence_is_uncertain_and_other_words_are_not() -> None:
    cues = [Cue(10, 20, "boil water"), Cue(30, 40, "cat"), Cue(70, 80, "chop onion")]
    found = narration_evidence(STEPS[:2], cues, 100, count_words, settings=NarrationSettings(order=0.0, edges=0.0))
    of_water = found.log_odds[1]
    assert of_water[15] > of_water[55] > of_water[75]  # said, silence, something else


def test_times_of_words_are_used_where_they_are_known() -> None:
    spread = Cue(0, 40, "chop cat cat cat")
    timed = Cue(0, 40, spread.text, (Word(35, 36, "chop"), Word(36, 40, "cat")))
    peaks = [
        int(compare_narration(["chop", "boil"], [cue], count_words, Grid(1.0, 40)).word[0].argmax())
        for cue in (spread, timed)
    ]
    assert peaks == [2, 32]  # three seconds before it is said


def test_steps_tend_to_be_shown_where_they_are_written_and_not_at_the_edges() -> None:
    nothing = compare_narration(STEPS, [Cue(0, 100, "cat")], count_words, Grid(1.0, 100))
    flat = weigh(nothing, NarrationSettings(order=0.0, edges=0.0)).log_odds
    assert np.ptp(flat) < 1e-9
    placed = weigh(nothing, NarrationSettings(edges=0.0)).log_odds
    assert (np.diff(placed.argmax(axis=1)) > 20).all()
    edged = weigh(nothing, NarrationSettings(order=0.0)).log_odds
    assert edged[0, 0] < edged[0, 99] < edged[0, 50]


def test_no_words_at_all_are_no_evidence() -> None:
    for cues in ([], [Cue(3, 3, "chop")], [Cue(0, 5, "  ")], [Cue(500, 600, "chop")]):
        found = narration_evidence(STEPS, cues, 40, count_words)
        assert np.isfinite(found.log_odds).all() and np.isfinite(found.skip).all()
    assert (narration_evidence(STEPS, [], 40, count_words).skip < 0).all()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-10, 130), st.floats(0, 40), st.sampled_from([*STEPS, "cat", "42", "…"])), max_size=8),
    st.integers(1, 60),
    st.sampled_from([0.4, 1.0, 5.0]),
)
def test_evidence_is_finite_whatever_is_said(
    said: list[tuple[float, float, str]], n_clips: int, seconds: float
) -> None:
    cues = [Cue(start, start + length, text) for start, length, text in said]
    for steps in (STEPS, ["chop"], ["…", "42"], ["chop", "chop"]):
        found = narration_evidence(steps, cues, n_clips, count_words, clip_seconds=seconds)
        assert found.log_odds.shape == (len(steps), n_clips)
        assert np.isfinite(found.log_odds).all() and np.isfinite(found.skip).all()


def test_impossible_settings_are_refused() -> None:
    for wrong in ({"spread": 0.0}, {"order": -1.0}, {"lag": float("nan")}, {"gain": float("inf")}):
        with pytest.raises(InputError, match=rf"narration: {next(iter(wrong))} must be"):
            NarrationSettings(**wrong)
    with pytest.raises(InputError):
        narration_evidence([], [], 3, count_words)
    with pytest.raises(InputError):
        narration_evidence(["a"], [], 3, count_words, clip_seconds=0.0)


def test_words_and_content_words() -> None:
    assert words("Let’s chop 2 onions, ÉTÉ!") == ["let's", "chop", "onions", "été"]
    assert content_words("chop it in the bowl") == ["chop", "bowl"]
    assert content_words("do it") == ["do", "it"]
    assert content_words("42 …") == []
