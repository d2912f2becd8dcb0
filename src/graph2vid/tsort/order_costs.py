"""Costs of doing steps in another order than soft edges expect, and orders that are left out for being far from it."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from graph2vid.errors import TooLargeError
from graph2vid.flow import FlowGraph, bits

PairCosts = npt.NDArray[np.float64]


def order_costs(flow: FlowGraph, violation: float = 1.0) -> PairCosts | None:
    """Return the cost of each inverted pair of steps, [K, K]; None where every legal order costs the same.

    Entry (u, v) is due when step u begins after step v was done, though a soft edge expects u first: the log-odds of
    the edge. Pairs that certain edges put in order cost nothing.

    Parameters
    ----------
    flow : FlowGraph
    violation : float
        Factor of all costs; finite.
    """
    if not violation or not flow.confidences:
        return None
    costs = np.zeros((len(flow), len(flow)))
    for (before, after), sure in flow.confidence.items():
        if 0.5 < sure < 1.0:
            costs[before, after] = np.log(sure / (1.0 - sure))
    for step, later in enumerate(flow.sure.descendants):
        fixed = list(bits(later))
        costs[step, fixed] = costs[fixed, step] = 0.0
    return costs * violation if costs.any() else None


def made_certain(flow: FlowGraph) -> FlowGraph:
    """Return the procedure with all soft edges taken as certain."""
    return flow.with_confidence(dict.fromkeys(flow.edges, 1.0))


@dataclass(frozen=True)
class Restrictions:
    """Ways to leave out legal orders of a procedure that are far from the expected one, from none to all but that one.

    Number n keeps steps in order that stand more than K - 1 - n places apart in the topological order of all edges;
    alternatives may go anywhere.

    Attributes
    ----------
    flow : FlowGraph
        Of K steps.
    free : frozenset of int
        Steps that may go anywhere.
    """

    flow: FlowGraph
    free: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.flow)

    def __getitem__(self, number: int) -> FlowGraph:
        if not number:
            return self.flow
        free = self.free.union(step for group in self.flow.alternatives for branch in group for step in branch)
        steps = [step for step in self.flow.topological_order if step not in free]
        apart = len(self.flow) - number
        far = {(step, later): 1.0 for place, step in enumerate(steps) for later in steps[place + apart :]}
        return self.flow.with_edges({**self.flow.confidence, **far})

    def report(self, number: int) -> dict[str, Any]:
        """Return what an answer's options say of a restriction."""
        return {"displacement": len(self.flow) - 1 - number} if number else {}

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
