"""The file format of groundings."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graph2vid.errors import FormatError, Graph2VidError
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
        ({"clip_seconds": "1"}, "'clip_seconds' must be a finite number, not '1'"),
        ({"cost": True}, "'cost' must be a finite number, not True"),
        ({"cost": float("nan")}, "'cost' must be a finite number, not nan"),
        ({"labels": [0, 3]}, r"'labels\[1\]' must be a whole number from -1 to 2, not 3"),
        ({"labels": [0.0]}, r"'labels\[0\]'"),
        ({"labels": 3}, "'labels' must be a list of step indices, not 3"),
        ({"order": ["q"]}, "'order' must be the id of a step of the flow, not 'q'"),
        ({"not_shown": [0]}, "'not_shown' must be the id of a step"),
        ({"segments": [3]}, r"'segments\[0\]' must be an object, not 3"),
        ({"segments": [{"step": "a", "start": 0}]}, r"'segments\[0\].end' must be a finite number, not None"),
        (
            {"segments": [{"step": "a", "start": 2, "end": 1}]},
            r"'segments\[0\].end' must be later than the start",
        ),
        ({"segments": [{"step": ["a"], "start": 2, "end": 1}]}, r"'segments\[0\].step'"),
        ({"options": []}, r"'options' must be an object, not \[\]"),
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
        if key not in ("duration",):
            document = FOUND.to_json()
            del document[key]
            with pytest.raises(FormatError, match=key):
                Grounding.from_json(document)


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))  # root may write everywhere

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(Graph2VidError, match=r"cannot write .*: Permission denied"):
        FOUND.save(tmp_path / "r.json")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Graph2VidError, match=r"cannot write .*: No such file or directory"):
        FOUND.save(tmp_path / "nowhere" / "r.json")
