"""Is a segment with a confidence of 80% right in 80% of its clips? Confidences compared with the truth.

The confidences are the calibrated ones that graph2vid ships, those of a calibrator of the user's, or, in
cross-validation, those of calibrators fitted on the other tasks (of 50 Salads: the other splits).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid._deprecated import warn_renamed
from graph2vid._evaluation_options import CalibrationOptions, CalibrationTrainingOptions
from graph2vid.errors import InputError
from graph2vid.evaluate import report as cells
from graph2vid.evaluate.calibration_examples import Evaluated, evaluated_videos, find_sources
from graph2vid.evaluate.method_runner import Progress
from graph2vid.evaluate.plots import is_drawn, plot_reliability
from graph2vid.evaluate.report import Pictures, Report, Table
from graph2vid.grounding import NARRATION, Calibrator

BINS = 10
LEVELS = ("segment", "clip", "not shown")

_MOST_FITS = 20  # beyond so many groups, several are left out together
_FOLDS = 10
_MOST_TASKS = 12  # rows of the table
_FEW = 100  # segments of a task: fewer have no row of their own in the table

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reliability:
    """Statements, by how sure they are: in ten bins of equal width.

    Attributes
    ----------
    count, confidence, right : float64 [10]
        How many statements, the sum of their probabilities, and how many of them are right.
    auc : float
        How well the probabilities tell right from wrong: the area under the ROC curve; NaN where all are one.
    """

    count: Floats
    confidence: Floats
    right: Floats
    auc: float = np.nan

    @classmethod
    def of(cls, confidence: Floats, right: Any) -> Reliability:
        """Sort statements into bins; a statement may be right by a share."""
        right = np.asarray(right, np.float64)
        at = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
        count, stated, hits = (
            np.bincount(at, weight, BINS).astype(np.float64) for weight in (np.ones(len(at)), confidence, right)
        )
        return cls(count, stated, hits, _auc(confidence, right))

    @property
    def error(self) -> float:
        """The expected calibration error: the mean of |confidence - share that is right| over the bins."""
        return float(np.abs(self.confidence - self.right).sum() / max(self.count.sum(), 1.0))

    @property
    def mean(self) -> tuple[float, float]:
        """The mean confidence, and the share that is right."""
        total = max(float(self.count.sum()), 1.0)
        return float(self.confidence.sum()) / total, float(self.right.sum()) / total

    def to_json(self) -> dict[str, Any]:
        """Return the numbers, in percent."""
        stated, right = self.mean
        percent = {"stated": stated, "right": right, "ece": self.error, "auc": self.auc}
        return {"count": int(self.count.sum())} | {name: 100.0 * value for name, value in percent.items()}


def _auc(confidence: Floats, right: Floats) -> float:
    """Return how often a right clip has the higher confidence than a wrong one, half of the ties included."""
    level = np.unique(confidence, return_inverse=True)[1]
    hits, misses = np.bincount(level, right), np.bincount(level, 1.0 - right)
    pairs = hits.sum() * misses.sum()
    return float((hits * (np.cumsum(misses) - misses / 2)).sum() / pairs) if pairs > 0 else np.nan


def reliability(
    evaluated: Iterable[Evaluated], level: str, calibrator: Callable[[Evaluated], Calibrator] | None
) -> Reliability:
    """Compare what is stated about videos with the truth.

    Parameters
    ----------
    evaluated : iterable of Evaluated
    level : {"segment", "clip", "not shown"}
        Segments; clips that are given a step; steps, by the probability that they are not shown.
    calibrator : callable, optional
        The calibrator of each video; by default the posterior at gamma 1 is taken as it is.
    """
    stated, right = [np.zeros(0)], [np.zeros(0)]
    for one in evaluated:
        example, observed = one.example, one.example.observed
        chosen = None if calibrator is None else calibrator(one)
        if level == "segment":
            stated.append(one.posterior if chosen is None else chosen.confidences(observed))
            right.append(example.right)
        elif level == "clip":
            at = np.flatnonzero(one.labels >= 0)
            rows = one.labels[at]
            stated.append(
                np.clip((observed.sharp if chosen is None else chosen.probabilities(observed))[rows, at], 0, 1)
            )
            right.append(example.truth[rows, at].astype(np.float64))
        else:
            known = ~np.isnan(example.absent)
            absences = 1.0 - observed.shown if chosen is None else chosen.absences(observed)
            stated.append(np.clip(absences[known], 0, 1))
            right.append(example.absent[known])
    return Reliability.of(np.concatenate(stated), np.concatenate(right))


def cross_validated(
    evaluated: Sequence[Evaluated], l2: float = 10.0, *, new_dataset: bool = False
) -> Callable[[Evaluated], Calibrator]:
    """Return for each video a calibrator that was fitted without its group: its task, or its split.

    With ``new_dataset`` it was fitted without its dataset, too.
    """
    groups = sorted({(_kind(one), one.group) for one in evaluated})
    if len(groups) < 2:
        raise InputError("cross-validation needs videos of at least two tasks, or in two splits")
    fold: dict[tuple[str, str], int] = {}
    for kind in sorted({(kind, group.partition(" ")[0]) for kind, group in groups}):
        part = [one for one in groups if (one[0], one[1].partition(" ")[0]) == kind]
        folds = len(part) if len(part) <= _MOST_FITS else _FOLDS
        fold |= {one: len(fold) + place % folds for place, one in enumerate(part)}
    fitted: dict[tuple[int, str], Calibrator] = {}

    def calibrator(one: Evaluated) -> Calibrator:
        left_out = fold[_kind(one), one.group], one.dataset if new_dataset else ""
        if left_out not in fitted:
            alike = [other for other in evaluated if _kind(other) == _kind(one) and other.dataset != left_out[1]]
            rest = [other.example for other in alike if fold[_kind(other), other.group] != left_out[0]]
            fitted[left_out] = Calibrator.fit(rest, one.evidence, l2)
        return fitted[left_out]

    return calibrator


def _kind(one: Evaluated) -> str:
    """Return what is fitted together: the narration of all datasets, or the scores of one, which have their scale."""
    return NARRATION if one.evidence == NARRATION else f"{one.evidence} of {one.dataset}"


def fit_calibrator(
    data: str | Path,
    options: CalibrationTrainingOptions | None = None,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Calibrator:
    """Fit a calibrator on the annotated videos in a folder.

    Parameters
    ----------
    data : path
        See :func:`evaluate_calibration`.
    options : CalibrationTrainingOptions, optional
    workers : int, optional
    progress : callable, optional
    """
    options = options or CalibrationTrainingOptions()
    evaluated: list[Evaluated] = []
    for source in find_sources(data, options.datasets):
        evaluated += evaluated_videos(source, options.methods, workers=workers, progress=progress)
        kinds = sorted({one.evidence for one in evaluated})
        if len(kinds) > 1:
            raise InputError(f"{data} holds evidence of several kinds ({', '.join(kinds)}): choose with --datasets")
    counts = dict(Counter(one.dataset for one in evaluated))
    about = {"examples": counts, "methods": sorted({one.method for one in evaluated}), "l2": options.l2}
    return Calibrator.fit([one.example for one in evaluated], evaluated[0].evidence, options.l2, about)


def evaluate_calibration(
    data: str | Path,
    options: CalibrationOptions | None = None,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Report]:
    """Compare confidences with the truth on the datasets in a folder; yield the report after each.

    Parameters
    ----------
    data : path
        A folder with datasets, or one of them: laid out as ``salads50``, ``crosstask_narrated``,
        ``youcook2_narrated`` or a folder of captioned videos.
    options : CalibrationOptions, optional
        Datasets by the names of their folders; by default those that are found.
    workers : int, optional
    progress : callable, optional
    """
    options = options or CalibrationOptions()
    if options.gammas:
        warn_renamed("--gammas", "--cross-validate, which fits calibrators")
    sources = find_sources(data, options.datasets)
    given = None if options.calibration is None else Calibrator.load(options.calibration)
    methods = () if options.method is None else (options.method,)
    report = Report("calibration", format="graph2vid-calibration")
    evaluated: dict[str, list[Evaluated]] = {}
    for done, source in enumerate(sources, start=1):
        evaluated[source.name] = list(evaluated_videos(source, methods, workers=workers, progress=progress))
        if options.cross_validate and done < len(sources):
            continue
        how: Callable[[Evaluated], Calibrator] | None
        if options.cross_validate:
            together = [one for of_dataset in evaluated.values() for one in of_dataset]
            how = cross_validated(together)
            _add_new_datasets(report, evaluated, cross_validated(together, new_dataset=True))
        else:
            how = lambda one: given or Calibrator.shipped()  # noqa: E731
        for name in evaluated if options.cross_validate else [source.name]:
            kind = evaluated[name][0].evidence
            fits = options.cross_validate or kind == (NARRATION if given is None else given.evidence)
            _add(report, name, evaluated[name], how if fits else None)
            if not fits:
                report.notes.append(f"{name}: no calibrator for {kind} is given: its confidences are uncalibrated")
        ways = "calibrators fitted on the other tasks or splits" if options.cross_validate else "the calibrator"
        report.headline = f"Confidence against accuracy, before calibration and with {ways}: {', '.join(evaluated)}"
        report.is_complete = done == len(sources)
        yield report


def _add(
    report: Report, name: str, evaluated: Sequence[Evaluated], calibrator: Callable[[Evaluated], Calibrator] | None
) -> None:
    """Add the rows of one dataset to a report, and write its tables anew."""
    ways = {"posterior": None, "calibrated": calibrator} if calibrator is not None else {"posterior": None}
    document = report.document
    rows, tasks, bins = (
        document.setdefault("rows", []),
        document.setdefault("tasks", []),
        document.setdefault("bins", {}),
    )
    about = {"dataset": name, "method": evaluated[0].method, "videos": len(evaluated)}
    by_task: dict[str, list[Evaluated]] = {}
    for one in evaluated:
        by_task.setdefault(one.task, []).append(one)
    for way, how in ways.items():
        told = about | {"calibrated": way == "calibrated"}
        found = {level: reliability(evaluated, level, how) for level in LEVELS}
        rows += [told | {"level": level} | kept.to_json() for level, kept in found.items()]
        if len(by_task) > 1:
            tasks += [
                told | {"task": task, "level": "segment"} | reliability(some, "segment", how).to_json()
                for task, some in by_task.items()
            ]
        kept = found["segment"]
        columns = {"count": kept.count, "confidence": kept.confidence, "right": kept.right}
        bins.setdefault(name, {})[way] = {key: column.tolist() for key, column in columns.items()}
    report.tables = _tables(document)
    report.draw = partial(draw_reliability, bins)


def _add_new_datasets(
    report: Report, evaluated: Mapping[str, Sequence[Evaluated]], calibrator: Callable[[Evaluated], Calibrator]
) -> None:
    """Add how calibrators do on datasets of which they have seen nothing, where others have the same evidence."""
    kinds = Counter(_kind(some[0]) for some in evaluated.values())
    report.document["new_datasets"] = [
        {"dataset": name, "level": level} | reliability(some, level, calibrator).to_json()
        for name, some in evaluated.items()
        if kinds[_kind(some[0])] > 1
        for level in LEVELS
    ]


def _tables(document: Mapping[str, Any]) -> list[Table]:
    """Return the tables of all datasets, and of their largest tasks."""
    columns = ("number", "stated", "right", "ECE", "AUC")
    note = "Expected calibration error (ECE, 10 bins) and area under the ROC curve (AUC), all in percent"
    order = {level: place for place, level in enumerate(LEVELS)}
    rows = sorted(document["rows"], key=lambda row: order[row["level"]])  # stable: datasets in turn
    largest = [row for row in document["tasks"] if row["count"] >= _FEW]
    kept = sorted({row["count"] for row in largest}, reverse=True)[:_MOST_TASKS]
    unseen = document.get("new_datasets", ())
    tables = [
        Table(
            "Calibration",
            f"Mean confidence, and the share that is right. {note}.",
            ("dataset", "statements", "confidence", *columns),
            tuple((row["dataset"], row["level"], _way(row), *_cells(row)) for row in rows),
            words=3,
            is_growing=True,
        ),
        Table(
            "Segments by task",
            f"The tasks with the most segments. {note}.",
            ("dataset", "task", "confidence", *columns),
            tuple((row["dataset"], row["task"], _way(row), *_cells(row)) for row in largest if row["count"] in kept),
            words=3,
            is_growing=True,
        ),
    ]
    if unseen:
        tables.append(
            Table(
                "Datasets not seen",
                f"Calibrators that were fitted without the dataset and without the task. {note}.",
                ("dataset", "statements", *columns),
                tuple((row["dataset"], row["level"], *_cells(row)) for row in unseen),
                words=2,
                is_growing=True,
            )
        )
    return tables


def _way(row: Mapping[str, Any]) -> str:
    return "calibrated" if row["calibrated"] else "posterior"


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return cells.count(row["count"]), *(cells.percent(row[key]) for key in ("stated", "right", "ece", "auc"))


def draw_reliability(bins: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]], folder: Path) -> Pictures:
    """Draw the reliability of segments of all datasets; a picture that cannot be drawn is a warning."""
    columns = {name: {way: tuple(kept.values()) for way, kept in ways.items()} for name, ways in bins.items()}
    file = "calibration.png"
    drawn = is_drawn(folder / file, partial(plot_reliability, bins=columns))
    return (("Reliability: how often segments are right, by their confidence", file),) if drawn else ()
