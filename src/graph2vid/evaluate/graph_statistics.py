"""Statistics of the graphs: their sizes per source, exact against brute force, and where sources disagree."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from statistics import fmean, median
from time import perf_counter
from typing import Any

from graph2vid.alignment import align, align_many
from graph2vid.datasets import Dataset, Task
from graph2vid.errors import InputError
from graph2vid.evaluate import report as cells
from graph2vid.evaluate.engine import Results
from graph2vid.evaluate.method_runner import match_costs, skip_costs
from graph2vid.evaluate.methods import MethodResult, Plan, Video, instructions_in_order
from graph2vid.evaluate.report import Table
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph, count_sorts

MOST_SORTS = 1000
"""Topological sorts that brute force is timed on; for a graph with more, the rest is estimated at the same pace."""

MOST_GRAPHS = 24
_BLOCK = 100  # sorts handed to the kernel at once


def graph_methods(results: Results) -> dict[str, MethodResult]:
    """Return the graph methods by source."""
    return {
        name.removeprefix("graph:"): method
        for name, method in results.methods.items()
        if name.startswith("graph:") and "+" not in name
    }


def distinct_plans(results: Results, method: MethodResult) -> list[tuple[Plan, Video]]:
    """Return each graph of a method once (one per task and split), with its first video."""
    found: dict[tuple[str, FlowGraph], tuple[Plan, Video]] = {}
    for at, plan in method.plans.items():
        found.setdefault((results.videos[at].task.id, plan.flow), (plan, results.videos[at]))
    return list(found.values())


def graph_sizes(results: Results) -> list[dict[str, Any]]:
    """Return the sizes of the graphs per source.

    Returns
    -------
    list of dict
        ``source``, ``graphs``, mean ``steps`` and ``threads`` (the least number of chains that cover the graph),
        median ``sorts`` (None with bounds ``sorts_lower``, ``sorts_upper`` where they were not all counted),
        ``tsort_nodes`` (mean and median, the root counted) over the ``compiled`` ones.
    """
    rows = []
    for source, method in graph_methods(results).items():
        flows = [plan.flow for plan, _ in distinct_plans(results, method)]
        if not flows:
            continue
        counts = [count_sorts(flow, results.options.limit) for flow in flows]
        nodes = [results.tsorts[flow].n_states + 1 for flow in flows if flow in results.tsorts]
        lower = _number(median(count.lower for count in counts))
        rows.append(
            {
                "source": source,
                "graphs": len(flows),
                "compiled": len(nodes),
                "steps": fmean(len(flow) for flow in flows),
                "threads": fmean(flow.width for flow in flows),
                "sorts": lower if all(count.exact is not None for count in counts) else None,
                "sorts_lower": lower,
                "sorts_upper": _number(median(count.upper for count in counts)),
                "tsort_nodes": fmean(nodes) if nodes else None,
                "tsort_nodes_median": median(nodes) if nodes else None,
            }
        )
    return rows


def _number(value: float) -> float:
    """Return a count as JSON can hold it: exact while it is small, else rounded."""
    return int(value) if value < 2**53 else float(value) if value < 1e300 else math.inf


def size_table(sizes: list[dict[str, Any]]) -> Table:
    """Return the table of :func:`graph_sizes`."""
    rows = []
    for row in sizes:
        means = [f"{row[name]:.1f}" for name in ("steps", "threads")]
        sorts = cells.bounded_count(row["sorts"], row["sorts_lower"], row["sorts_upper"])
        nodes = [cells.count(row[name]) for name in ("tsort_nodes", "tsort_nodes_median")]
        rows.append((row["source"], row["graphs"], *means, sorts, *nodes, row["graphs"] - row["compiled"]))
    return Table(
        "Graphs",
        "Means over the graphs (one per task, and per split where they are mined); sorts: the median. "
        "tSort nodes over those within the limit.",
        ("source", "graphs", "steps", "threads", "sorts", "tSort nodes", "median", "beyond limit"),
        rows,
    )


def brute_force_table(times: list[dict[str, Any]]) -> Table:
    """Return the table of :func:`time_against_brute_force`."""
    rows = []
    for row in times:
        seconds = [cells.duration(row[name]) for name in ("exact_seconds", "brute_seconds")]
        rows.append((row["source"], row["graphs"], row["complete"], *seconds, f"{cells.count(row['ratio'])}×"))
    return Table(
        "Exact against brute force",
        f"On these graphs, one video each, one thread. Brute force: every topological sort through Drop-DTW by the "
        f"same kernels; capped at {times[0]['most_sorts']:,} sorts per graph, beyond which the time is estimated at "
        "the same pace. Where all sorts were tried, the costs agreed.",
        ("source", "graphs", "all tried", "exact", "brute force", "ratio (median)"),
        rows,
    )


def time_against_brute_force(results: Results, *, most_sorts: int = MOST_SORTS) -> list[dict[str, Any]]:
    """Time the exact method and brute force on the real graphs, one video each, on one thread.

    Brute force puts every topological sort through Drop-DTW by the same compiled kernels, many sorts at once. A graph
    with more than ``most_sorts`` of them is timed on the first ``most_sorts``, and the whole is estimated from that.

    Returns
    -------
    list of dict
        Per source: ``graphs``, ``exact_seconds`` (mean), ``brute_seconds`` (mean, estimated), ``ratio`` (median),
        ``complete`` (graphs whose sorts were all tried; there the costs were equal), ``most_sorts``, ``cases``.
    """
    rows = []
    for source, method in graph_methods(results).items():
        pairs = [pair for pair in distinct_plans(results, method) if pair[0].flow in results.tsorts][:MOST_GRAPHS]
        cases = [_time(results, plan, video, most_sorts) for plan, video in pairs]
        if cases:
            complete = sum(case["complete"] for case in cases)
            row = {"source": source, "graphs": len(cases), "complete": complete, "most_sorts": most_sorts}
            row |= {name: fmean(case[name] for case in cases) for name in ("exact_seconds", "brute_seconds")}
            ratio = median(case["brute_seconds"] / case["exact_seconds"] for case in cases)
            rows.append(row | {"ratio": ratio, "cases": cases})
    return rows


def _time(results: Results, plan: Plan, video: Video, most_sorts: int) -> dict[str, Any]:
    tsort, costs = results.tsorts[plan.flow], video.costs
    match, skip = match_costs(plan, costs), skip_costs(plan, costs)
    how: dict[str, Any] = {"contiguous": results.options.contiguous, "cost_only": True, "workers": 1}

    def exact() -> float:
        return align(tsort, match, costs.drop, skip, **how).cost

    exact()  # the first call lays the procedure out for the kernel
    began = perf_counter()
    cost = exact()
    exact_seconds = perf_counter() - began
    chain = TSortGraph.compile(FlowGraph.chain([str(place) for place in range(len(plan.flow))]))
    orders = [list(order) for order in islice(tsort.paths(), most_sorts)]
    best = math.inf
    began = perf_counter()
    for start in range(0, len(orders), _BLOCK):
        block = orders[start : start + _BLOCK]
        matches, drops = [match[order] for order in block], [costs.drop] * len(block)
        skips = None if skip is None else [skip[order] for order in block]
        best = min(best, *(alignment.cost for alignment in align_many(chain, matches, drops, skips, **how)))
    measured = perf_counter() - began
    sorts = tsort.n_sorts
    complete = sorts == len(orders)
    if complete and not math.isclose(cost, best, rel_tol=1e-4, abs_tol=1e-3):
        raise InputError(f"task {video.task.id}: brute force found cost {best}, the exact method {cost}")
    return {
        "task": video.task.id,
        "sorts": _number(sorts),
        "tried": len(orders),
        "complete": complete,
        "exact_seconds": exact_seconds,
        "brute_seconds": measured / len(orders) * _number(sorts),
    }


@dataclass(frozen=True)
class Difference:
    """An edge that some sources have and others do not even imply.

    Attributes
    ----------
    before, after : int
        Steps of the procedure.
    sources, others : tuple of str
        Who says it, and who does not.
    honoured, seen : int
        Of the executions that show both steps, those that begin ``before`` first.
    """

    before: int
    after: int
    sources: tuple[str, ...]
    others: tuple[str, ...]
    honoured: int
    seen: int


@dataclass(frozen=True)
class Comparison:
    """The graphs of one task side by side.

    Attributes
    ----------
    task : Task
    flows : dict of str to FlowGraph
        By source, transitively reduced.
    differences : tuple of Difference
    executions : int
        Recordings of the task.
    """

    task: Task
    flows: dict[str, FlowGraph]
    differences: tuple[Difference, ...]
    executions: int

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON holds it."""
        return {
            "task": self.task.id,
            "title": self.task.title,
            "executions": self.executions,
            "graphs": {source: flow.to_json() for source, flow in self.flows.items()},
            "differences": [
                {
                    "before": self.task.procedure[edge.before],
                    "after": self.task.procedure[edge.after],
                    "in": list(edge.sources),
                    "not_in": list(edge.others),
                    "honoured": edge.honoured,
                    "seen": edge.seen,
                    "share": edge.honoured / edge.seen if edge.seen else None,
                }
                for edge in self.differences
            ],
        }

    def table(self) -> Table:
        """Return the edges on which the graphs differ."""
        texts = self.task.procedure
        rows = []
        for edge in self.differences:
            honoured = f"{100 * edge.honoured / edge.seen:.0f}%" if edge.seen else "—"
            rows.append((texts[edge.before], texts[edge.after], ", ".join(edge.sources), honoured, edge.seen))
        return Table(
            f"{self.task.title or self.task.id}: edges on which the graphs differ",
            f"honoured: the share of the {self.executions} executions in which the one step begins first, of those "
            "that show both.",
            ("before", "after", "in", "honoured", "of"),
            rows,
            words=3,
        )


