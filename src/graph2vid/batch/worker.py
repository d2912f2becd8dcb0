"""Worker processes, and the one that forks them: it serves its parent over a socket, whose number is its argument.

Nothing of them outlives the parent.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import time
import warnings
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from graph2vid._memory import share_memory
from graph2vid.alignment import native
from graph2vid.batch._packages import arrow, compute, parquet
from graph2vid.batch.fork_server import how_it_ended
from graph2vid.batch.manifest import read_manifest
from graph2vid.batch.parquet import RowReader
from graph2vid.batch.results import decode_items, encode_items, encode_results
from graph2vid.batch.settings import Context
from graph2vid.batch.stages import reason_of, run_stages

READY = b"ready"
FAILED = b"!"
"""What an answer that is no table begins with: the reason follows."""

SECONDS = b"seconds"
"""Under this key the metadata of an answer tell the seconds of each stage."""

TOLD = b"told"
"""Under this key the metadata of an answer tell what was found of a manifest, beside the ids."""

_ENDING_SECONDS = 0.3


def work(table: Any, stages: tuple[str, ...], context: Context, attempt: int) -> Any:
    """Take the rows of a table through some stages; return their results, or the rows if more stages follow."""
    items = decode_items(table, context)
    seconds = run_stages(items, stages, context)
    found = encode_results(items, attempt) if stages[-1] == "align" else encode_items(table, items)
    return found.replace_schema_metadata({SECONDS: json.dumps(seconds).encode()})


def to_bytes(table: Any) -> memoryview:
    """Return a table as an Arrow stream."""
    pa = arrow()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())


def from_bytes(data: bytes) -> Any:
    """Return the table of an Arrow stream."""
    pa = arrow()
    with pa.ipc.open_stream(pa.BufferReader(data)) as reader:
        return reader.read_all()


def serve(connection: Connection) -> None:
    """Answer requests until the parent closes the connection."""
    context = Context(**json.loads(connection.recv_bytes()))
    if context.processors and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, context.processors)
    share_memory(context.workers)
    connection.send_bytes(READY)
    opened = lru_cache(maxsize=1)(RowReader)
    while True:
        request = json.loads(connection.recv_bytes())
        if "manifest" in request:
            connection.send_bytes(_checked(Path(request["manifest"]), Path(request["copy"]), context))
            continue
        sent = None if "path" in request else from_bytes(connection.recv_bytes())
        answer: bytes | memoryview
        try:
            table = opened(request["path"]).read(request["places"]) if sent is None else sent
            answer = to_bytes(work(table, tuple(request["stages"]), context, request["attempt"]))
        except Exception as error:  # a defect of ours, or no memory: the parent tries the rows one by one
            answer = FAILED + reason_of(error).encode()
        connection.send_bytes(answer)


def _checked(manifest: Path, copy: Path, context: Context) -> memoryview:
    """Return the manifest after the check, or the error, as an Arrow stream: see :meth:`Guard.check`."""
    pa = arrow()
    ids: Any = pa.nulls(0, pa.string())
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("default")
        try:
            found = read_manifest(manifest, copy, context)
            ids = found.ids
            told: dict[str, Any] = {
                "rows": str(found.rows),
                "kinds": found.kinds,
                "problems": [(problem.place, problem.id, problem.text) for problem in found.problems],
                "unreadable": found.unreadable,
            }
        except Exception as error:
            told = {"error": (type(error).__name__, reason_of(error))}
    told["warnings"] = [str(one.message) for one in heard if issubclass(one.category, UserWarning)]
    return to_bytes(pa.table({"id": ids}).replace_schema_metadata({TOLD: json.dumps(told).encode()}))


def main() -> None:
    """Run as a program: fork a worker for each socket that comes, and end those whose process id comes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    warnings.simplefilter("ignore")  # what matters is in the results
    _load()
    here = os.getpid()
    workers: set[int] = set()
    with socket.socket(fileno=int(sys.argv[1])) as control, contextlib.suppress(OSError):
        while True:
            message, handles, _, _ = socket.recv_fds(control, 64, 1)
            if not message:
                break
            if not handles:
                answer = _end(int(message)) if int(message) in workers else "it had ended"
                workers.discard(int(message))
            elif (pid := os.fork()) == 0:
                control.close()
                _work_until_the_end(handles[0], here)
            else:
                os.close(handles[0])
                workers.add(pid)
                answer = str(pid)
            control.sendall(answer.encode())
    for pid in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _load() -> None:
    """Load what every worker needs, and nothing more."""
    compute(), parquet(), native()
    arrow().array([0])  # with its first array pyarrow loads pandas, where that is installed: once, before the forks


def _work_until_the_end(handle: int, parent: int) -> NoReturn:
    """Be a worker."""
    status = 1
    try:
        _die_with(parent)
        with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
            serve(Connection(handle))
        status = 0
    finally:
        os._exit(status)


def _die_with(parent: int) -> None:
    """Ask the system to end this process when its parent is gone, whatever it is doing then."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it was quicker
        os._exit(1)


def _end(pid: int) -> str:
    """End a worker; return how it ended, which may be before and by itself."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    limit = time.monotonic() + _ENDING_SECONDS
    while not ended and time.monotonic() < limit:  # perhaps it is about to
        time.sleep(0.005)
        ended, status = os.waitpid(pid, os.WNOHANG)
    if not ended:
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    return how_it_ended(os.waitstatus_to_exitcode(status))
