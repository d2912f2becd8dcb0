"""Timing on a machine that does other things too: in turns, and the best of each."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


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
    best = dict.fromkeys(contestants, float("inf"))
    for call in contestants.values():
        call()
    collecting = gc.isenabled()
    gc.disable()
    try:
        end = time.perf_counter() + effort.seconds * len(contestants)
        turn = 0
        while turn < effort.rounds or time.perf_counter() < end:
            turn += 1
            for name, call in contestants.items():
                best[name] = min(best[name], _best_call(call, effort.slice_seconds, clock))
    finally:
        if collecting:
            gc.enable()
    return best


def _best_call(call: Callable[[], object], seconds: float, clock: Callable[[], float]) -> float:
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
