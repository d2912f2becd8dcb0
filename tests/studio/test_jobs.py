"""Jobs: one at a time, ended by request, by time and with their server; what they leave behind."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from graph2vid.studio.jobs import MOST_WAITING, BusyError, Job, Jobs

SLEEPS = 'import sys, time; sys.stdin.readline(); print(\'{"stage": "sleeping"}\', flush=True); time.sleep(60)'
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPS
DONE = "import sys; sys.stdin.readline(); print('noise'); print('{\"warning\": \"w\"}'); print('{\"finished\": true}')"
FAILS = 'print(\'{"error": "too bad"}\'); raise SystemExit(2)'
CRASHES = "import os; os.abort()"
LIES = "print('{\"finished\": true}'); raise SystemExit(3)"


class Runs:
    """Runs a line of Python as jobs, and notes how they end."""

    def __init__(self, folder: Path, code: str, seconds: float = 60.0) -> None:
        self.folder = folder
        self.jobs = Jobs(seconds, [sys.executable, "-c", code])
        self.noted: list[str] = []
        self.finished: list[Path] = []

    def start(self, project: str = "p") -> Job:
        output = self.folder / f"{project}-{time.monotonic_ns()}"
        return self.jobs.start(
            Job("ground", project, project, {"output": str(output)}, self.finished.append, self.note)
        )

    def note(self, state: str, message: str) -> None:
        self.noted.append(state)


def wait(job: Job, state: str | None = None, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if job.state == state or (state is None and job.is_over):
            return
        time.sleep(0.01)
    raise AssertionError(f"the job is {job.state}")


@pytest.mark.parametrize(
    ("code", "state", "message"),
    [
        (DONE, "done", ""),
        (FAILS, "failed", "too bad"),
        (CRASHES, "failed", "the process ended unexpectedly (status -6)"),
        (LIES, "failed", "the process ended unexpectedly (status 3)"),
    ],
)
def test_how_jobs_end(tmp_path: Path, code: str, state: str, message: str) -> None:
    runs = Runs(tmp_path, code)
    job = runs.start()
    wait(job)
    assert (job.state, job.message) == (state, message)
    assert runs.noted == ["running", state]
    assert len(runs.finished) == (state == "done")
    assert job.warnings == (["w"] if state == "done" else [])
    runs.jobs.close()


@pytest.mark.parametrize("code", [SLEEPS, STUBBORN])
def test_a_running_job_is_cancelled(tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graph2vid.studio.jobs._PATIENCE", 0.3)
    runs = Runs(tmp_path, code)
    job = runs.start()
    wait(job, "running")
    while job.stage != "sleeping":
        time.sleep(0.01)
    process: Any = job.process
    runs.jobs.cancel(job)
    wait(job)
    assert job.state == "cancelled"
    assert process.poll() is not None
    runs.jobs.cancel(job)  # once more does no harm
    assert runs.noted == ["running", "cancelled"]
    runs.jobs.close()


def test_a_job_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    runs = Runs(tmp_path, SLEEPS, seconds=0.5)
    job = runs.start()
    wait(job)
    assert job.state == "failed"
    assert "took longer than" in job.message
    runs.jobs.close()


def test_jobs_wait_their_turn_and_are_limited(tmp_path: Path) -> None:
    runs = Runs(tmp_path, SLEEPS)
    first = runs.start("p0")
    wait(first, "running")
    waiting = [runs.start(f"p{number}") for number in range(1, MOST_WAITING + 1)]
    with pytest.raises(BusyError, match="jobs wait already"):
        runs.start("another")
    runs.jobs.cancel(waiting[0])
    assert waiting[0].state == "cancelled"
    with pytest.raises(BusyError, match="this project has a job already"):
        runs.start("p0")
    assert [job.state for job in waiting[1:]] == ["waiting"] * (MOST_WAITING - 1)
    runs.jobs.close()
    assert all(job.state == "cancelled" for job in (first, *waiting))


def test_a_defect_does_not_stop_the_others(tmp_path: Path) -> None:
    runs = Runs(tmp_path, DONE)

    def broken(_: Path) -> None:
        raise RuntimeError("oops")

    job = Job("ground", "p", "p", {"output": str(tmp_path / "x")}, broken, runs.note)
    runs.jobs.start(job)
    wait(job)
    assert (job.state, job.message) == ("failed", "RuntimeError: oops (this is a defect)")
    second = runs.start()
    wait(second)
    assert second.state == "done"
    runs.jobs.close()
