"""The evaluation of a dataset from end to end: read, evaluate, sweep the noise, compare graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from graph2vid._evaluation_options import ExperimentOptions
from graph2vid.datasets import Dataset
from graph2vid.errors import InputError
from graph2vid.evaluate import graph_statistics
from graph2vid.evaluate.action_segmentation import pooled_rows, pooled_table
from graph2vid.evaluate.dataset_defaults import OPEN, check_preset
from graph2vid.evaluate.engine import Results, evaluate_one_by_one
from graph2vid.evaluate.method_runner import Progress
from graph2vid.evaluate.methods import Video
from graph2vid.evaluate.parsed import PARSED_BY_DEFAULT, ParsedGraphs, check_parsers, with_parsed_graphs
from graph2vid.evaluate.plots import draw_all
from graph2vid.evaluate.report import Report
from graph2vid.evaluate.summary import Summary, group_table, metric_table, noise_tables

NOISES = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Levels of noise of simulated evidence: from plain to see to hardly there."""

PLAIN = "without skipped steps or order errors"

_MOST_TASKS = 60  # in a table for people; the JSON has all
_SIMULATED = (
    "The clip embeddings are simulated: step times are real or drawn, what the clips look like is drawn at random."
)


@dataclass
class DatasetExperiment:
    """The evaluation of a dataset.

    Attributes
    ----------
    load : callable
        Reads the dataset; with ``noise=…`` where the evidence is simulated.
    options : ExperimentOptions
    progress : callable, optional
        Called as (what is done, done, total).
    results : Results
        What the tables are about.
    sweep : dict of float to Summary
        Of the same at each level of noise.
    comparison : Comparison or None
    """

    load: Callable[..., Dataset]
    options: ExperimentOptions = field(default_factory=ExperimentOptions)
    progress: Progress | None = None
    results: Results = field(init=False)
    sweep: dict[float, Summary] = field(init=False, default_factory=dict)
    comparison: graph_statistics.Comparison | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        check_preset(self.options)
        check_parsers(self.options.parsers or ())

    def run(self) -> Iterator[Report]:
        """Evaluate, and yield the report whenever there is more of it."""
        options, report = self.options, Report("")
        load = self._with_parsed_graphs()
        dataset = None if options.noise else load()
        levels = sorted(set(options.noise or (NOISES if dataset is not None and dataset.simulated else ())))
        middle = levels[len(levels) // 2] if levels else 0.0
        if dataset is None or levels:
            dataset = load(noise=middle)
        methods = self._checked_methods(dataset)
        kinds = _kinds(dataset)
        about_what = (
            dataset.options["folder"] if dataset.name in OPEN else options.protocol and f"protocol {options.protocol}"
        )
        report.name = f"{dataset.name} {about_what}" if about_what else dataset.name
        report.name += ":adapt" if options.adapt else ""  # a section of its own
        everything: Results
        for everything in self._evaluate(dataset, methods):
            groups = {name: part for name, member in kinds.items() if (part := everything.only(member)).videos}
            # Where recordings that deviate from the procedure are marked, the tables are about the others.
            about = PLAIN if PLAIN in groups else ""
            self.results = groups.get(about, everything)
            summary = Summary(self.results)
            report.headline = summary.headline(about)
            report.tables = [summary.method_table(is_growing=True)]
            report.document = self._head(summary, about) | {"rows": summary.rows()}
            self._tell_problems(report)
            yield report
        self._fill(report, summary, {name: Summary(part) for name, part in groups.items()})
        yield report
        self._add_graphs(report)
        yield report
        if len(levels) > 1:
            found = {middle: summary}
            for noise in levels:
                if noise != middle:
                    *_, everything = self._evaluate(load(noise=noise), methods, f"noise {noise:g}: ")
                    found[noise] = Summary(everything.only(kinds[PLAIN]) if about else everything)
                self.sweep = {level: found[level] for level in levels if level in found}
                self._add_sweep(report, is_growing=noise != levels[-1])
                yield report
        if options.compare_graphs is not None:
            self._compare(report, options.compare_graphs)
        report.draw = partial(
            draw_all,
            results=self.results,
            sweep={noise: found.results for noise, found in self.sweep.items()},
            comparison=self.comparison,
            videos=options.video,
        )
        report.is_complete = True
        yield report

    def _with_parsed_graphs(self) -> Callable[..., Dataset]:
        """Return what reads the dataset and adds the graphs of parsers, each text parsed once however often."""
        parsers, methods = self.options.parsers, self.options.methods
        chosen: Sequence[str] = PARSED_BY_DEFAULT if parsers is None else parsers
        if methods is not None and "graph" not in methods:
            chosen = [name for name in chosen if f"graph:{name}" in methods]
        graphs = ParsedGraphs(chosen)

        def loaded(**options: Any) -> Dataset:
            dataset = with_parsed_graphs(self.load(**options), graphs, all_tasks=parsers is not None)
            for name, why in graphs.unavailable.items():
                if f"graph:{name}" in (methods or ()):
                    raise InputError(f"graph:{name} cannot be had: {why}")
            return dataset

        return loaded

    def _checked_methods(self, dataset: Dataset) -> Sequence[str] | None:
        """Refuse tasks and videos that the dataset does not have, and return the methods to evaluate."""
        methods, task = self.options.methods, self.options.compare_graphs
        known = {recording.id for recording in dataset.recordings}
        for name in self.options.video:
            if name not in known:
                raise InputError(f"{dataset.name} has no video {name!r}")
        if self.options.adapt and methods is None:
            parsed = any("rules" in of_task.flows for of_task in dataset.tasks.values())
            methods = ("graph:rules" if parsed else "graph:mined", "true-order")
        if task is None:
            return methods
        graph_statistics.find_task(dataset, task)
        if methods is None and any(of_task.flows for of_task in dataset.tasks.values()):
            # Beside ready graphs mined ones are not evaluated by default, but here the sources are the point.
            return ["argmax", "bag", "linear", "written", "graph", "true-order", "true-order-repeats"]
        return methods

    def _evaluate(self, dataset: Dataset, methods: Sequence[str] | None, prefix: str = "") -> Iterator[Results]:
        tell = self.progress or (lambda *_: None)

        def prefixed(stage: str, *numbers: int) -> None:
            tell(f"{prefix}{stage}", *numbers)

        return evaluate_one_by_one(dataset, methods, self.options, prefixed)

    @staticmethod
    def _head(summary: Summary, about: str) -> dict[str, Any]:
        results = summary.results
        return {
            "dataset": results.dataset.name,
            "simulated": results.dataset.simulated,
            "unit": "percent",
            "videos": len(results.videos),
            "tasks_count": len(summary.members),
            "options": summary.options(),
            "recordings": about or "all",
            "problems": list(results.problems),
            "remarks": list(results.dataset.remarks),
            "workers": results.workers,
            "noise": [],
            "comparison": None,
        }

    def _tell_problems(self, report: Report) -> None:
        problems, dataset = self.results.problems, self.results.dataset
        report.notes = [_SIMULATED] if dataset.simulated else []
        report.notes += [f"{len(problems)} videos or files were passed over."] if problems else []
        report.remarks = [f"passed over: {problem}" for problem in problems]
        report.remarks += [*(f"note: {remark}" for remark in dataset.remarks), f"{self.results.workers} workers"]

    @staticmethod
    def _fill(report: Report, summary: Summary, groups: Mapping[str, Summary]) -> None:
        """Add everything about the methods."""
        common, rows = summary.results.common, summary.rows()
        for row in rows:
            intervals = summary.intervals[row["method"]]
            row["intervals"] = {name: [found["low"], found["high"]] for name, found in intervals.items()}
        report.document |= {
            "rows": rows,
            "common": {"videos": len(common), "rows": summary.rows(common)} if summary.is_partial else None,
            "differences": summary.differences(),
            "tasks": summary.by_task(),
            "groups": [
                {"group": name, "videos": len(group.results.videos), "rows": group.rows()}
                | {"differences": group.differences(("acc", "iou"))}
                for name, group in groups.items()
            ],
            "per_video": summary.by_video(),
        }
        report.tables = [summary.method_table(), *summary.further_tables()]
        if summary.results.dataset.name in OPEN:
            report.document["pooled"] = pooled_rows(summary.results)
            report.tables.insert(1, pooled_table(report.document["pooled"]))
        if groups:
            report.tables.append(group_table(groups))
        if 1 < len(summary.members) <= _MOST_TASKS:
            report.tables.append(summary.task_table())

    def _add_graphs(self, report: Report) -> None:
        sizes = graph_statistics.graph_sizes(self.results)
        times = graph_statistics.time_against_brute_force(self.results)
        report.document |= {"graphs": sizes, "exact_against_brute_force": times}
        report.tables += [graph_statistics.size_table(sizes)] if sizes else []
        report.tables += [graph_statistics.brute_force_table(times)] if times else []

    def _add_sweep(self, report: Report, *, is_growing: bool) -> None:
        report.document["noise"] = [
            {"noise": noise, "rows": summary.rows(), "differences": summary.differences()}
            for noise, summary in self.sweep.items()
        ]
        whole = [table for table in report.tables if not table.is_growing]
        report.tables = [*whole, *noise_tables(self.sweep, is_growing=is_growing)]

    def _compare(self, report: Report, task: str) -> None:
        self.comparison = found = graph_statistics.compare_graphs(self.results, task)
        summary = Summary(self.results)
        members = summary.members[found.task.id]
        rows = summary.rows(members)
        sources = ", ".join(f"{source} ({len(flow.edges)} edges)" for source, flow in found.flows.items())
        title = f"{found.task.title or found.task.id}: scores under each graph"
        report.document["comparison"] = found.to_json() | {"videos": len(members), "rows": rows}
        report.tables += [metric_table(title, f"{sources}.", rows), found.table()]


def _kinds(dataset: Dataset) -> dict[str, Callable[[Video], bool]]:
    """Return the kinds of recordings that the notes of a dataset tell apart, those that follow the procedure first."""
    if not any("order_error" in recording.notes for recording in dataset.recordings):
        return {}

    def has(video: Video, *notes: str) -> bool:
        return any(video.recording.notes.get(note) for note in notes)

    return {
        PLAIN: lambda video: not has(video, "skipped", "order_error"),
        "with skipped steps": lambda video: has(video, "skipped"),
        "with order errors": lambda video: has(video, "order_error"),
        "all": lambda _: True,
    }
