"""Results carried to other cuts of the same material: cuts made here, whose true times are known."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from films import film
from found import make_grounding
from graph2vid.cli import main
from graph2vid.errors import InputError
from graph2vid.evidence import Cue, read_captions
from graph2vid.evidence.media import audio
from graph2vid.grounding import Grounding, transfer
from graph2vid.sample.narrated import load_narrated

pytest.importorskip("av")

RATE = 8_000
Sound: TypeAlias = NDArray[np.float32]
NARRATED = load_narrated()


@pytest.fixture(scope="module")
def sound() -> Sound:
    return np.concatenate(list(audio(NARRATED.files.video, RATE)))


def intro(seconds: float, seed: int = 0) -> Sound:
    """Return a little music: three notes at a time."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * RATE)) / RATE
    notes = 220.0 * 2 ** (rng.integers(0, 24, (3, len(time) // (RATE // 4) + 1)) / 12)
    at = (time * 4).astype(int)
    return (0.15 * sum(np.sin(2 * np.pi * one[at] * time) for one in notes)).astype(np.float32)


def played(sound: Sound, speed: float) -> Sound:
    """Return a sound played faster (above 1) or slower, higher or lower with it."""
    places = np.arange(0, len(sound), speed)
    return np.interp(places, np.arange(len(sound)), sound).astype(np.float32)


def joined(sound: Sound, *parts: tuple[float, float] | float, speed: float = 1.0) -> tuple[Sound, Callable[..., float]]:
    """Return stretches (start, end) of a sound with music (so many seconds) between, and where its times are now."""
    pieces = [
        intro(one, seed) if isinstance(one, float) else sound[round(one[0] * RATE) : round(one[1] * RATE)]
        for seed, one in enumerate(parts)
    ]
    begins = [0, *accumulate(len(one) for one in pieces)]

    def now(seconds: float) -> float:
        """Where a time is; one that was cut out, where what follows begins."""
        for one, begin in zip(parts, begins, strict=False):
            if not isinstance(one, float) and seconds < one[1]:
                return (begin / RATE + max(seconds - one[0], 0.0)) / speed
        return begins[-1] / RATE / speed

    return played(np.concatenate(pieces), speed), now


def result() -> Grounding:
    """Return the true grounding of the bundled video."""
    labels = np.full(round(NARRATED.duration * 4), -1)
    for step, (start, end) in NARRATED.truth.items():
        labels[round(start * 4) : round(end * 4)] = step
    texts = list(NARRATED.flow.texts)
    return make_grounding(labels.tolist(), texts, clip_seconds=0.25, video=str(NARRATED.files.video))


CUTS: dict[str, tuple[tuple[float, float] | float, ...]] = {
    "whole": ((0.0, 102.6),),
    "an intro": (12.0, (0.0, 102.6)),
    "pieces removed": ((0.0, 20.0), (35.0, 70.0), (75.0, 102.6)),
    "beginning and end removed": ((14.0, 90.0),),
    "all of it": (7.0, (3.0, 41.5), 15.0, (55.0, 88.0), (90.0, 102.6), 6.0),
}


QUICK = {("an intro", 1.0), ("pieces removed", 1.02), ("all of it", 0.98)}


@pytest.mark.parametrize(
    ("name", "speed"),
    [
        pytest.param(name, speed, marks=[] if (name, speed) in QUICK else pytest.mark.slow)
        for name in CUTS
        for speed in (1.0, 1.02, 0.98)
    ],
)
def test_chapters_land_within_half_a_second(name: str, speed: float, sound: Sound, tmp_path: Path) -> None:
    other, now = joined(sound, *CUTS[name], speed=speed)
    path = film(tmp_path / "other.m4a", sound=0.4 * other, rate=RATE)
    before = result()
    found = transfer(before, path)
    whole = [one for one in CUTS[name] if not isinstance(one, float)]
    for one in before.segments:
        left = [(max(one.start, a), min(one.end, b)) for a, b in whole if min(one.end, b) > max(one.start, a)]
        kept = sum(b - a for a, b in left)
        carried = found.grounding.segments_of(one.step)
        if kept > 1.5:
            assert carried[0].start == pytest.approx(now(left[0][0]), abs=0.5)
            assert carried[-1].end == pytest.approx(now(left[-1][1] - 1e-3), abs=0.5)
        elif kept < 0.5:
            assert not carried
    assert found.share > 0.7 and found.agreement > 0.8
    music = [
        begin
        for begin, one in zip(accumulate([0.0, *map(length, CUTS[name])]), CUTS[name], strict=False)
        if isinstance(one, float)
    ]
    assert [start for start, _ in found.added] == pytest.approx([begin / speed for begin in music], abs=0.6)
    removed = sum(b - a for a, b in found.cut)
    assert removed == pytest.approx(102.6 - sum(b - a for a, b in whole), abs=2.0)


def length(part: tuple[float, float] | float) -> float:
    return part if isinstance(part, float) else part[1] - part[0]


def test_another_codec_and_the_picture_do_not_matter(sound: Sound, tmp_path: Path) -> None:
    other, now = joined(sound, 5.0, (0.0, 60.0))
    times = [at / 5 for at in range(5 * 65)]
    images = [np.full((32, 48, 3), at % 200, np.uint8) for at in range(len(times))]
    path = film(tmp_path / "other.mkv", times, images=images, sound=other, rate=RATE, sound_codec="libopus")
    for one in transfer(result(), path).grounding.segments:
        assert one.start == pytest.approx(now(NARRATED.truth[one.step][0]), abs=0.5)


def test_a_different_video_is_refused(sound: Sound, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Even one of the same voice: the bundled one backwards, or its words in another order."""
    words = np.array_split(sound, 70)
    np.random.default_rng(1).shuffle(words)
    others = (sound[::-1].copy(), np.concatenate(words))
    result().save(tmp_path / "r.json")
    for other in others:
        path = film(tmp_path / "other.m4a", sound=other, rate=RATE)
        assert main(["transfer", str(tmp_path / "r.json"), str(path), "-o", str(tmp_path / "new.json")]) == 2
        told = capsys.readouterr().err
        assert "is not the same material as" in told and told.count("\n") == 1
        assert not (tmp_path / "new.json").exists()


def test_the_command(sound: Sound, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other, _ = joined(sound, 12.0, (0.0, 20.0), (35.0, 102.6))
    path = film(tmp_path / "other.m4a", sound=other, rate=RATE)
    result().save(tmp_path / "r.json")
    arguments = ["transfer", str(tmp_path / "r.json"), str(path), "-o", str(tmp_path / "new.json")]
    assert main([*arguments, "--export", "vtt", "--json", str(tmp_path / "common.json")]) == 0
    shown = capsys.readouterr().out
    assert "in 2 stretches" in shown and "added 0:00.0–0:1" in shown and "cut   0:" in shown and "gone  3. " in shown
    told = json.loads((tmp_path / "common.json").read_text())
    assert told["gone"] == [result().flow.ids[2]] and len(told["stretches"]) == 2
    new = Grounding.load(tmp_path / "new.json")
    assert new.video == str(path) and new.not_shown == (2,) and new.options["transfer"]["agreement"] > 0.8
    assert "-->" in (tmp_path / "new.chapters.vtt").read_text()
    make_grounding([0, 1]).save(tmp_path / "r.json")
    assert main(arguments) == 2 and "name it (--source)" in capsys.readouterr().err
    assert main(["transfer", str(tmp_path / "r.json"), "https://example.org/v"]) == 2


def test_what_is_known_of_clips_is_carried(sound: Sound, tmp_path: Path) -> None:
    other, _ = joined(sound, (40.0, 102.6))
    path = film(tmp_path / "other.m4a", sound=other, rate=RATE)
    before = result()
    evidence = np.tile(np.arange(len(before.labels), dtype=float), (len(before.flow), 1))
    cues = (Cue(10.0, 12.0, "gone"), Cue(50.0, 53.0, "kept"))
    found = transfer(replace(before, evidence=evidence, cues=cues), path).grounding
    assert [one.text for one in found.cues] == ["kept"] and found.cues[0].start == pytest.approx(10.0, abs=0.3)
    assert found.evidence is not None and found.evidence[0, 100] == pytest.approx(160 + 100, abs=2)


def test_silence_has_no_fingerprint(tmp_path: Path) -> None:
    path = film(tmp_path / "silent.m4a", sound=np.zeros(RATE * 5, np.float32), rate=RATE)
    with pytest.raises(InputError, match="is silent"):
        transfer(result(), path)


def test_transcripts_where_the_first_video_is_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cues = read_captions(NARRATED.files.captions)
    before = replace(result(), video="gone.mp4", cues=cues)
    moved = [(12.0, cue) for cue in cues if cue.end < 30] + [(-3.0, cue) for cue in cues if cue.start > 47]
    lines = "".join(f"{clock(one.start + by)} --> {clock(one.end + by)}\n{one.text}\n\n" for by, one in moved)
    path = tmp_path / "other.vtt"
    path.write_text(f"WEBVTT\n\n{lines}", encoding="utf-8")
    found = transfer(before, path)
    for one in before.segments:
        carried = found.grounding.segments_of(one.step)
        if one.end < 26 or one.start > 49:
            assert carried[0].start == pytest.approx(one.start + (12 if one.end < 26 else -3), abs=0.5)
    assert [len(found.stretches), found.agreement > 0.9, found.gone] == [2, True, (3,)]
    path.write_text("WEBVTT\n\n00:01.000 --> 00:09.000\nShares of three banks fell in March.\n", encoding="utf-8")
    with pytest.raises(InputError, match="not the same material"):
        transfer(before, path)


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{seconds % 60:06.3f}"
