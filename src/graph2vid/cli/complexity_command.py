"""``graph2vid complexity``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from graph2vid.tsort import Complexity

THREADS = (2, 3, 4, 5, 6)


def complexity(
    context: typer.Context,
    flow: Annotated[Path | None, typer.Argument(metavar="FLOW", help="The flow graph to count for.")] = None,
    threads: Annotated[
        str | None, typer.Option(metavar="N,N,…", help="Count for separate threads of this many steps each (3,3,4).")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the speed-up against the number of steps (.png, .svg or .pdf)."),
    ] = None,
    max_steps: Annotated[
        int, typer.Option(min=2, max=1000, help="The most steps that the table and the plot go to.")
    ] = 30,
    limit: Annotated[int, typer.Option(min=1, help="The most legal sets of done steps that are built for FLOW.")] = 2
    ** 22,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the numbers as JSON.")] = None,
) -> None:
    """Count the legal orders of a procedure, and what the tSort graph saves over trying each of them.

    Without FLOW or --threads: 2 to 6 separate threads, filled evenly with ever more steps.
    The speed-up is ρ = orders · (steps + 1) / (threads · nodes).
    """
    from graph2vid import __version__
    from graph2vid.cli.derived_options import refuse
    from graph2vid.cli.outputs import save_json
    from graph2vid.errors import InputError
    from graph2vid.flow import FlowGraph
    from graph2vid.tsort import Complexity, even_threads
    from graph2vid.tsort.speedup_plot import plot_speed_up

    if flow is not None and threads is not None:
        raise InputError("give a flow graph or --threads, not both")
    if flow is None:
        refuse(context, ["limit"], "it is for a flow graph, and of threads nothing is built")
    if plot is None and (flow is not None or threads is not None):
        refuse(context, ["max_steps"], "it is for the table of even threads, and for --plot")
    if flow is not None:
        figures = [Complexity.of_flow(FlowGraph.load(flow), limit)]
    elif threads is not None:
        figures = [Complexity.of_threads(_lengths(threads))]
    else:
        figures = [
            Complexity.of_threads(even_threads(steps, count))
            for count in THREADS
            for steps in range(count, max_steps + 1)
        ]
    if plot is not None:
        plot_speed_up(plot, max_steps=max_steps, threads=THREADS)
    rows = [row.to_json() for row in figures]
    save_json(json, {"format": "graph2vid-complexity", "version": 1, "graph2vid": __version__, "rows": rows})
    _show(figures, max_steps)


def _lengths(text: str) -> tuple[int, ...]:
    from graph2vid.errors import InputError

    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        message = f"--threads must be numbers of steps with commas between them (3,3,4), not {text!r}"
        raise InputError(message) from None


def _show(figures: list[Complexity], max_steps: int) -> None:
    from rich.console import Console

    from graph2vid.cli.terminal_table import show_table

    stride = max(1, max_steps // 6)  # each number of threads has about six rows
    shown = figures if len(figures) == 1 else [row for row in figures if (max_steps - row.n_steps) % stride == 0]
    rows: list[tuple[str, ...]] = []
    for number, row in enumerate(shown):
        if number and row.n_threads != shown[number - 1].n_threads:
            rows.append(("",) * 6)
        sizes = ((row.sorts.lower, row.sorts.upper), row.ideals, (row.n_nodes, row.n_nodes))
        rows.append((str(row.n_threads), str(row.n_steps), *(_between(*size) for size in sizes), _ratio(row)))
    headings = ("threads", "steps", "legal orders", "ideals", "tSort nodes", "speed-up ρ")
    show_table(Console(highlight=False), headings, rows, words=0)
    if len(shown) == 1 and shown[0].n_nodes is None:
        typer.echo("The tSort graph is beyond --limit and was not built.")


def _between(lower: int | None, upper: int | None) -> str:
    from graph2vid.tsort import readable

    if lower is None or upper is None:
        return "—"
    return readable(lower) if lower == upper else f"{readable(lower)} – {readable(upper)}"


def _ratio(row: Complexity) -> str:
    from graph2vid.tsort import readable

    if row.speed_up is None:
        return "—"
    return readable(round(row.speed_up)) if row.speed_up >= 100 else f"{float(row.speed_up):.3g}"
