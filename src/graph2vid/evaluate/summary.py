"""The results of an evaluation in percent: rows per method and task, intervals, differences, and their tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from graph2vid._evaluation_options import METRICS
from graph2vid.evaluate import report as cells
from graph2vid.evaluate.dataset_defaults import OPEN, folds_of, linear_of
from graph2vid.evaluate.engine import Results
from graph2vid.evaluate.intervals import Interval, bootstrap_interval, defined_mean, paired_interval
from graph2vid.evaluate.method_runner import NOT_EXACT
from graph2vid.evaluate.methods import MethodResult
from graph2vid.evaluate.report import Table

SIMULATED = "simulated evidence"

_HEADINGS = ("acc", "iou", "iou_s", "acc_p", "mof", "edit", "f1@10", "@25", "@50", "rec")
_WITH_INTERVAL = ("acc", "iou", "iou_strict", "mof")
_MEANING = (
    "acc: right among the clips that show a step. iou_s (iou_strict): steps that are not there count in the union. "
    "acc_p (acc_paper): right step clips over all clips. rec: CrossTask recall. Means over videos"
)
_OF_FRAMES = ("mof", "edit", "f1@50", "acc")  # what papers on action segmentation print, first
_SKIPPING = {None: "every step required", "given": "steps skipped at the costs that the evidence tells"}


@dataclass(frozen=True)
class Summary:
    """The results of an evaluation in percent.

    Attributes
    ----------
    results : Results
    level, samples, seed
        Of the bootstrap.
    """

    results: Results
    level: float = 0.95
    samples: int = 10_000
    seed: int = 0

    @property
    def bootstrap(self) -> dict[str, Any]:
        """The settings of the bootstrap."""
        return {"level": self.level, "samples": self.samples, "seed": self.seed}

    @cached_property
    def members(self) -> dict[str, list[int]]:
        """The videos of each task."""
        found: dict[str, list[int]] = {}
        for at, video in enumerate(self.results.videos):
            found.setdefault(video.task.id, []).append(at)
        return found

    def rows(self, members: Iterable[int] | None = None) -> list[dict[str, Any]]:
        """Return one row per method: means over the videos (of ``members``; by default all that it has)."""
        wanted = set(range(len(self.results.videos)) if members is None else members)
        return [self._row(method, wanted) for method in self.results.methods.values()]

    def _row(self, method: MethodResult, wanted: set[int]) -> dict[str, Any]:
        videos = [at for at in method.metrics if at in wanted]
        kept = set(videos)
        by_task = [some for of_task in self.members.values() if (some := [at for at in of_task if at in kept])]
        means = {name: [defined_mean(_values(method, some, name)) for some in by_task] for name in METRICS}
        reasons = Counter(reason for at, reason in method.absent.items() if at in wanted)
        return {
            "method": method.name,
            **{name: 100 * defined_mean(_values(method, videos, name)) for name in METRICS},
            "videos": len(videos),
            "exact": NOT_EXACT not in reasons,
            "absent": dict(reasons),
            "tasks": len(by_task),
            "macro": {name: 100 * defined_mean(of_tasks) for name, of_tasks in means.items()},
            "seconds_per_video": method.seconds / len(method.metrics) if method.metrics else None,
            **({"weights": method.weights} if method.weights else {}),
        }

    @cached_property
    def intervals(self) -> dict[str, dict[str, dict[str, float]]]:
        """The bootstrap interval of every metric per method: ``mean``, ``low`` and ``high``."""
        found: dict[str, dict[str, dict[str, float]]] = {}
        for method in self.results.methods.values():
            values = {name: _values(method, method.metrics, name) for name in METRICS}
            found[method.name] = {
                name: _in_percent(bootstrap_interval(of_metric, **self.bootstrap)) for name, of_metric in values.items()
            }
        return found

    @cached_property
    def _differences(self) -> list[dict[str, Any]]:
        methods = self.results.methods
        pairs: list[tuple[str, str]] = []
        for name in methods:
            plain = name.partition("+")[0]
            others: tuple[str, ...] = ()
            if name.startswith("graph:"):
                others = ("linear", "bag") if plain == name else (plain,)
                if self.results.dataset.name in OPEN:
                    others = ("argmax+background" if "argmax+background" in methods else "argmax", *others)
            pairs += [(name, other) for other in others if other in methods]
        found = []
        for first, second in pairs:
            common = [at for at in methods[first].metrics if at in methods[second].metrics]
            row: dict[str, Any] = {"first": first, "second": second, "videos": len(common)}
            for name in METRICS:
                values = (_values(methods[one], common, name) for one in (first, second))
                row[name] = _in_percent(paired_interval(*values, **self.bootstrap))
            found.append(row)
        return found

    def differences(self, names: Sequence[str] = METRICS) -> list[dict[str, Any]]:
        """Return graph - linear, graph - bag and graph with features - graph, paired over the videos that both have."""
        return [{name: row[name] for name in ("first", "second", "videos", *names)} for row in self._differences]

    def by_task(self) -> list[dict[str, Any]]:
        """Return the rows of each task."""
        tasks = self.results.dataset.tasks
        return [
            {"task": name, "title": tasks[name].title, "videos": len(videos), "rows": self.rows(videos)}
            for name, videos in self.members.items()
        ]

    def by_video(self) -> list[dict[str, Any]]:
        """Return the metrics of each video."""
        return [
            {
                "video": video.recording.id,
                "task": video.task.id,
                "split": None if video.split is None else video.split.name,
                "clips": video.recording.n_clips,
                "methods": {
                    method.name: {name: 100 * method.metrics[at][name] for name in METRICS}
                    for method in self.results.methods.values()
                    if at in method.metrics
                },
            }
            for at, video in enumerate(self.results.videos)
        ]

    @property
    def is_partial(self) -> bool:
        """Whether some method has only some of the videos."""
        return len({len(method.metrics) for method in self.results.methods.values()}) > 1

    def options(self) -> dict[str, Any]:
        """Return the settings, fit for JSON."""
        results, dataset = self.results, self.results.dataset
        chosen, costs = results.options, results.videos[0].costs.options
        decided = replace(chosen, linear=linear_of(chosen, dataset), folds=folds_of(chosen, dataset))
        names = ("contiguous", "linear", "min_support", "tolerance", "folds", "limit", "drop_unmapped")
        return {
            **dict(dataset.options),
            **{name: costs[name] for name in ("preset", "match", "drop", "skip", "temperature")},
            **{name: getattr(decided, name) for name in names},
            "labels": f"{dataset.label_rule}, {dataset.label_overlapping}",
            "bootstrap": self.bootstrap,
        }

    def headline(self, recordings: str = "") -> str:
        """Say what was evaluated, on how much, and how, in one line."""
        results, options = self.results, self.options()
        videos, tasks = len(results.videos), len(self.members)
        splits = {video.split.name for video in results.videos if video.split is not None}
        parts = [
            f"{results.dataset.name}: {videos} video{'s'[: videos != 1]} of {tasks} task{'s'[: tasks != 1]}",
            *([f"{len(splits)} {'fold' if options['folds'] else 'split'}{'s'[: len(splits) != 1]}"] if splits else []),
            *([f"recordings {recordings}"] if recordings else []),
            *([SIMULATED] if results.dataset.simulated else []),
            f"preset {options['preset']} (match {options['match']}, drop {options['drop']}, temperature "
            f"{options['temperature']:g})",
            "steps skipped at the log-odds of training"
            if options["skip"] is None and results.dataset.name in OPEN
            else _SKIPPING.get(options["skip"], f"skip {options['skip']}"),
            "contiguous" if options["contiguous"] else "not contiguous",
            f"linear: {'as listed' if options['linear'] == 'listed' else 'mean position in training'}",
            *(["steps without a counterpart removed"] if options["drop_unmapped"] else []),
            *([f"labels by {options['labels']}"] if options["labels"] != "cover, start" else []),
        ]
        given = {name: value for name, value in results.dataset.options.items() if value is not None}
        parts += [f"{name} {f'{value:g}' if isinstance(value, float) else value}" for name, value in given.items()]
        return ", ".join(parts)

    # -- tables ------------------------------------------------------------------------------------------------

    @property
    def suffix(self) -> str:
        """What titles say of simulated evidence."""
        return f" ({SIMULATED})" if self.results.dataset.simulated else ""

    def method_table(self, *, is_growing: bool = False) -> Table:
        """Return the metrics of all methods."""
        rows = self.rows()
        notes = [f"{_MEANING}; in percent."]
        for row in rows:
            if row["absent"]:
                reasons = ", ".join(f"{reason} for {count}" for reason, count in row["absent"].items())
                notes.append(f"{row['method']}: {row['videos']} videos covered ({reasons}).")
        return replace(metric_table(f"Methods{self.suffix}", " ".join(notes), rows), is_growing=is_growing)

    def further_tables(self) -> list[Table]:
        """Return the same on common videos and as means of tasks, intervals and differences."""
        made = []
        if self.is_partial and self.results.common:
            title = f"On the {len(self.results.common)} common videos"
            note = "The same metrics where every method has an answer."
            made.append(metric_table(title, note, self.rows(self.results.common)))
        if len(self.members) > 1:
            macro = [(_method(row), row["tasks"], *_percents(row["macro"])) for row in self.rows()]
            note = "Means over tasks of the means over their videos."
            made.append(Table("Macro means", note, ("method", "tasks", *_HEADINGS), macro))
        spans = [
            (method, *(cells.span(**found[name]) for name in self._told)) for method, found in self.intervals.items()
        ]
        note = f"Percentile bootstrap over videos, {self.samples:,} samples, seed {self.seed}."
        made.append(Table(f"{self.level:.0%} intervals", note, ("method", *self._told), spans))
        if paired := self.paired_cells(*self._told[:3]):
            columns = ("difference", "videos", *self._told[:3])
            made.append(Table("Paired differences", self.paired_note, columns, paired))
        return made

    @property
    def _told(self) -> tuple[str, ...]:
        """The metrics that have intervals in the tables."""
        return _OF_FRAMES if self.results.dataset.name in OPEN else _WITH_INTERVAL

    def paired_cells(self, *names: str) -> list[tuple[str, ...]]:
        """Return the cells of :meth:`differences`."""
        return [
            (f"{row['first']} - {row['second']}", row["videos"], *(cells.signed_span(**row[name]) for name in names))
            for row in self.differences(names)
        ]

    @property
    def paired_note(self) -> str:
        """What tables of differences say of them."""
        return f"In points, with {self.level:.0%} intervals over the videos that both methods have."

    def task_table(self) -> Table:
        """Return acc and iou of each task."""
        note, columns = "acc / iou in percent, means over the task's videos.", ("task", "videos", *self.method_headings)
        by_task = self.by_task()
        rows = [(task["title"] or task["task"], task["videos"], *acc_and_iou(task["rows"])) for task in by_task]
        return Table("Tasks", note, columns, rows)

    @property
    def method_headings(self) -> tuple[str, ...]:
        """The names of the methods for narrow columns: they may break at a blank."""
        short = {"argmax+background": "argmax +bg", "true-order-repeats": "true-order repeats"}
        return tuple(short.get(name, name.replace(":", ": ")) for name in self.results.methods)


def metric_table(title: str, note: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of all metrics, a row per method."""
    found = [
        (_method(row), row["videos"], *_percents(row), cells.milliseconds(row["seconds_per_video"])) for row in rows
    ]
    return Table(title, note, ("method", "videos", *_HEADINGS, "ms/video"), found)


