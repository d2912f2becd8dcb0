"""Two processors for a small network: the branches side by side, each matrix product on one thread.

Products as small as these gain little from several threads of a linear algebra library, and on a busy machine such
threads wait for each other without rest: several times slower than one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

from graph2vid._processes import cpu_count

Item = TypeVar("Item")
Result = TypeVar("Result")


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
