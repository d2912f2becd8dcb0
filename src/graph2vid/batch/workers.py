"""A pool of worker processes that may hang, crash or be killed: every task gets an answer all the same.

The workers are forked, by :mod:`multiprocessing`, from a process of our own that has loaded what they need
(:mod:`graph2vid.batch.worker`). Why not a pool that others maintain:

- the fork server of :mod:`multiprocessing`, tried, works through 20,000 videos about as quickly, but runs the caller's
  main module in every worker: where that imports ray, a worker takes 0.7 s to start instead of 0.01 s. There is one
  such server in a process, whoever else uses it.
- loky, by its documentation, starts each worker as a new program (loading ours takes 0.95 s), breaks the whole pool
  with all tasks under way when one of them crashes, and has no time limit for a task.
- pebble has time limits, but starts its workers as one of the above, and a task cannot be given to the worker that has
  read the rows before it.

Only the standard library is imported here, so that the workers load while the rest of the package does.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from graph2vid.batch.settings import Context
from graph2vid.errors import Graph2VidError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

ANSWER, FAILED, ENDED = b"=", b"!", b"?"
"""How the message of a worker begins: an answer, the fault of the task, or how the process ended."""

CHECK = b'{"manifest":'
"""How the message of a task begins that checks a manifest, which needs little that is to be loaded."""

Answer = TypeVar("Answer", covariant=True)

_PROGRAM = "from graph2vid.batch.worker import main; main()"
_START_TRIES = 10
_START_PAUSE = 0.2
_AHEAD = 2  # tasks of a worker: one that it works on, and one that waits
_IDLE_SECONDS = 1.0
_DEATHS = 4  # of the worker of one task, until that is given up: the first may be somebody else's fault


class Task(Protocol[Answer]):
    """Something that a worker does."""

    def message(self) -> bytes:
        """Return what the worker is sent."""

    def answer(self, data: bytes) -> Answer:
        """Return what the worker's answer says."""

    def split(self) -> Sequence[Task[Answer]]:
        """Return the tasks that are tried one by one when there was no answer; one alone where it has no parts."""

    def give_up(self, reason: str) -> Answer:
        """Return the answer where there is none."""


class WorkerPool:
    """Worker processes of this machine, started anew when they are lost.

    Libraries use one thread in each: how sums are rounded must not depend on the number of workers.
    """

    def __init__(self) -> None:
        if not hasattr(os, "fork"):  # Windows
            raise Graph2VidError("worker processes are forked, which this system cannot do: use the engine ray")
        # Large arrays come and go at little cost.
        self._environment = os.environ | {
            "MALLOC_MMAP_THRESHOLD_": f"{64 << 20}",
            "MALLOC_TRIM_THRESHOLD_": f"{128 << 20}",
            **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        }
        self._set_up: tuple[Sequence[Context], float] = (), math.inf
        self._sent: list[deque[tuple[Task[Any], int]]] = []  # of each worker, and how many of its processes died of it
        self._start()

    def set_up(self, contexts: Sequence[Context], seconds: float = math.inf) -> None:
        """Say what each worker knows, and how long a task may take; workers from before are ended."""
        self._set_up = contexts, seconds
        self._sent = [deque() for _ in contexts]
        self._send(None, self._set_up)

    def run(
        self, groups: Iterable[Iterable[Task[Answer]]], idle: Callable[[], None] = lambda: None
    ) -> Iterator[Answer]:
        """Yield the answers to tasks as they come; the tasks of a group go to one worker, in their order.

        Parameters
        ----------
        groups : iterable
        idle : callable, optional
            Is called every second while there are no answers.
        """
        waiting, source = [deque[tuple[Task[Answer], int]]() for _ in self._sent], iter(groups)
        silent = 0
        while True:
            for worker, (own, sent) in enumerate(zip(waiting, self._sent, strict=True)):
                while len(sent) < _AHEAD:
                    if not own:
                        own.extend((task, 0) for task in next(source, ()))
                    if not own:
                        break
                    sent.append(own.popleft())
                    self._send(worker, sent[-1][0].message())
            if not any(self._sent):
                return
            try:
                data = self._answers.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                idle()
                continue
            if data is None:
                silent += 1
                self._restart(silent)
                continue
            silent = 0
            worker, kind, told = data[0], data[1][:1], data[1][1:]
            task, deaths = self._sent[worker].popleft()
            deaths += 1
            if kind == ANSWER:
                yield task.answer(told)
            elif len(parts := task.split()) > 1:
                waiting[worker].extendleft((part, 0) for part in reversed(parts))
            elif kind == FAILED:
                yield task.give_up(told.decode())
            elif deaths == _DEATHS:
                yield task.give_up(f"its worker process ended ({told.decode()}), {_DEATHS} times in a row")
            else:
                waiting[worker].appendleft((task, deaths))

    def close(self) -> None:
        """End all workers at once, whatever they are doing."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._control.close()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, worker: int | None, message: Any) -> None:
        """Send a message for a worker, or what all of them know."""
        with contextlib.suppress(OSError):  # it is lost, and the message sent again to the next
            self._control.send((worker, message))

    def _start(self) -> None:
        from multiprocessing.connection import Connection

        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-c", _PROGRAM, str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=(theirs.fileno(),), env=self._environment)
        self._control = Connection(ours.detach())
        self._answers: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=_read, args=(self._control, self._answers), daemon=True)
        self._reader.start()

    def _restart(self, times: int) -> None:
        """Start the workers anew after all of them were lost, and send them what they had not answered."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)  # it is ending: how is worth knowing
        self.close()
        if times == _START_TRIES:
            how = how_it_ended(self._process.returncode)
            raise Graph2VidError(f"worker processes end as soon as they are started ({how})")
        time.sleep(_START_PAUSE)
        self._start()
        self._send(None, self._set_up)
        for worker, sent in enumerate(self._sent):
            for task, _ in sent:
                self._send(worker, task.message())


def _read(connection: Connection, answers: queue.SimpleQueue[tuple[int, bytes] | None]) -> None:
    """Read answers as soon as they are there, so that no worker waits for what is done with them; None: no more."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            answers.put(connection.recv())
    answers.put(None)


def how_it_ended(status: int | None) -> str:
    """Return in words the exit status of a process, negative if a signal ended it."""
    return signal.Signals(-status).name if status is not None and status < 0 else f"status {status}"
