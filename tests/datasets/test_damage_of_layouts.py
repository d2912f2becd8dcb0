"""Damaged folders of every layout: read, or refused in one line; nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graph2vid.datasets import Dataset, captaincook4d, captioned, crosstask, featured, framewise, salads50, youcook2
from graph2vid.errors import Graph2VidError
from layouts import FLOW, segmentation, write, write_array
from layouts import captaincook4d as write_captaincook4d
from layouts import captioned as write_captioned
from layouts import crosstask as write_crosstask
from layouts import framewise as write_framewise
from layouts import youcook2 as write_youcook2


def damaged(root: Path, seed: int) -> tuple[Path, bytes]:
    """Damage one file: cut it, flip bytes, insert some, double it, or put another in its place; return what it was."""
    chance = random.Random(seed)
    files = sorted(path for path in root.rglob("*") if path.is_file())
    path = chance.choice(files)
    before = path.read_bytes()
    content = bytearray(before)
    place = chance.randrange(len(content) or 1)
    match chance.randrange(6):
        case 0:
            del content[place:]
        case 1:
            for _ in range(chance.randint(1, 8)):
                content[chance.randrange(len(content))] = chance.randrange(256)
        case 2:
            content[place:place] = chance.choice([b"\n", b"\xff\xfe", b"99 x\n", b"nan,", b"\x00" * 9, "é".encode()])
        case 3:
            del content[place : place + chance.randint(1, 20)]
        case 4:
            content = bytearray(chance.choice(files).read_bytes())
        case _:
            content = content * 2
    path.write_bytes(bytes(content))
    return path, before


def write_frames(root: Path) -> Path:
    """Frame-wise scores, predicted labels, a table of activities and a flow graph."""
    whole = write_framewise(root)
    write(whole / "activities.csv", "".join(f"{path.stem},{path.stem[3:]}\n" for path in (whole / "scores").iterdir()))
    write(whole / "tea.flow", "boil: boil\npour: pour\nboil -> pour\n")
    for video in ("P1_tea", "P3_salad"):
        labels = (whole / "groundTruth" / f"{video}.txt").read_text().split()
        (whole / "scores" / f"{video}.npy").unlink()
        write(whole / "scores" / f"{video}.txt", " ".join(labels))
    return whole


def write_features(root: Path) -> Path:
    """Features of clips and steps, and a table of annotations."""
    write(root / "salad.flow", FLOW)
    write_array(root / "steps.npy", np.eye(5)[:3])
    for video in ("a", "b"):
        write_array(root / "clips" / f"{video}.npy", np.repeat(np.eye(5)[:3], 4, axis=0))
    write(root / "annotations.csv", "video,step,start,end\na,tomato,0,4\na,3,8,12\nb,Add salt.,4,8\n")
    return root


def write_crosstask_features(root: Path) -> Path:
    """CrossTask with features in place of captions."""
    whole = write_crosstask(root)
    for video in ("a_1", "-b"):
        write_array(whole / "crosstask_release" / "features" / f"{video}.npy", np.ones((3, 4)))
    write_array(whole / "crosstask_release" / "step_features" / "101.npy", np.eye(4)[:3])
    return whole


Layout = tuple[Callable[[Path], Path], Callable[[Path], Dataset]]
LAYOUTS: dict[str, Layout] = {
    "framewise": (write_frames, lambda root: framewise.load(root, scores="probabilities")),
    "salads50": (segmentation, salads50.load),
    "featured": (write_features, featured.load),
    "crosstask": (write_crosstask, crosstask.load),
    "crosstask features": (write_crosstask_features, lambda root: crosstask.load(root, evidence="features")),
    "captioned": (write_captioned, captioned.load),
    "youcook2": (write_youcook2, youcook2.load),
    "captaincook4d": (write_captaincook4d, captaincook4d.load),
}
WITH_ARRAYS = ("framewise", "salads50", "featured", "crosstask features")


@pytest.mark.filterwarnings("ignore:Reading")  # numpy's, of headers as Python 2 wrote them
@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("count", [40, pytest.param(5000, marks=pytest.mark.slow)])
def test_damaged_folders_are_read_or_refused_in_one_line(tmp_path: Path, name: str, count: int) -> None:
    made, load = LAYOUTS[name]
    whole = made(tmp_path / "whole")
    refused = 0
    for seed in range(count):
        path, before = damaged(whole, seed)
        try:
            dataset = load(whole)
            for recording in dataset.recordings if name in WITH_ARRAYS else ():
                dataset.evidence(recording)
        except Graph2VidError as error:
            refused += 1
            assert "\n" not in str(error) and len(str(error)) < 1000, seed
        path.write_bytes(before)
    load(whole)
    assert refused > count / 10
