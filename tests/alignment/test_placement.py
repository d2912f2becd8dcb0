"""Workers begin on other processors than the thread that calls, and may move afterwards; nothing else is changed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import graph2vid as g2v
from graph2vid._processes import cpu_count
from graph2vid.alignment import backends

pytestmark = [
    pytest.mark.skipif(backends.native() is None, reason="the kernels are not built"),
    pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads are given processors on Linux"),
]

MATCH = np.random.default_rng(0).random((12, 1_000))
BAG = g2v.FlowGraph.bag([str(step) for step in range(len(MATCH))])
WORKERS = 2


@pytest.fixture
def one_processor() -> Iterator[None]:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    yield
    os.sched_setaffinity(0, allowed)


def threads() -> dict[str, str]:
    """Return the threads of this process, and on which processors each may run."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended
            lines = (task / "status").read_text().splitlines()
            found[task.name] = next((line for line in lines if line.startswith("Cpus_allowed:")), "")
    return found


@pytest.mark.skipif(cpu_count() < WORKERS, reason="one processor")
@pytest.mark.parametrize(("repeat", "times"), [(None, 30), (1.0, 5)], ids=["plain", "automaton"])
def test_workers_may_run_wherever_the_caller_may(repeat: float | None, times: int) -> None:
    before, ending = threads(), threading.Event()
    match = np.tile(MATCH, times)

    def work() -> None:
        while not ending.is_set():
            g2v.align(BAG, match, 0.5, repeat=repeat, workers=WORKERS, method="exact")

    calls = threading.Thread(target=work)
    calls.start()
    # A new thread is kept off one processor until it has begun: only those count that are there at two looks.
    wanted = [before[str(threading.get_native_id())]] * WORKERS
    last, found, ends = set(), {}, time.monotonic() + 20.0
    while list(found.values()) != wanted and time.monotonic() < ends:
        time.sleep(0.02)
        new = {name: mask for name, mask in threads().items() if name not in before}
        found, last = {name: new[name] for name in new.keys() & last}, set(new)
    ending.set()
    calls.join()
    assert list(found.values()) == wanted


def test_the_caller_stays_where_it_was() -> None:
    before = os.sched_getaffinity(0)
    g2v.align(BAG, MATCH, 0.5, workers=2)
    assert os.sched_getaffinity(0) == before


@pytest.mark.usefixtures("one_processor")
@pytest.mark.parametrize("repeat", [None, 1.0])
def test_one_processor_for_two_workers(repeat: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "cpu_count", lambda: 2)  # else there would be one
    two, one = (g2v.align(BAG, MATCH, 0.5, repeat=repeat, workers=workers) for workers in (2, 1))
    assert two.cost == one.cost
    assert np.array_equal(two.labels, one.labels)
