"""Objectives side by side: features trained with each of them, several times, and tested on held-out videos."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from threading import Event
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from graph2vid._evaluation_options import ComparisonOptions
from graph2vid._training_options import OBJECTIVES, TrainingOptions
from graph2vid.datasets import Embeddings, is_dataset_in, read_dataset
from graph2vid.errors import InputError
from graph2vid.evaluate import EvaluationOptions, Interval, Progress, Report, Table, paired_interval
from graph2vid.evaluate import report as cells
from graph2vid.learn.features.residual_mlp import ResidualMLP
from graph2vid.learn.features.training_run import MINED, TrainingRun, with_graphs, with_splits

METRICS = ("acc", "iou", "iou_strict", "mof")
PRE_TRAINED = "pre-trained"
COLLAPSED = "graph, unbalanced"
_SAID = {
    PRE_TRAINED: "features as given",
    "bag": "bag of steps: clustering",
    "linear": "linear: Drop-DTW + clustering",
    "graph": "graph: Graph-Drop-DTW + clustering",
    "true-order": "true order: Drop-DTW + clustering",
    COLLAPSED: "graph, match likelihood (not balanced)",
}
_PAIRS = (*product(["graph"], [PRE_TRAINED, "linear", "bag"]), ("linear", PRE_TRAINED), ("true-order", "graph"))

Measured: TypeAlias = dict[tuple[str, str], dict[str, float]]
"""Metrics by method and video, shares."""

Trained: TypeAlias = dict[tuple[str, str, TrainingOptions], ResidualMLP]
"""Features by dataset, split and options, of objectives that know no graph: trained once for all sources of graphs."""


@dataclass(frozen=True)
class Regime:
    """How the features of a dataset are trained for the comparison.

    Attributes
    ----------
    options : TrainingOptions
        But for objective and seed.
    folds : int or None
        See :func:`graph2vid.learn.features.training_run.with_splits`.
    graph : str or None
        The source of the flow graphs.
    tolerance : float
        Of mined graphs (:meth:`graph2vid.FlowGraph.mine`).
    """

    options: TrainingOptions
    folds: int | None = None
    graph: str | None = None
    tolerance: float = 0.0


# Chosen on half of CrossTask's narrated videos and on the first split of 50 Salads; see docs/appendix/training.md.
REGIMES: Mapping[str, Regime] = {
    "crosstask": Regime(
        TrainingOptions(epochs=5, rate=1e-4, drop="percentile:50", every=3, patience=0), 3, "mined", tolerance=0.1
    ),
    "salads50": Regime(TrainingOptions(epochs=5, batch=8, every=3, patience=0)),
}
"""By dataset."""


@dataclass(frozen=True)
class Row:
    """One kind of features, evaluated one way.

    Attributes
    ----------
    features : str
        What they were trained with.
    method : str
        What they were grounded by.
    values : dict of str to float64 [seeds, videos]
        Metrics, shares; NaN where there is nothing to metric.
    """

    features: str
    method: str
    values: dict[str, NDArray[np.float64]]

    def mean(self, metric: str) -> float:
        """Return the mean over videos and seeds."""
        return float(np.nanmean(self.values[metric]))

    def spread(self, metric: str) -> float:
        """Return the standard deviation over the seeds of the mean over the videos; NaN where nothing is drawn."""
        means = np.nanmean(self.values[metric], axis=1)
        return float(means.std(ddof=1)) if len(means) > 1 else float("nan")

    def cell(self, metric: str) -> str:
        """Return mean and spread in percent."""
        spread, mean = self.spread(metric), cells.percent(100 * self.mean(metric))
        return mean if math.isnan(spread) else f"{mean} ± {100 * spread:.1f}"


@dataclass(frozen=True)
class Comparison:
    """What was found on one dataset.

    Attributes
    ----------
    dataset : str
    regime : Regime
    source : str
        Of the flow graphs.
    splits : tuple of str
    videos : tuple of str
        The test videos of all splits.
    seeds : tuple of int
    rows : tuple of Row
    """

    dataset: str
    regime: Regime
    source: str
    splits: tuple[str, ...]
    videos: tuple[str, ...]
    seeds: tuple[int, ...]
    rows: tuple[Row, ...]

    def row(self, features: str, method: str | None = None) -> Row:
        """Return a row by its features; grounded by graph unless said otherwise."""
        wanted = method or f"graph:{self.source}"
        return next(row for row in self.rows if (row.features, row.method) == (features, wanted))

    def difference(self, first: str, second: str, metric: str) -> Interval:
        """Return the paired difference of two kinds of features grounded by graph, with its interval; shares."""
        return paired_interval(*(self.row(features).values[metric].mean(axis=0) for features in (first, second)))

    def tables(self) -> list[Table]:
        """Return the metrics of all rows, and the differences."""
        options = self.regime.options
        title = self.dataset if self.source == MINED else f"{self.dataset}, graphs {self.source}"
        mined = f" from the training videos, tolerance {self.regime.tolerance:g}" if self.source == MINED else ""
        seeds = len(self.seeds)
        drawn = f"mean of {seeds} seeds ± their standard deviation (the row that is not balanced: one seed)"
        paired = []
        for row in self.differences():
            spans = [{key: 100 * share for key, share in row[name].items()} for name in METRICS]
            named = f"{row['first']} - {row['second']}"
            paired.append((named, len(self.videos), *(cells.signed_span(**span) for span in spans)))
        return [
            Table(
                f"{title}: objectives",
                f"{len(self.videos)} test videos of {len(self.splits)} splits; {drawn if seeds > 1 else 'one seed'}. "
                f"{options.smoothing}, gamma {options.gamma:g}, "
                f"{'' if options.contiguous else 'not '}contiguous, match {options.match}, drop {options.drop}, "
                f"pool_temperature {options.pool_temperature:g}, Adam {options.rate:g}, {options.epochs} epochs. "
                f"Graphs {self.source}{mined}.",
                ("features trained with", "grounded by", *METRICS),
                [(_SAID[row.features], row.method, *map(row.cell, METRICS)) for row in self.rows],
                words=2,
            ),
            Table(
                f"{title}: paired differences",
                "Grounded by graph; in points, means over the seeds, with 95% bootstrap intervals over the videos.",
                ("difference", "videos", *METRICS),
                paired,
            ),
        ]

    def differences(self) -> list[dict[str, Any]]:
        """Return the paired differences as JSON holds them; shares."""
        rows: list[dict[str, Any]] = []
        for first, second in _PAIRS:
            found = {name: self.difference(first, second, name) for name in METRICS}
            spans = {name: {"mean": one.mean, "low": one.low, "high": one.high} for name, one in found.items()}
            rows.append({"first": first, "second": second, **spans})
        return rows

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON holds it; metrics are shares."""
        return {
            "dataset": self.dataset,
            "graph": self.source,
            "splits": list(self.splits),
            "videos": len(self.videos),
            "seeds": list(self.seeds),
            "options": {name: value for name, value in asdict(self.regime.options).items() if name != "objective"},
            "rows": [
                {"features": row.features, "method": row.method}
                | {name: row.mean(name) for name in METRICS}
                | {"spread": {name: row.spread(name) for name in METRICS}}
                for row in self.rows
            ],
            "differences": self.differences(),
        }


