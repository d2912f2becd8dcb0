"""``graph2vid cache``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

commands = typer.Typer(invoke_without_command=True)


@commands.callback()
def show(
    context: typer.Context,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the same as JSON.")] = None,
) -> None:
    """Show what is kept of earlier work (transcripts, embeddings), or clear it.

    $GRAPH2VID_CACHE names another folder, $GRAPH2VID_CACHE_LIMIT another size (500M, 4G; 0: nothing is kept). What was
    not used for longest goes first.
    """
    if context.invoked_subcommand is not None:
        return
    from rich.console import Console
    from rich.filesize import decimal

    from graph2vid.cli.outputs import save_json
    from graph2vid.cli.terminal_table import show_table
    from graph2vid.evidence import Cache

    cache = Cache()
    assert cache.limit is not None
    kinds: dict[str, list[int]] = {}
    for entry in cache.entries():
        kinds.setdefault(entry.kind, []).append(entry.size)
    rows = [{"kind": kind, "entries": len(sizes), "bytes": sum(sizes)} for kind, sizes in sorted(kinds.items())]
    size, number = sum(map(sum, kinds.values())), sum(map(len, kinds.values()))
    head = {"format": "graph2vid-cache-summary", "version": 1, "folder": str(cache.folder), "limit": cache.limit}
    save_json(json, head | {"entries": number, "bytes": size, "kinds": rows})
    typer.echo(f"{cache.folder}\n{decimal(size)} of at most {decimal(cache.limit)}, {_entries(number)}")
    if kinds:
        typer.echo()
        table = [(kind, f"{len(sizes):,}", decimal(sum(sizes))) for kind, sizes in sorted(kinds.items())]
        show_table(Console(highlight=False), ("kind", "entries", "size"), table)


@commands.command()
def clear(
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only what is of this kind, as `graph2vid cache` lists them.")
    ] = None,
) -> None:
    """Remove what is kept; it is made anew when it is needed."""
    from rich.filesize import decimal

    from graph2vid.errors import InputError
    from graph2vid.evidence import Cache

    cache = Cache()
    known = sorted({entry.kind for entry in cache.entries()})
    if kind is not None and kind not in known:
        raise InputError(f"nothing of the kind {kind!r} is kept; there is: {', '.join(known) or 'nothing'}")
    number, size = cache.clear(kind)
    typer.echo(f"removed {_entries(number)}, {decimal(size)}, from {cache.folder}")


def _entries(number: int) -> str:
    return f"{number:,} {'entry' if number == 1 else 'entries'}"
