"""``graph2vid doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def doctor(
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the findings as JSON.")] = None,
) -> None:
    """Try every part that is installed; say what works, what is missing, and what that costs.

    Exits with 1 where a part is installed and does not work.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from graph2vid.cli.outputs import save_json
    from graph2vid.doctor import examine
    from graph2vid.errors import how_to_install

    console = Console(highlight=False)
    with console.status("trying what is installed"):
        found = examine()
    save_json(json, found.to_json())
    processors = f"{found.processors} processor{'s' if found.processors != 1 else ''}"
    console.print(f"graph2vid {found.graph2vid}, Python {found.python}, {found.system}, {processors}")
    table = Table(box=None, pad_edge=False, show_edge=False)
    for heading in ("", "part", "of", "version"):
        table.add_column(heading, no_wrap=True)
    table.add_column("use, or what its absence costs", overflow="fold")
    for part in found.parts:
        mark = "[green]✓[/]" if part.works else "[red]![/]" if part.installed else "[yellow]✗[/]"
        table.add_row(mark, part.name, part.extra, part.version or "—", escape(part.cost or part.use))
    console.print(table)
    extras = dict.fromkeys(part.extra for part in found.parts if not part.installed and part.extra != "core")
    if extras:
        console.print(f"what is missing comes with {how_to_install(','.join(extras))}", markup=False)
    if found.broken:
        console.print(f"installed, but not working: {', '.join(part.name for part in found.broken)}", style="red")
        raise typer.Exit(1)
