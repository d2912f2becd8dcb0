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
        float, typer.Option(help="The cost of leaving a step out, in units of the evidence; less finds more left out.")
    ] = 0.0,
    repeat: Annotated[
        float, typer.Option(min=0.0, help="The cost of repeating a step; of doing it out of order, both.")
    ] = 6.0,
    certainty: Annotated[
        float, typer.Option(min=0.5, max=1.0, help="How sure a deviation must be; what is less sure is listed apart.")
    ] = 0.9,
    gamma: Annotated[float, typer.Option(help="What differences of cost are divided by; more is less sure.")] = 1.0,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the findings as JSON.")] = None,
) -> None:
    """Say where a video does not follow its procedure: steps left out, done out of order, or repeated.

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
    """Print what a check found, a line for each deviation; then what it is not sure of."""
    from rich.console import Console

    console = Console(highlight=False)
    console.print(found.verdict, markup=False, soft_wrap=True)
    for title, some in (("", found.deviations), ("not certain:", found.unsure)):
        if some and title:
            console.print(title, markup=False)
        for one in some:
            line = f"  {one.certainty:4.0%}  {one.kind:<12}  {found.describe(one)}"
            console.print(line, markup=False, soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(check)
