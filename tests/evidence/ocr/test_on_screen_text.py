"""On-screen text: which frames are read, how lines become cues, and what these say about steps."""

from __future__ import annotations

import math
import subprocess
import sys
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import films
from graph2vid import ground
from graph2vid._options import EvidenceOptions
from graph2vid.errors import InputError
from graph2vid.evidence import Cache, Cue, Grid, Transcript, text_embedder, transcript_of
from graph2vid.evidence.media import frames
from graph2vid.evidence.ocr import (
    CAPTION,
    Line,
    Reading,
    is_installed,
    read_lines,
    screen_cues,
    screen_evidence,
    screen_reading,
)
from graph2vid.evidence.ocr.screen_cues import is_list
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding
from graph2vid.sample import SilentFiles

pytest.importorskip("av", reason="needs graph2vid[media]")
pytest.importorskip("wordllama", reason="needs graph2vid[text]")
needs_reader = pytest.mark.skipif(not is_installed(), reason="needs graph2vid[ocr]")

STEPS = ["Chop the onion.", "Fry the onion in oil.", "Boil the pasta.", "Serve with cheese."]


def line(text: str, top: float = 0.8, height: float = 0.06, left: float = 0.3, score: float = 0.99) -> Line:
    return Line(text, left, top, 0.02 * len(text), height, score)


def reading(seconds: float, *lines: Line) -> Reading:
    return Reading(seconds, lines)


# -- lines become cues ---------------------------------------------------------------------------------------


def test_a_line_begins_and_ends_where_it_was_first_and_last_read() -> None:
    cues = screen_cues(
        [reading(0.0), reading(4.5, line("Chop the onion")), reading(9.0, line("Fry it")), reading(14.0)], 20.0
    )
    assert [(cue.text, cue.kind) for cue in cues] == [("Chop the onion", CAPTION), ("Fry it", CAPTION)]
    assert cues[0].start == pytest.approx(4.25, abs=0.5) and cues[0].end == pytest.approx(8.75, abs=0.5)
    assert cues[1].end == pytest.approx(13.75, abs=0.5)
    assert cues[0].box is not None and 0 < cues[0].box[0] < 1


def test_readings_of_one_line_may_differ_and_one_may_be_missed() -> None:
    cues = screen_cues(
        [
            reading(0.0, line("Chop the onlon", score=0.7)),
            reading(1.0, line("Chop the onion")),
            reading(2.0),
            reading(2.5, line("Chop the onion")),
            reading(6.0),
        ],
        10.0,
    )
    assert [cue.text for cue in cues] == ["Chop the onion"]
    assert cues[0].end == pytest.approx(5.75, abs=0.5)


def test_text_that_is_being_written_is_one_cue() -> None:
    cues = screen_cues([reading(0.5, line("Chop")), reading(1.0, line("Chop the onion")), reading(5.0)], 10.0)
    assert [cue.text for cue in cues] == ["Chop the onion"]


def test_lines_that_stand_together_are_one_cue() -> None:
    both = line("Heat the oil", top=0.78), line("in a large pan", top=0.85)
    cues = screen_cues([reading(1.0, *both), reading(5.0)], 10.0)
    assert [cue.text for cue in cues] == ["Heat the oil in a large pan"]


def test_kinds_are_told_apart() -> None:
    mark = line("@kitchen", top=0.02, height=0.03, left=0.8)
    listed = [line(text, top=0.3 + 0.08 * at) for at, text in enumerate(("2 cups flour", "1 tsp salt", "3 eggs"))]
    cues = screen_cues(
        [
            reading(0.0, mark, line("Pancakes", top=0.4, height=0.12)),
            reading(4.0, mark, *listed),
            reading(8.0, mark, line("Add 2 cups of flour")),
            reading(14.0, mark, line("Whisk the eggs")),
            reading(20.0, mark, line("Bake")),
            reading(26.0, mark, line("Thanks for watching!")),
            reading(30.0, mark),
        ],
        60.0,
    )
    kinds = {cue.text: cue.kind for cue in cues}
    assert kinds == {
        "@kitchen": "watermark",
        "Pancakes": "title",
        "2 cups flour 1 tsp salt 3 eggs": "ingredients",
        "Add 2 cups of flour": "caption",
        "Whisk the eggs": "caption",
        "Bake": "caption",
        "Thanks for watching!": "title",
    }


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["2 cups flour", "1 tsp salt"], True),
        (["1 onion"], True),
        (["INGREDIENTS", "some flour"], True),
        (["You will need:", "1 pot"], True),
        (["Cook veggies", "5 min"], False),
        (["Bake 1 hour"], False),
        (["Add 2 cups of flour"], False),
        (["10 minutes"], False),
    ],
)
def test_lists_are_amounts_and_things(lines: list[str], expected: bool) -> None:
    assert is_list(lines) is expected


