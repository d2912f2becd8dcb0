"""``python -m benchmarks peers``: graph2vid beside other packages, and the exact answer beside brute force."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.apart import JobError, race_apart
from benchmarks.cases import Case, Floats, choose, threads
from benchmarks.jobs import GAMMA, LENGTHS
from benchmarks.machine import kernels_or_error, machine
from benchmarks.report import Report, Table, duration, memory, table, times
from benchmarks.timing import Effort, race
from graph2vid.alignment import align, procedure
from graph2vid.errors import Graph2VidError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

PAPER_SPEED_UP = 560  # what the paper saw on graphs of 8.6 steps, 2.7 threads and 1,700 sorts on average
BRUTE = Case("threads3x3", threads(3, 3, 3), 100)

Call = Callable[[], Any]
Rows = Iterator[dict[str, Any]]


@dataclass(frozen=True)
class Ground:
    """What some peers are made for.

    Attributes
    ----------
    title, note : str
        Of its table.
    steps, clips : int
        The size of the problem.
    contests : tuple of (str, str, str)
        The package, the job (`benchmarks.jobs`) and what the package does.
    longer : int
        How many times as many clips memory is measured on.
    tolerance : float, optional
        How far the costs may be apart, as a share; None: they are not the same, and the note says why.
    """

    title: str
    note: str
    steps: int
    clips: int
    contests: tuple[tuple[str, str, str], ...]
    longer: int = 20
    tolerance: float | None = None


GROUNDS = (
    Ground(
        "Dynamic time warping, 50 steps × 2,000 clips",
        "Kernel to kernel in float64: cost against cost, path against labels. Ours takes ready costs. Their recursion "
        "has three moves and no background, ours two moves and background, so the tables are of one size and the costs "
        "are not equal. Memory on 40,000 clips.",
        50,
        2_000,
        (
            ("dtaidistance", "cost", "C: the cost, from two series whose differences it takes as it goes"),
            ("dtaidistance", "path", "C: likewise, and the path as a list of pairs"),
            ("tslearn", "cost", "numba, warm: accumulated costs, from ready distances and a ready mask"),
            ("tslearn", "path", "numba, warm: likewise, and the path"),
            ("aeon", "cost", "numba, warm: the cost, from two series whose differences it takes as it goes"),
            ("aeon", "path", "numba, warm: likewise, and the path as a list of pairs"),
        ),
    ),
    Ground(
        "Soft-DTW, 50 steps × 500 clips",
        f"Soft cost alone, and with its gradient; float64, gamma {GAMMA}, the recursions as above. Beside pysdtw ours "
        "is called through torch, too. aeon has no gradient. Memory on 10,000 clips.",
        50,
        500,
        (
            ("tslearn", "soft cost", "numba, warm: from ready distances"),
            ("tslearn", "soft gradient", "numba, warm: likewise"),
            ("aeon", "soft cost", "numba, warm: from two series whose differences it takes as it goes"),
            ("pysdtw", "torch soft cost", "numba, warm, through torch: from ready distances"),
            ("pysdtw", "torch soft gradient", "numba, warm, through torch: likewise"),
        ),
    ),
    Ground(
        "Connectionist temporal classification, 50 labels × 500 frames",
        "A chain of 50 steps whose background is CTC's blank: the sum over all alignments alone, and with its "
        "gradient, both through torch, float32. Equal sums. Memory on 10,000 frames.",
        50,
        500,
        (
            (
                "k2",
                "CTC cost",
                "C++: intersection of the CTC graph with the frames' scores, and its total",
            ),
            ("k2", "CTC gradient", "C++: likewise, and its gradient by autograd"),
        ),
        tolerance=1e-4,
    ),
    Ground(
        "Linear-chain conditional random fields, 9 labels × 100 clips",
        "A chain of 9 steps without background: the sum over all labellings alone, and with its gradient, both through "
        "torch, float64, equal sums. Theirs takes ready potentials of all pairs of labels at each clip, and so fields "
        "where any label follows any other with a cost of its own, which ours does not. Memory on 2,000 clips.",
        9,
        100,
        (
            ("torch-struct", "linear chain cost", "torch: the partition function"),
            ("torch-struct", "linear chain gradient", "torch: likewise, and its gradient"),
        ),
        tolerance=1e-9,
    ),
    Ground(
        "Semi-Markov conditional random fields, 9 labels × 40 clips",
        f"The same with costs by the lengths of segments, up to {LENGTHS} clips. Equal sums. Memory on as many clips.",
        9,
        40,
        (
            ("torch-struct", "semi-Markov cost", "torch: the partition function"),
            ("torch-struct", "semi-Markov gradient", "torch: likewise, and its gradient"),
        ),
        longer=1,
        tolerance=1e-9,
    ),
    Ground(
        "Weighted automata, crosstask: 77 states × 100 clips",
        "Kernel to kernel in float32, best path against labels; then with the making of the automaton that holds the "
        "video's costs. Equal costs. Memory on 2,000 clips.",
        9,
        100,
        tuple(
            ("kaldifst", f"contiguous={contiguous}{making}", f"C++: {what} automata and shortest path")
            for contiguous in (False, True)
            for making, what in (("", "composition of ready"), (", with making", "making and composition of"))
        ),
        tolerance=1e-5,
    ),
)
PEERS = tuple(dict.fromkeys(package for ground in GROUNDS for package, _, _ in ground.contests))
NOT_TO_BE_HAD = {"sdtw-cuda-torch": "in no package index, under this name or its project's (softdtw-cuda-torch)"}


def bench_peers(
    only: Sequence[str] | None = None,
    effort: Effort | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Measure beside other packages; parameters, result and errors as for `bench_align`.

    A package that is not installed gets a row that says so.
    """
    kernels_or_error()
    before = machine()
    begin = time.perf_counter()
    chosen = choose({name: name for name in (*PEERS, "brute")}, only)
    found: list[dict[str, Any]] = []
    for name in chosen:
        if progress is not None:
            progress(name)
        try:
            found += (_brute if name == "brute" else partial(_contests, name))(effort or Effort())
        except JobError as error:
            found.append(_left_out(name, _reason(name, *error.args)))
    if not only:
        found += [_left_out(name, reason) for name, reason in NOT_TO_BE_HAD.items()]
    return Report("peers", tuple(only or ()), before, tuple(found), _tables(found), time.perf_counter() - begin)


