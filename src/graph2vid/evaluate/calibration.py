"""Is a segment with a confidence of 80% right in 80% of its clips? Confidences held against the truth.

One number, gamma, says how sure posteriors are of themselves. It is chosen on the other splits, for each.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid import __version__
from graph2vid.alignment import posterior
from graph2vid.errors import InputError
from graph2vid.evaluate import cells
from graph2vid.evaluate.engine import Options, Results, evaluate_dataset
from graph2vid.evaluate.experiment import read_dataset
from graph2vid.evaluate.labels import shared_classes, to_classes
from graph2vid.evaluate.plots import plot_reliability
from graph2vid.evaluate.tables import Table, section_into_page

NAME = "calibration"
DATASETS = {"salads50": "graph:mined", "crosstask": "graph:manual"}
"""The datasets by default, and the method whose confidences are judged on each."""

GAMMAS = (1.0, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0)
BINS = 10

Counts = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reliability:
    """Clips that are given a step, by how probable that step is there: in ten bins of equal width.

    Attributes
    ----------
    clips, confidence, right : float64 [10]
        How many clips, the sum of their probabilities, and how many of them are right.
    """

    clips: Counts
    confidence: Counts
    right: Counts

    @classmethod
    def of(cls, confidence: Counts, right: NDArray[np.bool_]) -> Reliability:
        """Sort clips into bins."""
        at = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
        columns = (np.bincount(at, weight, BINS) for weight in (np.ones(len(at)), confidence, right))
        return cls(*(column.astype(np.float64) for column in columns))

    @classmethod
    def together(cls, parts: Sequence[Reliability]) -> Reliability:
        """Return the sums of several."""
        return cls(
            *(np.sum([getattr(part, name) for part in parts], axis=0) for name in ("clips", "confidence", "right"))
        )

    @property
    def error(self) -> float:
        """The expected calibration error: mean over the clips of |confidence - accuracy| of their bin."""
        return float(np.abs(self.confidence - self.right).sum() / max(self.clips.sum(), 1.0))

    @property
    def mean(self) -> tuple[float, float]:
        """The mean confidence, and the share that is right."""
        total = max(float(self.clips.sum()), 1.0)
        return float(self.confidence.sum()) / total, float(self.right.sum()) / total

    def to_json(self) -> dict[str, Any]:
        """Return the bins."""
        return {
            "error": self.error,
            **{name: getattr(self, name).tolist() for name in ("clips", "confidence", "right")},
        }


@dataclass(frozen=True)
class Calibration:
    """The confidences of one method on one dataset.

    Attributes
    ----------
    dataset, method : str
    videos : int
    by_gamma : dict of float to Reliability
        All test videos, with one gamma for all.
    chosen : dict of str to float
        By split: the gamma with the least error on the other splits.
    calibrated : Reliability
        Each split with its own.
    """

    dataset: str
    method: str
    videos: int
    by_gamma: dict[float, Reliability]
    chosen: dict[str, float]
    calibrated: Reliability


def calibrate(
    results: Results,
    method: str,
    gammas: Sequence[float] = GAMMAS,
    progress: Callable[[str, int, int], None] | None = None,
) -> Calibration:
    """Hold the confidences of a method against the truth, clip by clip.

    Parameters
    ----------
    results : Results
        An evaluation with that method, which aligned a flow graph.
    method : str
    gammas : sequence of float
        Those to choose from; the first is what confidences have by default.
    progress : callable, optional
        Called as (what is done, done, total).
    """
    run = results.runs[method]
    if not run.plans or not gammas:
        raise InputError(f"{method} has no posterior to judge, or there is no gamma to judge it with")
    by_split: dict[str, dict[float, list[Reliability]]] = {}
    members = sorted(run.labels)
    for done, at in enumerate(members, start=1):
        video = results.videos[at]
        split = "" if video.split is None else video.split.name
        found = by_split.setdefault(split, {gamma: [] for gamma in gammas})
        for gamma in gammas:
            found[gamma].append(_reliability(results, method, at, gamma))
        if progress is not None:
            progress(f"{results.dataset.name}: posteriors", done, len(members))
    sums = {
        split: {gamma: Reliability.together(parts) for gamma, parts in found.items()}
        for split, found in by_split.items()
    }
    chosen = {}
    for split in sums:
        others = [other for name, other in sums.items() if name != split] or [sums[split]]
        chosen[split] = min(gammas, key=lambda gamma: Reliability.together([other[gamma] for other in others]).error)
    return Calibration(
        results.dataset.name,
        method,
        len(members),
        {gamma: Reliability.together([found[gamma] for found in sums.values()]) for gamma in gammas},
        chosen,
        Reliability.together([sums[split][gamma] for split, gamma in chosen.items()]),
    )


def _reliability(results: Results, method: str, at: int, gamma: float) -> Reliability:
    """Return how probable the labels of a video are, and whether they are right."""
    run, video = results.runs[method], results.videos[at]
    plan, labels, costs = run.plans[at], run.labels[at], video.costs
    skip = plan.skip if plan.skip is not None or costs.skip is None else costs.skip[plan.rows]
    probability = posterior(
        results.tsorts.get(plan.flow, plan.flow),
        np.ascontiguousarray(costs.match[plan.rows]),
        costs.drop,
        skip,
        results.options.contiguous,
        gamma=gamma,
        repeat=plan.repeat,
        durations=plan.durations,
        violation=plan.breaking,
    ).probability
    of_step = np.zeros((len(costs.match), probability.shape[1]))
    np.add.at(of_step, plan.rows, probability[:-1])
    shown = np.flatnonzero(labels >= 0)
    true_classes, classes = shared_classes(video.task.correspondence, len(video.task.procedure))
    right = to_classes(labels, classes)[shown] == to_classes(video.truth, true_classes)[shown]
    return Reliability.of(np.clip(of_step[labels[shown], shown], 0.0, 1.0), right)


@dataclass(frozen=True)
class CalibrationReport:
    """The figures.

    Attributes
    ----------
    found : list of Calibration
    command : str
        What repeats this.
    seconds : float
    picture : str or None
        Where the picture lies, seen from the page.
    """

    found: list[Calibration]
    command: str
    seconds: float
    picture: str | None = None

    def headline(self) -> str:
        """Say what was judged."""
        names = ", ".join(f"{one.dataset} ({one.method}, {one.videos} videos)" for one in self.found)
        return f"Confidence against accuracy, over the clips that are given a step: {names}"

    def missing(self) -> list[str]:
        """Return what could not be judged."""
        return []

    def tables(self) -> list[Table]:
        """Return the errors by gamma, and the bins with and without calibration."""
        rows = []
        for one in self.found:
            for gamma, reliability in one.by_gamma.items():
                rows.append((one.dataset, f"{gamma:g}", *_cells(reliability)))
            gammas = sorted(set(one.chosen.values()))
            names = f"{gammas[0]:g}" if len(gammas) == 1 else f"{gammas[0]:g}–{gammas[-1]:g}"
            rows.append((one.dataset, f"chosen on the other splits ({names})", *_cells(one.calibrated)))
        overall = Table(
            "Calibration",
            "Mean confidence, share of right clips, and expected calibration error (ECE, 10 bins), in percent, by the "
            "gamma of the posterior.",
            ("dataset", "gamma", "clips", "confidence", "right", "ECE"),
            tuple(rows),
            words=2,
        )
        return [overall, *(self._bins(one) for one in self.found)]

    def _bins(self, one: Calibration) -> Table:
        first = next(iter(one.by_gamma))
        rows = []
        for at in range(BINS):
            cell = [f"{at / BINS:.1f}–{(at + 1) / BINS:.1f}"]
            for reliability in (one.by_gamma[first], one.calibrated):
                clips = reliability.clips[at]
                right = reliability.right[at] / clips if clips else np.nan
                cell += [cells.count(clips), cells.percent(100 * right)]
            rows.append(tuple(cell))
        return Table(
            f"{one.dataset}: reliability",
            f"How many clips have a confidence in each bin, and how many percent of them are right: with gamma "
            f"{first:g}, and with that chosen on the other splits.",
            ("confidence", "clips", "right", "clips, calibrated", "right, calibrated"),
            tuple(rows),
        )

    def to_json(self) -> dict[str, Any]:
        """Return everything as a JSON document; measures are shares."""
        return {
            "format": "graph2vid-calibration",
            "version": 1,
            "graph2vid": __version__,
            "dataset": NAME,
            "command": self.command,
            "seconds": self.seconds,
            "calibrations": [
                {
                    "dataset": one.dataset,
                    "method": one.method,
                    "videos": one.videos,
                    "gammas": [{"gamma": gamma} | kept.to_json() for gamma, kept in one.by_gamma.items()],
                    "chosen": one.chosen,
                    "calibrated": one.calibrated.to_json(),
                }
                for one in self.found
            ],
        }

    def into_page(self, page: str) -> str:
        """Return a page of results with this section put in or replaced."""
        lines = [f"## {NAME}", "", f"    {self.command}", "", f"{self.headline()}.", ""]
        if self.picture is not None:
            lines += [f"![Reliability: how often labels are right, by their confidence]({self.picture})", ""]
        lines += [table.to_markdown() for table in self.tables()]
        return section_into_page(page, NAME, "\n".join(lines))

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Draw the reliability of all datasets."""
        bins = {
            one.dataset: {
                f"gamma {next(iter(one.by_gamma)):g}": next(iter(one.by_gamma.values())),
                "calibrated": one.calibrated,
            }
            for one in self.found
        }
        plot_reliability(
            path,
            {
                dataset: {name: (kept.clips, kept.confidence, kept.right) for name, kept in rows.items()}
                for dataset, rows in bins.items()
            },
        )


