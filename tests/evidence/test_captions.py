"""Captions of all kinds: WebVTT, SubRip, rolling ones, and what speech recognisers write."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph2vid.errors import FormatError, Graph2VidError
from graph2vid.evidence.captions import Cue, Word, mend, parse_captions, parse_timed_text, read_captions

VTT = """WEBVTT Kind: captions

NOTE made by hand

intro
01:02.500 --> 00:01:04.000 align:start position:0%
<v Ann>cut the <i>tomato</i>
&amp; onion

1:00:00.000 --> 1:00:01.000

00:00:07.000 --> 00:00:08.250
stir
"""

# As automatic captions come: two lines, the upper one repeated, a moment of rest between them, times within.
ROLLING = """WEBVTT
Kind: captions
Language: en

00:00:00.160 --> 00:00:02.470 align:start position:0%
\u0020
now<00:00:00.560><c> we</c><00:00:00.719><c> peel</c>

00:00:02.470 --> 00:00:02.480 align:start position:0%
now we peel
\u0020

00:00:02.480 --> 00:00:04.990 align:start position:0%
now we peel
two<00:00:02.900><c> ripe</c><00:00:03.500><c> pears</c>

00:00:04.990 --> 00:00:05.000 align:start position:0%
two ripe pears
\u0020

00:00:05.000 --> 00:00:07.000 align:start position:0%
two ripe pears
[Music]

00:00:07.000 --> 00:00:07.010 align:start position:0%
[Music]
\u0020

