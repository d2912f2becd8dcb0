"""One bad row does not end a batch: it fails with its reason, ``--check`` lists it, and the rest is done."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora import FLOWS, make_rows, pa, pq, read, save_flows, scores
from graph2vid.batch import RunOptions, check_manifest, run_batch
from graph2vid.cli import main

GOOD = 4
DEEP = "[" * 60_000 + "]" * 60_000
DIGITS = "9" * 400


def npz(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, scores(0, 3))


def saved(path: Path, edit: Callable[[bytes], bytes]) -> None:
    np.save(path, scores(0, 3))
    path.write_bytes(edit(path.read_bytes()))


ARRAYS: dict[str, tuple[Callable[[Path], None], str]] = {
    "an npz": (npz, "is not a .npy file"),
    "nothing": (lambda path: path.write_bytes(b"") and None, "is not a .npy file"),
    "magic alone": (lambda path: saved(path, lambda data: data[:6]), "is not a readable .npy array"),
    "half a header": (lambda path: saved(path, lambda data: data[:40]), "is not a readable .npy array"),
    "half the data": (lambda path: saved(path, lambda data: data[:-40]), "shorter than its header says"),
    "a deep header": (
        lambda path: saved(path, lambda data: data[:10] + b"(" * 118 + data[128:]),
        "is not a readable .npy array",
    ),
    "a long header": (
        lambda path: saved(path, lambda data: data.replace(b"(3, ", b"(9" + b"9" * 40 + b", ")[: len(data)]),
        "",
    ),
    "a huge shape": (
        lambda path: saved(path, lambda data: data.replace(b"(3, ", b"(3999999999999, ", 1)[: len(data)]),
        "",
    ),
    "words": (lambda path: np.save(path, np.array([["a", "b"]] * 3)), "must hold real numbers"),
    "objects": (lambda path: np.save(path, np.array([[{}]] * 3), allow_pickle=True), "is not a readable .npy array"),
}


def written(folder: Path, lines: list[str | bytes]) -> Path:
    """Write a manifest in JSON Lines of good rows, with the given lines between them."""
    save_flows(folder)
    good = [
        json.dumps({"id": row["id"], "procedure": row["procedure"], "scores": row["scores"].tolist()})
        for row in make_rows(GOOD)
    ]
    mixed = [*good[:2], *lines, *good[2:]]
    data = b"\n".join(line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line for line in mixed)
    (folder / "m.jsonl").write_bytes(data + b"\n")
    return folder / "m.jsonl"


def failing(manifest: Path, out: Path, good: int = GOOD) -> dict[str, str]:
    """Run a batch of good rows and bad ones; return why the bad ones failed, of which the check tells, too."""
    summary = run_batch(manifest, out, options=RunOptions(workers=1))
    errors = {row["id"]: row["error"] for row in read(out, "videos") if row["status"] == "failed"}
    assert (summary.done, summary.failed) == (good, len(errors))
    assert {problem.id for problem in check_manifest(manifest).problems} == set(errors)
    again = run_batch(manifest, out, options=RunOptions(workers=1, resume=True))
    assert (again.skipped, again.failed_before, again.changed) == (good + len(errors), len(errors), 0)
    return errors


def test_files_of_arrays(tmp_path: Path) -> None:
    lines: list[str | bytes] = []
    for name, (make, _) in ARRAYS.items():
        make(tmp_path / f"{name}.npy")
        lines.append(json.dumps({"id": name, "procedure": "tea.flow", "scores": f"{name}.npy"}))
    errors = failing(written(tmp_path, lines), tmp_path / "out")
    assert errors.keys() == ARRAYS.keys()
    for name, (_, words) in ARRAYS.items():
        assert words in errors[name], errors[name]


def test_json_of_every_kind(tmp_path: Path) -> None:
    row = '{{"id": "{}", "procedure": "tea.flow", {}}}'.format
    matrix = '"scores": [[1, 2, 3], [4, 5, 6], [7, 8, 9]]'
    flow = json.dumps(FLOWS["tea.flow"].to_json())
    lines: dict[str, str | bytes] = {
        "line 3": DEEP,
        "line 4": f'{{"id": {DEEP}}}',
        "deep scores": row("deep scores", f'"scores": "{DEEP}"'),
        "deep procedure": f'{{"id": "deep procedure", "procedure": "{{\\"a\\": {DEEP}", {matrix}}}',
        "long scores": row("long scores", f'"scores": [[{DIGITS}, 1], [1, 2], [3, 4]]'),
        "long text": row("long text", f'"scores": "[[{DIGITS}, 1], [1, 2], [3, 4]]"'),
        "long option": row("long option", f'"clip_seconds": {DIGITS}, {matrix}'),
        "long count": row("long count", f'"min_clips": "{DIGITS}", {matrix}'),
        "longest option": row("longest option", f'"clip_seconds": {"9" * 5000}, {matrix}'),
        "line 12": row("\\ud800", matrix),
        "surrogate": f'{{"id": "surrogate", "procedure": "tea\\udfff.flow", {matrix}}}',
        "line 14": f'{{"procedure": "tea.flow", {matrix}}}',
        "line 15": "nonsense",
        "not UTF-8": row("not UTF-8", matrix).encode() + b"\xff",
        "long path": row("long path", f'"captions": "{"a" * 5000}.vtt"'),
        "nul": row("nul", '"scores": "a\\u0000.npy"'),
        "long procedure": f'{{"id": "long procedure", "procedure": "{"b" * 5000}", {matrix}}}',
        "steps": json.dumps({"id": "steps", "procedure": flow.replace('"id": "1"', f'"id": {DIGITS}')} | {"scores": 1}),
    }
    errors = failing(written(tmp_path, list(lines.values())), tmp_path / "out")
    assert errors.keys() == lines.keys()
    for name, words in {
        "line 3": "nested too deeply",
        "line 4": "nested too deeply",
        "deep scores": "nested too deeply",
        "deep procedure": "procedure: ",
        "long scores": "a whole number of 400 digits",
        "long text": "a whole number of 400 digits",
        "long option": "a whole number of 400 digits",
        "long count": "min_clips must be a whole number of at least 1",
        "longest option": "a whole number of 5000 digits",
        "line 12": "a lone surrogate",
        "surrogate": "a lone surrogate",
        "not UTF-8": "not JSON",
        "line 14": "has no id",
        "line 15": "not JSON",
    }.items():
        assert words in errors[name], (name, errors[name])
    assert all(len(error) < 6000 and "\n" not in error for error in errors.values())


def test_infinite_numbers_within_matrices(tmp_path: Path) -> None:
    line = '{{"id": "{}", "procedure": "tea.flow", "log_probabilities": {}}}'.format
    rows = "[-1, {0}, {0}], [-1, -2, -3], [{0}, {0}, -1]".format
    never, unsure = f"[{rows('-Infinity')}]", f"[{rows('NaN')}]"
    lines = [line("inf", never), line("inf as text", f'"{never}"'), line("nan", unsure), line("text", f'"{unsure}"')]
    errors = failing(written(tmp_path, [*lines]), tmp_path / "out", good=GOOD + 2)
    assert errors.keys() == {"nan", "text"} and "NaN is no number" in errors["nan"]


def test_csv_cells(tmp_path: Path) -> None:
    save_flows(tmp_path)
    with (tmp_path / "m.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "procedure", "scores", "skip"])
        for row in make_rows(GOOD - 1):
            writer.writerow([row["id"], row["procedure"], json.dumps(row["scores"].tolist()), "3"])
        wide = np.round(scores(0, 3, clips=20_000).astype(float), 3).tolist()
        writer.writerow(["wide", "tea.flow", json.dumps(wide), "3"])  # more than 131,072 characters
        writer.writerow(["short", "tea.flow"])
        writer.writerow(["deep", "tea.flow", DEEP, ""])
    with (tmp_path / "m.csv").open("ab") as file:
        file.write(b"\xfe,tea.flow,[[1]],\n")
    assert failing(tmp_path / "m.csv", tmp_path / "out").keys() == {"line 6", "deep", "line 8"}


def text_column(values: list[bytes | None]) -> Any:
    """Return a column of texts that may not be UTF-8."""
    return pa.array(values, pa.binary()).cast(pa.string(), safe=False)


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("kind", ["string", "binary", "dictionary"])
def test_parquet_that_is_not_utf8(kind: str, in_place: bool, tmp_path: Path) -> None:
    save_flows(tmp_path)
    ids = [*(row["id"].encode() for row in make_rows(GOOD)), b"bad \xff", None, b"", b"procedure", b"option"]
    procedures = [*(row["procedure"].encode() for row in make_rows(GOOD)), *[b"tea.flow"] * 3, b"\xc3\x28", b"tea.flow"]
    skips = [*[b"3"] * (GOOD + 4), b"\xed\xa0\x80"]
    columns = {name: text_column(v) for name, v in (("id", ids), ("procedure", procedures), ("skip", skips))}
    if kind == "binary":
        columns = {name: column.cast(pa.binary()) for name, column in columns.items()}
    if kind == "dictionary":
        columns = {name: column.dictionary_encode() for name, column in columns.items()}
    matrices = [*(row["scores"] for row in make_rows(GOOD)), *[scores(0, 3)] * 5]
    if in_place:
        columns["scores"] = pa.array([list(one) for one in matrices], pa.list_(pa.list_(pa.float32())))
    else:
        columns["scores"] = pa.array([json.dumps(one.tolist()) for one in matrices])
    pq.write_table(pa.table(columns), tmp_path / "m.parquet", row_group_size=3)
    errors = failing(tmp_path / "m.parquet", tmp_path / "out")
    assert errors == {
        "row 5": "id is not text in UTF-8",
        "row 6": "has no id",
        "row 7": "has no id",
        "procedure": "procedure is not text in UTF-8",
        "option": "skip is not text in UTF-8",
    }


def test_the_command_lists_them_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = written(tmp_path, [DEEP, '{"id": "\\ud800", "procedure": "tea.flow", "scores": "x\\udcff.npy"}'])
    assert main(["batch", str(manifest), "--check", "--json", str(tmp_path / "c.json")]) == 2
    told = capsys.readouterr()
    deep, broken = told.out.splitlines()
    assert deep.startswith("line 3: this line: JSON nested too deeply")
    assert broken == "line 4: this line: a string holds half a character (a lone surrogate), which is no text"
    assert "2 problems in 6 rows" in told.err
    assert main(["batch", str(manifest), "--out", str(tmp_path / "out"), "--workers", "1"]) == 1
    assert "4 videos done, 0 done before, 2 failed" in capsys.readouterr().out
