"""Two processors for a small network: the branches side by side, each matrix product on one thread.

Products as small as these gain little from several threads of a linear algebra library, and on a busy machine such
threads wait for each other without rest: several times slower than one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from graph2vid._processes import cpu_count

Item = TypeVar("Item")
Result = TypeVar("Result")


class _OneThread:
    """Limits the library for as long as anyone asks for it: the limit is the process's, and callers may overlap."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callers = 0
        self._controller: Any = None
        self._limiter: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if not self._callers:
                self._limit()
            self._callers += 1
        try:
            yield
        finally:
            with self._lock:
                self._callers -= 1
                if not self._callers and self._limiter is not None:
                    self._limiter.restore_original_limits()

    def _limit(self) -> None:
        if self._controller is None:
            try:
                from threadpoolctl import ThreadpoolController
            except ImportError:  # the answers are the same, only slower where others compute too
                return
            self._controller = ThreadpoolController().select(user_api="blas")
        self._limiter = self._controller.limit(limits=1)


one_thread = _OneThread()
"""A context, or decorator, in which products of matrices run on one thread."""


@cache
def _helpers() -> ThreadPoolExecutor:
    """Return threads that wait for work; a forked process has none of its parent's, and begins anew."""
    return ThreadPoolExecutor(max(os.cpu_count() or 1, 2), "graph2vid-branch")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)


def side_by_side(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return what a function gives for each item, computed at the same time; the last in this thread.

    A single processor takes one after the other.
    """
    if len(items) < 2 or cpu_count() < 2:
        return [function(item) for item in items]
    others = [_helpers().submit(function, item) for item in items[:-1]]
    try:
        last = function(items[-1])
    finally:
        wait(others)
    return [*(other.result() for other in others), last]
