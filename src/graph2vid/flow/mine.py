"""Flow graphs from sequences: the precedences that executions of a procedure (almost) never violate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations

from graph2vid.errors import GraphError
from graph2vid.flow.flow_graph import FlowGraph
from graph2vid.flow.messages import quoted
from graph2vid.flow.order import Edge
from graph2vid.flow.steps import Step, StepLike, StepReference, as_step, index_by_id, resolve


@dataclass(frozen=True)
class Mined:
    """A mined flow graph, and how sure one can be of each of its edges.

    Attributes
    ----------
    flow : FlowGraph
        Acyclic and transitively reduced.
    support : mapping of (int, int) to float
        For each edge of ``flow``, the sequences that show both steps.
    honoured : mapping of (int, int) to float
        Those of them in which the first step comes first.
    confidence : mapping of (int, int) to float
        (honoured + 1) / (support + 2): the chance that the next sequence honours the edge, which grows with
        the number of sequences seen.
    dropped : tuple of (int, int)
        Precedences that were left out since, with surer ones, they would close a cycle or imply a precedence
        that is violated too often.
    score : float or None
        The log-posterior of the graph, where it was mined by that (:func:`mine_executions`).
    skip_rates : tuple of float
        The share of the executions that skip each step; empty where it was not counted.
    durations : mapping of int to (float, float)
        Of each step the median of the seconds that it lasts, and their spread (standard deviation of the logarithm).
    """

    flow: FlowGraph
    support: Mapping[Edge, float]
    honoured: Mapping[Edge, float]
    confidence: Mapping[Edge, float]
    dropped: tuple[Edge, ...]
    score: float | None = None
    skip_rates: tuple[float, ...] = ()
    durations: Mapping[int, tuple[float, float]] = field(default_factory=dict)


def mine_precedences(
    sequences: Iterable[Sequence[StepReference]],
    steps: Iterable[StepLike] | None = None,
    *,
    min_support: int = 5,
    tolerance: float = 0.0,
    title: str = "",
) -> Mined:
    """Find what comes before what in sequences of steps, and how sure that is.

    A step that comes several times counts where it comes first. A pair of steps becomes a precedence when
    at least ``min_support`` sequences show both and at most the share ``tolerance`` of these has the other
    order. Where precedences together would form a cycle or imply one that is violated more often than that (they
    are seen in different sequences), the least certain ones are dropped.

    Parameters
    ----------
    sequences : iterable of sequences
        The steps in the order in which they were done, by index (int) or id (str). Steps may be missing.
    steps : iterable of str, Step or (id, text), optional
        The steps of the procedure. By default the ids that occur, in the order of their first appearance,
        each being its own text.
    min_support : int
        At least 1.
    tolerance : float
        At least 0 and less than 0.5.
    title : str
        What the procedure is called.

    Returns
    -------
    Mined
    """
    if isinstance(min_support, bool) or not isinstance(min_support, int) or min_support < 1:
        raise GraphError(f"min_support must be a whole number, at least 1, not {quoted(min_support)}")
    if not (isinstance(tolerance, int | float) and 0 <= tolerance < 0.5):
        raise GraphError(f"tolerance must be a share from 0 to below 0.5, not {quoted(tolerance)}")
    rows = _rows(sequences)
    made = steps_seen(rows) if steps is None else tuple(as_step(step, place) for place, step in enumerate(steps))
    before = _count(rows, made)

    candidates: dict[Edge, tuple[float, int]] = {}  # confidence and support
    never_before = [1 << step for step in range(len(made))]
    for a, b in permutations(range(len(made)), 2):
        support = before[a][b] + before[b][a]
        if support < min_support:
            continue
        if before[b][a] <= math.floor(tolerance * support + 1e-9):
            candidates[a, b] = ((before[a][b] + 1) / (support + 2), support)
        else:
            never_before[a] |= 1 << b

    kept, dropped = consistent(candidates, never_before)
    flow = FlowGraph(made, tuple(kept), title).transitive_reduction()
    seen = {edge: candidates[edge][1] for edge in flow.edges}
    honoured = {(a, b): before[a][b] for a, b in flow.edges}
    confidence = {edge: candidates[edge][0] for edge in flow.edges}
    return Mined(flow, seen, honoured, confidence, tuple(sorted(dropped)))


def add_soft_precedence(
    flow: FlowGraph, sequences: Iterable[Sequence[StepReference]], *, min_support: int = 5, tolerance: float = 0.35
) -> FlowGraph:
    """Return a graph with the precedences added that sequences violate now and then, with their confidence.

    Its own edges stay as they are. Precedences that would close a cycle with surer ones are left out.

    Parameters
    ----------
    flow : FlowGraph
        The procedure.
    sequences : iterable of sequences
        Its steps in the order in which they were done, as for :func:`mine_precedences`.
    min_support : int
        In how many sequences two steps must both occur.
    tolerance : float
        The largest share of these that has the other order; less than 0.5.
    """
    before = _count(_rows(sequences), flow.steps)
    found: dict[Edge, tuple[float, int]] = {}
    for a, b in permutations(range(len(flow)), 2):
        support = before[a][b] + before[b][a]
        if support >= min_support and before[b][a] <= tolerance * support and not flow.descendants[a] >> b & 1:
            found[a, b] = ((before[a][b] + 1) / (support + 2), 0)
    kept, _ = consistent(found, [1 << step for step in range(len(flow))], flow.descendants)
    edges = {**flow.confidence, **{edge: found[edge][0] for edge in kept}}
    return replace(flow, edges=tuple(edges), confidences=tuple(edges.values()))


def _rows(sequences: Iterable[Sequence[StepReference]]) -> list[Sequence[StepReference]]:
    rows = list(sequences)
    for number, row in enumerate(rows):
        if isinstance(row, str):
            raise GraphError(f"sequence {number} must be a list of steps, not the string {quoted(row)}")
    return rows


def steps_seen(rows: Iterable[Sequence[StepReference]]) -> tuple[Step, ...]:
    """Return the steps that sequences name, in the order of their first appearance."""
    seen = dict.fromkeys(step for row in rows for step in row)
    for step in seen:
        if not isinstance(step, str):
            raise GraphError(f"the sequences name step {quoted(step)} by its index: say what the steps are (steps=…)")
    if not seen:
        raise GraphError("the sequences are empty: there is nothing to mine")
    return tuple(Step(str(step), str(step)) for step in seen)


def _count(rows: Iterable[Sequence[StepReference]], steps: tuple[Step, ...]) -> list[list[int]]:
    """Return [K][K]: in how many sequences the first occurrence of a comes before that of b."""
    index_of = index_by_id(steps)
    before = [[0] * len(steps) for _ in steps]
    for number, row in enumerate(rows):
        try:
            order = list(dict.fromkeys(resolve(step, index_of) for step in row))
        except GraphError as error:
            raise GraphError(f"sequence {number}: {error}") from None
        for a, b in combinations(order, 2):
            before[a][b] += 1
    return before


def consistent(
    candidates: Mapping[Edge, tuple[float, int]], never_before: list[int], later: Sequence[int] = ()
) -> tuple[list[Edge], list[Edge]]:
    """Keep the surest edges that together imply nothing false; return what is kept and what is dropped.

    Parameters
    ----------
    candidates : mapping of (int, int) to (float, int)
        Confidence and support of each edge.
    never_before : list of int
        For each step the bit mask of the steps that it must not be made to precede, itself included (a cycle
        would say that a step precedes itself).
    later : sequence of int
        For each step the bit mask of those that it precedes already.
    """
    count = len(never_before)
    reach = [1 << step | mask for step, mask in enumerate(later or [0] * count)]  # each leads to itself, too
    kept, dropped = [], []
    for a, b in sorted(candidates, key=lambda edge: (-candidates[edge][0], -candidates[edge][1], edge)):
        before = [step for step in range(count) if reach[step] >> a & 1]
        if any(reach[b] & never_before[step] for step in before):
            dropped.append((a, b))
            continue
        kept.append((a, b))
        for step in before:
            reach[step] |= reach[b]
    return kept, dropped
