"""``graph2vid bench``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graph2vid.cli.tables import show_table

if TYPE_CHECKING:
    from graph2vid.bench import Report

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

    Cases: dtaidistance, tslearn, kaldifst (the extra `peers`); brute.
    """
    from graph2vid.bench import bench_peers

    _run(bench_peers, only, json, markdown)


@bench.command()
def soft(only: _Only = None, json: _Json = None, markdown: _Markdown = None) -> None:
    """Measure soft costs and their gradients, beside a loop in torch and other packages' soft-DTW.

    Cases: torch (the extra `learn`); tslearn, pysdtw (the extra `peers`).
    """
    from graph2vid.bench import bench_soft

    _run(bench_soft, only, json, markdown)


@bench.command()
def gpu(only: _Only = None, json: _Json = None, markdown: _Markdown = None) -> None:
    """Measure hard and soft costs on the GPU, beside what its shared memory can do at most.

    Cases: 77, 770, 2002, 20004 (states); mixed (procedures and lengths in one batch); chain (beside pysdtw).
    """
    from graph2vid.bench import bench_gpu

    _run(bench_gpu, only, json, markdown)


@bench.command()
def batch(only: _Only = None, json: _Json = None, markdown: _Markdown = None) -> None:
    """Measure whole corpora, from Parquet to Parquet.

    Cases: scores, features, memory (the extra `batch`); ray (the extra `ray`).
    """
    from graph2vid.bench import bench_batch

    _run(bench_batch, only, json, markdown)


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

    from graph2vid.bench.machine import in_words

    console = Console(highlight=False)
    console.print(in_words(report.machine), markup=False)
    for table in report.tables:
        console.print()
        console.print(f"{table.title}. {table.note}", markup=False)
        words = sum(column.left for column in table.columns)
        show_table(console, [column.heading for column in table.columns], table.rows, words)
    console.print(f"\n{report.seconds:.0f} s in all", markup=False)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.add_typer(bench, name="bench")
