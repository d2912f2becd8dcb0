"""``graph2vid batch`` on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from corpora import data_bytes, make_rows, plant_faults, read, scores, write_jsonl, write_parquet
from graph2vid.cli import main, progress


def test_a_corpus_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = make_rows(8)
    rows[2]["procedure"] = "nowhere.flow"
    rows[5]["scores"] = scores(5, 3, clips=2)
    manifest = write_parquet(tmp_path / "m.parquet", rows)
    out, summary = tmp_path / "out", tmp_path / "summary.json"
    command = [
        "batch",
        str(manifest),
        "--out",
        str(out),
        "--workers",
        "1",
        "--drop",
        "percentile:20",
        "--json",
        str(summary),
    ]
    assert main(command) == 1
    told = capsys.readouterr()
    assert "row 3 ('v0002'): procedure: procedure" in told.err and "is not there" in told.err
    assert "6 videos done, 0 done before, 2 failed" in told.out and "no alignment is possible" in told.out
    found = json.loads(summary.read_text())
    assert (found["done"], found["failed"], len(found["reasons"])) == (6, 2, 2)
    assert len(read(out, "videos")) == 8
    before = data_bytes(out)
    assert main(command) == 2
    assert "add --resume" in capsys.readouterr().err
    assert main([*command, "--resume"]) == 1
    assert "0 videos done, 6 done before, 0 failed and 2 failed before (--retry-failed" in capsys.readouterr().out
    assert data_bytes(out) == before
    rows[2]["procedure"], rows[5]["scores"] = "tea.flow", scores(5, 4)
    rows[2]["scores"], rows[5]["procedure"] = scores(2, 3), "salad.flow"
    write_parquet(manifest, rows[:7])
    assert main([*command, "--resume"]) == 0
    told = capsys.readouterr()
    assert "2 videos done, 5 done before, 0 failed;" in told.out
    assert "  2 rows changed since, and done again; 1 row no longer in the manifest, and left out" in told.out
    assert "2 rows changed since they were done" in told.err and "1 row no longer in the manifest" in told.err
    assert [row["id"] for row in read(out, "videos")] == [row["id"] for row in rows[:7]]


def test_a_line_now_and_then_where_there_is_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, value in plant_faults(tmp_path / "faults").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(progress, "SECONDS", 0.01)
    rows = make_rows(600, "slow")
    rows[0]["scores"] = rows[0]["scores"][:, :2]
    manifest = write_parquet(tmp_path / "m.parquet", rows, row_group_size=100)
    assert main(["batch", str(manifest), "--out", str(tmp_path / "out"), "--workers", "1"]) == 1
    told = capfd.readouterr()
    assert "graph2vid: checking the manifest, 0:0" in told.err
    assert re.search(r"^graph2vid: grounding \d+ of 600 rows, 1 failed, \d+%, 0:0\d so far$", told.err, re.MULTILINE)
    assert "graph2vid: " not in told.out


def test_check_lists_all_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = make_rows(4)
    good = write_parquet(tmp_path / "good.parquet", rows)
    assert main(["batch", str(good), "--check"]) == 0
    assert "4 rows, nothing wrong (4 with arrays)" in capsys.readouterr().out
    rows[1]["procedure"] = "nowhere.flow"
    bad = write_jsonl(tmp_path / "bad.jsonl", [*rows, {"id": "x", "procedure": "tea.flow", "captions": "none.vtt"}])
    assert main(["batch", str(bad), "--check", "--json", str(tmp_path / "check.json")]) == 2
    told = capsys.readouterr()
    assert [line.split(":")[0] for line in told.out.splitlines()] == ["line 2 ('v0001')", "line 5 ('x')"]
    assert "2 problems in 5 rows" in told.err
    assert [problem["id"] for problem in json.loads((tmp_path / "check.json").read_text())["problems"]] == [
        "v0001",
        "x",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "bad.jsonl",
        "check.json",
        "good.parquet",
        "salad.flow",
        "tea.flow",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.jsonl", "--check"], "is not there"),
        (["m.parquet"], "--out DIR"),
        (["m.parquet", "--out", "o", "--engine", "cloud"], "engine must be one of local, ray"),
        (["m.parquet", "--out", "o", "--clip-seconds", "-1"], "clip_seconds must be a number above 0"),
        (["m.parquet", "--out", "o", "--match", "best"], "match must be one of"),
        (["m.parquet", "--out", "m.parquet"], "is a file"),
        (["m.parquet", "--out", "o\udce9"], "the name of this folder is not UTF-8"),
    ],
)
def test_wrong_requests_get_one_line(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_parquet(tmp_path / "m.parquet", make_rows(2))
    assert main(["batch", *arguments]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1 and words in told[0]
