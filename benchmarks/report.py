"""What a benchmark found: figures for JSON, and tables for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.machine import in_words


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    heading : str
        What stands above it.
    left : bool
        Whether it holds words; numbers stand to the right.
    """

    heading: str
    left: bool = False


@dataclass(frozen=True)
class Table:
    """A table with a title and a note on what its columns mean."""

    title: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]

    def to_markdown(self) -> str:
        """Return the table as Markdown that reads well in a terminal, too."""
        lines = [[column.heading for column in self.columns], *self.rows]
        cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
        widths = [max(4, *map(len, column)) for column in zip(*cells, strict=True)]
        lefts = [column.left for column in self.columns]
        rule = [
            ":" + "-" * (width - 1) if left else "-" * (width - 1) + ":"
            for width, left in zip(widths, lefts, strict=True)
        ]
        padded = [
            [
                cell.ljust(width) if left else cell.rjust(width)
                for cell, width, left in zip(line, widths, lefts, strict=True)
            ]
            for line in cells
        ]
        table = [f"| {' | '.join(line)} |" for line in (padded[0], rule, *padded[1:])]
        return "\n".join([f"**{self.title}.** {self.note}", "", *table]) + "\n"


@dataclass(frozen=True)
class Report:
    """One run of a benchmark.

    Attributes
    ----------
    name : str
        Which benchmark.
    only : tuple of str
        The cases it was restricted to; empty: all.
    machine : dict
        What it ran on.
    cases : tuple of dict
        The results, times in seconds.
    tables : tuple of Table
        The results for people.
    seconds : float
        How long the whole took.
    """

    name: str
    only: tuple[str, ...]
    machine: dict[str, Any]
    cases: tuple[dict[str, Any], ...]
    tables: tuple[Table, ...]
    seconds: float

    @property
    def command(self) -> str:
        """The command that repeats the run."""
        return f"python -m benchmarks {self.name}" + (f" --only {','.join(self.only)}" if self.only else "")

    def to_json(self) -> dict[str, Any]:
        """Return the results as a JSON document."""
        return {
            "format": "graph2vid-bench",
            "version": 1,
            "graph2vid": self.machine["graph2vid"],
            "bench": self.name,
            "command": self.command,
            "machine": self.machine,
            "run_seconds": self.seconds,
            "cases": list(self.cases),
        }

    def to_markdown(self) -> str:
        """Return the tables as Markdown, with the command and the machine."""
        header = f"`{self.command}` on {in_words(self.machine)}:\n"
        return "\n".join([header, *(table.to_markdown() for table in self.tables)])


def table(title: str, note: str, columns: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> Table:
    """Return a table whose first ``words`` columns hold words and whose others hold numbers."""
    return Table(
        title,
        note,
        tuple(Column(heading, position < words) for position, heading in enumerate(columns)),
        tuple(tuple(row) for row in rows),
    )


def duration(seconds: float | None) -> str:
    """Return a time to three digits, in the unit that suits it."""
    if seconds is None:
        return "—"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{_three_digits(seconds / size)} {unit}"
    return f"{_three_digits(seconds / 1e-9)} ns"


def memory(size: int | None) -> str:
    """Return an amount of memory to three digits; systems count pages in bundles, so that little of it is not told."""
    if size is None:
        return "—"
    return f"{_three_digits(size / 1e6)} MB" if size >= 500_000 else "< 0.5 MB"


def times(ratio: float | None) -> str:
    """Return a ratio: ``3.42×``."""
    return "—" if ratio is None else f"{_three_digits(ratio)}×"


def _three_digits(number: float) -> str:
    digits = 2 if number < 9.995 else 1 if number < 99.95 else 0
    return f"{number:,.{digits}f}"
