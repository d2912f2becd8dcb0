"""``graph2vid flow show|check|draw|mine``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from graph2vid.flow import FlowGraph, Mined
    from graph2vid.tsort import SortCount

_MOST_OF_A_KIND = 10  # findings of one kind that are printed; --json has all

_File = Annotated[
    Path, typer.Argument(metavar="FILE", help="The flow graph: .json, .flow or .txt (text notation), .dot or .gv.")
]
commands = typer.Typer(no_args_is_help=True, help="Look at flow graphs, what must come before what, or mine them.")

_Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON, too.")]


@commands.command()
def show(file: _File, json: _Json = None) -> None:
    """Show the steps of a flow graph, what each waits for, its threads, and how many orders are legal."""
    from rich.console import Console

    from graph2vid.cli.outputs import save_json
    from graph2vid.flow import FlowGraph, refuse_large
    from graph2vid.tsort import count_sorts

    flow = FlowGraph.load(file)
    refuse_large(len(flow), "showing it")
    orders = count_sorts(flow)
    save_json(json, _report("show", file, flow) | _details(flow, orders))
    print_flow(Console(highlight=False), flow, orders)


@commands.command()
def check(file: _File, json: _Json = None) -> None:
    """Check a flow graph: an error (a cycle, an unknown step, …) exits with 2, warnings are listed.

    Warnings: edges that others imply, steps without edges, steps with the same or no text.
    """
    from graph2vid.cli.outputs import save_json
    from graph2vid.errors import Graph2VidError
    from graph2vid.flow import FlowGraph, counted, findings

    try:
        flow = FlowGraph.load(file)
    except Graph2VidError as error:
        save_json(json, _report("check", file) | {"error": str(error), "warnings": []})
        raise
    found = findings(flow)
    warnings = [finding.to_json() for finding in found]
    save_json(json, _report("check", file, flow) | {"error": None, "warnings": warnings})
    so_far: Counter[str] = Counter()
    for finding in found:
        so_far[finding.kind] += 1
        if so_far[finding.kind] <= _MOST_OF_A_KIND:
            typer.echo(f"warning: {finding.message}")
    for kind, number in so_far.items():
        if number > _MOST_OF_A_KIND:
            typer.echo(f"warning: … and {number - _MOST_OF_A_KIND} more of the kind {kind}")
    outcome = counted(len(found), "warning") if found else "no problems"
    typer.echo(f"{file}: {counted(len(flow), 'step')}, {counted(len(flow.edges), 'edge')}, {outcome}")


@commands.command()
def draw(
    file: _File,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to draw: .svg or .png; - is standard output (SVG)."),
    ] = None,
) -> None:
    """Draw a flow graph as a picture (SVG or PNG)."""
    from graph2vid._files import write_text
    from graph2vid.cli.outputs import is_stdout
    from graph2vid.flow import FlowGraph
    from graph2vid.flow import flow_drawing as pictures

    if is_stdout(output):
        write_text("-", pictures.to_svg(FlowGraph.load(file)))
        return
    target = output or file.with_suffix(".svg")
    pictures.save(FlowGraph.load(file), target)
    typer.echo(f"wrote {target}")


@commands.command()
def mine(
    executions: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE…",
            help="Groundings (ground -o); JSON: a list of executions, each a list of steps or of [step, start, end]; "
            "CSV with columns recording, step, start, end.",
        ),
    ],
    procedure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The steps, in words or as a flow graph; by default those of the groundings, or that occur.",
        ),
    ] = None,
    words: Annotated[bool, typer.Option(help="Whether reasons in the words of the procedure count.")] = True,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the flow graph: .json, .flow, .txt, .dot or .gv."),
    ] = None,
    confidences: Annotated[
        bool, typer.Option("--confidences", help="Write edges with their confidence: soft precedence.")
    ] = False,
    durations: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write how long steps last, for ground --durations.")
    ] = None,
    bootstrap: Annotated[int, typer.Option(min=0, help="Draws of the executions behind confidences.")] = 30,
    habit: Annotated[float, typer.Option(min=0, help="How much people keep to the usual order; 0: not at all.")] = 4.0,
    error: Annotated[float, typer.Option(help="The probability that a step is done before what it waits for.")] = 0.001,
    edge_cost: Annotated[float, typer.Option(min=0, help="What an edge costs, in units of log-likelihood.")] = 1.0,
    json: _Json = None,
) -> None:
    """Find the flow graph that is most probable given executions, and the confidence of its edges.

    An execution is a video that was annotated or grounded, or a list of steps in the order in which they were done.
    With --procedure, what its words say is a prior: worth much with few executions, little with many.
    """
    from rich.console import Console

    from graph2vid.cli.outputs import is_stdout, save_json
    from graph2vid.flow import ExecutionModel, known_suffix
    from graph2vid.grounding import durations_document, mine_files
    from graph2vid.tsort import count_sorts

    if output is not None and not is_stdout(output):
        known_suffix(output)
    model = ExecutionModel(habit, error, edge_cost)
    mined = mine_files(executions, procedure, words=words, model=model, bootstrap=bootstrap)
    if durations is not None:
        save_json(durations, durations_document(mined))
    if output is not None:
        (mined.flow.with_confidence(mined.confidence) if confidences else mined.flow).save(output)
    save_json(json, _mined(mined, executions))
    console = Console(highlight=False, stderr=is_stdout(output) or is_stdout(json))
    print_flow(console, mined.flow, count_sorts(mined.flow))
    console.print(_confidence_table(mined))
    for path in filter(None, (output, durations, json)):
        if not is_stdout(path):
            console.print(f"wrote {path}", markup=False, soft_wrap=True)


def _confidence_table(mined: Mined) -> Table:
    from rich.table import Table

    table = Table("before", "after", "honoured", "confidence", box=None, padding=(0, 2, 0, 0))
    for (before, after), confidence in sorted(mined.confidence.items(), key=lambda item: -item[1]):
        seen = f"{mined.honoured[before, after]:g} of {mined.support[before, after]:g}"
        table.add_row(_numbered(mined, before), _numbered(mined, after), seen, f"{confidence:.0%}")
    return table


def _numbered(mined: Mined, step: int) -> str:
    from rich.markup import escape

    from graph2vid.flow import plain

    return escape(f"{step + 1} {plain(mined.flow.texts[step])}")


def _mined(mined: Mined, files: list[Path]) -> dict[str, Any]:
    ids = mined.flow.ids
    edges = [
        {"before": ids[a], "after": ids[b], "confidence": confidence}
        | {"honoured": mined.honoured[a, b], "support": mined.support[a, b]}
        for (a, b), confidence in mined.confidence.items()
    ]
    steps = [
        {"id": name, "text": text, "skip_rate": rate}
        | dict(zip(("median_seconds", "spread"), mined.durations.get(step, ()), strict=False))
        for step, (name, text, rate) in enumerate(zip(ids, mined.flow.texts, mined.skip_rates, strict=True))
    ]
    return _report("mine", files[0], mined.flow) | {
        "files": [str(file) for file in files],
        "score": mined.score,
        "flow": mined.flow.to_json(),
        "edges": edges,
        "steps": steps,
    }


def print_flow(console: Console, flow: FlowGraph, orders: SortCount) -> None:
    """Print a flow graph: title, sizes, how many orders are legal, and the steps with their threads."""
    from graph2vid.flow import terminal

    if flow.title:
        console.print(" ".join(flow.title.split()), style="bold", markup=False)
    console.print(terminal.summary(flow), markup=False)
    console.print(f"{_orders(orders)}\n", markup=False)
    console.print(terminal.table(flow))


def _report(command: str, file: Path, flow: FlowGraph | None = None) -> dict[str, Any]:
    from graph2vid import __version__

    sizes = {} if flow is None else {"title": flow.title, "n_steps": len(flow), "n_edges": len(flow.edges)}
    head = {"format": f"graph2vid-flow-{command}", "version": 1, "graph2vid": __version__, "file": str(file)}
    return head | sizes


def _details(flow: FlowGraph, orders: SortCount) -> dict[str, Any]:
    from graph2vid.flow import stages

    ids = flow.ids
    numbers = {"exact": orders.exact, "lower": orders.lower, "upper": orders.upper}
    steps = [
        {"id": step.id, "text": step.text, "stage": stage + 1, "after": [ids[earlier] for earlier in before]}
        for step, stage, before in zip(flow.steps, stages(flow), flow.predecessors, strict=True)
    ]
    return {
        "width": flow.width,
        "threads": [[ids[step] for step in thread] for thread in flow.threads],
        "sources": [ids[step] for step in flow.sources],
        "sinks": [ids[step] for step in flow.sinks],
        # Null where the number has more digits than Python is willing to write.
        "orders": {name: n if n is not None and n < 10**4000 else None for name, n in numbers.items()},
        "steps": steps,
    }


def _orders(orders: SortCount) -> str:
    from graph2vid.tsort import readable

    if orders.exact == 1:
        return "one legal order"
    if orders.exact is not None:
        return f"{readable(orders.exact)} legal orders"
    return f"{readable(orders.lower)} to {readable(orders.upper)} legal orders (too many to count)"