def compare_graphs(results: Results, name: str) -> Comparison:
    """Compare the graphs that the sources have for a task, and ask the real executions where they differ.

    An edge differs when one source has it and another does not imply it. An execution honours it when the first
    occurrence of the one step comes before that of the other. The linear procedure is one of the sources; of several
    mined graphs (one per split) the first stands here.

    Parameters
    ----------
    results : Results
    name : str
        The id or the title of a task.
    """
    task = find_task(results.dataset, name)
    flows: dict[str, FlowGraph] = {}
    for source, method in graph_methods(results).items():
        for plan, video in distinct_plans(results, method):
            if video.task.id == task.id:
                flows.setdefault(source, plan.flow.transitive_reduction())
    split = next((video.split for video in results.videos if video.task.id == task.id), None)
    order = results.training.linear_order(task, split).tolist()
    flows["linear"] = FlowGraph.from_edges(list(task.procedure), list(pairwise(order)), title=task.title)
    if len(flows) < 2:
        raise InputError(f"task {task.id} has no flow graph to compare")
    recordings = [recording for recording in results.dataset.recordings if recording.task == task.id]
    shown = [instructions_in_order(task, recording.order) for recording in recordings]
    orders = [{instruction: place for place, instruction in enumerate(order)} for order in shown]
    return Comparison(task, flows, tuple(_differences(flows, orders)), len(orders))


def find_task(dataset: Dataset, name: str) -> Task:
    """Return the task with this id or title."""
    for task in dataset.tasks.values():
        if name in (task.id, task.title):
            return task
    known = ", ".join(f"{task.id} ({task.title})" if task.title else task.id for task in dataset.tasks.values())
    raise InputError(f"{dataset.name} has no task {name!r}; it has: {known}")


def _differences(flows: dict[str, FlowGraph], orders: list[dict[int, int]]) -> Iterator[Difference]:
    for before, after in sorted({edge for flow in flows.values() for edge in flow.edges}):
        sources = tuple(source for source, flow in flows.items() if flow.descendants[before] >> after & 1)
        others = tuple(source for source in flows if source not in sources)
        if others:
            seen = [order for order in orders if before in order and after in order]
            honoured = sum(order[before] < order[after] for order in seen)
            yield Difference(before, after, sources, others, honoured, len(seen))
