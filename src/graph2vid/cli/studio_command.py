"""``graph2vid studio``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def studio(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where the projects are kept; made if it is not there.")
    ] = Path("graph2vid-projects"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes any that is free.")] = 8765,
    host: Annotated[
        str, typer.Option(help="The address to bind to. Other machines can reach it then, with the token.")
    ] = "127.0.0.1",
    videos: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A folder whose videos and captions can be chosen.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="GRAPH2VID_STUDIO_TOKEN",
            help="What every request must carry; by default that of FOLDER, made up the first time.",
        ),
    ] = None,
    upload_limit: Annotated[int, typer.Option(metavar="MIB", min=1, help="The largest video to hand in.")] = 4096,
    open_it: Annotated[bool, typer.Option("--open/--no-open", help="Open no browser.")] = True,
) -> None:
    """Open the studio, a web app on this machine: from a procedure and a video to a grounding, corrected by hand."""
    from graph2vid.studio.access import is_loopback
    from graph2vid.studio.server import page_to_open, serve

    def tell(address: str) -> None:
        typer.echo(f"graph2vid studio: {address}")
        typer.echo(f"projects in {folder.resolve()}; Ctrl+C ends it")
        if not is_loopback(host):
            typer.echo("other machines can reach it, with the token; what they exchange is not encrypted")
        if open_it:
            import webbrowser

            webbrowser.open(page_to_open(folder.resolve(), address).as_uri())

    serve(folder, host=host, port=port, videos=videos, token=token, upload_limit=upload_limit << 20, started=tell)
