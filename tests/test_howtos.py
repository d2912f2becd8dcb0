"""Narrated how-tos: the corpus is what it says, and guessed order costs no steps."""

from __future__ import annotations

import pytest

import howtos
from graph2vid.flow import FlowGraph
from tools.sample import voice

SPLITS = [split for split in howtos.SPLITS if howtos.read_howtos(split)]
CORPUS = [pytest.param(howto, id=howto.name) for split in SPLITS for howto in howtos.read_howtos(split)]
each_howto = pytest.mark.parametrize("howto", CORPUS)
needs_voice = pytest.mark.skipif(not voice.has_voice(), reason="needs the program espeak-ng")


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


@pytest.mark.parametrize("split", SPLITS)
def test_a_split_has_how_tos_of_many_lengths(split: str) -> None:
    lengths = [len(howto.steps) for howto in howtos.read_howtos(split)]
    assert len(lengths) >= 12 and min(lengths) >= 5 and 16 <= max(lengths) <= 18


@pytest.mark.parametrize("split", SPLITS)
def test_some_steps_of_a_split_move_far(split: str) -> None:
    moves = [
        max(abs(number - sorted(howto.shown).index(step)) for number, step in enumerate(howto.shown))
        for howto in howtos.read_howtos(split)
    ]
    assert sum(move >= 4 for move in moves) >= 6
