"""The oracle: every topological sort through Drop-DTW, keep the cheapest.

Nothing here knows of ideals or of the tSort graph. It is exact, slow, and limited to graphs with few sorts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid._stopping import go_on
from graph2vid.errors import TooLargeError

if TYPE_CHECKING:
    from graph2vid.flow import FlowGraph

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]

_CHUNK = 4096  # sorts that are worked on at once


def topological_sorts(flow: FlowGraph) -> Iterator[tuple[int, ...]]:
    """Generate every order of the steps that respects the edges, in lexicographic order."""
    missing = [len(before) for before in flow.predecessors]  # -1 once the step is placed
    order: list[int] = []
    candidate = 0
    while True:
        while candidate < len(flow) and missing[candidate]:
            candidate += 1
        if candidate < len(flow):
            missing[candidate] = -1
            for follower in flow.successors[candidate]:
                missing[follower] -= 1
            order.append(candidate)
            candidate = 0
            continue
        if len(order) == len(flow):
            yield tuple(order)
        if not order:
            return
        last = order.pop()
        missing[last] = 0
        for follower in flow.successors[last]:
            missing[follower] += 1
        candidate = last + 1


def solve(
    flow: FlowGraph,
    match: Floats,
    drop: Floats,
    skip: Floats | None,
    *,
    contiguous: bool,
    limit: int = 100_000,
) -> tuple[float, NDArray[np.int64] | None]:
    """Find the cheapest alignment over every topological sort of ``flow``.

    Parameters
    ----------
    flow
        The procedure, of K steps.
    match : [K, N]
        Cost of showing a step in a clip.
    drop : [N]
        Cost of a clip as background.
    skip : [K], optional
        Cost of a step that is not shown; without it every step must be shown.
    contiguous
        Whether a step's clips form one unbroken segment.
    limit
        The largest number of topological sorts to go through.

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
    for order in itertools.islice(topological_sorts(flow), limit + 1):
        if len(sorts) % _CHUNK == 0:
            go_on()
        sorts.append(order)
    orders = np.array(sorts, np.intp)
    if len(orders) > limit:
        raise TooLargeError(
            f"the graph of {len(flow)} steps has more than {limit} topological sorts, too many to try one by "
            "one; use method='exact', or raise the limit"
        )
    costs = np.concatenate(
        [_costs(chunk, match, drop, skip, contiguous) for chunk in _chunks(orders)], dtype=match.dtype
    )
    cost = costs.min()
    if not math.isfinite(cost):
        return math.inf, None
    cheapest = orders[costs == cost]
    candidates = [_labels(chunk, match, drop, skip, contiguous) for chunk in _chunks(cheapest)]
    return float(cost), min(candidates, key=lambda labels: tuple(labels[::-1]))


def _chunks(orders: Integers) -> Iterator[Integers]:
    for start in range(0, len(orders), _CHUNK):
        yield orders[start : start + _CHUNK]


def _costs(orders: Integers, match: Floats, drop: Floats, skip: Floats | None, contiguous: bool) -> Floats:
    """[T] cost of Drop-DTW on each of ``orders`` [T, K], clip by clip.

    ``best[:, k]``: the first k steps are done. ``last[:, k]``: and the k-th of them is the last one shown (if
    contiguous: by the last clip); k = 0 is the start, when nothing has been shown.
    """
    last = _start(orders, match.dtype)
    best = last.copy()
    _waive(best, orders, skip)
    for clip in range(match.shape[1]):
        go_on()
        shows = np.full_like(last, np.inf)
        shows[:, 1:] = match[orders, clip] + np.minimum(best[:, :-1], last[:, 1:])
        either = np.minimum(shows, (best if contiguous else last) + drop[clip])
        last = shows if contiguous else either
        best = either.copy()
        _waive(best, orders, skip)
    return best[:, -1]


def _start(orders: Integers, dtype: np.dtype[Any]) -> Floats:
    start = np.full((len(orders), orders.shape[1] + 1), np.inf, dtype)
    start[:, 0] = 0
    return start


def _waive(best: Floats, orders: Integers, skip: Floats | None) -> None:
    if skip is not None:
        for k in range(orders.shape[1]):
            np.minimum(best[:, k + 1], best[:, k] + skip[orders[:, k]], out=best[:, k + 1])


class _Ranked(NamedTuple):
    """Costs, and the rank of the labels behind each: a smaller label sequence has a smaller rank."""

    cost: Floats
    rank: Integers

    def columns(self, columns: slice) -> _Ranked:
        return _Ranked(self.cost[:, columns], self.rank[:, columns])


def _smaller(a: _Ranked, b: _Ranked) -> _Ranked:
    first = (a.cost < b.cost) | ((a.cost == b.cost) & (a.rank < b.rank))
    return _Ranked(np.where(first, a.cost, b.cost), np.where(first, a.rank, b.rank))


def _labels(orders: Integers, match: Floats, drop: Floats, skip: Floats | None, contiguous: bool) -> NDArray[np.int64]:
    """[N] smallest label sequence, read backwards, among the cheapest alignments of equally cheap ``orders``.

    The recursion of :func:`_costs` over (cost, labels read backwards). Label sequences of one length are
    compared by their last label and then by the rank of what stands before it; numbering these pairs in order
    at each clip gives the next ranks, and the pairs themselves lead back from the last clip to the first.
    """
    n_clips = match.shape[1]
    start = _start(orders, match.dtype)
    last = _Ranked(start, np.zeros(start.shape, np.int64))
    best = _waive_ranked(last, orders, skip)
    label = np.pad(orders, ((0, 0), (1, 0)), constant_values=-1)
    pairs: list[Integers] = []
    for clip in range(n_clips):
        go_on()
        before = _smaller(best.columns(slice(None, -1)), last.columns(slice(1, None)))
        shows_cost = np.pad(match[orders, clip] + before.cost, ((0, 0), (1, 0)), constant_values=np.inf)
        shows_rank = np.pad(before.rank, ((0, 0), (1, 0)))
        rests = best if contiguous else last

        # The pair (label, rank before) as one number, in which background counts 0.
        n_ranks = int(max(shows_rank.max(), rests.rank.max())) + 1
        keys = np.stack([(label + 1) * n_ranks + shows_rank, rests.rank])
        distinct, ranks = np.unique(keys, return_inverse=True)
        pairs.append(np.stack([distinct // n_ranks - 1, distinct % n_ranks]))
        ranks = ranks.reshape(keys.shape)

        shows = _Ranked(shows_cost, ranks[0])
        either = _smaller(shows, _Ranked(rests.cost + drop[clip], ranks[1]))
        last = shows if contiguous else either
        best = _waive_ranked(either, orders, skip)

    rank = int(best.rank[np.lexsort((best.rank[:, -1], best.cost[:, -1]))[0], -1])
    labels = np.empty(n_clips, np.int64)
    for clip in range(n_clips - 1, -1, -1):
        go_on()
        labels[clip], rank = pairs[clip][:, rank]
    return labels


def _waive_ranked(best: _Ranked, orders: Integers, skip: Floats | None) -> _Ranked:
    if skip is None:
        return best
    cost, rank = best.cost.copy(), best.rank.copy()
    for k in range(orders.shape[1]):
        waived = _Ranked(cost[:, k] + skip[orders[:, k]], rank[:, k])
        cost[:, k + 1], rank[:, k + 1] = _smaller(waived, _Ranked(cost[:, k + 1], rank[:, k + 1]))
    return _Ranked(cost, rank)
