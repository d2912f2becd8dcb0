"""Manifests in three formats say the same; all that is wrong with one is told before work begins."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora import FLOWS, make_rows, pa, pq, save_flows, scores, write_jsonl, write_parquet
from graph2vid.batch import check_manifest, run_batch
from graph2vid.batch.batches import Job, RowReader, stretches
from graph2vid.batch.columns import matrices
from graph2vid.batch.manifest import Manifest, read_manifest
from graph2vid.batch.rows import decode
from graph2vid.batch.settings import Context, RunOptions
from graph2vid.errors import FormatError, Graph2VidError, InputError, MissingDependencyError


def read_rows(path: Path) -> tuple[Manifest, list[Any]]:
    context = Context(folder=str(path.parent), cache=str(path.parent / "cache"))
    found = read_manifest(path, path.parent / "copy.parquet", context)
    rows = [row for table in [pq.read_table(found.rows)] for row in decode(table, context)]
    return found, sorted(rows, key=lambda row: row.id)


def told(path: Path) -> list[str]:
    return [str(problem) for problem in check_manifest(path).problems]


def test_the_three_formats_say_the_same(tmp_path: Path) -> None:
    rows = make_rows(6)
    for row in rows:
        np.save(tmp_path / f"{row['id']}.npy", row["scores"])
    named = [
        {
            "id": row["id"],
            "procedure": row["procedure"],
            "scores": f"{row['id']}.npy",
            "clip_seconds": "2.5",
            "skip": "3",
        }
        for row in rows
    ]
    write_jsonl(tmp_path / "m.jsonl", [entry | {"clip_seconds": 2.5, "skip": 3} for entry in named])
    with (tmp_path / "m.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(named[0]))
        writer.writeheader()
        writer.writerows(named)
    write_parquet(tmp_path / "m.parquet", [entry | {"clip_seconds": 2.5} for entry in named])
    found = [read_rows(tmp_path / name)[1] for name in ("m.jsonl", "m.csv", "m.parquet")]
    for one, two, three in zip(*found, strict=True):
        assert one.id == two.id == three.id
        assert one.options == two.options == three.options
        assert one.options["clip_seconds"] == 2.5 and one.options["skip"] == "3"
        assert one.inputs == two.inputs == three.inputs
        assert one.procedure == two.procedure == three.procedure


def test_arrays_within_are_read_as_they_are(tmp_path: Path) -> None:
    rows = make_rows(5)
    manifest, inline = read_rows(write_parquet(tmp_path / "m.parquet", rows))
    assert manifest.rows == tmp_path / "m.parquet"  # not copied
    for row, wanted in zip(inline, rows, strict=True):
        assert row.inputs["scores"].dtype == np.float32
        np.testing.assert_array_equal(row.inputs["scores"], wanted["scores"])


@pytest.mark.parametrize("kind", ["list", "large", "fixed", "sliced"])
def test_matrices_of_any_layout(kind: str) -> None:
    wanted = [scores(at, 3, clips=4) for at in range(5)]
    inner = {"large": pa.large_list(pa.float32()), "fixed": pa.list_(pa.float32(), 4)}.get(kind, pa.list_(pa.float32()))
    outer = {"large": pa.large_list(inner), "fixed": pa.list_(inner, 3)}.get(kind, pa.list_(inner))
    column = pa.chunked_array([pa.array([matrix.tolist() for matrix in wanted], outer)])
    if kind == "sliced":
        column, wanted = column.slice(1, 3), wanted[1:4]
    found = matrices(column)
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(ours), theirs)


def test_procedures_may_stand_within_the_manifest(tmp_path: Path) -> None:
    flow = FLOWS["tea.flow"]
    matrix = scores(0, 3).tolist()
    rows = [
        {"id": "a", "procedure": flow.to_json(), "scores": matrix},
        {"id": "b", "procedure": ["Boil water.", "Warm the pot.", "Pour."], "parser": "linear", "scores": matrix},
        {"id": "c", "procedure": "Boil water.\nWarm the pot.\nPour.", "parser": "bag", "scores": matrix},
    ]
    assert told(write_jsonl(tmp_path / "m.jsonl", rows)) == []


def test_all_problems_are_told_in_the_order_of_the_file(tmp_path: Path) -> None:
    good = {"procedure": "tea.flow", "scores": scores(0, 3).tolist()}
    (tmp_path / "words.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nhello\n")
    (tmp_path / "words.doc").write_text("hello")
    np.save(tmp_path / "four.npy", scores(1, 4))
    (tmp_path / "not.npy").write_text("no array")
    rows = [
        {"id": "fine"} | good,
        {"id": "no procedure", "scores": good["scores"]},
        {"id": "lost", "procedure": "nowhere.flow", "scores": good["scores"]},
        {"id": "nothing", "procedure": "tea.flow"},
        {"id": "both", "captions": "words.srt"} | good,
        {"id": "half", "procedure": "tea.flow", "steps": "four.npy"},
        {"id": "turned", "procedure": "tea.flow", "scores": np.array(good["scores"]).T.tolist()},
        {"id": "ragged", "procedure": "tea.flow", "scores": [[1.0], [2.0, 3.0], [4.0]]},
        {"id": "nan", "procedure": "tea.flow", "scores": "[[NaN, 1], [2, 3], [4, 5]]"},
        {"id": "four", "procedure": "tea.flow", "scores": "four.npy"},
        {"id": "not", "procedure": "tea.flow", "scores": "not.npy"},
        {"id": "gone", "procedure": "tea.flow", "video": "gone.mp4"},
        {"id": "doc", "procedure": "tea.flow", "captions": "words.doc"},
        {"id": "speed", "clip_seconds": -1} | good,
        {"id": "policy", "drop": "nonsense:3"} | good,
        {"id": "own", "procedure": "tea.flow", "captions": "words.srt", "offset": 2},
        {"id": "language", "language": "en"} | good,
        {"id": "embedder", "procedure": "tea.flow", "captions": "words.srt", "embedder": "nobody"},
        {"id": "returns", "repeat": "entropy"} | good,
        {"id": "runs", "min_clips": 1.5} | good,
        {"id": "lengths", "durations": "lost.json"} | good,
        {"id": "violation", "violation": -1} | good,
        {"id": "seen", "frames": "clip:small"} | good,
        {"id": "unseen", "procedure": "tea.flow", "captions": "words.srt", "frames": "clip:small"},
        {"id": "nobody sees", "procedure": "tea.flow", "captions": "words.srt", "frames": "eyes"},
        {"id": "deaf", "procedure": "tea.flow", "captions": "words.srt", "narration_weight": 0},
    ]
    found = told(write_jsonl(tmp_path / "m.jsonl", rows))
    for line, (name, words) in enumerate(
        [
            ("no procedure", "has no procedure"),
            ("lost", "nowhere.flow is not there"),
            ("nothing", "found nothing"),
            ("both", "found scores, and video or captions"),
            ("half", "given together"),
            ("turned", "looks transposed"),
            ("ragged", "equally long"),
            ("nan", "NaN is no number"),
            ("four", "has shape (4,"),
            ("not", "not a .npy file"),
            ("gone", "gone.mp4 is not there"),
            ("doc", "use one of"),
            ("speed", "clip_seconds must be a number above 0"),
            ("policy", "unknown drop policy"),
            ("own", "offset is for arrays"),
            ("language", "language is for narration"),
            ("embedder", "unknown embedder 'nobody'"),
            ("returns", "unknown repeat policy"),
            ("runs", "min_clips must be a whole number"),
            ("lengths", "durations: cannot read"),
            ("violation", "violation must be a number of at least 0"),
            ("seen", "frames is for narration"),
            ("unseen", "the row has captions alone"),
            ("nobody sees", "unknown embedder 'eyes'"),
            ("deaf", "nothing is left to go by"),
        ],
        start=2,
    ):
        mine = [problem for problem in found if problem.startswith(f"line {line} ({name!r}): ")]
        assert any(words in problem for problem in mine), (name, mine)
    assert not any("fine" in problem for problem in found)
    assert found == sorted(found, key=lambda problem: int(problem.split()[1]))


def test_ids_are_there_once(tmp_path: Path) -> None:
    rows = make_rows(4)
    rows[2]["id"], rows[3]["id"] = rows[0]["id"], None
    manifest = check_manifest(write_parquet(tmp_path / "m.parquet", rows))
    assert [str(problem) for problem in manifest.fatal] == ["row 3: the id 'v0000' is taken by 1"]
    assert [str(problem) for problem in manifest.problems][1:] == ["row 4: has no id"]
    assert manifest.unreadable == {"row 4": "has no id"}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("m.txt", "", "a manifest is a file in"),
        ("m.jsonl", "", "holds no rows"),
        ("m.csv", "id,procedure,scoers\n", "did you mean 'scores'"),
        ("m.csv", "id,scores\n", "no column procedure"),
        ("m.csv", 'id,procedure\n"a', "not CSV"),
        ("m.jsonl", '{"id": "a", "procedure": "x", "clip_second": 3}\n', "did you mean 'clip_seconds'"),
        ("m.parquet", "PAR1 no", "not a readable Parquet file"),
        ("m.jsonl", "{}".encode("utf-16"), "not a UTF-8 text file"),
    ],
)
def test_what_is_no_manifest_is_refused(tmp_path: Path, name: str, text: str | bytes, words: str) -> None:
    (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(FormatError, match=words):
        check_manifest(tmp_path / name)


def test_lines_that_are_no_rows_are_rows_that_fail(tmp_path: Path) -> None:
    save_flows(tmp_path)
    good = json.dumps({"id": "line 2", "procedure": "tea.flow", "scores": scores(0, 3).tolist()})
    (tmp_path / "m.jsonl").write_text(f"{good}\n[1]\nnonsense\n")
    found = check_manifest(tmp_path / "m.jsonl")
    assert not found.fatal and [problem.place for problem in found.problems] == ["line 2", "line 3"]
    assert list(found.unreadable) == ["line 2 (2)", "line 3"] and len(found) == 3
    (tmp_path / "m.csv").write_text("id,procedure,scores\na,tea.flow\n")
    assert "has 2 cells" in check_manifest(tmp_path / "m.csv").unreadable["line 2"]
    with pytest.raises(InputError, match="is not there"):
        check_manifest(tmp_path / "none.jsonl")


def test_columns_of_the_release_before_are_read(tmp_path: Path) -> None:
    rows = [row | {"breaking": 0.5} for row in make_rows(3)]
    for manifest in (write_parquet(tmp_path / "m.parquet", rows), write_jsonl(tmp_path / "m.jsonl", rows)):
        with pytest.warns(UserWarning, match="the column breaking is called violation now"):
            found, decoded = read_rows(manifest)
        assert not found.problems and all(row.options["violation"] == 0.5 for row in decoded)


def test_own_columns_begin_with_an_underscore(tmp_path: Path) -> None:
    rows = [row | {"_note": "mine"} for row in make_rows(3)]
    assert told(write_parquet(tmp_path / "m.parquet", rows)) == []
    assert told(write_jsonl(tmp_path / "m.jsonl", rows)) == []


def test_rows_without_arrays_are_sorted_by_procedure(tmp_path: Path) -> None:
    rows = make_rows(8)
    for row in rows:
        np.save(tmp_path / f"{row['id']}.npy", row["scores"])
        row["scores"] = f"{row['id']}.npy"
    manifest, _ = read_rows(write_parquet(tmp_path / "m.parquet", rows))
    context = Context(folder=str(tmp_path), cache=str(tmp_path / "cache"))
    job = Job(manifest.rows, None, pa.array(["v0002"]), 0, manifest.kinds, context, RunOptions())
    ((batch,),) = stretches(job, 1)
    found = [row.procedure for row in decode(RowReader(str(batch.path)).read(batch.places), context)]
    assert found == sorted(found) and len(found) == 7


def test_pyarrow_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"\.\[batch\]"):
        check_manifest(tmp_path / "m.jsonl")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_full_disk_is_one_line_that_names_the_copy(kind: str, tmp_path: Path) -> None:
    rows = make_rows(3)
    if kind == "jsonl":
        manifest = write_jsonl(tmp_path / "m.jsonl", rows)
    else:  # which is copied if a row of it cannot be read
        manifest = write_parquet(tmp_path / "m.parquet", [*rows, rows[0] | {"id": None}])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "rows.parquet").symlink_to("/dev/full")
    with pytest.raises(Graph2VidError, match=r"^cannot write .*out/rows\.parquet: .*No space left on device$"):
        run_batch(manifest, tmp_path / "out", options=RunOptions(workers=1))
