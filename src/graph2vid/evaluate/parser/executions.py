"""Graphs compared with real executions: what people do shows what must come before what."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median
from typing import Any

from graph2vid.datasets import Executions, Task
from graph2vid.evaluate.counts import Counts, compare, total
from graph2vid.evaluate.methods import instructions_in_order
from graph2vid.evaluate.parsed import ParsedGraphs
from graph2vid.evaluate.parser.graph_scores import precedences
from graph2vid.flow import FlowGraph
from graph2vid.tsort import SortCount, count_sorts

MIN_SUPPORT = 5
"""Videos that must show both instructions of a pair before its order is taken as known."""

BAG = "bag"


def admits(flow: FlowGraph, order: Sequence[int]) -> bool:
    """Tell whether a graph allows steps in this order; steps that are missing from it do not matter."""
    done = 0
    for step in reversed(order):  # nothing that must come earlier may come later
        if flow.ancestors[step] & done:
            return False
        done |= 1 << step
    return True


@dataclass(frozen=True)
class Pairs:
    """What executions say about pairs of instructions of different steps.

    Attributes
    ----------
    never_violated : frozenset of (int, int)
        Seen together often enough, always in this order.
    known : frozenset of (int, int)
        Seen together often enough, in both directions each.
    """

    never_violated: frozenset[tuple[int, int]]
    known: frozenset[tuple[int, int]]


def known_pairs(task: Task, orders: Sequence[Sequence[int]], min_support: int = MIN_SUPPORT) -> Pairs:
    """Find the pairs of instructions whose order the executions of a task settle.

    Parameters
    ----------
    task : Task
    orders : sequence of sequences of int
        Instructions in the order in which each video shows them first.
    min_support : int
        Videos that must show both. Instructions that stand for one and the same step do not count: which of them
        came first was not seen.
    """
    together = {pair for row in task.correspondence for pair in combinations(sorted(row), 2)}
    first: dict[tuple[int, int], int] = {}
    for order in orders:
        for pair in combinations(order, 2):
            first[pair] = first.get(pair, 0) + 1
    known, settled = set(), set()
    for a, b in combinations(range(len(task.procedure)), 2):
        one, other = first.get((a, b), 0), first.get((b, a), 0)
        if (a, b) in together or one + other < min_support:
            continue
        known |= {(a, b), (b, a)}
        if not one or not other:
            settled.add((a, b) if one else (b, a))
    return Pairs(frozenset(settled), frozenset(known))


@dataclass(frozen=True)
class TaskResults:
    """One graph of one task.

    Attributes
    ----------
    admitted : int
        Executions that the graph allows.
    admitted_of_two : int
        Those of them with at least two instructions: of fewer, every graph allows every one.
    sorts : SortCount
        How many orders the graph allows in all.
    pairs : Counts
        Its precedences against those that no execution violates, among the pairs that are known.
    """

    admitted: int
    admitted_of_two: int
    sorts: SortCount
    pairs: Counts


@dataclass(frozen=True)
class ExecutionResults:
    """Graphs of several sources compared with the executions of several tasks.

    Attributes
    ----------
    tasks : tuple of Task
        Their procedures are the how-to texts.
    executions, executions_of_two : dict of str to int
        By task: how many there are, and with at least two mapped instructions.
    sources : dict of str to dict of str to TaskResults
        By source and task.
    step_list : dict of str to int
        By task: executions that follow the dataset's own list of steps.
    """

    tasks: tuple[Task, ...]
    executions: dict[str, int]
    executions_of_two: dict[str, int]
    sources: dict[str, dict[str, TaskResults]]
    step_list: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return shares, numbers of sorts and their ratios to the bag's, overall and per task."""
        return {
            "tasks_count": len(self.tasks),
            "executions": sum(self.executions.values()),
            "executions_of_two": sum(self.executions_of_two.values()),
            "min_support": MIN_SUPPORT,
            "step_list_admitted": _share(sum(self.step_list.values()), sum(self.executions.values())),
            "sources": {source: self._overall(source) for source in self.sources},
            "tasks": [
                {
                    "task": task.id,
                    "title": task.title,
                    "instructions": len(task.procedure),
                    "executions": self.executions[task.id],
                    "executions_of_two": self.executions_of_two[task.id],
                    "step_list_admitted": _share(self.step_list[task.id], self.executions[task.id]),
                    "sources": {
                        source: self._of_task(source, task.id)
                        for source in self.sources
                        if task.id in self.sources[source]
                    },
                }
                for task in self.tasks
            ],
        }

    def _of_task(self, source: str, task: str) -> dict[str, Any]:
        results = self.sources[source][task]
        return {
            "admitted": _share(results.admitted, self.executions[task]),
            "admitted_of_two": _share(results.admitted_of_two, self.executions_of_two[task]),
            "sorts": _number(results.sorts.exact),
            "sorts_lower": _number(results.sorts.lower),
            "sorts_upper": _number(results.sorts.upper),
            "pairs": results.pairs.to_json(),
        }

    def _overall(self, source: str) -> dict[str, Any]:
        of_task = self.sources[source]
        seen = [task for task in of_task if self.executions[task]]
        lower, upper = (
            median(getattr(results.sorts, bound) for results in of_task.values()) for bound in ("lower", "upper")
        )
        bag = self.sources.get(BAG)
        bag_median = None if bag is None else median(bag[task].sorts.lower for task in of_task)
        return {
            "tasks_count": len(of_task),
            "admitted": _share(
                sum(of_task[task].admitted for task in seen), sum(self.executions[task] for task in seen)
            ),
            "admitted_of_two": _share(
                sum(of_task[task].admitted_of_two for task in seen), sum(self.executions_of_two[task] for task in seen)
            ),
            "admitted_mean_of_tasks": fmean(of_task[task].admitted / self.executions[task] for task in seen)
            if seen
            else math.nan,
            "sorts_median": _number(lower) if lower == upper else None,
            "sorts_median_lower": _number(lower),
            "sorts_median_upper": _number(upper),
            "bag_sorts_ratio": None if bag_median is None else bag_median / upper,
            "pairs": total(results.pairs for results in of_task.values()).to_json(),
        }


