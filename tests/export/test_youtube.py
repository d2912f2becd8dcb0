"""YouTube's rules for chapters on awkward inputs: they are met, and what was done is said, or an error says why."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings

from found import groundings, make_grounding
from graph2vid.errors import InputError
from graph2vid.export import export
from graph2vid.grounding import Grounding

LINE = re.compile(r"(?:(\d+):)?(\d{1,2}):(\d{2}) (\S.*)")


def chapters(text: str) -> list[tuple[int, str]]:
    found = []
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        assert match is not None, line
        hours, minutes, seconds, title = match.groups(default="0")
        found.append((3600 * int(hours) + 60 * int(minutes) + int(seconds), title))
    return found


def check_rules(text: str, end: float) -> None:
    found = chapters(text)
    starts = [start for start, _ in found]
    assert starts[0] == 0 and len(starts) >= 3
    assert all(later - earlier >= 10 for earlier, later in zip(starts, [*starts[1:], int(end)], strict=True))
    assert "<" not in text and ">" not in text


@given(groundings())
@settings(max_examples=300, deadline=None)
def test_the_rules_hold_or_an_error_says_why(grounding: Grounding) -> None:
    try:
        exported = export(grounding, "youtube")
    except InputError:
        return
    check_rules(exported.text, grounding.end)


def test_a_step_at_zero_and_no_gaps_are_left_alone() -> None:
    exported = export(make_grounding([0] * 10 + [1] * 10 + [2] * 10), "youtube")
    assert chapters(exported.text) == [(0, "wash"), (10, "cut"), (20, "mix")] and exported.notes == ()


def test_an_intro_is_added_and_said() -> None:
    exported = export(make_grounding([-1] * 12 + [0] * 20 + [1] * 20), "youtube")
    assert chapters(exported.text) == [(0, "Intro"), (12, "wash"), (32, "cut")]
    assert exported.notes == ('an "Intro" is added from 0:00 to 0:12: YouTube wants the first chapter at 0:00',)


def test_a_beginning_too_short_for_an_intro_moves_the_first_chapter() -> None:
    exported = export(make_grounding([-1] * 4 + [0] * 20 + [1] * 20 + [2] * 20), "youtube")
    assert chapters(exported.text)[0] == (0, "wash") and "not at 0:04" in exported.notes[0]


def test_steps_of_three_seconds_are_merged_and_said() -> None:
    steps = [f"step {number}" for number in range(1, 14)]
    exported = export(make_grounding([step for step in range(13) for _ in range(3)], steps), "youtube")
    check_rules(exported.text, 39)
    assert chapters(exported.text) == [
        (0, "step 1 / step 2 / step 3 / step 4"),
        (12, "step 5 / step 6 / step 7 / step 8"),
        (24, "step 9 / step 10 / step 11 / step 12 / step 13"),
    ]
    assert exported.notes[0] == "4 steps are one chapter at 0:00: YouTube wants 10 s each" and len(exported.notes) == 3


def test_one_step_is_framed_by_an_intro_and_an_outro() -> None:
    exported = export(make_grounding([-1] * 15 + [0] * 10 + [-1] * 15, ["mix"]), "youtube")
    assert chapters(exported.text) == [(0, "Intro"), (15, "mix"), (25, "Outro")]
    assert any("Outro" in note for note in exported.notes)


@pytest.mark.parametrize(
    "labels", [[0] * 60, [0] * 10 + [1] * 10, [0, 1, 2, 3] * 5, [0] * 29, [-1] * 5 + [0] * 30], ids=repr
)
def test_too_little_for_three_chapters_is_an_error_that_says_so(labels: list[int]) -> None:
    with pytest.raises(InputError, match=r"at least 3 chapters of 10 s or more; .* s give [12]: use another format"):
        export(make_grounding(labels), "youtube")


def test_no_step_at_all_is_an_error() -> None:
    with pytest.raises(InputError, match="at least one step that is shown"):
        export(make_grounding([-1] * 100), "youtube")


def test_more_than_an_hour_and_repeats() -> None:
    labels = [0] * 100 + [1] * 100 + [0] * 100
    exported = export(make_grounding(labels, clip_seconds=20.0), "youtube")
    assert exported.text == "0:00 wash\n33:20 cut\n1:06:40 wash\n"


def test_long_and_bracketed_titles() -> None:
    exported = export(make_grounding([0] * 10 + [1] * 10 + [2] * 10, ["x" * 300, "a <b>", "c"]), "youtube")
    check_rules(exported.text, 30)
    (_, first), (_, second), _ = chapters(exported.text)
    assert len(first) == 100 and first.endswith("…") and second == "a ‹b›" and "angle brackets" in exported.notes[0]
    many = make_grounding([step for step in range(90) for _ in range(12)], ["y" * 80] * 90)
    assert "up to 5000" in export(many, "youtube").notes[-1]


def test_long_titles_end_with_a_whole_word() -> None:
    long = "cut " + "the very long cucumber " * 6
    lines = export(
        make_grounding([0] * 10 + [1] * 10 + [2] * 10, [long, "x" * 120, "mix"]), "youtube"
    ).text.splitlines()
    assert lines[0].endswith("long cucumber …") and len(lines[0]) <= len("0:00 ") + 100
    assert lines[1] == f"0:10 {'x' * 98} …"
