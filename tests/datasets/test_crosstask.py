"""CrossTask, with captions and with features."""

from __future__ import annotations

import io
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graph2vid.datasets import crosstask
from graph2vid.errors import FormatError, InputError, MissingDependencyError
from layouts import crosstask as write_crosstask
from layouts import real_data, write, write_array, write_json

pytest.importorskip("wordllama", reason="needs graph2vid[text]")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_crosstask(tmp_path)


def test_reads_everything(root: Path) -> None:
    dataset = crosstask.load(root)
    assert list(dataset.tasks) == ["101"]
    task = dataset.tasks["101"]
    assert (task.title, task.steps) == ("Make Salad", ("cut tomato", "add salt flakes", "stir"))
    assert task.procedure == task.steps
    assert [recording.id for recording in dataset.recordings] == ["101_-b", "101_a_1"]
    recording = dataset.recording("101_a_1")
    assert (recording.notes["video"], recording.n_clips, recording.clip_seconds) == ("a_1", 11, 1.0)
    assert [(row.step, row.start, row.end) for row in recording.annotations] == [(0, 1.0, 4.0), (2, 6.2, 7.5)]
    assert dataset.splits[0].test == ("101_a_1",)
    assert (dataset.label_rule, dataset.label_overlapping, dataset.problems) == ("cover", "start", ())


def test_evidence_is_weighed_against_background(root: Path) -> None:
    dataset = pickle.loads(pickle.dumps(crosstask.load(root)))
    evidence = dataset.evidence(dataset.recording("101_a_1"))
    assert (evidence.kind, evidence.similarity.shape) == ("log_odds", (3, 11))
    assert evidence.background is not None and not evidence.background.any()
    assert evidence.skip is not None and evidence.skip.shape == (3,)
    assert evidence.similarity[0].argmax() < evidence.similarity[2].argmax()
    assert dataset.options["narration"] == "weighed"
    with pytest.raises(InputError, match="narration"):
        crosstask.load(root, narration="loud")


def test_plain_evidence_is_the_transcript(root: Path) -> None:
    dataset = pickle.loads(pickle.dumps(crosstask.load(root, narration="plain")))
    evidence = dataset.evidence(dataset.recording("101_a_1"))
    assert (evidence.kind, evidence.background, evidence.similarity.shape) == ("cosine", None, (3, 11))
    silent = [0, 4, 5, 8, 9, 10]
    assert not evidence.similarity[:, silent].any()
    assert evidence.similarity[:, 1:4].argmax(axis=0).tolist() == [0, 0, 0]
    assert evidence.similarity[:, 6:8].argmax(axis=0).tolist() == [2, 2]


def test_vectors_of_the_transcript(root: Path) -> None:
    dataset = pickle.loads(pickle.dumps(crosstask.load(root)))
    vectors = dataset.evidence.embeddings(dataset.recording("101_a_1"))
    assert (vectors.steps.shape, vectors.clips.shape, vectors.comparison) == ((3, 257), (11, 257), "cosine")
    likeness = vectors.steps @ vectors.clips.T
    assert likeness[0].argmax() < likeness[2].argmax()


def test_instructions_with_correspondence(root: Path) -> None:
    task = crosstask.load(root, descriptions="instructions").tasks["101"]
    assert task.procedure == ("Wash and cut.", "Season.", "Stir well.", "Serve.")
    assert task.correspondence == ((0,), (), (1, 2))
    assert dict(task.flows) == {}


@pytest.mark.parametrize("name", ["crosstask_narrated", "crosstask_release"])
def test_a_sub_folder_finds_its_neighbours(root: Path, name: str) -> None:
    assert len(crosstask.load(root / name).recordings) == 2


