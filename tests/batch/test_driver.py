"""A manifest from end to end on this machine: the answers of ``ground``, equal for any number of workers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora import FLOWS, data_bytes, make_rows, pa, pq, read, scores, write_jsonl, write_parquet
from graph2vid.batch import RunOptions, StoppedError, Summary, run_batch
from graph2vid.batch.stages import document_path
from graph2vid.errors import InputError
from graph2vid.evidence import Transcript, read_captions
from graph2vid.grounding import Grounding, ground
from graph2vid.grounding.durations_file import durations_of
from graph2vid.sample.narrated import NarratedFiles


def run(manifest: Path, out: Path, *, workers: int = 1, **options: Any) -> Summary:
    return run_batch(manifest, out, options=RunOptions(workers=workers, **options))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Summary]:
    """A corpus of 300 videos, two of them impossible; its results, and the summary."""
    folder = tmp_path_factory.mktemp("corpus")
    rows = make_rows(300)
    rows[7]["scores"], rows[250]["scores"] = scores(7, 3, clips=2), scores(250, 4, clips=3)
    manifest = write_parquet(folder / "m.parquet", rows[::-1])
    return manifest, folder / "out", run(manifest, folder / "out")


def test_answers_are_those_of_ground(corpus: tuple[Path, Path, Summary]) -> None:
    _, out, summary = corpus
    videos = {row["id"]: row for row in read(out, "videos")}
    segments = read(out, "segments")
    assert list(videos) == sorted(videos) and len(videos) == 300
    assert (summary.done, summary.failed, summary.skipped) == (298, 2, 0)
    assert sum(summary.reasons.values()) == 2
    for row in make_rows(300)[:20]:
        video = videos[row["id"]]
        if row["id"] == "v0007":
            assert video["status"] == "failed" and "no alignment is possible" in video["error"]
            assert video["cost"] is None
            continue
        flow = FLOWS[row["procedure"]]
        wanted = ground(flow, scores=row["scores"])
        assert video["status"] == "done" and video["error"] is None and video["gap"] == 0
        assert video["cost"] == pytest.approx(wanted.cost)
        assert (video["n_steps"], video["n_clips"], video["n_shown"]) == (
            len(flow),
            len(wanted.labels),
            len(wanted.count.shown),
        )
        mine = [found for found in segments if found["id"] == row["id"]]
        assert [(found["step"], found["step_id"], found["text"]) for found in mine] == [
            (segment.step, segment.id, segment.text) for segment in wanted.segments
        ]
        assert [(found["start"], found["end"]) for found in mine] == [
            (segment.start, segment.end) for segment in wanted.segments
        ]
        assert [found["posterior"] for found in mine] == pytest.approx(
            [segment.posterior for segment in wanted.segments], abs=1e-5
        )
        assert [found["doubtful"] for found in mine] == [segment.is_doubtful for segment in wanted.segments]


def test_results_do_not_depend_on_workers_or_layout(corpus: tuple[Path, Path, Summary], tmp_path: Path) -> None:
    manifest, out, _ = corpus
    run(manifest, tmp_path / "two", workers=2)
    assert data_bytes(tmp_path / "two") == data_bytes(out)
    rows = make_rows(300)
    rows[7]["scores"], rows[250]["scores"] = scores(7, 3, clips=2), scores(250, 4, clips=3)
    run(write_parquet(tmp_path / "m.parquet", rows, row_group_size=37), tmp_path / "other")
    assert data_bytes(tmp_path / "other") == data_bytes(out)


def test_columns_of_other_types_that_hold_text(tmp_path: Path) -> None:
    rows = make_rows(6)
    write_parquet(tmp_path / "text.parquet", [row | {"id": str(at)} for at, row in enumerate(rows)])
    table = pq.read_table(tmp_path / "text.parquet")
    table = table.set_column(0, "id", table.column("id").cast(pa.int64()))
    table = table.set_column(1, "procedure", table.column("procedure").dictionary_encode())
    table = table.append_column("parser", pa.array(["rules"] * 6, pa.large_string()))
    pq.write_table(table, tmp_path / "other.parquet")
    for name in ("text", "other"):
        assert run(tmp_path / f"{name}.parquet", tmp_path / name).done == 6
    assert data_bytes(tmp_path / "other") == data_bytes(tmp_path / "text")
    again = run(tmp_path / "other.parquet", tmp_path / "other", resume=True)
    assert (again.done, again.skipped) == (0, 6)


def test_a_run_that_is_done_is_left_as_it_is(corpus: tuple[Path, Path, Summary], tmp_path: Path) -> None:
    manifest, out, _ = corpus
    shutil.copytree(out, tmp_path / "out")
    with pytest.raises(InputError, match="--resume"):
        run(manifest, tmp_path / "out")
    again = run(manifest, tmp_path / "out", resume=True)
    assert (again.done, again.failed, again.skipped) == (0, 0, 300)
    assert data_bytes(tmp_path / "out") == data_bytes(out)


def test_new_rows_are_added_and_failed_ones_tried_again(corpus: tuple[Path, Path, Summary], tmp_path: Path) -> None:
    _, out, _ = corpus
    rows = make_rows(305)
    rows[7]["scores"], rows[250]["scores"] = scores(7, 3, clips=2), scores(250, 4, clips=3)
    write_parquet(tmp_path / "m.parquet", rows)
    shutil.copytree(out, tmp_path / "out")
    grown = run(tmp_path / "m.parquet", tmp_path / "out", resume=True)
    assert (grown.done, grown.failed, grown.skipped, grown.failed_before) == (5, 0, 300, 2)
    tried = run(tmp_path / "m.parquet", tmp_path / "out", resume=True, retry_failed=True)
    assert (tried.done, tried.failed, tried.skipped, tried.failed_before) == (0, 2, 303, 0)
    run(tmp_path / "m.parquet", tmp_path / "at once")
    assert data_bytes(tmp_path / "out") == data_bytes(tmp_path / "at once")


def test_stop_at_the_first_that_fails(tmp_path: Path) -> None:
    rows = make_rows(40)
    rows[11]["scores"] = scores(11, 3, clips=2)
    manifest = write_parquet(tmp_path / "m.parquet", rows)
    with pytest.raises(StoppedError, match=r"'v0011'.*no alignment is possible.*--resume"):
        run(manifest, tmp_path / "out", on_error="stop")
    finished = run(manifest, tmp_path / "out", resume=True)
    assert (finished.skipped, finished.failed) == (39, 1)


def test_rows_with_problems_fail_with_their_reason(tmp_path: Path) -> None:
    rows = make_rows(5)
    rows[1]["procedure"] = "nowhere.flow"
    rows[2]["scores"] = scores(0, 9)
    manifest = write_parquet(tmp_path / "m.parquet", rows)
    summary = run(manifest, tmp_path / "out")
    assert (summary.done, summary.failed) == (3, 2)
    errors = [row["error"] for row in read(tmp_path / "out", "videos")]
    assert "nowhere.flow is not there" in errors[1] and "has 4 steps" in errors[2]
    with pytest.raises(InputError, match=r"row 2 \('v0001'\).*and 1 more"):
        run(manifest, tmp_path / "other", on_error="stop")
    with pytest.raises(InputError, match="row 1"):
        run(write_parquet(tmp_path / "bad.parquet", rows[1:3]), tmp_path / "none")


def test_the_log_has_the_times_and_the_results_have_none(corpus: tuple[Path, Path, Summary]) -> None:
    _, out, summary = corpus
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert [line["event"] for line in log] == ["begin", "batch", "batch", "end"]
    assert log[1]["stages"]["align"] > 0 and summary.stage_seconds["align"] > 0
    assert log[-1]["done"] == 298 and log[-1]["videos_per_second"] == pytest.approx(summary.videos_per_second)


def test_arrays_of_every_kind(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    clips, steps = random.normal(size=(20, 8)), random.normal(size=(3, 8))
    log_probabilities = np.log(random.dirichlet(np.ones(3), size=20).T)
    for name, array in (("clips", clips), ("steps", steps), ("logs", log_probabilities), ("drop", np.ones(20))):
        np.save(tmp_path / f"{name}.npy", array)
    rows = [
        {"id": "embedded", "procedure": "tea.flow", "clips": "clips.npy", "steps": "steps.npy"},
        {"id": "logs", "procedure": "tea.flow", "log_probabilities": "logs.npy", "drop": "vector:drop.npy"},
    ]
    run_batch(write_jsonl(tmp_path / "m.jsonl", rows), tmp_path / "out", documents=True)
    wanted = {
        "embedded": ground(FLOWS["tea.flow"], clips=clips, steps=steps),
        "logs": ground(FLOWS["tea.flow"], log_probabilities=log_probabilities, drop=("vector", np.ones(20))),
    }
    for row in read(tmp_path / "out", "videos"):
        assert row["cost"] == pytest.approx(wanted[row["id"]].cost)
        document = Grounding.load(document_path(str(tmp_path / "out" / "documents"), row["id"]))
        assert document.segments == wanted[row["id"]].segments


def test_captions_and_speech(tmp_path: Path) -> None:
    pytest.importorskip("wordllama")
    files = NarratedFiles()
    for file in (files.captions, files.flow):
        shutil.copy(file, tmp_path / file.name)
    rows: list[dict[str, Any]] = [
        {"id": "captions", "procedure": files.flow.name, "captions": files.captions.name, "duration": 90},
        {"id": "empty", "procedure": files.flow.name, "captions": "empty.vtt"},
    ]
    (tmp_path / "empty.vtt").write_text("WEBVTT\n")
    try:
        import av  # noqa: F401
        import faster_whisper  # noqa: F401
    except ImportError:
        pass
    else:
        shutil.copy(files.video, tmp_path / files.video.name)
        (tmp_path / "corrupt.mp4").write_bytes(files.video.read_bytes()[2000:9000])
        rows.append(
            {"id": "film", "procedure": files.flow.name, "video": files.video.name, "captions": files.captions.name}
        )
        rows.append({"id": "corrupt", "procedure": files.flow.name, "video": "corrupt.mp4"})
    summary = run_batch(
        write_jsonl(tmp_path / "m.jsonl", rows), tmp_path / "out", documents=True, cache=tmp_path / "cache"
    )
    videos = {row["id"]: row for row in read(tmp_path / "out", "videos")}
    wanted = ground(_flow(tmp_path / files.flow.name), Transcript(read_captions(files.captions), 90.0))
    assert videos["captions"]["cost"] == pytest.approx(wanted.cost)
    assert videos["captions"]["plausibility"] == pytest.approx(wanted.options["narration"]["plausibility"])
    assert videos["captions"]["not_shown"] == [wanted.flow.ids[step] for step in wanted.not_shown]
    found = [row for row in read(tmp_path / "out", "segments") if row["id"] == "captions"]
    assert [(row["step"], row["start"]) for row in found] == [(one.step, one.start) for one in wanted.segments]
    assert "nothing is said" in videos["empty"]["error"]
    if "film" in videos:
        assert videos["film"]["status"] == "done" and "corrupt.mp4" in videos["corrupt"]["error"]
        assert Grounding.load(document_path(str(tmp_path / "out" / "documents"), "film")).cues
    assert summary.failed == len(rows) - summary.done
    assert list((tmp_path / "cache").glob("texts-*.npy"))


def test_a_batch_of_one_row_and_ground_give_the_same_bytes(tmp_path: Path) -> None:
    """Documents as a whole; data sets in all but the last bits of the confidences of arrays."""
    pytest.importorskip("wordllama")
    files, flow = NarratedFiles(), FLOWS["tea.flow"]
    array = scores(1, len(flow), clips=40)
    np.save(tmp_path / "scores.npy", array)
    narrated = {"procedure": str(files.flow), "captions": str(files.captions)}
    rows: dict[str, dict[str, Any]] = {
        "arrays": {"procedure": "tea.flow", "scores": "scores.npy", "clip_seconds": 2.0, "offset": 5.0},
        "model": {"procedure": "tea.flow", "scores": "scores.npy", "repeat": "3", "min_clips": 2, "skip": "auto"},
        "captions": narrated,
        "costs": narrated | {"contiguous": False, "skip": "constant:2", "gamma": 0.5},
    }
    wanted = {
        "arrays": ground(flow, scores=array, clip_seconds=2.0, offset=5.0),
        "model": ground(flow, scores=array, repeat="3", min_clips=2, skip="auto"),
        "captions": ground(files.flow, files.captions),
        "costs": ground(files.flow, files.captions, contiguous=False, skip="constant:2", gamma=0.5),
    }
    if find_spec("av") is not None:
        rows["media"] = narrated | {"video": str(files.video)}
        wanted["media"] = ground(files.flow, files.video, captions=files.captions)
    for name, row in rows.items():
        manifest = write_jsonl(tmp_path / f"{name}.jsonl", [{"id": name} | row])
        run_batch(manifest, tmp_path / name, documents=True)
        wanted[name].save(tmp_path / "wanted.json")
        document = document_path(str(tmp_path / name / "documents"), name)
        assert document.read_bytes() == (tmp_path / "wanted.json").read_bytes(), name
        run_batch(manifest, tmp_path / f"{name}-side-by-side")
        exact = name != "arrays"
        for out in (tmp_path / name, tmp_path / f"{name}-side-by-side"):
            (video,), segments = read(out, "videos"), read(out, "segments")
            assert video["cost"] == wanted[name].cost
            assert [(one["step"], one["start"], one["end"]) for one in segments] == [
                (one.step, one.start, one.end) for one in wanted[name].segments
            ]
            assert [one["confidence"] for one in segments] == [one.confidence for one in wanted[name].segments]
            sure = [one.posterior for one in wanted[name].segments]
            found = [one["posterior"] for one in segments]
            assert found == sure if exact or out.name == name else found == pytest.approx(sure, abs=1e-6)


def test_options_beyond_the_ordinary(tmp_path: Path) -> None:
    flow = FLOWS["tea.flow"]
    document = {"format": "graph2vid-durations", "version": 1, "others": {"median": 4.0, "spread": 0.5}}
    (tmp_path / "long.json").write_text(json.dumps(document), encoding="utf-8")
    np.save(tmp_path / "returns.npy", np.array([1.0, 2.0, np.inf]))
    given: dict[str, dict[str, Any]] = {
        "repeat": {"repeat": "3"},
        "returns": {"repeat": "given:returns.npy"},
        "least": {"min_clips": 3},
        "lengths": {"durations": "long.json", "min_clips": 2},
        "gamma": {"gamma": 0.5, "time_limit": 5},
    }
    rows = [
        {"id": name, "procedure": "tea.flow", "scores": scores(at, 3, clips=25)} | options
        for at, (name, options) in enumerate(given.items())
    ]
    summary = run(write_jsonl(tmp_path / "m.jsonl", rows), tmp_path / "out")
    assert summary.failed == 0
    wanted: dict[str, dict[str, Any]] = {
        "repeat": {"repeat": "3"},
        "returns": {"repeat": ("given", np.array([1.0, 2.0, np.inf]))},
        "least": {"durations": durations_of(flow, 1.0, None, 3)},
        "lengths": {"durations": durations_of(flow, 1.0, tmp_path / "long.json", 2)},
        "gamma": {"gamma": 0.5},
    }
    segments = read(tmp_path / "out", "segments")
    for row, video in zip(sorted(rows, key=lambda row: str(row["id"])), read(tmp_path / "out", "videos"), strict=True):
        found = ground(flow, scores=row["scores"].astype(np.float64), **wanted[video["id"]])  # type: ignore[union-attr]
        assert video["cost"] == pytest.approx(found.cost)
        mine = [segment for segment in segments if segment["id"] == video["id"]]
        assert [(one["step"], one["start"], one["end"]) for one in mine] == [
            (one.step, one.start, one.end) for one in found.segments
        ]
        assert [one["posterior"] for one in mine] == pytest.approx([one.posterior for one in found.segments])


def test_frames_beside_captions(tmp_path: Path) -> None:
    pytest.importorskip("wordllama")
    files = NarratedFiles()
    flow = _flow(files.flow)
    random = np.random.default_rng(0)
    clips, steps = random.normal(size=(90, 16)), random.normal(size=(len(flow), 16))
    np.save(tmp_path / "clips.npy", clips.astype(np.float32))
    np.save(tmp_path / "steps.npy", steps.astype(np.float32))
    seen = {"frames": "array:clips.npy,steps.npy", "frames_weight": 0.5, "language": "en"}
    rows = [{"id": "seen", "procedure": str(files.flow), "captions": str(files.captions)} | seen]
    run_batch(write_jsonl(tmp_path / "m.jsonl", rows), tmp_path / "out", documents=True)
    (video,) = read(tmp_path / "out", "videos")
    arrays = f"array:{tmp_path / 'clips.npy'},{tmp_path / 'steps.npy'}"
    wanted = ground(flow, files.captions, frames=arrays, frames_weight=0.5)
    assert video["error"] is None and video["cost"] == pytest.approx(wanted.cost) and video["n_clips"] == 90
    document = Grounding.load(document_path(str(tmp_path / "out" / "documents"), "seen"))
    assert document.segments == wanted.segments
    assert document.options["frames"]["weight"] == 0.5 and document.options["narration"]["plausibility"] > 0


def test_other_languages_are_refused_as_by_ground(tmp_path: Path) -> None:
    pytest.importorskip("wordllama")
    files = NarratedFiles()
    rows = [{"id": "v", "procedure": str(files.flow), "captions": str(files.captions), "language": "de"}]
    run_batch(write_jsonl(tmp_path / "m.jsonl", rows), tmp_path / "out")
    with pytest.raises(InputError) as told:
        ground(_flow(files.flow), files.captions, language="de")
    assert [row["error"] for row in read(tmp_path / "out", "videos")] == [str(told.value)]


def test_a_batch_of_scores_does_not_wait_for_pandas(corpus: tuple[Path, Path, Summary], tmp_path: Path) -> None:
    manifest, _, _ = corpus
    program = (
        "import sys; from graph2vid.batch import RunOptions, run_batch; "
        "run_batch(sys.argv[1], sys.argv[2], options=RunOptions(workers=1)); assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, str(manifest), str(tmp_path / "out")], check=True)


WORKER = """
import sys
from graph2vid.batch.settings import Context
from graph2vid.batch.worker import RowReader, encode_check, work
manifest, folder, copy = sys.argv[1:]
encode_check(manifest, copy, Context(folder))
late = ("pandas", "graph2vid.alignment", "graph2vid.evidence", "graph2vid.text")
assert not [name for name in late if name in sys.modules], "needed for the check"
work(RowReader(manifest).read(range(40)), Context(folder), 0)
assert "pandas" not in sys.modules
"""


def test_workers_do_not_wait_for_pandas_nor_the_check_for_what_aligns(
    corpus: tuple[Path, Path, Summary], tmp_path: Path
) -> None:
    manifest, _, _ = corpus
    arguments = [str(manifest), str(manifest.parent), str(tmp_path / "rows.parquet")]
    subprocess.run([sys.executable, "-c", WORKER, *arguments], check=True)


def _flow(path: Path) -> Any:
    from graph2vid.flow import FlowGraph

    return FlowGraph.load(path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"engine": "cloud"}, "engine must be one of local, ray"),
        ({"on_error": "pray"}, "on_error must be one of skip, stop"),
        ({"workers": 0}, "workers must be a whole number of at least 1"),
        ({"row_seconds": 0}, "row_seconds must be a number above 0"),
        ({"gpus": 1}, "--engine ray"),
        ({"gpus": -1, "engine": "ray"}, "gpus must be a number of at least 0"),
        ({"retry_failed": True}, "--resume"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        RunOptions(**options)


def test_names_of_documents() -> None:
    assert document_path("d", "a/b").name == "a%2Fb.json"
    assert document_path("d", "a" * 300) != document_path("d", "a" * 301)
    assert document_path("d", "..").name == "...json"
