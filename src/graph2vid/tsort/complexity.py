"""What a procedure costs: its legal orders, its tSort graph, and the speed-up of one over the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from graph2vid.errors import TooLargeError
from graph2vid.flow import FlowGraph, refuse_large
from graph2vid.tsort.bounds import ideals_bound, work_per_ideal
from graph2vid.tsort.count import SortCount, count_sorts, work_within
from graph2vid.tsort.thread_formulas import ThreadFigures, log10, speed_up
from graph2vid.tsort.tsort_graph import DEFAULT_LIMIT, TSortGraph

# Python refuses to write, and readers to read, whole numbers of more digits than this or so.
_LARGEST_WRITTEN = 10**4000


@dataclass(frozen=True)
class Complexity:
    """The numbers of one procedure.

    Attributes
    ----------
    n_steps : int
        Steps, n.
    n_threads : int
        Threads, T: the largest number of steps of which none must come before another.
    sorts : SortCount
        Topological sorts, exact or bounded.
    ideals : tuple of int
        Lower and upper bound of the number of legal sets of done steps; equal where it is known.
    n_nodes : int or None
        Nodes of the tSort graph, root counted and no sink; None where the graph is beyond the limit.
    """

    n_steps: int
    n_threads: int
    sorts: SortCount
    ideals: tuple[int, int]
    n_nodes: int | None

    @classmethod
    def of_threads(cls, lengths: Sequence[int]) -> Complexity:
        """Return the numbers of separate threads, by closed formulas."""
        figures = ThreadFigures(tuple(lengths))
        sorts, ideals = figures.n_sorts, figures.n_ideals
        exact = SortCount(sorts, sorts, sorts)
        return cls(figures.n_steps, len(figures.lengths), exact, (ideals, ideals), figures.n_nodes)

    @classmethod
    def of_flow(cls, flow: FlowGraph, limit: int = DEFAULT_LIMIT) -> Complexity:
        """Return the numbers of a flow graph; beyond ``limit`` ideals, bounds of what cannot be counted."""
        refuse_large(len(flow), "counting its orders")
        sorts = count_sorts(flow, limit)
        limit = min(limit, work_within(limit) // work_per_ideal(flow))
        try:
            graph = TSortGraph.compile(flow, limit)
        except TooLargeError:
            lower, upper = ideals_bound(flow)
            return cls(len(flow), flow.width, sorts, (max(lower, limit + 1), upper), None)
        ideals = (graph.n_ideals, graph.n_ideals)
        return cls(len(flow), flow.width, sorts, ideals, 1 + graph.n_states)

    @property
    def speed_up(self) -> Fraction | None:
        """The ratio ρ of :func:`graph2vid.tsort.thread_formulas.speed_up`; None where a part of it is not known."""
        if self.sorts.exact is None or self.n_nodes is None:
            return None
        return speed_up(self.sorts.exact, self.n_steps, self.n_nodes, self.n_threads)

    def to_json(self) -> dict[str, Any]:
        """Return the numbers for JSON; null where one is not known, or too large to be written."""
        ratio = self.speed_up
        exponent = None if ratio is None else log10(ratio)
        return {
            "threads": self.n_threads,
            "steps": self.n_steps,
            "sorts": _written(self.sorts.exact),
            "sorts_bounds": [_written(self.sorts.lower), _written(self.sorts.upper)],
            "ideals_bounds": [_written(bound) for bound in self.ideals],
            "nodes": _written(self.n_nodes),
            "speed_up": None if ratio is None or exponent is None or exponent > 300 else float(ratio),
            "log10_speed_up": exponent,
        }


def _written(number: int | None) -> int | None:
    return None if number is None or number > _LARGEST_WRITTEN else number
