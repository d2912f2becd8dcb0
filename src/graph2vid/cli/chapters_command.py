"""``graph2vid chapters``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graph2vid._options import GroundOptions, Options, basic_option
from graph2vid.cli.derived_options import refuse, with_options
from graph2vid.errors import Graph2VidError, InputError

if TYPE_CHECKING:
    from graph2vid.grounding import Grounding

ALL = "all"


@dataclass(frozen=True)
class ChapterOptions(Options, panel="Chapters"):
    """Which chapters are written, and where."""

    to: str = basic_option(
        "",
        "Write files: youtube, vtt, ffmetadata, matroska (also for Jellyfin), podcast, losslesscut, or all; by default "
        "the lines for YouTube's description are printed.",
        metavar="FORMAT,…",
    )
    output: Path = basic_option(Path(), "The folder for these files.", short="-o", metavar="DIR")
    write: Path | None = basic_option(
        None, "Write a copy of the video (.mp4, .mkv, …) that has the chapters in it; nothing is encoded anew."
    )
    full_titles: bool = basic_option(False, "Call steps by their texts, not by verb and object.")
    doubtful: str = basic_option("mark", "Doubtful steps: mark (with a question mark) or omit.", metavar="mark|omit")
    json: Path | None = basic_option(None, "Write the result, too, as `graph2vid ground -o` does.")


@with_options
def chapters(
    context: typer.Context,
    video: Annotated[
        Path,
        typer.Argument(
            metavar="VIDEO",
            help="The video; or what `graph2vid ground -o` wrote (.json), which needs no procedure.",
        ),
    ],
    wanted: ChapterOptions,
    options: GroundOptions,
    procedure: Annotated[
        Path | None, typer.Option("--procedure", "-p", metavar="FILE", help="The procedure, or its flow graph.")
    ] = None,
    captions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Captions of the video; by default its speech is transcribed.")
    ] = None,
) -> None:
    """Find the steps of a procedure in a video, and write them as its chapters.

    Titles are short by default: verb and object, at most 40 characters. What is written into a copy of the video by
    --write, players and media servers show; the video itself stays as it is.
    """
    from graph2vid.cli.ground_command import check_inputs
    from graph2vid.cli.progress import progress
    from graph2vid.export import CHAPTER_FORMATS, chapters_into_copy
    from graph2vid.grounding import DOUBTFUL, Grounding, for_publishing, ground

    formats = _formats(wanted.to, CHAPTER_FORMATS)
    if wanted.doubtful not in DOUBTFUL:
        raise InputError(f"--doubtful: {' or '.join(DOUBTFUL)}, not {wanted.doubtful!r}")
    if formats and not wanted.output.is_dir():
        raise InputError(f"-o: there is no folder {wanted.output}")
    if video.suffix.lower() == ".json" and procedure is None:
        refuse(context, ["captions", *options.to_mapping()], f"{video} is a result; they are for a video")
        found = Grounding.load(video)
    else:
        if procedure is None:
            raise InputError(f"give the procedure too: graph2vid chapters {video} --procedure FILE")
        check_inputs([procedure], video)
        _check_copy(wanted.write, video)
        with progress("reading the procedure") as tell:
            found = ground(procedure, video, captions=captions, progress=tell, **options.to_mapping())
    if wanted.json is not None:
        found.save(wanted.json)
        typer.echo(f"wrote {wanted.json}", err=True)
    named = for_publishing(found, short_titles=not wanted.full_titles, doubtful=wanted.doubtful)
    if wanted.write is not None:
        for note in chapters_into_copy(wanted.write, named):
            typer.echo(f"note: {note}", err=True)
        typer.echo(f"wrote {wanted.write}", err=True)
    if formats:
        from graph2vid.cli.export_command import write_exports

        write_exports(formats, named, wanted.output / Path(found.video or video).name)
    else:
        _show(named)


def _formats(text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = known if text.strip() == ALL else tuple(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"--to: {unknown[0]!r} holds no chapters; known: {', '.join(known)}, {ALL}")
    return names


def _check_copy(path: Path | None, video: Path) -> None:
    """Refuse a copy that cannot be written before the video is transcribed."""
    from graph2vid.cli.outputs import check_output
    from graph2vid.evidence import is_captions
    from graph2vid.footage import CONTAINERS

    check_output(path, "--write", *CONTAINERS)
    if path is not None and is_captions(video):
        raise InputError(f"--write: {video} is captions; give the video, and them by --captions")
    if path is not None and path.exists() and path.samefile(video):
        raise InputError(f"--write: {path} is the video itself, which is never changed: name another file")


def _show(grounding: Grounding) -> None:
    """Print YouTube's lines; where its rules cannot be met, the chapters as they are."""
    from graph2vid.grounding import export, format_time

    try:
        exported = export(grounding, "youtube")
    except Graph2VidError as error:
        typer.echo(f"note: not for YouTube: {error}", err=True)
        for one in grounding.segments:
            typer.echo(f"{format_time(one.start)} {one.text}{' (?)' if one.is_doubtful else ''}")
    else:
        for note in exported.notes:
            typer.echo(f"note: {note}", err=True)
        typer.echo(exported.text, nl=False)
