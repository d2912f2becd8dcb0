"""``graph2vid ground`` with a procedure in words and a video or its captions."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from graph2vid.cli import main
from graph2vid.evidence import read_captions
from graph2vid.grounding import Grounding
from graph2vid.sample import load_narrated

pytest.importorskip("wordllama", reason="needs graph2vid[text]")

FILES = load_narrated().files


def test_captions_and_a_flow_graph(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result, page = tmp_path / "result.json", tmp_path / "page.html"
    arguments = ["ground", str(FILES.flow), str(FILES.captions), "-o", str(result), "--report", str(page)]
    assert main(arguments) == 0
    found = Grounding.load(result)
    sample = load_narrated()
    starts = {segment.step: segment.start for segment in found.segments}
    assert sum(abs(starts.get(step, 1e9) - start) <= 2 for step, (start, _) in sample.truth.items()) >= 9
    assert "order found" in capfd.readouterr().out
    written = page.read_text(encoding="utf-8")
    assert "Toss the spaghetti" in written


def test_words_are_parsed(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    assert main(["ground", str(FILES.text), str(FILES.captions), "--parser", "linear", "-o", str(result)]) == 0
    assert Grounding.load(result).flow.width == 1


def test_captions_beside_the_video(tmp_path: Path) -> None:
    pytest.importorskip("av", reason="needs graph2vid[media]")
    result = tmp_path / "result.json"
    arguments = ["ground", str(FILES.flow), str(FILES.video), "--captions", str(FILES.captions), "-o", str(result)]
    assert main(arguments) == 0
    assert Grounding.load(result).end == pytest.approx(load_narrated().duration, abs=1.0)


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are UTF-8 here")
def test_names_that_are_not_utf_8(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("av", reason="needs graph2vid[media]")
    name = {suffix: os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9" + suffix.encode()) for suffix in (".mp4", ".json")}
    shutil.copy(FILES.video, name[".mp4"])
    media = [str(FILES.flow), name[".mp4"], "--captions", str(FILES.captions)]
    outputs = ["-o", name[".json"], "--report", str(tmp_path / "r.html"), "--export", "youtube,elan,via3,howto,rttm"]
    assert main(["ground", *media, *outputs, "--check"]) == 0
    assert Grounding.load(name[".json"]).video == f"{tmp_path}/caf\ufffd.mp4"
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "caf%E9.mp4" in page and "caf\ufffd.mp4" in page
    assert main(["clips", name[".json"], "--video", name[".mp4"], "-o", str(tmp_path / "clips")]) == 0
    assert main(["view", name[".json"], "-o", str(tmp_path / "v.html")]) == 0
    assert "caf?.json" in capfd.readouterr().err


def refused(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    assert main(arguments) == 2
    error = capfd.readouterr().err
    assert len(error.strip().splitlines()) == 1
    return error


def test_what_is_missing_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "give the video too" in refused(["ground", str(FILES.flow)], capfd)
    scores = tmp_path / "scores.npy"
    np.save(scores, np.zeros((10, 20)))
    both = ["ground", str(FILES.flow), str(FILES.captions), "--scores", str(scores)]
    assert "one procedure and no video" in refused(both, capfd)
    silent = tmp_path / "silent.vtt"
    silent.write_text("WEBVTT\n", encoding="utf-8")
    assert "nothing is said" in refused(["ground", str(FILES.flow), str(silent)], capfd)
    for option in (["--offset", "3"],):
        error = refused(["ground", str(FILES.flow), str(FILES.captions), *option], capfd)
        assert f"{option[0]} is of no use here: it is for arrays" in error
    twice = ["ground", str(FILES.flow), str(FILES.captions), "--captions", str(FILES.captions)]
    assert "holds captions itself" in refused(twice, capfd)


def test_nothing_is_left_behind_after_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("av", reason="needs graph2vid[media]")
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"this is no video" * 100)
    result = tmp_path / "result.json"
    refused(["ground", str(FILES.flow), str(broken), "-o", str(result)], capfd)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.mp4"]


# -- bad captions --------------------------------------------------------------------------------------------


def write_captions(path: Path, cues: Iterable[tuple[float, float, str]]) -> str:
    def clock(seconds: float) -> str:
        return f"{seconds // 60:02.0f}:{seconds % 60:06.3f}"

    lines = [f"{clock(start)} --> {clock(end)}\n{text}\n" for start, end, text in cues]
    path.write_text("WEBVTT\n\n" + "\n".join(lines), encoding="utf-8")
    return str(path)


def sample_cues() -> list[tuple[float, float, str]]:
    return [(cue.start, cue.end, cue.text) for cue in read_captions(FILES.captions)]


def grounded(captions: str, result: Path, *options: str) -> Grounding:
    assert main(["ground", str(FILES.flow), captions, "-o", str(result), *options]) == 0
    return Grounding.load(result)


def test_cues_in_any_order_are_the_same(tmp_path: Path) -> None:
    cues = sample_cues()
    mixed = write_captions(tmp_path / "mixed.vtt", cues[::2] + cues[1::2][::-1])
    straight = grounded(str(FILES.captions), tmp_path / "straight.json")
    assert grounded(mixed, tmp_path / "mixed.json").labels.tolist() == straight.labels.tolist()


def test_overlapping_cues_are_taken_as_they_are(tmp_path: Path) -> None:
    wide = [(max(start - 2, 0.0), end + 3, text) for start, end, text in sample_cues()]
    found = grounded(write_captions(tmp_path / "wide.vtt", wide), tmp_path / "r.json")
    assert len(found.segments) >= 8


def test_noise_is_grounded_with_a_warning(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    noise = [(4.0 * at, 4.0 * at + 2, "brzk oule fadig gebo") for at in range(20)]
    grounded(write_captions(tmp_path / "noise.vtt", noise), tmp_path / "r.json")
    assert "warning: the transcript hardly goes with this procedure" in capfd.readouterr().err


def test_another_language_is_refused_and_leaves_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = [
        "Hallo und willkommen in meiner Küche",
        "jetzt nehmen wir eine Zwiebel und schneiden sie klein",
        "dann kommt das Wasser in den Topf und wir warten",
        "wenn das Wasser kocht, kommen die Nudeln dazu",
    ]
    german = write_captions(tmp_path / "german.vtt", [(6.0 * at, 6.0 * at + 5, text) for at, text in enumerate(said)])
    arguments = ["ground", str(FILES.flow), german, "-o", str(tmp_path / "r.json")]
    assert "is in German, but the embedder wordllama knows English" in refused(arguments, capfd)
    assert [path.name for path in tmp_path.iterdir()] == ["german.vtt"]
    assert main([*arguments, "--language", "en"]) == 0


def test_more_steps_than_clips(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    short = write_captions(tmp_path / "short.vtt", [(0.0, 3.0, "chop the onion and fry it until it is golden")])
    assert len(grounded(short, tmp_path / "r.json").not_shown) >= 7
    assert "warning: 0:03.0 in clips of 1 s are 3 clips, fewer than the 10 steps: at least 7" in capfd.readouterr().err
    assert main(["ground", str(FILES.flow), str(FILES.captions), "--clip-seconds", "20"]) == 0
    assert "fewer than the 10 steps" in capfd.readouterr().err
    assert main(["ground", str(FILES.flow), str(FILES.captions), "--clip-seconds", "2"]) == 0
    assert "fewer than" not in capfd.readouterr().err
    strict = ["ground", str(FILES.flow), short, "--skip", "constant:inf"]
    assert "the video has 3 clips, but 10 steps must each be shown" in refused(strict, capfd)


def test_a_full_disk_loses_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPH2VID_CACHE", str(tmp_path / "kept"))
    result = tmp_path / "r.json"
    result.write_text("an older result", encoding="utf-8")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert main(["ground", str(FILES.flow), str(FILES.captions), "-o", str(result)]) == 2
    told = capfd.readouterr().err.splitlines()
    assert told[-1] == f"graph2vid: error: cannot write {result}: No space left on device"
    assert [line.split(":")[1] for line in told[:-1]] == [" warning"]  # nothing is kept for the next run
    assert result.read_text(encoding="utf-8") == "an older result"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["kept", "r.json"]


@pytest.mark.parametrize("parser", ["learned", "auto"])
def test_grounding_in_captions_starts_and_ends_quickly(parser: str, tmp_path: Path) -> None:
    """Nothing is loaded to convert plain values, and nothing is said of what is not cleaned up at the end."""
    (tmp_path / "tea.txt").write_text("Boil the water. Pour the water over the tea.")
    code = (
        "import sys; from graph2vid.cli import main\n"
        "status = main()\n"
        "print({'torch', 'spacy', 'onnxruntime', 'pydantic', 'av'} & set(sys.modules))\n"
        "raise SystemExit(status)"
    )
    given = ["ground", str(tmp_path / "tea.txt"), str(FILES.captions), "--parser", parser, "-o", "tea.json"]
    command = [sys.executable, "-c", code, *given]
    for _ in range(2):  # what wordllama loads is loaded once: its vectors are kept
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "wrote tea.json\n")
    assert done.stdout.splitlines()[-1] == "set()"
