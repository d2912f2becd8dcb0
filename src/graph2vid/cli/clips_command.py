"""``graph2vid clips``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def clips(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="What `graph2vid ground -o` wrote.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The folder for the files.")],
    precise: Annotated[
        bool,
        typer.Option(
            "--precise",
            help="Cut to the frame, and encode anew; by default packets are copied, from the "
            "key frame before the step on.",
        ),
    ] = False,
    gif: Annotated[bool, typer.Option("--gif", help="Make moving pictures (GIF) of at most 10 s, too.")] = False,
    card: Annotated[
        str,
        typer.Option(
            metavar="html,pdf,png",
            help="Make a card of all steps to print, too; PDF and PNG by Chromium or Chrome, if one is installed.",
        ),
    ] = "",
    doubtful: Annotated[
        str, typer.Option(metavar="mark|omit", help="Doubtful steps: mark them on the sheet, or omit them.")
    ] = "mark",
    video: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The video, if it is not where the result says.")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write what was cut as JSON.")] = None,
) -> None:
    """Cut a video into its steps: a clip and a still of each, and a sheet of all stills."""
    from graph2vid.cli.outputs import save_json
    from graph2vid.cli.progress import progress
    from graph2vid.grounding import CARD, SHEET, Grounding, format_time, write_clips

    cards = [kind.strip() for kind in card.split(",") if kind.strip()]

    with progress("cutting") as tell:
        found = write_clips(
            Grounding.load(result),
            output,
            video=video,
            precise=precise,
            gif=gif,
            cards=cards,
            doubtful=doubtful,
            progress=tell,
        )
    save_json(json, {"clips": [one.to_json() for one in found]})
    for one in found:
        typer.echo(f"{format_time(one.start)}–{format_time(one.end)}  {one.path}")
    if any(one.still for one in found):
        typer.echo(f"stills: {output / SHEET}.svg")
    for kind in cards:
        typer.echo(f"card: {output / CARD}.{kind}")
