"""``python -m benchmarks align``: the kernels beside a plain-Python loop and a scalar compiled scan."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.cases import CASES, Case, choose
from benchmarks.floors import ScalarScan, python_loop
from benchmarks.machine import kernels_or_error, machine
from benchmarks.memory import measure_apart
from benchmarks.report import Report, Table, duration, table, times
from benchmarks.timing import Effort, race
from graph2vid.alignment import Alignment, align, align_many, procedure
from graph2vid.alignment.backends import Resources, solve_plain
from graph2vid.alignment.clip_costs import ClipCosts, check_costs
from graph2vid.errors import Graph2VidError

LOOP_UPDATES = 1_000_000  # the plain loop is not made to wait for larger cases than this
LONG_PARTS = (4, 2, 1)  # `long` is measured on a quarter, a half and the whole of its clips
MEMORY_STEPS = 20
MEMORY_CLIPS = 100

Call = Callable[[], Any]
Item = Callable[[Effort], dict[str, Any]]


def bench_align(
    only: Sequence[str] | None = None,
    effort: Effort | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Measure alignment.

    Parameters
    ----------
    only : sequence of str, optional
        The cases to measure; all by default.
    effort : Effort, optional
        How long to measure.
    progress : callable, optional
        Called with the name of each case before it is measured.

    Returns
    -------
    Report

    Raises
    ------
    Graph2VidError
        Without the compiled kernels, or if two of the things measured disagree on a cost.
    """
    kernels_or_error()
    before = machine()
    begin = time.perf_counter()
    items: dict[str, tuple[str, Item]] = {}
    for case in CASES:
        items[case.name] = (case.name, _item(case))
    memory_case = f"bag{MEMORY_STEPS}"
    items[memory_case] = (memory_case, lambda _: measure_apart(MEMORY_STEPS, MEMORY_CLIPS))
    found = []
    for name, measure in choose(items, only):
        if progress is not None:
            progress(name)
        found.append(measure(effort or Effort()))
    return Report("align", tuple(only or ()), before, tuple(found), _tables(found), time.perf_counter() - begin)


def _item(case: Case) -> Item:
    return lambda effort: measure_case(case, effort, LONG_PARTS if case.name == "long" else ())


