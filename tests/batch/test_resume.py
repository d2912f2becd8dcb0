"""``--resume`` with another manifest: a changed row is done again, a removed one is left out, the rest stays."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora import FLOWS, data_bytes, make_rows, plant_faults, read, scores, write_jsonl, write_parquet
from graph2vid.batch import RunOptions, Summary, run_batch
from graph2vid.sample.narrated import NarratedFiles

ROWS = 6


def run(manifest: Path, out: Path, *, row_options: dict[str, Any] | None = None, **options: Any) -> Summary:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run_batch(manifest, out, options=RunOptions(workers=1, **options), row_options=row_options)


def counts(summary: Summary) -> tuple[int, int, int, int]:
    return summary.done, summary.skipped, summary.changed, summary.removed


def rewrite(path: Path, array: Any) -> None:
    """Write an array of the same size at a later time."""
    before = path.stat().st_mtime_ns
    np.save(path, array)
    os.utime(path, ns=(before + 1_000_000, before + 1_000_000))


def change_flow(folder: Path, rows: list[dict[str, Any]]) -> None:
    FLOWS["tea.flow"].from_edges(["boil", "warm the pot", "pour"], [(0, 1), (1, 2)]).save(folder / "tea.flow")


def change_file(folder: Path, rows: list[dict[str, Any]]) -> None:
    array = np.load(folder / "v0001.npy")
    rewrite(folder / "v0001.npy", array[:, ::-1])


def change_policy(folder: Path, rows: list[dict[str, Any]]) -> None:
    rewrite(folder / "drop.npy", np.load(folder / "drop.npy") + 1)


def set_row(**values: Any) -> Callable[[Path, list[dict[str, Any]]], None]:
    return lambda _, rows: rows[3].update(values)


CHANGES: dict[str, tuple[Callable[[Path, list[dict[str, Any]]], None], int]] = {
    "the file of a procedure": (change_flow, 3),
    "the file of an array": (change_file, 1),
    "the file of an option": (change_policy, 1),
    "another procedure": (set_row(procedure=["boil", "warm", "pour"], parser="bag"), 1),
    "another file": (set_row(scores="v0001.npy"), 1),
    "another matrix": (set_row(scores=scores(99, 3).tolist()), 1),
    "an option": (set_row(skip=2), 1),
    "an option as by default": (set_row(gamma=1.0), 0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_row_is_done_again(change: str, tmp_path: Path) -> None:
    rows = make_rows(ROWS)
    for row in rows:
        np.save(tmp_path / f"{row['id']}.npy", row["scores"])
        row["scores"] = f"{row['id']}.npy"
    np.save(tmp_path / "drop.npy", np.ones(np.load(tmp_path / "v0005.npy").shape[1]))
    rows[5]["drop"] = "vector:drop.npy"
    manifest = write_jsonl(tmp_path / "m.jsonl", rows)
    run(manifest, tmp_path / "out")
    act, changed = CHANGES[change]
    act(tmp_path, rows)
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    again = run(manifest, tmp_path / "out", resume=True)
    assert counts(again) == (changed, ROWS - changed, changed, 0)
    run(manifest, tmp_path / "anew")
    assert data_bytes(tmp_path / "out") == data_bytes(tmp_path / "anew")
    assert counts(run(manifest, tmp_path / "out", resume=True)) == (0, ROWS, 0, 0)


def test_matrices_within_a_manifest_count_by_their_numbers(tmp_path: Path) -> None:
    rows = make_rows(ROWS)
    manifest = write_parquet(tmp_path / "m.parquet", rows)
    run(manifest, tmp_path / "out")
    rows[2]["scores"] = rows[2]["scores"].copy()
    rows[2]["scores"][0, 0] += 1
    write_parquet(manifest, rows[::-1], row_group_size=2)  # in another order, which changes nothing
    assert counts(run(manifest, tmp_path / "out", resume=True)) == (1, ROWS - 1, 1, 0)
    run(manifest, tmp_path / "anew")
    assert data_bytes(tmp_path / "out") == data_bytes(tmp_path / "anew")


def test_options_of_the_command_line(tmp_path: Path) -> None:
    manifest = write_parquet(tmp_path / "m.parquet", make_rows(ROWS))
    run(manifest, tmp_path / "out")
    assert counts(run(manifest, tmp_path / "out", resume=True, row_options={"drop": "constant:1"})) == (
        ROWS,
        0,
        ROWS,
        0,
    )
    run(manifest, tmp_path / "anew", row_options={"drop": "constant:1"})
    assert data_bytes(tmp_path / "out") == data_bytes(tmp_path / "anew")
    # What was done with other options is kept, and found again.
    assert counts(run(manifest, tmp_path / "out", resume=True)) == (0, ROWS, 0, 0)
    run(manifest, tmp_path / "as before")
    assert data_bytes(tmp_path / "out") == data_bytes(tmp_path / "as before")


def test_removed_rows_are_left_out(tmp_path: Path) -> None:
    rows = make_rows(ROWS)
    manifest = write_parquet(tmp_path / "m.parquet", rows)
    run(manifest, tmp_path / "out")
    write_parquet(manifest, [*rows[:2], *rows[4:], *make_rows(ROWS + 1)[-1:]])
    with pytest.warns(UserWarning, match="2 rows no longer in the manifest: they are left out"):
        again = run_batch(manifest, tmp_path / "out", options=RunOptions(workers=1, resume=True))
    assert counts(again) == (1, ROWS - 2, 0, 2)
    assert [row["id"] for row in read(tmp_path / "out", "videos")] == ["v0000", "v0001", "v0004", "v0005", "v0006"]
    run(manifest, tmp_path / "anew")
    assert data_bytes(tmp_path / "out") == data_bytes(tmp_path / "anew")
    with pytest.warns(UserWarning, match="1 row no longer"):
        write_parquet(manifest, rows)
        assert counts(run_batch(manifest, tmp_path / "out", options=RunOptions(workers=1, resume=True))) == (0, 6, 0, 1)


def test_captions_that_were_written_anew(tmp_path: Path) -> None:
    pytest.importorskip("wordllama")
    files = NarratedFiles()
    captions = tmp_path / "words.vtt"
    captions.write_text(files.captions.read_text())
    rows = [{"id": name, "procedure": str(files.flow), "captions": "words.vtt", "duration": 90} for name in "ab"]
    rows.append({"id": "late", "procedure": str(files.flow), "captions": "late.vtt", "duration": 90})
    manifest = write_jsonl(tmp_path / "m.jsonl", rows)
    first = run(manifest, tmp_path / "out")
    assert (first.done, first.failed) == (2, 1)
    (tmp_path / "late.vtt").write_text(captions.read_text())
    captions.write_text(captions.read_text().replace("the", "that"))
    again = run(manifest, tmp_path / "out", resume=True)
    assert (again.done, again.failed, again.changed) == (3, 0, 3)  # what failed for want of its file, too
    run(manifest, tmp_path / "anew")
    assert data_bytes(tmp_path / "out") == data_bytes(tmp_path / "anew")


def test_rows_that_took_their_worker_down_are_known_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in plant_faults(tmp_path / "faults").items():
        monkeypatch.setenv(name, value)
    rows = make_rows(3)
    rows[1]["id"] = "crash"
    manifest = write_parquet(tmp_path / "m.parquet", rows)
    assert run(manifest, tmp_path / "out").failed == 1
    again = run(manifest, tmp_path / "out", resume=True)
    assert (again.failed, again.failed_before, again.skipped) == (0, 1, 3)
