"""Groundings as tables of pandas, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graph2vid as g2v
from graph2vid.errors import InputError
from graph2vid.grounding import Grounding

pandas = pytest.importorskip("pandas")

FLOW = g2v.FlowGraph.from_edges(["cut tomato", "cut cucumber", "mix", "serve"], [(0, 2), (1, 2)])
COSTS = np.array([[9.0, 0.0, 9.0, 9.0, 9.0], [0.0, 9.0, 9.0, 9.0, 9.0], [9.0, 9.0, 9.0, 0.0, 0.0], [9.0] * 5])


@pytest.fixture
def grounding() -> Grounding:
    return g2v.ground(FLOW, scores=-COSTS, clip_seconds=2.0, drop="constant:1", skip="constant:1", match="raw")


def test_a_row_per_segment_and_one_per_step_that_is_not_shown(grounding: Grounding) -> None:
    frame = grounding.to_frame()
    assert frame[["step", "order"]].fillna(0).to_numpy().tolist() == [[2, 1], [1, 2], [3, 3], [4, 0]]
    assert frame["id"].tolist() == [FLOW.ids[step - 1] for step in frame["step"]]
    assert frame[["start", "end"]].iloc[:3].to_numpy().tolist() == [[0, 2], [2, 4], [6, 10]]
    assert frame["start"].isna().tolist() == [False, False, False, True] and not frame["doubtful"].any()


def test_there_and_back_is_the_same(grounding: Grounding) -> None:
    assert Grounding.from_frame(grounding.to_frame(), grounding) == grounding
    shuffled = grounding.to_frame().sample(frac=1, random_state=1)
    assert Grounding.from_frame(shuffled, grounding) == grounding


def test_a_changed_table_changes_segments_labels_and_order(grounding: Grounding) -> None:
    frame = grounding.to_frame()
    frame.loc[frame["step"] == 4, ["start", "end"]] = 4.0, 6.0
    found = Grounding.from_frame(frame[frame["step"] != 1], grounding)
    assert (found.order, found.not_shown) == ((1, 3, 2), (0,))
    assert found.labels.tolist() == [1, -1, 3, 2, 2] and found.evidence is not None


@pytest.mark.parametrize("named", [[2, 3], ["cut cucumber", "mix"], list(FLOW.ids[1:3])])
def test_annotations_without_a_grounding(named: list[Any]) -> None:
    frame = pandas.DataFrame({"step": named, "start": [0.5, 3.0], "end": [2.0, 4.0]})
    found = Grounding.from_frame(frame, FLOW, clip_seconds=0.5, duration=5.0, video="salad.mp4")
    assert found.labels.tolist() == [-1, 1, 1, 1, -1, -1, 2, 2, -1, -1] and found.not_shown == (0, 3)
    assert found.export("vtt").text.startswith("WEBVTT") and Grounding.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop(columns="end"), "the table of segments has no column 'end'; it has: step, start"),
        (lambda frame: frame.assign(step="fry"), "row 0 of the table: unknown step 'fry'; there are"),
        (lambda frame: frame.assign(step=0), "row 0 of the table: there is no step 0; the steps are numbered from 1"),
        (lambda frame: frame.assign(step=1.5), "there is no step 1.5"),
        (lambda frame: frame.assign(end=0.0), "row 0 of the table: step '.*' ends at 0 s and starts at 1 s"),
        (lambda frame: frame.assign(start=None), "row 0 of the table, start"),
        (lambda frame: frame.assign(start="soon"), "row 0 of the table, start"),
    ],
)
def test_what_cannot_be_read_is_named(change: Callable[[Any], Any], message: str) -> None:
    frame = pandas.DataFrame({"step": [1], "start": [1.0], "end": [2.0]})
    with pytest.raises(InputError, match=message) as caught:
        Grounding.from_frame(change(frame), FLOW)
    assert "\n" not in str(caught.value)
