"""Clips, stills, moving pictures and contact sheets: what they show, and that nothing is left half done."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from films import clicks, film
from found import make_grounding
from graph2vid.cli import main
from graph2vid.errors import InputError, MissingDependencyError
from graph2vid.evidence.media import audio, probe
from graph2vid.flow import FlowGraph
from graph2vid.footage import cut, cut_precisely, sharpest_frame, write_gif
from graph2vid.grounding import Grounding, most_certain, write_clips

pytest.importorskip("av")

RATE, SECONDS = 5, 40
STEPS = ("Wash the berries.", "Whisk the eggs", "Serve")
SHARP = 26.0
"""When there is a frame with stripes; all others are even."""


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A film whose frame i has the brightness i, with a click at 0.5, 1.5, … s."""
    images = [np.full((32, 48, 3), at, np.uint8) for at in range(RATE * SECONDS)]
    images[round(SHARP * RATE)][::4] = 255
    path = tmp_path_factory.mktemp("film") / "film.mp4"
    sound = clicks(SECONDS, 8000)
    return film(path, [at / RATE for at in range(RATE * SECONDS)], images=images, sound=sound, rate=8000)


def levels(path: Path) -> list[tuple[float, float]]:
    """Return when the frames of a file begin, and how bright they are."""
    import av

    with av.open(str(path)) as container:
        return [(float(one.time), float(one.to_ndarray(format="rgb24").mean())) for one in container.decode(video=0)]


def grounded(video: Path) -> Grounding:
    labels = [-1] * 3 + [0] * 7 + [1] * 10 + [-1] * 3 + [0] * 7 + [2] * 10
    return make_grounding(labels, STEPS, video=str(video), title="Cake")


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
@pytest.mark.parametrize(("start", "end"), [(12.3, 17.1), (0.0, 4.0), (33.0, 40.0)])
def test_precise_clips_begin_and_end_within_a_frame(
    start: float, end: float, suffix: str, video: Path, tmp_path: Path
) -> None:
    clip = tmp_path / f"clip{suffix}"
    assert cut_precisely(video, clip, start, end) == pytest.approx((start, end), abs=1 / RATE)
    found = levels(clip)
    zero = found[0][0]
    assert zero <= 1 / RATE
    assert found[0][1] / RATE == pytest.approx(start + zero, abs=1 / RATE + 0.3 / RATE)  # codecs round brightness
    assert found[-1][1] / RATE == pytest.approx(end - 1 / RATE, abs=1 / RATE + 0.3 / RATE)
    assert probe(clip).duration == pytest.approx(end - start, abs=1 / RATE + 0.03)
    sound = np.concatenate(list(audio(clip, 8000)))
    loud = np.flatnonzero(abs(sound) > 0.3) / 8000
    assert loud[0] == pytest.approx((0.5 - start) % 1.0, abs=0.02 if suffix == ".mp4" else 0.2)


def test_copied_clips_hold_the_stretch_and_decode(video: Path, tmp_path: Path) -> None:
    for start, end in ((0.0, 3.0), (21.0, 27.0), (38.0, 40.0)):
        begin, stop = cut(video, tmp_path / "clip.mkv", start, end)
        assert begin <= start and stop >= end - 1e-6
        found = levels(tmp_path / "clip.mkv")
        assert found[0][1] / RATE == pytest.approx(begin, abs=0.5) and found[-1][1] / RATE >= end - 0.5
    with pytest.raises(InputError, match="nothing to cut between 90 and 95 s"):
        cut_precisely(video, tmp_path / "none.mp4", 90, 95)
    assert not (tmp_path / "none.mp4").exists()


