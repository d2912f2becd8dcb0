"""``graph2vid ground`` as a user runs it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from graph2vid.cli import main
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding

SHOWN = [-1, 1, 1, -1, 0, 0, 2, 2, -1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    flow = FlowGraph.from_edges(
        [("t", "cut tomato"), ("c", "cut cucumber"), ("m", "mix")], [("t", "m"), ("c", "m")], "Salad"
    )
    flow.save("flow.json")
    scores = np.zeros((3, len(SHOWN)), dtype=np.float32)
    for clip, step in enumerate(SHOWN):
        if step >= 0:
            scores[step, clip] = 6.0
    np.save("s.npy", scores)
    np.save("clips.npy", np.vstack([np.eye(3)[label] if label >= 0 else np.ones(3) for label in SHOWN]))
    np.save("steps.npy", np.eye(3))
    return tmp_path


def run(*arguments: str) -> int:
    return main(["ground", "flow.json", *arguments])


def test_the_form_of_the_manual(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--scores", "s.npy", "--clip-seconds", "1", "-o", "result.json") == 0
    shown = capsys.readouterr().out
    assert "Salad" in shown and "order found 2 → 1 → 3" in shown and "\x1b" not in shown
    found = Grounding.load("result.json")
    assert found.labels.tolist() == SHOWN
    assert run("--clips", "clips.npy", "--steps", "steps.npy", "--json", "other.json") == 0
    assert Grounding.load("other.json").labels.tolist() == SHOWN


def test_options_reach_the_computation(folder: Path) -> None:
    np.save("t.npy", np.load("s.npy").T)
    np.save("level.npy", np.full(9, 3.0))
    arguments = ["--scores", "t.npy", "--transpose", "--clip-seconds", "2", "--offset", "10", "-o", "r.json"]
    assert run(*arguments, "--drop", "prototype:level.npy", "--match", "likelihood_bg", "--temperature", "2") == 0
    found = Grounding.load("r.json")
    assert found.offset == 10.0 and found.duration == 18.0
    assert found.options["match"] == "likelihood_bg" and found.options["drop"] == "prototype"
    assert found.options["temperature"] == 2.0
    assert run(*arguments, "--skip", "constant:1", "--forbid", "t=0-100", "--no-contiguous") == 0
    assert Grounding.load("r.json").not_shown == (0,)
    assert run(*arguments, "--pin", "t=0:10-0:12.5", "--background", "26-", "--preset", "released") == 0
    found = Grounding.load("r.json")
    assert found.segments_of("t")[0].end == 12.0 and found.options["preset"] == "released"


def test_not_shown_is_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--scores", "s.npy", "--skip", "1", "--forbid", "t=0-100") == 0
    assert "not shown" in capsys.readouterr().out


def test_help_names_everything(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help-all") == 0
    shown = capsys.readouterr().out
    for option in ("--scores", "--clips", "--steps", "--transpose", "--pin", "--json", "--skip"):
        assert option in shown


BAD = np.array([[0.0, 1.0], [2.0, math.nan], [0.0, 0.0]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the video too"),
        (["--scores", "missing.npy"], "cannot read missing.npy: No such file or directory"),
        (["--scores", "flow.json"], "flow.json is not a .npy file"),
        (["--scores", "nan.npy"], "scores is nan at step 1, clip 1"),
        (["--scores", "minus.npy"], "scores is -inf at step 0, clip 2"),
        (["--scores", "t.npy"], "(9, 3), but the flow graph has 3 steps"),
        (["--scores", "none.npy"], "there are no clips"),
        (["--scores", "short.npy"], "no alignment is possible: the video has 2 clips, but 3 steps"),
        (["--scores", "s.npy", "-o", "nowhere/r.json"], "cannot write nowhere/r.json"),
        (["--scores", "s.npy", "-o", "."], "cannot write"),
        (["--scores", "s.npy", "--pin", "t"], "'t' must be STEP=START-END"),
        (["--scores", "s.npy", "--pin", "x=1-2"], "unknown step 'x'"),
        (["--scores", "s.npy", "--pin", "t=2-1"], "ends before it begins"),
        (["--scores", "s.npy", "--pin", "t=50-60"], "no clip has its middle in this span"),
        (["--scores", "s.npy", "--pin", "m=0-1"], "no alignment is possible"),
        (["--scores", "s.npy", "--drop", "some"], "unknown drop policy 'some'"),
        (["--scores", "s.npy", "--drop", "vector:missing.npy"], "cannot read missing.npy"),
        (["--scores", "s.npy", "--clip-seconds", "0"], "clip_seconds must be a number above 0"),
        (["--scores", "s.npy", "--clip-seconds", "long"], "--clip-seconds"),
        (["--clips", "clips.npy", "--steps", "s.npy"], "(3, 9) and clips (9, 3) must agree on axis 1"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    np.save("nan.npy", BAD)
    np.save("minus.npy", np.array([[0.0, 0.0, -math.inf]] * 3))
    np.save("t.npy", np.load("s.npy").T)
    np.save("none.npy", np.zeros((3, 0)))
    np.save("short.npy", np.zeros((3, 2)))
    before = sorted(path.name for path in folder.iterdir())
    out = [] if "-o" in arguments else ["-o", "result.json"]
    assert run(*arguments, *out) == 2
    shown = capsys.readouterr()
    assert message in shown.err and shown.err.count("\n") == 1 and "Traceback" not in shown.err
    assert sorted(path.name for path in folder.iterdir()) == before


def test_bad_flow_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(Path("flow.json").read_text(encoding="utf-8"))
    for change, message in (
        ({"version": 99}, "version 99"),
        ({"format": "else"}, "no recipe in this JSON"),
        ({"steps": [], "edges": []}, "no steps"),
    ):
        Path("flow.json").write_text(json.dumps(document | change), encoding="utf-8")
        assert run("--scores", "s.npy") == 2
        shown = capsys.readouterr().err
        assert message in shown and shown.count("\n") == 1


TOAST = "1. Whisk the eggs with the milk.\n2. Dip the bread.\n3. Fry the bread in butter.\n"
SHELF = "1. Saw the board.\n2. Sand the edges.\n3. Screw the bracket to the wall.\n"
SAID = """WEBVTT

00:01.000 --> 00:04.000
today we make french toast

00:06.000 --> 00:10.000
whisk two eggs with some milk

00:12.000 --> 00:16.000
dip your bread into it

00:20.000 --> 00:25.000
and fry the bread in a lot of butter
"""


def test_of_several_procedures_the_best_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    monkeypatch.chdir(tmp_path)
    for name, text in {"toast.txt": TOAST, "shelf.txt": SHELF, "said.vtt": SAID}.items():
        Path(name).write_text(text, encoding="utf-8")
    both = ["shelf.txt", "toast.txt", "said.vtt", "--parser", "linear", "-o", "r.json"]
    assert main(["ground", *both]) == 0
    assert len(Grounding.load("r.json").segments_of(2)) == 1
    assert "butter" in Grounding.load("r.json").flow.texts[2]
    told = capsys.readouterr().err
    assert "fits best" in told and "warning" not in told
    assert main(["ground", "shelf.txt", "said.vtt", "--parser", "linear"]) == 0
    assert "warning: the transcript hardly goes with this procedure" in capsys.readouterr().err
