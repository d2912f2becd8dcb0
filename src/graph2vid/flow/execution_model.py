"""Flow graphs from executions: how probable executions are under a partial order, and the most probable partial order.

An execution is a chain of choices. Each time, the next step is chosen among those that are free: not yet done, and all
that must come before them done (a step that the execution skips is waived). People have habits, so that of the free
steps those are chosen more often that usually come early: step s is chosen in proportion to
exp(-habit * s's mean position, 0 to 1), as in a Plackett-Luce model. With the probability ``error`` the next step is
chosen among all that are left, free or not: one execution that violates a precedence does not disprove it. Of two steps
that overlap in time neither is asked to come first. Skips and repeats have rates of their own, which the graph does
not change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid.errors import GraphError
from graph2vid.flow.messages import quoted
from graph2vid.flow.order import Edge, mask_of
from graph2vid.flow.steps import Step, StepLike, StepReference, as_step, index_by_id, resolve

if TYPE_CHECKING:
    from graph2vid.flow.flow_graph import FlowGraph
    from graph2vid.flow.mine import Mined

Flags: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Scorer: TypeAlias = Callable[[Flags], Floats]

BOOTSTRAP = 30
"""Draws of executions behind the confidence of edges."""
_AT_ONCE = 2_000_000  # numbers in a batch of graphs
_SAME = 1e-9


@dataclass(frozen=True)
class Execution:
    """One execution of a procedure.

    Attributes
    ----------
    segments : tuple of (step, start, end)
        When each step was done, in seconds; steps by index (int) or id (str). A step may come several times.
    weight : float
        How much the execution counts.
    is_timed : bool
        Whether the seconds are known, and not the order alone.
    source : str
        What it was drawn from; executions of one source are one observation, and confidences count it once.
    """

    segments: tuple[tuple[StepReference, float, float], ...]
    weight: float = 1.0
    is_timed: bool = True
    source: str = ""

    def __post_init__(self) -> None:
        if not (self.weight > 0 and math.isfinite(self.weight)):
            raise GraphError(f"the weight of an execution must be above 0, not {quoted(self.weight)}")
        for step, start, end in self.segments:
            if not (math.isfinite(start) and math.isfinite(end) and start <= end):
                raise GraphError(f"step {quoted(step)} is done from {start} to {end}: it must end after its start")

    @classmethod
    def of(cls, steps: Iterable[StepReference]) -> Execution:
        """Return an execution of which only the order is known."""
        return cls(tuple((step, float(place), float(place + 1)) for place, step in enumerate(steps)), is_timed=False)


ExecutionLike: TypeAlias = Execution | Sequence[StepReference]
"""An execution, or the steps in the order in which they were done."""


@dataclass(frozen=True)
class ExecutionModel:
    """How executions come about, and what an edge costs.

    The defaults are those that do best on the 24 recipes of CaptainCook4D (``graph2vid evaluate mining``).

    Attributes
    ----------
    habit : float
        How much more probable a free step is that usually comes first than one that usually comes last: the logarithm
        of the ratio. 0: all free steps are equally probable.
    error : float
        The probability that the next step is chosen whether it is free or not; above 0 and below 1.
    edge_cost : float
        What each edge of the transitive reduction costs, those from the start and to the end included, in units of
        log-likelihood.
    """

    habit: float = 4.0
    error: float = 0.001
    edge_cost: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.error < 1:
            raise GraphError(f"error must be a probability above 0 and below 1, not {quoted(self.error)}")
        for name in ("habit", "edge_cost"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise GraphError(f"{name} must be a number of at least 0, not {quoted(getattr(self, name))}")


def log_likelihood(flow: FlowGraph, executions: Iterable[ExecutionLike], model: ExecutionModel | None = None) -> float:
    """Return the logarithm of the probability of executions under a flow graph, exactly.

    Mean positions, skip rates and the rate of repeats are those of the same executions. At the rate of repeats a step
    that was done already (each with the same probability) is done again, before the next new one or the end.

    Parameters
    ----------
    flow : FlowGraph
    executions : iterable of Execution, or of sequences of steps
    model : ExecutionModel, optional
    """
    model = model or ExecutionModel()
    seen = _Seen.of(executions, flow.steps)
    return float(_choices(seen, _closure(flow)[None], model)[0]) + seen.skips_and_repeats()


def mine_executions(
    executions: Iterable[ExecutionLike],
    steps: Iterable[StepLike] | None = None,
    *,
    model: ExecutionModel | None = None,
    prior: ArrayLike | None = None,
    bootstrap: int = BOOTSTRAP,
    seed: int = 0,
    title: str = "",
) -> Mined:
    """Find the flow graph that is most probable given executions, and how sure each of its edges is.

    What is maximised is the log-likelihood (:func:`log_likelihood`) less the cost of the edges, plus the prior of the
    edges: by adding, removing, reversing and moving precedences, the best change first, from several starts (what no
    execution violates, and no precedence at all).

    Parameters
    ----------
    executions : iterable of Execution, or of sequences of steps
        Steps by index (int) or id (str). Steps may be missing; of a repeated step the first occurrence counts.
    steps : iterable of str, Step or (id, text), optional
        The steps of the procedure; by default the ids that occur.
    model : ExecutionModel, optional
    prior : array [K, K], optional
        What each edge is worth beforehand, in units of log-likelihood, such as what the words say
        (:func:`graph2vid.grounding.text_prior`).
    bootstrap : int
        How often the executions are drawn anew, with replacement, for the confidence of the edges; 0: that of
        :func:`mine_precedences`.
    seed : int
        Of these draws.
    title : str
        What the procedure is called.

    Returns
    -------
    Mined
        The confidence of an edge is the share of the draws that have it, (edge found + 1) / (draws + 2), and at most
        the chance that the next execution honours it.
    """
    from graph2vid.flow.flow_graph import FlowGraph
    from graph2vid.flow.mine import Mined, steps_seen

    model = model or ExecutionModel()
    given = _given(executions)
    made = (
        steps_seen([[segment[0] for segment in one.segments] for one in given])
        if steps is None
        else tuple(as_step(step, place) for place, step in enumerate(steps))
    )
    seen = _Seen.of(given, made)
    worth = np.zeros((len(made),) * 2) if prior is None else np.asarray(prior, np.float64)
    if worth.shape != (len(made), len(made)) or not np.isfinite(worth).all():
        raise GraphError(f"the prior must be {len(made)} × {len(made)} finite numbers, one for each pair of steps")
    allowed = seen.before > seen.before.T
    starts = (seen.unviolated(), np.zeros_like(allowed))
    found = [_search(_scorer(seen, model, worth), start, allowed) for start in starts]
    graph, value = max(found, key=lambda one: one[1])  # the first of equals
    edges = [(int(a), int(b)) for a, b in np.argwhere(_edges(graph[None])[0])]
    support = {(a, b): float(seen.before[a, b] + seen.before[b, a]) for a, b in edges}
    honoured = {(a, b): float(seen.before[a, b]) for a, b in edges}
    confidence = {edge: (honoured[edge] + 1) / (support[edge] + 2) for edge in edges}
    if bootstrap and edges:
        shares = _bootstrap(seen, model, worth, graph, bootstrap, np.random.default_rng(seed))
        confidence = {edge: min(confidence[edge], float(shares[edge])) for edge in edges}
    flow = FlowGraph(made, tuple(edges), title)
    return Mined(flow, support, honoured, confidence, (), value, seen.skip_rates(), seen.durations)


def _given(executions: Iterable[ExecutionLike]) -> list[Execution]:
    made = []
    for number, one in enumerate(executions):
        if isinstance(one, str):
            raise GraphError(f"sequence {number} must be a list of steps, not the string {quoted(one)}")
        made.append(one if isinstance(one, Execution) else Execution.of(one))
    return made


@dataclass
class _Seen:
    """Executions as arrays: E of them, over K steps.

    Attributes
    ----------
    place : int16 [E, K]
        The place of each step among the first occurrences, by the middle of its segment; -1: skipped.
    free_from : int16 [E, K, K]
        The place from which on a predecessor (first) does not bar a step (second) any more: 0 where it is skipped, or
        the two overlap.
    weight : float64 [E]
    source : int64 [E]
        Which executions are one observation: those with the same number.
    repeats : int64 [E]
        Segments beyond the first of their step.
    repeat_cost : float64 [E]
        Minus the logarithm of the probability of which steps these are.
    before : float64 [K, K]
        The weight of the executions in which the first step ends before the second begins.
    durations : mapping of int to (float, float)
        Median and spread (the standard deviation of the logarithm) of the seconds that each step lasts.
    """

    place: NDArray[np.int16]
    free_from: NDArray[np.int16]
    weight: Floats
    source: NDArray[np.int64]
    repeats: NDArray[np.int64]
    repeat_cost: Floats
    before: Floats
    durations: dict[int, tuple[float, float]]

    @classmethod
    def of(cls, executions: Iterable[ExecutionLike], steps: tuple[Step, ...]) -> _Seen:
        given = _given(executions)
        index_of, count = index_by_id(steps), len(steps)
        place = np.full((len(given), count), -1, dtype=np.int16)
        free_from = np.zeros((len(given), count, count), dtype=np.int16)
        before = np.zeros((count, count))
        repeats, repeat_cost = np.zeros(len(given), np.int64), np.zeros(len(given))
        lasts: dict[int, list[tuple[float, float]]] = {}
        for number, one in enumerate(given):
            spans: dict[int, tuple[float, float]] = {}
            for step, start, end in sorted(one.segments, key=lambda segment: segment[1:]):
                try:
                    index = resolve(step, index_of)
                except GraphError as error:
                    raise GraphError(f"execution {number}: {error}") from None
                if one.is_timed and end > start:
                    lasts.setdefault(index, []).append((end - start, one.weight))
                if index in spans:
                    repeats[number] += 1
                    repeat_cost[number] += math.log(len(spans))
                else:
                    spans[index] = (start, end)
            order = sorted(spans, key=lambda step: sum(spans[step]))
            place[number, order] = np.arange(len(order))
            for a, b in combinations(order, 2):
                if spans[a][1] <= spans[b][0]:
                    before[a, b] += one.weight
                    free_from[number, a, b] = place[number, a] + 1
                    free_from[number, b, a] = place[number, b] + 1
        durations = {step: _log_normal(*zip(*seconds, strict=True)) for step, seconds in sorted(lasts.items())}
        weight = np.array([one.weight for one in given])
        source = np.unique([one.source or f"\0{number}" for number, one in enumerate(given)], return_inverse=True)[1]
        return cls(place, free_from, weight, source, repeats, repeat_cost, before, durations)

    def unviolated(self) -> Flags:
        """Return the transitive graph of precedences that no execution violates; of contradicting ones the surest."""
        from graph2vid.flow.mine import consistent

        before = self.before
        pairs = [(int(a), int(b)) for a, b in np.argwhere((before > 0) & (before.T == 0))]
        sure = {(a, b): ((before[a, b] + 1) / (before[a, b] + 2), before[a, b]) for a, b in pairs}
        never = [mask_of([step, *map(int, np.flatnonzero(row))]) for step, row in enumerate(before.T > 0)]
        graph = np.zeros(before.shape, dtype=bool)
        for a, b in consistent(sure, never)[0]:
            graph[a, b] = True
        closed: Flags = _closed(graph[None])[0]
        return closed

    def choice_weights(self, habit: float) -> Floats:
        """Return how readily each step is chosen, by its mean position, [K]."""
        shown = self.place >= 0
        last = np.maximum(shown.sum(axis=1, keepdims=True) - 1, 1)
        by = self.weight[:, None] * shown
        position = (by * self.place / last).sum(axis=0) / np.maximum(by.sum(axis=0), _SAME)
        found: Floats = np.exp(-habit * np.where(shown.any(axis=0), position, 0.5))
        return found

    def skip_rates(self) -> tuple[float, ...]:
        """Return the share of the executions that skip each step."""
        whole = max(self.weight.sum(), _SAME)
        return tuple((self.weight @ (self.place < 0) / whole).tolist())

    def skips_and_repeats(self) -> float:
        """Return the part of the log-likelihood that the graph does not change."""
        rates = np.array(self.skip_rates())
        skipped = self.place < 0
        chance = np.where(skipped, rates, 1 - rates)
        events = (~skipped).sum(axis=1)
        rate = (self.weight @ self.repeats) / max(self.weight @ (self.repeats + events), _SAME)
        return float(
            self.weight @ np.log(chance).sum(axis=1)
            + self.weight @ (_times_log(self.repeats, rate) - self.repeat_cost + _times_log(events, 1 - rate))
        )

    def redrawn(self, random: np.random.Generator) -> _Seen:
        """Return a bootstrap sample of the observations."""
        count = self.source.max() + 1
        times = random.multinomial(count, np.full(count, 1 / count))[self.source]
        kept = np.flatnonzero(times)
        weight = (self.weight * times)[kept]
        place, free_from = self.place[kept], self.free_from[kept]
        before = np.einsum("e,eab->ab", weight, (free_from > 0) & (place[:, :, None] < place[:, None, :]))
        kept_rows = self.source[kept], self.repeats[kept], self.repeat_cost[kept]
        return _Seen(place, free_from, weight, *kept_rows, before, {})


def _times_log(times: NDArray[np.int64], rate: float) -> Floats:
    return np.asarray(times * (math.log(rate) if rate > 0 else 0.0), dtype=np.float64)


def _log_normal(seconds: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    """Return the weighted median, and the standard deviation of the logarithm."""
    logs, by = np.log(seconds), np.array(weights) / sum(weights)
    order = np.argsort(logs)
    upto = np.cumsum(by[order])
    # As the plain median where the weights are equal: the mean of the two in the middle, where there are two.
    low, high = (logs[order][np.searchsorted(upto, half)] for half in (0.5 - _SAME, min(0.5 + _SAME, upto[-1])))
    return float(np.exp((low + high) / 2)), float(np.sqrt(by @ (logs - by @ logs) ** 2))


def _closure(flow: FlowGraph) -> Flags:
    closed = np.zeros((len(flow), len(flow)), dtype=bool)
    for step, later in flow.transitive_closure().edges:
        closed[step, later] = True
    return closed


def _edges(graphs: Flags) -> Flags:
    """Return the transitive reductions of transitive graphs, [B, K, K]."""
    by = graphs.astype(np.float32)
    found: Flags = graphs & ~(np.matmul(by, by) > 0)
    return found


def _closed(graphs: Flags) -> Flags:
    """Return the transitive closures of graphs, [B, K, K]."""
    found = graphs.copy()
    for step in range(found.shape[1]):
        found |= found[:, :, step, None] & found[:, None, step, :]
    return found


def _choices(seen: _Seen, graphs: Flags, model: ExecutionModel) -> Floats:
    """Return the log-probability of the choices of all executions under each transitive graph, [B]."""
    weights = seen.choice_weights(model.habit)
    count, steps = seen.place.shape
    wide = steps + 2
    free = np.zeros((len(graphs), count, steps), dtype=np.int16)  # the place from which on each step is free
    for step in range(steps):
        np.maximum(free, graphs[:, step, None, :] * seen.free_from[None, :, step, :], out=free)
    shown = seen.place >= 0
    is_free = (free <= seen.place) & shown
    graph, row, chosen = np.nonzero(is_free)
    at = (graph * count + row) * wide
    size = len(graphs) * count * wide
    begin = np.bincount(at + free[graph, row, chosen], weights[chosen], size)
    end = np.bincount(at + seen.place[row, chosen] + 1, weights[chosen], size)
    among_free = np.cumsum((begin - end).reshape(len(graphs), count, wide), axis=2)
    row, chosen = np.nonzero(shown)
    at = seen.place[row, chosen].astype(np.int64)
    left = np.zeros((count, wide))
    left[:, 0] = (weights * shown).sum(axis=1)
    np.subtract.at(left, (row, at + 1), weights[chosen])
    among_left = np.cumsum(left, axis=1)[row, at]
    right = np.where(is_free[:, row, chosen], weights[chosen] / np.maximum(among_free[:, row, at], 1e-300), 0.0)
    chance = (1 - model.error) * right + model.error * weights[chosen] / among_left
    found: Floats = np.log(chance) @ seen.weight[row]
    return found


def _scorer(seen: _Seen, model: ExecutionModel, prior: Floats) -> Scorer:
    """Return what gives transitive graphs, [B, K, K], their log-posterior."""
    steps = seen.place.shape[1]
    batch = max(_AT_ONCE // max(seen.place.size, steps * steps, 1), 1)

    def score(graphs: Flags) -> Floats:
        found = []
        for first in range(0, len(graphs), batch):
            some = graphs[first : first + batch]
            edges = _edges(some)
            sources, sinks = ~some.any(axis=1), ~some.any(axis=2)
            number = edges.sum(axis=(1, 2)) + sources.sum(axis=1) + sinks.sum(axis=1)
            worth = (edges * prior).sum(axis=(1, 2))
            found.append(_choices(seen, some, model) - model.edge_cost * number + worth)
        return np.concatenate(found)

    return score


def _search(score: Scorer, graph: Flags, allowed: Flags) -> tuple[Flags, float]:
    """Climb from a transitive graph: the best change first; edges are moved only where nothing simpler helps."""
    value = float(score(graph[None])[0])
    while True:
        for changes in (_changed, _moved):
            graphs = changes(graph, allowed)
            if not len(graphs):
                continue
            values = score(graphs)
            best = int(values.argmax())
            if values[best] > value + _SAME:
                graph, value = graphs[best], float(values[best])
                break
        else:
            return graph, value


def _changed(graph: Flags, allowed: Flags) -> Flags:
    """Return the graphs that differ by one precedence, or by one edge and what it alone implies, [B, K, K]."""
    edges = np.argwhere(_edges(graph[None])[0])
    each = np.arange(len(edges))
    without = np.repeat(graph[None], len(edges), axis=0)
    without[each, edges[:, 0], edges[:, 1]] = False
    added = _with_each(graph, np.argwhere(allowed & ~graph & ~graph.T))
    return np.concatenate([without, _cut(graph, edges), added])


def _moved(graph: Flags, allowed: Flags) -> Flags:
    """Return the graphs in which one edge is reversed or leads from or to another step, [B, K, K]."""
    edges = np.argwhere(_edges(graph[None])[0])
    found = [np.zeros((0, *graph.shape), dtype=bool)]
    for (a, b), rest in zip(edges, _cut(graph, edges), strict=True):
        pairs = np.zeros_like(allowed)
        pairs[a], pairs[:, b], pairs[b, a] = True, True, True
        pairs[a, b] = False
        found.append(_with_each(rest, np.argwhere(pairs & allowed & ~rest & ~rest.T)))
    return np.concatenate(found)


def _cut(graph: Flags, edges: NDArray[np.int64]) -> Flags:
    """Return the graph without each of its edges, nor what that edge alone implies, [B, K, K]."""
    rest = np.repeat(_edges(graph[None]), len(edges), axis=0)
    rest[np.arange(len(edges)), edges[:, 0], edges[:, 1]] = False
    return _closed(rest)


def _with_each(graph: Flags, pairs: NDArray[np.int64]) -> Flags:
    """Return a transitive graph with each pair of steps added, and what that implies, [B, K, K]."""
    reach = graph | np.eye(len(graph), dtype=bool)
    found: Flags = graph | (reach[:, pairs[:, 0]].T[:, :, None] & reach[pairs[:, 1]][:, None, :])
    return found


def _bootstrap(
    seen: _Seen, model: ExecutionModel, prior: Floats, graph: Flags, draws: int, random: np.random.Generator
) -> dict[Edge, float]:
    """Return the smoothed share of draws of executions whose graph has each edge."""
    counts = np.zeros(graph.shape)
    for _ in range(draws):
        drawn = seen.redrawn(random)
        found, _ = _search(_scorer(drawn, model, prior), graph, drawn.before > drawn.before.T)
        counts += _edges(found[None])[0]
    return {(int(a), int(b)): (counts[a, b] + 1) / (draws + 2) for a, b in np.argwhere(_edges(graph[None])[0])}