def test_files_without_an_index_are_cut_too(video: Path, tmp_path: Path) -> None:
    """MPEG transport streams, whose clocks begin anywhere, and in which one seeks by guessing."""
    import av

    path = tmp_path / "film.ts"
    with av.open(str(video)) as source, av.open(str(path), "w") as container:
        tracks = {one.index: container.add_stream_from_template(one) for one in source.streams}
        for packet in source.demux():
            if packet.size:
                packet.stream = tracks[packet.stream.index]
                container.mux(packet)
    for start, end in ((0.0, 2.0), (21.0, 27.0), (36.0, 40.0)):
        begin, stop = cut(path, tmp_path / "clip.mp4", start, end)
        assert begin <= start + 1 / RATE and stop >= end - 1 / RATE
        cut_precisely(path, tmp_path / "clip.mp4", start, end)
        assert levels(tmp_path / "clip.mp4")[0][1] / RATE == pytest.approx(start, abs=1.3 / RATE)
    assert sharpest_frame(path, 7.0, 8.0)[0] == pytest.approx(7.5, abs=0.5)


def test_the_sharpest_frame_is_found(video: Path) -> None:
    at, image = sharpest_frame(video, 25.0, 27.0)
    assert at == pytest.approx(SHARP) and image.shape == (32, 48, 3)


def test_stills_are_near_the_most_certain_moment(video: Path) -> None:
    found = grounded(video)
    first = found.segments[0]
    assert most_certain(found, first) == 6.5  # nothing is known
    evidence = np.zeros((3, len(found.labels)))
    evidence[0, 4], evidence[0, 30] = 1.0, 9.0  # the other is outside of the segment
    assert most_certain(replace(found, evidence=evidence), first) == 4.5
    chances = np.zeros((4, len(found.labels)))
    chances[0, 8] = 0.9
    assert most_certain(replace(found, evidence=evidence, probability=chances), first) == 8.5


def test_a_moving_picture_lasts_as_long(video: Path, tmp_path: Path) -> None:
    write_gif(video, tmp_path / "a.gif", 12.0, 15.0)
    data = (tmp_path / "a.gif").read_bytes()
    assert data[:6] == b"GIF89a"
    found = levels(tmp_path / "a.gif")
    assert found[-1][0] == pytest.approx(3.0, abs=0.3)
    assert found[0][1] == pytest.approx(60, abs=5) and found[-1][1] == pytest.approx(74, abs=5)


@pytest.mark.parametrize("precise", [False, True])
def test_a_folder_of_clips(precise: bool, video: Path, tmp_path: Path) -> None:
    before = video.read_bytes()
    found = grounded(video).clips(tmp_path / "new" / "clips", precise=precise, gif=precise)
    folder = tmp_path / "new" / "clips"
    names = ["01-wash-the-berries", "02-whisk-the-eggs", "01-wash-the-berries-2", "03-serve"]
    assert [one.path.name for one in found] == [f"{name}.mp4" for name in names]
    for one in found:
        assert one.still is not None and one.still.read_bytes()[:2] == b"\xff\xd8"
        assert one.still_at is not None and one.segment.start <= one.still_at < one.segment.end
        assert one.start <= one.segment.start and one.end >= one.segment.end - 1 / RATE
        assert (one.gif is not None) == precise
    sheet = ElementTree.parse(folder / "contact-sheet.svg").getroot()
    words = [one.text for one in sheet.iter("{http://www.w3.org/2000/svg}text")]
    assert words[0] == "Cake" and "Whisk the eggs" in words and "2 · 0:10.0–0:20.0" in words
    assert len(list(sheet.iter("{http://www.w3.org/2000/svg}image"))) == 4
    assert video.read_bytes() == before and not list(folder.glob(".*"))


