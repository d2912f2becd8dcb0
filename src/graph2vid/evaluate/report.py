"""What an experiment found: tables for people (terminal, Markdown), a document for programs (JSON), pictures."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from graph2vid import __version__
from graph2vid._frames import data_frame
from graph2vid.errors import InputError

if TYPE_CHECKING:
    from pandas import DataFrame

CUT_SHORT = "the run was cut short: what was not done by then is missing"

Pictures: TypeAlias = tuple[tuple[str, str], ...]
"""Titles and file names."""


@dataclass(frozen=True)
class Table:
    """A table of cells; the first ``words`` columns hold words, the others numbers.

    Attributes
    ----------
    title, note : str
    columns : tuple of str
        What stands above the columns.
    rows : sequence of sequences
        The cells; they are kept as text.
    words : int
    is_growing : bool
        Whether rows are still to come: such a table is saved, and shown when it is whole.
    """

    title: str
    note: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    words: int = 1
    is_growing: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(tuple(map(str, row)) for row in self.rows))

    def to_markdown(self) -> str:
        """Return the table as Markdown."""
        rule = [":---" if place < self.words else "---:" for place in range(len(self.columns))]
        rows = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in (self.columns, rule, *self.rows)]
        return "\n".join([f"**{self.title}.** {self.note}".rstrip(), "", *(f"| {row} |" for row in rows), ""])

    def to_frame(self) -> DataFrame:
        """Return the table as one of pandas; columns of nothing but numbers, as they are shown, are numbers."""
        columns = {}
        for name, *cells in zip(self.columns, *self.rows, strict=True):
            values = [_number(cell) for cell in cells]
            columns[name] = cells if None in values else values
        return data_frame(
            [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)], columns
        )


@dataclass
class Report:
    """What an experiment has found so far: experiments yield it whenever there is more, and it grows.

    Attributes
    ----------
    name : str
        Of the experiment, and of its section on a page of results.
    headline : str
        What is evaluated, on how much, and how, in one line.
    format : str
        Of the JSON document.
    tables : list of Table
        Those that are whole stay as they are.
    document : dict
        Everything, for programs.
    notes : list of str
        What a reader must know beside the tables.
    remarks : list of str
        What is worth knowing to who ran it: shown in the terminal alone.
    draw : callable, optional
        Draws the pictures into a folder.
    pictures : tuple of (str, str)
        Titles and file names of the pictures that were drawn.
    command : str
        What repeats it.
    is_complete : bool
        Whether nothing is to come.
    """

    name: str
    headline: str = ""
    format: str = "graph2vid-evaluation"
    tables: list[Table] = field(default_factory=list)
    document: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    draw: Callable[[Path], Pictures] | None = None
    pictures: Pictures = ()
    command: str = ""
    is_complete: bool = False
    _began: float = field(default_factory=perf_counter, repr=False)

    @property
    def seconds(self) -> float:
        """Since the experiment began."""
        return perf_counter() - self._began

    def to_json(self) -> dict[str, Any]:
        """Return everything as a JSON document; what is not defined is null."""
        head = {"format": self.format, "version": 1, "graph2vid": __version__, "dataset": self.name}
        remarks = self.document.get("remarks", []) + ([] if self.is_complete else [CUT_SHORT])
        end = {"remarks": remarks, "complete": self.is_complete, "seconds": self.seconds}
        plain: dict[str, Any] = without_nan(head | {"command": self.command} | self.document | end)
        return plain

    def to_markdown(self, folder: str = "") -> str:
        """Return the section for a page of results; ``folder`` leads from the page to the pictures."""
        notes = self.notes if self.is_complete else [*self.notes, f"{CUT_SHORT[0].upper()}{CUT_SHORT[1:]}."]
        above = [f"## {self.name}", f"    {self.command}", f"{self.headline}.", *notes]
        pictures = [f"![{title}]({f'{folder}/{file}' if folder else file})" for title, file in self.pictures]
        return "\n\n".join([*above, *(table.to_markdown().rstrip("\n") for table in self.tables), *pictures]) + "\n"

    def to_frame(self, title: str | None = None) -> DataFrame:
        """Return a table of pandas.

        Parameters
        ----------
        title : str, optional
            Of one of the tables, or how it begins. By default what the document holds as ``rows``: of an evaluated
            dataset a row per method with every metric in percent; of another experiment its first table.
        """
        if title is None and "rows" in self.document:
            return data_frame(self.document["rows"])
        found = [table for table in self.tables if table.title.startswith(title or "")]
        if not found:
            names = ", ".join(repr(table.title) for table in self.tables) or "none yet"
            raise InputError(f"there is no table {title!r}; there are: {names}")
        return found[0].to_frame()

    def into_page(self, page: str, folder: str = "") -> str:
        """Return a page of results with the section of this experiment put in or replaced."""
        begin, end = f"<!-- evaluate {self.name}: begin -->", f"<!-- evaluate {self.name}: end -->"
        section = f"{begin}\n{self.to_markdown(folder).rstrip()}\n{end}\n"
        page = page or (
            "# Results\n\nEvery section is written by `graph2vid evaluate … --markdown FILE`, by the command that it "
            "names.\n"
        )
        pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}\n", re.DOTALL)
        if pattern.search(page):
            return pattern.sub(lambda _: section, page)
        return f"{page.rstrip()}\n\n{section}"


def _number(cell: str) -> float | None:
    """Return what a cell of a table says, NaN where it says that there is nothing; None if it holds words."""
    try:
        return math.nan if cell == "—" else float(cell.replace(",", ""))
    except ValueError:
        return None


def without_nan(value: Any) -> Any:
    """Return a JSON value in which what is not a finite number is null."""
    if isinstance(value, Mapping):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


# -- cells: numbers in words, narrow and rounded -----------------------------------------------------------------


def percent(value: float | None) -> str:
    """Return a number in percent; a dash where there is none."""
    return "—" if value is None or math.isnan(value) else "100" if value > 99.95 else f"{value:.1f}"


def span(mean: float, low: float, high: float) -> str:
    """Return a number in percent and its interval."""
    return "—" if math.isnan(mean) else f"{percent(mean)} [{percent(low)}, {percent(high)}]"


def signed_span(mean: float, low: float, high: float) -> str:
    """Return a difference in points and its interval."""
    return "—" if math.isnan(mean) else f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def milliseconds(seconds: float | None) -> str:
    """Return a time per video."""
    return "—" if seconds is None else f"{1000 * seconds:.2f}" if seconds < 0.1 else f"{1000 * seconds:,.0f}"


def count(value: float | None) -> str:
    """Return a number of things."""
    if value is None or not math.isfinite(value):
        return "—" if value is None else "> 1e300"
    return f"{value:,.0f}" if value < 1e7 else f"{value:.1e}"


def bounded_count(value: float | None, lower: float, upper: float) -> str:
    """Return a number of things, or its bounds where it is not known."""
    return f"{count(lower)} … {count(upper)}" if value is None else count(value)


def duration(value: float) -> str:
    """Return a span of time in a fitting unit."""
    if not value < 1e5:
        return f"{value / 31_557_600:.1e} years" if value > 3e7 else f"{value / 86400:,.0f} days"
    size, unit = (1.0, "s") if value >= 1 else (1e-3, "ms") if value >= 1e-3 else (1e-6, "µs")
    return f"{value / size:.3g} {unit}"
