"""Work that ends before it is done: because its time is up, or because somebody else says so.

Signals (Ctrl-C) need nothing of this: Python raises between its own steps, and the compiled kernels ask for them every
few milliseconds. But they reach the main thread alone. Whoever lets other threads work gives them a :class:`Watch`, and
stops it when it is interrupted itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from graph2vid.errors import TooLargeError


class Watch:
    """How long work may take, and whether it shall stop; within the watch that is in force where it is made.

    Parameters
    ----------
    seconds : float
        From now on.
    """

    def __init__(self, seconds: float = math.inf) -> None:
        self._outer = _current.get()
        self._stopped = False
        self._ends = time.monotonic() + seconds
        self.native: Any = None
        with suppress(ImportError):
            from graph2vid import _native

            self.native = _native.Watch(seconds, native_watch())

    def stop(self) -> None:
        """End the work that is done under this watch, in whatever thread that is; it fails there."""
        self._stopped = True
        if self.native is not None:
            self.native.stop()

    def check(self) -> None:
        """Raise where the work shall end."""
        if self._stopped:
            raise InterruptedError("stopped")
        if time.monotonic() > self._ends:
            raise TimeoutError("the time is up")
        if self._outer is not None:
            self._outer.check()


_current: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Do what follows, in this thread, under a watch."""
    token = _current.set(watch)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def within(seconds: float | None, advice: str = "raise time_limit") -> Iterator[None]:
    """Do what follows within some time, or refuse it; None: however long it takes.

    Raises
    ------
    TooLargeError
        When the time is up.
    """
    if seconds is None:
        yield
        return
    with watched(Watch(seconds)):
        try:
            yield
        except TimeoutError:
            raise TooLargeError(f"there is no answer within {seconds:g} s: {advice}") from None


def native_watch() -> Any:
    """Return the watch in force as the compiled kernels take it; None where there is none."""
    watch = _current.get()
    return None if watch is None else watch.native


def go_on() -> None:
    """Raise where the watch in force says that the work shall end; for loops in Python."""
    if (watch := _current.get()) is not None:
        watch.check()
