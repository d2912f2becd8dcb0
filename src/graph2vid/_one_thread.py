"""Products of matrices on one thread: how a linear algebra library rounds them depends on how many it uses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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
            except ImportError:  # the extras text and media bring it
                return
            self._controller = ThreadpoolController().select(user_api="blas")
        self._limiter = self._controller.limit(limits=1)


one_thread = _OneThread()
"""A context, or decorator, in which products of matrices run on one thread."""
