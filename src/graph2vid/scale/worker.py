"""A worker process: it serves one parent over a socket, whose number is its argument, and dies with it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import warnings
from multiprocessing.connection import Connection
from typing import Any

from graph2vid.scale._packages import arrow
from graph2vid.scale.results import decode_items, encode_items, encode_results
from graph2vid.scale.settings import Context
from graph2vid.scale.stages import reason_of, run_stages

READY = b"ready"
FAILED = b"!"
"""What an answer that is no table begins with: the reason follows."""

SECONDS = b"seconds"
"""Under this key the metadata of an answer tell the seconds of each stage."""


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


def _die_with_parent() -> None:
    """Ask the system to end this process when its parent is gone, whatever it is doing then."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() == 1:  # it was quicker
        os._exit(1)


def serve(connection: Connection) -> None:
    """Answer requests until the parent closes the connection."""
    head = json.loads(connection.recv_bytes())
    context = Context(**head)
    if context.processors and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, context.processors)
    arrow()
    connection.send_bytes(READY)
    while True:
        try:
            request = json.loads(connection.recv_bytes())
            table = from_bytes(connection.recv_bytes())
        except EOFError:
            return
        answer: bytes | memoryview
        try:
            answer = to_bytes(work(table, tuple(request["stages"]), context, request["attempt"]))
        except Exception as error:  # a defect of ours, or no memory: the parent tries the rows one by one
            answer = FAILED + reason_of(error).encode()
        connection.send_bytes(answer)


def main() -> None:
    """Run as a program."""
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    warnings.simplefilter("ignore")  # what matters is in the results
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        serve(Connection(int(sys.argv[1])))
