"""Jobs: long work in processes of its own, one at a time, with progress, an end by request and an end by time."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from graph2vid.errors import Graph2VidError

MOST_WAITING = 4
"""More jobs than this do not wait; they are refused."""
_KEPT = 50  # ended jobs that are still known
_PATIENCE = 3.0  # seconds from the request to end until the process is killed
_MOST_WARNINGS = 20


class BusyError(Graph2VidError):
    """Too many jobs wait already."""

    status = 429


@dataclass
class Job:
    """One piece of work.

    Attributes
    ----------
    id, kind, project : str
        ``kind`` is a name in :data:`graph2vid.studio.work.KINDS`.
    owner : object
        Whose job it is; one job of an owner at a time.
    order : dict
        What :mod:`graph2vid.studio.work` is to do; ``output`` is the folder for what it makes.
    finish : callable
        Takes that folder when all went well.
    part : callable
        Takes that folder and the name of a part of what it makes, as soon as that is there.
    note : callable
        Is told the state, and why, when the job begins and when it ends; before others see it.
    state : str
        ``waiting``, ``running``, ``done``, ``failed`` or ``cancelled``.
    stage : str
        What is being done, for people.
    done, total : float or None
        How far the stage is.
    message : str
        Why it failed.
    warnings : list of str
    version : int
        Grows with every change.
    began : float
        When the stage did, by the monotonic clock.
    """

    kind: str
    project: str
    owner: object
    order: dict[str, Any]
    finish: Callable[[Path], None]
    note: Callable[[str, str], None]
    part: Callable[[Path, str], None] = field(default=lambda *_: None)
    id: str = field(default_factory=lambda: uuid4().hex)
    state: str = "waiting"
    stage: str = "waiting"
    done: float | None = None
    total: float | None = None
    message: str = ""
    warnings: list[str] = field(default_factory=list)
    version: int = 0
    cancelled: bool = False
    process: subprocess.Popen[bytes] | None = None
    began: float = field(default_factory=time.monotonic)

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state not in ("waiting", "running")

    def to_json(self) -> dict[str, Any]:
        """Return what the API says about the job."""
        names = ("id", "kind", "project", "state", "stage", "done", "total", "message", "warnings")
        seconds = round(time.monotonic() - self.began, 1)
        return {name: getattr(self, name) for name in names} | {"seconds": seconds}


class Jobs:
    """Runs jobs one after the other.

    Parameters
    ----------
    seconds : float
        A job that runs longer is ended.
    command : list of str, optional
        What runs a job.
    """

    def __init__(self, seconds: float = 3600.0, command: list[str] | None = None) -> None:
        self.seconds = seconds
        self.command = command or [sys.executable, "-m", "graph2vid.studio.work"]
        self._jobs: dict[str, Job] = {}
        self._queue: deque[Job] = deque()
        self._change = threading.Condition()
        self._closed = False
        self._worker = threading.Thread(target=self._work, name="studio jobs", daemon=True)
        self._worker.start()

    def start(self, job: Job) -> Job:
        """Let a job wait for its turn."""
        with self._change:
            if len(self._queue) >= MOST_WAITING:
                raise BusyError(f"{len(self._queue)} jobs wait already: try again when one of them is done")
            if any(other.owner == job.owner and not other.is_over for other in self._jobs.values()):
                raise BusyError("this project has a job already: wait for it, or cancel it")
            for old in [known for known in self._jobs.values() if known.is_over][:-_KEPT]:
                del self._jobs[old.id]
            self._jobs[job.id] = job
            self._queue.append(job)
            self._change.notify_all()
        return job

    def get(self, job: str) -> Job | None:
        """Return a job by its id."""
        return self._jobs.get(job)

    def of(self, owner: object) -> Job | None:
        """Return the last job of an owner."""
        return next((job for job in reversed(list(self._jobs.values())) if job.owner == owner), None)

    def cancel(self, job: Job) -> None:
        """End a job; one that has ended stays as it is."""
        with self._change:
            job.cancelled = True
            waits, process = job in self._queue, job.process
            if waits:
                self._queue.remove(job)
        if waits:
            self._end(job, "cancelled")
        if process is not None:
            _stop(process)

    def close(self) -> None:
        """End everything."""
        with self._change:
            self._closed = True
            going = [*self._queue, *(job for job in self._jobs.values() if job.state == "running")]
            self._change.notify_all()
        for job in going:
            self.cancel(job)
        self._worker.join(_PATIENCE + 2)

    # -- the worker ------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._queue or self._closed)
                if self._closed:
                    return
                job = self._queue.popleft()
                job.state, job.stage, job.began = "running", "starting", time.monotonic()
                job.version += 1
            try:
                self._run(job)
            except Exception as error:  # the next job must get its turn
                ours = isinstance(error, Graph2VidError)
                self._end(job, "failed", str(error) if ours else f"{type(error).__name__}: {error} (this is a defect)")

    def _run(self, job: Job) -> None:
        job.note("running", "")
        output = Path(job.order["output"])
        output.mkdir()
        process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=output
        )
        with self._change:
            job.process = process
            cancelled = job.cancelled
        timer = threading.Timer(self.seconds, _stop, [process])
        timer.daemon = True
        started = time.monotonic()
        timer.start()
        assert process.stdin is not None and process.stdout is not None
        finished = False
        try:
            if cancelled:
                _stop(process)
            with contextlib.suppress(BrokenPipeError):  # it died at once; its status says so
                process.stdin.write(json.dumps({"kind": job.kind, **job.order}).encode() + b"\n")
                process.stdin.flush()
            for line in process.stdout:
                finished |= self._read_line(job, line)
            status = process.wait()
        finally:
            timer.cancel()
            _stop(process)
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.stdout.close()
        if finished and status == 0 and not job.cancelled:
            job.finish(output)
            self._end(job, "done")
        elif time.monotonic() - started >= self.seconds:
            self._end(job, "failed", f"it took longer than {self.seconds / 60:g} minutes and was ended")
        else:
            self._end(job, "failed", job.message or f"the process ended unexpectedly (status {status})")

    def _read_line(self, job: Job, line: bytes) -> bool:
        """Note what the process says; return whether it has finished."""
        try:
            said = json.loads(line)
        except ValueError:
            return False
        if "part" in said:
            job.part(Path(job.order["output"]), str(said["part"]))
        with self._change:
            if "stage" in said:
                if said["stage"] != job.stage:
                    job.began = time.monotonic()
                job.stage, job.done, job.total = said["stage"], said.get("done"), said.get("total")
            if "error" in said:
                job.message = said["error"]
            if "warning" in said and len(job.warnings) < _MOST_WARNINGS:
                job.warnings.append(said["warning"])
            job.version += 1
        return bool(said.get("finished"))

    def _end(self, job: Job, state: str, message: str = "") -> None:
        job.process = None
        if job.cancelled:  # whatever else went wrong then
            state, message = "cancelled", ""
        try:
            job.note(state, message)
        except Graph2VidError as error:  # the disk is full, say
            state, message = "failed", message or str(error)
        job.message = message
        job.state = job.stage = state
        job.version += 1


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process, gently at first."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
