"""Groundings from transcripts: steps found, steps not shown, and narration that is of no use."""

from __future__ import annotations

import math

import pytest

from graph2vid.errors import InputError
from graph2vid.evidence import Cue, Transcript
from graph2vid.flow import FlowGraph
from graph2vid.grounding import ground
from graph2vid.tsort import TSortGraph

pytest.importorskip("wordllama", reason="needs graph2vid[text]")

FLOW = FlowGraph.from_edges(["Cut the tomatoes.", "Boil the eggs.", "Mix the salad."], [(0, 2), (1, 2)])
CUES = (
    Cue(1.0, 3.5, "hello and welcome to my channel"),
    Cue(6.0, 9.0, "first I boil two eggs for eight minutes"),
    Cue(12.0, 16.5, "then I cut the tomatoes into small pieces"),
    Cue(20.0, 23.0, "and now we mix the salad"),
    Cue(26.0, 28.0, "see you next week"),
)


def starts(cues: tuple[Cue, ...], duration: float = 30.0, **options: float) -> dict[int, float]:
    found = ground(FLOW, Transcript(cues, duration), **options)
    return {segment.step: segment.start for segment in found.segments}


def test_steps_are_where_they_are_said() -> None:
    found = ground(TSortGraph.compile(FLOW), Transcript(CUES, 30.0, "captions x.vtt"))
    assert found.order == (1, 0, 2) and found.not_shown == ()
    assert [segment.start for segment in found.segments] == pytest.approx([6.0, 12.0, 20.0], abs=1.0)
    assert all(segment.confidence is not None for segment in found.segments)
    about = found.options["narration"]
    assert about.pop("plausibility") > 0.9 and all(0 < value <= 1 for value in about.pop("likeness").values())
    assert found.options["calibration"]["evidence"] == "narration" and len(found.absent) == 3
    assert found.probability is not None and found.probability.sum(axis=0) == pytest.approx([1.0] * 30)
    assert about == {"embedder": "wordllama", "weight": 1.0, "cues": 5, "duration": 30.0, "source": "captions x.vtt"}
    assert found.end == 30.0


def test_clips_of_another_length() -> None:
    found = starts(CUES, duration=29.5, clip_seconds=0.5)
    assert found == pytest.approx({1: 6.0, 0: 12.0, 2: 20.0}, abs=0.5)


def test_a_step_that_nobody_mentions_is_not_shown() -> None:
    silent = tuple(cue for cue in CUES if "egg" not in cue.text)
    found = ground(FLOW, Transcript(silent, 30.0))
    assert found.not_shown == (1,) and found.order == (0, 2)


def test_cues_beyond_the_end_are_left_out() -> None:
    assert starts((*CUES, Cue(100.0, 110.0, "boil the eggs, boil the eggs")), 30.0) == starts(CUES)
    assert starts((*CUES[:-1], Cue(26.0, 500.0, "see you next week"))) == starts(CUES)


@pytest.mark.parametrize(
    ("cues", "duration", "message"),
    [
        ((), 30.0, "nothing is said in the video"),
        (CUES, 0.5, "none of the 5 cues lies within the video, which lasts .*of another video"),
        (CUES, 0.0, "duration must be a positive number"),
        (CUES, math.nan, "duration must be a positive number"),
    ],
)
def test_narration_of_no_use(cues: tuple[Cue, ...], duration: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ground(FLOW, Transcript(cues, duration))


def test_what_is_no_procedure_is_refused() -> None:
    with pytest.raises(InputError, match="a path, a text, a FlowGraph or a TSortGraph, not int"):
        ground(3, Transcript(CUES, 30.0))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="clip_seconds must be a number above 0"):
        ground(FLOW, Transcript(CUES, 30.0), clip_seconds=0.0)
