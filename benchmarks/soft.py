"""``python -m benchmarks soft``: soft cost and gradient beside a loop in torch and other packages' soft-DTW."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np

from benchmarks.cases import CASES, Case, choose
from benchmarks.machine import kernels_or_error, machine
from benchmarks.report import Report, Table, duration, table, times
from benchmarks.timing import Effort, race
from graph2vid.alignment import SMOOTHINGS, ClipCosts, soft_costs
from graph2vid.errors import Graph2VidError
from graph2vid.flow import FlowGraph

GAMMA = 0.1
BATCH = 64
CROSSTASK = next(case for case in CASES if case.name == "crosstask")
CHAIN = Case("chain50", FlowGraph.chain([f"step {i}" for i in range(50)]), 500)

Call = Callable[[], Any]
Rows = Iterator[dict[str, Any]]


def bench_soft(
    only: Sequence[str] | None = None,
    effort: Effort | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Measure soft costs with their gradients; parameters, result and errors as for `bench_align`.

    A package that is not installed gets a row that says so.
    """
    kernels_or_error()
    before = machine()
    begin = time.perf_counter()
    contests = {"torch": _torch, "tslearn": _tslearn, "pysdtw": _pysdtw}
    found: list[dict[str, Any]] = []
    for name, contest in choose({name: (name, contest) for name, contest in contests.items()}, only):
        if progress is not None:
            progress(name)
        try:
            found += contest(effort or Effort())
        except (ImportError, AttributeError) as error:
            reason = "not installed" if find_spec(name) is None else f"cannot be used: {error}"
            found.append({"name": name, "peer": name, "version": None, "what": reason})
    return Report("soft", tuple(only or ()), before, tuple(found), _tables(found), time.perf_counter() - begin)


def _kernel(case: Case, dtype: type[np.floating[Any]], videos: int, workers: int, **options: Any) -> Call:
    """Return a call that gives cost and gradients of ``videos`` videos."""
    costs = Case(case.name, case.flow, case.clips, videos).costs(dtype)
    given = [(case.tsort, ClipCosts(match, drop, None)) for match, drop in costs]
    return lambda: soft_costs(given, gamma=GAMMA, workers=workers, **options)


def _operator(case: Case, dtype: type[np.floating[Any]], videos: int, **options: Any) -> Call:
    """Return a call that gives the same through torch's autograd."""
    torch = import_module("torch")
    from graph2vid.learn import soft_cost

    costs = Case(case.name, case.flow, case.clips, videos).costs(dtype)
    inputs = [torch.tensor(np.stack(part), requires_grad=True) for part in zip(*costs, strict=True)]
    tsorts = [case.tsort] * videos
    return lambda: torch.autograd.grad(soft_cost(tsorts, *inputs, gamma=GAMMA, **options).sum(), inputs)


def _torch(effort: Effort) -> Rows:
    torch = import_module("torch")
    from benchmarks.torch_reference import reference_cost

    ((match, drop),) = CROSSTASK.costs(np.float32)
    for smoothing, contiguous in product(SMOOTHINGS, (False, True)):
        options: dict[str, Any] = {"smoothing": smoothing, "contiguous": contiguous}
        inputs = [torch.tensor(part, requires_grad=True) for part in (match, drop)]

        def loop(inputs: Any = inputs, options: Any = options) -> Any:
            cost = reference_cost(CROSSTASK.tsort, *inputs, gamma=GAMMA, **options)
            torch.autograd.grad(cost, inputs)
            return cost

        ours = _kernel(CROSSTASK, np.float32, 1, 1, **options)
        _check_close(ours()[0].cost, loop().item())
        best = race(
            {
                "ours": ours,
                "double": _kernel(CROSSTASK, np.float64, 1, 1, **options),
                "batch": _kernel(CROSSTASK, np.float32, BATCH, 2, **options),
                "operator": _operator(CROSSTASK, np.float32, 1, **options),
                "operator_batch": _operator(CROSSTASK, np.float32, BATCH, **options),
            },
            effort,
        )
        looped = race({"loop": loop}, Effort(effort.seconds, min(effort.rounds, 3), effort.slice_seconds))["loop"]
        yield {
            "name": f"crosstask, {smoothing}, contiguous={contiguous}",
            "peer": "torch",
            "version": version("torch"),
            **options,
            "states": CROSSTASK.tsort.n_states,
            "clips": CROSSTASK.clips,
            "what": "a loop over the clips, vectorised over the states, differentiated by autograd",
            "seconds": best["ours"],
            "float64_seconds": best["double"],
            "batch": BATCH,
            "batch_seconds": best["batch"],
            "operator_seconds": best["operator"],
            "operator_batch_seconds": best["operator_batch"],
            "peer_seconds": looped,
            "ratio": looped / best["ours"],
        }


