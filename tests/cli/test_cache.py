"""One cache for all commands: what is made once is found again, shown, and cleared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graph2vid.cli import main
from graph2vid.evidence import Cue, read_captions, speech
from graph2vid.evidence.evidence_cache import Cache
from graph2vid.sample import load_narrated

FILES = load_narrated().files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH2VID_CACHE", str(tmp_path / "kept"))
    monkeypatch.delenv("GRAPH2VID_CACHE_LIMIT", raising=False)
    return tmp_path / "kept"


def test_a_video_is_transcribed_once_whatever_is_written(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("av", reason="needs graph2vid[media]")
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    times = []

    def recognise(*_: Any) -> Iterator[Cue]:
        times.append(1)
        yield from read_captions(FILES.captions)

    monkeypatch.setattr(speech, "_recognise", recognise)
    monkeypatch.setattr(speech, "_weights", lambda _: [])
    monkeypatch.chdir(tmp_path)
    ground = ["ground", str(FILES.flow), str(FILES.video), "--no-confidence"]
    for further in (["-o", "one.json"], ["-o", "two.json"], ["--report", "page.html"], []):
        assert main([*ground, *further]) == 0
    assert len(times) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "one.json", "page.html", "two.json"]
    assert main(["cache", "clear", "--kind", "speech"]) == 0
    assert main(ground) == 0
    assert len(times) == 2


def test_it_is_shown_and_cleared(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["cache"]) == 0
    assert capfd.readouterr().out == f"{folder}\n0 bytes of at most 2.1 GB, 0 entries\n"
    for number in range(3):
        Cache().json("speech", {"n": number}, lambda: [1])
    Cache().json("parse", {}, lambda: [1])
    summary = tmp_path / "summary.json"
    assert main(["cache", "--json", str(summary)]) == 0
    shown = capfd.readouterr().out
    assert "4 entries" in shown and "speech" in shown and "parse" in shown
    found = json.loads(summary.read_text())
    assert (found["folder"], found["limit"], found["entries"]) == (str(folder), 2 << 30, 4)
    assert [(row["kind"], row["entries"]) for row in found["kinds"]] == [("parse", 1), ("speech", 3)]
    assert found["bytes"] == sum(path.stat().st_size for path in folder.iterdir())
    assert main(["cache", "clear", "--kind", "clips"]) == 2
    assert "there is: parse, speech" in capfd.readouterr().err
    assert main(["cache", "clear"]) == 0
    assert capfd.readouterr().out.startswith("removed 4 entries, ")
    assert not folder.exists()
