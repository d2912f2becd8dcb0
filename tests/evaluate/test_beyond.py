"""Features with prices learnt from training videos."""

from __future__ import annotations

import numpy as np
import pytest

from graph2vid.datasets import Split
from graph2vid.errors import InputError
from graph2vid.evaluate.beyond import FEATURES, TOGETHER, WEIGHTS, Beyond, check_features
from graph2vid.evaluate.engine import Options, evaluate_dataset
from graph2vid.evaluate.methods import Training
from graph2vid.evaluate.run import Run, best_of_splits
from toys import make_dataset, make_task

VIDEOS = {
    "a": [0, 0, 0, 0, 1, 1, 2, 2, 3, 3],
    "b": [0, 0, 0, 1, 1, 2, 2, 1, 3, 3],
    "c": [0, 0, 0, 0, 0, 1, 2, 2, 2, 2],
    "d": [0, 0, 1, 1, 0, 0, 2, 2, 3, 3],
}
SPLITS = (Split("1", ("c", "d"), ("a", "b")), Split("2", ("a", "b"), ("c", "d")))


def test_habits_are_those_of_the_training_videos() -> None:
    dataset = make_dataset(VIDEOS, splits=SPLITS)
    (task,) = dataset.tasks.values()
    habits = Beyond(dataset, Training(dataset)).habits(task, SPLITS[0])
    assert habits is not None and habits.videos == 2
    assert habits.shown.tolist() == [2, 2, 2, 1]
    assert habits.returns.tolist() == [1, 0, 0, 0]
    assert [sorted(seen) for seen in habits.lengths] == [[2, 2, 5], [1, 2], [2, 4], [2]]
    assert habits.skip(1.0).tolist() == pytest.approx([np.log(5)] * 3 + [0.0])
    assert habits.repeat(2.0)[0] == pytest.approx(2 * np.log(4.0 / 1.5))
    assert habits.durations(1.0, 1.0).at_least.tolist() == [1] * 4
    assert Beyond(dataset, Training(dataset)).habits(task, None) is None


def test_every_feature_has_its_row() -> None:
    dataset = make_dataset(VIDEOS, make_task(expert=[(0, 1), (1, 2)]), splits=SPLITS, height=3.0)
    options = Options(folds=0, drop="constant:1", beyond=check_features("all,skip+likeliest"))
    results = evaluate_dataset(dataset, ["graph:expert"], options, workers=1)
    assert list(results.runs) == [
        "graph:expert",
        *(f"graph:expert+{name}" for name in (*FEATURES, *TOGETHER, "skip+likeliest")),
    ]
    for run in results.runs.values():
        assert sorted(run.measures) == [0, 1, 2, 3]
    found = results.runs["graph:expert+skip+repeat+durations"]
    assert set(found.weights) == {"1", "2"}
    assert all(weights in [{f: w[f] for f in weights} for w in WEIGHTS] for weights in found.weights.values())


def test_weights_are_chosen_by_the_other_splits() -> None:
    dataset = make_dataset(VIDEOS, splits=SPLITS)
    videos = evaluate_dataset(dataset, ["bag"], Options(folds=0, skip="constant:1"), workers=1).videos
    good_on_first = Run("x", weights={"": {"skip": 1.0}})
    good_on_second = Run("x", weights={"": {"skip": 2.0}})
    for at in range(4):
        good_on_first.measures[at] = {"iou_strict": 1.0 if at < 2 else 0.0}
        good_on_second.measures[at] = {"iou_strict": 0.0 if at < 2 else 1.0}
    best = best_of_splits([good_on_first, good_on_second], videos)
    assert best.weights == {"1": {"skip": 2.0}, "2": {"skip": 1.0}}
    assert [row["iou_strict"] for row in best.measures.values()] == [0.0] * 4  # no video had a say in its own


def test_unknown_features_are_named() -> None:
    assert check_features("skip, repeat+durations") == ("skip", "repeat+durations")
    with pytest.raises(InputError, match="no feature 'speed'; there are: skip"):
        check_features("skip+speed")
