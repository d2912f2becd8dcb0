"""Whatever is killed, hangs, is corrupt or full: every row gets one result, that of an undisturbed run."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora import children, data_bytes, kill, make_rows, pa, plant_faults, read, write_parquet
from graph2vid import _files
from graph2vid.batch import RunOptions, run_batch
from graph2vid.batch.batches import RowsTask
from graph2vid.batch.parts import Parts
from graph2vid.batch.settings import Context
from graph2vid.batch.workers import WorkerPool
from graph2vid.errors import Graph2VidError

ROWS = 1200
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))]


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """A manifest, and the results of a run that nothing disturbs."""
    folder = tmp_path_factory.mktemp("calm")
    rows = make_rows(ROWS, "slow")
    np.random.default_rng(0).shuffle(rows)  # type: ignore[arg-type]
    manifest = write_parquet(folder / "m.parquet", rows)
    run_batch(manifest, folder / "out")
    return manifest, data_bytes(folder / "out")


@pytest.fixture
def faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In worker processes, rows do what their ids say."""
    for name, value in plant_faults(tmp_path / "faults").items():
        monkeypatch.setenv(name, value)


# -- killed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_workers_killed_at_random(seed: int, calm: tuple[Path, dict[str, bytes]], tmp_path: Path, faults: None) -> None:
    manifest, wanted = calm
    chance = random.Random(seed)
    ending = threading.Event()
    killed = []

    def killer() -> None:
        while not ending.wait(chance.uniform(0.3, 1.5)):
            workers = children(os.getpid())
            if workers and len(killed) < 6:
                killed.append(chance.choice(workers))
                kill(killed[-1])

    thread = threading.Thread(target=killer)
    thread.start()
    try:
        summary = run_batch(manifest, tmp_path / "out", options=RunOptions(workers=2))
    finally:
        ending.set()
        thread.join()
    assert killed
    assert (summary.done, summary.failed) == (ROWS, 0)
    assert data_bytes(tmp_path / "out") == wanted


@pytest.mark.parametrize("seed", SEEDS)
def test_driver_killed_at_random(seed: int, calm: tuple[Path, dict[str, bytes]], tmp_path: Path, faults: None) -> None:
    manifest, wanted = calm
    chance = random.Random(seed)
    out = tmp_path / "out"
    command = [
        sys.executable,
        "-m",
        "graph2vid",
        "batch",
        str(manifest),
        "--out",
        str(out),
        "--workers",
        "2",
        "--resume",
    ]
    done: set[str] = set()
    for kills in range(4):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        last = kills == 3
        if not last:
            _wait_for_progress(process, Parts(out), len(done), chance)
            orphans = children(process.pid)
            kill(process.pid)
            process.wait()
            _wait_until_gone(orphans)
        else:
            assert process.wait(timeout=120) == 0
        known = Parts(out).known().column("id").to_pylist()
        assert len(known) == len(set(known)), "a result was committed twice"
        assert done <= set(known), "a result was lost"
        done = set(known)
    assert data_bytes(out) == wanted


def _wait_for_progress(process: subprocess.Popen[bytes], parts: Parts, before: int, chance: random.Random) -> None:
    """Wait until something more is done, or the run has ended, and then a little more."""
    limit = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < limit and len(parts.known()) <= before:
        time.sleep(0.05)
    time.sleep(chance.uniform(0.0, 0.3))


def _wait_until_gone(processes: list[int]) -> None:
    """Workers end with their driver, whatever they are doing."""
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        if not any(_alive(process) for process in processes):
            return
        time.sleep(0.05)
    raise AssertionError("a worker outlived its driver")


