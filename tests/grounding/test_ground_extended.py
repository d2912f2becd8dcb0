"""Returns, least lengths and durations through ``ground`` and its command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from graph2vid.alignment import Durations
from graph2vid.cli import main
from graph2vid.errors import FormatError, InputError
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding, ground
from graph2vid.grounding.durations_file import durations_of, read_durations

FLOW = FlowGraph.from_edges([("t", "cut tomato"), ("c", "cut cucumber"), ("m", "mix")], [("t", "m"), ("c", "m")])
SHOWN = [0, 0, 0, 1, 1, 1, 0, 0, 0, 2, 2, 2]


def scores() -> np.ndarray:
    made = np.zeros((3, len(SHOWN)))
    made[SHOWN, np.arange(len(SHOWN))] = 6.0
    return made


def test_returns_are_segments() -> None:
    found = ground(FLOW, scores=scores(), drop=3.0, repeat=1.0)
    assert [segment.id for segment in found.segments] == ["t", "c", "t", "m"]
    assert all(segment.posterior is not None and segment.posterior > 0.5 for segment in found.segments)
    assert found.options["repeat"] == "constant:1"
    assert [s.id for s in ground(FLOW, scores=scores(), drop=3.0).segments] != ["t", "c", "t", "m"]
    by_policy = ground(FLOW, scores=scores(), drop=3.0, repeat="percentile:10")
    assert by_policy.options["repeat"] == "percentile:10"
    with pytest.raises(InputError, match="repeat policy"):
        ground(FLOW, scores=scores(), repeat="seldom")


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FLOW.save("flow.json")
    np.save("s.npy", scores())
    write("d.json", {"t": {"median": 3.0, "spread": 0.3}})
    arguments = ["--repeat", "2", "--min-clips", "2", "--durations", "d.json", "-o", "r.json"]
    assert main(["ground", "flow.json", "--scores", "s.npy", "--drop", "3", *arguments]) == 0
    found = Grounding.load("r.json")
    assert found.labels.tolist() == SHOWN
    assert found.options["durations"] is True
    assert main(["ground", "flow.json", "--scores", "s.npy", "--min-clips", "20"]) == 2


def write(path: str | Path, steps: dict[str, object], **more: object) -> None:
    document = {"format": "graph2vid-durations", "version": 1, "steps": steps} | more
    Path(path).write_text(json.dumps(document), encoding="utf-8")


def test_durations_are_read_in_seconds(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    write(path, {"t": {"median": 20.0, "spread": 0.4}}, weight=2.0)
    found = read_durations(path, FLOW, 2.0)
    expected = Durations.log_normal([10.0], [0.4], weight=2.0)
    assert np.allclose(found.length[0], expected.length[0])
    assert not found.length[1:].any() and not found.tail[1:].any()
    write(path, {}, others={"median": 4.0, "spread": 0.5})
    assert (read_durations(path, FLOW, 1.0).length.argmin(axis=1) < 5).all()
    least = durations_of(FLOW, 1.0, path, 3)
    assert least is not None and least.at_least.tolist() == [3, 3, 3]
    assert durations_of(FLOW, 1.0, None, 1) is None


@pytest.mark.parametrize(
    ("steps", "more", "message"),
    [
        ({"x": {"median": 1.0, "spread": 1.0}}, {}, "steps: unknown step 'x'"),
        ({"t": {"median": 1.0}}, {}, "t: a median (seconds) and a spread are needed"),
        ({"t": {"median": -1.0, "spread": 1.0}}, {}, "t.median must be a number from 1e-06"),
        ({}, {}, "it says of no step how long it lasts"),
        ({"t": {"median": 1.0, "spread": 1.0}}, {"weight": "heavy"}, "weight must be a number"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, steps: dict[str, object], more: dict[str, object], message: str) -> None:
    path = tmp_path / "d.json"
    write(path, steps, **more)
    with pytest.raises(FormatError) as caught:
        read_durations(path, FLOW, 1.0)
    assert message in str(caught.value)