def compare_with_executions(found: Sequence[Executions], graphs: ParsedGraphs) -> ExecutionResults:
    """Compare the given graphs of tasks and those of parsers with the executions of these tasks.

    An execution is the order in which a video first shows the instructions that its steps stand for; a step of several
    instructions brings them in the written order.
    """
    sources: dict[str, dict[str, TaskResults]] = {}
    executions, of_two, step_list = {}, {}, {}
    for one in found:
        task = one.task
        orders = [instructions_in_order(task, order) for order in one.orders]
        executions[task.id] = len(orders)
        of_two[task.id] = sum(len(order) > 1 for order in orders)
        step_list[task.id] = sum(list(order) == sorted(order) for order in one.orders)
        pairs = known_pairs(task, orders)
        for source, flow in _flows(task, graphs).items():
            ways = [len(order) for order in orders if admits(flow, order)]
            sources.setdefault(source, {})[task.id] = TaskResults(
                len(ways),
                sum(length > 1 for length in ways),
                count_sorts(flow),
                compare(precedences(flow) & pairs.known, pairs.never_violated),
            )
    # A parser that turned out not to work halfway has results for some tasks only: they would not compare.
    kept = {source: results for source, results in sources.items() if source not in graphs.unavailable}
    return ExecutionResults(tuple(one.task for one in found), executions, of_two, kept, step_list)


def _flows(task: Task, graphs: ParsedGraphs) -> Mapping[str, FlowGraph]:
    made = {parser: graphs.flow(parser, task.procedure, task.title) for parser in graphs.parsers}
    return {parser: flow for parser, flow in made.items() if flow is not None} | dict(task.flows)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def _number(value: float | None) -> float | None:
    """Return a count as JSON can hold it: exact while it is small, else rounded."""
    return None if value is None else int(value) if value < 2**53 and value == int(value) else float(value)