def test_one_folder_may_hold_all(root: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    for name in (
        "crosstask_release/tasks_primary.txt",
        "crosstask_narrated/captions",
        "crosstask_narrated/annotations",
    ):
        (root / name).rename(whole / Path(name).name)
    dataset = crosstask.load(whole)
    assert [recording.n_clips for recording in dataset.recordings] == [8, 8]  # no durations: the last cue or step
    assert dataset.splits == ()


def test_annotations_of_the_release_serve_captions_without(root: Path) -> None:
    (root / "crosstask_narrated" / "annotations").rename(root / "crosstask_release" / "annotations")
    write(root / "crosstask_release" / "annotations" / "102_other.csv", "1,0,1\n")
    assert len(crosstask.load(root).recordings) == 2


def test_features(root: Path) -> None:
    release = root / "crosstask_release"
    write(release / "annotations" / "101_a_1.csv", "1,0,3\n2,3.2,9.0\n")
    write(release / "annotations" / "102_c.csv", "2,0,3\n")
    write_array(release / "features" / "a_1.npy", np.eye(5)[[0, 0, 1]])
    write_array(release / "features" / "102_c.npy", np.eye(5)[[3, 4]].T)
    write_array(release / "step_features" / "101.npy", np.eye(5)[:3])
    write_array(release / "step_features" / "102.npy", np.eye(5)[3:])
    dataset = crosstask.load(root)
    assert [(r.id, r.n_clips, r.clip_seconds) for r in dataset.recordings] == [("101_a_1", 3, 3.2), ("102_c", 2, 3.2)]
    assert dataset.evidence(dataset.recordings[0]).similarity.tolist() == [[1, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert dataset.evidence(dataset.recordings[1]).similarity.tolist() == [[1, 0], [0, 1]]
    vectors = dataset.evidence.embeddings(dataset.recordings[1])  # type: ignore[attr-defined]
    assert (vectors.steps @ vectors.clips.T).tolist() == [[1, 0], [0, 1]]
    assert len(crosstask.load(root, evidence="captions").recordings) == 2

    write_array(release / "features" / "102_c.npy", np.zeros((0, 5)))
    with pytest.raises(FormatError, match=r"102_c.npy has shape \(0, 5\): there are no clips"):
        crosstask.load(root)

    write_array(release / "step_features" / "102.npy", np.eye(4))
    with pytest.raises(FormatError, match=r"102.npy has shape \(4, 4\); task 102 has 2 steps"):
        crosstask.load(root)
    (release / "step_features" / "102.npy").unlink()
    with pytest.raises(
        FormatError, match=r"task 102 has no embeddings of its steps: there is no .*release/step_features/102.npy"
    ):
        crosstask.load(root)
    (release / "features" / "102_c.npy").unlink()
    with pytest.raises(
        FormatError, match=r"video c of task 102 is annotated but has no features: there is no .*features/c.npy"
    ):
        crosstask.load(root)
    assert len(crosstask.load(root, skip_bad=True).recordings) == 1


@pytest.fixture
def featured(root: Path) -> Path:
    """CrossTask with features of five dimensions and as many clips."""
    shutil.rmtree(root / "crosstask_narrated")
    release = root / "crosstask_release"
    write(release / "annotations" / "101_a_1.csv", "1,0,6\n")
    write_array(release / "features" / "a_1.npy", 2 * np.eye(5)[[0, 0, 1, 2, 3]])
    write_array(release / "step_features" / "101.npy", np.eye(5)[:3])
    procedures = root / "crosstask_procedures" / "procedures.json"
    procedures.write_text(procedures.read_text().replace("10.2", "16.0"))
    return root


def test_features_are_as_long_as_their_video(featured: Path) -> None:
    with pytest.raises(InputError, match=r"video a_1: 5 clips of 1 s end at 5 s, but the video lasts 16 s: clip_sec"):
        crosstask.load(featured, axis="clips,dims", clip_seconds=1.0)
    with pytest.raises(InputError, match=r"end at 50 s, but the video lasts 16 s: clip_seconds=3.2 would fit"):
        crosstask.load(featured, axis="clips,dims", clip_seconds=10.0)
    (featured / "crosstask_procedures" / "procedures.json").unlink()
    assert len(crosstask.load(featured, axis="clips,dims", clip_seconds=10.0).recordings) == 1
    with pytest.raises(InputError, match=r"end at 2.5 s, but an annotation ends at 6 s: clip_seconds=1.2 would fit at"):
        crosstask.load(featured, axis="clips,dims", clip_seconds=0.5)


def test_the_axis_of_features_can_be_stated(featured: Path) -> None:
    with pytest.raises(FormatError, match=r"which axis is time; state it: axis=clips,dims or axis=dims,clips"):
        crosstask.load(featured)
    dataset = crosstask.load(featured, axis=("clips", "dims"))
    assert dataset.evidence(dataset.recordings[0]).similarity[0].tolist() == [1, 1, 0, 0, 0]
    dataset = crosstask.load(featured, axis="dims,clips")
    assert dataset.evidence(dataset.recordings[0]).similarity[2].tolist() == [0, 1, 0, 0, 0]
    with pytest.raises(InputError, match="axis is auto, clips,dims or dims,clips, not 'time'"):
        crosstask.load(featured, axis="time")
    write_array(featured / "crosstask_release" / "features" / "a_1.npy", np.eye(5)[:4])
    with pytest.raises(FormatError, match=r"a_1.npy has shape \(4, 5\), read dims,clips, but .* has 5 dimensions"):
        crosstask.load(featured, axis="dims,clips")


def test_features_can_be_compared_by_inner_product(featured: Path) -> None:
    dataset = crosstask.load(featured, axis="clips,dims", comparison="dot")
    evidence = dataset.evidence(dataset.recordings[0])
    assert evidence.kind == "scores" and evidence.similarity[0].tolist() == [2, 2, 0, 0, 0]
    assert dataset.evidence.embeddings(dataset.recordings[0]).comparison == "dot"  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="comparison is one of cosine, dot, not 'l2'"):
        crosstask.load(featured, axis="clips,dims", comparison="l2")


def test_a_database_needs_its_package(featured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(featured / "crosstask_release" / "features")
    (featured / "crosstask_release" / "features.lmdb").mkdir()
    monkeypatch.setitem(sys.modules, "lmdb", None)
    with pytest.raises(MissingDependencyError, match=r"features.lmdb needs the package lmdb: pip install '\.\[lmdb\]'"):
        crosstask.load(featured)


def stored(array: np.ndarray, how: str) -> bytes:
    """Return the content of an entry."""
    if how == "raw":
        return array.astype(np.float32).tobytes()
    if how == "pickle":
        return pickle.dumps({"frame_features": array})
    file = io.BytesIO()
    if how == "npy":
        np.save(file, array)
    else:
        np.savez(file, frame_features=array)
    return file.getvalue()


@pytest.mark.parametrize("how", ["npy", "npz", "raw", "pickle", "short"])
def test_features_in_a_database(featured: Path, how: str) -> None:
    lmdb = pytest.importorskip("lmdb")
    release = featured / "crosstask_release"
    shutil.rmtree(release / "features")
    array = 2 * np.eye(5)[[0, 0, 1, 2]]
    with lmdb.open(str(release / "features.lmdb")) as database, database.begin(write=True) as entries:
        entries.put(b"a_1", b"\x00" * 7 if how == "short" else stored(array, how))
    if how in ("pickle", "short"):
        message = "entry a_1 is a pickle: nothing is unpickled here" if how == "pickle" else "entry a_1 has 7 bytes"
        with pytest.raises(FormatError, match=message):
            crosstask.load(featured)
        return
    dataset = crosstask.load(featured)
    assert dataset.evidence(dataset.recordings[0]).similarity[0].tolist() == [1, 1, 0, 0]


RECIPE: dict[str, Any] = {
    "instructions": ["Wash.", "Cut.", "Stir."],
    "edges": [[0, 1], [1, 2]],
    "recipe_2_caption": [[0, -1], [1, 0], [2, 2]],
}


def test_published_flow_graphs(root: Path) -> None:
    path = root / "graphs.json"
    write_json(path, [{"recipe_type": "101", "recipe": RECIPE, "predicted_edges": [[0, 2]]}])
    task = crosstask.load(root, descriptions="instructions", flows=path).tasks["101"]
    assert task.procedure == ("Wash.", "Cut.", "Stir.")
    assert task.correspondence == ((1,), (), (2,))
    assert {name: flow.edges for name, flow in task.flows.items()} == {
        "graphs": ((0, 1), (1, 2)),
        "graphs-predicted": ((0, 2),),
    }
    write_json(root / "rule_parser.json", [{"recipe_type": "101", "recipe": RECIPE | {"edges": [[0, 2]]}}])
    both = [path, root / "rule_parser.json"]
    task = crosstask.load(root, descriptions="instructions", flows=both).tasks["101"]
    assert list(task.flows) == ["graphs", "graphs-predicted", "rule_parser"]
    write_json(both[1], [{"recipe_type": "101", "recipe": RECIPE | {"instructions": ["Cut.", "Wash.", "Stir."]}}])
    with pytest.raises(FormatError, match=r"rule_parser.json, task 101: the instructions differ"):
        crosstask.load(root, descriptions="instructions", flows=both)
    path.rename(root / "crosstask_procedures" / "flow_graphs.json")
    assert "manual" in crosstask.load(root, descriptions="instructions").tasks["101"].flows


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edges": [[0, 1], [1, 0]]}, "task 101, edges: the steps form a cycle"),
        ({"edges": [[0, 7]]}, "task 101, edges: .*there is no step 7"),
        ({"edges": [[0, "x"]]}, "edges must be pairs of whole numbers"),
        ({"instructions": []}, "the instructions must be texts"),
        ({"recipe_2_caption": [[9, 0]]}, "there is no instruction 9"),
        ({"recipe_2_caption": [[0, 9]]}, "instruction 0 stands for step 9 of 3"),
    ],
)
def test_broken_flow_graphs_are_refused(root: Path, change: dict[str, Any], message: str) -> None:
    path = write_json(root / "graphs.json", [{"recipe_type": 101, "recipe": RECIPE | change}])
    with pytest.raises(FormatError, match=message):
        crosstask.load(root, descriptions="instructions", flows=path)


def test_overlaps_are_remarked(root: Path) -> None:
    write(root / "crosstask_narrated" / "annotations" / "101_-b.csv", "1,1,4\n2,3,5\n")
    dataset = crosstask.load(root, label_overlapping="row", label_rule="touch")
    assert len(dataset.remarks) == 1
    assert "101_-b.csv: annotations overlap; the later row wins" in dataset.remarks[0]
    assert dataset.label_rule == "touch"


ANNOTATIONS = Path("crosstask_narrated", "annotations")
BROKEN: list[tuple[Callable[[Path], object], str]] = [
    (
        lambda root: write(root / ANNOTATIONS / "101_-b.csv", "1,1,4\n4,5,6\n"),
        "101_-b.csv, line 2: there is no step '4'",
    ),
    (
        lambda root: write(root / ANNOTATIONS / "101_-b.csv", "1,1,40\n"),
        "line 1: the annotation .* lies outside the video",
    ),
    (lambda root: write(root / ANNOTATIONS / "101_-b.csv", "1,-2,4\n"), "lies outside the video"),
    (lambda root: write(root / ANNOTATIONS / "101_-b.csv", "1,4,2\n"), "ends .* before it starts"),
    (lambda root: write(root / ANNOTATIONS / "101_-b.csv", "\n"), "101_-b.csv has no annotations"),
    (lambda root: write(root / ANNOTATIONS / "101_-b.csv", "1,4\n"), "line 1: 2 fields where there should be 3"),
    (lambda root: write(root / ANNOTATIONS / "101_-b.csv", "1,4,nan\n"), "the end must be a number"),
    (
        lambda root: write(root / ANNOTATIONS / "999_x.csv", "1,4,5\n"),
        "task 999 has annotations but stands in no task list",
    ),
    (lambda root: (root / "crosstask_narrated/captions/-b.vtt").unlink(), "video -b is annotated but has no captions"),
    (
        lambda root: write(root / "crosstask_narrated/captions/-b.vtt", "hello"),
        "-b.vtt, line 1: a WebVTT file begins with",
    ),
]


@pytest.mark.parametrize(("damage", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_bad_input_is_named_or_passed_over(root: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(root)
    with pytest.raises(FormatError, match=message) as caught:
        crosstask.load(root)
    dataset = crosstask.load(root, skip_bad=True)
    assert dataset.problems == (str(caught.value),)
    assert "101_a_1" in {recording.id for recording in dataset.recordings}


def test_a_task_without_a_procedure(root: Path) -> None:
    write(root / ANNOTATIONS / "102_-b.csv", "1,1,4\n")
    assert len(crosstask.load(root).recordings) == 3
    with pytest.raises(FormatError, match=r"task 102 \(Make Tea\) has no procedure"):
        crosstask.load(root, descriptions="instructions")
    dataset = crosstask.load(root, descriptions="instructions", skip_bad=True)
    assert (len(dataset.recordings), len(dataset.problems)) == (2, 1)


def test_what_nothing_can_go_without(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="descriptions is one of steps, instructions"):
        crosstask.load(root, descriptions="words")
    write(root / "crosstask_release" / "tasks_primary.txt", "101\nMake Salad\nhttp://x\n4\na,b\n")
    with pytest.raises(FormatError, match=r"tasks_primary\.txt, line 5: 2 steps where 4 are announced"):
        crosstask.load(root)
    (root / "crosstask_release" / "tasks_primary.txt").unlink()
    with pytest.raises(FormatError, match="has no task list"):
        crosstask.load(root)


def test_real_videos() -> None:
    dataset = crosstask.load(real_data("crosstask_narrated"), descriptions="instructions")
    assert dataset.problems == ()
    for recording in dataset.recordings[::60]:
        shape = dataset.evidence(recording).similarity.shape
        assert shape == (len(dataset.tasks[recording.task].procedure), recording.n_clips)