00:00:07.010 --> 00:00:09.000 align:start position:0%
[Music]
and<00:00:07.500><c> dice</c><00:00:08.000><c> them</c>
"""

ROLLING_LINES = ["now we peel", "two ripe pears", "[Music]", "and dice them"]


def test_webvtt() -> None:
    assert parse_captions(VTT) == (Cue(7.0, 8.25, "stir"), Cue(62.5, 64.0, "cut the tomato & onion"))


def test_subrip(tmp_path: Path) -> None:
    path = tmp_path / "a.SRT"
    path.write_bytes(
        "\ufeff1\r\n00:00:01,000 --> 00:00:02,500\r\ncut\r\n \r\n2\r\n00:00:03,000 --> 00:00:04,000\r\nmix\r\n".encode()
    )
    assert read_captions(path) == (Cue(1.0, 2.5, "cut"), Cue(3.0, 4.0, "mix"))


def test_rolling_captions_say_each_line_once() -> None:
    cues = parse_captions(ROLLING)
    assert [cue.text for cue in cues] == ROLLING_LINES
    assert [(cue.start, cue.end) for cue in cues] == [(0.16, 2.47), (2.48, 4.99), (5.0, 7.0), (7.01, 9.0)]
    assert cues[1].words == (Word(2.48, 2.9, "two"), Word(2.9, 3.5, "ripe"), Word(3.5, 4.99, "pears"))
    assert cues[2].words == ()


def test_rolling_captions_that_lost_their_marks() -> None:
    rolled = [("00:01", "now we peel"), ("00:03", "now we peel\ntwo ripe pears"), ("00:05", "two ripe pears\nand dice")]
    text = "".join(f"{n}\n00:{at},000 --> 00:{at},900\n{said}\n\n" for n, (at, said) in enumerate(rolled))
    assert [cue.text for cue in parse_captions(text)] == ["now we peel", "two ripe pears", "and dice"]


def test_a_line_said_twice_in_rolling_captions() -> None:
    lines = ["stir", "stir", "stop", "stir", "go"]
    blocks = [[lines[0]], *([upper, lower] for upper, lower in pairwise(lines))]
    text = "WEBVTT\n\n" + "".join(
        f"00:0{at}.000 --> 00:0{at}.900\n" + "\n".join(block) + "\n\n" for at, block in enumerate(blocks)
    )
    assert [cue.text for cue in parse_captions(text)] == lines


def test_repeats_in_captions_that_do_not_roll_stay() -> None:
    said = ["yes", "yes", "fold it in", "gently", "no", "no", "wait"]
    text = "".join(f"{n}\n00:00:0{n},000 --> 00:00:0{n},500\n{line}\n\n" for n, line in enumerate(said))
    assert [cue.text for cue in parse_captions(text)] == said
    assert [cue.text for cue in parse_captions("00:01.000 --> 00:02.000\nyes\n\n00:03.000 --> 00:04.000\nyes\n")] == [
        "yes",
        "yes",
    ]


def test_cues_in_any_order_and_over_one_another() -> None:
    text = "WEBVTT\n\n00:09.000 --> 00:10.000\nc\n\n00:01.000 --> 00:08.000\na\n\n00:02.000 --> 00:03.000\nb\n"
    assert parse_captions(text) == (Cue(1.0, 8.0, "a"), Cue(2.0, 3.0, "b"), Cue(9.0, 10.0, "c"))


def test_word_times_out_of_range_stay_within_the_cue() -> None:
    (cue,) = parse_captions("WEBVTT\n\n00:01.000 --> 00:02.000\na<00:00.500> b<00:09.000> c<00:01.500>\n")
    assert cue.words == (Word(1.0, 1.0, "a"), Word(1.0, 2.0, "b"), Word(2.0, 2.0, "c"))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.vtt", "1\n00:01.000 --> 00:02.000\nx\n", "a.vtt, line 1: a WebVTT file begins with WEBVTT"),
        ("a.vtt", "", "a.vtt, line 1: a WebVTT file begins with WEBVTT"),
        ("a.vtt", "WEBVTT\n\n00:01 --> 00:02\nx\n", "a.vtt, line 3: not a cue's times"),
        (
            "a.srt",
            "1\n00:00:03,000 --> 00:00:02,000\nx\n",
            r"line 2: the cue ends \(2.0 s\) before it starts \(3.0 s\)",
        ),
        ("a.srt", "Peel the pears.\n", "a.srt: not a SubRip file, for no line holds a cue's times"),
        ("a.srt", "\0\1\2", r"a.srt is not a text file \(byte 0\)"),
        ("a.doc", "x", r"captions are read from .vtt, .srt, .sbv, .json3, .json, .txt files, not '.doc'"),
        ("a.txt", "x", "a.txt: not a transcript with times, for no line begins with one, such as 0:15"),
        ("a.txt", "0:20 - 0:10 x", r"line 1: the cue ends \(10.0 s\) before it starts \(20.0 s\)"),
        ("a.sbv", "x", "a.sbv: not a SubViewer file"),
        ("a.json3", "{}", "a.json3: not a transcript of Whisper"),
        ("a.json3", '{"events": 3}', "a.json3: not captions of YouTube, for it has no list of events"),
        ("a.json3", '{"events": [3]}', "event 0 .*an event has tStartMs"),
        ("a.json3", '{"events": [{"segs": [3]}]}', "event 0 .*'segs' must be a list of objects"),
        ("a.json3", '{"events": [{"segs": 3}]}', "event 0 .*'segs' must be a list of objects"),
        ("a.json3", '{"events": [{"tStartMs": -1, "segs": [{"utf8": "x"}]}]}', "'tStartMs' must be a number from 0"),
        ("a.json", "{", "a.json, line 1, column 2: not JSON"),
        ("a.json", '{"steps": []}', "a.json: not a transcript of Whisper, for it has no list of segments"),
        ("a.json", "[3]", r"a.json, segment 0 \(counted from 0\): a segment has start, end and text"),
        ("a.json", '[{"start": 1, "end": null, "text": "x"}]', "segment 0, 'end' must be a number, not None"),
        ("a.json", '[{"start": NaN, "end": 1, "text": "x"}]', "a.json: not JSON that can be read .NaN is no"),
        ("a.json", '[{"start": 2, "end": 1, "text": "x"}]', r"segment 0: the cue ends \(1.0 s\) before it starts"),
        ("a.json", '[{"start": 1, "end": 2, "text": "x", "words": {}}]', "segment 0: 'words' must be a list"),
        ("a.json", '[{"start": 1, "end": 2, "text": "x", "words": [1]}]', "segment 0, word 0 .*a word has"),
    ],
)
def test_bad_captions(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError, match=message):
        read_captions(tmp_path / name)


def test_folders_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "folder.vtt").mkdir()
    for name in ("folder.vtt", "missing.srt"):
        with pytest.raises(Graph2VidError, match="cannot read"):
            read_captions(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "text"), [("a.vtt", "WEBVTT\n"), ("a.srt", ""), ("a.srt", " \n\n"), ("a.json", '{"segments": []}')]
)
def test_nothing_said(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_captions(tmp_path / name) == ()


SAID = {"start": 1.0, "end": 3.0, "text": " Beat 3 eggs. "}
WRITTEN: dict[str, Any] = {
    "whisper": {
        "text": " Beat 3 eggs.",
        "segments": [
            SAID
            | {
                "id": 0,
                "words": [
                    {"word": " Beat", "start": 1.0, "end": 1.5, "probability": 0.9},
                    {"word": " 3", "start": 1.5, "end": 2.0, "probability": 0.8},
                    {"word": " eggs.", "start": 2.0, "end": 3.0, "probability": 0.7},
                ],
            }
        ],
        "language": "en",
    },
    "whisperx": {
        "segments": [
            {"start": 5, "end": 6, "text": ""},
            SAID
            | {
                "words": [
                    {"word": "Beat", "start": 1.0, "end": 1.5, "score": 0.9},
                    {"word": "3"},
                    {"word": "eggs.", "start": 2.0, "end": 3.0, "score": 0.7},
                ]
            },
        ],
        "word_segments": [],
    },
    "faster-whisper": [SAID | {"id": 1, "words": None}],
}


@pytest.mark.parametrize("writer", WRITTEN)
def test_transcripts(tmp_path: Path, writer: str) -> None:
    (tmp_path / "a.json").write_text(json.dumps(WRITTEN[writer]))
    (cue,) = read_captions(tmp_path / "a.json")
    assert (cue.start, cue.end, cue.text) == (1.0, 3.0, "Beat 3 eggs.")
    every = (Word(1.0, 1.5, "Beat", 0.9), Word(1.5, 2.0, "3", 0.8), Word(2.0, 3.0, "eggs.", 0.7))
    assert cue.words == {"whisper": every, "whisperx": every[::2], "faster-whisper": ()}[writer]


def test_segments_are_sorted(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([SAID | {"start": 2.0, "text": "b"}, SAID | {"text": "a"}]))
    assert [cue.text for cue in read_captions(tmp_path / "a.json")] == ["a", "b"]


def test_encodings(tmp_path: Path) -> None:
    said = "Crème fraîche, don’t boil – 5 €"
    text = f"1\n00:00:01,000 --> 00:00:02,000\n{said}\n"
    twice = text.encode().decode("cp1252")
    data = {
        "utf-8": text.encode(),
        "mark": text.encode("utf-8-sig"),
        "utf-16": text.encode("utf-16"),
        "western": text.encode("cp1252"),
        "mojibake": twice.encode(),
    }
    for name, written in data.items():
        path = tmp_path / f"{name}.srt"
        path.write_bytes(written)
        assert read_captions(path) == (Cue(1.0, 2.0, said),), name


def test_mending_leaves_other_languages_alone() -> None:
    for text in ("naïve café", "Ärger über Öl", "豆腐を切る", "нарежьте лук", "½ cup", "Ã la carte", "plain"):
        assert mend(text) == text
    assert mend("caf\u00c3\u00a9") == "café"
    assert mend("\u00e2\u20ac\u0153quoted\u00e2\u20ac\u009d") == "“quoted”"


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab<>&;-:0\n\r .,WEBVT1/c", max_size=80))
def test_anything_is_read_or_refused(text: str) -> None:
    try:
        cues = parse_captions(text)
    except FormatError:
        return
    assert all(cue.start <= cue.end and cue.text for cue in cues)
    assert list(cues) == sorted(cues, key=lambda cue: (cue.start, cue.end))


def test_subviewer(tmp_path: Path) -> None:
    path = tmp_path / "a.sbv"
    path.write_text("0:00:01.000,0:00:03.500\nCut &amp; peel\nthe pears\n\n0:01:02.000,0:01:04.000\nServe them.\n")
    assert read_captions(path) == (Cue(1.0, 3.5, "Cut & peel the pears"), Cue(62.0, 64.0, "Serve them."))


JSON3 = {
    "wireMagic": "pb3",
    "events": [
        {"tStartMs": 0, "dDurationMs": 9000, "id": 1},
        {
            "tStartMs": 1000,
            "dDurationMs": 4000,
            "segs": [{"utf8": "cut"}, {"utf8": " the", "tOffsetMs": 400}, {"utf8": " pears", "tOffsetMs": 900}],
        },
        {"tStartMs": 2990, "dDurationMs": 2010, "aAppend": 1, "segs": [{"utf8": "\n"}]},
        {"tStartMs": 3000, "dDurationMs": 2000, "segs": [{"utf8": "and serve\nthem"}]},
    ],
}


@pytest.mark.parametrize("name", ["a.json3", "a.en.json"])
def test_captions_of_youtube(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(json.dumps(JSON3))
    first, second = read_captions(tmp_path / name)
    assert first == Cue(
        1.0, 3.0, "cut the pears", (Word(1.0, 1.4, "cut"), Word(1.4, 1.9, "the"), Word(1.9, 3.0, "pears"))
    )
    assert second == Cue(3.0, 5.0, "and serve them")


@pytest.mark.parametrize(
    "text",
    [
        "0:15 now we cut\n1:02:03 and serve",
        "[00:15] now we cut\n[01:02:03] and serve",
        "(0:15) now we cut\n(1:02:03) and serve",
        "0:15\nnow we cut\n\n1:02:03\nand serve\n",
        "A talk\n\n0:15: now we\ncut\n62:03 - and serve",
        "0:15.000 now we cut\r\n1:02:03,0 and serve",
    ],
)
def test_transcripts_with_times(tmp_path: Path, text: str) -> None:
    (tmp_path / "talk.txt").write_text(text)
    first, second = read_captions(tmp_path / "talk.txt")
    assert (first.start, first.end, first.text) == (15.0, 20.0, "now we cut")
    assert (second.start, second.end, second.text) == (3723.0, 3728.0, "and serve")


@pytest.mark.parametrize(
    "line",
    ["00:15 - 00:20 now we cut", "[0:15-0:20] now we cut", "0:15 – 0:20: now we cut", "(0:15 to 0:20) now we cut"],
)
def test_transcripts_with_ends(line: str) -> None:
    assert parse_timed_text(f"{line}\n0:17 and fry") == (Cue(15.0, 20.0, "now we cut"), Cue(17.0, 22.0, "and fry"))


def test_subrip_in_a_text_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n00:00:01,000 --> 00:00:02,000\nCut.\n")
    assert read_captions(tmp_path / "a.txt") == (Cue(1.0, 2.0, "Cut."),)
