"""``graph2vid demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from graph2vid.sample import Outcome, Sample


def demo(
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FOLDER", help="Write the sample's files there, to play with."),
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the measures as JSON.")] = None,
) -> None:
    """Ground the bundled sample: the timeline, and how far it is from the truth.

    The sample is a procedure of ours with a made-up video: it shows what a result looks like, nothing more.
    """
    from rich.console import Console

    from graph2vid._files import write_json
    from graph2vid.grounding.timeline import print_timeline
    from graph2vid.sample import ground_sample, load

    sample = load()
    if save is not None:
        _save(save)
    outcomes = ground_sample(sample)
    if json is not None:
        rows = [{"method": outcome.method, **outcome.measures} for outcome in outcomes]
        write_json(json, {"format": "graph2vid-demo", "version": 1, "rows": rows})

    console = Console(highlight=False)
    print_timeline(outcomes[0].grounding, console)
    console.print()
    console.print(_table(sample, outcomes))


def _save(folder: Path) -> None:
    from graph2vid._files import write_bytes
    from graph2vid.errors import Graph2VidError
    from graph2vid.sample import FILES

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Graph2VidError(f"cannot make the folder {folder}: {error.strerror}") from error
    for file in FILES:
        write_bytes(folder / file.name, file.read_bytes())


def _table(sample: Sample, outcomes: tuple[Outcome, ...]) -> Table:
    """Return the table that sets each way of grounding beside the truth, steps in the order of the video."""
    from rich.table import Table

    from graph2vid.grounding.times import format_time

    names = {"graph": "any legal order", "linear": "the order as written"}
    table = Table(box=None, pad_edge=False, show_footer=True)
    table.add_column("step", footer="step clips right")
    table.add_column("truth", justify="right", no_wrap=True)
    for outcome in outcomes:
        table.add_column(names[outcome.method], justify="right", no_wrap=True, footer=f"{outcome.measures['acc']:.0%}")
    shown = sorted(sample.truth, key=lambda step: sample.truth[step])
    for step in [*shown, *(step for step in range(len(sample.flow)) if step not in sample.truth)]:
        true = sample.truth.get(step)
        span = "not shown" if true is None else "–".join(map(format_time, true))
        table.add_row(sample.flow.ids[step], span, *(_verdict(outcome, step) for outcome in outcomes))
    return table


def _verdict(outcome: Outcome, step: int) -> str:
    off = outcome.distance(step)
    if off is not None:
        style = "green" if off <= 2 * outcome.sample.clip_seconds else "yellow" if off <= 10 else "red"
        return f"[{style}]{off:.1f} s off[/]"
    if outcome.span(step) is None:
        return "[green]not shown[/]" if step not in outcome.sample.truth else "[red]missed[/]"
    return "[red]not there[/]"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(demo)
