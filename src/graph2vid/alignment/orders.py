"""The cheapest alignments of different orders, for :meth:`graph2vid.Problem.k_best`.

Orders are searched step by step, best first. What is left to pay after a beginning is known exactly, from one pass
backwards over the automaton (:mod:`graph2vid.tsort.automaton`): so a beginning is only followed while it leads to one
of the cheapest orders, and the first k orders that are complete are the answer.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid._memory import in_units
from graph2vid._stopping import go_on
from graph2vid.alignment import automata
from graph2vid.alignment.alignment_result import BACKGROUND
from graph2vid.alignment.anytime import Answer
from graph2vid.alignment.automata import AutomatonProblem, automaton_problem
from graph2vid.alignment.backends import Resources, memory_bound, solve_plain
from graph2vid.alignment.clip_costs import ClipCosts
from graph2vid.errors import TooLargeError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

if TYPE_CHECKING:
    from graph2vid.alignment.problem import Problem

Costs64 = NDArray[np.float64]
Indices = NDArray[np.int64]


def best_orders(problem: Problem, k: int, resources: Resources) -> Iterator[Answer]:
    """Yield the cheapest alignments of the k cheapest orders, about in order of cost; computed in float64."""
    asked = automaton_problem(problem, problem.costs.astype(np.float64), resources.memory_limit)
    n_states, longest, n_clips = asked.automaton.n_states, asked.length.shape[1], len(asked.drop)
    bound = memory_bound(resources.memory_limit)
    _refuse_beyond(bound, 8 * n_states * (n_clips + 4 * longest), "give fewer clips, or more order")
    each = 8 * n_clips + 2048  # the labels of one order, and all else about it
    options: dict[str, Any] = {"method": "exact", "contiguous": problem.contiguous, "dtype": "float64"}
    options |= {"backend": resources.backend} | automata.report(asked)
    for number, beginning in enumerate(_Search(asked, problem.contiguous).best(k)):
        if number:
            _refuse_beyond(bound, each * (number + 1), f"ask for at most k={number}")
        yield Answer(*beginning.solve(resources), 0.0, options)


def _refuse_beyond(bound: int, needed: int, advice: str) -> None:
    if needed > bound:
        raise TooLargeError(
            f"the search for the best orders needs {in_units(needed)}, and the bound is {in_units(bound)}: "
            f"{advice}, or raise memory_limit"
        )


class _Arc(NamedTuple):
    """One way out of a node: a segment of a step."""

    step: int
    state: int
    node: int
    cost: float


class _Search:
    def __init__(self, problem: AutomatonProblem, contiguous: bool) -> None:
        self.problem, self.contiguous, self.automaton = problem, contiguous, problem.automaton
        # The arcs by the node that they leave, and the nodes that can be left.
        order = np.argsort(self.automaton.arc_from, kind="stable")
        self.state, self.cost = self.automaton.state_of_arc[order], problem.arc[order]
        self.start = np.searchsorted(self.automaton.arc_from[order], np.arange(self.automaton.n_nodes + 1))
        self.origins = np.flatnonzero(np.diff(self.start))
        self.to_go = self._to_go()

    def ways(self, node: int) -> list[_Arc]:
        """Return the arcs out of a node."""
        here = slice(self.start[node], self.start[node + 1])
        states = self.state[here]
        reached = self.automaton.node_of_state[states]
        columns = (self.automaton.state_step[states], states, reached, self.cost[here])
        return [_Arc(*row) for row in zip(*(column.tolist() for column in columns), strict=True) if row[3] < np.inf]

    def _to_go(self) -> Costs64:
        """[N, S] the least cost of all that follows if a segment of a state begins at a clip.

        A segment may be followed by a repeat of the same step at once, which is not an alignment; that makes it at most
        too cheap, which only costs time. Unless segments are contiguous, they go on after background, too (and none is
        repeated or has durations).
        """
        problem, node_of_state = self.problem, self.automaton.node_of_state
        step, n_clips = self.automaton.state_step, len(problem.drop)
        length, tail = problem.length.T[:, step], problem.tail[step]  # [D, S], [S]
        begin = np.empty((n_clips, len(step)))
        follows = problem.end.copy()
        # [D, S] what follows a segment that has had 1, 2, …, D (and more) clips.
        going = length + follows[node_of_state]
        for clip in range(n_clips - 1, -1, -1):
            go_on()
            shown = problem.match[step, clip]
            begin[clip] = shown + going[0]
            follows = follows + problem.drop[clip]
            if len(self.origins):
                leaving = self.cost + begin[clip][self.state]
                cheapest = np.minimum.reduceat(leaving, self.start[self.origins])
                follows[self.origins] = np.minimum(follows[self.origins], cheapest)
            longer = np.concatenate([going[1:], going[-1:] + tail])
            goes_on = shown + longer if self.contiguous else np.minimum(shown, problem.drop[clip]) + longer
            going = np.minimum(length + follows[node_of_state], goes_on)
        return begin

    def best(self, number: int) -> Iterable[_Beginning]:
        """Yield complete orders, the cheapest first."""
        counter = count()
        start = _Beginning(self, None, _Arc(-1, -1, 0, 0.0))
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
    """The first steps of an order, up to one of them, and all segments of these steps until another one appears."""

    search: _Search
    before: _Beginning | None
    arc: _Arc

    @cached_property
    def shown(self) -> frozenset[int]:
        return frozenset() if self.before is None else self.before.shown | {self.arc.step}

    @cached_property
    def repeats(self) -> dict[int, float]:
        """The steps that may be repeated, in order, and at what cost."""
        return {way.step: way.cost for way in sorted(self.search.ways(self.arc.node)) if way.step in self.shown}

    @property
    def cost(self) -> float:
        """The cost of the order if it ends here."""
        return float(self.reached[-1] + self.search.problem.end[self.arc.node])

    def followers(self) -> Iterable[tuple[float, _Beginning]]:
        """Yield what may follow, with the cost of the cheapest order that begins so."""
        for way in self.search.ways(self.arc.node):
            if way.step in self.shown:
                continue
            cost = float((self.reached[:-1] + way.cost + self.search.to_go[:, way.state]).min())
            if cost < np.inf:
                yield cost, _Beginning(self.search, self, way)

    @cached_property
    def reached(self) -> Costs64:
        """[N+1] the least cost of the first clips with just these steps shown, the last segment being over."""
        problem, step = self.search.problem, self.arc.step
        n_clips = len(problem.drop)
        reached = np.full(n_clips + 1, np.inf)
        if self.before is None:
            reached[0] = 0.0
            reached[1:] = np.cumsum(problem.drop)
            return reached
        entered = self.before.reached + self.arc.cost
        steps = sorted({*self.repeats, step})
        place = steps.index(step)
        again = np.array([self.repeats.get(one, np.inf) for one in steps])
        length, tail, match = problem.length[steps], problem.tail[steps], problem.match[steps]
        going = np.full(length.shape, np.inf)  # [R, D] segments of 1, 2, …, D (and more) clips so far
        background = np.inf
        for clip in range(n_clips + 1):
            over = (going + length).min(axis=1)
            reached[clip] = min(background, over.min())
            if clip == n_clips:
                break
            begun = again + np.minimum(background, _least_of_others(over))
            begun[place] = min(begun[place], entered[clip])
            if not self.search.contiguous:
                begun[place] = min(begun[place], background)
            longer = np.column_stack([begun, going[:, :-1]])
            longer[:, -1] = np.minimum(longer[:, -1], going[:, -1] + tail)
            going = match[:, clip, None] + longer
            background = reached[clip] + problem.drop[clip]
        return reached

    def solve(self, resources: Resources) -> tuple[float, Indices | None]:
        """Find the cheapest alignment of just this order: on the automaton of it alone."""
        problem = self.search.problem
        if self.before is None:
            return self.cost, np.full(len(problem.drop), BACKGROUND, np.int64)
        chain = [self]
        while (before := chain[0].before) is not None:
            chain.insert(0, before)
        if not self.search.contiguous:
            return self._solve_chain([one.arc for one in chain[1:]], resources)
        state_start, state_step, arc_start, arc_from, costs = [0], [], [0], [], []
        for node, beginning in enumerate(chain):
            for step in sorted({*beginning.repeats, beginning.arc.step} - {-1}):
                state_step.append(step)
                if step == beginning.arc.step:
                    arc_from.append(node - 1)
                    costs.append(beginning.arc.cost)
                if step in beginning.repeats:
                    arc_from.append(node)
                    costs.append(beginning.repeats[step])
                arc_start.append(len(arc_from))
            state_start.append(len(state_step))
        # What its arcs are charged for is worked out already.
        automaton = replace(
            problem.automaton,
            state_start=np.array(state_start, np.int64),
            state_step=np.array(state_step, np.int32),
            arc_start=np.array(arc_start, np.int64),
            arc_from=np.array(arc_from, np.int32),
        )
        end = np.full(len(chain), np.inf)
        end[-1] = problem.end[self.arc.node]
        (found,) = automata.solve(
            [problem._replace(automaton=automaton, arc=np.array(costs), end=end)], False, resources
        )
        return found

    def _solve_chain(self, arcs: list[_Arc], resources: Resources) -> tuple[float, Indices | None]:
        """Do the same where background may lie inside a segment: no step is repeated, so the order is a chain."""
        problem, steps = self.search.problem, [arc.step for arc in arcs]
        tsort = TSortGraph.compile(FlowGraph.chain([str(step) for step in steps]))
        costs = ClipCosts(problem.match[steps], problem.drop, None)
        cost, labels = solve_plain(tsort, costs, False, False, resources)
        beside = sum(arc.cost for arc in arcs) + float(problem.end[self.arc.node])
        return cost + beside, None if labels is None else np.append(steps, BACKGROUND)[labels]


def _least_of_others(values: Costs64) -> Costs64:
    """Return for each value the least of the others; ∞ where there are none."""
    least = np.full(len(values), np.inf)
    if len(values) > 1:  # most orders repeat nothing, and this is done for every clip
        at = int(values.argmin())
        least[:] = values[at]
        least[at] = np.delete(values, at).min()
    return least
