"""Is a segment with a confidence of 80% right in 80% of its clips? Confidences compared with the truth.

One number, gamma, says how sure posteriors are of themselves. It is chosen on the other splits, for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid._evaluation_options import GAMMAS, CalibrationOptions
from graph2vid.alignment import posterior
from graph2vid.datasets import is_dataset_in, read_dataset
from graph2vid.errors import InputError
from graph2vid.evaluate import report as cells
from graph2vid.evaluate.engine import Progress, Results, evaluate_dataset, match_costs, skip_costs
from graph2vid.evaluate.labels import shared_classes, to_classes
from graph2vid.evaluate.plots import is_drawn, plot_reliability
from graph2vid.evaluate.report import Pictures, Report, Table

DATASETS = {"salads50": "graph:mined", "crosstask": "graph:manual"}
"""The datasets by default, and the method whose confidences are evaluated on each."""

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

    @property
    def curves(self) -> dict[str, Reliability]:
        """The reliability with the first gamma, and with those chosen on the other splits."""
        gamma = next(iter(self.by_gamma))
        return {f"gamma {gamma:g}": self.by_gamma[gamma], "calibrated": self.calibrated}

    def tables(self) -> list[Table]:
        """Return the errors by gamma, and the bins with and without calibration."""
        gammas = sorted(set(self.chosen.values()))
        names = f"{gammas[0]:g}" if len(gammas) == 1 else f"{gammas[0]:g}–{gammas[-1]:g}"
        by_gamma = {f"{gamma:g}": kept for gamma, kept in self.by_gamma.items()}
        overall = tuple(
            (
                name,
                cells.count(float(kept.clips.sum())),
                *(cells.percent(100 * share) for share in (*kept.mean, kept.error)),
            )
            for name, kept in (by_gamma | {f"chosen on the other splits ({names})": self.calibrated}).items()
        )
        bins = []
        for at in range(BINS):
            row = [f"{at / BINS:.1f}–{(at + 1) / BINS:.1f}"]
            for kept in self.curves.values():
                share = kept.right[at] / kept.clips[at] if kept.clips[at] else np.nan
                row += [cells.count(kept.clips[at]), cells.percent(100 * share)]
            bins.append(tuple(row))
        return [
            Table(
                f"{self.dataset}: calibration",
                "Mean confidence, share of right clips, and expected calibration error (ECE, 10 bins), in percent, by "
                "the gamma of the posterior.",
                ("gamma", "clips", "confidence", "right", "ECE"),
                overall,
            ),
            Table(
                f"{self.dataset}: reliability",
                f"How many clips have a confidence in each bin, and how many percent of them are right: with "
                f"{next(iter(self.curves))}, and with that chosen on the other splits.",
                ("confidence", "clips", "right", "clips, calibrated", "right, calibrated"),
                tuple(bins),
            ),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON holds it, in shares."""
        return {
            "dataset": self.dataset,
            "method": self.method,
            "videos": self.videos,
            "gammas": [{"gamma": gamma} | kept.to_json() for gamma, kept in self.by_gamma.items()],
            "chosen": self.chosen,
            "calibrated": self.calibrated.to_json(),
        }


def calibrate(
    results: Results,
    method: str,
    gammas: Sequence[float] = GAMMAS,
    progress: Progress | None = None,
) -> Calibration:
    """Compare the confidences of a method with the truth, clip by clip.

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
    result = results.methods[method]
    if not result.plans or not gammas:
        raise InputError(f"{method} has no posterior to evaluate, or there is no gamma to evaluate it with")
    by_split: dict[str, dict[float, list[Reliability]]] = {}
    members = sorted(result.labels)
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
    result, video = results.methods[method], results.videos[at]
    plan, labels, costs = result.plans[at], result.labels[at], video.costs
    probability = posterior(
        results.tsorts.get(plan.flow, plan.flow),
        match_costs(plan, costs),
        costs.drop,
        skip_costs(plan, costs),
        results.options.contiguous,
        gamma=gamma,
        repeat=plan.repeat,
        durations=plan.durations,
        violation=plan.violation,
    ).probability
    of_step = np.zeros((len(costs.match), probability.shape[1]))
    np.add.at(of_step, plan.rows, probability[:-1])
    shown = np.flatnonzero(labels >= 0)
    true_classes, classes = shared_classes(video.task.correspondence, len(video.task.procedure))
    right = to_classes(labels, classes)[shown] == to_classes(video.truth, true_classes)[shown]
    return Reliability.of(np.clip(of_step[labels[shown], shown], 0.0, 1.0), right)


def evaluate_calibration(
    data: str | Path,
    options: CalibrationOptions | None = None,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Report]:
    """Evaluate the confidences of graphs on the datasets in a folder; yield the report after each.

    Parameters
    ----------
    data : path
        The folder that holds the datasets.
    options : CalibrationOptions, optional
        Datasets are names in :data:`DATASETS`; by default those that are in the folder.
    workers : int, optional
    progress : callable, optional
    """
    options = options or CalibrationOptions()
    chosen = options.datasets or [name for name in DATASETS if is_dataset_in(data, name)]
    if not chosen:
        raise InputError(f"{data} holds none of these datasets: {', '.join(DATASETS)}")
    for name in chosen:
        if name not in DATASETS:
            raise InputError(f"calibration is evaluated on {', '.join(DATASETS)}, not on {name!r}")
    report = Report("calibration", format="graph2vid-calibration")
    found: list[Calibration] = []
    for name in chosen:
        method = DATASETS[name]
        results = evaluate_dataset(read_dataset(name, data), [method], workers=workers, progress=progress)
        found.append(calibrate(results, method, options.gammas, progress))
        names = ", ".join(f"{one.dataset} ({one.method}, {one.videos} videos)" for one in found)
        report.headline = f"Confidence against accuracy, over the clips that are given a step: {names}"
        report.tables += found[-1].tables()
        report.document = {"calibrations": [one.to_json() for one in found]}
        report.is_complete = len(found) == len(chosen)
        report.draw = partial(draw_reliability, {one.dataset: one.curves for one in found})
        yield report


def draw_reliability(curves: Mapping[str, Mapping[str, Reliability]], folder: Path) -> Pictures:
    """Draw the reliability of all datasets; a picture that cannot be drawn is a warning."""
    bins = {
        dataset: {name: (kept.clips, kept.confidence, kept.right) for name, kept in of_dataset.items()}
        for dataset, of_dataset in curves.items()
    }
    file = "calibration.png"
    drawn = is_drawn(folder / file, partial(plot_reliability, bins=bins))
    return (("Reliability: how often labels are right, by their confidence", file),) if drawn else ()
