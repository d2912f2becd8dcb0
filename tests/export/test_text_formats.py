"""Formats of lines: each is read back by a reader of its own."""

from __future__ import annotations

import csv
import html
import io
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from films import film
from found import AWKWARD, groundings, make_grounding
from graph2vid.errors import InputError
from graph2vid.evidence import read_captions
from graph2vid.export import FORMATS, export, read_annotations, write_export
from graph2vid.export.shared import text_of_cell, timed, titles
from graph2vid.flow import FlowGraph
from graph2vid.grounding import GroundedSegment, Grounding

AWKWARD_STEPS = make_grounding(sorted(range(len(AWKWARD))), AWKWARD, title="=;#\\ <title> & \n -->")


@pytest.mark.parametrize("name", list(FORMATS))
@given(groundings())
@settings(max_examples=15, deadline=None)
def test_every_format_takes_every_grounding(name: str, grounding: Grounding) -> None:
    try:
        exported = grounding.export(name)
    except InputError as error:
        assert name == "youtube" and ("at least 3 chapters" in str(error) or "at least one step" in str(error))
        return
    exported.text.encode("utf-8")
    assert exported.text.endswith("\n") or not timed(grounding)[0]
    assert name == "json" or "\x00" not in exported.text
    assert all("\n" not in note for note in exported.notes)


def test_unknown_formats_and_rates_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown export format 'doc'; known: createml, crosstask, csv"):
        write_export(tmp_path / "a.doc", AWKWARD_STEPS, "doc")
    with pytest.raises(InputError, match="frame rate must be a positive number"):
        export(AWKWARD_STEPS, "label-studio", frame_rate=0)
    assert not list(tmp_path.iterdir())


def test_native_is_the_result_file(tmp_path: Path) -> None:
    grounding = make_grounding([0, -1, 2], video="film.mp4")
    assert write_export(tmp_path / "a.json", grounding, "json") == ()
    again = Grounding.load(tmp_path / "a.json")
    assert again.segments == grounding.segments and again.video == str(Path("film.mp4").resolve())


@given(groundings())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_vtt_is_read_by_a_parser(grounding: Grounding) -> None:
    webvtt = pytest.importorskip("webvtt")
    text = export(grounding, "vtt").text
    assert text.startswith("WEBVTT\n\n") or text == "WEBVTT\n"
    read = webvtt.from_buffer(io.StringIO(text))
    segments = timed(grounding)[0]
    names = titles(grounding.flow)
    assert [(milliseconds(cue.start), milliseconds(cue.end)) for cue in read] == [(s.start, s.end) for s in segments]
    assert [html.unescape(cue.raw_text) for cue in read] == [names[s.step] for s in segments]
    assert text.count("-->") == len(segments)


def milliseconds(text: str) -> int:
    hours, minutes, seconds = text.replace(",", ".").split(":")
    return (int(hours) * 60 + int(minutes)) * 60_000 + round(float(seconds) * 1000)


@pytest.mark.parametrize("name", ["vtt", "srt"])
def test_captions_are_read_by_our_own_reader(name: str, tmp_path: Path) -> None:
    grounding = make_grounding([0, 0, -1, 1, 2, 1], ["peel & cut", "a < b --> c", "mix"], clip_seconds=2.5)
    path = tmp_path / f"a.{name}"
    write_export(path, grounding, name)
    cues = read_captions(path)
    assert [(cue.start, cue.end) for cue in cues] == [(s.start, s.end) for s in grounding.segments]
    assert cues[0].text == "peel & cut" and cues[1].text == {"vtt": "a < b --> c", "srt": "a ‹ b → c"}[name]


def test_srt_is_numbered_and_has_one_arrow_each() -> None:
    text = export(AWKWARD_STEPS, "srt").text
    blocks = text.strip().split("\n\n")
    assert [block.split("\n")[0] for block in blocks] == [str(n) for n in range(1, len(AWKWARD) + 1)]
    assert all(len(block.split("\n")) == 3 for block in blocks) and text.count("-->") == len(AWKWARD)
    assert blocks[0].split("\n")[1] == "00:00:00,000 --> 00:00:01,000"


def test_srt_is_read_by_a_parser() -> None:
    pysubs2 = pytest.importorskip("pysubs2")
    read = pysubs2.SSAFile.from_string(export(AWKWARD_STEPS, "srt").text, format_="srt")
    segments, names = timed(AWKWARD_STEPS)[0], titles(AWKWARD_STEPS.flow)
    assert [(cue.start, cue.end) for cue in read] == [(s.start, s.end) for s in segments]
    shown = [names[s.step].replace("-->", "→").replace("<", "‹").replace(">", "›") for s in segments]
    assert [cue.plaintext for cue in read] == shown


