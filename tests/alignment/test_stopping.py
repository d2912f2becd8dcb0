"""Calls can be stopped: by signals, by other threads, and by the clock; and repeated afterwards."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graph2vid as g2v
from graph2vid import alignment
from graph2vid._stopping import Watch, watched, within
from graph2vid.alignment import ClipCosts, Durations, backends, soft_costs
from graph2vid.errors import TooLargeError

native = backends.native()
pytestmark = pytest.mark.skipif(native is None, reason="the kernels are not built")

MOST_WORK = 50_000_000  # updates of about a nanosecond: 50 ms
RANDOM = np.random.default_rng(0)


def bag(n_steps: int) -> g2v.FlowGraph:
    return g2v.FlowGraph.bag([str(step) for step in range(n_steps)])


def costs(n_steps: int, clips: int, dtype: Any = np.float64) -> Any:
    return RANDOM.random((n_steps, clips)).astype(dtype)


def soft(n_steps: int, clips: int, **options: Any) -> None:
    tsort = g2v.TSortGraph.compile(bag(n_steps))
    drop = np.full(clips, 0.5)
    video = ClipCosts(costs(n_steps, clips), drop, None)
    soft_costs([(tsort, video)], gamma=1.0, smoothing="smoothmin", **options)


def margins(n_steps: int, clips: int) -> None:
    match = costs(n_steps, clips)
    labels = np.full(clips, -1)
    labels[: 10 * n_steps] = np.repeat(np.arange(n_steps), 10)
    alignment.margins(bag(n_steps), match, 0.5, found=g2v.Alignment(bag(n_steps), 0.0, labels))


LENGTHS = Durations.log_normal([50.0] * 10, [1.0] * 10)

# Each would take a minute or more.
LONG: dict[str, Callable[[], Any]] = {
    "align": lambda: g2v.align(bag(14), costs(14, 200_000, np.float32), 0.5, method="exact"),
    "align, one thread": lambda: g2v.align(bag(14), costs(14, 100_000), 0.5, method="exact", workers=1),
    "align, skips": lambda: g2v.align(bag(14), costs(14, 200_000), 0.5, 1.0, method="exact"),
    "align, in windows": lambda: g2v.align(bag(15), costs(15, 60_000), 0.5, method="exact", memory_limit=600 << 20),
    "compile": lambda: [g2v.TSortGraph.compile(bag(21)) for _ in range(50)],
    "pack": lambda: [g2v.align(bag(19), costs(19, 20), 0.5, method="exact") for _ in range(50)],
    "posterior": lambda: g2v.posterior(bag(14), costs(14, 60_000), 0.5),
    "posterior, skips": lambda: g2v.posterior(bag(13), costs(13, 60_000), 0.5, 1.0),
    "soft cost": lambda: soft(15, 60_000, contiguous=False, gradient=False),
    "k_best": lambda: g2v.k_best(bag(10), costs(10, 600), 0.5, k=100_000),
    "margins": lambda: margins(14, 60_000),
    "anytime": lambda: g2v.align(bag(60), costs(60, 20_000), 0.5, time_limit=600),
    "align_many": lambda: g2v.align_many(bag(12), [costs(12, 20_000)] * 2_000, 0.5),
    "automaton": lambda: g2v.align(bag(13), costs(13, 20_000), 0.5, repeat=1.0),
    "automaton, durations": lambda: g2v.align(bag(10), costs(10, 60_000), 0.5, durations=LENGTHS),
    "automaton, posterior": lambda: g2v.posterior(bag(12), costs(12, 20_000), 0.5, repeat=1.0),
    "automata": lambda: g2v.align_many(bag(12), [costs(12, 20_000)] * 20, 0.5, repeats=1.0),
    "stream": lambda: [s.push(np.ones(14), 1.0) for s in [g2v.Stream(bag(14), lag=10)] for _ in range(100_000)],
}


@contextmanager
def interrupted(number: int) -> Iterator[None]:
    """Send this process a signal a little later, unless what is done meanwhile ends before.

    What Python raises while a finalizer runs is lost, and others leave garbage: where nothing has ended seconds later,
    it is sent again.
    """
    callbacks, gc.callbacks[:] = list(gc.callbacks), []  # hypothesis has one: what is raised in it is lost, too
    over = threading.Event()

    def send() -> None:
        seconds = 0.3
        while not over.wait(seconds):
            os.kill(os.getpid(), number)
            seconds = 10.0

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        over.set()
        sender.join()
        gc.callbacks[:] = callbacks


@pytest.mark.parametrize("call", LONG.values(), ids=LONG)
def test_control_c_ends_every_call(call: Callable[[], Any]) -> None:
    with pytest.raises(KeyboardInterrupt), interrupted(signal.SIGINT):
        call()
    # What was under way is gone, and the next call is as good as ever.
    assert g2v.align(bag(2), [[0.0, 1.0], [1.0, 0.0]], 5.0).labels.tolist() == [0, 1]


def test_a_handler_of_sigterm_ends_a_call() -> None:
    def leave(*_: Any) -> None:
        raise SystemExit(143)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        with pytest.raises(SystemExit), interrupted(signal.SIGTERM):
            LONG["align"]()
    finally:
        signal.signal(signal.SIGTERM, before)


STATES = {n_steps: n_steps * 2 ** (n_steps - 1) for n_steps in range(20)}

# Calls with the least number of updates that each takes.
COUNTED: dict[str, tuple[Callable[[], Any], int]] = {
    "align": (lambda: g2v.align(bag(12), costs(12, 3_000), 0.5, workers=1), STATES[12] * 3_000),
    "align, wide": (lambda: g2v.align(bag(18), costs(18, 20, np.float32), 0.5, workers=1), STATES[18] * 20),
    "align, skips": (lambda: g2v.align(bag(12), costs(12, 2_000), 0.5, 1.0, workers=1), STATES[12] * 2_000),
    "compile": (lambda: g2v.TSortGraph.compile(bag(18)), STATES[18]),
    "posterior": (lambda: g2v.posterior(bag(11), costs(11, 1_000), 0.5), 2 * STATES[11] * 1_000),
    "posterior, wide": (lambda: g2v.posterior(bag(17), costs(17, 18), 0.5), 2 * STATES[17] * 18),
    "soft cost": (lambda: soft(11, 1_000, contiguous=False, gradient=False), STATES[11] * 1_000),
    "align_many": (
        lambda: g2v.align_many(bag(9), [costs(9, 1_000)] * 24, 0.5, workers=1),
        24 // 4 * STATES[9] * 1_000,
    ),
    "automaton": (lambda: g2v.align(bag(9), costs(9, 1_000), 0.5, repeat=1.0, workers=1), STATES[9] * 1_000),
    "automaton, durations": (
        lambda: g2v.align(bag(10), costs(10, 1_000), 0.5, durations=LENGTHS, workers=1),
        STATES[10] * 1_000 * 100 // 8,  # lengths are looked at eight at a time
    ),
    "automaton, side by side": (
        lambda: g2v.align_many(bag(8), [costs(8, 1_000)] * 16, 0.5, repeats=1.0, workers=1),
        16 * STATES[8] * 1_000,
    ),
    "automaton, posterior": (
        lambda: g2v.posterior(bag(8), costs(8, 1_000), 0.5, repeat=1.0, workers=1),
        STATES[8] * 3_000,
    ),
}


@pytest.mark.parametrize("name", COUNTED)
def test_little_work_is_done_between_questions(name: str) -> None:
    """Counted in updates, so that it holds however fast the machine is and whatever else it does."""
    assert native is not None
    call, least = COUNTED[name]
    native.poll_counts()
    call()
    asked, longest, work = native.poll_counts()
    assert work >= least
    assert longest <= MOST_WORK
    assert asked >= work / MOST_WORK - 1


def test_work_in_another_thread_is_stopped_through_its_watch() -> None:
    watch, ended = Watch(), []

    def work() -> None:
        with watched(watch):
            try:
                LONG["align"]()
            except InterruptedError as error:
                ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    watch.stop()
    thread.join(60)
    assert not thread.is_alive() and len(ended) == 1


def test_a_watch_is_within_the_one_around_it() -> None:
    with within(0.2), pytest.raises(TimeoutError), within(None), watched(Watch(1e6)):
        LONG["align"]()


def test_workers_do_not_wait_for_one_that_stopped() -> None:
    """On an automaton they wait for one another after every few nodes: some stop just before the others get there."""
    problem = g2v.Problem(bag(6), costs(6, 3_000), 0.5, repeat=1.0)
    begin = time.perf_counter()
    problem.posterior(workers=2)
    seconds, stopped = time.perf_counter() - begin, 0
    for share in RANDOM.random(100):
        try:
            problem.posterior(workers=2, time_limit=share * seconds)
        except TooLargeError:
            stopped += 1
    assert stopped


EXACT = ["align", "align, skips", "compile", "pack", "posterior", "soft cost", "automaton", "automaton, posterior"]


@pytest.mark.parametrize("name", EXACT)
def test_time_is_limited(name: str) -> None:
    with pytest.raises(TooLargeError, match=r"no answer within 0\.2 s: raise time_limit"), within(0.2):
        LONG[name]()


def test_time_limit_of_align() -> None:
    match = costs(14, 100_000)
    with pytest.raises(TooLargeError, match=r"within 0\.2 s: raise time_limit, or use method='anytime'"):
        g2v.align(bag(14), match, 0.5, method="exact", time_limit=0.2)
    searched = g2v.align(bag(14), match, 0.5, time_limit=0.2)
    (of_many,) = g2v.align_many(bag(14), [match], 0.5, time_limit=0.2)
    lowest = np.minimum(match.min(axis=0), 0.5).sum()
    for found in (searched, of_many):
        assert found.options["method"] == "anytime"
        assert sorted(found.order) == list(range(14))
        assert lowest - 1e-6 <= found.lower_bound <= found.cost
    with pytest.raises(TooLargeError, match=r"within 0\.2 s"):
        g2v.align(bag(13), match[:13, :9_000], 0.5, method="exact", repeat=1.0, time_limit=0.2)
    with pytest.raises(TooLargeError, match=r"within 0\.2 s"):
        g2v.align(bag(11), match[:11, :2000], 0.5, method="brute", brute_limit=10**9, time_limit=0.2)
    with pytest.raises(TooLargeError, match=r"within 0\.2 s"):
        g2v.posterior(bag(14), match, 0.5, time_limit=0.2)
    with pytest.raises(TooLargeError, match=r"within 0\.2 s"):
        alignment.margins(bag(14), match, 0.5, found=searched, time_limit=0.2)


def test_time_limit_of_orders() -> None:
    match = costs(8, 150)
    with pytest.warns(UserWarning, match=r"the \d+ best orders were found in 2 s, not 1000000"):
        found = g2v.k_best(bag(8), match, 0.5, k=10**6, time_limit=2.0)
    assert found[0].cost == pytest.approx(g2v.align(bag(8), match, 0.5).cost)


def test_stopping_loses_no_memory() -> None:
    def resident() -> int:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def stop_all() -> None:
        for name in ("align", "posterior", "automaton", "compile", "pack"):
            with pytest.raises(TooLargeError), within(0.05):
                LONG[name]()

    if not Path("/proc/self/statm").exists():
        pytest.skip("it is not told how much memory is in use")
    for _ in range(3):
        stop_all()
    before = resident()
    for _ in range(10):
        stop_all()
    assert resident() - before < 100 << 20  # each call takes more
