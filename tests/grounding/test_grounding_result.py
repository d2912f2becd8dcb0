"""The file format of groundings."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graph2vid.errors import FormatError, Graph2VidError, InputError
from graph2vid.evidence import Cue
from graph2vid.flow import FlowGraph
from graph2vid.grounding import GroundedSegment, Grounding

FLOW = FlowGraph.chain([("a", "Äpfel schälen"), ("b", "mix"), ("z", "serve")], "Törtchen")
FOUND = Grounding(
    flow=FLOW,
    segments=(
        GroundedSegment(0, "a", "Äpfel schälen", 0.1, 0.30000000000000004, 0.1 + 0.2),
        GroundedSegment(1, "b", "mix", 0.4, 0.5),
    ),
    not_shown=(2,),
    order=(0, 1),
    cost=12.125,
    labels=np.array([-1, 0, 0, -1, 1]),
    clip_seconds=0.1,
    options={"match": "likelihood", "skip": None},
)


def test_what_is_saved_is_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    FOUND.save(path)
    again = Grounding.load(path)
    assert again == FOUND and again.flow == FLOW and again.segments == FOUND.segments
    assert again.labels.tolist() == FOUND.labels.tolist() and again.options == FOUND.options
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["format"] == "graph2vid-grounding" and document["version"] == 1
    assert document["graph2vid"] == FOUND.version and document["not_shown"] == ["z"]
    assert document["segments"][0]["step"] == "a" and document["duration"] == 0.5
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.json"]


def test_video_words_and_evidence_are_kept(tmp_path: Path) -> None:
    evidence = np.linspace(-2.0, 3.0, 15).reshape(3, 5)
    full = replace(FOUND, cues=(Cue(0.0, 0.2, "peel “them”"),), evidence=evidence)
    full.save(tmp_path / "r.json")
    again = Grounding.load(tmp_path / "r.json")
    assert again == full and again.cues == full.cues and again.evidence is not None
    np.testing.assert_allclose(again.evidence, evidence, atol=5 / 509)
    assert not again.evidence.flags.writeable
    assert not {"video", "cues", "evidence"} & set(FOUND.to_json())  # as files of older versions


def test_a_video_beside_the_file_moves_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    found = replace(FOUND, video="a/film.mp4")
    found.save("a/r.json")
    assert json.loads((tmp_path / "a" / "r.json").read_text(encoding="utf-8"))["video"] == "film.mp4"
    (tmp_path / "a").rename(tmp_path / "c")
    assert Grounding.load("c/r.json").video == str(Path("c") / "film.mp4")
    found.save("b/r.json")
    assert Grounding.load("b/r.json").video == str(tmp_path / "a" / "film.mp4")
    replace(FOUND, video="https://example.org/a.mp4").save("r.json")
    assert Grounding.load("r.json").video == "https://example.org/a.mp4"


def test_evidence_of_another_shape_is_refused() -> None:
    with pytest.raises(InputError, match=r"shape \(2, 5\) and must have \(3, 5\)"):
        replace(FOUND, evidence=np.zeros((2, 5)))


def test_groundings_are_values() -> None:
    assert Grounding.from_json(FOUND.to_json()) == FOUND
    assert Grounding.from_json(FOUND.to_json() | {"cost": 1}) != FOUND
    assert object() != FOUND
    with pytest.raises(ValueError, match="read-only"):
        FOUND.labels[0] = 1
    with pytest.raises(AttributeError):
        FOUND.cost = 2.0  # type: ignore[misc]


def test_unknown_keys_are_ignored() -> None:
    assert Grounding.from_json(FOUND.to_json() | {"note": "by hand"}) == FOUND


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"version": 2},
            "has graph2vid-grounding version 2; this graph2vid reads up to 1: install a newer one",
        ),
        ({"format": "graph2vid-flow"}, "is not a graph2vid-grounding file"),
        ({"flow": None}, "'flow' must be a flow graph, not None"),
        ({"flow": {"format": "graph2vid-flow", "version": 9}}, "r.json, flow has graph2vid-flow version 9"),
        ({"clip_seconds": 0}, "'clip_seconds' must be positive, not 0.0"),
        ({"clip_seconds": "1"}, "'clip_seconds' must be a number, not '1'"),
        ({"cost": True}, "'cost' must be a number, not True"),
        ({"cost": float("nan")}, "NaN is no number of JSON"),
        ({"labels": [0, 3]}, r"'labels\[1\]' must be a whole number from -1 to 2, not 3"),
        ({"labels": [0.0]}, r"'labels\[0\]'"),
        ({"labels": 3}, "'labels' must be a list of step indices, not 3"),
        ({"order": ["q"]}, "'order' must be the id of a step of the flow, not 'q'"),
        ({"not_shown": [0]}, "'not_shown' must be the id of a step"),
        ({"segments": [3]}, r"'segments\[0\]' must be an object, not 3"),
        ({"segments": [{"step": "a", "start": 0}]}, r"'segments\[0\].end' must be a number, not None"),
        (
            {"segments": [{"step": "a", "start": 2, "end": 1}]},
            r"'segments\[0\].end' must be later than the start",
        ),
        ({"segments": [{"step": ["a"], "start": 2, "end": 1}]}, r"'segments\[0\].step'"),
        ({"options": []}, r"'options' must be an object, not \[\]"),
        ({"video": 3}, "'video' must be a path or a URL, not 3"),
        ({"cues": {}}, "'cues' must be a list"),
        ({"cues": [{"start": 0, "end": 1}]}, r"'cues\[0\].text' is missing"),
        ({"cues": [{"start": "0", "end": 1, "text": ""}]}, r"'cues\[0\].start' must be a number"),
        ({"evidence": []}, r"'evidence' must be an object with 'shape'"),
        (
            {"evidence": {"shape": [1, 1], "range": [0, 1], "bytes": "AA=="}},
            "'evidence.shape' must be 3 steps × 5",
        ),
    ],
)
def test_bad_files_are_refused_by_name_and_place(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(FOUND.to_json() | change), encoding="utf-8")
    with pytest.raises(FormatError, match=message) as caught:
        Grounding.load(path)
    assert str(path) in str(caught.value)


def test_missing_parts_are_named() -> None:
    for key in FOUND.to_json():
        if key not in ("duration", "count", "steps"):  # which follow from the rest
            document = FOUND.to_json()
            del document[key]
            with pytest.raises(FormatError, match=key):
                Grounding.from_json(document)


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))  # root may write everywhere

    monkeypatch.setattr("pathlib.Path.touch", refuse)
    with pytest.raises(Graph2VidError, match=r"cannot write .*: Permission denied"):
        FOUND.save(tmp_path / "r.json")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Graph2VidError, match=r"cannot write .*: No such file or directory"):
        FOUND.save(tmp_path / "nowhere" / "r.json")
