"""``graph2vid ground`` with a procedure in words and a video or its captions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graph2vid.cli import main
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
    assert "order seen" in capfd.readouterr().out
    written = page.read_text(encoding="utf-8")
    assert "What is said" in written and "Toss the spaghetti" in written and "<svg" in written


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
    for option in (["--preset", "paper"], ["--offset", "3"], ["--no-contiguous"]):
        error = refused(["ground", str(FILES.flow), str(FILES.captions), *option], capfd)
        assert "are for arrays" in error
    twice = ["ground", str(FILES.flow), str(FILES.captions), "--captions", str(FILES.captions)]
    assert "holds captions itself" in refused(twice, capfd)


def test_nothing_is_left_behind_after_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("av", reason="needs graph2vid[media]")
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"this is no video" * 100)
    result = tmp_path / "result.json"
    refused(["ground", str(FILES.flow), str(broken), "-o", str(result)], capfd)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.mp4"]
