"""The cheapest alignments of different orders: `k_best`.

Orders are searched step by step, best first. What is left to pay after a beginning is known exactly, from one pass
backwards over the machine (:mod:`graph2vid.tsort.automaton`): so a beginning is only followed while it leads to one of
the cheapest orders, and the first k orders that are complete are the answer.
"""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid._memory import in_units
from graph2vid._stopping import go_on, within
from graph2vid.alignment import automata
from graph2vid.alignment.alignment_result import Alignment
from graph2vid.alignment.anytime import check_time_limit
from graph2vid.alignment.automata import MachineProblem, check_all, machine_problem
from graph2vid.alignment.backends import choose_backend, memory_bound
from graph2vid.alignment.constraints import Constraint
from graph2vid.alignment.solvers import make_result
from graph2vid.errors import InputError, TooLargeError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph
from graph2vid.tsort.automaton import Machine

Costs64 = NDArray[np.float64]
Indices = NDArray[np.int64]


def k_best(
    flow: FlowGraph | TSortGraph,
    match: Any,
    drop: Any,
    skip: Any = None,
    *,
    k: int = 5,
    repeat: Any = None,
    durations: Any = None,
    breaking: float = 1.0,
    constraints: Iterable[Constraint] = (),
    backend: str | None = None,
    memory_limit: int | None = None,
    time_limit: float | None = None,
) -> tuple[Alignment, ...]:
    """Find the k cheapest orders, and for each of them its cheapest alignment.

    An order is that in which the shown steps first appear; two orders differ also where one of them shows more steps.
    Each step takes unbroken runs of clips (``contiguous=True`` of :func:`align`).

    Parameters
    ----------
    flow, match, drop, skip, repeat, durations, breaking, constraints, backend, memory_limit
        As for :func:`align`.
    k : int
        How many orders, at least 1.
    time_limit : float, optional
        Seconds after which the orders found until then are returned, with a warning; by default it takes as long as
        it takes.

    Returns
    -------
    tuple of Alignment
        The cheapest first; fewer than k where there are no more orders of finite cost. The difference of the first
        two costs says how sure the order is.

    Raises
    ------
    InputError, InfeasibleError, TooLargeError
        As for :func:`align`.
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k must be a whole number of orders, at least 1, not {k!r}")
    graph = flow.flow if isinstance(flow, TSortGraph) else flow
    problem, extras = check_all(graph, match, drop, skip, repeat, durations, breaking, tuple(constraints))
    backend = choose_backend(backend)
    limit = None if time_limit is None else check_time_limit(time_limit)
    found: list[Alignment] = []
    with within(limit):
        on_machine = machine_problem(graph, problem, extras, memory_limit, tables=1)
        n_states, longest, n_clips = (
            on_machine.machine.n_states,
            on_machine.durations.length.shape[1],
            len(problem.drop),
        )
        bound = memory_bound(memory_limit)
        _refuse_beyond(bound, 8 * n_states * (n_clips + 4 * longest), "give fewer clips, or more order")
        each = 8 * n_clips + 2048  # the labels of one order, and all else about it
        options = {"method": "exact", "contiguous": True, "dtype": "float64", "backend": backend}
        options |= automata.report(on_machine)
        try:
            for beginning in _Search(on_machine).best(int(k)):
                cost, labels = beginning.solve(backend)
                found.append(make_result(graph, problem, extras, cost, labels, options))
                if len(found) < k:
                    _refuse_beyond(bound, each * (len(found) + 1), f"ask for at most k={len(found)}")
        except TimeoutError:
            if not found:
                raise
            warnings.warn(f"the {len(found)} best orders were found in {limit:g} s, not {k}", stacklevel=2)
    if not found:
        make_result(graph, problem, extras, np.inf, None, options)  # which says why
    return tuple(sorted(found, key=lambda one: one.cost))


def _refuse_beyond(bound: int, needed: int, advice: str) -> None:
    if needed > bound:
        raise TooLargeError(
            f"the search for the best orders needs {in_units(needed)}, and the bound is {in_units(bound)}: "
            f"{advice}, or raise memory_limit"
        )


class _Entry(NamedTuple):
    """One way out of a node: a run of a step."""

    step: int
    state: int
    node: int
    price: float


class _Ways:
    """The machine's entries by the node that they leave."""

    def __init__(self, problem: MachineProblem) -> None:
        machine = problem.machine
        self.node_of_state = np.repeat(np.arange(machine.n_nodes), np.diff(machine.state_start))
        state_of_entry = np.repeat(np.arange(machine.n_states), np.diff(machine.entry_start))
        order = np.argsort(machine.entry_from, kind="stable")
        self.state: Indices = state_of_entry[order]
        self.price: Costs64 = problem.entry[order]
        self.step = machine.state_step
        origins = machine.entry_from[order]
        self.start = np.searchsorted(origins, np.arange(machine.n_nodes + 1))
        self.origins = np.flatnonzero(np.diff(self.start))  # the nodes that can be left

    def of(self, node: int) -> list[_Entry]:
        here = slice(self.start[node], self.start[node + 1])
        states = self.state[here]
        columns = (self.step[states], states, self.node_of_state[states], self.price[here])
        return [_Entry(*row) for row in zip(*(column.tolist() for column in columns), strict=True) if row[3] < np.inf]


