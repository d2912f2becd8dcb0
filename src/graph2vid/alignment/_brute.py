"""The oracle: every topological sort through Drop-DTW, keep the cheapest.

Nothing here knows of ideals or of the tSort graph. It is exact, slow, and limited to graphs with few sorts.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graph2vid._arrays import Floats
from graph2vid._stopping import go_on
from graph2vid.errors import TooLargeError
from graph2vid.tsort import order_costs

if TYPE_CHECKING:
    from graph2vid.alignment.clip_costs import ClipCosts
    from graph2vid.flow import FlowGraph
    from graph2vid.tsort import PairCosts

Integers = NDArray[np.integer[Any]]

_CHUNK = 4096  # sorts that are worked on at once
_CELLS = 2**22  # of the tables that are kept for the labels


def topological_sorts(flow: FlowGraph) -> Iterator[tuple[int, ...]]:
    """Generate every order of the steps that respects the edges, in lexicographic order."""
    waiting: list[tuple[tuple[int, ...], int]] = [((), 0)]  # beginnings, and their steps as a bit mask
    while waiting:
        order, done = waiting.pop()
        if len(order) == len(flow):
            yield order
        for step in range(len(flow) - 1, -1, -1):
            if not done >> step & 1 and not flow.ancestors[step] & ~done:
                waiting.append(((*order, step), done | 1 << step))


def solve(
    flow: FlowGraph, costs: ClipCosts, contiguous: bool, limit: int = 100_000, violation: float = 1.0
) -> tuple[float, NDArray[np.int64] | None]:
    """Find the cheapest alignment over every topological sort of ``flow``.

    Parameters
    ----------
    flow
        The procedure, of K steps.
    costs
        Of K steps and N clips.
    contiguous
        Whether a step's clips form one unbroken segment.
    limit
        The largest number of topological sorts to go through.
    violation
        Factor of what inverted pairs of steps cost; finite.

    Returns
    -------
    cost
        The smallest cost, ∞ where no finite alignment exists.
    labels : int64 [N] or None
        The step of each clip, -1 for background; among the cheapest the lexicographically smallest, read from
        the last clip backwards. None where there is no finite alignment.

    Raises
    ------
    TooLargeError
        When there are more than ``limit`` topological sorts.
    """
    sorts: list[tuple[int, ...]] = []
    for sort in itertools.islice(topological_sorts(flow.sure), limit + 1):
        if len(sorts) % _CHUNK == 0:
            go_on()
        sorts.append(sort)
    if len(sorts) > limit:
        raise TooLargeError(
            f"the graph of {len(flow)} steps has more than {limit} topological sorts, too many to try one by "
            "one; use method='exact', or raise the limit"
        )
    orders, order = np.array(sorts, np.intp), order_costs(flow, violation)
    ends = (deque(_columns(chunk, costs, contiguous, order), maxlen=1)[0] for chunk in _chunks(orders, _CHUNK))
    totals = np.concatenate([best[:, -1] for best, _ in ends])
    cost = totals.min()
    if not math.isfinite(cost):
        return math.inf, None
    few = max(1, _CELLS // (orders.shape[1] + 1) // len(costs.drop))
    candidates = [_labels(chunk, costs, contiguous, order) for chunk in _chunks(orders[totals == cost], few)]
    return float(cost), min(candidates, key=lambda labels: tuple(labels[::-1]))


def _chunks(orders: Integers, size: int) -> Iterator[Integers]:
    for start in range(0, len(orders), size):
        yield orders[start : start + size]


def _begin_costs(orders: Integers, costs: ClipCosts, order: PairCosts | None) -> Floats:
    """[T, K] the cost of beginning each step of ``orders`` when those before it are done."""
    begin = np.zeros(orders.shape, costs.match.dtype)
    if order is not None:
        for later in range(orders.shape[1]):
            begin[:, later] = order[orders[:, later, None], orders[:, :later]].sum(axis=1)
    return begin


def _columns(
    orders: Integers, costs: ClipCosts, contiguous: bool, order: PairCosts | None
) -> Iterator[tuple[Floats, Floats]]:
    """Yield ``best`` and ``last`` of Drop-DTW on each of ``orders`` [T, K], [T, K+1], after 0, 1, … clips.

    ``best[:, k]``: the first k steps are done. ``last[:, k]``: and the k-th of them is the last one shown (if
    contiguous: by the last clip); k = 0 is the start, when nothing has been shown.
    """
    last = np.full((len(orders), orders.shape[1] + 1), np.inf, costs.match.dtype)
    last[:, 0] = 0
    best, begin = last.copy(), _begin_costs(orders, costs, order)
    for clip in range(len(costs.drop) + 1):
        go_on()
        if clip:
            shows = np.full_like(last, np.inf)
            shows[:, 1:] = costs.match[orders, clip - 1] + np.minimum(best[:, :-1] + begin, last[:, 1:])
            best = np.minimum(shows, (best if contiguous else last) + costs.drop[clip - 1])
            last = shows if contiguous else best.copy()
        if costs.skip is not None:
            for k, step in enumerate(orders.T):
                np.minimum(best[:, k + 1], best[:, k] + costs.skip[step], out=best[:, k + 1])
        yield best, last


def _labels(orders: Integers, costs: ClipCosts, contiguous: bool, order: PairCosts | None) -> NDArray[np.int64]:
    """[N] smallest label sequence, read backwards, among the cheapest alignments of equally cheap ``orders``.

    All of them are traced back side by side, those alone going on that have the smallest label at each clip:
    ``at_best`` and ``at_last`` tell the cells of the tables that they pass.
    """
    columns, begin = list(_columns(orders, costs, contiguous, order)), _begin_costs(orders, costs, order)
    at_best, at_last = np.zeros((2, *columns[-1][0].shape), bool)
    at_best[:, -1] = True
    labels = np.empty(len(costs.drop), np.int64)
    for clip in range(len(labels) - 1, -1, -1):
        go_on()
        (best, last), (best_before, last_before) = columns[clip + 1], columns[clip]
        if costs.skip is not None:
            for k in range(orders.shape[1], 0, -1):
                at_best[:, k - 1] |= at_best[:, k] & (best[:, k - 1] + costs.skip[orders[:, k - 1]] == best[:, k])
        at_last |= at_best & (last == best)
        at, before, after = (at_best, best_before, best) if contiguous else (at_last, last_before, last)
        rests = at & (before + costs.drop[clip] == after)
        if rests.any():
            labels[clip] = -1
            at_best, at_last = (rests, np.zeros_like(rests)) if contiguous else (np.zeros_like(rests), rests)
            continue
        from_best, from_last = best_before[:, :-1] + begin, last_before[:, 1:]
        shows = at_last[:, 1:] & (costs.match[orders, clip] + np.minimum(from_best, from_last) == last[:, 1:])
        labels[clip] = orders[shows].min()
        shows &= orders == labels[clip]
        at_best, at_last = np.zeros((2, *best.shape), bool)
        at_best[:, :-1] = shows & (from_best <= from_last)
        at_last[:, 1:] = shows & (from_last <= from_best)
    return labels