def measure_case(case: Case, effort: Effort, parts: Sequence[int] = ()) -> dict[str, Any]:
    """Measure one case.

    Parameters
    ----------
    case : Case
        The procedure and its videos.
    effort : Effort
        How long to measure.
    parts : sequence of int
        Measure the kernel on the clips divided by each of these, too.

    Returns
    -------
    dict
        Sizes, and times in seconds for all videos together. ``seconds`` is that of kernel and traceback, in
        float32, on one thread.
    """
    contestants = _contestants(case, np.float32) | {
        f"float64 {name}": call
        for name, call in _contestants(case, np.float64).items()
        if name in ("kernel", "cost only")
    }
    scan, scan64 = ScalarScan(case.clips, np.float32), ScalarScan(case.clips, np.float64)
    contestants |= {"scan": scan, "float64 scan": scan64}
    contestants |= {"without features": _without_features(case), "features off": _features_off(case)}
    if case.updates <= LOOP_UPDATES and case.videos == 1:
        ((match, drop),) = case.costs(np.float32)
        loop = python_loop(case.tsort, match, drop)
        _check_equal(loop(), contestants["kernel"]()[0])
        contestants["python loop"] = loop
    series = {clips: _kernel(case, np.float32, clips) for clips in (case.clips // part for part in parts)}
    contestants |= {f"{clips} clips": call for clips, call in series.items()}

    best = race(contestants, effort)
    seconds = best["kernel"]
    scan_update = scan.seconds_per_update(best["scan"])
    scan64_update = scan64.seconds_per_update(best["float64 scan"])
    found = case.sizes() | {
        "seconds": seconds,
        "ns_per_update": seconds / case.updates * 1e9,
        "cost_only_seconds": best["cost only"],
        "align_seconds": best["whole call"],
        "without_features_seconds": best["without features"],
        "features_off_seconds": best["features off"],
        "features_off_ratio": best["features off"] / best["without features"],
        "two_threads_seconds": best["two threads"],
        "two_threads_ratio": seconds / best["two threads"],
        "scan_ns_per_update": scan_update * 1e9,
        "scan_ratio": scan_update * case.updates / seconds,
        "cost_only_scan_ratio": scan_update * case.updates / best["cost only"],
        "float64_seconds": best["float64 kernel"],
        "float64_ns_per_update": best["float64 kernel"] / case.updates * 1e9,
        "float64_cost_only_seconds": best["float64 cost only"],
        "float64_scan_ratio": scan64_update * case.updates / best["float64 kernel"],
    }
    if "python loop" in best:
        found["python_loop_seconds"] = best["python loop"]
        found["python_loop_ratio"] = best["python loop"] / seconds
    if series:
        found["by_clips"] = [
            {
                "clips": clips,
                "seconds": best[f"{clips} clips"],
                "ns_per_clip": best[f"{clips} clips"] / clips * 1e9,
            }
            for clips in series
        ]
    return found


def _kernel(case: Case, dtype: type[np.floating[Any]], clips: int | None = None, workers: int = 1) -> Call:
    """Return a call of the kernel on all videos, with traceback."""
    solve = procedure(case.tsort)
    costs = case.costs(dtype, clips)
    if case.videos == 1:
        ((match, drop),) = costs
        return lambda: solve.solve(
            match, drop, None, contiguous=True, cost_only=False, block=0, window=0, workers=workers
        )
    matches, drops, skips = [match for match, _ in costs], [drop for _, drop in costs], [None] * case.videos
    return lambda: solve.solve_many(matches, drops, skips, contiguous=True, cost_only=False, block=0, workers=workers)


def _without_features(case: Case) -> Call:
    """Return the whole call as it would be without any of the features: check, kernel, result; with one worker."""
    flow, costs = case.flow, case.costs(np.float32)

    def result(checked: ClipCosts, cost: float, labels: Any) -> Alignment:
        options = {"method": "exact", "contiguous": True, "dtype": checked.match.dtype.name, "backend": "native"}
        return Alignment(flow, cost, labels, 0.0, options)

    def one() -> list[Alignment]:
        checked = check_costs(flow, *costs[0], None)
        return [result(checked, *solve_plain(case.tsort, checked, True, False, Resources.check(workers=1)))]

    def many() -> list[Alignment]:
        checked = [check_costs(flow, match, drop, None) for match, drop in costs]
        solved = procedure(case.tsort).solve_many(
            *map(list, zip(*checked, strict=True)), contiguous=True, cost_only=False, block=0, workers=1
        )
        return [result(one, *answer) for one, answer in zip(checked, solved, strict=True)]

    return one if case.videos == 1 else many


def _features_off(case: Case) -> Call:
    """Return the whole call with every feature named, and none used; on one thread."""
    costs = case.costs(np.float32)
    off: dict[str, Any] = {"durations": 1, "violation": np.inf, "workers": 1}
    if case.videos == 1:
        ((match, drop),) = costs
        return lambda: align(case.tsort, match, drop, repeat=np.inf, **off)
    matches, drops = [match for match, _ in costs], [drop for _, drop in costs]
    return lambda: align_many(case.tsort, matches, drops, repeats=np.inf, **off)


def _contestants(case: Case, dtype: type[np.floating[Any]]) -> dict[str, Call]:
    """Return calls that align all videos of a case."""
    solve = procedure(case.tsort)
    costs = case.costs(dtype)
    calls = {"kernel": _kernel(case, dtype), "two threads": _kernel(case, dtype, workers=2)}
    if case.videos == 1:
        ((match, drop),) = costs
        calls["cost only"] = lambda: solve.solve(
            match, drop, None, contiguous=True, cost_only=True, block=0, window=1, workers=1
        )
        calls["whole call"] = lambda: align(case.tsort, match, drop)
    else:
        matches, drops, skips = (
            [match for match, _ in costs],
            [drop for _, drop in costs],
            [None] * case.videos,
        )
        calls["cost only"] = lambda: solve.solve_many(
            matches, drops, skips, contiguous=True, cost_only=True, block=0, workers=1
        )
        calls["whole call"] = lambda: align_many(case.tsort, matches, drops)
    return calls


def _check_equal(one: float, other: float) -> None:
    if abs(one - other) > 1e-5 * max(1.0, abs(other)):
        raise Graph2VidError(
            f"the floor and the kernel disagree ({one!r} and {other!r}): the numbers would mean nothing"
        )


def _tables(found: Sequence[dict[str, Any]]) -> tuple[Table, ...]:
    tables = []
    timed = [row for row in found if "scan_ratio" in row]
    if timed:
        tables.append(
            table(
                "Alignment",
                "Kernel: forward pass and traceback to labels, float32, one thread; an update is one state in one "
                "clip. Whole call: `align` or `align_many` on a compiled procedure with all checks, on two threads "
                "where that pays. The ratios say how many times quicker the kernel is than a scalar compiled scan "
                "(one minimum and one addition per update), than a plain-Python loop (which finds no labels), and "
                "on two threads than on one. Features off: the whole call on one thread with repeats, durations and "
                "soft precedence named but not used, over the same call without any of that; 1.00× is no slower.",
                (
                    "case",
                    "states",
                    "clips",
                    "kernel",
                    "per update",
                    "cost only",
                    "whole call",
                    "features off",
                    "× scan",
                    "× Python",
                    "2 threads",
                    "float64",
                    "float64 × scan",
                ),
                [
                    (
                        row["name"],
                        f"{row['states']:,}",
                        f"{row['clips']:,}" + (f" × {row['videos']}" if row["videos"] > 1 else ""),
                        duration(row["seconds"]),
                        f"{row['ns_per_update']:.3f} ns",
                        duration(row["cost_only_seconds"]),
                        duration(row["align_seconds"]),
                        times(row["features_off_ratio"]),
                        times(row["scan_ratio"]),
                        times(row.get("python_loop_ratio")),
                        times(row["two_threads_ratio"]),
                        duration(row["float64_seconds"]),
                        times(row["float64_scan_ratio"]),
                    )
                    for row in timed
                ],
            )
        )
    for row in found:
        if "by_clips" in row:
            tables.append(
                table(
                    f"Time by clips, {row['name']}",
                    f"The kernel on {row['states']:,} states and ever more clips.",
                    ("clips", "kernel", "per clip"),
                    [
                        (f"{part['clips']:,}", duration(part["seconds"]), f"{part['ns_per_clip']:.1f} ns")
                        for part in row["by_clips"]
                    ],
                    words=0,
                )
            )
    measured = [row for row in found if "peak_bytes" in row]
    if measured:
        tables.append(
            table(
                "Memory",
                "A process of its own that compiles the procedure and aligns it with `cost_only=True`.",
                ("case", "states", "clips", "compile", "align", "peak memory"),
                [
                    (
                        row["name"],
                        f"{row['states']:,}",
                        f"{row['clips']:,}",
                        duration(row["compile_seconds"]),
                        duration(row["seconds"]),
                        f"{row['peak_bytes'] / 2**20:,.0f} MiB",
                    )
                    for row in measured
                ],
            )
        )
    return tuple(tables)
