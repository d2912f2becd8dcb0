"""True labels from annotations."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph2vid.errors import InputError
from graph2vid.evaluate import labels_from_annotations


def test_most_of_the_clip_decides() -> None:
    # clips of 1 s: step 0 covers 0.6 of clip 1, all of 2, 0.4 of 3; step 1 0.5 of clip 3
    found = labels_from_annotations([(0, 1.4, 3.4), (1, 3.5, 4.0)], 5)
    assert found.tolist() == [-1, 0, 0, 1, -1]


def test_a_step_wins_over_background_when_equal_and_loses_below() -> None:
    assert labels_from_annotations([(0, 0.5, 1.4)], 2).tolist() == [0, -1]
    assert labels_from_annotations([(0, 0.7, 1.4)], 2).tolist() == [-1, -1]
    assert labels_from_annotations([(0, 0.1, 0.4), (1, 0.6, 0.9)], 1).tolist() == [-1]


def test_of_overlapping_annotations_the_later_start_wins() -> None:
    rows = [(1, 2.0, 4.0), (0, 0.0, 6.0)]
    assert labels_from_annotations(rows, 6).tolist() == [0, 0, 1, 1, 0, 0]
    assert labels_from_annotations(rows, 6, overlapping="row").tolist() == [0] * 6
    # the same start: the later row
    assert labels_from_annotations([(1, 0.0, 1.0), (0, 0.0, 1.0)], 1).tolist() == [0]
    # shares of one clip are counted after the overlap is resolved: step 0 keeps 0.3, step 1 has 0.6
    assert labels_from_annotations([(0, 0.0, 1.0), (1, 0.3, 0.9)], 1).tolist() == [1]


def test_pieces_of_one_step_add_up() -> None:
    assert labels_from_annotations([(0, 0.0, 0.3), (0, 0.7, 1.0), (1, 0.3, 0.7)], 1).tolist() == [0]
    assert labels_from_annotations([(0, 0.0, 0.5), (1, 0.5, 1.0)], 1).tolist() == [1]  # equal: the later


def test_clip_length_and_offset() -> None:
    assert labels_from_annotations([(2, 13.0, 17.0)], 4, clip_seconds=2.0, offset=10.0).tolist() == [
        -1,
        2,
        2,
        2,
    ]
    assert labels_from_annotations([(2, 13.1, 17.0)], 4, clip_seconds=2.0, offset=10.0).tolist() == [
        -1,
        -1,
        2,
        2,
    ]
    assert (
        labels_from_annotations([(0, 0.1 * 3, 0.1 * 6)], 8, clip_seconds=0.1).tolist() == [-1] * 3 + [0] * 3 + [-1] * 2
    )


def test_touch_takes_every_clip_from_start_to_end() -> None:
    assert labels_from_annotations([(0, 1.9, 3.0)], 5, rule="touch").tolist() == [-1, 0, 0, 0, -1]
    rows = [(0, 2.0, 3.5), (1, 0.0, 2.5)]
    assert labels_from_annotations(rows, 4, rule="touch", overlapping="row").tolist() == [1, 1, 1, 0]
    assert labels_from_annotations(rows, 4, rule="touch").tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("rule", ["cover", "touch"])
def test_what_lies_outside_is_ignored(rule: str) -> None:
    assert labels_from_annotations([(0, -9.0, -1.0), (1, 8.0, 9.0)], 3, rule=rule).tolist() == [-1] * 3
    assert labels_from_annotations([(0, -1.0, 1.5), (1, 2.0, 99.0)], 3, rule=rule).tolist()[2] == 1
    assert labels_from_annotations([], 3, rule=rule).tolist() == [-1] * 3
    assert labels_from_annotations([(0, 0.0, 1.0)], 0, rule=rule).tolist() == []


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-10, 90), st.integers(0, 40)), max_size=6))
def test_cover_counts_like_a_fine_raster(rows: list[tuple[int, int, int]]) -> None:
    """Whole tenths of seconds, clips of 1 s: counting tenths gives the shares."""
    annotations = [(step, start / 10, (start + length) / 10) for step, start, length in rows]
    fine = [-1] * 80
    rank = [-1] * 80
    for place, (step, start, length) in enumerate(sorted(rows, key=lambda row: row[1])):
        for at in range(max(start, 0), min(start + length, 80)):
            fine[at], rank[at] = step, place
    for clip, label in enumerate(labels_from_annotations(annotations, 8).tolist()):
        inside = fine[10 * clip : 10 * clip + 10]
        most = max(inside.count(other) for other in inside)
        assert inside.count(label) == most
        if any(inside.count(other) == most for other in inside if other >= 0):
            assert label >= 0


def test_bad_annotations_are_named() -> None:
    with pytest.raises(InputError, match=r"annotation of step 1 from 3.0 s to 2.0 s"):
        labels_from_annotations([(1, 3.0, 2.0)], 4)
    with pytest.raises(InputError, match="annotation of step 0 from nan s"):
        labels_from_annotations([(0, math.nan, 2.0)], 4)
    with pytest.raises(InputError, match="the rule is one of"):
        labels_from_annotations([], 4, rule="half")
    with pytest.raises(InputError, match=r"impossible clips: 4 of 0 s from 0.0 s"):
        labels_from_annotations([], 4, clip_seconds=0)
