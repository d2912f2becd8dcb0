"""Jobs of `benchmarks.jobs` in processes of their own, each with the Python of its package, taking turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from typing import Any

from benchmarks import ROOT
from benchmarks.memory import KEEP_NOTHING
from benchmarks.timing import Effort, take_turns

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
ENVIRONMENTS = ROOT / "build" / "peers"


class JobError(Exception):
    """A job ended early: its package, and the last line that it wrote."""


def python_of(package: str) -> str:
    """Return the Python of a package: of its own environment where there is one (`make peers`), else this one."""
    own = ENVIRONMENTS / package / "bin" / "python"
    return str(own) if own.exists() else sys.executable


class Job:
    """A job that waits to be asked for times; a context manager, which ends it.

    Attributes
    ----------
    package : str
    about : dict
        What it said of itself: version, cost, bytes, process_bytes.
    """

    def __init__(self, package: str, job: str, steps: int, clips: int, **environment: str) -> None:
        self._said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [python_of(package), "-m", "benchmarks.jobs", package, job, str(steps), str(clips)],
            cwd=ROOT,
            env=os.environ | ONE_THREAD | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )
        self.package = package
        self.about: dict[str, Any] = {}

    def __enter__(self) -> Job:
        try:
            self.about = self._answer()
        except JobError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._said.close()

    def best(self, seconds: float) -> float:
        """Return the processor time of its quickest call in about so many seconds."""
        with suppress(BrokenPipeError):
            print(seconds, file=self._process.stdin, flush=True)
        return float(self._answer())

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        if line := self._process.stdout.readline():
            return json.loads(line)
        status = self._process.wait()
        self._said.seek(0)
        lines = self._said.read().strip().splitlines() or [f"it ended with status {status}"]
        raise JobError(self.package, lines[-1])


def race_apart(package: str, job: str, size: tuple[int, int], longer: int, effort: Effort) -> dict[str, dict[str, Any]]:
    """Let a peer and graph2vid do a job in turns, and then once each on longer videos, for memory.

    Parameters
    ----------
    package, job
        As `benchmarks.jobs` knows them.
    size : (int, int)
        Steps and clips.
    longer : int
        How many times as many clips memory is measured on.
    effort : Effort
        How long to measure.

    Returns
    -------
    dict
        For "peer" and "ours" what they said, with "seconds"; their bytes are those on longer videos.

    Raises
    ------
    JobError
        If one of them cannot do it.
    """
    packages, (steps, clips) = {"peer": package, "ours": "graph2vid"}, size
    with ExitStack() as stack:
        jobs = {name: stack.enter_context(Job(one, job, steps, clips)) for name, one in packages.items()}
        slices = {name: (lambda one=one: one.best(effort.slice_seconds)) for name, one in jobs.items()}
        best = take_turns(slices, effort)
    found = {name: jobs[name].about | {"seconds": best[name]} for name in jobs}
    for name, one in packages.items():
        with Job(one, job, steps, clips * longer, **KEEP_NOTHING) as alone:
            found[name] |= {key: alone.about[key] for key in ("bytes", "process_bytes")}
    return found
