"""``graph2vid ground``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from graph2vid.alignment import Constraint
    from graph2vid.alignment.constraints import Kind
    from graph2vid.flow import FlowGraph

_FILE = "FILE.npy"


def ground(
    flow: Annotated[Path, typer.Argument(help="The flow graph: .json, .flow or .dot.", metavar="FLOW")],
    scores: Annotated[
        Path | None, typer.Option(metavar=_FILE, help="Scores, steps × clips; higher is a better match.")
    ] = None,
    clips: Annotated[
        Path | None, typer.Option(metavar=_FILE, help="Embeddings of the clips, clips × dimensions.")
    ] = None,
    steps: Annotated[
        Path | None, typer.Option(metavar=_FILE, help="Embeddings of the steps, steps × dimensions.")
    ] = None,
    log_probabilities: Annotated[
        Path | None, typer.Option(metavar=_FILE, help="Log-probabilities, steps × clips.")
    ] = None,
    transpose: Annotated[
        bool, typer.Option("--transpose", help="The scores or log-probabilities are clips × steps.")
    ] = False,
    clip_seconds: Annotated[float, typer.Option(help="Length of a clip in seconds.")] = 1.0,
    offset: Annotated[float, typer.Option(help="Where the first clip begins, in seconds.")] = 0.0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the result (JSON).")
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result; the same as --output.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Named settings of the costs: paper, released.")] = None,
    match: Annotated[str | None, typer.Option(help="Match policy: likelihood, likelihood_bg, raw.")] = None,
    drop: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY[:VALUE]",
            help="The price of background: percentile:30, constant:1.5, entropy, vector:FILE.npy, prototype:FILE.npy.",
        ),
    ] = None,
    skip: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY[:VALUE]",
            help="The price of not showing a step: constant:3, percentile:75, given:FILE.npy. "
            "By default every step must appear.",
        ),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="Divides the similarities; by default 1, and 0.1 for embeddings.")
    ] = None,
    confidence: Annotated[
        bool, typer.Option(help="Say how sure each segment is; takes longer than finding it.")
    ] = True,
    contiguous: Annotated[
        bool, typer.Option(help="Each step in one unbroken run, or with background inside it.")
    ] = True,
    pin: Annotated[
        list[str] | None,
        typer.Option(metavar="STEP=START-END", help="The step happens in this span and nowhere else."),
    ] = None,
    forbid: Annotated[
        list[str] | None,
        typer.Option(metavar="STEP=START-END", help="The step does not happen in this span (0-10, 1:30-)."),
    ] = None,
    background: Annotated[
        list[str] | None, typer.Option(metavar="START-END", help="No step happens in this span.")
    ] = None,
) -> None:
    """Say when each step of a procedure happens in a video, given arrays of evidence."""
    from graph2vid.evidence import read_array
    from graph2vid.flow import FlowGraph
    from graph2vid.grounding import ground
    from graph2vid.grounding.timeline import print_timeline

    procedure = FlowGraph.load(flow)
    arrays: dict[str, Any] = {
        name: read_array(path)
        for name, path in (
            ("scores", scores),
            ("clips", clips),
            ("steps", steps),
            ("log_probabilities", log_probabilities),
        )
        if path is not None
    }
    if transpose:
        arrays = {name: array if name in ("clips", "steps") else array.T for name, array in arrays.items()}
    result = ground(
        procedure,
        **arrays,
        clip_seconds=clip_seconds,
        offset=offset,
        preset=preset,
        match=match,
        drop=_choice(drop),
        skip=_choice(skip),
        temperature=temperature,
        contiguous=contiguous,
        confidence=confidence,
        constraints=[
            *(_of_step("within", text, procedure) for text in pin or ()),
            *(_of_step("forbid", text, procedure) for text in forbid or ()),
            *(_constraint("background", None, text) for text in background or ()),
        ],
    )
    for path in dict.fromkeys(path for path in (output, json) if path is not None):
        result.save(path)
    print_timeline(result)


def _choice(text: str | None) -> Any:
    """Read POLICY[:VALUE], in which the value is a number or the name of a ``.npy`` file."""
    from graph2vid.evidence import read_array

    if text is None:
        return None
    name, colon, value = text.partition(":")
    return (name, read_array(value)) if colon and value.endswith(".npy") else text


def _of_step(kind: Kind, text: str, flow: FlowGraph) -> Constraint:
    """Read STEP=START-END."""
    from graph2vid.errors import InputError

    name, equals, span = text.rpartition("=")
    if not equals:
        raise InputError(f"{text!r} must be STEP=START-END, for example 3=40-60")
    return _constraint(kind, flow.index(name), span)


def _constraint(kind: Kind, step: int | None, span: str) -> Constraint:
    from graph2vid.alignment import Constraint
    from graph2vid.grounding.times import parse_span

    start, stop = parse_span(span)
    return Constraint(kind, step, start, stop)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(ground)
