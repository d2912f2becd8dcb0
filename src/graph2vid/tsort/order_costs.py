"""Costs of doing steps in another order than guessed: soft edges, and the order in which steps are written."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from graph2vid.errors import TooLargeError
from graph2vid.flow import FlowGraph, bits

PairCosts = npt.NDArray[np.float64]


def order_costs(flow: FlowGraph, violation: float = 1.0) -> PairCosts | None:
    """Return the cost of each inverted pair of steps, [K, K]; None where every legal order costs the same.

    Entry (u, v) is due when step u begins after step v was done, though u was expected first: the log-odds of a soft
    edge (u, v), and ``written_order / (v - u)`` for steps written in this order. Pairs that certain edges put in order
    cost nothing.

    Parameters
    ----------
    flow : FlowGraph
    violation : float
        Factor of all costs; finite.
    """
    if not violation or not flow.is_soft:
        return None
    count = len(flow)
    costs = np.zeros((count, count))
    if flow.written_order:
        distance = np.arange(count) - np.arange(count)[:, None]
        ordered = distance > 0
        ordered[list(flow.unordered)] = ordered[:, list(flow.unordered)] = False
        costs[ordered] = flow.written_order / distance[ordered]
    for (before, after), sure in flow.confidence.items():
        if 0.5 < sure < 1.0:
            costs[before, after] += np.log(sure / (1.0 - sure))
    for step, later in enumerate(flow.sure.descendants):
        fixed = list(bits(later))
        costs[step, fixed] = costs[fixed, step] = 0.0
    return costs * violation if costs.any() else None


def made_certain(flow: FlowGraph) -> FlowGraph:
    """Return the procedure with all that is guessed taken as certain: soft edges, and the written order."""
    certain = flow.with_confidence(dict.fromkeys(flow.edges, 1.0))
    if flow.written_order:
        steps = [step for step in certain.topological_order if step not in flow.unordered]
        chain = dict.fromkeys(pairwise(steps), 1.0)
        certain = certain.with_edges({**certain.confidence, **chain})
    return replace(certain, written_order=0.0, unordered=())


def within_displacement(flow: FlowGraph, most: int, free: frozenset[int] = frozenset()) -> FlowGraph:
    """Return the procedure in which steps written more than ``most`` places apart keep their order.

    Steps that are ``free``, or not in the written order, may go anywhere. Pairs that certain edges put in the other
    order keep that one, and soft edges that contradict what is certain then are left out.
    """
    steps = [step for step in range(len(flow)) if step not in free and step not in flow.unordered]
    far = [(step, later, 1.0) for step in steps for later in steps if later - step > most]
    soft = sorted(((*edge, sure) for edge, sure in flow.confidence.items() if sure < 1.0), key=lambda edge: -edge[2])
    edges = {edge: sure for edge, sure in flow.confidence.items() if sure == 1.0}
    follows = list(flow.sure.descendants)  # grows with each edge, so that none closes a cycle
    for step, later, sure in [*far, *soft]:
        if follows[later] >> step & 1 or edges.get((step, later)) == 1.0:
            continue
        edges[step, later] = sure
        gained = follows[later] | 1 << later
        follows = [mask | gained if mask >> step & 1 or other == step else mask for other, mask in enumerate(follows)]
    return flow.with_edges(edges)


@dataclass(frozen=True)
class Restrictions:
    """Ways to leave out legal orders of a procedure that are far from the expected one, from none to all but that one.

    With a written order, number n keeps steps within K - 1 - n places of one another in order; otherwise number n takes
    the n surest soft edges as certain.

    Attributes
    ----------
    flow : FlowGraph
        Of K steps.
    free : frozenset of int
        Steps that the written order does not hold.
    """

    flow: FlowGraph
    free: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.flow) if self.flow.written_order else len(self._soft) + 1

    def __getitem__(self, number: int) -> FlowGraph:
        if not number:
            return self.flow
        if self.flow.written_order:
            return within_displacement(self.flow, len(self.flow) - 1 - number, self.free)
        return self.flow.with_confidence(dict.fromkeys(self._soft[:number], 1.0))

    def report(self, number: int) -> dict[str, Any]:
        """Return what an answer's options say of a restriction."""
        if not number:
            return {}
        if self.flow.written_order:
            return {"displacement": len(self.flow) - 1 - number}
        return {"made_certain": [list(edge) for edge in self._soft[:number]]}

    @property
    def _soft(self) -> list[tuple[int, int]]:
        soft = (edge for edge, confidence in self.flow.confidence.items() if confidence < 1.0)
        return sorted(soft, key=lambda edge: (-self.flow.confidence[edge], edge))

    def fitting(self, ideals: int, states: int | None = None) -> int:
        """Return the number of the mildest restriction whose lattice has so few ideals, and states; else the last."""
        return _fitting(self, ideals, states)


@lru_cache(maxsize=64)
def _fitting(restrictions: Restrictions, ideals: int, states: int | None) -> int:
    from graph2vid.tsort.tsort_graph import TSortGraph

    def fits(number: int) -> bool:
        try:
            lattice = TSortGraph.compile(restrictions[number].sure, ideals)
        except TooLargeError:
            return False
        return states is None or lattice.n_states <= states

    if fits(0):
        return 0
    return min(bisect_left(range(len(restrictions)), True, lo=1, key=fits), len(restrictions) - 1)
