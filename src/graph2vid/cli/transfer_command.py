"""``graph2vid transfer``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def transfer(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="What `graph2vid ground -o` wrote.")],
    video: Annotated[
        Path,
        typer.Argument(
            metavar="OTHER_VIDEO", help="Another cut, upload, encoding or speed of the same material; or its captions."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the result for the other video (JSON)."),
    ] = None,
    source: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The first video, if it is not where the result says.")
    ] = None,
    captions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Captions of the other video: transcripts are compared, not the sound."),
    ] = None,
    export: Annotated[
        str,
        typer.Option(metavar="FORMAT,…", help="Write it in these formats, too: vtt, youtube, … (`graph2vid export`)."),
    ] = "",
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write what the videos have in common as JSON.")
    ] = None,
) -> None:
    """Carry a result to another cut or upload of the same video, and say what was cut or added.

    The sound of both is compared, moment by moment; or, where the first video is no longer there, their transcripts.
    Nothing is grounded anew. A different video is refused.
    """
    from graph2vid.cli.export_command import formats_named, write_exports
    from graph2vid.cli.outputs import check_output, is_stdout, save_json, tell_written
    from graph2vid.cli.progress import progress
    from graph2vid.grounding import Grounding, describe_transfer, print_timeline, refuse_address
    from graph2vid.grounding import transfer as carry_over

    formats = formats_named(export)
    check_output(output, "-o", ".json")
    refuse_address(video)
    with progress("reading the result") as tell:
        found = carry_over(Grounding.load(result), video, source=source, captions=captions, progress=tell)
    save_json(json, found.to_json())
    if output is not None:
        found.grounding.save(output)
        tell_written([output])
    write_exports(formats, found.grounding, Path(video.name) if output is None or is_stdout(output) else output)
    if output is None or not is_stdout(output):
        for line in describe_transfer(found):
            typer.echo(line)
        print_timeline(found.grounding)
