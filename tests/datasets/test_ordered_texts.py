"""Procedures with their true precedences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graph2vid.datasets import read_asynchow, read_wikihow_fg
from graph2vid.errors import FormatError
from layouts import write

TASK = {
    "id": "a1",
    "title": "How to go",
    "steps": ["Stand up", "Walk"],
    "before": [[0, 1]],
    "seconds": [[1, 2], [3, 4]],
}


def test_asynchow(tmp_path: Path) -> None:
    write(tmp_path / "tasks.jsonl", json.dumps(TASK) + "\n")
    (text,) = read_asynchow(tmp_path)
    assert (text.id, text.title, text.steps, text.before) == ("a1", "How to go", ("Stand up", "Walk"), {(0, 1)})


def test_wikihow_fg_keeps_what_points_forward(tmp_path: Path) -> None:
    steps = [[{"token": word} for word in line.split()] for line in ("Dig a hole .", "Fill it .")]
    flows = [["0-0-0", "1-0-1", "T-eq"], ["1-0-0", "0-0-1", "Targ"], ["0-0-2", "0-0-0", "Targ"]]
    write(tmp_path / "Garden" / "12_dig-a-hole.json", json.dumps({"steps": steps, "flows": flows}))
    (text,) = read_wikihow_fg(tmp_path)
    assert (text.title, text.domain, text.before) == ("dig a hole", "Garden", {(0, 1)})
    assert text.steps == ("Dig a hole .", "Fill it .")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"before": [[0, 5]]}, "line 1: a precedence names a step that is not among the 2"),
        ({"before": [[0]]}, "line 1"),
        ({"steps": None}, "line 1"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, change: dict[str, object], message: str) -> None:
    write(tmp_path / "tasks.jsonl", json.dumps(TASK | change))
    with pytest.raises(FormatError, match=message):
        read_asynchow(tmp_path)


def test_missing_parts(tmp_path: Path) -> None:
    write(tmp_path / "tasks.jsonl", "{}")
    with pytest.raises(FormatError, match="there is no 'before'"):
        read_asynchow(tmp_path)
    with pytest.raises(FormatError, match="is not a folder"):
        read_wikihow_fg(tmp_path / "none")