# -- cues become evidence ------------------------------------------------------------------------------------


def caption(start: float, end: float, text: str, kind: str = CAPTION) -> Cue:
    return Cue(start, end, text, kind=kind, box=(0.2, 0.8, 0.5, 0.06))


def silent(*cues: Cue, duration: float = 40.0) -> Transcript:
    return Transcript(cues, duration, "on-screen text")


def test_captions_place_steps_where_they_are_shown() -> None:
    flow = FlowGraph.from_edges(STEPS, [(0, 1), (1, 3), (2, 3)], title="Pasta")
    cues = [
        caption(0, 4, "Pasta night", "title"),
        caption(5, 10, "Boil pasta"),
        caption(12, 16, "Chop onion"),
        caption(18, 24, "So good!"),
        caption(25, 30, "Fry in oil"),
        caption(33, 38, "Serve with cheese"),
    ]
    found = ground(flow, silent(*cues), cache=False)
    assert found.order == (2, 0, 1, 3) and found.not_shown == ()
    starts = [found.segments_of(step)[0].start for step in found.order]
    assert np.abs(np.array(starts) - [5, 12, 25, 33]).max() <= 1
    assert found.is_uncalibrated and "on_screen" in found.options
    assert found.options["on_screen"]["kinds"] == {"caption": 5, "title": 1}


def test_a_step_that_no_caption_names_is_not_shown() -> None:
    flow = FlowGraph.chain(STEPS)
    found = ground(flow, silent(caption(3, 9, "Chop onion"), caption(20, 28, "Serve with cheese")), cache=False)
    assert found.not_shown == (1, 2)


@pytest.mark.parametrize(
    "texts",
    [("Step 1", "Step 2", "Step 3", "Step 4"), ("1/4", "2/4", "3/4", "4/4"), ("1/4 now", "2 of 4", "3/4 later", "4/4")],
)
def test_numbers_speak_for_steps_of_a_procedure_with_as_many(texts: tuple[str, ...]) -> None:
    cues = [caption(10.0 * at, 10.0 * at + 8, text) for at, text in enumerate(texts)]
    found = screen_evidence(STEPS, cues, text_embedder(), Grid(1.0, 40))
    assert found.numbered and found.probability.argmax(axis=1).tolist() == [0, 1, 2, 3]
    assert found.probability.max(axis=1).min() > 0.8
    shorter = screen_evidence(STEPS[:3], cues, text_embedder(), Grid(1.0, 40))
    assert not shorter.numbered


def test_numbers_that_the_words_contradict_are_not_used() -> None:
    """The video numbers its own order."""
    texts = ("Step 1: Boil pasta", "Step 2: Chop onion", "Step 3: Fry onion in oil", "Step 4: Serve with cheese")
    cues = [caption(10.0 * at, 10.0 * at + 8, text) for at, text in enumerate(texts)]
    found = screen_evidence(STEPS, cues, text_embedder(), Grid(1.0, 40))
    assert not found.numbered and found.probability.argmax(axis=1).tolist() == [2, 0, 1, 3]


def test_words_may_be_misread_or_run_together() -> None:
    cues = [caption(0, 5, "Chopthe onion"), caption(6, 11, "Boil tne pasfa"), caption(12, 16, "Servewithcheese")]
    found = screen_evidence(STEPS, cues, text_embedder(), Grid(1.0, 20))
    assert found.probability.argmax(axis=1).tolist() == [0, 2, 3]


