"""``graph2vid bench``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from graph2vid.bench import Report
    from graph2vid.bench.report import Table

bench = typer.Typer(no_args_is_help=True, help="Measure speed on this machine, as ratios within one run.")

_Only = Annotated[
    str | None,
    typer.Option("--only", metavar="NAME,…", help="Measure only these cases.", show_default=False),
]
_Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the figures as JSON.")]
_Markdown = Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="Write the tables as Markdown.")]


@bench.command()
def align(only: _Only = None, json: _Json = None, markdown: _Markdown = None) -> None:
    """Measure alignment beside a plain-Python loop and a scalar compiled scan.

    Cases: crosstask, threads4x4, salads, bag10, bag14, bag16, bag18, long, many; bag20 for memory.
    """
    from graph2vid.bench import bench_align

    _run(bench_align, only, json, markdown)


@bench.command()
def tsort(only: _Only = None, json: _Json = None, markdown: _Markdown = None) -> None:
    """Measure compiling procedures, beside the NumPy builder.

    Cases: crosstask, threads4x4, salads, bag14, bag16, bag18.
    """
    from graph2vid.bench import bench_tsort

    _run(bench_tsort, only, json, markdown)


@bench.command()
def peers(only: _Only = None, json: _Json = None, markdown: _Markdown = None) -> None:
    """Measure beside other packages, and the exact answer beside brute force.

    Cases: dtaidistance, tslearn, kaldifst (`pip install 'graph2vid[peers]'`); brute.
    """
    from graph2vid.bench import bench_peers

    _run(bench_peers, only, json, markdown)


def _run(measure: Callable[..., Report], only: str | None, json: Path | None, markdown: Path | None) -> None:
    from rich.console import Console

    from graph2vid._files import write_json, write_text

    stderr = Console(stderr=True)
    names = [name.strip() for name in only.split(",")] if only is not None else None
    if stderr.is_terminal:
        with stderr.status("measuring") as status:
            report = measure(names, progress=lambda name: status.update(f"measuring {name}"))
    else:
        report = measure(names)
    if json is not None:
        write_json(json, report.to_json())
    if markdown is not None:
        write_text(markdown, report.to_markdown())
    _show(report)


def _show(report: Report) -> None:
    from rich.console import Console
    from rich.table import Table as Shown

    from graph2vid.bench.machine import in_words

    console = Console(highlight=False)
    console.print(in_words(report.machine), markup=False)
    for table in report.tables:
        console.print()
        console.print(f"{table.title}. {table.note}", markup=False)
        for part in _parts(table, console.width):
            shown = Shown(box=None, pad_edge=False, show_edge=False)
            for at in part:
                column = table.columns[at]
                shown.add_column(
                    column.heading,
                    justify="left" if column.left else "right",
                    overflow="fold",
                    no_wrap=at == 0 or not column.left,
                )
            for row in table.rows:
                shown.add_row(*(row[at].replace("[", r"\[") for at in part))
            console.print(shown)
    console.print(f"\n{report.seconds:.0f} s in all", markup=False)


def _parts(table: Table, width: int) -> list[list[int]]:
    """Cut a table that is too wide into several, each with the first column; columns of words can be folded to 16."""
    cells = [(column.heading, *(row[at] for row in table.rows)) for at, column in enumerate(table.columns)]
    sizes = [max(map(len, of_column)) for of_column in cells]
    sizes = [min(size, 16) if at and table.columns[at].left else size for at, size in enumerate(sizes)]
    parts: list[list[int]] = [[0]]
    for at in range(1, len(sizes)):
        if sum(sizes[i] + 2 for i in [*parts[-1], at]) > width and len(parts[-1]) > 1:
            parts.append([0])
        parts[-1].append(at)
    return parts


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.add_typer(bench, name="bench")
