"""Standard output in pipes: ``-o -`` and ``--json -`` put the document there and nothing else; a reader may leave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from graph2vid.cli import main
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding, ground
from graph2vid.sample import load_narrated

FILES = load_narrated().files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    flow = FlowGraph.from_edges([("a", "cut [b]it[/b]"), ("b", "mix")], [("a", "b")], "Salad")
    flow.save("flow.json")
    Path("recipe.txt").write_text("1. Cut it.\n2. Mix it.\n", encoding="utf-8")
    scores = np.array([[3.0, 3.0, 0.0, 0.0], [0.0, 0.0, 3.0, 3.0]])
    np.save("s.npy", scores)
    ground(flow, scores=scores, drop="constant:1").save("result.json")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "kind", "shown"),
    [
        ("ground flow.json --scores s.npy -o -", "graph2vid-grounding", "steps shown"),
        ("ground flow.json --scores s.npy --json -", "graph2vid-grounding", "steps shown"),
        ("ground flow.json --scores s.npy --json=-", "graph2vid-grounding", "steps shown"),
        ("parse recipe.txt --parser linear -o -", "graph2vid-flow", "one legal order"),
        ("parse recipe.txt --parser linear --json -", "graph2vid-parse", "one legal order"),
        ("flow show flow.json --json -", "graph2vid-flow-show", "one legal order"),
        ("flow check flow.json --json -", "graph2vid-flow-check", "no problems"),
        ("check result.json --json -", "graph2vid-check", "steps shown"),
        ("export result.json --to json -o -", "graph2vid-grounding", ""),
        ("export result.json --to json", "graph2vid-grounding", ""),
        ("complexity flow.json --json -", "graph2vid-complexity", "tSort nodes"),
        ("cache --json -", "graph2vid-cache-summary", "entries"),
        (
            "evaluate synthetic --methods argmax,graph -o recordings=2 -o tasks=1 --folds 2 --json -",
            None,
            "argmax",
        ),
    ],
)
def test_stdout_holds_the_document_alone(
    folder: Path, capfd: pytest.CaptureFixture[str], command: str, kind: str | None, shown: str
) -> None:
    before = sorted(folder.iterdir())
    status = main(command.split())
    written = capfd.readouterr()
    assert status == 0, written.err
    document = json.loads(written.out)
    assert kind is None or document["format"] == kind
    assert shown in written.err and "wrote -" not in written.err
    assert sorted(folder.iterdir()) == before


def test_pictures_go_to_stdout_too(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["flow", "draw", "flow.json", "-o", "-"]) == 0
    written = capfd.readouterr()
    assert written.out.startswith("<svg") and written.out.rstrip().endswith("</svg>") and written.err == ""


def test_an_error_leaves_stdout_empty(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["ground", "flow.json", "--scores", "missing.npy", "--json", "-"]) == 2
    written = capfd.readouterr()
    assert written.out == "" and written.err.count("\n") == 1


def test_ground_says_what_it_wrote(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    files = ["-o", "r.json", "--report", "r.html", "--export", "vtt"]
    assert main(["ground", "flow.json", "--scores", "s.npy", *files]) == 0
    written = capfd.readouterr()
    assert written.err == "wrote r.json\nwrote r.html\nwrote r.chapters.vtt\n"
    assert "wrote" not in written.out and "steps shown" in written.out
    assert main(["ground", "flow.json", "--scores", "s.npy", "-o", "-", "--export", "vtt"]) == 0
    written = capfd.readouterr()
    assert Grounding.from_json(json.loads(written.out)).order == (0, 1)
    assert "wrote flow.chapters.vtt\n" in written.err


def through(command: list[str], reader: str, **variables: str) -> tuple[int, str, str]:
    """Run ``graph2vid COMMAND | READER``; return the status of the command, what came through, and its stderr."""
    script = f'"$@" {reader}; exit "${{PIPESTATUS[0]}}"'
    done = subprocess.run(
        ["bash", "-c", script, "bash", sys.executable, "-m", "graph2vid", *command],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | variables,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_pipe_gets_plain_lines(folder: Path) -> None:
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    command = ["ground", str(FILES.text), str(FILES.captions), "--parser", "linear"]
    status, shown, told = through(command, "| cat")
    assert (status, told) == (0, "")
    assert "\x1b" not in shown and "\r" not in shown and "steps shown" in shown
    status, first, told = through(command, "| head -n 1")
    assert status in (0, 1) and told == ""  # all may have been written before the reader left
    assert first == shown.splitlines(keepends=True)[0]


@pytest.mark.parametrize("output", [[], ["-o", "-"]])
def test_a_reader_that_leaves_is_no_error(folder: Path, output: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        command = [sys.executable, "-m", "graph2vid", "ground", "flow.json", "--scores", "s.npy", "--export", "vtt"]
        done = subprocess.run([*command, *output], stdout=gone, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == ("" if output else "wrote flow.chapters.vtt\n")
    assert Path("flow.chapters.vtt").exists() != bool(output)