class _Search:
    def __init__(self, problem: MachineProblem) -> None:
        self.problem = problem
        self.ways = _Ways(problem)
        self.to_go = self._to_go()

    def _to_go(self) -> Costs64:
        """[N, S] the least cost of all that follows if a run of a state begins at a clip.

        A run may be followed by a return to the same step at once, which is not an alignment; that makes it at most
        too cheap, which only costs time.
        """
        problem, ways = self.problem, self.ways
        step, n_clips = ways.step, len(problem.drop)
        length, tail = problem.durations.length.T[:, step], problem.durations.tail[step]  # [D, S], [S]
        begin = np.empty((n_clips, len(step)))
        follows = problem.end.copy()
        # [D, S] what follows a run that has had 1, 2, …, D (and more) clips.
        going = length + follows[ways.node_of_state]
        for clip in range(n_clips - 1, -1, -1):
            go_on()
            shown = problem.match[step, clip]
            begin[clip] = shown + going[0]
            follows = follows + problem.drop[clip]
            if len(ways.origins):
                leaving = ways.price + begin[clip][ways.state]
                cheapest = np.minimum.reduceat(leaving, ways.start[ways.origins])
                follows[ways.origins] = np.minimum(follows[ways.origins], cheapest)
            longer = np.concatenate([going[1:], going[-1:] + tail])
            going = np.minimum(length + follows[ways.node_of_state], shown + longer)
        return begin

    def best(self, number: int) -> Iterable[_Beginning]:
        """Yield complete orders, the cheapest first."""
        counter = count()
        start = _Beginning(self, None, _Entry(-1, -1, 0, 0.0))
        waiting: list[tuple[float, int, bool, _Beginning]] = [(0.0, next(counter), False, start)]
        while waiting and number:
            go_on()
            _, _, is_complete, beginning = heapq.heappop(waiting)
            if is_complete:
                number -= 1
                yield beginning
                continue
            for cost, following in beginning.followers():
                heapq.heappush(waiting, (cost, next(counter), False, following))
            if beginning.cost < np.inf:
                heapq.heappush(waiting, (beginning.cost, next(counter), True, beginning))


