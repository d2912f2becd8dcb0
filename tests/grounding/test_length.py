"""How long a video may be, and into how many clips it may be cut."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import films
import graph2vid as g2v
from graph2vid.cli import main
from graph2vid.errors import InputError, TooLargeError
from graph2vid.evidence import Cue, EvidenceOptions, Transcript, clips_of, transcript_of

LATE = "WEBVTT\n\n00:01.000 --> 00:05.000\ncut the pears\n\n00:06.000 --> 9999:00:00.000\nserve the pears\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("f.flow").write_text("cut: cut the pears\nserve: serve the pears\ncut -> serve\n")
    Path("late.vtt").write_text(LATE)
    Path("good.vtt").write_text(LATE.replace("9999:00:00", "00:09"))
    return tmp_path


def refused(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["ground", "f.flow", *arguments]) == 2
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    return said


@pytest.mark.usefixtures("files")
def test_a_cue_that_ends_after_9999_hours(capfd: pytest.CaptureFixture[str]) -> None:
    assert "ends after 9,999 hours, and at most 24" in refused(capfd, "late.vtt")
    assert "at most 1,000,000 are taken" in refused(capfd, "late.vtt", "--max-hours", "1e5")
    assert "max_hours must be a number above 0" in refused(capfd, "good.vtt", "--max-hours", "0")
    assert "at most 0.001" in refused(capfd, "good.vtt", "--max-hours", "0.001")
    assert main(["ground", "f.flow", *("late.vtt", "--max-hours", "10000", "--clip-seconds", "100000")]) == 0


@pytest.mark.usefixtures("files")
def test_clips_beyond_number(capfd: pytest.CaptureFixture[str]) -> None:
    assert "at most 1,000,000 are taken: use longer clips" in refused(capfd, "good.vtt", "--clip-seconds", "1e-6")
    assert "1,000,000,000 clips is longer than any video" in refused(capfd, "good.vtt", "--min-clips", "1000000000")


def test_in_python() -> None:
    flow = g2v.FlowGraph.chain(["cut the pears"])
    with pytest.raises(TooLargeError, match="at most 24"):
        g2v.ground(flow, Transcript((Cue(1.0, 2.0, "cut the pears"),), 25 * 3600.0))
    assert clips_of(10.5, 1.0) == 11 and clips_of(25 * 3600.0, 3600.0, max_hours=26) == 25
    with pytest.raises(InputError, match="positive number of hours"):
        clips_of(1.0, 1.0, max_hours=float("nan"))


@pytest.mark.usefixtures("files")
def test_nothing_is_recognised_in_a_video_that_is_too_long(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("av", reason="needs graph2vid[media]")
    from graph2vid.evidence import speech

    def never(*_: object, **__: object) -> None:
        raise AssertionError("this video is too long to be transcribed")

    monkeypatch.setattr(speech, "transcribe", never)
    films.film(Path("film.mp4"), [0.0, 4.0], sound=films.clicks(4, 44_100))
    assert "at most 0.001" in refused(capfd, "film.mp4", "--max-hours", "0.001")
    with pytest.raises(TooLargeError, match=r"at most 0\.001"):
        g2v.ground("f.flow", "film.mp4", max_hours=0.001)
    with pytest.raises(TooLargeError, match=r"at most 0\.001"):
        transcript_of("film.mp4", None, EvidenceOptions(narration_weight=0.0, max_hours=0.001))


@pytest.mark.usefixtures("files")
def test_arrays_have_no_hours(capfd: pytest.CaptureFixture[str]) -> None:
    np.save("s.npy", np.eye(2, 4))
    assert "--max-hours is of no use here" in refused(capfd, "--scores", "s.npy", "--max-hours", "3")


@pytest.mark.usefixtures("files")
def test_arrays_are_as_long_as_their_video(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("av", reason="needs graph2vid[media]")
    films.film(Path("film.mp4"), sound=films.clicks(8, 44_100))
    np.save("s.npy", np.eye(2).repeat(4, axis=1))
    saved = ("--scores", "s.npy", "--video", "film.mp4", "-o", "r.json")
    assert main(["ground", "f.flow", *saved]) == 0
    capfd.readouterr()
    said = refused(capfd, *saved, "--clip-seconds", "3.2")
    assert "film.mp4: 8 clips of 3.2 s end at 25.6 s, but the video lasts 8" in said and "clip_seconds=1" in said
    with pytest.raises(InputError, match=r"8 clips of 0.5 s end at 4 s, but the video lasts 8"):
        g2v.ground("f.flow", "film.mp4", clips=np.eye(2)[[0] * 4 + [1] * 4], steps=np.eye(2), clip_seconds=0.5)
    Path("note.mp4").write_text("no video")
    assert g2v.ground("f.flow", "note.mp4", scores=np.eye(2), clip_seconds=100.0).count.shown == (0, 1)


@pytest.mark.usefixtures("files")
def test_in_a_batch(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason="needs graph2vid[scale]")
    rows = [{"id": name, "procedure": "f.flow", "captions": f"{name}.vtt"} for name in ("good", "late")]
    Path("m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["batch", "m.jsonl", "--workers", "1", "--clip-seconds", "100000", "--out"]
    assert main([*command, "day"]) == 1
    assert "ends after 9,999 hours, and at most 24 are taken" in capfd.readouterr().out
    assert main([*command, "year", "--max-hours", "10000"]) == 0
    assert main([*command, "moment", "--max-hours", "0.001"]) == 1
    assert "0 videos done, 0 done before, 2 failed" in capfd.readouterr().out
