"""``graph2vid check``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from graph2vid.grounding import OrderCheck


def check(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="What `graph2vid ground -o` wrote.")],
    skip: Annotated[
        float, typer.Option(help="The price of leaving a step out, in units of the evidence; less finds more left out.")
    ] = 0.0,
    repeat: Annotated[
        float, typer.Option(min=0.0, help="The price of returning to a step; of doing it too late, both.")
    ] = 6.0,
    certainty: Annotated[
        float, typer.Option(min=0.5, max=1.0, help="How sure a deviation must be to be reported.")
    ] = 0.9,
    gamma: Annotated[float, typer.Option(help="What differences of cost are divided by; more is less sure.")] = 1.0,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the findings as JSON.")] = None,
) -> None:
    """Say where a video does not follow its procedure: steps left out, done too late, or done again.

    The evidence in the result is aligned once more with the order left open. It should be evidence against
    background, as that of narration is; for scores choose --drop of `ground` such that it is.
    """
    from graph2vid._files import write_json
    from graph2vid.grounding import Grounding, check_order

    found = check_order(Grounding.load(result), skip=skip, repeat=repeat, certainty=certainty, gamma=gamma)
    if json is not None:
        write_json(json, found.to_json())
    show_check(found)


def show_check(found: OrderCheck) -> None:
    """Print what a check found, a line for each deviation."""
    from rich.console import Console

    console = Console(highlight=False)
    number = len(found.deviations)
    steps = f"{len(found.alignment.order)} of {len(found.flow)} steps shown"
    said = f"{number} deviation{'s'[: number != 1]}" if number else "the video follows the procedure"
    console.print(f"{said} ({steps})", markup=False)
    for one in found.deviations:
        line = f"  {one.certainty:4.0%}  {one.kind:<12}  {found.describe(one)}"
        console.print(line, markup=False, soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(check)
