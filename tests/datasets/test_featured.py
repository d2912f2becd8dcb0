"""A plain folder of videos with features of one's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graph2vid.cli import main
from graph2vid.datasets import featured
from graph2vid.errors import FormatError, InputError
from layouts import FLOW, write, write_array

STEPS = np.eye(5)[:3]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "salad.flow", FLOW)
    write_array(tmp_path / "steps.npy", STEPS)
    rows = ["video,step,start,end"]
    for video in range(6):
        order = [1, 0, 2] if video % 2 else [0, 1, 2]
        write_array(tmp_path / "clips" / f"v{video}.npy", np.repeat(STEPS[order], 4, axis=0))
        rows += [
            f"v{video},{('tomato', 'Add salt.', '3')[step]},{4 * at},{4 * at + 4}" for at, step in enumerate(order)
        ]
    write(tmp_path / "annotations.csv", "\n".join(rows))
    return tmp_path


def test_evaluated_in_one_line(root: Path) -> None:
    saved = root / "r.json"
    command = ["evaluate", "featured", "--data", str(root), "--drop", "constant:1", "--workers", "1"]
    assert main([*command, "--json", str(saved)]) == 0
    rows = {row["method"]: row for row in json.loads(saved.read_text())["rows"]}
    assert rows["graph:manual"]["acc"] == 100 and rows["linear"]["acc"] < 100


def test_trained_and_grounded_in_two_more_lines(root: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    model, saved = str(root / "features"), root / "r.json"
    assert (
        main(["train", "features", "--dataset", "featured", "--data", str(root), "--epochs", "1", "--out", model]) == 0
    )
    arrays = ["--clips", str(root / "clips" / "v1.npy"), "--steps", str(root / "steps.npy"), "--model", model]
    assert main(["ground", str(root / "salad.flow"), *arrays, "--drop", "constant:1", "-o", str(saved)]) == 0
    assert json.loads(saved.read_text())["labels"] == [1] * 4 + [0] * 4 + [2] * 4


def test_reads_either_axis_and_both_comparisons(root: Path) -> None:
    dataset = featured.load(root)
    assert dataset.tasks["salad"].steps == ("cut the tomato", "add salt", "stir")
    write_array(root / "clips" / "v0.npy", 2 * np.load(root / "clips" / "v0.npy").T)
    evidence = featured.load(root, comparison="dot").evidence(dataset.recording("v0"))
    assert evidence.kind == "scores" and evidence.similarity[0, 0] == 2
    write_array(root / "clips" / "v0.npy", np.eye(5))
    with pytest.raises(FormatError, match=r"v0.npy has shape \(5, 5\): state whether"):
        featured.load(root)
    assert featured.load(root, axis="clips,dims", clip_seconds=4.0).recording("v0").n_clips == 5


def test_clips_are_as_long_as_their_video(root: Path) -> None:
    write(root / "durations.csv", "video,seconds\nv0,12.9\nv1,11\n")  # clips are whole, and so may be missing
    assert len(featured.load(root).recordings) == 6
    with pytest.raises(InputError, match=r"v0: 12 clips of 3.2 s end at 38.4 s, but the video lasts 12.9 s: clip_seco"):
        featured.load(root, clip_seconds=3.2)
    with pytest.raises(InputError, match=r"end at 6 s, but the video lasts 12.9 s: clip_seconds=1.07 would fit"):
        featured.load(root, clip_seconds=0.5)
    (root / "durations.csv").unlink()
    assert len(featured.load(root, clip_seconds=3.2).recordings) == 6  # the videos may go on after the last step
    with pytest.raises(InputError, match=r"6 s, but an annotation ends at 12 s: clip_seconds=1 would fit at the least"):
        featured.load(root, clip_seconds=0.5)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda root: (root / "salad.flow").unlink(), "has 0 flow graphs"),
        (lambda root: (root / "steps.npy").unlink(), "steps.npy: write one .* or say -o embedder=NAME"),
        (lambda root: write_array(root / "steps.npy", STEPS[:2]), r"shape \(2, 5\); it should have a row .* 3 steps"),
        (lambda root: write(root / "annotations.csv", ""), "annotations.csv has no annotations"),
        (lambda root: write(root / "annotations.csv", "v0,fry,0,1"), "line 1: there is no step 'fry' in"),
        (lambda root: write(root / "annotations.csv", "v9,1,0,1"), "video v9 is annotated but has no features"),
        (lambda root: write_array(root / "clips" / "v0.npy", np.full((4, 5), np.nan)), "v0.npy holds numbers that are"),
        (lambda root: write_array(root / "clips" / "v0.npy", np.zeros((4, 6))), r"v0.npy has shape \(4, 6\) but"),
    ],
)
def test_bad_input_is_named(root: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(root)
    with pytest.raises(FormatError, match=message) as caught:
        featured.load(root)
    assert "\n" not in str(caught.value)