def test_speech_and_text_are_fused() -> None:
    flow = FlowGraph.chain(STEPS)
    said = [Cue(2, 6, "First I chop the onion."), Cue(12, 16, "Now fry the onion in some oil.")]
    written = [caption(22, 27, "Boil the pasta"), caption(32, 37, "Serve with cheese")]
    found = ground(flow, silent(*said, *written), cache=False)
    assert found.not_shown == () and {"narration", "on_screen"} <= found.options.keys()
    assert abs(found.segments_of(2)[0].start - 22) <= 5 and abs(found.segments_of(3)[0].start - 32) <= 1
    assert found.segments_of(0)[0].start <= 6
    assert found.is_uncalibrated


def test_captions_of_other_things_are_no_evidence() -> None:
    flow = FlowGraph.chain(STEPS)
    with pytest.raises(InputError, match=r"no caption is in its picture \(only watermark\)"):
        ground(flow, silent(caption(0, 40, "@kitchen", "watermark")), cache=False)


def test_results_keep_kind_and_box(tmp_path: Path) -> None:
    found = ground(FlowGraph.chain(STEPS), silent(caption(3, 9, "Chop onion"), Cue(1, 2, "Hello")), cache=False)
    found.save(tmp_path / "result.json")
    again = Grounding.load(tmp_path / "result.json")
    assert [(cue.kind, cue.box) for cue in again.cues] == [(cue.kind, cue.box) for cue in found.cues]
    assert {cue.kind for cue in again.cues} == {"", "caption"}


# -- which frames are read -----------------------------------------------------------------------------------


def picture(texts: int = 0, seed: int = 0) -> np.ndarray[Any, Any]:
    """A soft grey picture with ``texts`` rows of something like letters."""
    image = np.full((480, 854, 3), 120, dtype=np.uint8)
    image[:, :, 0] = np.linspace(60, 180, 854, dtype=np.uint8)
    letters = np.random.default_rng(seed).random((8, 60)) > 0.5
    for row in range(texts):
        image[200 + 60 * row : 232 + 60 * row, 200:440] = 255 * np.kron(letters, np.ones((4, 4), np.uint8))[..., None]
    return image


def test_a_picture_is_read_when_text_comes_and_goes() -> None:
    shown = [0] * 10 + [1] * 10 + [2] * 10 + [0] * 10
    watched = screen_reading._watched(iter((at / 2, picture(count)) for at, count in enumerate(shown)))
    read = [seconds for seconds, _, due in watched if due]
    assert read[0] == 0.0 and len(read) <= 8
    for change in (5.0, 10.0, 15.0):
        assert any(change <= seconds <= change + 1.0 for seconds in read)


def test_a_still_picture_is_read_once() -> None:
    read = [due for _, _, due in screen_reading._watched(iter((at / 2, picture(1)) for at in range(60)))]
    assert sum(read) == 1


def test_reading_goes_on_where_it_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    video = films.film(tmp_path / "film.mp4", [0.0, 50.0, 100.0, 150.0, 200.0])
    read: list[int] = []

    def lines(image: Any) -> list[Line]:
        read.append(len(read))
        if len(read) == 4:
            raise KeyboardInterrupt
        return [line("text")]

    monkeypatch.setattr(screen_reading, "is_installed", lambda: True)
    monkeypatch.setattr(screen_reading, "version", lambda _: "0")
    monkeypatch.setattr(screen_reading, "cpu_count", lambda: 1)
    monkeypatch.setattr(screen_reading, "read_lines", lines)
    cache = Cache(tmp_path / "cache")
    with pytest.raises(KeyboardInterrupt):
        screen_reading.read_screen(video, 200.1, cache=cache)
    kept = len(cache.entries())
    assert kept >= 1
    told: list[float] = []
    found = screen_reading.read_screen(video, 200.1, cache=cache, progress=lambda done, _: told.append(done))
    assert [one.seconds for one in found] == sorted(one.seconds for one in found)
    assert len(found) < len(read)  # the part that was interrupted was read twice, those before it once
    assert told[-1] == pytest.approx(200.1) and cache.hits == kept


