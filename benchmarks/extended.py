"""``python -m benchmarks extended``: repeats and durations on the salads procedure, beside the plain kernel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np

from benchmarks.cases import CASES, Case, choose
from benchmarks.machine import kernels_or_error, machine
from benchmarks.report import Report, duration, table, times
from benchmarks.timing import Effort, race, typical
from graph2vid.alignment import Durations, Problem
from graph2vid.alignment.automata import automaton_problem

LENGTHS = 128
"""Clips up to which a prior of durations tells lengths apart, at the most."""
CALLS = 3
"""Calls that two processes make at the same time, each."""

_SALADS = next(case for case in CASES if case.name == "salads")


def options_of(steps: int) -> dict[str, dict[str, Any]]:
    """Return what the extended model is asked for, for a procedure of so many steps."""
    medians, spread = np.linspace(5.0, 15.0, steps), np.full(steps, 0.5)
    prior = Durations.log_normal(medians, spread, longest=LENGTHS)
    return {
        "repeats": {"repeat": 3.0},
        "at least 3 clips": {"durations": 3},
        "durations": {"durations": prior},
        "repeats and durations": {"repeat": 3.0, "durations": prior},
        "repeats and longer durations": {
            "repeat": 3.0,
            "durations": Durations.log_normal(3 * medians, spread, longest=LENGTHS),
        },
    }


def bench_extended(
    only: Sequence[str] | None = None,
    effort: Effort | None = None,
    progress: Callable[[str], None] | None = None,
    case: Case = _SALADS,
) -> Report:
    """Measure the cost of an alignment with the extended model; parameters, result and errors as for `bench_align`."""
    kernels_or_error()
    before = machine()
    begin = time.perf_counter()
    found = []
    for name, options in choose({name: (name, one) for name, one in options_of(len(case.flow)).items()}, only):
        for dtype in (np.float32, np.float64):
            if progress is not None:
                progress(f"{name}, {dtype.__name__}")
            found.append({"name": name, "dtype": dtype.__name__} | _measure(case, options, dtype, effort or Effort()))
    rows = [
        (
            one["name"],
            one["dtype"],
            f"{one['arcs']:,}",
            f"{one['lengths']:,}",
            duration(one["plain_seconds"]),
            duration(one["seconds"]),
            times(one["per_arc"]),
            times(one["scaling"]),
            times(one["scaling_of_machine"]),
        )
        for one in found
    ]
    shown = table(
        "Extended model",
        f"The {case.name} procedure ({case.tsort.n_states:,} states, so many arcs of the plain model), {case.clips} "
        "clips: the cost of the best alignment, in time of the processor, with the plain kernel, and with the extended "
        "model on its automaton; how much longer that takes for each arc and clip of the automaton; how much less time "
        "by the clock two workers need (medians of calls in turns); and how much more two processes get done that have "
        "nothing to do with each other, which is about what the machine allows. Lengths: those that durations tell "
        "apart.",
        ("model", "dtype", "arcs", "lengths", "plain", "extended", "per arc", "2 workers", "2 processes"),
        rows,
        words=2,
    )
    return Report("extended", tuple(only or ()), before, tuple(found), (shown,), time.perf_counter() - begin)


def _measure(case: Case, options: dict[str, Any], dtype: type[np.floating[Any]], effort: Effort) -> dict[str, Any]:
    ((match, drop),) = case.costs(dtype)
    plain, extended = Problem(case.tsort, match, drop), Problem(case.flow, match, drop, **options)
    asked = automaton_problem(extended, extended.costs, None)
    one = partial(extended.align, cost_only=True, workers=1)
    with _in_two_processes(one) as both:
        best = race({"plain": partial(plain.align, cost_only=True, workers=1), "one": one}, effort, time.process_time)
        longer = Effort(4 * effort.seconds, effort.rounds)  # a busy spell takes seconds
        two = partial(extended.align, cost_only=True, workers=2)
        workers = typical({"one": one, "two": two, "both": both}, longer)
    arcs = len(asked.automaton.arc_from)
    return {
        "plain_states": case.tsort.n_states,
        "nodes": asked.automaton.n_nodes,
        "states": asked.automaton.n_states,
        "arcs": arcs,
        "clips": case.clips,
        "lengths": asked.length.shape[1],
        "plain_seconds": best["plain"],
        "seconds": best["one"],
        "two_workers_seconds": workers["two"],
        "per_arc": best["one"] / arcs / (best["plain"] / case.tsort.n_states),
        "scaling": workers["one"] / workers["two"],
        "scaling_of_machine": 2 * CALLS * workers["one"] / workers["both"],
    }


@contextmanager
def _in_two_processes(call: Callable[[], object]) -> Iterator[Callable[[], None]]:
    """Yield what makes a call several times, in this process and in another one, until both are done."""
    fork = get_context("fork")
    here, there = fork.Pipe()

    def serve() -> None:
        here.close()
        while there.recv():
            for _ in range(CALLS):
                call()
            there.send(True)

    def both() -> None:
        here.send(True)
        for _ in range(CALLS):
            call()
        here.recv()

    other = fork.Process(target=serve, daemon=True)
    other.start()
    there.close()
    try:
        yield both
    finally:
        here.send(False)
        other.join()
