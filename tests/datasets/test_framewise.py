"""Frame-wise scores of any network: what the numbers are, both axes, rates, activities, predicted labels, damage."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graph2vid.cli.evaluate_command import reader_option
from graph2vid.datasets import framewise
from graph2vid.errors import FormatError, InputError
from layouts import framewise as folder
from layouts import real_data, write, write_array


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return folder(tmp_path / "data")


def test_reads_everything_without_options(root: Path) -> None:
    dataset = pickle.loads(pickle.dumps(framewise.load(root)))
    assert sorted(dataset.tasks) == ["salad", "tea"] and dataset.recording("P1_tea").task == "tea"
    assert dataset.tasks["tea"].steps == ("cut tomato", "cut cheese", "mix", "boil", "pour")
    assert [split.name for split in dataset.splits] == ["split1", "split2", "split3"]
    assert dataset.options["scores"] == "probabilities (told from the data)"
    assert any("tell 2 activities: salad, tea" in remark for remark in dataset.remarks)
    evidence = dataset.evidence(dataset.recording("P1_salad"))
    assert evidence.similarity.shape == (5, 10)
    assert "".join(str(label + 1) for label in evidence.frames[1]) == "0111220333"
    assert np.allclose(evidence.background, np.log([0.9, *[0.02] * 5, 0.9, *[0.02] * 3]))


@pytest.mark.parametrize("kind", ["probabilities", "log-probabilities", "logits"])
def test_kinds_are_told_from_the_data(tmp_path: Path, kind: str) -> None:
    dataset = framewise.load(folder(tmp_path, kind=kind))
    assert dataset.options["scores"] == f"{kind} (told from the data)"
    expected = framewise.load(folder(tmp_path / "p"))
    for one, other in zip(dataset.recordings, expected.recordings, strict=True):
        shift = 3 if kind == "logits" else 0
        assert np.allclose(dataset.evidence(one).similarity - shift, expected.evidence(other).similarity, atol=1e-5)


def test_half_precision_and_zero_probabilities(tmp_path: Path) -> None:
    root = folder(tmp_path, kind="log-probabilities")
    path = root / "scores" / "P1_tea.npy"
    scores = np.load(path).astype(np.float16)
    scores[0, 1:] = -np.inf
    scores[0, 0] = 0
    write_array(path, scores)
    dataset = framewise.load(root)
    assert np.isfinite(dataset.evidence(dataset.recording("P1_tea")).similarity).all()


def test_one_file_of_another_kind_is_named(root: Path) -> None:
    path = root / "scores" / "P2_tea.npy"
    write_array(path, np.log(np.load(path)))
    with pytest.raises(FormatError, match=r"P2_tea.npy holds log-probabilities, most others probabilities; -o scores="):
        framewise.load(root)
    assert len(framewise.load(root, skip_bad=True).recordings) == 5
    assert framewise.load(root, scores="logits").options["scores"] == "logits"


@pytest.mark.parametrize(
    "change",
    [
        lambda scores: scores.T,
        lambda scores: scores.T[None],
        lambda scores: np.stack([np.zeros_like(scores.T), scores.T])[:, None],
        lambda scores: scores[None],
    ],
    ids=["classes,frames", "a batch of one", "stages, of which the last counts", "batch, frames, classes"],
)
def test_arrays_as_networks_write_them(root: Path, change: Callable[[np.ndarray], np.ndarray]) -> None:
    expected = framewise.load(root)
    for path in (root / "scores").glob("*.npy"):
        write_array(path, change(np.load(path)))
    dataset = framewise.load(root)
    for one in dataset.recordings:
        assert np.array_equal(dataset.evidence(one).similarity, expected.evidence(one).similarity)


@pytest.mark.parametrize("name", ["results/split_{split}/{video}", "prediction/{video}.txt"], ids=["MS-TCN", "DiffAct"])
def test_predicted_labels_are_read(root: Path, name: str) -> None:
    expected = framewise.load(root)
    frames = {one.id: expected.evidence(one).frames for one in expected.recordings}
    for split in expected.splits:
        for video in split.test:
            labels = (root / "groundTruth" / f"{video}.txt").read_text().split()
            text = "### Frame level recognition: ###\n" + " ".join(labels)
            write(root / name.format(split=split.name[-1], video=video), text)
    shutil.rmtree(root / "scores")
    dataset = framewise.load(root)
    assert dataset.options["scores"] == "labels (told from the data)"
    for one in dataset.recordings:
        assert np.array_equal(dataset.evidence(one).frames, frames[one.id])


def test_rates_may_differ_by_one_ratio(root: Path) -> None:
    for path in (root / "groundTruth").glob("*.txt"):
        write(path, "".join(f"{line}\n{line}\n" for line in path.read_text().split()))
    dataset = framewise.load(root, fps=10)
    one = dataset.recording("P1_salad")
    assert (one.n_clips, one.notes["frames"], one.clip_seconds) == (10, 20, 0.2)
    assert (one.annotations[0].start, one.annotations[0].end) == (0.2, 0.8)
    write_array(root / "scores" / "P1_salad.npy", np.load(root / "scores" / "P1_salad.npy")[:5])
    with pytest.raises(FormatError, match=r"5 frames and the ground truth 20 labels, where most videos have 0.5 to 1"):
        framewise.load(root)


def test_long_videos_are_grounded_in_clips(root: Path) -> None:
    dataset = framewise.load(root, most_clips=4)
    one = dataset.recording("P1_salad")
    evidence = dataset.evidence(one)
    assert (one.n_clips, one.clip_seconds, evidence.similarity.shape) == (4, 3.0, (5, 4))
    assert evidence.frames.shape == (2, 10) and "a clip is 3" in dataset.remarks[-1]


def test_activities_by_table_by_part_or_none(root: Path) -> None:
    for none in (("activity", "none"), reader_option("activity=none")):  # as in Python, and as -o reads it
        assert list(framewise.load(root, **dict([none])).tasks) == ["data"]
    assert sorted(framewise.load(root, activity=0).tasks) == ["P1", "P2", "P3"]
    write(root / "activities.csv", "".join(f"P{n}_{what},{what} {n}\n" for n in (1, 2, 3) for what in ("tea", "salad")))
    assert "tea 3" in framewise.load(root).tasks
    write(root / "activities.csv", "P1_tea,tea\n")
    with pytest.raises(FormatError, match=r"activities.csv does not say which activity video P1_salad shows"):
        framewise.load(root)
    with pytest.raises(InputError, match="activity=7, but the name of video P1_salad has 2 parts"):
        framewise.load(root, activity=7)


def test_flow_graphs_may_name_some_classes_and_one_twice(root: Path) -> None:
    write(root / "procedures" / "tea.flow", "boil: boil\npour: pour\nagain: boil\nboil -> pour -> again\n")
    task = framewise.load(root).tasks["tea"]
    assert task.elements["manual"] == (3, 4, 3) and len(task.flows["manual"]) == 3
    assert not framewise.load(root).tasks["salad"].flows
    write(root / "procedures" / "tea.flow", "fry: fry the egg\n")
    with pytest.raises(FormatError, match=r"step 'fry the egg' is no class of mapping.txt"):
        framewise.load(root)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scores": "odds"}, "scores is one of auto, probabilities"),
        ({"axis": "dims"}, "axis is auto, frames,classes or classes,frames, not 'dims'"),
        ({"fps": 0}, "fps must be a positive number"),
        ({"most_clips": 0}, "most_clips must be a whole number"),
        ({"background": "pause"}, "no class 'pause'"),
        ({"activity": "x"}, "activity is auto, none or the number"),
    ],
)
def test_options_are_checked(root: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        framewise.load(root, **options)


def test_axis_can_be_stated(root: Path) -> None:
    path = root / "scores" / "P1_tea.npy"
    write(root / "groundTruth" / "P1_tea.txt", "boil\n" * 6)
    write_array(path, np.load(path)[:6])
    with pytest.raises(FormatError, match=r"P1_tea.npy has shape \(6, 6\)"):
        framewise.load(root)
    assert framewise.load(root, axis=("frames", "classes")).recording("P1_tea").n_clips == 6


@pytest.mark.parametrize("name", ["salads50", "salads50_edtcn", "salads50_dilatedtcn", "salads50_tcnn"])
def test_real_scores(name: str) -> None:
    dataset = framewise.load(real_data(name) / name)
    assert (len(dataset.recordings), len(dataset.tasks), len(dataset.splits)) == (40, 1, 4)
    told = "logits" if name == "salads50" else "log-probabilities"
    assert dataset.options["scores"] == f"{told} (told from the data)"
    assert (dataset.problems, dataset.remarks) == ((), ())