READ_SLOWLY = """
import sys, time
from graph2vid.evidence import Cache
from graph2vid.evidence.ocr import Line, screen_reading
screen_reading.is_installed, screen_reading.version = lambda: True, lambda _: "0"
screen_reading.read_lines = lambda image: time.sleep(float(sys.argv[3])) or [Line("text", 0.3, 0.8, 0.1, 0.06, 0.9)]
cache = Cache(sys.argv[2])
print(screen_reading.read_screen(sys.argv[1], 600.1, cache=cache), cache.hits)
"""


def test_reading_that_was_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    video, kept = films.film(tmp_path / "film.mp4", [30.0 * at for at in range(21)]), tmp_path / "kept"

    def read(folder: Path, seconds: float) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", READ_SLOWLY, str(video), str(folder), str(seconds)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    whole, _ = read(tmp_path / "other", 0.0).communicate(timeout=60)
    with read(kept, 0.3) as slow:
        end = time.monotonic() + 60
        while len(Cache(kept).entries()) < 3 and time.monotonic() < end:
            time.sleep(0.02)
        slow.kill()
    parts = len(Cache(kept).entries())
    again, _ = read(kept, 0.0).communicate(timeout=60)
    assert 3 <= parts < 11 and again == whole.removesuffix(" 0\n") + f" {parts}\n"


def test_parts_of_a_video_are_what_the_whole_is(tmp_path: Path) -> None:
    video = SilentFiles().video
    whole = {seconds: image.mean() for seconds, image in frames(video, rate=1.0, size=32)}
    parts = {
        seconds: image.mean()
        for start, stop in ((0.0, 20.0), (20.0, 40.5), (40.5, 70.0), (70.0, math.inf))
        for seconds, image in frames(video, rate=1.0, size=32, start=start, stop=stop)
    }
    assert parts == whole


# -- real text -----------------------------------------------------------------------------------------------


@needs_reader
def test_text_in_a_picture_is_read() -> None:
    image = next(image for seconds, image in frames(SilentFiles().video, rate=1.0, size=480, start=1.0))
    texts = [one.text for one in read_lines(image)]
    assert "Spaghetti Night" in texts


@needs_reader
def test_a_video_with_neither_words_nor_text_says_so_in_one_line(tmp_path: Path) -> None:
    video = films.film(tmp_path / "grey.mp4", [0.0, 1.0, 2.0])
    with pytest.raises(InputError, match="has no sound, and there is no text in its picture: give captions") as refused:
        ground("Chop the onion.\nFry the onion.\n", video, cache=False)
    assert "\n" not in str(refused.value)


def test_without_a_reader_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    video = films.film(tmp_path / "grey.mp4", [0.0, 1.0])
    monkeypatch.setattr(import_module("graph2vid.evidence.transcript"), "is_installed", lambda: False)
    with pytest.raises(InputError, match=r"was not read \(pip install .*\[ocr\]"):
        transcript_of(video)


def test_the_screen_is_not_read_where_somebody_speaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    video = films.film(tmp_path / "grey.mp4", [0.0, 1.0])
    captions = tmp_path / "said.vtt"
    captions.write_text("WEBVTT\n\n00:00.000 --> 00:01.000\nChop the onion.\n", "utf-8")

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("the screen was read")

    monkeypatch.setattr(import_module("graph2vid.evidence.transcript"), "read_screen", never)
    assert len(transcript_of(video, captions).cues) == 1
    with pytest.raises(AssertionError):
        transcript_of(video, captions, EvidenceOptions(on_screen="on"))


@needs_reader
@pytest.mark.slow
def test_the_silent_sample_is_grounded_from_its_captions() -> None:
    from graph2vid.sample import ground_silent_sample, load_silent

    sample = load_silent()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        transcript = transcript_of(sample.files.video)
        assert not [cue for cue in transcript.cues if not cue.kind]  # music is not words
        graph, linear = ground_silent_sample(sample, sample.flow, transcript)
    assert graph.near == 10 > linear.near
