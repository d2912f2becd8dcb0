"""``python -m benchmarks tsort``: compiling procedures, beside the NumPy builder."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.cases import CASES, Case, choose
from benchmarks.machine import kernels_or_error, machine
from benchmarks.report import Report, duration, table, times
from benchmarks.timing import Effort, race
from graph2vid.tsort import TSortGraph, ideals_bound
from graph2vid.tsort.lattice import build_lattice_numpy

NAMES = ("crosstask", "threads4x4", "salads", "bag14", "bag16", "bag18")


def bench_tsort(
    only: Sequence[str] | None = None,
    effort: Effort | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Measure :meth:`TSortGraph.compile`; parameters, result and errors as for `bench_align`."""
    kernels_or_error()
    before = machine()
    begin = time.perf_counter()
    found = []
    for case in choose({case.name: case for case in CASES if case.name in NAMES}, only):
        if progress is not None:
            progress(case.name)
        found.append(measure_case(case, effort or Effort(rounds=3)))
    rows = [
        (
            row["name"],
            str(row["steps"]),
            f"{row['ideals']:,}",
            f"{row['ideals_bounds'][0]:,} – {row['ideals_bounds'][1]:,}",
            f"{row['states']:,}",
            duration(row["seconds"]),
            duration(row["numpy_seconds"]),
            times(row["numpy_ratio"]),
        )
        for row in found
    ]
    shown = table(
        "Compiling",
        "`TSortGraph.compile` from flow graph to arrays, with the compiled builder and with the NumPy one. The "
        "bounds are what is known of the number of ideals before building.",
        ("case", "steps", "ideals", "bounds of ideals", "states", "compiled", "NumPy", "× NumPy"),
        rows,
    )
    return Report("tsort", tuple(only or ()), before, tuple(found), (shown,), time.perf_counter() - begin)


def measure_case(case: Case, effort: Effort) -> dict[str, Any]:
    """Measure the compilation of one procedure, with both builders."""
    best = race(
        {
            "compiled": lambda: TSortGraph.compile(case.flow),
            "numpy": lambda: TSortGraph.compile(case.flow, build=build_lattice_numpy),
        },
        effort,
    )
    sizes = {name: value for name, value in case.sizes().items() if name not in ("clips", "videos")}
    return sizes | {
        "edges": case.tsort.n_edges,
        "ideals_bounds": list(ideals_bound(case.flow)),
        "seconds": best["compiled"],
        "numpy_seconds": best["numpy"],
        "numpy_ratio": best["numpy"] / best["compiled"],
    }