def _alive(process: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


# -- poisoned ------------------------------------------------------------------------------------------------


def test_endless_and_crashing_rows_fail_and_the_rest_goes_on(tmp_path: Path, faults: None) -> None:
    rows = make_rows(12)
    rows[3]["id"], rows[8]["id"] = "endless", "crash"
    manifest = write_parquet(tmp_path / "m.parquet", rows)
    summary = run_batch(manifest, tmp_path / "out", options=RunOptions(workers=1, row_seconds=2.0))
    assert (summary.done, summary.failed) == (10, 2)
    errors = {row["id"]: row["error"] for row in read(tmp_path / "out", "videos") if row["status"] == "failed"}
    assert errors == {
        "endless": "took longer than the limit of 2 s",
        "crash": "its worker process ended (SIGSEGV), 4 times in a row",
    }


def test_a_worker_that_cannot_start_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graph2vid.batch.workers._PROGRAM", "raise SystemExit(3)")
    with (
        WorkerPool() as pool,
        pytest.raises(Graph2VidError, match=r"as soon as they are started \(status 3\)"),
    ):
        run_rows(pool, pa.table({"id": ["a"], "procedure": ["b"]}), tmp_path)


def run_rows(pool: WorkerPool, table: Any, folder: Path) -> Any:
    context = Context(str(folder), str(folder))
    pool.set_up([context], 60.0)
    return pa.concat_tables(pool.run([[RowsTask(table, 0, context)]]))


def test_workers_are_started_anew_when_all_are_lost_at_once(tmp_path: Path, faults: None) -> None:
    """The process that they are forked from is killed, and they with it."""
    rows = make_rows(400, "slow")
    manifest = write_parquet(tmp_path / "m.parquet", rows)
    killed: list[int] = []
    ending = threading.Event()

    def kill_parent() -> None:
        while not killed and not ending.wait(0.02):
            for parent in (child for child in children(os.getpid()) if children(child)):
                killed.append(parent)
                kill(parent)

    thread = threading.Thread(target=kill_parent)
    thread.start()
    try:
        summary = run_batch(manifest, tmp_path / "out", options=RunOptions(workers=2))
    finally:
        ending.set()
        thread.join()
    assert killed and (summary.done, summary.failed) == (400, 0)


class Ending:
    """A task whose worker ends, or sleeps, as its first letters say."""

    def __init__(self, what: str) -> None:
        self.what = what

    def message(self) -> bytes:
        return json.dumps({"end": self.what}).encode()

    def answer(self, data: bytes) -> str:
        return data.decode()

    def split(self) -> list[Ending]:
        return [self]

    def give_up(self, reason: str) -> str:
        return reason


# In workers: a task says how they end.
_ENDINGS = """
import json, os, time
import graph2vid.batch.worker as worker
def serve(connection, context):
    while True:
        how = json.loads(connection.recv_bytes())["end"]
        if how == "sleep":
            time.sleep(60)
        if how == "exit":
            os._exit(3)
        if how == "close":
            connection.close()
            time.sleep(60)
        if how.isdecimal():
            os.kill(os.getpid(), int(how))
        connection.send_bytes(b"=" + how.encode())
worker.serve = serve
"""


def test_how_workers_ended_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(_ENDINGS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    tasks = [Ending(what) for what in ("a", str(int(signal.SIGSEGV)), "b", "exit", "close", "sleep", "c")]
    with WorkerPool() as pool:
        pool.set_up([Context(str(tmp_path))] * 2, 1.0)
        found = list(pool.run([tasks[:3], tasks[3:]]))
        assert not any(pool._sent)
    times = "4 times in a row"
    assert sorted(found) == sorted(
        [
            *("a", "b", "c"),
            f"its worker process ended (SIGSEGV), {times}",
            f"its worker process ended (status 3), {times}",
            f"its worker process ended (SIGKILL), {times}",  # it was told to, since it had gone silent
            "took longer than the limit of 1 s",
        ]
    )


# -- large ---------------------------------------------------------------------------------------------------

# In workers: the system has 1 GiB left and no limits, and a row fails with what its worker may use of it.
_MEMORY = """
import graph2vid._memory as memory
import graph2vid.batch.stages as stages
memory._system, memory._cgroups, memory._rlimits = (lambda: 1 << 30), (lambda: []), (lambda: [])
def align(items, context):
    for item in items:
        item.failure = str(memory.available_memory())
stages.STAGES["align"] = align
"""


@pytest.mark.parametrize("workers", [1, 4])
def test_workers_share_the_memory(workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "faults").mkdir()
    (tmp_path / "faults" / "sitecustomize.py").write_text(_MEMORY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "faults"))
    manifest = write_parquet(tmp_path / "m.parquet", make_rows(8))
    summary = run_batch(manifest, tmp_path / "out", options=RunOptions(workers=workers))
    assert summary.reasons == {str((1 << 30) // workers): 8}


# -- full ----------------------------------------------------------------------------------------------------


def test_a_full_disk_ends_the_run_and_loses_nothing(
    calm: tuple[Path, dict[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, wanted = calm
    usual, written = os.fsync, []

    def full(handle: int) -> None:
        if "parts" in Path(f"/proc/self/fd/{handle}").readlink().parts:
            written.append(handle)
            if len(written) > 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        usual(handle)

    monkeypatch.setattr(_files.os, "fsync", full)
    with pytest.raises(Graph2VidError, match="No space left on device"):
        run_batch(manifest, tmp_path / "out", options=RunOptions(workers=1))
    monkeypatch.undo()
    assert not list((tmp_path / "out" / "parts").glob(".*")), "something partial was left"
    known = len(Parts(tmp_path / "out").known())
    summary = run_batch(manifest, tmp_path / "out", options=RunOptions(workers=1, resume=True))
    assert 0 < known == summary.skipped < ROWS
    assert data_bytes(tmp_path / "out") == wanted


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_full_indeed(calm: tuple[Path, dict[str, bytes]], small_disk: Path) -> None:
    manifest, wanted = calm
    filler = small_disk / "filler"
    filler.write_bytes(bytes(220_000))
    with pytest.raises((Graph2VidError, OSError), match="No space left on device"):
        run_batch(manifest, small_disk / "out", options=RunOptions(workers=1))
    filler.unlink()
    run_batch(manifest, small_disk / "out", options=RunOptions(workers=1, resume=True))
    assert data_bytes(small_disk / "out") == wanted


def test_a_worker_whose_batch_is_lost_is_started_anew(tmp_path: Path) -> None:
    rows = make_rows(6)
    table = pa.table(
        {
            "id": [row["id"] for row in rows],
            "procedure": [row["procedure"] for row in rows],
            "scores": pa.array([list(row["scores"]) for row in rows], pa.list_(pa.list_(pa.float32()))),
        }
    )
    write_parquet(tmp_path / "m.parquet", rows)  # and the flow graphs
    with WorkerPool() as pool:
        first = run_rows(pool, table, tmp_path)
        (worker,) = children(pool._process.pid)
        kill(worker)
        again = run_rows(pool, table, tmp_path)
        assert children(pool._process.pid) != [worker]
        assert again.drop_columns(["attempt"]).equals(first.drop_columns(["attempt"]))
