"""``graph2vid export``, and the ``--export`` of other commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from graph2vid.grounding import Grounding


def export(
    context: typer.Context,
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="What `graph2vid ground -o` wrote.")],
    to: Annotated[
        str,
        typer.Option(
            metavar="FORMAT",
            help="json, csv, vtt, srt, youtube, ffmetadata, matroska, podcast, losslesscut, schema-org, howto, recipe, "
            "label-studio, label-studio-config, cvat, cvat-labels, via3, elan, rttm, crosstask, createml, lerobot.",
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write; to the terminal by default.")
    ] = None,
    video: Annotated[
        str | None, typer.Option(metavar="FILE_OR_URL", help="How to name the video, if not as the result does.")
    ] = None,
    frame_rate: Annotated[
        float | None, typer.Option(metavar="FPS", help="Frames per second; by default as the video's file has it.")
    ] = None,
    short_titles: Annotated[
        bool, typer.Option("--short-titles", help="Call steps by verb and object, in at most 40 characters.")
    ] = False,
    doubtful: Annotated[str, typer.Option(metavar="mark|omit", help="Doubtful segments: mark, or omit.")] = "mark",
) -> None:
    """Write a grounding in the format of another program."""
    from graph2vid._files import write_text
    from graph2vid.cli.derived_options import refuse
    from graph2vid.cli.outputs import check_output, is_stdout
    from graph2vid.grounding import Grounding, exporting

    chosen = exporting.FORMATS.get(to)
    check_output(output, "-o", Path(f"x{chosen.suffix}").suffix)
    refuse(context, {"video"} - chosen.uses, f"the format {to} does not name the video")
    refuse(context, {"frame_rate"} - chosen.uses, f"the format {to} counts no frames")
    named = exporting.for_publishing(Grounding.load(result), short_titles=short_titles, doubtful=doubtful)
    exported = exporting.export(named, to, video=video, frame_rate=frame_rate)
    if output is not None and not is_stdout(output):
        write_text(output, exported.text)
    _say(exported.notes)
    if output is None:
        typer.echo(exported.text, nl=False)
    elif is_stdout(output):
        write_text(output, exported.text)
    else:
        typer.echo(f"wrote {output}")


def formats_named(text: str | None) -> tuple[str, ...]:
    """Read ``a,b,c``; an unknown format is an error here, before any work is done."""
    from graph2vid.grounding import FORMATS

    names = tuple(dict.fromkeys(name.strip() for name in (text or "").split(",") if name.strip()))
    for name in names:
        FORMATS.get(name)
    return names


def write_exports(formats: tuple[str, ...], grounding: Grounding, beside: Path) -> None:
    """Write a grounding in several formats, named after the file ``beside`` without its suffix."""
    from graph2vid.errors import Graph2VidError
    from graph2vid.grounding import FORMATS, write_export

    refused = []
    for name in formats:
        path = beside.with_suffix(FORMATS.get(name).suffix)
        try:
            _say(write_export(path, grounding, name), f"{name}: ")
        except Graph2VidError as error:  # the others are written all the same
            refused.append(f"{name}: {error}")
        else:
            typer.echo(f"wrote {path}", err=True)
    if refused:
        raise Graph2VidError(f"not exported: {'; '.join(refused)}")


def _say(notes: tuple[str, ...], about: str = "") -> None:
    for note in notes:
        typer.echo(f"note: {about}{note}", err=True)
