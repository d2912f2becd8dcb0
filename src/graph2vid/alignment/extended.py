"""The extended model: exactly, on its machine; where that is too large, with less left open, or by a search."""

from __future__ import annotations

import time
import warnings
from typing import Any

from graph2vid._stopping import within
from graph2vid.alignment import anytime, automata, branches
from graph2vid.alignment.anytime import Answer
from graph2vid.alignment.automata import QUICK_SECONDS, Extras, machine_problem
from graph2vid.alignment.problem import Problem
from graph2vid.errors import TooLargeError
from graph2vid.flow import FlowGraph


def solve(
    flow: FlowGraph,
    problem: Problem,
    extras: Extras,
    *,
    method: str | None,
    backend: str,
    cost_only: bool,
    memory_limit: int | None,
    limit: float | None,
) -> Answer:
    """Find the cheapest alignment with all that the procedure leaves open.

    Doubtful edges are taken as certain where the machine would be too large otherwise, the surest first. If that is not
    enough, or the time is up, alternatives are searched; returns and durations are refused.

    Parameters
    ----------
    limit : float or None
        Seconds for all of it; None: an exact answer may take :data:`QUICK_SECONDS`, and a search its own time.

    Raises
    ------
    TooLargeError
        Where there is no answer within the limits.
    """
    began = time.monotonic()
    # Half of the time, where the rest is for a search.
    can_search = method is None and extras.repeat is None and extras.durations is None
    exact = limit if limit is None or not can_search else limit / 2
    seconds = None if method == "exact" else QUICK_SECONDS if exact is None else exact
    try:
        with within(exact, "raise time_limit, use longer clips, or leave out what makes the procedure large"):
            on_machine = machine_problem(flow, problem, extras, memory_limit, tables=1, seconds=seconds)
            cost, labels = automata.solve(on_machine, backend, cost_only)
    except TooLargeError:
        if not can_search:
            raise
    else:
        return Answer(cost, labels, 0.0, {"backend": backend} | automata.report(on_machine))
    left = None if limit is None else max(began + limit - time.monotonic(), 1e-3)
    doubtful = [edge for edge, confidence in flow.confidence.items() if confidence < 1.0]
    report: dict[str, Any] = {}
    if doubtful:
        flow = flow.with_confidence(dict.fromkeys(doubtful, 1.0))
        report = {"hardened": [list(edge) for edge in doubtful]}
        warnings.warn(
            f"with doubtful edges left open the procedure is too large: all {len(doubtful)} are taken as certain",
            RuntimeWarning,
            stacklevel=3,
        )
    search = branches.solve if flow.alternatives else anytime.solve_plainly
    found = search(flow, problem, left, memory_limit)
    return Answer(found.cost, None if cost_only else found.labels, found.gap, found.options | report)
