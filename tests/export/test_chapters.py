"""Chapters: files that their readers understand, and copies of videos that have them, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings

from films import clicks, film
from found import groundings, make_grounding
from graph2vid.cli import main
from graph2vid.errors import InputError
from graph2vid.export import CHAPTER_FORMATS, chapters_into_copy, export
from graph2vid.export.shared import chapters, clock, timed, titles
from graph2vid.footage import Chapter, cut, write_chapters
from graph2vid.grounding import Grounding, for_publishing

STEPS = ("Wash the berries.", "In a large bowl, whisk together the eggs and the milk until frothy.", "Serve")


@pytest.fixture(scope="session")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("av")
    images = [np.full((32, 48, 3), at % 256, np.uint8) for at in range(40 * 5)]
    path = tmp_path_factory.mktemp("film") / "film.mp4"
    return film(path, [at / 5 for at in range(40 * 5)], images=images, sound=clicks(40, 8000), rate=8000, title="Äh")


def read_chapters(path: Path) -> list[tuple[float, float, str]]:
    import av

    with av.open(str(path)) as container:
        return [
            (float(one["start"] * one["time_base"]), float(one["end"] * one["time_base"]), one["metadata"]["title"])
            for one in container.chapters()
        ]


def first_picture(path: Path) -> float:
    import av

    with av.open(str(path)) as container:
        return float(next(container.decode(video=0)).time)


def packets(path: Path) -> list[tuple[str, float, str]]:
    """Return the packets by content, and when they are due after the first picture."""
    import av

    zero = first_picture(path)
    with av.open(str(path)) as container:
        return sorted(
            (one.stream.type, round(float(one.pts * one.time_base) - zero, 2), hashlib.sha1(bytes(one)).hexdigest())
            for one in container.demux()
            if one.size and one.stream.type in ("video", "audio")
        )


# -- files beside the video


@given(groundings())
@settings(max_examples=30, deadline=None)
def test_matroska_podcasts_and_losslesscut_hold_the_chapters(grounding: Grounding) -> None:
    wanted = chapters(grounding)[0]
    tree = ElementTree.fromstring(export(grounding, "matroska").text)
    atoms = tree.findall("EditionEntry/ChapterAtom")
    assert [(atom.findtext("ChapterTimeStart"), atom.findtext("ChapterDisplay/ChapterString")) for atom in atoms] == [
        (f"{clock(one.start)}000000", one.title) for one in wanted
    ]
    assert [atom.findtext("ChapterUID") for atom in atoms] == [str(at + 1) for at in range(len(wanted))]
    told = json.loads(export(grounding, "podcast").text)
    assert told["version"] == "1.2.0"
    assert [(one["startTime"], one["title"]) for one in told["chapters"]] == [(c.start / 1000, c.title) for c in wanted]
    project = json.loads(export(grounding, "losslesscut", video="a b/c.mp4").text)
    assert (project["version"], project["mediaFileName"]) == (1, "c.mp4")
    names = titles(grounding.flow)
    assert [(cut["start"], cut["end"], cut["name"]) for cut in project["cutSegments"]] == [
        (one.start / 1000, one.end / 1000, names[one.step]) for one in timed(grounding)[0]
    ]


def test_short_titles_and_what_is_doubtful() -> None:
    found = doubting(make_grounding([0] * 12 + [1] * 12 + [2] * 12, STEPS))
    assert [one.text for one in for_publishing(found, short_titles=True).segments] == [
        "Wash the berries",
        "Whisk together the eggs and the milk",
        "Serve",
    ]
    assert "Serve (?)" in found.export("vtt").text and "Serve" not in found.export("vtt", doubtful="omit").text
    assert for_publishing(found, doubtful="omit").order == (0, 1)
    assert (
        found.export("youtube", short_titles=True).text.splitlines()[1] == "0:12 Whisk together the eggs and the milk"
    )
    with pytest.raises(InputError, match="'mark' or left out by 'omit', not 'hide'"):
        found.export("vtt", doubtful="hide")


def doubting(grounding: Grounding) -> Grounding:
    """Return the grounding with its last segment in doubt."""
    from dataclasses import replace

    *sure, last = grounding.segments
    return replace(grounding, segments=(*sure, replace(last, why="one clip")))


# -- a copy of the video


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".mov"])
def test_a_copy_has_the_chapters_and_every_packet(suffix: str, video: Path, tmp_path: Path) -> None:
    grounding = make_grounding([-1] * 5 + [0] * 10 + [1] * 10 + [-1] * 5 + [2] * 10, STEPS, video=str(video))
    copy = tmp_path / f"copy{suffix}"
    notes = chapters_into_copy(copy, for_publishing(grounding, short_titles=True))
    assert notes == ('an "Intro" is added before the first step: MP4 lets the first chapter begin at 0 in any case',)
    found = read_chapters(copy)
    late = first_picture(copy)  # the run-in of the sound comes before, in Matroska
    assert [title for *_, title in found] == [
        "Intro",
        "Wash the berries",
        "Whisk together the eggs and the milk",
        "Serve",
    ]
    assert [start - late for start, *_ in found[1:]] == pytest.approx([5.0, 15.0, 30.0], abs=2e-3)
    assert found[0][0] == 0 and found[-1][1] - late == pytest.approx(40.0, abs=2e-3)
    assert packets(copy) == packets(video)
    # Once more: the chapters are replaced, and not doubled.
    again = tmp_path / f"again{suffix}"
    write_chapters(copy, again, [Chapter(0, 1000, "a"), Chapter(1000, 40_000, "b; =\\#")])
    assert [title for *_, title in read_chapters(again)] == ["a", "b; =\\#"] and packets(again) == packets(video)


def test_ffmpeg_reads_the_chapters(video: Path, tmp_path: Path) -> None:
    imageio_ffmpeg = shutil.which("ffmpeg")
    if imageio_ffmpeg is None:
        imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="no ffmpeg program is there").get_ffmpeg_exe()
    for suffix in (".mp4", ".mkv"):
        copy = tmp_path / f"copy{suffix}"
        write_chapters(video, copy, [Chapter(0, 5000, "Intro"), Chapter(5000, 40_000, "Äpfel = #1")])
        command = [imageio_ffmpeg, "-v", "error", "-i", str(copy), "-f", "ffmetadata", "-"]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert told.count("[CHAPTER]") == 2 and "title=Äpfel \\= \\#1" in told


def test_what_cannot_be_written_is_said_and_nothing_is_left(video: Path, tmp_path: Path) -> None:
    before = video.read_bytes()
    for target, message in (
        (tmp_path / "a.avi", r"must end in \.mp4"),
        (video, "is the source itself, which is never changed"),
    ):
        with pytest.raises(InputError, match=message):
            write_chapters(video, target, [Chapter(0, 1000, "a")])
    with pytest.raises(InputError, match=r"not there \(not named\)"):
        chapters_into_copy(tmp_path / "a.mp4", make_grounding([0]))
    with pytest.raises(InputError, match="no step is shown"):
        chapters_into_copy(tmp_path / "a.mp4", make_grounding([-1], video=str(video)))
    assert video.read_bytes() == before and list(tmp_path.iterdir()) == []


KILLED = """
import sys
from graph2vid.footage import Chapter, write_chapters
write_chapters(sys.argv[1], sys.argv[2], [Chapter(0, 1000, "a")])
print("ready", flush=True)
while True:
    write_chapters(sys.argv[1], sys.argv[2], [Chapter(0, 1000, "a"), Chapter(1000, 40_000, "b")])
