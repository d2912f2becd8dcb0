"""A worker process under guard: it may hang, crash or be killed, and every row still gets an answer."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

from graph2vid.errors import Graph2VidError
from graph2vid.scale._packages import arrow
from graph2vid.scale.results import failures, with_failure
from graph2vid.scale.settings import Context
from graph2vid.scale.worker import FAILED, READY, from_bytes, to_bytes

_PROGRAM = "from graph2vid.scale.worker import main; main()"
_START_SECONDS = 120.0
_START_TRIES = 10
_START_PAUSE = 0.2
_DEATHS = 4  # of the worker of one row, until the row is given up: the first may be somebody else's fault


class _Lost(Exception):
    """The worker gave no answer."""

    def __init__(self, reason: str, row_is_to_blame: bool) -> None:
        super().__init__(reason)
        self.row_is_to_blame = row_is_to_blame


Spare: TypeAlias = tuple["subprocess.Popen[bytes]", Connection]
"""A worker process without work, and the connection to it."""


class Guard:
    """One worker process, started anew when it is lost.

    Parameters
    ----------
    context : Context
        What the worker knows.
    row_seconds : float
        The time limit of a row. A batch that takes longer than one row may is ended and tried row by row.
    spare : Spare, optional
        A process that was started before and becomes the first worker.
    """

    def __init__(self, context: Context, row_seconds: float, spare: Spare | None = None) -> None:
        self._context = context
        self._row_seconds = row_seconds
        self._spare = spare
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._stopped = False

    @property
    def pid(self) -> int | None:
        """The id of the worker process, if there is one now."""
        return None if self._process is None else self._process.pid

    def run(self, table: Any, stages: tuple[str, ...], attempt: int = 0) -> Any:
        """Take rows through some stages; an answer for every row, in order.

        A row that takes too long, or whose worker dies again and again, fails with that reason; the other rows of
        its batch are worked on alone.
        """
        pa = arrow()
        if len(table) == 1:
            return self._alone(table, stages, attempt)
        try:
            return self._ask(table, stages, attempt)
        except _Lost:
            return pa.concat_tables(self._alone(table.slice(at, 1), stages, attempt) for at in range(len(table)))

    def stop(self) -> None:
        """End the worker from another thread; whoever waits for it gets an error, and no other is started."""
        self._stopped = True
        if (process := self._process) is not None:
            process.kill()

    def close(self) -> None:
        """End the worker."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            self._process.kill()  # it has nothing that is not written
            self._process.wait()
            self._process = None

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _alone(self, row: Any, stages: tuple[str, ...], attempt: int) -> Any:
        for death in range(1, _DEATHS + 1):
            try:
                return self._ask(row, stages, attempt)
            except _Lost as lost:
                if lost.row_is_to_blame or death == _DEATHS:
                    reason = str(lost) if lost.row_is_to_blame else f"{lost}, {_DEATHS} times in a row"
                    if stages[-1] != "align":
                        return with_failure(row, reason)
                    return failures(row.column("id").to_pylist(), reason, attempt)
        raise AssertionError("unreachable")

    def _ask(self, table: Any, stages: tuple[str, ...], attempt: int) -> Any:
        """Ask the worker; an answer, or :class:`_Lost`, and then the worker is gone."""
        connection = self._started()
        try:
            connection.send_bytes(json.dumps({"stages": stages, "attempt": attempt}).encode())
            connection.send_bytes(to_bytes(table))
            if not connection.poll(self._row_seconds):
                raise _Lost(f"took longer than the limit of {self._row_seconds:g} s", row_is_to_blame=True)
            answer = connection.recv_bytes()
        except (EOFError, OSError):
            reason = self._why_it_ended()
            self.close()
            raise _Lost(f"its worker process ended ({reason})", row_is_to_blame=False) from None
        except BaseException:
            self.close()
            raise
        if answer.startswith(FAILED):
            raise _Lost(answer.removeprefix(FAILED).decode(), row_is_to_blame=True)
        return from_bytes(answer)

    def _started(self) -> Connection:
        """Return the connection to a worker that is ready."""
        for _ in range(_START_TRIES):
            if self._connection is not None:
                return self._connection
            if self._stopped:
                raise Graph2VidError("the run was stopped")
            self._process, connection = self._spare or start_spare(self._context.threads)
            self._spare = None
            with contextlib.suppress(EOFError, OSError):
                connection.send_bytes(json.dumps(dataclasses.asdict(self._context)).encode())
                if connection.poll(_START_SECONDS) and connection.recv_bytes() == READY:
                    self._connection = connection
                    return connection
            connection.close()
            reason = self._why_it_ended()
            self.close()
            time.sleep(_START_PAUSE)
        raise Graph2VidError(f"worker processes end as soon as they are started ({reason})")

    def _why_it_ended(self) -> str:
        assert self._process is not None
        deadline = time.monotonic() + 5.0
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        status = self._process.returncode
        if status is None:
            return "it does not answer"
        return signal.Signals(-status).name if status < 0 else f"status {status}"


def start_spare(threads: int | None) -> Spare:
    """Start a worker process that uses so many threads; it knows nothing yet, but is loading what it needs."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            env=os.environ | _threads(threads),
        )
    return process, Connection(ours.detach())


def _threads(count: int | None) -> dict[str, str]:
    """Return the environment in which libraries use so many threads."""
    if count is None:
        return {}
    return dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(count))
