"""``python -m benchmarks peers``: graph2vid beside other compiled packages, and the exact answer beside brute force."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.cases import CASES, Case, Floats, choose, threads
from benchmarks.fst import Automata
from benchmarks.machine import kernels_or_error, machine
from benchmarks.report import Report, Table, duration, table, times
from benchmarks.timing import Effort, race
from graph2vid.alignment import Durations, Problem, align, procedure
from graph2vid.errors import Graph2VidError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

PAPER_SPEED_UP = 560  # what the paper saw on graphs of 8.6 steps, 2.7 threads and 1,700 sorts on average

CHAIN = Case("chain50", FlowGraph.chain([f"step {i}" for i in range(50)]), 2_000)
CROSSTASK = next(case for case in CASES if case.name == "crosstask")
LENGTHS = 16  # clips of a segment at the most, in a semi-Markov model
BRUTE = Case("threads3x3", threads(3, 3, 3), 100)

Call = Callable[[], Any]
Rows = Iterator[dict[str, Any]]


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
    contests = {
        "dtaidistance": _dtaidistance,
        "tslearn": _tslearn,
        "kaldifst": _kaldifst,
        "torch_struct": _torch_struct,
        "brute": _brute,
    }
    found: list[dict[str, Any]] = []
    for name, contest in choose({name: (name, contest) for name, contest in contests.items()}, only):
        if progress is not None:
            progress(name)
        try:
            found += contest(effort or Effort())
        except (ImportError, AttributeError) as error:
            if name == "brute":
                raise
            reason = "not installed" if find_spec(name) is None else f"cannot be used: {error}"
            found.append({"name": name, "peer": name, "version": None, "what": reason})
    return Report("peers", tuple(only or ()), before, tuple(found), _tables(found), time.perf_counter() - begin)


def _kernel(tsort: TSortGraph, match: Floats, drop: Floats, contiguous: bool = True) -> Call:
    """Return a call of our kernel with labels, on one thread."""
    solve = procedure(tsort).solve
    return lambda: solve(match, drop, None, contiguous=contiguous, cost_only=False, block=0, window=0, workers=1)


def _kernel_cost(tsort: TSortGraph, match: Floats, drop: Floats) -> Call:
    """Return a call of our kernel for the cost alone, on one thread."""
    solve = procedure(tsort).solve
    return lambda: solve(match, drop, None, contiguous=True, cost_only=True, block=0, window=1, workers=1)


def _series() -> tuple[Floats, Floats, Floats]:
    """Return a series for the steps, one for the clips, and their squared differences [K, N], float64."""
    random = np.random.default_rng(0)
    steps, clips = random.random(len(CHAIN.flow)), random.random(CHAIN.clips)
    return steps, clips, np.ascontiguousarray((steps[:, None] - clips) ** 2)


def _dtw_rows(peer: str, effort: Effort, calls: dict[str, tuple[Call, str]], match: Floats) -> Rows:
    """Race a DTW package with our kernel, in float64 (as it computes) and in float32.

    ``calls`` holds for "cost" and for "path" the peer's call and what it does.
    """
    for name, (theirs, what) in calls.items():
        kernel = _kernel_cost if name == "cost" else _kernel
        contestants = {"peer": theirs}
        for dtype in ("float64", "float32"):
            contestants[dtype] = kernel(CHAIN.tsort, match.astype(dtype), np.full(CHAIN.clips, 0.1, dtype))
        best = race(contestants, effort)
        yield {
            "name": f"{peer}, {name}",
            "peer": peer,
            "version": version(peer),
            "steps": len(CHAIN.flow),
            "clips": CHAIN.clips,
            "what": what,
            "peer_seconds": best["peer"],
            "seconds": best["float64"],
            "ratio": best["peer"] / best["float64"],
            "float32_seconds": best["float32"],
            "float32_ratio": best["peer"] / best["float32"],
        }


def _dtaidistance(effort: Effort) -> Rows:
    kernel = import_module("dtaidistance.dtw_cc")
    steps, clips, match = _series()
    calls: dict[str, tuple[Call, str]] = {
        "cost": (
            lambda: kernel.distance(clips, steps),
            "C: the cost, from two series whose differences it takes as it goes",
        ),
        "path": (lambda: kernel.warping_path(clips, steps), "C: likewise, and the path as a list of pairs"),
    }
    yield from _dtw_rows("dtaidistance", effort, calls, match)


def _tslearn(effort: Effort) -> Rows:
    kernels = import_module("tslearn.metrics._dtw")
    accumulate, trace = kernels._njit_acc_matrix_from_dist_matrix, kernels._njit_compute_path
    _, _, match = _series()
    mask = np.full(match.shape, True)
    calls: dict[str, tuple[Call, str]] = {
        "cost": (
            lambda: accumulate(match, mask),
            "numba, warm: accumulated costs, from ready distances and a ready mask",
        ),
        "path": (lambda: trace(accumulate(match, mask)), "numba, warm: likewise, and the path"),
    }
    yield from _dtw_rows("tslearn", effort, calls, match)


def _kaldifst(effort: Effort) -> Rows:
    ((match, drop),) = CROSSTASK.costs(np.float32)
    for contiguous in (False, True):
        automata = Automata(CROSSTASK.tsort, contiguous)
        ready = automata.acceptor(match, drop)
        ours = _kernel(CROSSTASK.tsort, match, drop, contiguous)
        _check_equal(automata.read(automata.best_path(ready))[0], ours()[0])
        best = race(
            {
                "peer": partial(automata.best_path, ready),
                "with acceptor": partial(automata.align, match, drop),
                "ours": ours,
            },
            effort,
        )
        yield {
            "name": f"kaldifst, contiguous={contiguous}",
            "peer": "kaldifst",
            "version": version("kaldifst"),
            "steps": len(CROSSTASK.flow),
            "states": CROSSTASK.tsort.n_states,
            "clips": CROSSTASK.clips,
            "contiguous": contiguous,
            "what": "C++: composition of ready automata and shortest path",
            "peer_seconds": best["peer"],
            "seconds": best["ours"],
            "ratio": best["peer"] / best["ours"],
            "with_acceptor_seconds": best["with acceptor"],
            "with_acceptor_ratio": best["with acceptor"] / best["ours"],
        }


def _torch_struct(effort: Effort) -> Rows:
    """Sums over all labellings and their gradients, which are the probabilities, in float64."""
    torch, package = import_module("torch"), import_module("torch_struct")
    ((match, drop),) = CROSSTASK.costs(np.float64)
    flow, clips = FlowGraph.chain(list(CROSSTASK.flow.texts)), 40  # theirs takes 18 s for 100
    match, drop = np.ascontiguousarray(match[:, :clips]), drop[:clips]
    steps, generator = len(flow), torch.Generator().manual_seed(0)
    prior = Durations.log_normal(np.full(steps, 6.0), np.full(steps, 0.5), longest=LENGTHS)
    models = {
        "linear chain": (package.LinearChainCRF, (), Problem(TSortGraph.compile(flow), match, drop)),
        "semi-Markov": (package.SemiMarkovCRF, (LENGTHS,), Problem(flow, match, drop, durations=prior)),
    }
    for name, (model, lengths, problem) in models.items():
        shape = (1, clips, *lengths, steps, steps)
        potentials = torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)

        def theirs(model: Any = model, potentials: Any = potentials) -> Any:
            return torch.autograd.grad(model(potentials).partition.sum(), potentials)

        def ours(problem: Problem = problem) -> Any:
            return problem.posterior(workers=1)

        workers = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            best = race({"ours": ours}, effort, time.process_time)
            best |= race({"peer": theirs}, Effort(0.0, 1, 1e-6), time.process_time)
        finally:
            torch.set_num_threads(workers)
        yield {
            "name": f"torch-struct, {name}",
            "peer": "torch_struct",
            "version": version("torch-struct"),
            "steps": steps,
            "clips": clips,
            "lengths": LENGTHS if lengths else 1,
            "what": f"torch: {name} CRF, its partition function and gradient",
            "peer_seconds": best["peer"],
            "seconds": best["ours"],
            "ratio": best["peer"] / best["ours"],
            "crf_ratio": best["peer"] / best["ours"],
        }


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
        _check_equal(brute(), ours())
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


def _check_equal(theirs: float, ours: float) -> None:
    if abs(theirs - ours) > 1e-5 * max(1.0, abs(ours)):
        raise Graph2VidError(f"the costs differ ({theirs!r} and ours {ours!r}): the numbers would mean nothing")


def _tables(found: Sequence[dict[str, Any]]) -> tuple[Table, ...]:
    makers = (_dtw_table, _automata_table, _crf_table, _brute_table, _missing_table)
    kinds = ("float32_ratio", "with_acceptor_ratio", "crf_ratio", "brute_seconds", None)
    tables = []
    for kind, make in zip(kinds, makers, strict=True):
        rows = [row for row in found if (kind in row if kind else "ratio" not in row)]
        if rows:
            tables.append(make(rows))
    return tuple(tables)


def _dtw_table(rows: list[dict[str, Any]]) -> Table:
    return table(
        f"Dynamic time warping, {rows[0]['steps']} steps × {rows[0]['clips']:,} clips",
        "Kernel to kernel on one thread: cost against cost, path against labels, theirs and ours in float64; then "
        "ours in float32. Ours takes ready costs. Their recursion has three moves and no background, "
        "ours two moves and background, so the tables are of one size and the costs are not equal.",
        ("peer", "what it does", "peer", "graph2vid", "ratio", "float32", "ratio"),
        [
            (
                f"{row['name']} ({row['version']})",
                row["what"],
                duration(row["peer_seconds"]),
                duration(row["seconds"]),
                times(row["ratio"]),
                duration(row["float32_seconds"]),
                times(row["float32_ratio"]),
            )
            for row in rows
        ],
        words=2,
    )


def _automata_table(rows: list[dict[str, Any]]) -> Table:
    return table(
        f"Weighted automata, crosstask: {rows[0]['states']} states × {rows[0]['clips']} clips",
        "Kernel to kernel on one thread, float32, best path against labels, equal costs; then with the making of the "
        "automaton that holds the video's costs.",
        ("peer", "what it does", "peer", "graph2vid", "ratio", "with making", "ratio"),
        [
            (
                f"{row['name']} ({row['version']})",
                row["what"],
                duration(row["peer_seconds"]),
                duration(row["seconds"]),
                times(row["ratio"]),
                duration(row["with_acceptor_seconds"]),
                times(row["with_acceptor_ratio"]),
            )
            for row in rows
        ],
        words=2,
    )


def _crf_table(rows: list[dict[str, Any]]) -> Table:
    return table(
        f"Conditional random fields, {rows[0]['steps']} labels × {rows[0]['clips']} clips",
        f"One video in float64, time of one processor, sum over all labellings and its gradient; segments of up to "
        f"{LENGTHS} clips in the semi-Markov model. Theirs lets every label follow every other; ours, "
        "`Problem.posterior`, is a chain of as many steps with background between them, so the sums are not equal.",
        ("peer", "what it does", "peer", "graph2vid", "ratio"),
        [
            (
                f"{row['name']} ({row['version']})",
                row["what"],
                duration(row["peer_seconds"]),
                duration(row["seconds"]),
                times(row["ratio"]),
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


def _missing_table(rows: list[dict[str, Any]]) -> Table:
    return table(
        "Left out",
        "The extra `peers` brings them, except for torch-struct, which states no licence (`pip install torch-struct`).",
        ("peer", "why"),
        [(r["name"], r["what"]) for r in rows],
        words=2,
    )