def noise_tables(sweep: Mapping[float, Summary], *, is_growing: bool = False) -> list[Table]:
    """Return the metrics and the differences at each level of noise."""
    first = next(iter(sweep.values()))
    total = len(first.results.videos)
    covered = "".join(
        f" {method.name} on {len(method.metrics)} of {total} videos."
        for method in first.results.methods.values()
        if len(method.metrics) < total
    )
    note, columns = f"acc / iou in percent at each level of noise.{covered}", ("noise", *first.method_headings)
    rows = [(f"{noise:g}", *acc_and_iou(summary.rows())) for noise, summary in sweep.items()]
    paired = [(f"{noise:g}", *row) for noise, summary in sweep.items() for row in summary.paired_cells("acc", "iou")]
    titles = (f"Noise{first.suffix}", f"Paired differences against noise{first.suffix}")
    of_pairs = (first.paired_note, ("noise", "difference", "videos", "acc", "iou"), paired)
    return [Table(titles[0], note, columns, rows, 1, is_growing), Table(titles[1], *of_pairs, 2, is_growing)]


def group_table(groups: Mapping[str, Summary]) -> Table:
    """Return acc and iou of each kind of recordings."""
    first = next(iter(groups.values()))
    note = "acc / iou in percent, over the videos that each method covers."
    rows = [(name, len(one.results.videos), *acc_and_iou(one.rows())) for name, one in groups.items()]
    columns = ("recordings", "videos", *first.method_headings)
    return Table(f"Kinds of recordings{first.suffix}", note, columns, rows)


def acc_and_iou(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return both metrics in one cell for each row."""
    return [f"{cells.percent(row['acc'])}/{cells.percent(row['iou'])}" if row["videos"] else "—" for row in rows]


def _percents(row: Mapping[str, Any]) -> list[str]:
    return [cells.percent(row[name]) for name in METRICS]


def _method(row: Mapping[str, Any]) -> str:
    """Return the name of a method, marked where it is not exact."""
    return row["method"] if row["exact"] else f"{row['method']} ({NOT_EXACT})"


def _values(method: MethodResult, videos: Iterable[int], name: str) -> list[float]:
    return [method.metrics[at][name] for at in videos]


def _in_percent(found: Interval) -> dict[str, float]:
    return {"mean": 100 * found.mean, "low": 100 * found.low, "high": 100 * found.high}
