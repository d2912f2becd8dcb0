"""What would be accepted and ignored is refused, and what cannot succeed is refused before the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graph2vid.alignment import align
from graph2vid.cli import main
from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph
from graph2vid.grounding import grounding_service

SAID = """WEBVTT

00:01.000 --> 00:04.000
whisk two eggs with some milk

00:12.000 --> 00:16.000
dip your bread into it and fry it in a lot of butter
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    FlowGraph.chain(["whisk the eggs", "dip the bread", "fry the bread"]).save("flow.json")
    FlowGraph.load("flow.json").save("same.txt")
    Path("recipe.txt").write_text("1. Whisk the eggs.\n2. Dip the bread.\n", encoding="utf-8")
    Path("talk.vtt").write_text(SAID, encoding="utf-8")
    Path("film.mp4").write_bytes(b"not really")
    np.save("s.npy", np.zeros((3, 9)))
    np.save("e.npy", np.zeros((3, 4)))
    np.save("c.npy", np.zeros((9, 4)))
    return tmp_path


@pytest.fixture(autouse=True)
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whatever takes long be an error."""

    def work(*_: Any, **__: Any) -> None:
        raise AssertionError("this is work, before which the refusal should have come")

    monkeypatch.setattr(grounding_service.acquisition, "acquire", work)


def refusal(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    before = {path: path.stat().st_mtime_ns for path in Path().iterdir()}
    assert main(arguments) == 2
    shown = capfd.readouterr()
    assert shown.out == "" and shown.err.startswith("graph2vid: error: ") and shown.err.count("\n") == 1
    assert {path: path.stat().st_mtime_ns for path in Path().iterdir()} == before
    return shown.err


SCORES = ["flow.json", "--scores", "s.npy"]
TALK = ["flow.json", "talk.vtt"]
FILM = ["flow.json", "film.mp4"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*TALK, "--transpose"], "--transpose is of no use here: there are no --scores"),
        (["flow.json", "--clips", "c.npy", "--steps", "e.npy", "--transpose"], "--transpose is of no use here"),
        ([*SCORES, "--captions", "talk.vtt"], "--captions is of no use here: arrays take the place of the transcript"),
        ([*SCORES, "--embedder", "minilm"], "--embedder is of no use here"),
        ([*SCORES, "--narration-weight", "2"], "--narration-weight is of no use here"),
        ([*SCORES, "--speech-model", "small", "--language", "en"], "--language and --speech-model are of no use here"),
        ([*SCORES, "--max-hours", "2"], "--max-hours is of no use here: arrays are as long as they are"),
        ([*SCORES, "--frames-weight", "2"], "--frames-weight is of no use here: no frames are embedded"),
        ([*TALK, "--frames-weight", "1"], "--frames-weight is of no use here"),  # its default, but given
        (
            [*TALK, "--speech-model", "small"],
            "--speech-model is of no use here: with captions no speech is transcribed",
        ),
        ([*FILM, "--captions", "talk.vtt", "--speech-model", "small"], "--speech-model is of no use here"),
        ([*TALK, "--model", "m", "--embedder", "minilm"], "--embedder is of no use here: --model compares"),
        ([*TALK, "--model", "m", "--language", "en"], "--language is of no use here"),
        ([*FILM, "--model", "m", "--offset", "3"], "--offset is of no use here: it is for arrays"),
        (
            [*FILM, "--frames", "clip:x", "--narration-weight", "0", "--embedder", "minilm"],
            "--embedder is of no use here: with --narration-weight 0",
        ),
        ([*FILM, "--embed-video"], "--embed-video is of no use here: there is no report"),
        ([*SCORES, "--report", "r.html", "--embed-video"], "--embed-video is of no use here: arrays are of no video"),
        ([*SCORES, "--video", "film.mp4"], "--video is of no use here: it is named in what is written"),
        ([*SCORES, "--no-confidence", "--gamma", "2"], "--gamma is of no use here: it is for confidences"),
        ([*SCORES, "--parser", "rules"], "--parser is of no use here: no procedure is in words; flow.json is a flow"),
        (["same.txt", "flow.json", "talk.vtt", "--parser", "auto"], "--parser is of no use here: no procedure is in"),
        ([*SCORES, "--violation", "2"], "--violation is of no use here: no edge of the flow graph has a confidence"),
    ],
)
def test_ground_refuses_what_it_would_ignore(
    folder: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert message in refusal(["ground", *arguments], capfd)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*FILM, "-o", "x.mp4"], "-o x.mp4: the name must end in .json"),
        ([*FILM, "--json", "x.html"], "--json x.html: the name must end in .json"),
        ([*FILM, "--report", "x.json"], "--report x.json: the name must end in .html"),
        ([*FILM, "-o", "nowhere/x.json"], "cannot write nowhere/x.json: there is no folder nowhere"),
        ([*FILM, "-o", "."], "it is a folder"),
        ([*FILM, "--export", "vtt,nonsense"], "unknown export format 'nonsense'; known: "),
        ([*FILM, "--drop", "some"], "unknown drop policy 'some'; known: "),
        ([*FILM, "--match", "some"], "unknown match policy 'some'; known: "),
        ([*FILM, "--skip", "some:3"], "unknown skip policy 'some'"),
        ([*FILM, "--repeat", "some"], "unknown repeat policy 'some'"),
        ([*FILM, "--temperature", "0"], "temperature must be a number above 0"),
        ([*FILM, "--gamma", "-1"], "gamma must be a number above 0"),
        ([*FILM, "--clip-seconds", "0"], "clip_seconds must be a number above 0"),
        ([*FILM, "--embedder", "some"], "unknown embedder 'some'; known: "),
        ([*FILM, "--frames", "some:x"], "unknown embedder 'some'; known: "),
        ([*FILM, "--model", "nowhere"], "nowhere"),
        ([*FILM, "--parser", "some"], "'some'"),
        ([*FILM, "--pin", "4=1-2"], "unknown step '4'; there are '1', '2', '3'"),
        ([*FILM, "--durations", "missing.json"], "missing.json"),
        ([*FILM, "--corrections", "missing.csv"], "missing.csv"),
        (["flow.json", "missing.mp4"], "cannot read missing.mp4"),
        (["talk.vtt", "recipe.txt"], "come after the procedure: graph2vid ground recipe.txt talk.vtt"),
        (["film.mp4", "flow.json"], "come after the procedure: graph2vid ground flow.json film.mp4"),
        (["film.mp4", "talk.vtt"], "film.mp4 is a video or captions, where a procedure is expected"),
        (["talk.vtt", "--scores", "s.npy"], "talk.vtt is a video or captions, where a procedure is expected"),
        (["flow.json", "https://example.org/watch?v=1"], "https://example.org/watch?v=1 is a web address: download"),
    ],
)
def test_ground_refuses_before_the_work(
    folder: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    if "--parser" in arguments:
        arguments = ["recipe.txt", *arguments[1:]]
    assert message in refusal(["ground", *arguments], capfd)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "export r.json --to vtt --video film.mp4",
            "--video is of no use here: the format vtt does not",
        ),
        ("export r.json --to elan --frame-rate 25", "--frame-rate is of no use here: the format elan counts no frames"),
        ("export r.json --to nonsense", "unknown export format 'nonsense'; known: "),
        ("view r.json -o page.pdf --no-open", "-o page.pdf: the name must end in .html"),
        ("parse missing.txt -o f.pdf", "f.pdf: the suffix '.pdf' names no flow graph format"),
        ("complexity --limit 9", "--limit is of no use here: it is for a flow graph"),
        ("complexity --threads 2,2 --max-steps 9", "--max-steps is of no use here"),
        ("complexity flow.json --json nowhere/x.json", "cannot write nowhere/x.json: there is no folder nowhere"),
        ("check missing.json --json x.html", "--json x.html: the name must end in .json"),
        ("demo --report x.json", "--report x.json: the name must end in .html"),
        ("evaluate synthetic --tune-for acc", "--tune-for is of no use here: no costs are learnt"),
        ("evaluate synthetic --video x", "--video is of no use here: no video is drawn"),
        ("evaluate synthetic --methods bag --linear listed", "--linear is of no use here"),
        (
            "evaluate synthetic --methods bag --min-support 2 --tolerance 0.1",
            "--min-support and --tolerance are of no use here: they are for mined graphs",
        ),
        (
            "evaluate synthetic --no-contiguous --extended skip+max-marginal",
            "max-marginal decoding (skip+max-marginal)",
        ),
        ("evaluate synthetic --json=nowhere/x.json", "there is no folder nowhere"),
        ("evaluate synthetic --markdown x.html", "--markdown x.html: the name must end in .md"),
        ("batch m.jsonl --check --workers 2 -o out", "--out and --workers are of no use here: --check looks at"),
        ("cache clear --kind x", "nothing of the kind 'x' is kept"),
    ],
)
def test_other_commands(
    folder: Path, capfd: pytest.CaptureFixture[str], command: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPH2VID_CACHE", str(folder / "kept"))
    assert message in refusal(command.split(), capfd)


def test_train_features(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="needs graph2vid[learn]")
    command = ["train", "features", "--dataset", "synthetic", "--no-validate", "--patience", "2"]
    assert "--patience is of no use here: with --no-validate" in refusal(command, capfd)


def test_workers_are_checked_whatever_the_path() -> None:
    flow, match = FlowGraph.chain(["a", "b"]), np.zeros((2, 4))
    for further in ({}, {"repeat": np.ones(2)}, {"method": "brute"}):
        with pytest.raises(InputError, match="workers must be a whole number of at least 1, not -5"):
            align(flow, match, np.ones(4), workers=-5, **further)
