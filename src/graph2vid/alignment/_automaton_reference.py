"""The recursion on an automaton, as it is defined: segment by segment, in plain Python.

The compiled kernels are compared with this file. With ``enter`` what leads to the beginning of a segment of a state
at time s, and ``best`` all that leads to a node at time j:

    ended[state, e] = ⊕_{s < e} enter[state, s] + (clips s … e-1 show its step, at the cost of that length)
    best[node, j]   = ⊕_{its states} ended[state, j]  ⊕  best[node, j-1] + drop[j-1]
    enter[state, s] = ⊕_{arcs} best[from, s] + cost

where a repeat of a step, from its own node, must not follow a segment of the same step: that would be one segment.
⊕ is the minimum, of costs with their labels, or the sum of weights.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graph2vid._stopping import go_on

if TYPE_CHECKING:
    from graph2vid.alignment.automata import AutomatonProblem


def _numbers(costs: Any) -> list[Any]:
    """Return costs as numbers that are computed with in the dtype of the array: Python's own where it is float64."""
    return list(costs.tolist() if costs.dtype == np.float64 else costs)


class _Recursion:
    """Forwards through all nodes: the least cost, and the smallest of its label sequences, the last clip first."""

    never: Any = (math.inf, ())
    start: Any = (0.0, ())

    def plus(self, a: Any, b: Any) -> Any:
        """Bring alternatives together."""
        return min(a, b)

    def then(self, value: Any, cost: float, label: int = -1, clips: int = 0) -> Any:
        """Add a cost, and clips with a label."""
        return value[0] + cost, (label,) * clips + value[1]

    def all(self, values: Iterable[Any]) -> Any:
        return reduce(self.plus, values, self.never)

    def __init__(self, problem: AutomatonProblem) -> None:
        self.problem, self.automaton, self.n_clips = problem, problem.automaton, len(problem.drop)
        self.drop, self.arc, self.finish = (_numbers(costs) for costs in (problem.drop, problem.arc, problem.end))
        self.costs = [self._segment_costs(step) for step in range(len(problem.match))]
        self.best: list[list[Any]] = []
        self.enter: list[list[Any]] = [[] for _ in range(self.automaton.n_states)]
        self.ended: list[list[Any]] = [[] for _ in range(self.automaton.n_states)]
        for node in range(self.automaton.n_nodes):
            self._node(node)

    def _segment_costs(self, step: int) -> list[list[float]]:
        """[N+1][N+1] the cost of a segment of ``step`` from one time to another."""
        match, length = _numbers(self.problem.match[step]), _numbers(self.problem.length[step])
        table = [[math.inf] * (self.n_clips + 1) for _ in range(self.n_clips + 1)]
        for start in range(self.n_clips):
            clips = 0.0
            for stop in range(start + 1, self.n_clips + 1):
                clips += match[stop - 1]
                count = stop - start
                over = max(count - len(length), 0)
                table[start][stop] = (
                    clips + length[count - over - 1] + (over * self.problem.tail[step] if over else 0.0)
                )
        return table

    def states(self, node: int) -> range:
        return range(int(self.automaton.state_start[node]), int(self.automaton.state_start[node + 1]))

    def arcs(self, state: int) -> list[tuple[int, float]]:
        """Where a state is entered from, and at what cost."""
        which = range(int(self.automaton.arc_start[state]), int(self.automaton.arc_start[state + 1]))
        return [(int(self.automaton.arc_from[arc]), self.arc[arc]) for arc in which]

    def _node(self, node: int) -> None:
        states = self.states(node)
        best: list[Any] = []
        self.best.append(best)
        for time in range(self.n_clips + 1):
            go_on()
            for state in states:
                step = int(self.automaton.state_step[state])
                ways = (
                    self.then(entered, self.costs[step][start][time], step, time - start)
                    for start, entered in enumerate(self.enter[state])
                )
                self.ended[state].append(self.all(ways))
            rest = self.never if node or time else self.start
            if time:
                rest = self.then(best[time - 1], self.drop[time - 1], -1, 1)
            best.append(self.all([rest, *(self.ended[state][time] for state in states)]))
            for state in states:
                ways = (
                    self.then(self._before(source, node, state, rest, time), cost) for source, cost in self.arcs(state)
                )
                self.enter[state].append(self.all(ways))

    def _before(self, source: int, node: int, state: int, rest: Any, time: int) -> Any:
        if source != node:
            return self.best[source][time]
        others = (self.ended[other][time] for other in self.states(node) if other != state)
        return self.all([rest, *others])

    def ends(self) -> list[Any]:
        return [self.then(best[self.n_clips], cost) for best, cost in zip(self.best, self.finish, strict=True)]


