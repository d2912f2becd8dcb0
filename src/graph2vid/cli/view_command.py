"""``graph2vid view``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from graph2vid.grounding import Grounding
    from graph2vid.report import Spans


def view(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="What `graph2vid ground -o` wrote.")],
    compare: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]FILE",
            help="Set this beside it: another result of the same steps (.json), or annotations (.csv, .eaf). What has "
            "“truth” in its name is what the others are measured by.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Say on it where the video does not follow the procedure (`graph2vid check`)."),
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.html", help="Keep the page here.")
    ] = None,
    embed_video: Annotated[
        bool,
        typer.Option(
            "--embed-video",
            help="Put the video into the page; by default it is linked. Outside of the result's folder: with --video.",
        ),
    ] = False,
    video: Annotated[
        str | None, typer.Option(metavar="FILE_OR_URL", help="The video, if it is not where the result says.")
    ] = None,
    open_it: Annotated[bool, typer.Option("--open/--no-open", help="Open no browser.")] = True,
) -> None:
    """Look at a result: the video, its steps over time, the flow graph, the transcript, and the evidence."""
    import tempfile
    import webbrowser
    from dataclasses import replace

    from graph2vid.cli.outputs import check_output
    from graph2vid.grounding import Grounding, check_order
    from graph2vid.report import refuse_video_outside, write_report

    check_output(output, "-o", ".html", ".htm")
    grounding = Grounding.load(result)
    if video is not None:
        grounding = replace(grounding, video=video)
    elif embed_video:
        refuse_video_outside(grounding, result.parent)
    rows = dict(_row(text, grounding) for text in compare or ())
    page = output or Path(tempfile.mkdtemp(prefix="graph2vid-")) / f"{result.stem}.html"
    found = check_order(grounding) if check else None
    write_report(page, grounding, compare=rows, check=found, embed_video=embed_video)
    typer.echo(page)
    if open_it and not webbrowser.open(page.resolve().as_uri()):
        typer.echo("no browser could be opened: open this page yourself", err=True)


def _row(text: str, grounding: Grounding) -> tuple[str, Grounding | Spans]:
    """Read [NAME=]FILE."""
    from graph2vid.export import read_annotations
    from graph2vid.grounding import Grounding

    name, _, file = text.rpartition("=")
    path = Path(file)
    name = name or path.stem
    if path.suffix.lower() == ".json":
        return name, Grounding.load(path)
    marked = read_annotations(path, grounding.flow)
    return name, [(one.step, one.start, one.end) for one in marked if one.start is not None and one.end is not None]