def evaluate_training(
    data: str | os.PathLike[str],
    options: ComparisonOptions | None = None,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Report]:
    """Compare the objectives on datasets; yield the report after each.

    Parameters
    ----------
    data : path
        The folder that holds the datasets.
    options : ComparisonOptions, optional
        Datasets are names in :data:`REGIMES`; by default those that are in the folder.
    workers : int, optional
        Trainings at once; all processors by default.
    progress : callable, optional
    """
    options = options or ComparisonOptions()
    report = Report(" ".join(["training", *options.graphs]), format="graph2vid-training-evaluation")
    chosen = options.datasets or [name for name in REGIMES if is_dataset_in(data, name)]
    found: list[Comparison] = []
    for name in chosen:
        if name not in REGIMES:
            raise InputError(f"there is no regime of training for {name!r}; there is for: {', '.join(REGIMES)}")
    if not chosen:
        raise InputError(f"{data} holds none of these datasets: {', '.join(REGIMES)}")
    asked = [(name, graph) for name in chosen for graph in options.graphs or (None,)]
    trained: Trained = {}
    for name, graph in asked:
        only = replace(options, graphs=() if graph is None else (graph,))
        told = progress or (lambda *_: None)
        found.append(compare_objectives(data, name, only, workers=workers, progress=told, trained=trained))
        names = ", ".join(
            f"{one.dataset} ({len(one.videos)} videos, {len(one.splits)} splits, graphs {one.source})" for one in found
        )
        seeds = f"{options.seeds} seed{'s'[: options.seeds != 1]}"
        report.headline = f"Features trained with each objective, {seeds}, tested on held-out videos: {names}"
        report.tables += found[-1].tables()
        report.document = {"comparisons": [one.to_json() for one in found]}
        report.is_complete = len(found) == len(asked)
        yield report