class _Sum(_Recursion):
    """The same with the sum of all: -log Σ exp(-cost)."""

    never = math.inf
    start = 0.0

    def plus(self, a: float, b: float) -> float:
        low, high = min(a, b), max(a, b)
        return low if high == math.inf else low - math.log1p(math.exp(low - high))

    def then(self, value: float, cost: float, label: int = -1, clips: int = 0) -> float:
        return value + cost


def solve(problem: AutomatonProblem) -> tuple[float, NDArray[np.int64] | None]:
    """Find the cheapest alignment: its cost, and its labels [N]; ∞ and None where there is none."""
    cost, labels = min(_Recursion(problem).ends())
    if not math.isfinite(cost):
        return math.inf, None
    return float(cost), np.array(labels[::-1], np.int64)


Probabilities = NDArray[np.float64]


def posterior(problem: AutomatonProblem) -> tuple[float, Probabilities | None, Probabilities | None]:
    """Return -log Σ exp(-cost) over all alignments, and the probability of each label at each clip, [K+1, N], and of a
    segment of each step beginning there, [K, N]."""
    forward = _Sum(problem)
    automaton, n_clips = problem.automaton, forward.n_clips
    total = forward.all(forward.ends())
    if not math.isfinite(total):
        return math.inf, None, None
    probability, start = np.zeros((len(problem.match) + 1, n_clips)), np.zeros((len(problem.match), n_clips))
    onward: list[list[float]] = [[math.inf] * n_clips + [float(cost)] for cost in problem.end]
    for node in reversed(range(automaton.n_nodes)):
        states = forward.states(node)
        again = {state: cost for state in states for source, cost in forward.arcs(state) if source == node}  # repeats
        begin: dict[int, list[float]] = {state: [math.inf] * (n_clips + 1) for state in states}
        leave: dict[int, list[float]] = {state: [math.inf] * (n_clips + 1) for state in states}
        follows = [math.inf] * (n_clips + 1)
        for time in reversed(range(n_clips + 1)):
            go_on()
            rest = onward[node][time]
            if time < n_clips:
                rest = forward.plus(rest, float(problem.drop[time]) + follows[time + 1])
            for state in states:
                costs = forward.costs[int(automaton.state_step[state])][time]
                begin[state][time] = forward.all(
                    costs[stop] + leave[state][stop] for stop in range(time + 1, n_clips + 1)
                )
            repeated = {state: cost + begin[state][time] for state, cost in again.items()}
            follows[time] = forward.all([rest, *repeated.values()])
            for state in states:
                leave[state][time] = forward.all([rest, *(v for other, v in repeated.items() if other != state)])
        for state in states:
            for source, cost in forward.arcs(state):
                if source != node:
                    for time in range(n_clips + 1):
                        onward[source][time] = forward.plus(onward[source][time], cost + begin[state][time])
            step = int(automaton.state_step[state])
            for first, stop in itertools.combinations(range(n_clips + 1), 2):
                segment = forward.enter[state][first] + forward.costs[step][first][stop]
                mass = math.exp(total - (segment + leave[state][stop]))
                probability[step, first:stop] += mass
                start[step, first] += mass
        for time in range(n_clips):
            mass = forward.best[node][time] + float(problem.drop[time]) + follows[time + 1]
            probability[-1, time] += math.exp(total - mass)
    return total, probability, start
