"""The extended model with costs learnt from training videos."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from graph2vid._evaluation_options import FEATURES, TOGETHER
from graph2vid.datasets import Split
from graph2vid.errors import InputError
from graph2vid.evaluate import EvaluationOptions, evaluate_dataset
from graph2vid.evaluate.extended import GRID, Weights, climb, inner_videos, nested_result
from graph2vid.evaluate.methods import MethodResult, Training, Video
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
    habits = Training(dataset).habits(task, SPLITS[0])
    assert habits is not None and habits.videos == 2
    assert habits.shown.tolist() == [2, 2, 2, 1]
    assert habits.repeats.tolist() == [1, 0, 0, 0]
    assert [sorted(seen) for seen in habits.lengths] == [[2, 2, 5], [1, 2], [2, 4], [2]]
    assert habits.skip(1.0).tolist() == pytest.approx([np.log(5)] * 3 + [0.0])
    assert habits.repeat(2.0)[0] == pytest.approx(2 * np.log(4.0 / 1.5))
    assert habits.durations(1.0, 1.0).at_least.tolist() == [1] * 4
    assert habits.share.tolist() == pytest.approx([0.45, 0.15, 0.3, 0.1])
    assert habits.clip(2.0)[1] == pytest.approx(-2 * np.log(0.151 / 0.251))
    assert Training(dataset).habits(task, None) is None


def test_every_feature_has_its_row() -> None:
    dataset = make_dataset(VIDEOS, make_task(expert=[(0, 1), (1, 2)]), splits=SPLITS, height=3.0)
    options = EvaluationOptions(folds=0, drop="constant:1", extended=("all", "skip+max-marginal"))
    results = evaluate_dataset(dataset, ["graph:expert"], options, workers=1)
    assert list(results.methods) == [
        "graph:expert",
        *(f"graph:expert+{name}" for name in (*FEATURES, *TOGETHER, "skip+max-marginal")),
    ]
    for result in results.methods.values():
        assert sorted(result.metrics) == [0, 1, 2, 3]
    found = results.methods["graph:expert+skip+repeat+durations"]
    assert set(found.weights) == {"1", "2"}
    assert all(value in GRID[name] for weights in found.weights.values() for name, value in weights.items())


def _videos() -> Sequence[Video]:
    folds = EvaluationOptions(folds=4, skip="constant:1")
    return evaluate_dataset(make_dataset(VIDEOS), ["bag"], folds, workers=1).videos


def test_inner_videos_know_nothing_of_the_split_nor_of_their_own_part() -> None:
    videos = _videos()
    for tested in videos:
        assert tested.split is not None
        inner = inner_videos(videos, tested.split)
        assert {video.recording.id for video in inner} == set(VIDEOS) - set(tested.split.test)
        for video in inner:
            assert video.split is not None
            assert set(video.split.train) == set(VIDEOS) - set(tested.split.test) - {video.recording.id}
    names = {
        video.split.name for one in videos if one.split for video in inner_videos(videos, one.split) if video.split
    }
    assert len(names) == 12  # one name for each set of training videos: what is learnt is kept by name


def test_weights_are_chosen_without_the_videos_tested() -> None:
    videos = _videos()
    asked: list[tuple[str, ...]] = []

    def run(name: str, weights: Weights, some: Sequence[Video]) -> MethodResult:
        asked.append(tuple(video.recording.id for video in some))
        # Video a likes one value, all others another: only a is tested with what the others like.
        likes = [weights["skip"] == (1.0 if video.recording.id == "a" else 3.0) for video in some]
        return MethodResult(
            name, metrics={at: {"iou_strict": float(liked)} for at, liked in enumerate(likes)}, seconds=1.0
        )

    found = nested_result("x", {"skip": (1.0, 2.0, 3.0)}, run, videos, ["iou_strict"])
    assert found.weights == {f"fold {number}": {"skip": 3.0} for number in (1, 2, 3, 4)}
    assert {videos[at].recording.id: row["iou_strict"] for at, row in found.metrics.items()} == {
        "a": 0.0,
        "b": 1.0,
        "c": 1.0,
        "d": 1.0,
    }
    assert found.seconds == 4.0
    assert {len(some) for some in asked} == {1, 3}


def test_climbing_stays_in_the_middle_of_a_plain_and_finds_a_peak() -> None:
    grid = {"a": (1.0, 2.0, 3.0), "b": (4.0, 5.0, 6.0)}
    assert climb(grid, lambda _: 0.0) == {"a": 2.0, "b": 5.0}
    assert climb(grid, lambda weights: weights["a"] - abs(weights["b"] - 4.0)) == {"a": 3.0, "b": 4.0}


def test_unknown_names_are_refused() -> None:
    assert EvaluationOptions(tune_for=("acc, iou_strict",)).tune_for == ("acc", "iou_strict")
    with pytest.raises(InputError, match="no metric 'speed'; there are: acc, iou"):
        EvaluationOptions(tune_for=("speed",))
    assert EvaluationOptions(extended=("skip, repeat+durations",)).extended == ("skip", "repeat+durations")
    with pytest.raises(InputError, match="no feature 'speed'; there are: skip"):
        EvaluationOptions(extended=("skip+speed",))
    with pytest.warns(DeprecationWarning, match="'likeliest' is called 'max-marginal' now"):
        assert EvaluationOptions(extended=("skip+likeliest",)).extended == ("skip+max-marginal",)
