"""What an evaluation found, for people (terminal, Markdown) and for programs (JSON). Measures are in percent."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from graph2vid import __version__
from graph2vid.evaluate.engine import NOT_EXACT, Results, Run
from graph2vid.evaluate.graphs import Comparison, graph_figures, time_against_brute_force
from graph2vid.evaluate.intervals import Interval, bootstrap_interval, paired_interval

MEASURES = ("acc", "iou", "iou_strict", "acc_paper", "mof", "edit", "f1@10", "f1@25", "f1@50", "recall")
_HEADINGS = ("acc", "iou", "iou_s", "acc_p", "mof", "edit", "f1@10", "@25", "@50", "rec")
_WITH_INTERVAL = ("acc", "iou", "iou_strict", "mof")
_MEANING = (
    "acc: right among the clips that show a step. iou_s (iou_strict): steps that are not there count in the union. "
    "acc_p (acc_paper): right step clips over all clips. rec: CrossTask recall. Means over videos"
)
_MOST_TASKS = 60  # in a table for people; the JSON has all
SIMULATED = "simulated evidence"


@dataclass(frozen=True)
class Table:
    """A table of cells; the first ``words`` columns hold words, the others numbers."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1

    def to_markdown(self) -> str:
        """Return the table as Markdown."""
        rule = [":---" if place < self.words else "---:" for place in range(len(self.columns))]
        lines = [f"**{self.title}.** {self.note}".rstrip(), "", *map(_line, (self.columns, rule, *self.rows)), ""]
        return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


@dataclass(frozen=True)
class Level:
    """One level of noise of a sweep, and what was found there."""

    noise: float
    results: Results