def _left_out(name: str, reason: str) -> dict[str, Any]:
    return {"name": name, "peer": name, "version": None, "what": reason}


def _reason(name: str, package: str, line: str) -> str:
    if package != name:
        raise Graph2VidError(f"{package} failed beside {name}: {line}")
    return "not installed" if line.startswith("ModuleNotFoundError") else f"cannot be used: {line}"


def _contests(package: str, effort: Effort) -> Rows:
    """Do all that a package can do, beside ours."""
    for ground in GROUNDS:
        for peer, job, what in ground.contests:
            if peer != package:
                continue
            found = race_apart(package, job, (ground.steps, ground.clips), ground.longer, effort)
            theirs, ours = found["peer"], found["ours"]
            if ground.tolerance is not None:
                _check_equal(f"{package}, {job}", theirs["cost"], ours["cost"], ground.tolerance)
            yield {
                "name": f"{package}, {job.removeprefix('torch ')}",
                "peer": package,
                "version": theirs["version"],
                "ground": ground.title,
                "steps": ground.steps,
                "clips": ground.clips,
                "what": what,
                "peer_seconds": theirs["seconds"],
                "seconds": ours["seconds"],
                "ratio": theirs["seconds"] / ours["seconds"],
                "memory_clips": ground.clips * ground.longer,
                "peer_bytes": theirs["bytes"],
                "bytes": ours["bytes"],
                "peer_process_bytes": theirs["process_bytes"],
                "process_bytes": ours["process_bytes"],
            }


def _kernel(tsort: TSortGraph, match: Floats, drop: Floats) -> Call:
    """Return a call of our kernel with labels, on one thread."""
    solve = procedure(tsort).solve
    return lambda: solve(match, drop, None, contiguous=True, cost_only=False, block=0, window=0, workers=1)


def _kernel_cost(tsort: TSortGraph, match: Floats, drop: Floats) -> Call:
    """Return a call of our kernel for the cost alone, on one thread."""
    solve = procedure(tsort).solve
    return lambda: solve(match, drop, None, contiguous=True, cost_only=True, block=0, window=1, workers=1)


