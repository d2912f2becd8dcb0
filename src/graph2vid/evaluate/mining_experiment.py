"""Graphs mined from the executions of a recipe, compared with the graph that experts made of it (CaptainCook4D)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from statistics import fmean
from typing import TypeAlias

from graph2vid._evaluation_options import MiningOptions
from graph2vid.datasets import Recording, Split, Task, captaincook4d
from graph2vid.evaluate import report as cells
from graph2vid.evaluate.counts import LEVEL, Counts, compare, f1_interval, total
from graph2vid.evaluate.methods import Training
from graph2vid.evaluate.parser.graph_scores import precedences
from graph2vid.evaluate.report import Report, Table
from graph2vid.flow import FlowGraph

EXPERT = "expert"
_METHODS = ("bag", "linear", "graph:mined")

Pairs: TypeAlias = set[tuple[int, int]]

_KINDS: dict[str, Callable[[Recording], bool]] = {
    "all": lambda _: True,
    "plain": lambda one: not one.notes.get("skipped") and not one.notes.get("order_error"),
}
"""Recordings that are mined: all, or those without skipped steps and order errors."""


def evaluate_mining(data: str | Path, options: MiningOptions | None = None) -> Iterator[Report]:
    """Compare mined graphs with those of experts; yield the report after each kind of recordings.

    Nothing of the expert graphs is used in mining but which nodes a step stands for. The linear procedure, by the mean
    position of the steps in the same recordings, and the bag of steps stand beside the mined graph.

    Parameters
    ----------
    data : path
        As for :func:`graph2vid.datasets.captaincook4d.load`.
    options : MiningOptions, optional
        As for :meth:`graph2vid.FlowGraph.mine`.
    """
    options = options or MiningOptions()
    min_support, tolerance = options.min_support, options.tolerance
    dataset = captaincook4d.load(data)
    tasks = list(dataset.tasks.values())
    report = Report(
        "mining",
        f"Graphs mined from the recordings of {len(tasks)} recipes of captaincook4d, compared with their expert "
        f"graphs: min_support {min_support}, tolerance {tolerance:g}",
        "graph2vid-mining-evaluation",
        document={"min_support": min_support, "tolerance": tolerance, "rows": []},
    )
    shown: list[tuple[str | int, ...]] = []
    for number, (kind, is_kept) in enumerate(_KINDS.items(), start=1):
        kept = [recording for recording in dataset.recordings if is_kept(recording)]
        training = Training(dataset, "mean-position", min_support, tolerance)
        for method in _METHODS:
            edges, closure = [], []
            for task in tasks:
                found, gold = _graph(training, task, kept, method), task.flows[EXPERT]
                unseen = {pair for row in task.correspondence for pair in combinations(sorted(row), 2)}
                unseen |= {(after, before) for before, after in unseen}
                edges.append(compare(_edges(found) - unseen, _edges(gold) - unseen))
                closure.append(compare(precedences(found) - unseen, precedences(gold) - unseen))
            name = method if kind == "all" else f"{method}:{kind}"
            report.document["rows"].append(
                {"method": name, "recordings": len(kept), "recipes": len(tasks)}
                | total(edges).to_json()
                | {"interval": list(f1_interval(edges)), "precedence": total(closure).to_json()}
            )
            shown.append((method, kind, len(kept), *_cells(edges), *_cells(closure)))
        report.is_complete = number == len(_KINDS)
        steps = fmean(len(task.procedure) for task in tasks)
        note = f"Recipes have {steps:.1f} steps in the mean. {_NOTE}"
        report.tables = [Table("Mined graphs", note, _COLUMNS, shown, 2, is_growing=not report.is_complete)]
        yield report


def _graph(training: Training, task: Task, recordings: Sequence[Recording], method: str) -> FlowGraph:
    """Return the graph of a recipe as a method makes it from these recordings."""
    split = Split(str(len(recordings)), tuple(recording.id for recording in recordings), ())
    if method == "bag":
        return FlowGraph.bag(list(task.procedure))
    if method == "linear":
        order = training.linear_order(task, split).tolist()
        return FlowGraph.from_edges(list(task.procedure), list(pairwise(order)))
    mined = training.mined(task, split)
    assert mined is not None
    return mined


def _edges(flow: FlowGraph) -> Pairs:
    return set(flow.transitive_reduction().edges)


def _cells(counts: Sequence[Counts]) -> tuple[str, ...]:
    whole = total(counts)
    low, high = f1_interval(counts)
    shares = (cells.percent(100 * whole.precision), cells.percent(100 * whole.recall))
    return *shares, cells.span(100 * whole.f1, 100 * low, 100 * high)


_NOTE = (
    "Edges: of the transitively reduced graphs; precedences: all pairs in the closure. Micro averages, in percent; in "
    f"brackets {LEVEL:.0%} intervals over recipes. Recordings: all, or those without skipped steps and order errors "
    "(plain). Pairs of nodes that stand for one and the same step are left out: recordings do not tell them apart."
)
_COLUMNS = ("method", "recordings", "number", "edge P", "R", "F1", "precedence P", "R", "F1")