@dataclass(frozen=True)
class Report:
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

    def timed(self, seconds: float) -> Report:
        """Return the report with its time."""
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
        """Return graph - linear and graph - bag, paired over the videos that both have, in percent points."""
        results = results or self.results
        found = []
        for first in results.runs.values():
            if not first.name.startswith("graph:"):
                continue
            for other in ("linear", "bag"):
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
    def _is_partial(self) -> bool:
        """Whether some method has only some of the videos."""
        counts = {len(run.measures) for run in self.results.runs.values()}
        return len(counts) > 1

    def options(self) -> dict[str, Any]:
        """Return the settings, fit for JSON."""
        results = self.results
        first = results.videos[0]
        return {
            **dict(results.dataset.options),
            "preset": results.options.preset,
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
            "common": {"videos": len(common), "rows": self.rows(members=common)} if self._is_partial else None,
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
            "comparison": None if self.comparison is None else self.comparison.to_json() | self._compared(),
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
        plain: dict[str, Any] = _without_nan(document)
        return plain

    def _compared(self) -> dict[str, Any]:
        assert self.comparison is not None
        name = self.comparison.task.id
        members = [at for at, video in enumerate(self.results.videos) if video.task.id == name]
        return {"videos": len(members), "rows": self.rows(members=members)}

    # -- tables --------------------------------------------------------------------------------------------

    def headline(self) -> str:
        """Say what was evaluated, on how much, and how, in one line."""
        results, options = self.results, self.options()
        tasks = len({video.task.id for video in results.videos})
        splits = {video.split.name for video in results.videos if video.split is not None}
        parts = [
            f"{results.dataset.name}: {len(results.videos)} videos of {tasks} task{'s'[: tasks != 1]}",
            *([f"{len(splits)} {'fold' if options['folds'] else 'split'}{'s'[: len(splits) != 1]}"] if splits else []),
            *([f"recordings {self.main}"] if self.main else []),
            *([SIMULATED] if results.dataset.simulated else []),
            f"preset {options['preset']} (match {options['match']}, drop {options['drop']}, temperature "
            f"{options['temperature']:g})",
            "every step required" if options["skip"] is None else f"skip {options['skip']}",
            "contiguous" if options["contiguous"] else "not contiguous",
            f"linear: {'as listed' if options['linear'] == 'listed' else 'mean position in training'}",
            *(["steps without a counterpart removed"] if options["drop_unmapped"] else []),
            *([f"labels by {options['labels']}"] if options["labels"] != "cover, start" else []),
            *(f"{name} {_word(value)}" for name, value in results.dataset.options.items() if value is not None),
        ]
        return ", ".join(parts)

    def tables(self) -> list[Table]:
        """Return all tables."""
        made = [self._main_table()]
        if self._is_partial and self.results.common:
            common = self.results.common
            made.append(
                self._measure_table(
                    f"On the {len(common)} common videos",
                    "The same measures where every method has an answer.",
                    self.rows(members=common),
                )
            )
        tasks = len({video.task.id for video in self.results.videos})
        if tasks > 1:
            made.append(self._macro_table())
        made.append(self._interval_table())
        made += self._difference_tables()
        if self.sweep:
            made += self._sweep_tables()
        made += self._group_tables()
        made += self._graph_tables()
        if 1 < tasks <= _MOST_TASKS:
            made.append(self._task_table())
        if self.comparison is not None:
            made += self._comparison_tables()
        return made

    def _suffix(self) -> str:
        return f" ({SIMULATED})" if self.results.dataset.simulated else ""

    def _main_table(self) -> Table:
        rows = self.rows()
        notes = [f"{_MEANING}; in percent."]
        for row in rows:
            if row["absent"]:
                reasons = ", ".join(f"{reason} for {count}" for reason, count in row["absent"].items())
                notes.append(f"{row['method']}: {row['videos']} videos covered ({reasons}).")
        return self._measure_table(f"Methods{self._suffix()}", " ".join(notes), rows)

    def _measure_table(self, title: str, note: str, rows: list[dict[str, Any]]) -> Table:
        return Table(
            title,
            note,
            ("method", "videos", *_HEADINGS, "ms/video"),
            tuple(
                (
                    _name(row),
                    str(row["videos"]),
                    *(_cell(row[name]) for name in MEASURES),
                    _milliseconds(row["seconds_per_video"]),
                )
                for row in rows
            ),
        )

    def _macro_table(self) -> Table:
        return Table(
            "Macro means",
            "Means over tasks of the means over their videos.",
            ("method", "tasks", *_HEADINGS),
            tuple(
                (_name(row), str(row["tasks"]), *(_cell(row["macro"][name]) for name in MEASURES))
                for row in self.rows()
            ),
        )

    def _interval_table(self) -> Table:
        return Table(
            f"{self.level:.0%} intervals",
            f"Percentile bootstrap over videos, {self.samples:,} samples, seed {self.seed}.",
            ("method", *_WITH_INTERVAL),
            tuple(
                (name, *(_span(of_method[measure]) for measure in _WITH_INTERVAL))
                for name, of_method in self.intervals().items()
            ),
        )

    def _difference_tables(self) -> list[Table]:
        found = self.differences(names=_WITH_INTERVAL[:3])
        if not found:
            return []
        return [
            Table(
                "Paired differences",
                f"In points, with {self.level:.0%} intervals over the videos that both methods have.",
                ("difference", "videos", *_WITH_INTERVAL[:3]),
                tuple(
                    (
                        f"{row['first']} - {row['second']}",
                        str(row["videos"]),
                        *(_signed_span(row[name]) for name in _WITH_INTERVAL[:3]),
                    )
                    for row in found
                ),
            )
        ]

    def _sweep_tables(self) -> list[Table]:
        rows, paired = [], []
        for level in self.sweep:
            rows.append((f"{level.noise:g}", *(_both(row) for row in self.rows(level.results))))
            for row in self.differences(level.results, names=("acc", "iou")):
                spans = (_signed_span(row["acc"]), _signed_span(row["iou"]))
                paired.append((f"{level.noise:g}", f"{row['first']} - {row['second']}", str(row["videos"]), *spans))
        return [
            Table(
                f"Noise{self._suffix()}",
                "acc / iou in percent at each level of noise.",
                ("noise", *map(_heading, self.sweep[0].results.runs)),
                tuple(rows),
            ),
            Table(
                f"Paired differences against noise{self._suffix()}",
                f"In points, with {self.level:.0%} intervals over the videos that both methods have.",
                ("noise", "difference", "videos", "acc", "iou"),
                tuple(paired),
                words=2,
            ),
        ]

    def _group_tables(self) -> list[Table]:
        groups = self.by_group()
        if not groups:
            return []
        return [
            Table(
                f"Kinds of recordings{self._suffix()}",
                "acc / iou in percent.",
                ("recordings", "videos", *map(_heading, self.results.runs)),
                tuple(
                    (group["group"], str(group["videos"]), *(_both(row) for row in group["rows"])) for group in groups
                ),
            )
        ]

    def _graph_tables(self) -> list[Table]:
        figures, against = self.graphs(), self.against_brute_force()
        made = []
        if figures:
            made.append(
                Table(
                    "Graphs",
                    "Means over the graphs (one per task, and per split where they are mined); sorts: the median. "
                    "tSort nodes over those within the limit.",
                    ("source", "graphs", "steps", "threads", "sorts", "tSort nodes", "median", "beyond limit"),
                    tuple(
                        (
                            row["source"],
                            str(row["graphs"]),
                            f"{row['steps']:.1f}",
                            f"{row['threads']:.1f}",
                            _sorts(row),
                            _count(row["tsort_nodes"]),
                            _count(row["tsort_nodes_median"]),
                            str(row["graphs"] - row["compiled"]),
                        )
                        for row in figures
                    ),
                )
            )
        if against:
            made.append(
                Table(
                    "Exact against brute force",
                    f"On these graphs, one video each, one thread. Brute force: every topological sort through "
                    f"Drop-DTW by the same kernels; capped at {against[0]['most_sorts']:,} sorts per graph, beyond "
                    "which the time is reckoned at the same pace. Where all sorts were tried, the costs agreed.",
                    ("source", "graphs", "all tried", "exact", "brute force", "ratio (median)"),
                    tuple(
                        (
                            row["source"],
                            str(row["graphs"]),
                            str(row["complete"]),
                            _seconds(row["exact_seconds"]),
                            _seconds(row["brute_seconds"]),
                            f"{_count(row['ratio'])}×",
                        )
                        for row in against
                    ),
                )
            )
        return made

    def _task_table(self) -> Table:
        return Table(
            "Tasks",
            "acc / iou in percent, means over the task's videos.",
            ("task", "videos", *map(_heading, self.results.runs)),
            tuple(
                (task["title"] or task["task"], str(task["videos"]), *(_both(row) for row in task["rows"]))
                for task in self.by_task()
            ),
        )

    def _comparison_tables(self) -> list[Table]:
        comparison = self.comparison
        assert comparison is not None
        texts = comparison.task.procedure
        scores = self._compared()
        title = comparison.task.title or comparison.task.id
        sources = ", ".join(f"{source} ({len(flow.edges)} edges)" for source, flow in comparison.flows.items())
        return [
            self._measure_table(f"{title}: scores under each graph", f"{sources}.", scores["rows"]),
            Table(
                f"{title}: edges on which the graphs differ",
                f"honoured: the share of the {comparison.executions} executions in which the one step begins first, of "
                "those that show both.",
                ("before", "after", "in", "honoured", "of"),
                tuple(
                    (
                        texts[edge.before],
                        texts[edge.after],
                        ", ".join(edge.sources),
                        f"{100 * edge.honoured / edge.seen:.0f}%" if edge.seen else "—",
                        str(edge.seen),
                    )
                    for edge in comparison.differences
                ),
                words=3,
            ),
        ]

    # -- Markdown ------------------------------------------------------------------------------------------

    def to_markdown(self, folder: str = "") -> str:
        """Return the section for a page of results; ``folder`` leads from the page to the pictures."""
        lines = [f"## {self.results.dataset.name}", "", f"    {self.command}", "", f"{self.headline()}.", ""]
        if self.results.dataset.simulated:
            lines += [
                "The clip embeddings are simulated: step times are real or drawn, what the clips look like is "
                "drawn at random.",
                "",
            ]
        if self.results.problems:
            lines += [f"{len(self.results.problems)} videos or files were passed over.", ""]
        for table in self.tables():
            lines.append(table.to_markdown())
        for title, file in self.pictures:
            lines += [f"![{title}]({folder}/{file})" if folder else f"![{title}]({file})", ""]
        return "\n".join(lines)

    def into_page(self, page: str, folder: str = "") -> str:
        """Return a page of results with the section of this dataset put in or replaced."""
        name = self.results.dataset.name
        begin, end = f"<!-- evaluate {name}: begin -->", f"<!-- evaluate {name}: end -->"
        section = f"{begin}\n{self.to_markdown(folder).rstrip()}\n{end}\n"
        page = page or (
            "# Results\n\nEvery section is written by `graph2vid evaluate DATASET --markdown FILE`, by the command "
            "that it names.\n"
        )
        pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}\n", re.DOTALL)
        if pattern.search(page):
            return pattern.sub(lambda _: section, page)
        return f"{page.rstrip()}\n\n{section}"