@given(groundings())
@settings(max_examples=60, deadline=None)
def test_csv_has_every_segment_and_every_step(grounding: Grounding) -> None:
    rows = list(csv.DictReader(io.StringIO(export(grounding, "csv").text, newline="")))
    assert len(rows) == len(grounding.segments) + len(grounding.not_shown)
    assert {int(row["step"]) - 1 for row in rows} == set(range(len(grounding.flow)))
    for row, segment in zip(rows, grounding.segments, strict=False):
        assert text_of_cell(row["id"]) == segment.id and int(row["step"]) == segment.step + 1
        assert int(row["order"]) == grounding.order.index(segment.step) + 1
        assert float(row["start"]) == pytest.approx(segment.start, abs=6e-4)
    assert all(row["start"] == row["end"] == "" for row in rows[len(grounding.segments) :])


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "'=1", "'", "''x", "=HYPERLINK(1)"])
def test_no_cell_is_a_formula_and_the_text_comes_back(text: str, tmp_path: Path) -> None:
    flow = FlowGraph.bag([(text, text), ("b", "mix")])
    found = Grounding(flow, (GroundedSegment(0, text, text, 1.0, 2.0),), (1,), (0,), 1.0, np.array([-1, 0]))
    written = export(found, "csv").text
    row = next(csv.DictReader(io.StringIO(written, newline="")))
    assert row["id"][0] not in "=+-@\t\r" and row["text"][0] not in "=+-@\t\r"
    assert text_of_cell(row["text"]) == text
    (tmp_path / "a.csv").write_bytes(written.encode())
    assert [one.step for one in read_annotations(tmp_path / "a.csv", flow)] == [0, 1]


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("av")
    return film(tmp_path_factory.mktemp("film") / "a.mp4", [0, 1, 2, 39])


def chapters_through_mp4(folder: Path, video: Path, metadata: str) -> tuple[list[Any], dict[str, str], list[Any]]:
    """Return the chapters and tags that FFmpeg reads from a metadata file, and the chapters after muxing."""
    import av

    (folder / "metadata.txt").write_text(metadata, encoding="utf-8")
    with av.open(str(folder / "metadata.txt"), format="ffmetadata") as file:
        chapters, tags = file.chapters(), dict(file.metadata)
    with av.open(str(video)) as source, av.open(str(folder / "with.mp4"), "w") as muxed:
        stream = muxed.add_stream_from_template(source.streams.video[0])
        muxed.set_chapters(chapters)
        for packet in source.demux(source.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                muxed.mux(packet)
    with av.open(str(folder / "with.mp4")) as again:
        return chapters, tags, again.chapters()


@pytest.mark.parametrize("first", [0, 3])
def test_ffmetadata_goes_through_ffmpeg_into_an_mp4(first: int, tmp_path: Path, video: Path) -> None:
    labels = [-1] * first + [step for step in range(len(AWKWARD)) for _ in range(2)] + [-1, -1, 1, 1]
    grounding = make_grounding(labels, AWKWARD, title=AWKWARD_STEPS.flow.title)
    exported = export(grounding, "ffmetadata")
    chapters, tags, muxed = chapters_through_mp4(tmp_path, video, exported.text)
    names = titles(grounding.flow)
    wanted = [(s.start, s.end, names[s.step]) for s in timed(grounding)[0]]
    if first:
        wanted.insert(0, (0, 3000, "Intro"))
        assert "Intro" in exported.notes[0]
    assert [(c["start"], c["end"], c["metadata"].get("title", "")) for c in chapters] == wanted
    assert all(chapter["time_base"] == Fraction(1, 1000) for chapter in chapters)
    assert tags["title"] == "=;#\\ <title> & -->"
    in_ms = [(c["start"] * c["time_base"] * 1000, c["metadata"]["title"]) for c in muxed]
    # MP4 keeps titles of up to 255 bytes in one of the two places where it has them.
    assert [at for at, _ in in_ms] == [start for start, _, _ in wanted]
    assert all(
        name.startswith(read) and len(read) >= min(len(name), 60)
        for (_, read), (*_, name) in zip(in_ms, wanted, strict=True)
    )


def test_rttm_has_ten_fields_and_names_that_can_be_read_back() -> None:
    steps = [("cut the 50% part", "x"), ("b", "y"), ("Ä", "z")]
    grounding = make_grounding([0, 0, -1, 1, 2, 0], steps, clip_seconds=0.5, video="my film.mp4")
    lines = [line.split(" ") for line in export(grounding, "rttm").text.splitlines()]
    assert all(len(line) == 10 and line[0] == "SPEAKER" and line[1] == "my%20film" for line in lines)
    assert [(unquote(line[7]), float(line[3]), float(line[4])) for line in lines] == [
        (s.id, s.start, s.duration) for s in grounding.segments
    ]


def test_rttm_is_read_by_pyannote(tmp_path: Path) -> None:
    reader = pytest.importorskip("pyannote.database.util", reason="pyannote.database is not installed")
    grounding = make_grounding([0, 0, -1, 1, 2, 0], AWKWARD[:3], clip_seconds=0.5, video="my film.mp4")
    write_export(tmp_path / "a.rttm", grounding, "rttm")
    (turns,) = reader.load_rttm(tmp_path / "a.rttm").values()
    read = [(turn.start, turn.end, step) for turn, _, step in turns.itertracks(yield_label=True)]
    assert read == [(s.start, s.end, s.id) for s in grounding.segments]


def test_crosstask_lines_are_read_by_the_reader_of_the_dataset() -> None:
    grounding = make_grounding([2] * 3 + [-1] + [0] * 4, clip_seconds=3.2, offset=12345.6)
    lines = [line.split(",") for line in export(grounding, "crosstask").text.splitlines()]
    assert [(int(s), float(a), float(b)) for s, a, b in lines] == [(3, 12345.6, 12355.2), (1, 12358.4, 12371.2)]


def test_what_lies_before_the_video_is_cut_and_said() -> None:
    grounding = make_grounding([0, 1, 1, 2], offset=-2.0)
    exported = export(grounding, "crosstask")
    assert exported.text == "2,0,1\n3,1,2\n" and exported.notes[0].startswith("1 segment before the beginning")
    assert "cut" in exported.notes[1]
