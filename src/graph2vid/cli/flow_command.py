"""``graph2vid flow show|check|draw``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from graph2vid.flow import FlowGraph
    from graph2vid.tsort import SortCount

_MOST_OF_A_KIND = 10  # findings of one kind that are printed; --json has all

_File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="The flow graph: .json, .flow or .txt (text notation), .dot or .gv.",
        show_default=False,
    ),
]
_Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON, too.")]


def show(file: _File, json: _Json = None) -> None:
    """Show the steps of a flow graph, what each waits for, its threads, and how many orders are legal."""
    from rich.console import Console

    from graph2vid._files import write_json
    from graph2vid.flow import FlowGraph, refuse_large
    from graph2vid.tsort import count_sorts

    flow = FlowGraph.load(file)
    refuse_large(len(flow), "showing it")
    orders = count_sorts(flow)
    if json is not None:
        write_json(json, _report("show", file, flow) | _details(flow, orders))
    print_flow(Console(highlight=False), flow, orders)


def check(file: _File, json: _Json = None) -> None:
    """Check a flow graph: an error (a cycle, an unknown step, …) exits with 2, warnings are listed.

    Warnings: edges that others imply, steps without edges, steps with the same or no text.
    """
    from rich.console import Console

    from graph2vid._files import write_json
    from graph2vid.errors import Graph2VidError
    from graph2vid.flow import FlowGraph, counted, findings

    try:
        flow = FlowGraph.load(file)
    except Graph2VidError as error:
        if json is not None:
            write_json(json, _report("check", file) | {"error": str(error), "warnings": []})
        raise
    found = findings(flow)
    if json is not None:
        warnings = [finding.to_json() for finding in found]
        write_json(json, _report("check", file, flow) | {"error": None, "warnings": warnings})
    console = Console(highlight=False)
    so_far: Counter[str] = Counter()
    for finding in found:
        so_far[finding.kind] += 1
        if so_far[finding.kind] <= _MOST_OF_A_KIND:
            console.print(f"warning: {finding.message}", markup=False, soft_wrap=True)
    for kind, number in so_far.items():
        if number > _MOST_OF_A_KIND:
            console.print(f"warning: … and {number - _MOST_OF_A_KIND} more of the kind {kind}", markup=False)
    sizes = f"{counted(len(flow), 'step')}, {counted(len(flow.edges), 'edge')}"
    outcome = counted(len(found), "warning") if found else "no problems"
    console.print(f"{file}: {sizes}, {outcome}", markup=False, soft_wrap=True)


def draw(
    file: _File,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to draw: .svg or .png; - is standard output (SVG).",
            show_default="FILE with .svg",
        ),
    ] = None,
) -> None:
    """Draw a flow graph as a picture (SVG or PNG)."""
    from graph2vid._files import write_text
    from graph2vid.flow import FlowGraph
    from graph2vid.flow import flow_drawing as pictures

    if output is not None and str(output) == "-":
        write_text(output, pictures.to_svg(FlowGraph.load(file)))
        return
    target = file.with_suffix(".svg") if output is None else output
    pictures.save(FlowGraph.load(file), target)
    typer.echo(f"wrote {target}")


def print_flow(console: Console, flow: FlowGraph, orders: SortCount) -> None:
    """Print a flow graph: title, sizes, how many orders are legal, and the steps with their threads."""
    from graph2vid.flow import terminal

    if flow.title:
        console.print(" ".join(flow.title.split()), style="bold", markup=False)
    console.print(terminal.summary(flow), markup=False)
    console.print(_orders(orders), markup=False)
    console.print()
    console.print(terminal.table(flow))


def _report(command: str, file: Path, flow: FlowGraph | None = None) -> dict[str, Any]:
    from graph2vid import __version__

    head: dict[str, Any] = {"format": f"graph2vid-flow-{command}", "version": 1, "graph2vid": __version__}
    head["file"] = str(file)
    if flow is not None:
        head |= {"title": flow.title, "n_steps": len(flow), "n_edges": len(flow.edges)}
    return head


def _details(flow: FlowGraph, orders: SortCount) -> dict[str, Any]:
    from graph2vid.flow import stages

    ids = flow.ids
    steps = [
        {"id": step.id, "text": step.text, "stage": stage + 1, "after": [ids[earlier] for earlier in before]}
        for step, stage, before in zip(flow.steps, stages(flow), flow.predecessors, strict=True)
    ]
    return {
        "width": flow.width,
        "threads": [[ids[step] for step in thread] for thread in flow.threads],
        "sources": [ids[step] for step in flow.sources],
        "sinks": [ids[step] for step in flow.sinks],
        "orders": {name: _writable(getattr(orders, name)) for name in ("exact", "lower", "upper")},
        "steps": steps,
    }


def _writable(number: int | None) -> int | None:
    """Return the number unless it has more digits than Python is willing to write."""
    return number if number is not None and number < 10**4000 else None


def _orders(orders: SortCount) -> str:
    from graph2vid.tsort.bounds import readable

    if orders.exact == 1:
        return "one legal order"
    if orders.exact is not None:
        return f"{readable(orders.exact)} legal orders"
    return f"{readable(orders.lower)} to {readable(orders.upper)} legal orders (too many to count)"


def register(app: typer.Typer) -> None:
    """Add the group of commands to the application."""
    group = typer.Typer(no_args_is_help=True, help="Look at flow graphs: what must come before what.")
    for command in (show, check, draw):
        group.command()(command)
    app.add_typer(group, name="flow")