@dataclass(eq=False)
class _Beginning:
    """The first steps of an order, up to one of them, and all runs of these steps until another one appears."""

    search: _Search
    before: _Beginning | None
    entry: _Entry

    @cached_property
    def shown(self) -> frozenset[int]:
        return frozenset() if self.before is None else self.before.shown | {self.entry.step}

    @cached_property
    def returns(self) -> dict[int, float]:
        """The steps that may be returned to, in order, and at what price."""
        ways = self.search.ways.of(self.entry.node)
        return {way.step: way.price for way in sorted(ways) if way.step in self.shown}

    @property
    def cost(self) -> float:
        """The cost of the order if it ends here."""
        return float(self.reached[-1] + self.search.problem.end[self.entry.node])

    def followers(self) -> Iterable[tuple[float, _Beginning]]:
        """Yield what may follow, with the cost of the cheapest order that begins so."""
        for way in self.search.ways.of(self.entry.node):
            if way.step in self.shown:
                continue
            cost = float((self.reached[:-1] + way.price + self.search.to_go[:, way.state]).min())
            if cost < np.inf:
                yield cost, _Beginning(self.search, self, way)

    @cached_property
    def reached(self) -> Costs64:
        """[N+1] the least cost of the first clips with just these steps shown, the last run being over."""
        problem, step = self.search.problem, self.entry.step
        n_clips = len(problem.drop)
        reached = np.full(n_clips + 1, np.inf)
        if self.before is None:
            reached[0] = 0.0
            reached[1:] = np.cumsum(problem.drop)
            return reached
        entered = self.before.reached + self.entry.price
        steps = sorted({*self.returns, step})
        place = steps.index(step)
        again = np.array([self.returns.get(one, np.inf) for one in steps])
        length, tail, match = problem.durations.length[steps], problem.durations.tail[steps], problem.match[steps]
        going = np.full(length.shape, np.inf)  # [R, D] runs of 1, 2, …, D (and more) clips so far
        background = np.inf
        for clip in range(n_clips + 1):
            over = (going + length).min(axis=1)
            reached[clip] = min(background, over.min())
            if clip == n_clips:
                break
            begun = again + np.minimum(background, _least_of_others(over))
            begun[place] = min(begun[place], entered[clip])
            longer = np.column_stack([begun, going[:, :-1]])
            longer[:, -1] = np.minimum(longer[:, -1], going[:, -1] + tail)
            going = match[:, clip, None] + longer
            background = reached[clip] + problem.drop[clip]
        return reached

    def solve(self, backend: str) -> tuple[float, Indices | None]:
        """Find the cheapest alignment of just this order: on the machine of it alone."""
        problem = self.search.problem
        if self.before is None:
            return self.cost, np.full(len(problem.drop), -1, np.int64)
        chain: list[_Beginning] = []
        at: _Beginning | None = self
        while at is not None:
            chain.insert(0, at)
            at = at.before
        state_start, state_step, entry_start, entry_from, prices = [0], [], [0], [], []
        for node, beginning in enumerate(chain):
            for step in sorted({*beginning.returns, beginning.entry.step} - {-1}):
                state_step.append(step)
                if step == beginning.entry.step:
                    entry_from.append(node - 1)
                    prices.append(beginning.entry.price)
                if step in beginning.returns:
                    entry_from.append(node)
                    prices.append(beginning.returns[step])
                entry_start.append(len(entry_from))
            state_start.append(len(state_step))
        nothing = np.zeros(0, np.int32)
        none = np.zeros((0, 0), bool)
        machine = Machine(
            problem.machine.flow,
            (),
            np.array(state_start, np.int64),
            np.array(state_step, np.int32),
            np.array(entry_start, np.int64),
            np.array(entry_from, np.int32),
            nothing,
            np.zeros(0, bool),
            np.zeros(len(chain), np.int32),
            none,
            none,
        )
        end = np.full(len(chain), np.inf)
        end[-1] = problem.end[self.entry.node]
        alone = MachineProblem(machine, problem.match, problem.drop, np.array(prices), end, problem.durations)
        return automata.solve(alone, backend, cost_only=False)


def _least_of_others(values: Costs64) -> Costs64:
    """Return for each value the least of the others; ∞ where there are none."""
    least = np.full(len(values), np.inf)
    if len(values) > 1:
        at = int(values.argmin())
        least[:] = values[at]
        least[at] = np.delete(values, at).min()
    return least
