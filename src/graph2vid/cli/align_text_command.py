"""``graph2vid align-text``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from graph2vid.grounding import Grounding


def align_text(
    script: Annotated[
        Path,
        typer.Argument(
            metavar="SCRIPT",
            help="A script, lecture notes or slides: plain text or Markdown, empty lines between paragraphs.",
        ),
    ],
    video: Annotated[Path, typer.Argument(metavar="VIDEO", help="The video, or its captions.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the result (JSON); - is stdout.")
    ] = None,
    order: Annotated[
        str,
        typer.Option(
            metavar="any|written",
            help="Paragraphs may be said in any order (their sentences keep theirs), or all as written.",
        ),
    ] = "any",
    captions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Captions of the video; by default its speech is transcribed.")
    ] = None,
    speech_model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="A model of faster-whisper: a name, or a folder.")
    ] = None,
    language: Annotated[str | None, typer.Option(metavar="CODE", help="The language spoken, such as en.")] = None,
    export: Annotated[
        str,
        typer.Option(metavar="FORMAT,…", help="Write it in these formats, too: srt, vtt, csv, … (`graph2vid export`)."),
    ] = "",
) -> None:
    """Say when each sentence of a script is said in a video, and which are not said.

    The script needs no times. The transcript of the video gives them, word by word.
    """
    from graph2vid.cli.export_command import formats_named, write_exports
    from graph2vid.cli.outputs import check_output, is_stdout, tell_written
    from graph2vid.cli.progress import progress
    from graph2vid.grounding import align_text as find
    from graph2vid.grounding import refuse_address

    formats = formats_named(export)
    check_output(output, "-o", ".json")
    refuse_address(video)
    with progress("reading the script") as tell:
        found = find(
            script,
            video,
            captions=captions,
            order=order,
            speech_model=speech_model,
            language=language,
            progress=tell,
        )
    if output is not None:
        found.save(output)
        tell_written([output])
    beside = Path(video.name) if output is None or is_stdout(output) else output
    try:
        write_exports(formats, found, beside)
    finally:
        _show(found)


def _show(found: Grounding) -> None:
    """Print the sentences in the order in which they are said, then those that are not."""
    from graph2vid.flow import counted
    from graph2vid.grounding import format_time

    absent, gap = len(found.not_shown), found.options["script"]["gap"]
    head = f"{len(found.segments)} of {counted(len(found.flow), 'sentence')} said, {absent} not"
    typer.echo(head if gap == 0 else f"{head}; the cost is at most {gap:.4g} above the best possible")
    for one in found.segments:
        span = f"{format_time(one.start)}–{format_time(one.end)}"
        typer.echo(f"{span:>17}  {one.sureness:>4}{'?' if one.is_doubtful else ' '} {one.id:>6}  {one.text}")
    for step in found.not_shown:
        typer.echo(f"{'not said':>17}  {'':5} {found.flow.ids[step]:>6}  {found.flow.texts[step]}")
    paragraphs = list(dict.fromkeys(one.id.partition(".")[0] for one in found.segments))
    if paragraphs != sorted(paragraphs, key=int):
        typer.echo(f"paragraphs in the order {' → '.join(paragraphs)}")
