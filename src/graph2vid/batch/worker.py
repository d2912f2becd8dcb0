"""Worker processes, and the program that forks them: it serves a :class:`graph2vid.batch.workers.WorkerPool`.

The program loads what workers need, passes tasks on to them and answers back, and ends a worker that takes too long. It
has one thread and computes nothing, so that it can be forked at any time. Nothing of it outlives the pool. Most of what
is needed to work on rows is loaded while a worker checks the manifest, which needs little of it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import signal
import sys
import time
import warnings
from collections import deque
from functools import cache, lru_cache
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

from graph2vid._memory import share_memory
from graph2vid._processes import end_with_parent
from graph2vid.batch.batches import RowReader
from graph2vid.batch.manifest import encode_check
from graph2vid.batch.results import SECONDS, encode_results, from_bytes, to_bytes
from graph2vid.batch.rows import decode, row_digests
from graph2vid.batch.runs import reason_of
from graph2vid.batch.settings import Context
from graph2vid.batch.workers import ANSWER, CHECK, ENDED, FAILED, how_it_ended

_ENDING_SECONDS = 0.3
_FORK: Any = get_context("fork") if hasattr(os, "fork") else None


def work(table: Any, context: Context, attempt: int) -> Any:
    """Take the rows of a table through the stages; return their results."""
    from graph2vid.batch.stages import Item, run_stages

    rows = decode(table, context)
    items = [Item(row, digest) for row, digest in zip(rows, row_digests(rows, context), strict=True)]
    seconds = run_stages(items, context)
    return encode_results(items, attempt).replace_schema_metadata({SECONDS: json.dumps(seconds).encode()})


def serve(connection: Connection, context: Context) -> None:
    """Be a worker: do tasks until the other side closes the connection."""
    if context.processors and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, context.processors)
    share_memory(context.workers)
    opened = lru_cache(maxsize=1)(RowReader)
    while True:
        head, _, data = connection.recv_bytes().partition(b"\n")
        task = json.loads(head)
        try:
            if "manifest" in task:
                answer = encode_check(task["manifest"], task["copy"], context)
            else:
                table = opened(task["path"]).read(task["places"]) if "path" in task else from_bytes(data)
                answer = to_bytes(work(table, context, task["attempt"]))
            connection.send_bytes(ANSWER + answer)
        except Exception as error:  # a defect of ours, or no memory: the rows are tried one by one
            connection.send_bytes(FAILED + reason_of(error).encode())


class _Worker:
    """A worker process, and the tasks that wait for it; the first is the one that it works on."""

    def __init__(self, context: Context, seconds: float, pool: Connection) -> None:
        self._context, self._seconds, self._pool = context, seconds, pool
        self.tasks: deque[bytes] = deque()
        self.connection: Connection | None = None
        self.limit = math.inf

    def take(self, task: bytes) -> None:
        """Take a task."""
        self.tasks.append(task)
        if len(self.tasks) == 1:
            self._begin()

    def answer(self) -> bytes:
        """Return what the worker says of its first task (or why it says nothing), and begin with the next."""
        try:
            if self.connection is None or not self.connection.poll():
                self.end(0.0)
                answer = FAILED + f"took longer than the limit of {self._seconds:g} s".encode()
            else:
                answer = self.connection.recv_bytes()
        except (EOFError, OSError):
            answer = ENDED + self.end().encode()
        self.tasks.popleft()
        if self.tasks:
            self._begin()
        return answer

    def end(self, patience: float = _ENDING_SECONDS) -> str:
        """End the process; return how it ended, which may be by itself within the seconds of patience."""
        if self.connection is None:
            return ""
        self.connection.close()
        self.connection = None
        self._process.join(patience)
        self._process.kill()
        self._process.join()
        return how_it_ended(self._process.exitcode)

    def _begin(self) -> None:
        if self.connection is None:
            self.connection, theirs = _FORK.Pipe()
            self._process = _FORK.Process(target=_work, args=(theirs, self._pool, self._context), daemon=True)
            self._process.start()
            theirs.close()
        self.limit = time.monotonic() + self._seconds
        with contextlib.suppress(OSError):  # it has ended, which is seen as soon as it is listened to
            self.connection.send_bytes(self.tasks[0])


def _work(connection: Connection, pool: Connection, context: Context) -> None:
    end_with_parent()
    pool.close()
    with contextlib.suppress(EOFError, OSError):
        serve(connection, context)


@cache
def _load() -> None:
    """Load what work on rows needs, once; and let the collector of garbage look at none of it in each worker."""
    import_module("graph2vid.batch.stages")
    import_module("graph2vid.alignment").native()
    gc.freeze()


def main() -> None:
    """Run as a program: serve the pool at the other end of a socket, whose number is the argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the pool decides
    warnings.simplefilter("ignore")  # what matters is in the results
    workers: list[_Worker] = []
    with Connection(int(sys.argv[1])) as pool, contextlib.suppress(EOFError, OSError):
        while True:
            busy = {worker.connection: worker for worker in workers if worker.tasks and worker.connection}
            limit = min((worker.limit for worker in busy.values()), default=math.inf)
            ready = wait([pool, *busy], None if limit == math.inf else max(0.0, limit - time.monotonic()))
            if pool in ready:
                number, message = pool.recv()
                if number is None:
                    for worker in workers:
                        worker.end(0.0)
                    contexts, seconds = message
                    workers = [_Worker(context, seconds, pool) for context in contexts]
                    continue
                if not message.startswith(CHECK):
                    _load()
                workers[number].take(message)
                _load()
            for number, worker in enumerate(workers):
                if worker.tasks and (worker.connection in ready or worker.limit <= time.monotonic()):
                    pool.send((number, worker.answer()))
    os._exit(0)  # at once; the workers end, too
