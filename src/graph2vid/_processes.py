"""Ending: what signals do to a command, and worker processes that never outlive the one that started them.

A command ends on SIGTERM and SIGHUP as it does on Ctrl+C: an exception unwinds it, so that files under way are removed
and worker processes ended. One that takes longer than ``PATIENCE`` about it (it may be inside a kernel, where Python
is told of no signal) is ended at once, and a second signal does so too.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

PATIENCE = 3.0
"""Seconds that a command has to end by itself after a signal."""

_TWICE = 0.5  # seconds within which a second signal is the first, sent to the group and by whoever started us
_PR_SET_PDEATHSIG = 1
_ENDING = {int(getattr(signal, name)) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)}
_WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "terminated: the terminal was closed"}


def cpu_count() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Terminated(SystemExit):
    """The process was asked to end (SIGTERM, SIGHUP); its code is the exit status, 128 + the number of the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number

    def __str__(self) -> str:
        return _WORDS.get(signal.Signals(self.number).name, "terminated")


@contextlib.contextmanager
def ending_on_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise :class:`Terminated` in the main thread, and end what does not end then.

    A signal that is ignored (``nohup``, a job in the background) stays ignored. In another thread than the main one
    nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = _ENDING - {int(signal.SIGINT)}
    previous = {one: signal.signal(one, _raise) for one in numbers if signal.getsignal(one) == signal.SIG_DFL}
    with _forced_end():
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


def _raise(number: int, _: FrameType | None) -> None:
    raise Terminated(number)


@contextlib.contextmanager
def _forced_end() -> Iterator[None]:
    """Watch for signals from a thread of its own: the system tells it even while the main one is inside a kernel."""
    if os.name != "posix":  # there SIGTERM ends a process at once, and what is waited for would have to be a socket
        yield
        return
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    before = signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(told,), name="signals", daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(tell)  # from which the thread sees that all is over, unless a signal came


def _watch(told: int) -> None:
    """Wait for a signal to end, and end the process if it does not end by itself."""
    with os.fdopen(told, "rb", buffering=0) as pipe:
        while (got := pipe.read(1)) and got[0] not in _ENDING:
            pass
        if not got:
            return
        number, came, over = got[0], time.monotonic(), False
        while (left := came + PATIENCE - time.monotonic()) > 0 and select.select([pipe], [], [], left)[0]:
            got = pipe.read(1)
            if not got:  # the command is over; the interpreter has the rest of the time to clean up
                over = True
                time.sleep(left)
            elif got[0] in _ENDING and time.monotonic() > came + _TWICE:
                break
    if not over:
        with contextlib.suppress(OSError):
            os.write(2, f"graph2vid: {Terminated(number)}\n".encode())
    end_now(128 + number)


def end_now(status: int) -> NoReturn:
    """End this process and its workers, without what the interpreter and libraries do at their end."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    if "multiprocessing" in sys.modules:  # else there are no workers
        from multiprocessing import active_children

        for child in active_children():
            child.kill()
    os._exit(status)


def _forget_signals() -> None:
    """In a forked child: what a signal does is the system's business again, and is not told to the parent."""
    if threading.current_thread() is threading.main_thread():
        for number in _ENDING:
            if signal.getsignal(number) is _raise:
                signal.set_wakeup_fd(-1)
                signal.signal(number, signal.SIG_DFL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_signals)


def end_with_parent(parent: int | None = None) -> None:
    """In a child process: end as soon as the parent is gone, whatever this process is doing then.

    On Linux the system sees to it (where the *thread* that started this process ends, too: start it from one that
    stays); elsewhere a thread of its own does.

    Parameters
    ----------
    parent : int, optional
        The process id of the parent; by default the parent is the one :mod:`multiprocessing` knows.
    """
    from multiprocessing import parent_process

    known = parent_process()
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    elif known is not None or parent is not None:
        threading.Thread(target=_outlive, args=(known, parent), name="parent", daemon=True).start()
    gone = os.getppid() != parent if parent is not None else known is not None and not known.is_alive()
    if gone:  # it was quicker
        os._exit(1)


def _outlive(known: Any, parent: int | None) -> NoReturn:
    """Wait for the end of the parent, and end."""
    if parent is None:
        known.join()
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


@contextlib.contextmanager
def worker_pool(
    workers: int, *, start: str | None = None, initializer: Callable[..., None] | None = None, initargs: Any = ()
) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of worker processes that end with this one, and at once where an error or a signal ends the work.

    Parameters
    ----------
    workers : int
        How many.
    start : str, optional
        How processes are started: fork, spawn or forkserver; by default as is usual on this system.
    initializer, initargs
        Called in each worker as it begins.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(workers, get_context(start), _begin, (initializer, initargs))
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(initializer: Callable[..., None] | None, arguments: Any) -> None:
    """Begin as a worker: the parent decides what Ctrl+C means, and its end is the end."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if initializer is not None:
        initializer(*arguments)
