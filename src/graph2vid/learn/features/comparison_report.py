"""What comparing objectives found, for people (terminal, Markdown; percent) and for programs (JSON; shares)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from graph2vid import __version__
from graph2vid.evaluate import cells
from graph2vid.evaluate.intervals import Interval, paired_interval
from graph2vid.evaluate.tables import Table, section_into_page
from graph2vid.learn.features.data import MINED
from graph2vid.learn.features.objective_comparison import COLLAPSED, MEASURES, PRE_TRAINED, Comparison, Row

NAME = "training"
_SAID = {
    PRE_TRAINED: "features as given",
    "bag": "bag of steps: clustering",
    "linear": "linear: Drop-DTW + clustering",
    "graph": "graph: Graph-Drop-DTW + clustering",
    "true-order": "true order: Drop-DTW + clustering",
    COLLAPSED: "graph, match likelihood (not balanced)",
}
_PAIRS = (
    ("graph", PRE_TRAINED),
    ("graph", "linear"),
    ("graph", "bag"),
    ("linear", PRE_TRAINED),
    ("true-order", "graph"),
)
_COMPARED = ("acc", "iou", "iou_strict", "mof")


@dataclass(frozen=True)
class TrainingReport:
    """The figures.

    Attributes
    ----------
    comparisons : list of Comparison
        One per dataset.
    command : str
        What repeats this.
    seconds : float
    """

    comparisons: list[Comparison]
    command: str
    seconds: float

    def headline(self) -> str:
        """Say what was compared."""
        names = ", ".join(
            f"{found.dataset} ({len(found.videos)} videos, {len(found.splits)} splits, graphs {found.source})"
            for found in self.comparisons
        )
        seeds = len(self.comparisons[0].seeds)
        return (
            f"Features trained with each objective, {seeds} seed{'s'[: seeds != 1]}, judged on held-out videos: {names}"
        )

    def missing(self) -> list[str]:
        """Return what could not be judged."""
        return []

    def tables(self) -> list[Table]:
        """Return all tables."""
        return [table for found in self.comparisons for table in (self._rows(found), self._differences(found))]

    def _rows(self, found: Comparison) -> Table:
        options = found.regime.options
        return Table(
            f"{found.dataset}: objectives",
            f"{len(found.videos)} test videos of {len(found.splits)} splits; mean of {len(found.seeds)} seeds ± their "
            f"standard deviation. {options.smoothing}, gamma {options.gamma:g}, "
            f"{'' if options.contiguous else 'not '}contiguous, match {options.match}, drop {options.drop}, "
            f"pool_temperature {options.pool_temperature:g}, Adam {options.rate:g}, {options.epochs} epochs. Graphs "
            f"{found.source}{_tolerance(found)}. The row that is not balanced has one seed.",
            ("features trained with", "grounded by", *MEASURES),
            tuple((_SAID[row.features], row.method, *(_mean(row, name) for name in MEASURES)) for row in found.rows),
            words=2,
        )

    def _differences(self, found: Comparison) -> Table:
        return Table(
            f"{found.dataset}: paired differences",
            "Grounded by graph; in points, means over the seeds, with 95% bootstrap intervals over the videos.",
            ("difference", "videos", *_COMPARED),
            tuple(
                (
                    f"{first} - {second}",
                    str(len(found.videos)),
                    *(_span(found, first, second, name) for name in _COMPARED),
                )
                for first, second in _PAIRS
            ),
        )

    def to_json(self) -> dict[str, Any]:
        """Return everything as a JSON document; measures are shares."""
        return {
            "format": "graph2vid-training-evaluation",
            "version": 1,
            "graph2vid": __version__,
            "dataset": NAME,
            "command": self.command,
            "seconds": self.seconds,
            "comparisons": [
                found.to_json()
                | {
                    "differences": [
                        {"first": first, "second": second}
                        | {name: _interval_to_json(difference(found, first, second, name)) for name in _COMPARED}
                        for first, second in _PAIRS
                    ]
                }
                for found in self.comparisons
            ],
        }

    def into_page(self, page: str) -> str:
        """Return a page of results with this section put in or replaced."""
        lines = [f"## {NAME}", "", f"    {self.command}", "", f"{self.headline()}.", ""]
        lines += [table.to_markdown() for table in self.tables()]
        return section_into_page(page, NAME, "\n".join(lines))


def difference(found: Comparison, first: str, second: str, measure: str) -> Interval:
    """Return the paired difference of two kinds of features grounded by graph, with its interval; shares."""
    return paired_interval(found.row(first).by_video(measure), found.row(second).by_video(measure))


def _tolerance(found: Comparison) -> str:
    return f" from the training videos, tolerance {found.regime.tolerance:g}" if found.source == MINED else ""


def _span(found: Comparison, first: str, second: str, measure: str) -> str:
    interval = difference(found, first, second, measure)
    return cells.signed_span({name: 100 * getattr(interval, name) for name in ("mean", "low", "high")})


def _interval_to_json(interval: Interval) -> dict[str, float]:
    return {"mean": interval.mean, "low": interval.low, "high": interval.high}


def _mean(row: Row, measure: str) -> str:
    spread = row.spread(measure)
    mean = cells.percent(100 * row.mean(measure))
    return mean if math.isnan(spread) else f"{mean} ± {100 * spread:.1f}"