"""


def test_a_kill_leaves_the_source_and_a_whole_copy(video: Path, tmp_path: Path) -> None:
    source, copy = tmp_path / "source.mp4", tmp_path / "copy.mkv"
    shutil.copy(video, source)
    before = source.read_bytes()
    whole = packets(video)
    for wait in np.random.default_rng(0).uniform(0, 0.05, 5):
        process = subprocess.Popen([sys.executable, "-c", KILLED, source, copy], stdout=subprocess.PIPE)
        assert process.stdout is not None and process.stdout.readline()
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert source.read_bytes() == before and packets(copy) == whole


# -- the command


def test_from_a_result(video: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grounding = doubting(make_grounding([0] * 12 + [1] * 12 + [2] * 16, STEPS, video=str(video)))
    grounding.save(tmp_path / "r.json")
    assert main(["chapters", str(tmp_path / "r.json"), "--write", str(tmp_path / "copy.mkv")]) == 0
    told = capsys.readouterr()
    assert told.out == "0:00 Wash the berries\n0:12 Whisk together the eggs and the milk\n0:24 Serve (?)\n"
    assert [title for *_, title in read_chapters(tmp_path / "copy.mkv")][-1] == "Serve (?)"
    assert main(["chapters", str(tmp_path / "r.json"), "--to", "all", "-o", str(tmp_path), "--full-titles"]) == 0
    from graph2vid.grounding import FORMATS

    for name in CHAPTER_FORMATS:
        assert STEPS[1][:60] in (tmp_path / f"film{FORMATS.get(name).suffix}").read_text(encoding="utf-8"), name
    capsys.readouterr()
    assert main(["chapters", str(tmp_path / "r.json"), "--doubtful", "omit"]) == 0
    told = capsys.readouterr()
    assert "note: not for YouTube" not in told.err and "Serve" not in told.out  # an Outro takes its place


def test_ground_and_write_in_one_command(video: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.flow").write_text("a: Wash the berries\nb: Whisk the eggs\nc: Serve the cake\na, b -> c\n")
    cues = ["00:01.000 --> 00:06.000\nnow whisk the eggs", "00:13.000 --> 00:18.000\nand wash the berries"]
    cues.append("00:27.000 --> 00:33.000\nthen serve the cake")
    (tmp_path / "c.vtt").write_text("WEBVTT\n\n" + "\n\n".join(cues) + "\n")
    arguments = ["chapters", str(video), "-p", str(tmp_path / "p.flow"), "--captions", str(tmp_path / "c.vtt")]
    before = video.read_bytes()
    written = ["--write", str(tmp_path / "out.mp4"), "--json", str(tmp_path / "r.json")]
    assert main([*arguments, *written]) == 0
    found = Grounding.load(tmp_path / "r.json")
    shown = [title.removesuffix(" (?)") for _, _, title in read_chapters(tmp_path / "out.mp4") if title != "Intro"]
    assert shown == [one.text for one in found.segments] and shown[0] == "Whisk the eggs"
    assert video.read_bytes() == before and capsys.readouterr().out


def test_bad_requests_are_one_line(video: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_grounding([0], video=str(video)).save(tmp_path / "r.json")
    result, film_path = str(tmp_path / "r.json"), str(video)
    (tmp_path / "p.txt").write_text("Wash. Cut.")
    procedure = ["-p", str(tmp_path / "p.txt")]
    for arguments, message in (
        ([film_path], "give the procedure too"),
        ([result, "--to", "csv"], "'csv' holds no chapters; known: youtube, vtt"),
        ([result, "--doubtful", "hide"], "mark or omit, not 'hide'"),
        ([result, "--clip-seconds", "2"], "--clip-seconds is of no use here"),
        ([film_path, *procedure, "--write", film_path], "is the video itself, which is never changed"),
        ([film_path, *procedure, "--write", str(tmp_path / "a.avi")], "the name must end in .mp4"),
        (["https://youtu.be/x", *procedure], "https://youtu.be/x is a web address: download the video first"),
    ):
        assert main(["chapters", *arguments]) == 2
        told = capsys.readouterr()
        assert message in told.err and told.err.count("\n") == 1, told.err


# -- stretches, cut at key frames


def test_a_stretch_is_copied_from_the_key_frame_before_it(video: Path, tmp_path: Path) -> None:
    import av

    for suffix in (".mp4", ".mkv"):
        begin, end = cut(video, tmp_path / f"clip{suffix}", 21.0, 27.0)
        assert begin <= 21.0 and end >= 27.0
        with av.open(str(tmp_path / f"clip{suffix}")) as container:
            levels = [int(frame.to_ndarray(format="gray").mean()) for frame in container.decode(video=0)]
            assert float(container.duration) / 1e6 == pytest.approx(end - begin, abs=0.3)
        assert len(levels) == pytest.approx((end - begin) * 5, abs=3) and levels[0] == pytest.approx(begin * 5, abs=3)