def _chain_row(
    peer: str, what: str, theirs: Call, ours: Call, effort: Effort, dtype: type[np.floating[Any]]
) -> dict[str, Any]:
    best = race({"peer": theirs, "ours": ours}, effort)
    return {
        "name": f"chain50, {peer}",
        "peer": peer,
        "version": version(peer),
        "steps": len(CHAIN.flow),
        "clips": CHAIN.clips,
        "dtype": np.dtype(dtype).name,
        "what": what,
        "peer_seconds": best["peer"],
        "seconds": best["ours"],
        "ratio": best["peer"] / best["ours"],
    }


def _tslearn(effort: Effort) -> Rows:
    kernels = import_module("tslearn.metrics.soft_dtw_fast")
    ((match, _),) = CHAIN.costs(np.float64)
    steps, clips = match.shape

    def theirs() -> Any:
        table = np.zeros((steps + 2, clips + 2))
        kernels._njit_soft_dtw(match, table, gamma=GAMMA)
        padded = np.vstack((match, np.zeros(clips)))
        padded = np.hstack((padded, np.zeros((steps + 1, 1))))
        gradient = np.zeros((steps + 2, clips + 2))
        kernels._njit_soft_dtw_grad(padded, table, gradient, gamma=GAMMA)
        return gradient

    ours = _kernel(CHAIN, np.float64, 1, 1, smoothing="softmin", contiguous=True)
    what = "numba, warm: soft-DTW and its gradient, ready distances"
    yield _chain_row("tslearn", what, theirs, ours, effort, np.float64)


def _pysdtw(effort: Effort) -> Rows:
    torch = import_module("torch")
    package = import_module("pysdtw")
    ((match, _),) = CHAIN.costs(np.float64)
    distances = torch.tensor(match[None], requires_grad=True)
    soft_dtw = package.SoftDTW(gamma=GAMMA, dist_func=lambda *_: distances, use_cuda=False)
    rows, columns = torch.zeros(1, match.shape[0], 1), torch.zeros(1, match.shape[1], 1)

    def theirs() -> Any:
        return torch.autograd.grad(soft_dtw(rows, columns).sum(), distances)

    ours = _operator(CHAIN, np.float64, 1, smoothing="softmin", contiguous=True)
    what = "numba, warm: soft-DTW and its gradient, both through torch"
    yield _chain_row("pysdtw", what, theirs, ours, effort, np.float64)


def _check_close(ours: float, theirs: float) -> None:
    if not np.isclose(ours, theirs, rtol=1e-4):
        raise Graph2VidError(f"the kernels found the cost {ours}, the loop in torch {theirs}")


def _tables(found: Sequence[dict[str, Any]]) -> tuple[Table, ...]:
    loops = [row for row in found if row["peer"] == "torch" and row["version"]]
    chains = [row for row in found if row not in loops]
    tables: list[Table] = []
    if loops:
        note = (
            f"{loops[0]['states']} states, {loops[0]['clips']} clips, gamma {GAMMA}; one video on one thread, "
            f"{BATCH} videos on two (float32), the same called through torch and its autograd, and a loop over the "
            "clips in torch, vectorised over the states, with autograd."
        )
        headings = (
            *("smoothing", "contiguous", "float32", "float64", f"{BATCH} videos"),
            *("through torch", f"{BATCH} videos", "torch loop", "ratio"),
        )
        shown = ("seconds", "float64_seconds", "batch_seconds", "operator_seconds", "operator_batch_seconds")
        rows = [
            (
                row["smoothing"],
                "yes" if row["contiguous"] else "no",
                *(duration(row[name]) for name in (*shown, "peer_seconds")),
                times(row["ratio"]),
            )
            for row in loops
        ]
        tables.append(table("Soft cost and gradient, crosstask", note, headings, rows, words=2))
    if chains:
        note = f"{len(CHAIN.flow)} steps, {CHAIN.clips} clips, cost and gradient in float64, one thread."
        packages = [
            (
                f"{row['peer']} {row['version'] or ''}".strip(),
                row["what"],
                duration(row.get("peer_seconds")),
                duration(row.get("seconds")),
                times(row.get("ratio")),
            )
            for row in chains
        ]
        columns = ("package", "what", "theirs", "graph2vid", "ratio")
        tables.append(table("Soft-DTW of other packages, on a chain", note, columns, packages, words=2))
    return tuple(tables)
