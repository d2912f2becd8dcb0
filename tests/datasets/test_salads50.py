"""The action-segmentation layout."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graph2vid.datasets import DATASETS, Split, salads50
from graph2vid.errors import FormatError, Graph2VidError, InputError
from graph2vid.evaluate import labels_from_annotations
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph
from layouts import real_data, segmentation, write, write_array


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return segmentation(tmp_path)


def test_reads_everything(root: Path) -> None:
    dataset = DATASETS.get("salads50")(root, clip_seconds=2.0, offset=5.0)
    task = dataset.tasks["salads50"]
    assert task.procedure == task.steps == ("cut tomato", "cut cheese", "mix")
    assert task.correspondence == ((0,), (1,), (2,))
    assert [recording.id for recording in dataset.recordings] == ["v1", "v2", "v10"]
    first = dataset.recordings[0]
    assert (first.clip_seconds, first.offset, first.n_clips) == (2.0, 5.0, 10)
    assert [(row.step, row.start, row.end) for row in first.annotations] == [(0, 7, 13), (1, 13, 17), (2, 19, 25)]
    assert dataset.splits[0] == Split("split1", ("v2", "v10"), ("v1",))
    assert (dataset.problems, dataset.remarks, dataset.simulated) == ((), (), False)


def test_annotations_give_the_labels_back(root: Path) -> None:
    dataset = salads50.load(root, clip_seconds=1 / 3, offset=0.7)
    recording = dataset.recordings[2]
    rows = [(row.step, row.start, row.end) for row in recording.annotations]
    labels = labels_from_annotations(rows, recording.n_clips, recording.clip_seconds, recording.offset)
    assert "".join(str(label + 1) for label in labels) == "01111022233"


def test_evidence_is_the_scores(root: Path) -> None:
    dataset = pickle.loads(pickle.dumps(salads50.load(root)))
    evidence = dataset.evidence(dataset.recordings[0])
    assert evidence.kind == "scores"
    assert evidence.similarity.shape == (3, 10)
    assert evidence.background.tolist() == [1, 0, 0, 0, 0, 0, 1, 0, 0, 0]
    assert evidence.similarity.argmax(axis=0)[1:6].tolist() == [0, 0, 0, 1, 1]


def test_feature_major_is_seen_or_stated(root: Path) -> None:
    expected = salads50.load(root)
    for path in (root / "scores").glob("*.npy"):
        write_array(path, np.load(path).T)
    for layout in ("detect", "feature-major"):
        dataset = salads50.load(root, layout=layout)
        for recording in dataset.recordings:
            found, wanted = dataset.evidence(recording), expected.evidence(recording)
            assert np.array_equal(found.similarity, wanted.similarity)
    with pytest.raises(
        FormatError, match=r"v1.npy has shape \(4, 10\), read time-major, but mapping.txt has 4 classes"
    ):
        salads50.load(root, layout="time-major")


def test_square_arrays_must_be_stated(tmp_path: Path) -> None:
    root = segmentation(tmp_path, {"v": "0123", "w": "01233"})
    with pytest.raises(FormatError, match=r"v.npy has shape \(4, 4\): state whether"):
        salads50.load(root)
    assert len(salads50.load(root, layout="time-major").recordings) == 2


def test_features_are_compared_with_those_of_the_classes(root: Path) -> None:
    (root / "scores").rename(root / "features")
    with pytest.raises(FormatError, match=r"needs .*step_features.npy"):
        salads50.load(root)
    scores = {}
    for rows in (np.eye(4), np.eye(4)[1:]):  # of classes, or of steps alone
        write_array(root / "step_features.npy", rows)
        dataset = salads50.load(root)
        evidence = dataset.evidence(dataset.recordings[0])
        assert evidence.kind == "cosine"
        assert (evidence.background is None) == (len(rows) == 3)
        scores[len(rows)] = evidence.similarity
    assert np.allclose(scores[3], scores[4])


def test_vectors_to_train_on_are_what_the_evidence_rests_on(root: Path) -> None:
    dataset = salads50.load(root)
    recording = dataset.recordings[0]
    vectors = dataset.evidence.embeddings(recording)  # type: ignore[attr-defined]
    assert vectors.comparison == "dot" and vectors.clips.shape == (10, 4)
    assert np.array_equal(vectors.steps @ vectors.clips.T, dataset.evidence(recording).similarity)
    (root / "scores").rename(root / "features")
    for rows in (np.eye(4), np.eye(4)[1:]):  # of classes, or of steps alone
        write_array(root / "step_features.npy", rows)
        of_features = salads50.load(root)
        found = of_features.evidence.embeddings(recording)  # type: ignore[attr-defined]
        assert found.comparison == "cosine" and np.array_equal(found.steps, np.eye(4)[1:])


def test_background_is_an_option(root: Path) -> None:
    dataset = salads50.load(root, background=["background", "mix"])
    assert dataset.tasks["salads50"].steps == ("cut tomato", "cut cheese")
    assert dataset.evidence(dataset.recordings[0]).background.tolist() == [1, 0, 0, 0, 0, 0, 1, 1, 1, 1]  # type: ignore[union-attr]
    with pytest.raises(InputError, match="no class 'pause'"):
        salads50.load(root, background="pause")


def test_lengths_that_differ_a_little_are_cropped(root: Path) -> None:
    write_array(root / "scores" / "v1.npy", np.zeros((12, 4)))
    dataset = salads50.load(root)
    assert dataset.recordings[0].n_clips == 10
    assert dataset.evidence(dataset.recordings[0]).similarity.shape == (3, 10)
    assert len(dataset.remarks) == 1 and "cropped to 10" in dataset.remarks[0]


def test_listed_videos_that_are_not_here_are_remarked(root: Path) -> None:
    write(root / "splits" / "train.split1.bundle", "v2\nv10\nv77\n")
    assert "lists videos that are not here: 1, v77 first" in salads50.load(root).remarks[0]


def test_splits_of_which_little_is_here(root: Path) -> None:
    for path in (root / "splits").glob("test.split[12].bundle"):
        write(path, "zz\n")
    dataset = salads50.load(root)
    assert [split.name for split in dataset.splits] == ["split3"]
    assert any("nothing is left on one side of split1; it is not used" in remark for remark in dataset.remarks)
    for path in (root / "splits").glob("train.*"):
        write(path, "zz\n")
    assert salads50.load(root).splits == ()
    write(root / "splits" / "test.split3.bundle", "zz\n")
    with pytest.raises(FormatError, match="splits: no list names a video that is here"):
        salads50.load(root)
    assert salads50.load(root, skip_bad=True).splits == ()


BROKEN: list[tuple[Callable[[Path], object], str]] = [
    (lambda root: (root / "scores" / "v2.npy").unlink(), "video v2 has ground truth but no scores"),
    (
        lambda root: write(root / "groundTruth" / "v2.txt", "mix\nfry\n"),
        r"v2.txt, line 2: label 'fry' is not in mapping",
    ),
    (
        lambda root: write_array(root / "scores" / "v2.npy", np.zeros((10, 5))),
        r"v2.npy has shape \(10, 5\) but .* 4 classes",
    ),
    (lambda root: write_array(root / "scores" / "v2.npy", np.zeros((14, 4))), "do not belong together"),
    (
        lambda root: write_array(root / "scores" / "v2.npy", np.full((10, 4), np.nan)),
        "v2.npy holds numbers that are not",
    ),
    (lambda root: write_array(root / "scores" / "v2.npy", np.zeros(4)), r"v2.npy must have two axes"),
    (lambda root: write(root / "scores" / "v2.npy", "text"), "v2.npy is not a .npy file"),
    (lambda root: write(root / "groundTruth" / "v2.txt", ""), "v2.txt has no labels"),
    (lambda root: (root / "splits" / "train.split2.bundle").unlink(), "no train.split2.bundle"),
    (
        lambda root: write(root / "splits" / "train.split2.bundle", "v2\nv1\n"),
        "v2 is in the training and the test list",
    ),
    (lambda root: (root / "splits").rename(root / "other"), "splits is not a folder"),
]


@pytest.mark.parametrize(("damage", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_bad_input_is_named_or_passed_over(root: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(root)
    with pytest.raises(FormatError, match=message) as caught:
        salads50.load(root)
    assert "\n" not in str(caught.value)
    dataset = salads50.load(root, skip_bad=True)
    assert dataset.problems == (str(caught.value),)
    assert all(set(split.train) | set(split.test) <= {r.id for r in dataset.recordings} for split in dataset.splits)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda root: (root / "mapping.txt").unlink(), "cannot read .*mapping.txt"),
        (lambda root: (root / "groundTruth").rename(root / "gt"), "groundTruth is not a folder"),
        (lambda root: (root / "scores").rename(root / "s"), "scores is not a folder"),
        (lambda root: write(root / "mapping.txt", "0 a\n2 b\n"), "without a gap"),
        (lambda root: write(root / "mapping.txt", "0 a\nb\n"), "mapping.txt, line 2"),
        (lambda root: write(root / "mapping.txt", "0 a\n0 b\n"), "line 2: class '0 b' is there already"),
    ],
)
def test_what_nothing_can_go_without(root: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(root)
    for skip_bad in (False, True):
        with pytest.raises(Graph2VidError, match=message):
            salads50.load(root, skip_bad=skip_bad)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="nowhere is not a folder"):
        salads50.load(tmp_path / "nowhere")


def test_real_salads() -> None:
    dataset = salads50.load(real_data("salads50"))
    assert (dataset.problems, dataset.remarks) == ((), ())
    assert len(dataset.tasks["salads50"].steps) == 17
    sizes = []
    for split in dataset.splits:
        orders = [dataset.recording(name).order for name in split.train]
        sizes.append(TSortGraph.compile(FlowGraph.mine(orders, dataset.tasks["salads50"].steps)).n_states)
    assert 10_000 < np.mean(sizes) < 40_000
