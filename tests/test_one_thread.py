"""Products of matrices on one thread, as long as anyone asks for it."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from graph2vid._one_thread import _OneThread, one_thread

threadpoolctl = pytest.importorskip("threadpoolctl")


@pytest.fixture(autouse=True)
def all_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests may have loaded a further library (OpenCV brings its own) since the first call."""
    monkeypatch.setattr(one_thread, "_controller", None)


def blas_threads() -> list[int]:
    np.ones((2, 2)) @ np.ones((2, 2))
    return [found["num_threads"] for found in threadpoolctl.threadpool_info() if found["user_api"] == "blas"]


def test_the_limit_holds_inside_and_is_lifted_after() -> None:
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = blas_threads()

        @one_thread()
        def inside() -> list[int]:
            return blas_threads()

        for _ in range(2):
            assert set(inside()) <= {1}
            assert blas_threads() == before


def test_without_the_package_nothing_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    before = blas_threads()
    with _OneThread()():
        assert blas_threads() == before


def test_callers_may_overlap() -> None:
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(blas_threads()) <= {1}  # the second is still at work
        second.__exit__(None, None, None)
        assert blas_threads() == before


def test_many_threads_at_once_leave_no_limit_behind() -> None:
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = blas_threads()

        def work(_: int) -> None:
            with one_thread():
                np.ones((8, 8)) @ np.ones((8, 8))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(200)))
        assert blas_threads() == before
