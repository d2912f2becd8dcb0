"""``graph2vid check``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graph2vid._options import CheckOptions
from graph2vid.cli.derived_options import with_options

if TYPE_CHECKING:
    from graph2vid.grounding import OrderCheck


@with_options
def check(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="What `graph2vid ground -o` wrote.")],
    options: CheckOptions,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the findings as JSON.")] = None,
) -> None:
    """Say where a video does not follow its procedure: steps left out, done out of order, or repeated.

    The evidence in the result is aligned once more with the order left open. It should be evidence against
    background, as that of narration is; for scores choose --drop of `ground` such that it is.
    """
    from graph2vid.cli.outputs import save_json
    from graph2vid.grounding import Grounding, check_order

    found = check_order(Grounding.load(result), **options.to_json())
    save_json(json, found.to_json())
    show_check(found)


def show_check(found: OrderCheck) -> None:
    """Print what a check found, a line for each deviation; then what it is not sure of."""
    for title, some in ((found.verdict, found.deviations), ("not certain:" if found.unsure else "", found.unsure)):
        if title:
            typer.echo(title)
        for one in some:
            typer.echo(f"  {one.certainty:4.0%}  {found.describe(one)}")
