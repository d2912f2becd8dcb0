"""The figures of an evaluation, in percent: per method, task, kind of video and level of noise; and as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from graph2vid import __version__
from graph2vid.errors import InputError
from graph2vid.evaluate.engine import NOT_EXACT, Results
from graph2vid.evaluate.graph_statistics import Comparison, graph_figures, time_against_brute_force
from graph2vid.evaluate.intervals import Interval, bootstrap_interval, paired_interval
from graph2vid.evaluate.method_runs import Run

MEASURES = ("acc", "iou", "iou_strict", "acc_paper", "mof", "edit", "f1@10", "f1@25", "f1@50", "recall")


def check_measures(text: str) -> tuple[str, ...]:
    """Read measures with commas between them."""
    named = tuple(name.strip() for name in text.split(","))
    for name in named:
        if name not in MEASURES:
            raise InputError(f"there is no measure {name!r}; there are: {', '.join(MEASURES)}")
    return named


@dataclass(frozen=True)
class Level:
    """One level of noise of a sweep, and what was found there."""

    noise: float
    results: Results


@dataclass(frozen=True)
class Figures:
    """The figures of an evaluation.

    Attributes
    ----------
    results : Results
    command : str
        What repeats it.
    sweep : tuple of Level
        The same evaluation at other levels of noise (simulated evidence).
    comparison : Comparison or None
    groups : tuple of (str, Results)
        Kinds of videos that are reported apart.
    main : str
        Which kind the report itself is about, if not about all videos.
    level, samples, seed
        Of the bootstrap.
    pictures : tuple of (str, str)
        Titles and file names of pictures, for the Markdown.
    seconds : float
        How long the whole took.
    """

    results: Results
    command: str
    sweep: tuple[Level, ...] = ()
    comparison: Comparison | None = None
    groups: tuple[tuple[str, Results], ...] = ()
    main: str = ""
    level: float = 0.95
    samples: int = 10_000
    seed: int = 0
    pictures: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0
    _made: dict[str, Any] = field(default_factory=dict, repr=False)

    def timed(self, seconds: float) -> Self:
        """Return the same with its time."""
        return replace(self, seconds=seconds)

    # -- figures -------------------------------------------------------------------------------------------

    def rows(self, results: Results | None = None, members: Sequence[int] | None = None) -> list[dict[str, Any]]:
        """Return one row per method: means in percent over the videos (of ``members`` by default all it has)."""
        results = results or self.results
        return [self._row(results, run, members) for run in results.runs.values()]

    def _row(self, results: Results, run: Run, members: Sequence[int] | None) -> dict[str, Any]:
        wanted = None if members is None else set(members)
        videos = [at for at in run.measures if wanted is None or at in wanted]
        means = {name: _percent(_mean(self._values(run, videos, name))) for name in MEASURES}
        by_task: dict[str, list[int]] = {}
        for at in videos:
            by_task.setdefault(results.videos[at].task.id, []).append(at)
        reasons: dict[str, int] = {}
        for at, reason in run.absent.items():
            if wanted is None or at in wanted:
                reasons[reason] = reasons.get(reason, 0) + 1
        return {
            "method": run.name,
            **means,
            "videos": len(videos),
            "exact": NOT_EXACT not in reasons,
            "absent": reasons,
            "tasks": len(by_task),
            "macro": {
                name: _percent(_mean([_mean(self._values(run, of_task, name)) for of_task in by_task.values()]))
                for name in MEASURES
            },
            "seconds_per_video": run.seconds / len(run.measures) if run.measures else None,
            **({"weights": run.weights} if run.weights else {}),
        }

    @staticmethod
    def _values(run: Run, videos: Iterable[int], name: str) -> list[float]:
        return [run.measures[at][name] for at in videos]

    def intervals(self) -> dict[str, dict[str, Interval]]:
        """Return the bootstrap interval of every measure per method, in percent."""
        if "intervals" not in self._made:
            self._made["intervals"] = {
                run.name: {
                    name: _in_percent(bootstrap_interval(self._values(run, run.measures, name), **self._bootstrap))
                    for name in MEASURES
                }
                for run in self.results.runs.values()
            }
        found: dict[str, dict[str, Interval]] = self._made["intervals"]
        return found

    @property
    def _bootstrap(self) -> dict[str, Any]:
        return {"level": self.level, "samples": self.samples, "seed": self.seed}

    def differences(self, results: Results | None = None, names: Sequence[str] = MEASURES) -> list[dict[str, Any]]:
        """Return graph - linear, graph - bag and graph with features - graph, paired over the videos that both have.

        In percent points.
        """
        results = results or self.results
        found = []
        for first in results.runs.values():
            if not first.name.startswith("graph:"):
                continue
            plain = first.name.partition("+")[0]
            for other in ("linear", "bag") if plain == first.name else (plain,):
                if other not in results.runs:
                    continue
                second = results.runs[other]
                common = [at for at in first.measures if at in second.measures]
                pairs = {
                    name: _in_percent(
                        paired_interval(
                            self._values(first, common, name), self._values(second, common, name), **self._bootstrap
                        )
                    )
                    for name in names
                }
                found.append(
                    {
                        "first": first.name,
                        "second": other,
                        "videos": len(common),
                        **{name: {"mean": i.mean, "low": i.low, "high": i.high} for name, i in pairs.items()},
                    }
                )
        return found

    def by_task(self) -> list[dict[str, Any]]:
        """Return the rows of each task."""
        members: dict[str, list[int]] = {}
        for at, video in enumerate(self.results.videos):
            members.setdefault(video.task.id, []).append(at)
        return [
            {
                "task": name,
                "title": self.results.dataset.tasks[name].title,
                "videos": len(of_task),
                "rows": self.rows(members=of_task),
            }
            for name, of_task in members.items()
        ]

    def by_group(self) -> list[dict[str, Any]]:
        """Return the rows of each kind of videos."""
        return [
            {
                "group": name,
                "videos": len(results.videos),
                "rows": self.rows(results),
                "differences": self.differences(results, names=("acc", "iou")),
            }
            for name, results in self.groups
        ]

    def graphs(self) -> list[dict[str, Any]]:
        """Return the sizes of the graphs per source."""
        return self._once("graphs", graph_figures)

    def against_brute_force(self) -> list[dict[str, Any]]:
        """Return the times of the exact method and of brute force per source."""
        return self._once("brute", time_against_brute_force)

    def _once(self, name: str, make: Callable[[Results], list[dict[str, Any]]]) -> list[dict[str, Any]]:
        if name not in self._made:
            self._made[name] = make(self.results)
        found: list[dict[str, Any]] = self._made[name]
        return found

    @property
    def is_partial(self) -> bool:
        """Whether some method has only some of the videos."""
        counts = {len(run.measures) for run in self.results.runs.values()}
        return len(counts) > 1

    def options(self) -> dict[str, Any]:
        """Return the settings, fit for JSON."""
        results = self.results
        first = results.videos[0]
        return {
            **dict(results.dataset.options),
            "preset": first.costs.options["preset"],
            "match": first.costs.options["match"],
            "drop": first.costs.options["drop"],
            "skip": first.costs.options["skip"],
            "temperature": first.costs.options["temperature"],
            "contiguous": results.options.contiguous,
            "linear": results.options.linear_of(results.dataset),
            "min_support": results.options.min_support,
            "tolerance": results.options.tolerance,
            "folds": results.options.folds_of(results.dataset),
            "limit": results.options.limit,
            "drop_unmapped": results.options.drop_unmapped,
            "labels": f"{results.dataset.label_rule}, {results.dataset.label_overlapping}",
            "bootstrap": self._bootstrap,
        }

    # -- JSON ----------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return everything as a JSON document; measures are in percent, what is not defined is null."""
        results = self.results
        intervals = self.intervals()
        rows = [
            {**row, "intervals": {name: [i.low, i.high] for name, i in intervals[row["method"]].items()}}
            for row in self.rows()
        ]
        common = results.common
        document = {
            "format": "graph2vid-evaluation",
            "version": 1,
            "graph2vid": __version__,
            "dataset": results.dataset.name,
            "simulated": results.dataset.simulated,
            "command": self.command,
            "unit": "percent",
            "videos": len(results.videos),
            "tasks_count": len({video.task.id for video in results.videos}),
            "options": self.options(),
            "rows": rows,
            "common": {"videos": len(common), "rows": self.rows(members=common)} if self.is_partial else None,
            "differences": self.differences(),
            "tasks": self.by_task(),
            "recordings": self.main or "all",
            "groups": self.by_group(),
            "graphs": self.graphs(),
            "exact_against_brute_force": self.against_brute_force(),
            "noise": [
                {
                    "noise": level.noise,
                    "rows": self.rows(level.results),
                    "differences": self.differences(level.results),
                }
                for level in self.sweep
            ],
            "comparison": None if self.comparison is None else self.comparison.to_json() | self.compared(),
            "problems": list(results.problems),
            "remarks": list(results.dataset.remarks),
            "per_video": [
                {
                    "video": video.recording.id,
                    "task": video.task.id,
                    "split": None if video.split is None else video.split.name,
                    "clips": video.recording.n_clips,
                    "methods": {
                        run.name: {name: _percent(run.measures[at][name]) for name in MEASURES}
                        for run in results.runs.values()
                        if at in run.measures
                    },
                }
                for at, video in enumerate(results.videos)
            ],
            "seconds": self.seconds,
            "workers": results.workers,
        }
        plain: dict[str, Any] = without_nan(document)
        return plain

    def compared(self) -> dict[str, Any]:
        assert self.comparison is not None
        name = self.comparison.task.id
        members = [at for at, video in enumerate(self.results.videos) if video.task.id == name]
        return {"videos": len(members), "rows": self.rows(members=members)}


def _mean(values: Iterable[float]) -> float:
    array = np.array(list(values), dtype=np.float64)
    defined = array[~np.isnan(array)]
    return float(defined.mean()) if defined.size else math.nan


def _percent(share: float) -> float:
    return 100 * share


def _in_percent(found: Interval) -> Interval:
    return Interval(100 * found.mean, 100 * found.low, 100 * found.high, found.level, found.videos)


def without_nan(value: Any) -> Any:
    """Return a JSON value in which what is not a finite number is null."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
