"""A worker process under guard: it may hang, crash or be killed, and every row still gets an answer."""

from __future__ import annotations

import dataclasses
import json
import time
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from graph2vid import errors
from graph2vid.batch._packages import arrow
from graph2vid.batch.fork_server import LostError, Nursery
from graph2vid.batch.job import Batch
from graph2vid.batch.manifest import Manifest, Problem
from graph2vid.batch.parquet import RowReader
from graph2vid.batch.results import decode_items, failures, with_failure
from graph2vid.batch.settings import Context
from graph2vid.batch.worker import FAILED, READY, TOLD, from_bytes, to_bytes
from graph2vid.errors import FormatError, Graph2VidError

_START_SECONDS = 60.0
_START_TRIES = 10
_START_PAUSE = 0.2
_DEATHS = 4  # of the worker of one row, until the row is given up: the first may be somebody else's fault


class _Lost(Exception):
    """The worker gave no answer."""

    def __init__(self, reason: str, row_is_to_blame: bool) -> None:
        super().__init__(reason)
        self.row_is_to_blame = row_is_to_blame


class Guard:
    """One worker process, started anew when it is lost.

    Parameters
    ----------
    context : Context
        What the worker knows.
    row_seconds : float
        The time limit of a row. A batch that takes longer than one row may is ended and tried row by row.
    nursery : Nursery, optional
        Where the worker comes from; by default one for this worker alone.
    """

    def __init__(self, context: Context, row_seconds: float, nursery: Nursery | None = None) -> None:
        self._context = context
        self._row_seconds = row_seconds
        self._own_nursery = nursery is None
        self._nursery = nursery or Nursery(context.threads)
        self._pid: int | None = None
        self._connection: Connection | None = None
        self._stopped = False

    @property
    def pid(self) -> int | None:
        """The id of the worker process, if there is one now."""
        return self._pid

    def run(self, rows: Any, stages: tuple[str, ...], attempt: int = 0) -> Any:
        """Take rows, a table or a :class:`Batch`, through some stages; an answer for every row, in order.

        A row that takes too long, or whose worker dies again and again, fails with that reason; the other rows of
        its batch are worked on alone.
        """
        pa = arrow()
        if len(rows) == 1:
            return self._alone(rows, stages, attempt)
        try:
            return self._ask(rows, stages, attempt)
        except _Lost:
            return pa.concat_tables(self._alone(rows.slice(at, 1), stages, attempt) for at in range(len(rows)))

    def check(self, manifest: Path, copy: Path) -> Manifest:
        """Call :func:`graph2vid.batch.manifest.read_manifest` in the worker.

        Reading a damaged Parquet file may crash: then the manifest is refused, and the driver lives.
        """
        how = ""
        for _ in range(_DEATHS):
            connection = self._started()
            try:
                connection.send_bytes(json.dumps({"manifest": str(manifest), "copy": str(copy)}).encode())
                return _manifest(manifest, from_bytes(connection.recv_bytes()))
            except (EOFError, OSError):
                how = self._end()
        raise FormatError(f"{manifest} is damaged, or too large: the process that reads it ended ({how})")

    def stop(self) -> None:
        """End the worker from another thread; whoever waits for it gets an error, and no other is started."""
        self._stopped = True
        if (pid := self._pid) is not None:
            self._nursery.end(pid)

    def close(self) -> None:
        """End the worker."""
        self._end()
        if self._own_nursery:
            self._nursery.close()

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
                    table = RowReader(str(row.path)).read(row.places.tolist()) if isinstance(row, Batch) else row
                    if stages[-1] != "align":
                        return with_failure(table, reason, self._context)
                    (item,) = decode_items(table, self._context)
                    return failures([item.row.id], [reason], attempt, [item.digest])
        raise AssertionError("unreachable")

    def _ask(self, rows: Any, stages: tuple[str, ...], attempt: int) -> Any:
        """Ask the worker; an answer, or :class:`_Lost`, and then the worker is gone."""
        connection = self._started()
        request: dict[str, Any] = {"stages": stages, "attempt": attempt}
        try:
            if isinstance(rows, Batch):
                request |= {"path": str(rows.path), "places": rows.places.tolist()}
            connection.send_bytes(json.dumps(request).encode())
            if not isinstance(rows, Batch):
                connection.send_bytes(to_bytes(rows))
            if not connection.poll(self._row_seconds):
                raise _Lost(f"took longer than the limit of {self._row_seconds:g} s", row_is_to_blame=True)
            answer = connection.recv_bytes()
        except (EOFError, OSError):
            raise _Lost(f"its worker process ended ({self._end()})", row_is_to_blame=False) from None
        except BaseException:
            self._end()
            raise
        if answer.startswith(FAILED):
            raise _Lost(answer.removeprefix(FAILED).decode(), row_is_to_blame=True)
        return from_bytes(answer)

    def _started(self) -> Connection:
        """Return the connection to a worker that is ready."""
        reason = ""
        for _ in range(_START_TRIES):
            if self._connection is not None:
                return self._connection
            if self._stopped:
                raise Graph2VidError("the run was stopped")
            try:
                self._pid, self._connection = self._nursery.start()
                self._connection.send_bytes(json.dumps(dataclasses.asdict(self._context)).encode())
                if self._connection.poll(_START_SECONDS) and self._connection.recv_bytes() == READY:
                    return self._connection
                reason = self._end()
            except LostError as lost:
                reason = str(lost)
            except (EOFError, OSError):
                reason = self._end()
            time.sleep(_START_PAUSE)
        raise Graph2VidError(f"worker processes end as soon as they are started ({reason})")

    def _end(self) -> str:
        """End the worker, if there is one; return how it ended."""
        connection, self._connection = self._connection, None
        pid, self._pid = self._pid, None
        if connection is not None:
            connection.close()
        return "" if pid is None else self._nursery.end(pid)


def _manifest(path: Path, answer: Any) -> Manifest:
    """Return what the worker found of a manifest; raise and warn as it did."""
    told = json.loads(answer.schema.metadata[TOLD])
    for message in told["warnings"]:
        warnings.warn(message, stacklevel=4)
    if "error" in told:
        kind, message = told["error"]
        raise getattr(errors, kind, Graph2VidError)(message)
    return Manifest(
        path,
        Path(told["rows"]),
        answer.column("id").combine_chunks(),
        told["kinds"],
        [Problem(*problem) for problem in told["problems"]],
        told["unreadable"],
    )
