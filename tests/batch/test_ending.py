"""A batch that is ended by a signal ends at once, with all its processes, and goes on where it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from corpora import data_bytes, make_rows, plant_faults, write_parquet
from ending import descendants, end_by_signal, left
from graph2vid.batch import RunOptions, run_batch
from graph2vid.batch.parts import Parts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

SIGNALS = [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)]
ROWS = 3000


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows that take long enough to be in the middle of."""
    return write_parquet(tmp_path_factory.mktemp("corpus") / "m.parquet", make_rows(ROWS, "slow"), row_group_size=100)


@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_in_the_middle_of_the_work(number: signal.Signals, status: int, manifest: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["batch", str(manifest), "--out", str(out), "--workers", "2"]
    ended = end_by_signal(
        arguments,
        ready=lambda processes: len(processes) >= 4 and bool(Parts(out).files()),
        number=number,
        environment=plant_faults(tmp_path / "faults"),
    )
    assert ended.status == status and len(ended.stderr.splitlines()) <= 1
    assert not list(Parts(out).folder.glob(".*")) or number == signal.SIGKILL
    assert not (out / "videos").exists()
    summary = run_batch(manifest, out, options=RunOptions(workers=2, resume=True))
    assert 0 < summary.skipped < ROWS and summary.skipped + summary.done == ROWS and summary.damaged == 0
    run_batch(manifest, tmp_path / "calm", options=RunOptions(workers=2))
    assert data_bytes(out) == data_bytes(tmp_path / "calm")


@pytest.mark.parametrize(("number", "status"), SIGNALS[:2])
def test_while_workers_load_and_while_a_row_never_ends(
    number: signal.Signals, status: int, manifest: Path, tmp_path: Path
) -> None:
    arguments = ["batch", str(manifest), "--out", str(tmp_path / "out"), "--workers", "2"]
    ended = end_by_signal(arguments, ready=lambda processes: len(processes) >= 2, number=number)
    assert ended.status == status
    endless = write_parquet(tmp_path / "m.parquet", make_rows(4, "endless"))
    arguments = ["batch", str(endless), "--out", str(tmp_path / "endless"), "--workers", "2"]
    faults = plant_faults(tmp_path / "faults")
    begun = tmp_path / "endless" / "log.jsonl"
    ended = end_by_signal(
        arguments, ready=lambda processes: len(processes) >= 3 and begun.exists(), number=number, environment=faults
    )
    assert ended.status == status


@pytest.mark.parametrize(
    ("number", "status"), [SIGNALS[0], *(pytest.param(*one, marks=pytest.mark.slow) for one in SIGNALS[1:])]
)
def test_ray_ends_with_the_driver(number: signal.Signals, status: int, manifest: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    out = tmp_path / "out"
    ended = end_by_signal(
        ["batch", str(manifest), "--out", str(out), "--workers", "1", "--engine", "ray"],
        ready=lambda processes: len(processes) >= 6 and bool(Parts(out).files()),
        number=number,
        environment=plant_faults(tmp_path / "faults"),
    )
    assert ended.status == status and ended.processes >= 6
    summary = run_batch(manifest, out, options=RunOptions(workers=2, resume=True))
    assert 0 < summary.skipped < ROWS and summary.skipped + summary.done == ROWS


DRIVER = """
import os, signal, subprocess, sys, time
from graph2vid.batch.reaper import reaped
with reaped(sys.argv[1]):
    reaper = int(open(f"/proc/self/task/{os.getpid()}/children").read())
    print(reaper, flush=True)
    input()
    subprocess.Popen([sys.executable, sys.argv[1] + "/server.py"])
    time.sleep(600)
"""
SERVER = """
import ctypes, pathlib, signal, subprocess, sys, time
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # it dies with the driver
worker = subprocess.Popen([sys.executable, str(pathlib.Path(__file__).with_name("worker.py"))])
bystander = subprocess.Popen(["sleep", "600"], start_new_session=True)
print(worker.pid, bystander.pid, flush=True)
time.sleep(600)
"""


def test_what_has_just_begun_when_the_driver_is_killed_ends_too(tmp_path: Path) -> None:
    """The reaper is held up meanwhile, so that it sees none of the processes below the driver."""
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "worker.py").write_text("import time; time.sleep(600)")
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert driver.stdin is not None and driver.stdout is not None
    reaper = int(driver.stdout.readline())
    os.kill(reaper, signal.SIGSTOP)
    print(file=driver.stdin, flush=True)
    worker, bystander = map(int, driver.stdout.readline().split())
    of_worker = descendants(worker)
    try:
        driver.kill()
        driver.wait()
        os.kill(reaper, signal.SIGCONT)
        limit = time.monotonic() + 30
        while left(of_worker) and time.monotonic() < limit:
            time.sleep(0.02)
        assert not left(of_worker)
        assert left(descendants(bystander))  # is no program of the package
    finally:
        for pid in [*left(of_worker), bystander]:
            os.kill(pid, signal.SIGKILL)
