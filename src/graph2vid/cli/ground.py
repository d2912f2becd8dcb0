"""``graph2vid ground``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from graph2vid.alignment import Constraint
    from graph2vid.alignment.constraints import Kind
    from graph2vid.evidence import Cue
    from graph2vid.flow import FlowGraph
    from graph2vid.grounding import Grounding
    from graph2vid.grounding.from_video import Narration

_FILE = "FILE.npy"


def ground(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="PROCEDURE… [VIDEO]",
            help="A procedure in words, or its flow graph (.json, .flow, .dot), and the video: a media file, or its "
            "captions (.vtt, .srt, Whisper's .json). Of several procedures the one that fits best is used. With arrays "
            "(--scores, …) there is no VIDEO.",
        ),
    ],
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
    captions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Captions of the video; by default its speech is recognised.")
    ] = None,
    parser: Annotated[
        str, typer.Option(help="Who finds the flow graph of a procedure in words: rules, learned, linear, bag.")
    ] = "rules",
    embedder: Annotated[
        str, typer.Option(metavar="NAME", help="What compares words said with steps: wordllama, minilm, st:NAME, …")
    ] = "wordllama",
    speech_model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A model of faster-whisper, by name or folder; tiny.en by default."),
    ] = None,
    language: Annotated[str | None, typer.Option(metavar="CODE", help="The language spoken, such as en.")] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write a page to look at: bars, table, graph, narration.")
    ] = None,
    clip_seconds: Annotated[float, typer.Option(help="Length of a clip in seconds.")] = 1.0,
    offset: Annotated[float, typer.Option(help="Where the first clip begins, in seconds.")] = 0.0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the result (JSON).")
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result; the same as --output.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Named settings of the costs: paper, released, log_odds.")] = None,
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
            help="The price of not showing a step: constant:3, percentile:75, given:FILE.npy; constant:inf: it must "
            "appear. By default as narration says; with arrays every step must appear.",
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
    """Say when each step of a procedure happens in a video.

    The evidence is what is said in the video, or arrays: scores of steps in clips, embeddings, log-probabilities.
    """
    from graph2vid.errors import InputError
    from graph2vid.evidence import read_array
    from graph2vid.grounding import ground
    from graph2vid.grounding.timeline import print_timeline
    from graph2vid.text import read_flow

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
    if arrays and len(inputs) > 1:
        raise InputError(f"with arrays there is one procedure and no video, not {len(inputs)} files")
    if not arrays and len(inputs) == 1:
        raise InputError(f"{inputs[0]} alone is not enough: give the video too, its captions, or arrays (--scores …)")
    if transpose:
        arrays = {name: array if name in ("clips", "steps") else array.T for name, array in arrays.items()}
    procedures = [read_flow(path, parser) for path in inputs[: None if arrays else -1]]

    def options(procedure: FlowGraph) -> dict[str, Any]:
        return {
            "clip_seconds": clip_seconds,
            "match": match,
            "drop": _choice(drop),
            "skip": _choice(skip),
            "temperature": temperature,
            "confidence": confidence,
            "constraints": [
                *(_of_step("within", text, procedure) for text in pin or ()),
                *(_of_step("forbid", text, procedure) for text in forbid or ()),
                *(_constraint("background", None, text) for text in background or ()),
            ],
        }

    cues: tuple[Cue, ...] = ()
    source = ""
    if arrays:
        (procedure,) = procedures
        settings = options(procedure) | {"offset": offset, "preset": preset, "contiguous": contiguous}
        result = ground(procedure, **arrays, **settings)
    else:
        if offset or preset is not None or not contiguous:
            raise InputError("--offset, --preset and --no-contiguous are for arrays; a video's narration has its own")
        narration = hear_with_progress(inputs[-1], captions, speech_model, language, output or report)
        cues, source = narration.cues, narration.source
        result = _ground_said(procedures, narration, embedder, options)
    for path in dict.fromkeys(path for path in (output, json) if path is not None):
        result.save(path)
    if report is not None:
        from graph2vid.report import write_report

        write_report(report, result, cues, source)
    print_timeline(result)


def hear_with_progress(
    video: Path,
    captions: Path | None = None,
    model: str | None = None,
    language: str | None = None,
    output: Path | None = None,
) -> Narration:
    """Find out what is said in a video, with a progress bar while speech is recognised; kept beside ``output``."""
    from rich.console import Console
    from rich.progress import Progress

    from graph2vid.evidence.cache import Cache, cache_folder
    from graph2vid.grounding.from_video import hear

    stderr = Console(stderr=True)
    with Progress(console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task("listening", total=None, visible=False)

        def tell(done: float, total: float) -> None:
            bar.update(task, completed=done, total=total, visible=True)

        cache = Cache(cache_folder(output))
        return hear(video, captions=captions, model=model, language=language, cache=cache, progress=tell)


def _ground_said(
    procedures: list[FlowGraph],
    narration: Narration,
    embedder: str,
    options: Callable[[FlowGraph], dict[str, Any]],
) -> Grounding:
    from rich.console import Console

    from graph2vid.evidence import plausibilities, text_embedder
    from graph2vid.grounding import ground_narrated

    stderr = Console(stderr=True, highlight=False)
    asked = [(procedure.title, procedure.texts) for procedure in procedures]
    found = plausibilities(asked, narration.cues, text_embedder(embedder))
    ranked = sorted(range(len(procedures)), key=lambda at: -found[at].score)
    procedure = procedures[ranked[0]]
    if len(procedures) > 1:
        places = [f"{procedures[at].title or f'procedure {at + 1}'} {found[at].probability:.0%}" for at in ranked]
        stderr.print(f"fits best: {'; '.join(places)}", markup=False, soft_wrap=True, style="dim")
    if found[ranked[0]].is_unlikely:
        stderr.print(
            f"warning: what is said hardly goes with this procedure ({found[ranked[0]].probability:.0%}); is it the "
            "right one for this video, and in the language spoken? (--embedder names one for other languages)",
            markup=False,
            soft_wrap=True,
            style="yellow",
        )
    return ground_narrated(procedure, narration.cues, narration.duration, embedder=embedder, **options(procedure))


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