def compare_objectives(
    data: str | os.PathLike[str],
    name: str,
    options: ComparisonOptions,
    *,
    workers: int | None = None,
    progress: Progress = lambda *_: None,
    trained: Trained | None = None,
) -> Comparison:
    """Train with every objective on every split of a dataset, and evaluate on the test videos.

    Nothing of the test videos is used in training. Of the annotations of training videos, the true order, mined graphs
    and mean positions read the orders; no validation by labels chooses the epoch, which is the last. Parameters are
    those of :func:`evaluate_training`; ``trained`` are features already there, and those that are trained are added.
    """
    regime = REGIMES[name]
    if options.epochs is not None:
        regime = replace(regime, options=replace(regime.options, epochs=options.epochs))
    if options.graphs:
        regime = replace(regime, graph=options.graphs[0])
    dataset, source = with_graphs(with_splits(read_dataset(name, Path(data)), regime.folds), regime.graph)
    vectors: dict[str, Embeddings] = {}  # made once
    evaluated = EvaluationOptions(tolerance=regime.tolerance)
    runs = [TrainingRun(dataset, split, source, False, evaluated, vectors) for split in dataset.splits]
    torch_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # one for each training: small matrices gain nothing from more
    try:
        told = partial(progress, f"{name}: trainings")
        found = _measured(runs, regime.options, options.seeds, workers, told, {} if trained is None else trained)
    finally:
        torch.set_num_threads(torch_threads)
    by_graph, by_true_order = runs[0].methods
    videos = tuple(video for method, video in found[PRE_TRAINED, 0] if method == by_graph)
    rows = [_row(found, features, by_graph, videos) for features in _SAID]
    rows += [_row(found, features, by_true_order, videos) for features in (PRE_TRAINED, "true-order")]
    splits = tuple(split.name for split in dataset.splits)
    return Comparison(name, regime, source, splits, videos, tuple(range(options.seeds)), tuple(rows))


class _Ended(Exception):
    """Another training failed, or the whole was interrupted."""


def _measured(
    runs: Sequence[TrainingRun],
    regime: TrainingOptions,
    seeds: int,
    workers: int | None,
    tell: Callable[[int, int], None],
    kept: Trained,
) -> dict[tuple[str, int], Measured]:
    """Return the metrics by what features were trained with, and by seed."""
    asked: list[tuple[str, TrainingRun, TrainingOptions]] = []
    for run in runs:
        run.evaluation("test")  # the vectors of all videos, before the threads
        run.examples("bag")
        for seed in range(seeds):
            asked += [(name, run, replace(regime, seed=seed, objective=name)) for name in OBJECTIVES]
        asked.append((COLLAPSED, run, replace(regime, objective="graph", match="likelihood")))

    ended = Event()  # a signal reaches the main thread alone, which tells the others so

    def go_on(*_: object) -> None:
        if ended.is_set():
            raise _Ended

    def trained(job: tuple[str, TrainingRun, TrainingOptions]) -> Measured:
        _, run, options = job
        key = (run.dataset.name, run.split.name, options)
        model = kept.get(key) or run.train(options, report=go_on).model()
        if options.objective != "graph":
            kept[key] = model
        return _metrics(run, model)

    found: dict[tuple[str, int], Measured] = {}
    for run in runs:
        found.setdefault((PRE_TRAINED, 0), {}).update(_metrics(run, None))
    pool = ThreadPoolExecutor(workers or os.cpu_count() or 1)
    try:
        for number, (job, measured) in enumerate(zip(asked, pool.map(trained, asked), strict=True), start=1):
            found.setdefault((job[0], job[2].seed), {}).update(measured)
            tell(number, len(asked))
    finally:
        ended.set()
        pool.shutdown(cancel_futures=True)
    return found


def _metrics(run: TrainingRun, mlp: ResidualMLP | None) -> Measured:
    evaluation = run.evaluation("test")
    if evaluation is None:
        return {}
    results = evaluation.results(mlp)
    return {
        (name, results.videos[at].recording.id): metrics
        for name, result in results.methods.items()
        for at, metrics in result.metrics.items()
    }


def _row(found: Mapping[tuple[str, int], Measured], name: str, method: str, videos: Sequence[str]) -> Row:
    drawn = [measured for (features, _), measured in sorted(found.items()) if features == name]
    rows = [[measured[method, video] for video in videos] for measured in drawn]
    return Row(name, method, {one: np.array([[row[one] for row in of_seed] for of_seed in rows]) for one in METRICS})
