"""The tSort graph: all legal orders of a procedure, packed by what is done so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from graph2vid._memory import available_memory
from graph2vid.errors import InputError, TooLargeError
from graph2vid.flow import FlowGraph, bits, mask_of
from graph2vid.tsort.bounds import MAX_IDEALS, bytes_per_ideal, ideals_bound, too_large
from graph2vid.tsort.lattice import Builder, Indices, Masks, Offsets, build_lattice, flags_of, words_of
from graph2vid.tsort.order_costs import PairCosts, made_certain, order_costs

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes

DEFAULT_LIMIT = 2**22
"""Ideals that :meth:`TSortGraph.compile` allows unless told otherwise."""

_FREE_IDEALS = 2**16  # for so few nobody asks how much memory there is

_by_number: WeakValueDictionary[int, TSortGraph] = WeakValueDictionary()
_numbers = count()


class SkipArcs(NamedTuple):
    """Ways for a step to begin: the state that is entered, the ideal left, and the steps waived, uint64 [n, W]."""

    state: npt.NDArray[np.int64]
    origin: npt.NDArray[np.int64]
    waived: Masks


@dataclass(frozen=True, eq=False, repr=False)
class TSortGraph:
    """A procedure compiled once, to be aligned with many videos; made by :meth:`compile`.

    An *ideal* is a legal set of done steps. A *state* (v, P) is an ideal P with the step v that was done
    last; the states that can precede it are those of the ideal P∖v, so no lists of edges are kept. Ideals lie
    in level order (level = number of steps done), then by mask read as an integer: ideal 0 is empty, the last
    one holds all steps. The start (nothing done) is an ideal, not a state. All arrays are C-contiguous and
    read-only.

    Attributes
    ----------
    flow : FlowGraph
        The procedure, of K steps.
    masks : uint64 [I, W]
        The ideals as bit sets, W = ⌈K/64⌉; bit i%64 of word i//64 is step i.
    level_start : int64 [K+2]
        Ideals of level k are ``level_start[k]:level_start[k+1]``.
    state_start : int64 [I+1]
        States of ideal i are ``state_start[i]:state_start[i+1]``.
    state_step : int32 [S]
        The last step of each state, ascending within an ideal.
    state_from : int32 [S]
        The index of the state's ideal without that step.
    order : float64 [K, K] or None
        The cost of beginning a step (row) when another one (column) is done; see
        :func:`~graph2vid.tsort.order_costs.order_costs`. None: legal orders cost nothing.
    number : int
        Its own in this process, for what can hold numbers alone; see :meth:`numbered`.
    """

    flow: FlowGraph
    masks: Masks
    level_start: Offsets
    state_start: Offsets
    state_step: Indices
    state_from: Indices
    order: PairCosts | None = None
    number: int = field(default_factory=_numbers.__next__)

    def __post_init__(self) -> None:
        _by_number[self.number] = self

    @staticmethod
    def numbered(number: int) -> TSortGraph:
        """Return the graph of a number, as long as somebody else holds it."""
        return _by_number[number]

    @classmethod
    def compile(cls, flow: FlowGraph, limit: int | None = None, *, build: Builder = build_lattice) -> TSortGraph:
        """Build the tSort graph of a procedure.

        Parameters
        ----------
        flow : FlowGraph
            The procedure. Only certain edges limit the orders; soft ones raise the cost of some.
        limit : int, optional
            The largest number of ideals, by default 4,194,304; beyond it the procedure is refused, before building
            where that can be told.
        build : callable, optional
            The builder of the arrays; by default the compiled one, or NumPy's where the extension is missing.

        Returns
        -------
        TSortGraph

        Raises
        ------
        TooLargeError
            When there are more ideals than ``limit``, or than fit into memory; the message says how many and what to
            do.
        """
        is_own, limit = limit is not None, DEFAULT_LIMIT if limit is None else limit
        if isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 1:
            raise InputError(f"limit must be a whole number of ideals, at least 1, not {limit!r}")
        limit = min(int(limit), MAX_IDEALS)
        whole, flow = flow, flow.sure
        # 2^K bounds the ideals too, and for few steps it spares the search for a chain cover.
        least = ideals_bound(flow)[0] if 2 ** len(flow) > min(limit, _FREE_IDEALS) else 0
        if least > limit:
            raise too_large(flow, limit, is_own=is_own)
        before = words_of(map(mask_of, flow.predecessors), len(flow))
        lattice = None
        if limit <= _FREE_IDEALS or least <= _FREE_IDEALS:
            try:
                lattice = build(before, min(limit, _FREE_IDEALS))
            except ValueError as error:
                if limit <= _FREE_IDEALS:
                    raise too_large(flow, limit, is_own=is_own) from error
        if lattice is None:
            fitting = max(_FREE_IDEALS, available_memory() // 2 // bytes_per_ideal(flow))
            try:
                lattice = build(before, min(limit, fitting))
            except ValueError as error:
                raise too_large(flow, min(limit, fitting), in_memory=fitting < limit, is_own=is_own) from error
        for array in lattice:
            array.setflags(write=False)
        return cls(whole, *lattice, order_costs(whole))

    def __reduce__(self) -> tuple[Any, ...]:
        # Compiling again is quicker than moving the arrays, and they stay read-only.
        return (_compiled_again, (self.flow, self.n_ideals, self.order))

    def with_violation(self, violation: float) -> TSortGraph:
        """Return the graph with the costs of inverted pairs multiplied; +∞: what is guessed is certain."""
        if not self.flow.confidences or violation == 1.0:
            return self
        made: dict[float, TSortGraph] = vars(self).setdefault("_with_violation", {})
        if violation not in made:
            is_certain = violation == np.inf
            costs = None if is_certain else order_costs(self.flow, violation)
            made[violation] = TSortGraph.compile(made_certain(self.flow)) if is_certain else self.with_order(costs)
        return made[violation]

    def with_order(self, order: PairCosts | None) -> TSortGraph:
        """Return the graph with other costs of inverted pairs."""
        return replace(self, order=order, number=next(_numbers))

    def __repr__(self) -> str:
        return f"TSortGraph({self.flow!r}, {self.n_ideals:,} ideals, {self.n_states:,} states)"

    @property
    def n_steps(self) -> int:
        """Number of steps, K."""
        return len(self.flow)

    @property
    def n_ideals(self) -> int:
        """Number of legal sets of done steps, the empty one included, I."""
        return len(self.masks)

    @property
    def n_states(self) -> int:
        """Number of states (v, P), S; the start is not one of them."""
        return len(self.state_step)

    @cached_property
    def n_edges(self) -> int:
        """Number of edges into states, those from the start included."""
        sources = np.diff(self.state_start)
        sources[0] = 1  # the start stands for the empty ideal
        return int(sources[self.state_from].sum())

    @cached_property
    def n_sorts(self) -> int:
        """Exact number of topological sorts."""
        return int(deque(self._sorts_by_level(), maxlen=1)[0][0])

    def _sorts_by_level(self) -> Iterator[npt.NDArray[Any]]:
        """Yield in how many legal orders the steps of each ideal can be done, level by level."""
        sorts: npt.NDArray[Any] = np.ones(1, dtype=np.int64)
        yield sorts
        for level in range(1, self.n_steps + 1):
            # Whatever might not fit into 64 bits goes on in Python's integers.
            if sorts.dtype != object and int(sorts.max()) * self.n_steps >= 2**63:
                sorts = sorts.astype(object)
            starts = self.state_start[self.level_start[level] : self.level_start[level + 1] + 1]
            origins = self.state_from[starts[0] : starts[-1]] - self.level_start[level - 1]
            sorts = np.add.reduceat(sorts[origins], starts[:-1] - starts[0])
            yield sorts

    @cached_property
    def state_cost(self) -> npt.NDArray[np.float64] | None:
        """float64 [S]: the cost of beginning each state's step, given what is done then; None: nothing."""
        if self.order is None:
            return None
        costs = flags_of(self.masks, self.n_steps).astype(np.float64) @ self.order.T
        return np.ascontiguousarray(costs[self.state_from, self.state_step])

    @cached_property
    def ideal_of_state(self) -> npt.NDArray[np.int64]:
        """int64 [S]: the index of each state's ideal."""
        return np.repeat(np.arange(self.n_ideals), np.diff(self.state_start))

    def states(self, ideal: int) -> slice:
        """Return which states are those of an ideal."""
        return slice(*self.state_start[ideal : ideal + 2].tolist())

    def mask(self, ideal: int) -> int:
        """Return the steps of an ideal as a bit mask."""
        return int.from_bytes(self.masks[ideal].astype("<u8").tobytes(), "little")

    def skip_arcs(self, skippable: npt.NDArray[np.bool_], limit: int | None = None) -> SkipArcs:
        """List every way to begin a step where steps may be skipped, by state.

        A state (v, P) is entered from P∖v, and from every ideal Q that lacks nothing but ancestors of v: those are
        waived as v begins. From P∖v, ancestors of v that are last in it are taken away one by one; in decreasing
        topological number alone, so that no Q is found twice.

        Parameters
        ----------
        skippable : bool [K]
            The steps that may be skipped at all.
        limit : int, optional
            The largest number of arcs.

        Raises
        ------
        TooLargeError
            Where there are more arcs.
        """
        number = np.empty(self.n_steps, np.int64)
        certain = self.flow.sure
        number[list(certain.topological_order)] = np.arange(self.n_steps)
        is_before = flags_of(words_of(certain.ancestors, self.n_steps), self.n_steps)
        state, origin = np.arange(self.n_states), self.state_from.astype(np.int64)
        last_taken = np.full(self.n_states, self.n_steps)
        rounds = [(state, origin)]
        found = len(state)
        while skippable.any() and len(state):
            count = self.state_start[origin + 1] - self.state_start[origin]
            row = np.repeat(np.arange(len(state)), count)
            taken = np.repeat(self.state_start[origin] - (np.cumsum(count) - count), count) + np.arange(len(row))
            step = self.state_step[taken]
            legal = is_before[self.state_step[state[row]], step] & (number[step] < last_taken[row]) & skippable[step]
            row, taken, step = row[legal], taken[legal], step[legal]
            state, origin, last_taken = state[row], self.state_from[taken].astype(np.int64), number[step]
            rounds.append((state, origin))
            found += len(state)
            if limit is not None and found > limit:
                raise TooLargeError(
                    f"there are over {limit:,} ways to begin a step where steps may be skipped: use a smaller "
                    "procedure, or none of them skipped (skip=None)"
                )
        state, origin = (np.concatenate(parts) for parts in zip(*rounds, strict=True))
        order = np.argsort(state, kind="stable")
        state, origin = state[order], origin[order]
        return SkipArcs(state, origin, self.masks[self.state_from[state]] & ~self.masks[origin])

    def paths(self) -> Iterator[tuple[int, ...]]:
        """Iterate over all topological sorts, one at a time, in lexicographic order.

        Yields
        ------
        tuple of int
            The K step indices in the order in which they are done.
        """
        # Ideals of a level are ordered as integers: those reached from one ideal lie in the order of the steps added.
        leaving = np.argsort(self.state_from, kind="stable")
        start = np.searchsorted(self.state_from[leaving], np.arange(self.n_ideals + 1))
        waiting: list[tuple[tuple[int, ...], int]] = [((), 0)]
        while waiting:
            done, ideal = waiting.pop()
            if len(done) == self.n_steps:
                yield done
            states = leaving[start[ideal] : start[ideal + 1]][::-1]
            reached = zip(self.state_step[states].tolist(), self.ideal_of_state[states].tolist(), strict=True)
            waiting += [((*done, step), after) for step, after in reached]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the graph in a figure (matplotlib), from nothing done to all done, states in their steps' colours.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default in a new figure.

        Raises
        ------
        TooLargeError
            When there are more states than anybody can tell apart.
        """
        from graph2vid.tsort import tsort_drawing

        return tsort_drawing.plot(self, ax)

    def to_svg(self) -> str:
        """Return such a drawing as a self-contained SVG document."""
        from graph2vid.tsort import tsort_drawing

        return tsort_drawing.to_svg(self)

    def _repr_svg_(self) -> str | None:
        from graph2vid.tsort.tsort_drawing import MOST_STATES

        return self.to_svg() if self.n_states <= MOST_STATES else None

    def to_networkx(self) -> networkx.DiGraph:
        """Return the graph as networkx holds it, with a root and a sink added.

        Returns
        -------
        networkx.DiGraph
            Nodes ``(v, front)``: v is a step index, ``"ROOT"`` or ``"SINK"``; front is the frozenset of the
            other done steps (the root among them) of which a direct successor is not done. Every path from
            ``("ROOT", frozenset())`` to ``("SINK", frozenset())`` spells one topological sort.
        """
        import networkx

        certain = self.flow.sure
        successors = [mask_of(after) for after in certain.successors]
        sources, sinks = mask_of(certain.sources), set(certain.sinks)
        root, sink = ("ROOT", frozenset[Any]()), ("SINK", frozenset[Any]())

        def states_of(ideal: int) -> list[tuple[Any, frozenset[Any]]]:
            done = self.mask(ideal)
            # A step without successors waits for the sink, which is never done here.
            front: set[Any] = {step for step in bits(done) if step in sinks or successors[step] & ~done}
            if sources & ~done:
                front.add("ROOT")
            return [(step, frozenset(front - {step})) for step in self.state_step[self.states(ideal)].tolist()]

        graph = networkx.DiGraph()
        graph.add_node(root)
        nodes = [[root]]
        for ideal in range(1, self.n_ideals):
            nodes.append(states_of(ideal))
            for node, origin in zip(nodes[ideal], self.state_from[self.states(ideal)].tolist(), strict=True):
                graph.add_edges_from((before, node) for before in nodes[origin])
        graph.add_edges_from((last, sink) for last in nodes[-1])
        return graph


def _compiled_again(flow: FlowGraph, limit: int, order: PairCosts | None) -> TSortGraph:
    return TSortGraph.compile(flow, limit).with_order(order)


def random_sorts(tsort: TSortGraph, count: int, random: np.random.Generator) -> list[tuple[int, ...]]:
    """Draw topological sorts, all of which are equally likely.

    Goes backwards from the ideal that holds all steps: the chance that a step comes last is the share of the
    sorts that end with it.

    Parameters
    ----------
    tsort : TSortGraph
        The procedure, of K steps.
    count : int
        How many to draw, with replacement.
    random : numpy.random.Generator

    Returns
    -------
    list of tuples of int
        Each the K steps in the order in which they are done.
    """
    if count < 0:
        raise InputError(f"cannot draw {count} orders")
    # Python's integers: the counts outgrow 64 bits, and even floats, long before the ideals are too many.
    sorts = np.concatenate([level.astype(object) for level in tsort._sorts_by_level()])
    drawn = []
    for _ in range(count):
        ideal, reversed_order = tsort.n_ideals - 1, []
        while ideal:
            states = tsort.states(ideal)
            origins = tsort.state_from[states]
            chances = (sorts[origins] / sorts[ideal]).astype(np.float64)
            last = min(int(np.searchsorted(np.cumsum(chances), random.random(), side="right")), len(origins) - 1)
            reversed_order.append(int(tsort.state_step[states][last]))
            ideal = int(origins[last])
        drawn.append(tuple(reversed_order[::-1]))
    return drawn
