"""``python -m benchmarks soft``: soft cost and gradient beside a loop in torch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.cases import CASES, Case, choose
from benchmarks.machine import kernels_or_error, machine
from benchmarks.report import Report, Table, duration, table, times
from benchmarks.timing import Effort, race
from graph2vid.alignment import SMOOTHINGS, ClipCosts, soft_costs
from graph2vid.errors import Graph2VidError, needing

GAMMA = 0.1
BATCH = 64
CROSSTASK = next(case for case in CASES if case.name == "crosstask")

Call = Callable[[], Any]
Rows = Iterator[dict[str, Any]]


def bench_soft(
    only: Sequence[str] | None = None,
    effort: Effort | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Measure soft costs with their gradients; parameters, result and errors as for `bench_align`."""
    kernels_or_error()
    before = machine()
    begin = time.perf_counter()
    found: list[dict[str, Any]] = []
    for smoothing in choose({name: name for name in SMOOTHINGS}, only):
        if progress is not None:
            progress(smoothing)
        found += _contests(smoothing, effort or Effort())
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


def _contests(smoothing: str, effort: Effort) -> Rows:
    with needing("the benchmark of soft costs needs torch", "learn"):
        import torch

    from benchmarks.torch_reference import reference_cost

    ((match, drop),) = CROSSTASK.costs(np.float32)
    for contiguous in (False, True):
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


def _check_close(ours: float, theirs: float) -> None:
    if not np.isclose(ours, theirs, rtol=1e-4):
        raise Graph2VidError(f"the kernels found the cost {ours}, the loop in torch {theirs}")


def _tables(found: Sequence[dict[str, Any]]) -> tuple[Table, ...]:
    note = (
        f"{found[0]['states']} states, {found[0]['clips']} clips, gamma {GAMMA}; one video on one thread, "
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
        for row in found
    ]
    return (table("Soft cost and gradient, crosstask", note, headings, rows, words=2),)