def test_a_card_has_texts_times_and_pictures(video: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = grounded(video)
    flow = FlowGraph.bag([*STEPS, "Eat <all> of it"], "Cake & tea")
    found.clips(tmp_path, cards=["html"], doubtful="mark")
    replace(found, flow=flow, not_shown=(3,)).clips(tmp_path, cards=["html"])
    page = (tmp_path / "card.html").read_text(encoding="utf-8")
    assert page.count("data:image/jpeg") == 3 and page.count("<li") == 4 and "http" not in page
    assert "<h1>Cake &amp; tea</h1>" in page and "Eat &lt;all&gt; of it" in page and "not shown" in page
    assert "0:03.0–0:10.0, 0:23.0–0:30.0" in page
    document = json.loads((tmp_path / "howto.jsonld").read_text(encoding="utf-8"))
    assert [step.get("image") for step in document["step"]] == [
        "01-wash-the-berries.jpg",
        "02-whisk-the-eggs.jpg",
        "03-serve.jpg",
        None,
    ]
    assert all((tmp_path / step["image"]).is_file() for step in document["step"][:3])
    with pytest.raises(InputError, match="not 'doc'"):
        found.clips(tmp_path, cards=["doc"])
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingDependencyError, match="Chromium or Chrome, which is not installed"):
        found.clips(tmp_path / "new", cards=["pdf"])
    assert not (tmp_path / "new").exists()


def test_cards_are_printed(video: Path, tmp_path: Path) -> None:
    if not shutil.which("chromium"):
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    grounded(video).clips(tmp_path, cards=["pdf", "png"])
    assert (tmp_path / "card.pdf").read_bytes()[:5] == b"%PDF-"
    import av

    with av.open(str(tmp_path / "card.png")) as container:
        image = next(container.decode(video=0)).to_ndarray(format="rgb24")
    assert image.shape[1] == 900 and 400 < image.shape[0] < 1400 and (image[-1] == 255).all()


KILLED = """
import sys
from graph2vid.grounding import Grounding
found = Grounding.load(sys.argv[1])
print("ready", flush=True)
while True:
    found.clips(sys.argv[2], precise=True)
"""


def test_a_kill_leaves_the_source_and_whole_clips(video: Path, tmp_path: Path) -> None:
    before = video.read_bytes()
    grounded(video).save(tmp_path / "r.json")
    for wait in (0.05, 0.4, 0.8):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, tmp_path / "r.json", tmp_path / "clips"], stdout=subprocess.PIPE
        )
        assert process.stdout is not None and process.stdout.readline()
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert video.read_bytes() == before
        for clip in (tmp_path / "clips").glob("[0-9]*.mp4"):
            assert levels(clip)


def test_the_command(video: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = grounded(video)
    *sure, last = found.segments
    replace(found, segments=(*sure, replace(last, why="one clip"))).save(tmp_path / "r.json")
    arguments = ["clips", str(tmp_path / "r.json"), "-o", str(tmp_path / "clips"), "--json", str(tmp_path / "c.json")]
    assert main([*arguments, "--doubtful", "omit"]) == 0
    assert "01-wash-the-berries.mp4" in capsys.readouterr().out
    told = json.loads((tmp_path / "c.json").read_text())["clips"]
    assert [one["clip"][:2] for one in told] == ["01", "02", "01"] and told[0]["still"] == "01-wash-the-berries.jpg"
    for extra, message in ((["--doubtful", "hide"], "not 'hide'"), (["--video", "none.mp4"], "not there (none.mp4)")):
        assert main([*arguments, *extra]) == 2
        told_error = capsys.readouterr().err
        assert message in told_error and told_error.count("\n") == 1
    make_grounding([-1], video=str(video)).save(tmp_path / "r.json")
    assert main(arguments) == 2 and "no step is shown" in capsys.readouterr().err


def test_sounds_are_cut_too(tmp_path: Path) -> None:
    path = film(tmp_path / "sound.m4a", sound=clicks(12, 8000), rate=8000)
    found = write_clips(make_grounding([0] * 6 + [1] * 6, STEPS, video=str(path)), tmp_path / "clips")
    assert [one.path.suffix for one in found] == [".m4a", ".m4a"] and found[0].still is None
    assert probe(found[1].path).duration == pytest.approx(6.0, abs=0.3)
    precise = write_clips(make_grounding([0] * 6 + [1] * 6, STEPS, video=str(path)), tmp_path / "p", precise=True)
    assert probe(precise[1].path).duration == pytest.approx(6.0, abs=0.2)
