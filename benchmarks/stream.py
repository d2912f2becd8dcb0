"""``python -m benchmarks stream``: a clip of a running video, with what is believed of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import graph2vid as g2v
from benchmarks.cases import choose, salads
from benchmarks.machine import kernels_or_error, machine
from benchmarks.report import Report, duration, table
from benchmarks.timing import Effort

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "skips": {"skip": 2.0},
    "repeats": {"repeat": 3.0},
    "background inside": {"contiguous": False},
}
CLIPS, WARM, LAG, RATE = 300, 50, 30, 30


def bench_stream(
    only: Sequence[str] | None = None,
    effort: Effort | None = None,
    progress: Callable[[str], None] | None = None,
    clips: int = CLIPS,
) -> Report:
    """Measure :class:`graph2vid.Stream`; parameters, result and errors as for `bench_align`."""
    kernels_or_error()
    before = machine()
    begin = time.perf_counter()
    found = []
    for name in choose({name: name for name in OPTIONS}, only):
        if progress is not None:
            progress(name)
        found.append({"name": name, **measure(OPTIONS[name], clips)})
    rows = [
        (
            one["name"],
            f"{one['states']:,}",
            f"{one['arcs']:,}",
            duration(one["push_seconds"]),
            duration(one["belief_seconds"]),
            duration(one["seconds"]),
            duration(one["late_seconds"]),
            f"{100 * (1 - RATE * one['seconds']):.1f}%",
        )
        for one in found
    ]
    shown = table(
        "Streams",
        f"The salads procedure, final labels after {LAG} clips: time of the processor to push a clip, and then to ask "
        f"for `posterior`, `done` and `next`; medians, and for both together the 95th percentile. Idle: what {RATE} "
        "clips per second leave of one processor.",
        ("stream", "states", "arcs", "push", "beliefs", "together", "95%", "idle"),
        rows,
    )
    return Report("stream", tuple(only or ()), before, tuple(found), (shown,), time.perf_counter() - begin)


def measure(options: dict[str, Any], clips: int) -> dict[str, Any]:
    """Push clips of random costs and ask for beliefs after each."""
    flow = salads()
    stream = g2v.Stream(flow, lag=LAG, **options)
    costs = np.random.default_rng(0).random((clips, len(flow)))
    push, beliefs, clock = [], [], time.thread_time
    for match in costs:
        began = clock()
        stream.push(match, 0.3)
        pushed = clock()
        assert min(belief.min() for belief in (stream.posterior, stream.done, stream.next)) >= 0
        push.append(pushed - began)
        beliefs.append(clock() - pushed)
    push, beliefs = push[min(WARM, clips // 2) :], beliefs[min(WARM, clips // 2) :]
    both = np.add(push, beliefs)
    automaton = stream._problem.automaton  # its sizes are no part of the interface
    return {
        "states": automaton.n_states,
        "arcs": len(automaton.arc_from),
        "clips": clips,
        "push_seconds": float(np.median(push)),
        "belief_seconds": float(np.median(beliefs)),
        "seconds": float(np.median(both)),
        "late_seconds": float(np.quantile(both, 0.95)),
    }
