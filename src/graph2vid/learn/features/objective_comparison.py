"""Objectives side by side: features trained with each of them, several times, and judged on held-out videos."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from graph2vid.datasets.dataset import Embeddings
from graph2vid.errors import InputError
from graph2vid.evaluate.engine import Options, Progress
from graph2vid.evaluate.experiment import read_dataset
from graph2vid.learn.features.options import OBJECTIVES, TrainingOptions
from graph2vid.learn.features.residual_mlp import ResidualMLP
from graph2vid.learn.features.training_run import Course, with_graphs, with_splits

MEASURES = ("acc", "iou", "iou_strict", "mof")
PRE_TRAINED = "pre-trained"
COLLAPSED = "graph, unbalanced"

Measured: TypeAlias = dict[str, dict[str, dict[str, float]]]
"""Measures by method, video and name, shares."""


@dataclass(frozen=True)
class Regime:
    """How the features of a dataset are trained for the table.

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
    marks : tuple of str
        Files or folders, one of which shows that a folder holds the dataset.
    """

    options: TrainingOptions
    marks: tuple[str, ...]
    folds: int | None = None
    graph: str | None = None
    tolerance: float = 0.0


# Chosen on half of CrossTask's narrated videos and on the first split of 50 Salads; see docs/appendix/training.md.
REGIMES: Mapping[str, Regime] = {
    "crosstask": Regime(
        TrainingOptions(
            epochs=5,
            rate=1e-4,
            gamma=0.3,
            smoothing="softmin",
            contiguous=True,
            drop="percentile:50",
            pool_temperature=1.0,
            every=3,
            patience=0,
        ),
        ("crosstask_narrated", "captions"),
        folds=3,
        graph="mined",
        tolerance=0.1,
    ),
    "salads50": Regime(
        TrainingOptions(
            epochs=5,
            batch=8,
            rate=3e-3,
            gamma=0.3,
            smoothing="softmin",
            contiguous=True,
            pool_temperature=1.0,
            every=3,
            patience=0,
        ),
        ("salads50", "mapping.txt"),
    ),
}
"""By dataset."""


@dataclass(frozen=True)
class Row:
    """One kind of features, judged one way.

    Attributes
    ----------
    features : str
        What they were trained with.
    method : str
        What they were grounded by.
    values : dict of str to float64 [seeds, videos]
        Measures, shares; NaN where there is nothing to measure.
    """

    features: str
    method: str
    values: dict[str, NDArray[np.float64]]

    def mean(self, measure: str) -> float:
        """Return the mean over videos and seeds."""
        return float(np.nanmean(self.values[measure]))

    def spread(self, measure: str) -> float:
        """Return the standard deviation over the seeds of the mean over the videos; NaN where nothing is drawn."""
        means = np.nanmean(self.values[measure], axis=1)
        return float(means.std(ddof=1)) if len(means) > 1 else float("nan")

    def by_video(self, measure: str) -> NDArray[np.float64]:
        """Return the mean over the seeds, [videos]."""
        return np.asarray(self.values[measure].mean(axis=0))


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
        """Return a row by its features; judged by graph unless said otherwise."""
        wanted = method or f"graph:{self.source}"
        return next(row for row in self.rows if (row.features, row.method) == (features, wanted))

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON holds it; measures are shares."""
        return {
            "dataset": self.dataset,
            "graph": self.source,
            "splits": list(self.splits),
            "videos": len(self.videos),
            "seeds": list(self.seeds),
            "options": {name: value for name, value in asdict(self.regime.options).items() if name != "objective"},
            "rows": [
                {
                    "features": row.features,
                    "method": row.method,
                    **{name: row.mean(name) for name in MEASURES},
                    "spread": {name: _or_none(row.spread(name)) for name in MEASURES},
                }
                for row in self.rows
            ],
        }


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value


@dataclass
class _Bench:
    """The splits of a dataset, ready to train on; the vectors of its videos are made once."""

    name: str
    data: Path
    regime: Regime
    found: dict[str, Embeddings] = field(default_factory=dict)

    @cached_property
    def courses(self) -> list[Course]:
        read = with_splits(read_dataset(self.name, self.data), self.regime.folds)
        dataset, source = with_graphs(read, self.regime.graph)
        judged = Options(tolerance=self.regime.tolerance)
        return [Course(dataset, split, source, False, judged, self.found) for split in dataset.splits]

    def measured(self, course: Course, mlp: ResidualMLP | None) -> Measured:
        judge = course.judge("test")
        if judge is None:
            return {}
        results = judge.results(mlp)
        return {
            name: {results.videos[at].recording.id: measures for at, measures in run.measures.items()}
            for name, run in results.runs.items()
        }


