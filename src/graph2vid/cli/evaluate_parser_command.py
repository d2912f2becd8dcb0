"""``graph2vid evaluate parser``: the parsers of procedures judged side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from graph2vid.cli.terminal_table import show_table
from graph2vid.errors import InputError

if TYPE_CHECKING:
    from graph2vid.evaluate.calibration import CalibrationReport
    from graph2vid.evaluate.check_experiment import CheckReport
    from graph2vid.evaluate.engine import Progress
    from graph2vid.evaluate.parser import ParserReport
    from graph2vid.learn.features.comparison_report import TrainingReport

PARSER = "parser"
_HAS = ("dataset", "data", "parsers", "split", "option", "json", "markdown")
"""Of the many options of ``evaluate`` those that make sense here."""

_READER_OPTIONS = ("crosstask", "captaincook4d", "weights", "model")


def judge(
    context: typer.Context,
    data: Path | None,
    split: str | None,
    parsers: Sequence[str] | None,
    options: dict[str, Any],
    command: str,
    progress: Progress | None,
) -> ParserReport:
    """Judge the parsers as the command line says; an option that does not belong here is an error."""
    from graph2vid.evaluate.parser import PARSERS_BY_DEFAULT, judge_parsers

    refuse_other_options(context, PARSER, _HAS, options, _READER_OPTIONS)
    if data is None:
        raise InputError("the recipe flow graph corpus is read from a folder: say which with --data DIR")
    if parsers is not None and not parsers:
        raise InputError("--parsers names no parser to judge")
    chosen = PARSERS_BY_DEFAULT if parsers is None else parsers
    return judge_parsers(data, split or "dev", chosen, **options, command=command, progress=progress)


def refuse_other_options(
    context: typer.Context, what: str, has: Sequence[str], given: Iterable[str], known: Sequence[str]
) -> None:
    """Refuse options of ``evaluate`` that make no sense for ``what``, and NAMEs of --option that it does not know."""
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if parameter.name not in has and value != parameter.default and value not in (None, (), []):
            raise InputError(f"evaluate {what} has no option {parameter.opts[0]}")
    for name in given:
        if name not in known:
            raise InputError(f"{what} has no option {name!r}; it has: {', '.join(known)}")


def show_and_write(
    report: ParserReport | TrainingReport | CalibrationReport | CheckReport, json: Path | None, markdown: Path | None
) -> None:
    """Write the figures where they are wanted, and show the tables."""
    from rich.console import Console

    from graph2vid._files import read_text, write_json, write_text

    if json is not None:
        write_json(json, report.to_json())
    if markdown is not None:
        write_text(markdown, report.into_page(read_text(markdown) if markdown.exists() else ""))
    console = Console(highlight=False)
    console.print(f"{report.headline()}.", markup=False)
    for table in report.tables():
        console.print()
        console.print(f"{table.title}. {table.note}".rstrip(), markup=False, style="dim")
        show_table(console, table.columns, table.rows, table.words)
    for line in report.missing():
        console.print(f"\n{line}", markup=False, soft_wrap=True, style="yellow")
    console.print(f"\n{report.seconds:.0f} s in all", markup=False)
