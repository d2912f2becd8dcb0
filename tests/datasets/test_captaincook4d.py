"""CaptainCook4D."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graph2vid.datasets import captaincook4d
from graph2vid.errors import FormatError
from layouts import captaincook4d as write_captaincook4d
from layouts import real_data, write, write_json

STEPS = Path("annotation_json", "complete_step_annotations.json")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_captaincook4d(tmp_path)


def test_reads_everything(root: Path) -> None:
    dataset = captaincook4d.load(root, clip_seconds=2.0)
    assert dataset.simulated
    task = dataset.tasks["5"]
    assert task.steps == ("Pour-Pour water", "Stir-Stirr", "Boil-Boil water")  # by number
    assert task.procedure == ("Boil-Boil water", "Pour-Pour water", "Stir-Stir", "Pour-Pour water")
    assert task.correspondence == ((1, 3), (2,), (0,))
    assert task.flows["expert"].edges == ((0, 1), (1, 2), (2, 3))
    one, two = dataset.recordings
    assert (one.id, one.n_clips, one.order) == ("5_1", 26, (2, 0, 1))
    assert (one.notes["skipped"], one.notes["order_error"], one.notes["errors"]) == ((), False, {})
    assert (two.notes["skipped"], two.notes["order_error"], two.notes["errors"]) == ((1,), True, {0: ("Order Error",)})
    assert [(split.name, split.train, split.test) for split in dataset.splits] == [
        ("person_normal", ("5_1",), ("5_2",))
    ]
    assert any("'Stir-Stirr' is taken as 'Stir-Stir'" in remark for remark in dataset.remarks)
    assert any(
        "recording 5_1: annotations overlap; the one that starts later wins" in remark for remark in dataset.remarks
    )


def test_evidence_is_simulated_from_the_step_times(root: Path) -> None:
    dataset = pickle.loads(pickle.dumps(captaincook4d.load(root, clip_seconds=2.0, noise=0.0)))
    one, _ = dataset.recordings
    similarity = dataset.evidence(one).similarity
    assert similarity.shape == (4, 26)
    assert np.allclose(similarity[0, 2:9], 1.0)
    assert np.array_equal(similarity[1], similarity[3])  # one step, twice in the graph
    assert similarity[:, 21:25].argmax(axis=0).tolist() == [1, 1, 1, 1]


def test_other_files_may_be_missing(root: Path) -> None:
    for name in ("metadata/video_information.csv", "annotation_json/error_annotations.json"):
        (root / name).unlink()
    dataset = captaincook4d.load(root, clip_seconds=10.0)
    assert [recording.n_clips for recording in dataset.recordings] == [5, 2]


def change_step(root: Path, **values: object) -> None:
    records = json.loads((root / STEPS).read_text())
    records["5_2"]["steps"][0] |= values
    write_json(root / STEPS, records)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda root: change_step(root, end_time=99), "recording 5_2, step 9: the annotation .* outside the video"),
        (lambda root: change_step(root, end_time=1), "before it starts"),
        (lambda root: change_step(root, start_time=None), "start_time must be a number"),
        (lambda root: change_step(root, step_id="x"), "recording 5_2: 'step_id' must be a int"),
    ],
)
def test_bad_input_is_named_or_passed_over(root: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(root)
    with pytest.raises(FormatError, match=message) as caught:
        captaincook4d.load(root)
    dataset = captaincook4d.load(root, skip_bad=True)
    assert dataset.problems[0] == str(caught.value)
    assert dataset.recordings[0].id == "5_1"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda root: (root / "task_graphs/hottea.json").unlink(), r"task 5 \(Hot Tea\) has no procedure"),
        (lambda root: change_step(root, step_id=3, description="Sing a song"), "hottea.json has no step 'Sing a song'"),
        (lambda root: write(root / "task_graphs/hottea.json", "{"), "hottea.json, line 1"),
        (
            lambda root: write_json(root / "task_graphs/hottea.json", {"steps": {"1": "a"}, "edges": [[1, 2]]}),
            "pair of",
        ),
        (
            lambda root: write_json(
                root / "task_graphs/hottea.json", {"steps": {"1": "a", "2": "b"}, "edges": [[1, 2], [2, 1]]}
            ),
            "hottea.json: the steps form a cycle",
        ),
    ],
)
def test_a_task_without_a_usable_graph(root: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(root)
    with pytest.raises(FormatError, match=message):
        captaincook4d.load(root)
    with pytest.raises(FormatError.__base__, match="no usable recording; the first of 1 problems"):  # type: ignore[arg-type]
        captaincook4d.load(root, skip_bad=True)


def test_broken_files_beside(root: Path) -> None:
    errors = root / "annotation_json" / "error_annotations.json"
    write_json(errors, [{"recording_id": "5_1", "step_annotations": [{"step_id": 71, "errors": True}]}])
    with pytest.raises(FormatError, match=r"error_annotations.json, entry 0: 'errors' must be a list"):
        captaincook4d.load(root)
    errors.unlink()
    write_json(root / "data_splits" / "person_data_split_normal.json", {"train": [["5_1"]], "test": ["5_2"]})
    assert captaincook4d.load(root).splits == ()


def test_real_recordings() -> None:
    dataset = captaincook4d.load(real_data("captaincook4d"))
    assert dataset.problems == ()
    assert all("expert" in task.flows for task in dataset.tasks.values())
    assert any(recording.notes["skipped"] for recording in dataset.recordings)