def _cells(reliability: Reliability) -> tuple[str, ...]:
    confidence, right = reliability.mean
    shares = (confidence, right, reliability.error)
    return (cells.count(float(reliability.clips.sum())), *(cells.percent(100 * share) for share in shares))


def judge_calibration(
    data: str | Path,
    *,
    datasets: Sequence[str] = tuple(DATASETS),
    gammas: Sequence[float] = GAMMAS,
    workers: int | None = None,
    command: str = "",
    progress: Callable[[str, int, int], None] | None = None,
) -> CalibrationReport:
    """Judge the confidences of graphs on the datasets in a folder.

    Parameters
    ----------
    data : path
        The folder that holds the datasets.
    datasets : sequence of str
        Names in :data:`DATASETS`.
    gammas : sequence of float
    workers : int, optional
    command : str
    progress : callable, optional
    """
    started = perf_counter()
    found = []
    for name in datasets:
        if name not in DATASETS:
            raise InputError(f"calibration is judged on {', '.join(DATASETS)}, not on {name!r}")
        method = DATASETS[name]
        results = evaluate_dataset(read_dataset(name, data), [method], Options(), workers=workers, progress=progress)
        found.append(calibrate(results, method, gammas, progress))
    return CalibrationReport(found, command, perf_counter() - started)