def _brute(effort: Effort) -> Rows:
    tsort = BRUTE.tsort
    ((match, drop),) = BRUTE.costs(np.float32)
    chain = TSortGraph.compile(FlowGraph.chain(list(BRUTE.flow.texts)))
    sorts = [np.ascontiguousarray(match[list(order)]) for order in tsort.paths()]
    one_by_one = [_kernel_cost(chain, rows, drop) for rows in sorts]
    drops, skips = [drop] * len(sorts), [None] * len(sorts)
    solve_many = procedure(chain).solve_many

    def side_by_side() -> Any:
        return solve_many(sorts, drops, skips, contiguous=True, cost_only=True, block=0, workers=1)

    kernel = _kernel(tsort, match, drop)
    # Name, brute force, ours, what is timed; brute force and ours both return a cost.
    contests: tuple[tuple[str, Callable[[], float], Callable[[], float], str], ...] = (
        (
            "our kernel, sort by sort",
            lambda: float(min(call()[0] for call in one_by_one)),
            lambda: float(kernel()[0]),
            "kernels; of each sort the cost alone, its rows put in order beforehand",
        ),
        (
            "our kernel, all sorts in one call",
            lambda: float(min(cost for cost, _ in side_by_side())),
            lambda: float(kernel()[0]),
            "likewise, with several sorts in each vector",
        ),
        (
            'align(method="brute")',
            lambda: align(BRUTE.flow, match, drop, method="brute").cost,
            lambda: align(BRUTE.flow, match, drop).cost,
            "whole calls, from the flow graph on; brute force in NumPy",
        ),
    )
    for name, brute, ours, what in contests:
        _check_equal(name, brute(), ours(), 1e-5)
        best = race({"brute": brute, "ours": ours}, effort)
        yield {
            "name": name,
            "steps": tsort.n_steps,
            "states": tsort.n_states,
            "clips": BRUTE.clips,
            "sorts": len(sorts),
            "what": what,
            "brute_seconds": best["brute"],
            "seconds": best["ours"],
            "ratio": best["brute"] / best["ours"],
            "updates_ratio": len(sorts) * tsort.n_steps / tsort.n_states,
            "paper_ratio": PAPER_SPEED_UP,
        }


def _check_equal(name: str, theirs: float, ours: float, tolerance: float) -> None:
    if abs(theirs - ours) > tolerance * max(1.0, abs(ours)):
        raise Graph2VidError(f"{name}: the costs differ ({theirs!r}, ours {ours!r}): the numbers would mean nothing")


def _tables(found: Sequence[dict[str, Any]]) -> tuple[Table, ...]:
    tables = []
    for ground in GROUNDS:
        if rows := [row for row in found if row.get("ground") == ground.title]:
            tables.append(_ground_table(ground, rows))
    if rows := [row for row in found if "brute_seconds" in row]:
        tables.append(_brute_table(rows))
    if rows := [row for row in found if "ratio" not in row]:
        note = "The extra `peers` brings dtaidistance, kaldifst, pysdtw and tslearn, `make peers` the others."
        tables.append(table("Left out", note, ("peer", "why"), [(row["name"], row["what"]) for row in rows], words=2))
    return tuple(tables)


def _ground_table(ground: Ground, rows: list[dict[str, Any]]) -> Table:
    return table(
        ground.title,
        ground.note,
        ("peer", "what it does", "peer", "graph2vid", "ratio", "memory", "graph2vid"),
        [
            (
                f"{row['name']} ({row['version']})",
                row["what"],
                duration(row["peer_seconds"]),
                duration(row["seconds"]),
                times(row["ratio"]),
                memory(row["peer_bytes"]),
                memory(row["bytes"]),
            )
            for row in rows
        ],
        words=2,
    )


def _brute_table(rows: list[dict[str, Any]]) -> Table:
    first = rows[0]
    return table(
        "Exact against brute force over all topological sorts",
        f"Three threads of three steps, {first['sorts']:,} sorts, {first['clips']} clips, equal costs; ours with "
        f"labels. In updates alone the tSort graph saves {first['updates_ratio']:.0f}×. The paper saw "
        f"{PAPER_SPEED_UP}× on graphs of 8.6 steps, 2.7 threads and 1,700 sorts.",
        ("brute force", "what is timed", "brute force", "tSort graph", "ratio"),
        [
            (row["name"], row["what"], duration(row["brute_seconds"]), duration(row["seconds"]), times(row["ratio"]))
            for row in rows
        ],
        words=2,
    )
