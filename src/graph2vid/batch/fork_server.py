"""Worker processes, quickly: one process loads what they need, and forks each of them.

Loading takes longer than a thousand videos with ready scores; a row that takes its worker down should cost little more
than itself.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from multiprocessing.connection import Connection

from graph2vid.errors import Graph2VidError

_PROGRAM = "from graph2vid.batch.worker import main; main()"
_SECONDS = 120.0  # until it has loaded, on a machine that is busy


class LostError(Exception):
    """The nursery ended; so do its workers. The message says how."""


class Nursery:
    """Starts and ends worker processes; started anew when it is lost.

    Parameters
    ----------
    threads : int or None
        Threads of one worker, for libraries that have threads of their own; None: as they like.
    """

    def __init__(self, threads: int | None) -> None:
        if not hasattr(os, "fork"):  # Windows
            raise Graph2VidError("worker processes are forked, which this system cannot do: use the engine ray")
        self._threads = threads
        self._lock = threading.Lock()
        self._start()

    def start(self) -> tuple[int, Connection]:
        """Return the process id of a new worker, and the connection to it."""
        ours, theirs = socket.socketpair()
        with ours, theirs, self._lock:
            pid = self._asked(b"start", theirs.fileno())
            return int(pid), Connection(ours.detach())

    def end(self, pid: int) -> str:
        """End a worker; return how it ended, which may be before and by itself."""
        with self._lock:
            try:
                return self._asked(str(pid).encode())
            except LostError as lost:
                return str(lost)

    def close(self) -> None:
        """End the nursery, and with it all workers."""
        self._control.close()
        self._process.kill()
        self._process.wait()

    def _start(self) -> None:
        self._control, theirs = socket.socketpair()
        self._control.settimeout(_SECONDS)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                env=os.environ | _environment(self._threads),
            )

    def _asked(self, message: bytes, *handles: int) -> str:
        """Return the answer of the nursery; if it is lost, another is started, and :class:`LostError` tells how."""
        answer = b""
        with contextlib.suppress(OSError):
            socket.send_fds(self._control, [message], handles)
            answer = self._control.recv(64)
        if answer:
            return answer.decode()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)  # it is ending: how is worth knowing
        status = self._process.returncode
        self.close()
        self._start()
        raise LostError("it does not answer" if status is None else how_it_ended(status))


def how_it_ended(status: int) -> str:
    """Return in words the status of a process as :mod:`subprocess` gives it."""
    return signal.Signals(-status).name if status < 0 else f"status {status}"


def _environment(threads: int | None) -> dict[str, str]:
    """Return the environment in which libraries use so many threads, and large arrays that come and go cost little."""
    kept = {"MALLOC_MMAP_THRESHOLD_": str(64 << 20), "MALLOC_TRIM_THRESHOLD_": str(128 << 20)}
    if threads is None:
        return kept
    return kept | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