def compare_objectives(
    data: str | os.PathLike[str],
    datasets: Sequence[str] | None = None,
    *,
    seeds: int = 3,
    epochs: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> tuple[list[Comparison], float]:
    """Train with every objective on every split of datasets, and judge on the test videos.

    Nothing of the test videos is used in training. Of the annotations of training videos, the true order, mined graphs
    and mean positions read the orders; no validation by labels chooses the epoch, which is the last.

    Parameters
    ----------
    data : path
        The folder that holds the datasets.
    datasets : sequence of str, optional
        Names in :data:`REGIMES`; by default those that are in the folder.
    seeds : int
        How often each is trained, with seeds from 0.
    epochs : int, optional
        In place of the regime's.
    workers : int, optional
        Trainings at once; all processors by default.
    progress : callable, optional

    Returns
    -------
    comparisons : list of Comparison
    seconds : float
    """
    began = perf_counter()
    if seeds < 1:
        raise InputError(f"at least one seed is needed, not {seeds}")
    for name in datasets or ():
        if name not in REGIMES:
            raise InputError(f"there is no regime of training for {name!r}; there is for: {', '.join(REGIMES)}")
    done = []
    threads, torch_threads = workers or os.cpu_count() or 1, torch.get_num_threads()
    torch.set_num_threads(1)  # one for each training: small matrices gain nothing from more
    try:
        for name in datasets or REGIMES:
            regime = REGIMES[name]
            if epochs is not None:
                regime = replace(regime, options=replace(regime.options, epochs=epochs))
            if datasets is not None or any((Path(data) / mark).exists() for mark in regime.marks):
                done.append(_compare(_Bench(name, Path(data), regime), tuple(range(seeds)), threads, progress))
    finally:
        torch.set_num_threads(torch_threads)
    if not done:
        raise InputError(f"{data} holds none of these datasets: {', '.join(REGIMES)}")
    return done, perf_counter() - began


class _Ended(Exception):
    """Another training failed, or the whole was interrupted."""


def _compare(bench: _Bench, seeds: tuple[int, ...], threads: int, progress: Progress | None) -> Comparison:
    courses = bench.courses
    asked: list[tuple[str, Course, TrainingOptions]] = []
    for course in courses:
        course.judge("test")  # the vectors of all videos, before the threads
        course.examples("bag")
        for seed in seeds:
            options = replace(bench.regime.options, seed=seed)
            asked += [(name, course, replace(options, objective=name)) for name in OBJECTIVES]
        unbalanced = replace(bench.regime.options, objective="graph", match="likelihood")
        asked.append((COLLAPSED, course, unbalanced))

    ended = Event()  # a signal reaches the main thread alone, which tells the others so

    def go_on(*_: object) -> None:
        if ended.is_set():
            raise _Ended

    def run(job: tuple[str, Course, TrainingOptions]) -> Measured:
        _, course, options = job
        return bench.measured(course, course.train(options, report=go_on).model())

    found: dict[tuple[str, int], Measured] = {}
    for course in courses:
        _merge(found.setdefault((PRE_TRAINED, 0), {}), bench.measured(course, None))
    pool = ThreadPoolExecutor(threads)
    try:
        for number, (job, measured) in enumerate(zip(asked, pool.map(run, asked), strict=True), start=1):
            _merge(found.setdefault((job[0], job[2].seed), {}), measured)
            if progress is not None:
                progress(f"{bench.name}: trainings", number, len(asked))
    finally:
        ended.set()
        pool.shutdown(cancel_futures=True)
    by_graph, by_true_order = courses[0].methods
    videos = tuple(found[PRE_TRAINED, 0][by_graph])
    rows = [
        _row(found, name, by_graph, videos) for name in (PRE_TRAINED, "bag", "linear", "graph", "true-order", COLLAPSED)
    ]
    rows += [_row(found, name, by_true_order, videos) for name in (PRE_TRAINED, "true-order")]
    return Comparison(
        bench.name,
        bench.regime,
        courses[0].source,
        tuple(course.split.name for course in courses),
        videos,
        seeds,
        tuple(rows),
    )


def _merge(into: Measured, more: Measured) -> None:
    for method, of_method in more.items():
        into.setdefault(method, {}).update(of_method)


def _row(found: Mapping[tuple[str, int], Measured], name: str, method: str, videos: Sequence[str]) -> Row:
    drawn = [measured[method] for (features, _), measured in sorted(found.items()) if features == name]
    return Row(
        name,
        method,
        {
            measure: np.array([[of_seed[video][measure] for video in videos] for of_seed in drawn])
            for measure in MEASURES
        },
    )
