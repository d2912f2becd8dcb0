"""Numbers, JSON, tables and character references in files: what is beyond all measure is refused in one line."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from graph2vid._files import parse_json, read_json, write_json, write_text
from graph2vid._values import count_of, number_of, read_number, seconds_of, shown, table_rows, unescaped
from graph2vid.cli import main
from graph2vid.errors import FormatError

LONG, LONGER = "9" * 400, "9" * 5000
FLOW = "cut: cut the pears\nserve: serve the pears\ncut -> serve\n"


def test_files_have_the_mode_of_any_new_file_and_nobody_touches_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    previous = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", None)  # it is the process's: other threads would write under it
        for _ in range(2):
            write_text(tmp_path / "file", "text")
        assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
        assert [path.name for path in tmp_path.iterdir()] == ["file"]
    finally:
        monkeypatch.undo()
        os.umask(previous)


@pytest.mark.parametrize(
    "text",
    [
        f'{{"a": {LONG}}}',
        f'{{"a": {LONGER}}}',
        "[NaN]",
        "[Infinity]",
        "[-Infinity]",
        "[1e400]",
        '["\\ud800"]',
        '{"\\udfff": 1}',
        '["\ud800"]',
        "[" * 60_000,
        "[" * 60_000 + "]" * 60_000,
        '{"a":' * 101 + "1" + "}" * 101,
        "{",
        "",
    ],
    ids=lambda text: text[:12].encode("ascii", "backslashreplace").decode(),
)
def test_json_beyond_measure(text: str) -> None:
    with pytest.raises(FormatError, match=r"^x\.json") as caught:
        parse_json(text, "x.json")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200


@pytest.mark.parametrize("value", [10**30, functools.reduce(lambda inner, _: [inner], range(101), 0)])
def test_json_that_could_not_be_read_again_is_not_written(tmp_path: Path, value: object) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"a": 1})
    with pytest.raises(FormatError, match=r"^cannot write .*x\.json"):
        write_json(path, {"a": value})
    assert read_json(path) == {"a": 1}


def test_names_of_files_that_are_not_utf_8_are_written_replaced(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"video": os.fsdecode(b"caf\xe9.mp4")})
    assert read_json(tmp_path / "x.json") == {"video": "caf\ufffd.mp4"}


def test_json_within_measure() -> None:
    assert parse_json('["\\ud83c\\udf55", "\\\\ud800", 123456789012345678901234567890, 1e300]', "x") == [
        "🍕",
        "\\ud800",
        123456789012345678901234567890,
        1e300,
    ]
    assert parse_json("[" * 100 + "]" * 100, "x")
    assert parse_json('["a\nb\\ud800"]', "x", lenient=True) == ["a\nb\ud800"]


def test_numbers() -> None:
    assert number_of(3, "x") == 3.0 == read_number(" 3 ", "x") and count_of("07", "x") == 7 == count_of(7.0, "x")
    assert read_number("-1.5e3", "x") == -1500.0 and read_number(".5", "x") == 0.5
    assert seconds_of("1", "02", "03.5", "x") == 3723.5 and seconds_of(None, None, "3", "x") == 3.0
    for bad in (True, None, "3", [], float("nan"), float("inf"), 10**400, 1e300, -1e16):
        with pytest.raises(FormatError, match=r"^x must be a number"):
            number_of(bad, "x")
    for bad in (LONG, LONGER, "1_0", "nan", "inf", "1e400", "", "٣", "0x1", "1e9999"):
        with pytest.raises(FormatError, match=r"^x must be a number"):
            read_number(bad, "x")
    for bad in ("1.5", 1.5, "-1", "x", "²", None):
        with pytest.raises(FormatError, match=r"^x must be"):
            count_of(bad, "x")
    with pytest.raises(FormatError, match="x must be a number from 1 to 3, not 4"):
        number_of(4, "x", least=1, most=3)
    with pytest.raises(FormatError, match="x must be a number"):
        seconds_of(LONG, "0", "0", "x")
    assert shown(10**400) == "a number of about 400 digits" and len(shown("x" * 10**6)) == 40


def test_character_references() -> None:
    assert unescaped("a &amp; b &#65; &#x1F355;") == "a & b A 🍕"
    assert unescaped(f"&#{LONGER}; &#x{'f' * 5000}; &#{LONG}") == "\ufffd \ufffd \ufffd"


def test_tables() -> None:
    assert list(table_rows(["a,b\n", '1,"x\n', 'y"\n', "2,z\n"], "t")) == [
        (1, ["a", "b"]),
        (2, ["1", "x\ny"]),
        (4, ["2", "z"]),
    ]
    with pytest.raises(FormatError, match=r"t, line 2: not CSV \(a field of more than"):
        list(table_rows(["a\n", "x" * 200_000], "t"))


def eaf(time: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ANNOTATION_DOCUMENT AUTHOR="" DATE="2024-01-01T00:00:00+00:00" '
        'FORMAT="3.0" VERSION="3.0"><HEADER MEDIA_FILE="" TIME_UNITS="milliseconds"/><TIME_ORDER>'
        f'<TIME_SLOT TIME_SLOT_ID="a" TIME_VALUE="0"/><TIME_SLOT TIME_SLOT_ID="b" TIME_VALUE="{time}"/></TIME_ORDER>'
        '<TIER LINGUISTIC_TYPE_REF="t" TIER_ID="steps"><ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="1" '
        'TIME_SLOT_REF1="a" TIME_SLOT_REF2="b"><ANNOTATION_VALUE>cut</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION>'
        '</ANNOTATION></TIER><LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="t" TIME_ALIGNABLE="true"/></ANNOTATION_DOCUMENT>'
    )


GOOD_VTT = "WEBVTT\n\n00:01.000 --> 00:05.000\ncut the pears\n\n00:06.000 --> 00:09.000\nserve the pears\n"
FILE = "FILE"
GROUND = ["ground", "f.flow", FILE]
CORRECTED = ["ground", "f.flow", "g.vtt", "--corrections", FILE]
LASTING = ["ground", "f.flow", "g.vtt", "--durations", FILE]
FLOW_OF = '{"format": "graph2vid-flow", "version": 1, %s "steps": [{"id": "a"}], "edges": []}'
RESULT_OF = '{"format": "graph2vid-grounding", "version": 1, "options": %s}'
DURATIONS_OF = '{"format": "graph2vid-durations", "version": 1, "others": {"median": %s, "spread": 1}}'
BAD = {
    "whisper, 400 digits": ("a.json", f'[{{"start": 1, "end": {LONG}, "text": "x"}}]', GROUND),
    "whisper, 5000 digits": ("a.json", f'[{{"start": {LONGER}, "end": 2, "text": "x"}}]', GROUND),
    "whisper, 1e300": ("a.json", '[{"start": 1, "end": 1e300, "text": "x"}]', GROUND),
    "whisper, surrogate": ("a.json", '[{"start": 1, "end": 2, "text": "\\ud800"}]', GROUND),
    "whisper, deep": ("a.json", "[" * 60_000, GROUND),
    "hours, 400 digits": ("a.vtt", f"WEBVTT\n\n{LONG}:00:01.000 --> {LONG}:00:05.000\nx\n", GROUND),
    "hours, 5000 digits": ("a.srt", f"1\n{LONGER}:00:01,000 --> {LONGER}:00:05,000\nx\n", GROUND),
    "a span, 5000 digits": ("a.vtt", GOOD_VTT, [*GROUND, "--pin", f"cut=0-{LONGER}:00"]),
    "a span, 400 digits": ("a.vtt", GOOD_VTT, [*GROUND, "--pin", f"cut=0-{LONG}"]),
    "transcript, 400 digits": ("a.txt", f"{LONG}:15 cut", GROUND),
    "sbv, 400 digits": ("a.sbv", f"{LONG}:00:15.000,{LONG}:00:16.000\ncut", GROUND),
    "json3, 1e300": ("a.json3", '{"events":[{"tStartMs":1e300,"segs":[{"utf8":"a"}]}]}', GROUND),
    "eaf, 400 digits": ("a.eaf", eaf(LONG), CORRECTED),
    "eaf, 5000 digits": ("a.eaf", eaf(LONGER), CORRECTED),
    "annotations, 400 digits": ("a.csv", f"1,0,{LONG}\n", CORRECTED),
    "annotations, a long field": ("a.csv", f"id,start,end\ncut,{'1' * 140_000},2\n", CORRECTED),
    "json-ld, 5000 digits": ("a.json", f'{{"@type": "Recipe", "x": {LONGER}}}', ["parse", FILE]),
    "json-ld, deep": ("a.json", '{"@type": "Recipe", "recipeInstructions": ' + "[" * 60_000, ["parse", FILE]),
    "flow, 5000 digits": ("a.json", FLOW_OF % f'"x": {LONGER},', ["flow", "show", FILE]),
    "flow, confidence": ("a.dot", f'digraph {{ a -> b [confidence="{LONG}"] }}', ["flow", "show", FILE]),
    "flow, surrogate": ("a.json", FLOW_OF % '"title": "\\ud800",', ["flow", "show", FILE]),
    "flow, surrogate in text": ("a.flow", 'title: "\\ud800"\na: b\n', ["parse", FILE]),
    "result, infinity": ("a.json", RESULT_OF % '{"x": Infinity}', ["view", FILE]),
    "result, deep": ("a.json", RESULT_OF % ('{"x":' * 500 + "1" + "}" * 500), ["view", FILE]),
    "durations, 400 digits": ("a.json", DURATIONS_OF % LONG, LASTING),
    "durations, 1e300": ("a.json", DURATIONS_OF % "1e300", LASTING),
}


@pytest.mark.parametrize("case", BAD)
def test_files_beyond_measure_are_refused_in_one_line(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if "eaf" in case:
        pytest.importorskip("pympi")
    monkeypatch.chdir(tmp_path)
    name, text, command = BAD[case]
    Path("f.flow").write_text(FLOW)
    Path("g.vtt").write_text(GOOD_VTT)
    Path(name).write_text(text)
    assert main([name if part == FILE else part for part in command]) == 2
    said = capfd.readouterr().err
    assert said.count("\n") == 1 and len(said) < 500


def test_a_reference_to_no_character_is_no_trouble(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recipe = {"@type": "Recipe", "recipeInstructions": [f"Mix &#{LONGER}; it.", f"Bake &#x{'f' * 400}; it."]}
    (tmp_path / "a.json").write_text(json.dumps(recipe))
    assert main(["parse", str(tmp_path / "a.json"), "--parser", "linear"]) == 0
    (tmp_path / "a.dot").write_text(f"digraph {{ a [label=<x &#{LONGER};>] }}")
    assert main(["flow", "show", str(tmp_path / "a.dot")]) == 0


@pytest.mark.parametrize("arguments", [["--version"], ["flow", "show", "f.flow"]])
def test_closed_standard_output(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "f.flow").write_text(FLOW)
    command = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "graph2vid", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "standard output is closed" in done.stderr
