"""The metrics, by hand and by their laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.evaluate import (
    acc,
    acc_paper,
    crosstask_recall,
    edit,
    evaluate_video,
    f1,
    f1_counts,
    f1_of_counts,
    iou,
    iou_strict,
    mof,
    segments,
    shared_classes,
    step_times,
)

METRICS = ["acc", "iou", "iou_strict", "acc_paper", "mof", "edit", "f1@10", "f1@25", "f1@50", "recall"]

#         0   1   2   3   4   5   6   7   8   9
TRUE = [-1, 0, 0, 0, -1, 1, 1, -1, 2, 2]
GUESS = [0, 0, 0, -1, -1, 1, 2, 3, -1, 2]
# right step clips: 1, 2, 5, 9 = 4 of 7; background right: 4


def test_by_hand() -> None:
    assert acc(GUESS, TRUE) == pytest.approx(4 / 7)
    assert acc_paper(GUESS, TRUE) == pytest.approx(4 / 10)
    assert mof(GUESS, TRUE) == pytest.approx(5 / 10)
    # step 0: 2 of 4; step 1: 1 of 2; step 2: 1 of 3; step 3 is not there
    assert iou(GUESS, TRUE) == pytest.approx(4 / 9)
    assert iou_strict(GUESS, TRUE) == pytest.approx(4 / 10)
    # runs 0 1 2 3 2 against 0 1 2: two insertions
    assert edit(GUESS, TRUE) == pytest.approx(1 - 2 / 5)
    # run by run: 0: 2/4; 1: 1/2; 2 (clip 6): 0; 3: 0; 2 (clip 9): 1/2
    assert f1_counts(GUESS, TRUE, 0.5) == (3, 2, 0)
    assert f1(GUESS, TRUE, 0.5) == pytest.approx(6 / 8)
    assert f1(GUESS, TRUE, 0.51) == 0.0


def test_runs_and_times() -> None:
    assert segments(TRUE) == ((0, 1, 4), (1, 5, 7), (2, 8, 10))
    assert segments([]) == segments([-1, -1]) == ()
    assert segments([2, 2, -1, 2]) == ((2, 0, 2), (2, 3, 4))
    assert step_times([1, -1, 1, 1, 0, 1, 1]) == {1: 3.0, 0: 4.5}


def test_recall_takes_one_time_per_step() -> None:
    annotations = [(0, 10.0, 20.0), (0, 50.0, 60.0), (1, 0.0, 5.0), (2, 5.0, 6.0)]
    assert crosstask_recall({0: 55.0, 1: 6.0, 3: 1.0}, annotations) == pytest.approx(1 / 3)
    assert crosstask_recall({}, annotations) == 0.0
    assert math.isnan(crosstask_recall({0: 1.0}, []))


def test_nothing_predicted() -> None:
    found = evaluate_video([-1] * 10, TRUE)
    assert found.pop("mof") == pytest.approx(3 / 10)
    assert found == dict.fromkeys((name for name in METRICS if name != "mof"), 0.0)


def test_nothing_there_and_nothing_predicted_is_no_measurement() -> None:
    found = evaluate_video([-1, -1], [-1, -1])
    assert found["mof"] == 1.0 and found["acc_paper"] == 0.0
    assert all(math.isnan(found[name]) for name in METRICS if name not in ("mof", "acc_paper"))


def test_steps_predicted_where_nothing_is() -> None:
    found = evaluate_video([0, -1], [-1, -1])
    assert found["iou_strict"] == found["edit"] == found["f1@10"] == 0.0
    assert math.isnan(found["acc"]) and math.isnan(found["iou"]) and math.isnan(found["recall"])


def test_absent_steps_count_in_the_strict_union_alone() -> None:
    assert iou([0, 0, 5, 5], [0, 0, -1, -1]) == 1.0
    assert iou_strict([0, 0, 5, 5], [0, 0, -1, -1]) == 0.5


def test_a_step_that_happens_twice() -> None:
    true = [0, 0, -1, 0, 0, 1]
    assert evaluate_video([0, 0, 0, 0, 0, 1], true)["edit"] == pytest.approx(2 / 3)
    # one long run covers half of the first and half of the second: it can be right once only
    assert f1_counts([0, 0, 0, 0, 0, 1], true, 0.25) == (2, 0, 1)
    # two segments on one true segment: the second is wrong
    assert f1_counts([0, -1, 0, 1, 1, 1], [0, 0, 0, -1, -1, -1], 0.3) == (1, 2, 0)


def test_a_perfect_prediction() -> None:
    assert evaluate_video(TRUE, TRUE) == dict.fromkeys(METRICS, 1.0) | {"acc_paper": 0.7}


def test_pooled_f1() -> None:
    assert f1_of_counts(3, 1, 2) == pytest.approx(6 / 9)
    assert math.isnan(f1_of_counts(0, 0, 0))


def test_dataset_steps_that_share_an_instruction_are_one_class() -> None:
    # Dataset steps 0 and 1 share instruction 2, and 1 has instruction 0 too; step 2 has no instruction, and
    # instruction 1 no step.
    step_class, instruction_class = shared_classes([[2], [0, 2], []], 3)
    assert step_class[0] == step_class[1] == instruction_class[0] == instruction_class[2]
    assert step_class[2] not in instruction_class
    assert instruction_class[1] not in step_class
    found = evaluate_video(
        [2, 0, 1, 2, -1, 1],  # instructions
        [0, 1, 2, 2, 0, -1],  # dataset steps
        predicted_classes=instruction_class,
        true_classes=step_class,
    )
    assert found["acc"] == pytest.approx(2 / 5)  # step 2, without an instruction, is missed
    assert found["iou"] == pytest.approx(2 / 6)  # unions: 4 of the shared class, 2 of step 2
    assert found["iou_strict"] == pytest.approx(2 / 8)  # and 2 of instruction 1, which is not there
    with pytest.raises(InputError, match="dataset step 0 names instruction 3, but there are 3"):
        shared_classes([[3]], 3)


def test_bad_labels_are_named() -> None:
    with pytest.raises(InputError, match=r"predicted labels \(2,\) and true labels \(3,\) must agree on axis 0"):
        acc([0, 1], [0, 1, 2])
    with pytest.raises(InputError, match="whole numbers, not float64"):
        acc([0.5], [0])
    with pytest.raises(InputError, match="-2 at clip 1"):
        acc([0, -2], [0, 0])
    with pytest.raises(InputError, match=r"not shape \(1, 2\)"):
        acc([[0, 1]], [[0, 1]])
    with pytest.raises(InputError, match="label 4 at clip 1 has no class: there are 2 of them"):
        evaluate_video([0, 4], [0, 0], predicted_classes=[0, 1])


labels = st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), min_size=1, max_size=14)


@settings(max_examples=100, deadline=None)
@given(labels)
def test_bounds_and_laws(pairs: list[tuple[int, int]]) -> None:
    guess, true = (np.array(side) for side in zip(*pairs, strict=True))
    found = evaluate_video(guess, true)
    assert list(found) == METRICS
    for value in found.values():
        assert math.isnan(value) or 0.0 <= value <= 1.0
    if (true >= 0).any():
        assert found["iou_strict"] <= found["iou"] <= found["acc"] + 1e-12
        assert found["acc_paper"] <= found["acc"]
        assert found["iou"] == pytest.approx(_iou_by_sets(guess, true))
    assert found["f1@10"] >= found["f1@50"] or math.isnan(found["f1@10"])
    # other names for the steps change nothing
    names = np.array([3, 0, 2, 1, -1])
    assert evaluate_video(names[guess], names[true]) == pytest.approx(found, nan_ok=True)


def _iou_by_sets(guess: NDArray[np.int64], true: NDArray[np.int64]) -> float:
    intersection = union = 0
    for step in set(true.tolist()) - {-1}:
        one, other = set(np.flatnonzero(guess == step).tolist()), set(np.flatnonzero(true == step).tolist())
        intersection += len(one & other)
        union += len(one | other)
    return intersection / union
