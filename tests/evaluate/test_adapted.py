"""``evaluate --adapt``: task models of captioned videos, context models of given scores, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graph2vid.datasets import Annotation, Dataset, Evidence, Narration, Recording, Task
from graph2vid.errors import InputError
from graph2vid.evaluate import EvaluationOptions, evaluate_dataset
from graph2vid.flow import FlowGraph
from task_corpus import STEPS, made_up


def captioned(folder: Path, number: int) -> Dataset:
    """Return a made-up corpus as a dataset; a second task has one video."""
    corpus = made_up(folder, number)
    flows = {"rules": FlowGraph.bag(STEPS)}
    tasks = {name: Task.of_steps(name, "", tuple(STEPS), flows=flows) for name in ("a", "b")}
    recordings = [
        Recording(path.stem, "a", 1.0, 0.0, 90, tuple(Annotation(*row) for row in rows), {"video": path.stem})
        for path, rows in corpus.items()
    ]
    recordings.append(Recording("alone", "b", 1.0, 0.0, 90, recordings[0].annotations, {"video": "v0"}))
    files = {path.stem: path for path in corpus}
    return Dataset("made", tasks, tuple(recordings), (), Narration(files, tasks, "wordllama"))


def test_labels_are_worth_something_and_one_video_nothing(tmp_path: Path) -> None:
    dataset = captioned(tmp_path, 20)
    options = EvaluationOptions(adapt=("none", "unlabelled", "2,all"), folds=2)
    found = evaluate_dataset(dataset, ["graph:rules"], options, workers=1)
    assert list(found.methods) == [
        f"graph:rules{name}" for name in ("", *(f"+adapt:{n}" for n in ("unlabelled", 2, "all")))
    ]
    iou = {name: np.mean([row["iou"] for row in method.metrics.values()]) for name, method in found.methods.items()}
    assert iou["graph:rules+adapt:all"] > iou["graph:rules"] + 0.1
    alone = next(at for at, video in enumerate(found.videos) if video.recording.id == "alone")
    assert len({found.methods[name].metrics[alone]["iou"] for name in iou}) == 1  # the general evidence stays
    two, none = (found.methods[f"graph:rules+adapt:{name}"].metrics for name in (2, "unlabelled"))
    assert all(two[at]["iou"] == pytest.approx(none[at]["iou"]) for at in none)  # too few labels to count


class _Scores:
    def __call__(self, recording: Recording) -> Evidence:
        random = np.random.default_rng(int(recording.id))
        truth = np.full(60, 2)
        for row in recording.annotations:
            truth[int(row.start) : int(row.end)] = row.step
        scores = np.eye(3)[truth].T + random.normal(0, 0.8, (3, 60))
        return Evidence(scores[:2].astype(np.float32), scores[2].astype(np.float32), "scores")


def test_given_scores_get_a_context_and_durations() -> None:
    task = Task.of_steps("a", "", ("one", "two"))
    rows = [(Annotation(0, 10 + at % 3, 20 + at % 3), Annotation(1, 35 - at % 3, 50 + at % 4)) for at in range(12)]
    recordings = tuple(Recording(str(at), "a", 1.0, 0.0, 60, of_video) for at, of_video in enumerate(rows))
    dataset = Dataset("made", {"a": task}, recordings, (), _Scores())
    found = evaluate_dataset(dataset, ["graph:mined"], EvaluationOptions(adapt=("all",), folds=3), workers=1)
    assert list(found.methods) == ["graph:mined", "graph:mined+adapt:context", "graph:mined+adapt:all"]
    chosen = found.methods["graph:mined+adapt:all"].weights
    assert all(set(weights) == {"context", "durations"} for weights in chosen.values()) and len(chosen) == 3
    with pytest.raises(InputError, match="--adapt all"):
        evaluate_dataset(dataset, ["graph:mined"], EvaluationOptions(adapt=("5",), folds=3), workers=1)


def test_amounts_are_checked() -> None:
    with pytest.raises(InputError, match="not 'some'"):
        EvaluationOptions(adapt=("some",))
