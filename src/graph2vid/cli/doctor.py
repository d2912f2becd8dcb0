"""``graph2vid doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def doctor(
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the findings as JSON.")] = None,
) -> None:
    """Say what is installed, what is missing, and what that costs."""
    from rich.console import Console
    from rich.table import Table

    from graph2vid._files import write_json
    from graph2vid.doctor import examine

    found = examine()
    if json is not None:
        write_json(json, found.to_json())
    console = Console(highlight=False)
    console.print(
        f"graph2vid {found.graph2vid}, Python {found.python}, {found.system}, "
        f"{found.processors} processor{'s' if found.processors != 1 else ''}"
    )
    table = Table(box=None, pad_edge=False, show_edge=False)
    for heading in ("", "part", "of", "version"):
        table.add_column(heading, no_wrap=True)
    table.add_column("use, or what its absence costs", overflow="fold")
    for part in found.parts:
        table.add_row(
            "[green]✓[/]" if part.installed else "[yellow]✗[/]",
            part.name,
            part.room,
            part.version or "—",
            part.use if part.installed else part.cost.replace("[", r"\["),
        )
    console.print(table)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(doctor)
