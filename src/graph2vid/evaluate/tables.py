"""What an evaluation found, in tables for people: terminal and Markdown. Measures are in percent."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from graph2vid.evaluate import cells
from graph2vid.evaluate.metric_rows import MEASURES, Figures, Level, without_nan

__all__ = ["MEASURES", "SIMULATED", "Level", "Report", "Table", "section_into_page", "without_nan"]

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


_SKIPPING = {None: "every step required", "given": "steps left out at the prices that the evidence tells"}


def _line(entries: Iterable[str]) -> str:
    return "| " + " | ".join(entry.replace("|", "\\|") for entry in entries) + " |"


class Report(Figures):
    """The figures of an evaluation, and how they are shown."""

    def headline(self) -> str:
        """Say what was evaluated, on how much, and how, in one line."""
        results, options = self.results, self.options()
        videos, tasks = len(results.videos), len({video.task.id for video in results.videos})
        splits = {video.split.name for video in results.videos if video.split is not None}
        parts = [
            f"{results.dataset.name}: {videos} video{'s'[: videos != 1]} of {tasks} task{'s'[: tasks != 1]}",
            *([f"{len(splits)} {'fold' if options['folds'] else 'split'}{'s'[: len(splits) != 1]}"] if splits else []),
            *([f"recordings {self.main}"] if self.main else []),
            *([SIMULATED] if results.dataset.simulated else []),
            f"preset {options['preset']} (match {options['match']}, drop {options['drop']}, temperature "
            f"{options['temperature']:g})",
            _SKIPPING.get(options["skip"], f"skip {options['skip']}"),
            "contiguous" if options["contiguous"] else "not contiguous",
            f"linear: {'as listed' if options['linear'] == 'listed' else 'mean position in training'}",
            *(["steps without a counterpart removed"] if options["drop_unmapped"] else []),
            *([f"labels by {options['labels']}"] if options["labels"] != "cover, start" else []),
            *(f"{name} {cells.word(value)}" for name, value in results.dataset.options.items() if value is not None),
        ]
        return ", ".join(parts)

    def tables(self) -> list[Table]:
        """Return all tables."""
        made = [self._main_table()]
        if self.is_partial and self.results.common:
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

    def _covered(self) -> str:
        """Say which methods have only some of the videos."""
        total = len(self.results.videos)
        some = [run for run in self.results.runs.values() if len(run.measures) < total]
        return "".join(f" {run.name} on {len(run.measures)} of {total} videos." for run in some)

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
                    cells.method(row),
                    str(row["videos"]),
                    *(cells.percent(row[name]) for name in MEASURES),
                    cells.milliseconds(row["seconds_per_video"]),
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
                (cells.method(row), str(row["tasks"]), *(cells.percent(row["macro"][name]) for name in MEASURES))
                for row in self.rows()
            ),
        )

    def _interval_table(self) -> Table:
        return Table(
            f"{self.level:.0%} intervals",
            f"Percentile bootstrap over videos, {self.samples:,} samples, seed {self.seed}.",
            ("method", *_WITH_INTERVAL),
            tuple(
                (name, *(cells.span(of_method[measure]) for measure in _WITH_INTERVAL))
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
                        *(cells.signed_span(row[name]) for name in _WITH_INTERVAL[:3]),
                    )
                    for row in found
                ),
            )
        ]

    def _sweep_tables(self) -> list[Table]:
        rows, paired = [], []
        for level in self.sweep:
            rows.append((f"{level.noise:g}", *(cells.both(row) for row in self.rows(level.results))))
            for row in self.differences(level.results, names=("acc", "iou")):
                spans = (cells.signed_span(row["acc"]), cells.signed_span(row["iou"]))
                paired.append((f"{level.noise:g}", f"{row['first']} - {row['second']}", str(row["videos"]), *spans))
        return [
            Table(
                f"Noise{self._suffix()}",
                f"acc / iou in percent at each level of noise.{self._covered()}",
                ("noise", *map(cells.heading, self.sweep[0].results.runs)),
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
                "acc / iou in percent, over the videos that each method covers.",
                ("recordings", "videos", *map(cells.heading, self.results.runs)),
                tuple(
                    (group["group"], str(group["videos"]), *(cells.both(row) for row in group["rows"]))
                    for group in groups
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
                            cells.sorts(row),
                            cells.count(row["tsort_nodes"]),
                            cells.count(row["tsort_nodes_median"]),
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
                            cells.seconds(row["exact_seconds"]),
                            cells.seconds(row["brute_seconds"]),
                            f"{cells.count(row['ratio'])}×",
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
            ("task", "videos", *map(cells.heading, self.results.runs)),
            tuple(
                (task["title"] or task["task"], str(task["videos"]), *(cells.both(row) for row in task["rows"]))
                for task in self.by_task()
            ),
        )

    def _comparison_tables(self) -> list[Table]:
        comparison = self.comparison
        assert comparison is not None
        texts = comparison.task.procedure
        scores = self.compared()
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

    # -- pictures and Markdown -----------------------------------------------------------------------------

    def drawn(self, folder: str | os.PathLike[str], videos: Iterable[str] = ()) -> Report:
        """Draw the pictures into a folder and return the report with them; see :func:`.plots.draw_all`."""
        from graph2vid.evaluate.plots import draw_all

        pictures = draw_all(folder, self.results, sweep=self.sweep, comparison=self.comparison, videos=videos)
        return replace(self, pictures=pictures)

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
        return section_into_page(page, self.results.dataset.name, self.to_markdown(folder))


def section_into_page(page: str, name: str, text: str) -> str:
    """Return a page of results with the section called ``name`` put in, or replaced by ``text``."""
    begin, end = f"<!-- evaluate {name}: begin -->", f"<!-- evaluate {name}: end -->"
    section = f"{begin}\n{text.rstrip()}\n{end}\n"
    page = page or (
        "# Results\n\nEvery section is written by `graph2vid evaluate DATASET --markdown FILE`, by the command "
        "that it names.\n"
    )
    pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}\n", re.DOTALL)
    if pattern.search(page):
        return pattern.sub(lambda _: section, page)
    return f"{page.rstrip()}\n\n{section}"