# -- cells ---------------------------------------------------------------------------------------------------


def _mean(values: Iterable[float]) -> float:
    array = np.array(list(values), dtype=np.float64)
    defined = array[~np.isnan(array)]
    return float(defined.mean()) if defined.size else math.nan


def _percent(share: float) -> float:
    return 100 * share


def _in_percent(found: Interval) -> Interval:
    return Interval(100 * found.mean, 100 * found.low, 100 * found.high, found.level, found.videos)


def _without_nan(value: Any) -> Any:
    """Return a JSON value in which what is not a finite number is null."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _name(row: dict[str, Any]) -> str:
    return row["method"] if row["exact"] else f"{row['method']} ({NOT_EXACT})"


def _cell(value: float) -> str:
    return "—" if math.isnan(value) else "100" if value > 99.95 else f"{value:.1f}"


def _heading(name: str) -> str:
    """Return the name of a method for a narrow column: it may break at a blank."""
    return {"argmax+background": "argmax +bg", "true-order-repeats": "true-order repeats"}.get(
        name, name.replace(":", ": ")
    )


def _both(row: dict[str, Any]) -> str:
    return f"{_cell(row['acc'])}/{_cell(row['iou'])}" if row["videos"] else "—"


def _span(found: Interval) -> str:
    return "—" if math.isnan(found.mean) else f"{_cell(found.mean)} [{_cell(found.low)}, {_cell(found.high)}]"


def _signed_span(found: dict[str, float]) -> str:
    return "—" if math.isnan(found["mean"]) else f"{found['mean']:+.1f} [{found['low']:+.1f}, {found['high']:+.1f}]"


def _milliseconds(seconds: float | None) -> str:
    return "—" if seconds is None else f"{1000 * seconds:.2f}" if seconds < 0.1 else f"{1000 * seconds:,.0f}"


def _count(value: float | None) -> str:
    if value is None:
        return "—"
    if not math.isfinite(value):
        return "> 1e300"
    return f"{value:,.0f}" if value < 1e7 else f"{value:.1e}"


def _sorts(row: dict[str, Any]) -> str:
    if row["sorts"] is not None:
        return _count(row["sorts"])
    return f"{_count(row['sorts_lower'])} … {_count(row['sorts_upper'])}"


def _seconds(value: float) -> str:
    if not value < 1e5:
        return f"{value / 31_557_600:.1e} years" if value > 3e7 else f"{value / 86400:,.0f} days"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
