"""What a procedure costs: its legal orders, its tSort graph, and the speed-up of one over the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from graph2vid.errors import InputError, TooLargeError
from graph2vid.flow import FlowGraph, bits, reduction_edges, refuse_large
from graph2vid.tsort.bounds import WORK, ideals_bound, work_per_ideal
from graph2vid.tsort.tsort_graph import DEFAULT_LIMIT, TSortGraph

# Python refuses to write, and readers to read, whole numbers of more digits than this or so.
_LARGEST_WRITTEN = 10**4000

# -- counting topological sorts, exactly where it can be done, within stated bounds elsewhere --------------------


@dataclass(frozen=True)
class SortCount:
    """The number of topological sorts of a flow graph: ``lower`` ≤ number ≤ ``upper``.

    Attributes
    ----------
    exact : int or None
        The number itself, where it could be had.
    lower, upper : int
        Proven bounds; equal to ``exact`` where that is known.
    """

    exact: int | None
    lower: int
    upper: int


def count_sorts(flow: FlowGraph, limit: int = 2**20) -> SortCount:
    """Count the topological sorts of a flow graph.

    Parts that no order connects are counted apart and shuffled (a multinomial coefficient); where some steps
    all come before all others, the two parts are counted apart and multiplied. A part that cannot be split
    further is counted over its ideals; if it has more of them than ``limit``, it is bounded. So it is where all this
    would take more than a second or so, which many ideals of many steps do.

    Parameters
    ----------
    flow : FlowGraph
        The procedure.
    limit : int
        The largest number of ideals of one part. One beyond the limit of a tSort graph lets the count take longer, too.

    Returns
    -------
    SortCount
    """
    lower = upper = 1
    reduced: list[list[int]] = [[] for _ in range(len(flow))]
    for step, later in reduction_edges(flow.successors, flow.descendants):
        reduced[step].append(later)
    work = work_within(limit)
    parts = [(1 << len(flow)) - 1]
    while parts:
        part = parts.pop()
        components = _components(flow, part)
        if len(components) > 1:
            shuffles = _multinomial([component.bit_count() for component in components])
            lower, upper = lower * shuffles, upper * shuffles
            parts.extend(components)
            continue
        if len(finer := sections(flow, part)) > 1:
            parts.extend(finer)
            continue
        least, most, done = _count_part(_restricted(flow, reduced, part), limit, work)
        lower, upper, work = lower * least, upper * most, work - done
    return SortCount(lower if lower == upper else None, lower, upper)


def work_within(limit: int) -> int:
    """Return the work that may go into counting, in the units of ``work_per_ideal``; more where the limit is raised."""
    return WORK * max(limit, DEFAULT_LIMIT) // DEFAULT_LIMIT


def _components(flow: FlowGraph, part: int) -> list[int]:
    """Split a set of steps (a bit mask) into the finest parts with no order between them."""
    components = []
    left = part
    while left:
        component, fresh = 0, left & -left
        while fresh:
            component |= fresh
            related = 0
            for step in bits(fresh):
                related |= flow.ancestors[step] | flow.descendants[step]
            fresh = related & part & ~component
        components.append(component)
        left &= ~component
    return components


def sections(flow: FlowGraph, part: int) -> list[int]:
    """Split a set of steps into the finest sequence of sections, each wholly before the next.

    The steps of a first section have fewer ancestors in the part than there are steps in the section, all
    others have at least as many: sorted by that number, every cut lies between neighbours.
    """
    steps = sorted(bits(part), key=lambda step: (flow.ancestors[step] & part).bit_count())
    before_all_later = [part] * (len(steps) + 1)
    for position in range(len(steps) - 1, -1, -1):
        before_all_later[position] = before_all_later[position + 1] & flow.ancestors[steps[position]]
    cuts, earlier = [0], 0
    for position, step in enumerate(steps[:-1], start=1):
        earlier |= 1 << step
        if earlier & ~before_all_later[position] == 0:
            cuts.append(position)
    cuts.append(len(steps))
    return [sum(1 << step for step in steps[start:stop]) for start, stop in pairwise(cuts)]


def _restricted(flow: FlowGraph, reduced: Sequence[Sequence[int]], part: int) -> FlowGraph:
    """Return the order among the steps of ``part`` as a flow graph of its own.

    ``reduced`` holds the successors of each step in the reduction of the flow graph. Whatever lies between two steps
    of a part lies in it as well, so what the reduction of the part holds is that of the whole.
    """
    steps = list(bits(part))
    place = {step: index for index, step in enumerate(steps)}
    edges = [(place[step], place[later]) for step in steps for later in reduced[step] if later in place]
    return FlowGraph.from_edges([flow.steps[step] for step in steps], edges)


def _count_part(flow: FlowGraph, limit: int, work: int) -> tuple[int, int, int]:
    """Return a lower and an upper bound of the number of sorts, equal where they are counted, and the work done."""
    if len(flow) == 1:
        return 1, 1, 0
    cost = work_per_ideal(flow)
    limit = min(limit, work // cost)
    done = 0
    if limit and min(2 ** len(flow), ideals_bound(flow)[0]) <= limit:
        try:
            graph = TSortGraph.compile(flow, limit)
            return graph.n_sorts, graph.n_sorts, graph.n_ideals * cost
        except TooLargeError:
            done = limit * cost
    # Forgetting the order between the chains of a cover only adds sorts.
    return _lower_bound(flow), _multinomial([len(chain) for chain in flow.chain_cover()]), done


def _lower_bound(flow: FlowGraph) -> int:
    """Return the best of three lower bounds.

    A random order has every step first among itself and its descendants with probability at least Π 1/(1 +
    descendants) (the hook inequality of Hammett and Pittel, an equality for forests); the same holds for
    ancestors; and doing the steps depth by depth leaves each depth's steps free among themselves.
    """
    n_orders = math.factorial(len(flow))
    depth = [0] * len(flow)
    for step in flow.topological_order:
        depth[step] = max((depth[before] + 1 for before in flow.predecessors[step]), default=0)
    hooks = [math.prod(1 + mask.bit_count() for mask in masks) for masks in (flow.ancestors, flow.descendants)]
    by_depth = math.prod(math.factorial(depth.count(value)) for value in set(depth))
    return max(by_depth, *(-(-n_orders // hook) for hook in hooks))


def _multinomial(sizes: Sequence[int]) -> int:
    """Return (Σ sizes)! / Π sizes!, the number of ways to shuffle sequences of these lengths."""
    return math.factorial(sum(sizes)) // math.prod(math.factorial(size) for size in sizes)


# -- the numbers of a procedure ---------------------------------------------------------------------------------


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
        """Return the numbers of separate threads of n₁ … n_T ≥ 1 steps under one added root, by closed formulas.

        Topological sorts: n! / (n₁! … n_T!); ideals: Π (n_t + 1); nodes: 1 + Σ_t n_t Π_{j≠t} (n_j + 1).
        """
        if not lengths or min(lengths) < 1:
            raise InputError(f"every thread needs at least one step, and there must be one: {list(lengths)}")
        sorts = _multinomial(lengths)
        ideals = math.prod(length + 1 for length in lengths)
        nodes = 1 + sum(length * ideals // (length + 1) for length in lengths)
        return cls(sum(lengths), len(lengths), SortCount(sorts, sorts, sorts), (ideals, ideals), nodes)

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
        """ρ = N_ts·|V_G| / (T·|V_S|): the work of trying every sort against that of the tSort graph.

        |V_G| counts the added root, and T bounds the predecessors of a node. None where a part of it is not known.
        """
        if self.sorts.exact is None or self.n_nodes is None:
            return None
        return Fraction(self.sorts.exact * (self.n_steps + 1), self.n_threads * self.n_nodes)

    def to_json(self) -> dict[str, Any]:
        """Return the numbers for JSON; null where one is not known, or too large to be written."""
        ratio = self.speed_up
        exponent = None if ratio is None else math.log10(ratio.numerator) - math.log10(ratio.denominator)
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


def even_threads(n_steps: int, n_threads: int) -> tuple[int, ...]:
    """Split ``n_steps`` steps over threads whose lengths differ by at most one, the longer ones first."""
    if not 1 <= n_threads <= n_steps:
        raise InputError(f"{n_steps} steps cannot fill {n_threads} threads: there must be 1 to {n_steps} of them")
    short, longer = divmod(n_steps, n_threads)
    return (short + 1,) * longer + (short,) * (n_threads - longer)
