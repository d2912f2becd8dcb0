"""Timing on a machine that does other things too: in turns, and the best, or the median, of each."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes
    ----------
    seconds : float
        Time for each thing that is measured; slow things run at least ``rounds`` times all the same.
    rounds : int
        The least number of turns.
    slice_seconds : float
        The least time that quick things are repeated for in one turn.
    """

    seconds: float = 1.5
    rounds: int = 6
    slice_seconds: float = 0.005


def race(
    contestants: Mapping[str, Callable[[], object]], effort: Effort, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Time several things in turns (A, B, A, B, …) and return the best time of one call of each, in seconds.

    Noise from elsewhere only ever adds time, so the smallest is the truest; taking turns lets a quiet or
    a busy spell meet all of them alike. Each is called once before, so that nothing is timed cold. What takes many
    milliseconds never has a busy machine for itself: the clock of such things, by one worker, is `time.process_time`.
    """
    for call in contestants.values():
        call()
    collecting = gc.isenabled()
    gc.disable()
    try:
        slices = {name: partial(best_call, call, effort.slice_seconds, clock) for name, call in contestants.items()}
        return take_turns(slices, effort)
    finally:
        if collecting:
            gc.enable()


def take_turns(slices: Mapping[str, Callable[[], float]], effort: Effort) -> dict[str, float]:
    """Let each measure itself for a while, in turns, as in `race`; return the least that each came to, in seconds."""
    best = dict.fromkeys(slices, float("inf"))
    end = time.perf_counter() + effort.seconds * len(slices)
    turn = 0
    while turn < effort.rounds or time.perf_counter() < end:
        turn += 1
        for name, measure in slices.items():
            best[name] = min(best[name], measure())
    return best


def typical(contestants: Mapping[str, Callable[[], object]], effort: Effort) -> dict[str, float]:
    """Call several things in turns, one call each, and return the median time of each by the clock, in seconds.

    For calls with several workers: that all processors are free at once is rarer than that one is, so the best time of
    such a call is no match for the best time of another.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for call in contestants.values():
        call()
    end = time.perf_counter() + effort.seconds * len(contestants)
    while time.perf_counter() < end or len(next(iter(times.values()))) < effort.rounds:
        for name, call in contestants.items():
            begin = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begin)
    return {name: median(each) for name, each in times.items()}


def best_call(call: Callable[[], object], seconds: float, clock: Callable[[], float]) -> float:
    """Call again and again for a while (at least once) and return the shortest call."""
    best = float("inf")
    before = clock()
    end = before + seconds
    while before < end:
        call()
        after = clock()
        best = min(best, after - before)
        before = after
    return best
