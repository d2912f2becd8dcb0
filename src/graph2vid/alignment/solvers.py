"""One checked problem to one answer, by the compiled kernels or the reference, within the memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from graph2vid._stopping import native_watch
from graph2vid.alignment import _reference
from graph2vid.alignment.alignment_result import Alignment, Labels
from graph2vid.alignment.automata import Extras
from graph2vid.alignment.backends import choose_threads, choose_window, memory_bound, procedure, too_large
from graph2vid.alignment.infeasible import why_infeasible
from graph2vid.alignment.problem import Problem, may_overflow
from graph2vid.errors import InfeasibleError, InputError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph


def make_result(
    flow: FlowGraph,
    problem: Problem,
    extras: Extras,
    cost: float,
    labels: Labels | None,
    options: dict[str, Any],
    gap: float = 0.0,
) -> Alignment:
    """Return the answer as callers see it; see :func:`check_cost`."""
    check_cost(flow, problem, extras, cost)
    if labels is not None:
        labels.setflags(write=False)
    return Alignment(flow, cost, labels, gap, options)


def check_cost(flow: FlowGraph, problem: Problem, extras: Extras, cost: float) -> None:
    """Raise where there is no finite answer: the costs are too large for their dtype, or no alignment is possible."""
    if np.isfinite(cost):
        return
    if may_overflow(problem):
        raise InputError(f"the costs are so large that their sums overflow {problem.match.dtype}: scale them down")
    raise InfeasibleError(f"no alignment is possible: {why_infeasible(flow, problem, extras.durations)}")


def solve_native(
    tsort: TSortGraph,
    problem: Problem,
    contiguous: bool,
    cost_only: bool,
    threads: int | None,
    memory_limit: int | None,
) -> tuple[float, Labels | None]:
    """Solve by the compiled kernels."""
    clips = problem.match.shape[1]
    team = choose_threads(threads, tsort.n_states * clips)
    window = choose_window(tsort, problem.match.itemsize, clips, cost_only, team, memory_limit)
    cost, labels = procedure(tsort).solve(
        problem.match, problem.drop, problem.skip, contiguous, cost_only, 0, window, team, native_watch()
    )
    return cost, labels


def solve_reference(
    tsort: TSortGraph,
    problem: Problem,
    contiguous: bool,
    cost_only: bool,
    threads: int | None,
    memory_limit: int | None,
) -> tuple[float, Labels | None]:
    """Solve by the NumPy reference."""
    choose_threads(threads, 0)
    clips = problem.match.shape[1]
    column = (tsort.n_ideals + tsort.n_states) * problem.match.itemsize
    bound = memory_bound(memory_limit)
    checkpoint = None
    needed = 2 * column if cost_only else (clips + 1) * column
    if not cost_only and needed > bound:
        checkpoint = max(1, int(np.sqrt(clips)))
        needed = (checkpoint + clips // checkpoint + 2) * column
    if needed > bound:
        raise too_large(tsort, clips, needed, bound, "" if cost_only else "use cost_only=True, ")
    return _reference.solve(
        tsort,
        problem.match,
        problem.drop,
        problem.skip,
        contiguous=contiguous,
        cost_only=cost_only,
        checkpoint=checkpoint,
    )
