"""How sure each segment of an alignment is: what the best alternative to it would cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid._stopping import within
from graph2vid.alignment.alignment_result import Alignment
from graph2vid.alignment.anytime import check_time_limit
from graph2vid.alignment.constraints import Constraint
from graph2vid.alignment.facade import align
from graph2vid.alignment.many import align_many
from graph2vid.errors import InfeasibleError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph


def margins(
    flow: FlowGraph | TSortGraph,
    match: Any,
    drop: Any,
    skip: Any = None,
    contiguous: bool = True,
    *,
    found: Alignment,
    repeat: Any = None,
    durations: Any = None,
    breaking: float = 1.0,
    constraints: Iterable[Constraint] = (),
    backend: str | None = None,
    threads: int | None = None,
    memory_limit: int | None = None,
    time_limit: float | None = None,
) -> NDArray[np.float64]:
    """Return for each segment of an alignment how much more its best alternative costs.

    The alternative to a segment is any alignment in which none of its clips shows its step: the step is elsewhere, or
    not shown. All of them are aligned anew, side by side.

    Parameters
    ----------
    flow, match, drop, skip, contiguous, repeat, durations, breaking, constraints, backend, threads, memory_limit
        As for :func:`align`, and the same that ``found`` was found with.
    found : Alignment
        The cheapest alignment.
    time_limit : float, optional
        Seconds after which the call is given up; by default it takes as long as it takes.

    Returns
    -------
    float64 [number of segments]
        In units of cost, at least 0; +∞ where there is no alternative.
    """
    fixed = tuple(constraints)
    ruled_out = [
        (*fixed, Constraint("forbid", segment.step, segment.start, segment.stop)) for segment in found.segments
    ]
    if not ruled_out:
        return np.zeros(0)
    shared: dict[str, Any] = {
        "contiguous": contiguous,
        "breaking": breaking,
        "cost_only": True,
        "backend": backend,
        "threads": threads,
        "memory_limit": memory_limit,
    }
    with within(None if time_limit is None else check_time_limit(time_limit)):
        count = len(ruled_out)
        try:
            others = align_many(
                flow,
                [match] * count,
                [drop] * count,
                [skip] * count,
                repeats=[repeat] * count,
                durations=[durations] * count,
                constraints=ruled_out,
                **shared,
            )
            costs = [other.cost for other in others]
        except InfeasibleError:  # of some segments; which of them is told one by one
            costs = [
                _cost(flow, match, drop, skip, repeat=repeat, durations=durations, constraints=rules, **shared)
                for rules in ruled_out
            ]
    # Rounding may carry an equally good alternative a hair below the optimum.
    return np.maximum(np.array(costs, np.float64) - found.cost, 0.0)


def _cost(*costs: Any, **options: Any) -> float:
    try:
        return align(*costs, **options).cost
    except InfeasibleError:
        return np.inf
