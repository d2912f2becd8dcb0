"""Parts are there whole or not at all, and the data sets made of them do not depend on how they came to be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from corpora import data_bytes, pa, read
from graph2vid.batch import parts as parts_module
from graph2vid.batch.parts import LostRowsError, Parts, check_folder
from graph2vid.batch.results import RESULT_SCHEMA, failures
from graph2vid.errors import Graph2VidError, InputError


def done(*names: str, attempt: int = 0, digest: bytes = b"x") -> Any:
    segment = {"step": 0, "step_id": "1", "text": "cut", "start": 0.0, "end": 1.0, "confidence": 0.5}
    common = {"status": "done", "cost": 1.0, "attempt": attempt, "digest": digest}
    rows = [{"id": name, "segments": [segment] * (at % 3)} | common for at, name in enumerate(names)]
    return pa.Table.from_pylist(rows, schema=RESULT_SCHEMA)


def wanted(*names: str, digest: bytes | None = None) -> Any:
    return pa.table({"id": pa.array(names, pa.string()), "digest": pa.array([digest] * len(names), pa.binary())})


def failed(*names: str, reason: str, attempt: int = 0) -> Any:
    return failures(names, [reason] * len(names), attempt, [b"x"] * len(names))


def test_data_sets_do_not_depend_on_the_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_module, "_FILE_ROWS", 4)
    names = [f"v{at}" for at in range(10)]
    whole = done(*names)
    found = []
    for number, pieces in enumerate([[range(10)], [range(9, -1, -1)], [[5, 0, 9], [1, 8], [2, 3, 4, 6, 7]]]):
        parts = Parts(tmp_path / str(number))
        for piece in pieces:
            parts.commit(whole.take(pa.array(list(piece))))
        parts.publish(wanted(*names))
        found.append(data_bytes(parts.out))
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 6  # three files of four videos at most, in each of the two
    assert [row["id"] for row in read(tmp_path / "0", "videos")] == names
    assert [row["id"] for row in read(tmp_path / "0", "segments")] == [
        name for at, name in enumerate(names) for _ in range(at % 3)
    ]


def test_a_row_in_two_parts_is_one_row(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.commit(done("a", "b"))
    parts.commit(done("b", "c"))
    parts.publish(wanted("a", "b", "c"))
    assert [row["id"] for row in read(tmp_path, "videos")] == ["a", "b", "c"]


def test_the_same_rows_give_the_same_part(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    assert parts.commit(done("a", "b")) == parts.commit(done("b", "a"))
    parts.commit(done("a", "b", attempt=1))
    assert len(parts.files()) == 2
    assert parts.commit(RESULT_SCHEMA.empty_table()) is None


def test_what_failed_and_was_done_later_is_done(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.commit(failed("a", "b", reason="no film"))
    parts.commit(done("a", attempt=1))
    parts.commit(failed("b", reason="no sound", attempt=1))
    parts.publish(wanted("a", "b"))
    assert [(row["id"], row["status"], row["error"]) for row in read(tmp_path, "videos")] == [
        ("a", "done", None),
        ("b", "failed", "no sound"),
    ]


def test_a_damaged_part_counts_as_none(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.commit(done("a"))
    path = parts.commit(done("b"))
    assert path is not None
    path.write_bytes(path.read_bytes()[:100])
    assert parts.known().column("id").to_pylist() == ["a"]
    with pytest.raises(LostRowsError):
        parts.publish(wanted("a", "b"))
    with pytest.raises(LostRowsError):
        parts.publish(wanted("a"))
    assert not (tmp_path / "videos").exists()
    assert parts.discard_damaged() == 1 and not path.exists()
    parts.publish(wanted("a"))
    assert [row["id"] for row in read(tmp_path, "videos")] == ["a"]


def test_rows_are_known_by_id_and_digest(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.commit(done("a", "b", "gone", digest=b"then"))
    parts.commit(failed("b", reason="of now"))
    with pytest.raises(LostRowsError):
        parts.publish(wanted("a", "b", digest=b"x"))
    parts.commit(done("a"))
    parts.publish(wanted("a", "b", digest=b"x"))
    assert [(row["id"], row["status"]) for row in read(tmp_path, "videos")] == [("a", "done"), ("b", "failed")]
    parts.publish(wanted("a", "b", "gone", digest=b"then"))  # as they were
    assert [(row["id"], row["status"]) for row in read(tmp_path, "videos")] == [
        ("a", "done"),
        ("b", "done"),
        ("gone", "done"),
    ]


def test_nothing_done_is_an_empty_data_set(tmp_path: Path) -> None:
    Parts(tmp_path).publish(wanted())
    assert read(tmp_path, "videos") == [] and read(tmp_path, "segments") == []


def test_two_runs_do_not_write_to_one_folder(tmp_path: Path) -> None:
    with Parts(tmp_path).locked(), pytest.raises(Graph2VidError, match="another run"), Parts(tmp_path).locked():
        pass
    with Parts(tmp_path).locked():  # it was let go of
        pass


def test_a_folder_with_results_is_not_written_over(tmp_path: Path) -> None:
    Parts(tmp_path).commit(done("a"))
    with pytest.raises(InputError, match="--resume"):
        check_folder(tmp_path, resume=False)
    check_folder(tmp_path, resume=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        check_folder(tmp_path / "file", resume=False)


def test_other_tools_read_the_data_sets(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    parts = Parts(tmp_path)
    parts.commit(done("a", "b", "c"))
    parts.publish(wanted("a", "b", "c"))
    videos, segments = pandas.read_parquet(tmp_path / "videos"), pandas.read_parquet(tmp_path / "segments")
    joined = segments.merge(videos, on="id", suffixes=("", "_of_video"))
    assert list(joined["id"]) == ["b", "c", "c"] and (joined["cost"] == 1.0).all()


def test_a_killed_run_leaves_no_lock(tmp_path: Path) -> None:
    code = (
        "import os, sys; from graph2vid.batch.parts import Parts\n"
        "with Parts(sys.argv[1]).locked(): os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    with Parts(tmp_path).locked():
        pass
