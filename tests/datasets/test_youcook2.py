"""YouCook2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graph2vid.datasets import youcook2
from graph2vid.errors import FormatError
from layouts import real_data, write_json
from layouts import youcook2 as write_youcook2

pytest.importorskip("wordllama", reason="needs graph2vid[text]")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_youcook2(tmp_path)


def test_reads_everything(root: Path) -> None:
    dataset = youcook2.load(root, narration="plain")
    assert list(dataset.tasks) == ["va", "vb"]
    task = dataset.tasks["va"]
    assert (task.title, task.procedure) == ("salad", ("cut the tomato", "stir everything"))
    assert [recording.n_clips for recording in dataset.recordings] == [10, 9]
    assert [(row.step, row.start) for row in dataset.recordings[0].annotations] == [(0, 1), (1, 5)]
    evidence = dataset.evidence(dataset.recordings[1])  # from a .srt file
    assert evidence.similarity.shape == (2, 9)
    assert evidence.similarity[0, 1:4].min() > 0.9


def test_released_form(root: Path) -> None:
    videos = json.loads((root / "annotations.json").read_text())
    for video, subset in (("va", "training"), ("vb", "validation")):
        videos[video]["subset"] = subset
        del videos[video]["duration"]
    write_json(root / "annotations.json", {"database": videos})
    dataset = youcook2.load(root)
    assert [recording.n_clips for recording in dataset.recordings] == [8, 8]
    assert (dataset.splits[0].train, dataset.splits[0].test) == (("va",), ("vb",))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"annotations": []}, "video vb has no procedure"),
        ({"annotations": [{"sentence": "cut"}]}, "video vb, annotation 0 has no 'segment'"),
        ({"annotations": [{"segment": [1, 2]}]}, "video vb, annotation 0 has no 'sentence'"),
        ({"annotations": [{"segment": [1], "sentence": "cut"}]}, "a segment is a start and an end"),
        ({"annotations": [{"segment": [1, 99], "sentence": "cut"}]}, "lies outside the video"),
        ({"annotations": [{"segment": [3, 1], "sentence": "cut"}]}, "before it starts"),
        ({"duration": "long"}, "the duration must be a number"),
    ],
)
def test_bad_input_is_named_or_passed_over(root: Path, change: dict[str, Any], message: str) -> None:
    path = root / "annotations.json"
    videos = json.loads(path.read_text())
    videos["vb"] |= change
    write_json(path, videos)
    with pytest.raises(FormatError, match=message) as caught:
        youcook2.load(root)
    assert str(path) in str(caught.value)
    dataset = youcook2.load(root, skip_bad=True)
    assert dataset.problems == (str(caught.value),)
    assert list(dataset.tasks) == ["va"]


def test_a_video_without_captions(root: Path) -> None:
    (root / "captions" / "va.vtt").unlink()
    with pytest.raises(FormatError, match="video va is annotated but has no captions"):
        youcook2.load(root)


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"has no annotations.json"):
        youcook2.load(tmp_path)
    write_json(tmp_path / "annotations.json", {"va": {}})
    with pytest.raises(FormatError, match="captions is not a folder"):
        youcook2.load(tmp_path)


def test_real_videos() -> None:
    dataset = youcook2.load(real_data("youcook2_narrated"))
    assert dataset.problems == ()
    evidence = dataset.evidence(dataset.recordings[0])
    assert evidence.kind == "log_odds" and 0 < evidence.similarity.max() < 10
