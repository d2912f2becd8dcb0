"""``graph2vid selfcheck``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def selfcheck(
    cases: Annotated[int, typer.Option("--cases", min=1, help="How many random cases to try.")] = 2000,
    features: Annotated[
        bool,
        typer.Option(
            "--features",
            help="Cases with skips, repeats, optional and alternative steps, soft precedence and durations, alone and "
            "together.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Which series of cases.")] = 0,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Processes to use; one per processor by default.", show_default=False),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write the counts, and every mismatch with its case, as JSON."),
    ] = None,
) -> None:
    """Compare all backends with each other and with plain enumeration on random cases.

    The exit status is 1 if anything disagrees.
    """
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from graph2vid.cli.outputs import save_json
    from graph2vid.selfcheck import selfcheck as run

    console = Console(highlight=False)
    stderr = Console(stderr=True)
    with Progress(console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task("cases", total=cases)
        report = run(cases, seed, features=features, workers=workers, progress=lambda done: bar.advance(task, done))
    save_json(json, report.to_json())
    table = Table(box=None, pad_edge=False, show_edge=False)
    table.add_column("check", no_wrap=True)
    table.add_column("cases", justify="right")
    table.add_column("mismatches", justify="right")
    for check, count in report.checks.items():
        failed = report.failures[check]
        table.add_row(check, f"{count:,}", f"[red]{failed:,}[/]" if failed else "0")
    console.print(table)
    for mismatch in report.mismatches[:5]:
        case = mismatch.case
        console.print(
            f"{mismatch.check}: {mismatch.detail} (case {case.index} of seed {case.seed}: {case.kind}, "
            f"{len(case.flow)} steps, {len(case.costs.drop)} clips)",
            markup=False,
        )
    if not report.native:
        console.print("The compiled kernels are not installed: only the NumPy backend was compared.")
    verdict = "all agree" if report.agreed else f"{sum(report.failures.values()):,} mismatches"
    console.print(
        f"{report.cases:,} cases ({report.infeasible:,} without a finite alignment), seed {seed}, "
        f"{report.seconds:.1f} s: {verdict}"
    )
    if not report.agreed:
        raise typer.Exit(1)
