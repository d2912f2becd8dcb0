"""``graph2vid ground``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from graph2vid.alignment import Constraint, Kind
    from graph2vid.flow import FlowGraph
    from graph2vid.grounding import Grounding, OrderCheck
    from graph2vid.learn.features.use import TrainedFeatures

_FILE = "FILE.npy"


def ground(
    context: typer.Context,
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="PROCEDURE… [VIDEO]",
            help="A procedure in words, or its flow graph (.json, .flow, .dot), and the video: a media file, or its "
            "captions (.vtt, .srt, .sbv, .json3, Whisper's .json, .txt with times). Of several procedures the one "
            "that fits best is used. With arrays "
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
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="CHECKPOINT",
            help="Features from `graph2vid train features`, used on --clips, or on what is said in the video.",
        ),
    ] = None,
    transpose: Annotated[
        bool, typer.Option("--transpose", help="The scores or log-probabilities are clips × steps.")
    ] = False,
    captions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Captions of the video; by default its speech is recognised.")
    ] = None,
    parser: Annotated[
        str, typer.Option(help="Who finds the flow graph of a procedure in words: auto, rules, learned, linear, bag.")
    ] = "auto",
    embedder: Annotated[
        str, typer.Option(metavar="NAME", help="What compares words said with steps: wordllama, minilm, st:NAME, …")
    ] = "wordllama",
    frames: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What compares frames with steps: clip:NAME, siglip:NAME, open_clip:…, s3d:CHECKPOINT, "
            "array:CLIPS.npy,STEPS.npy; by default only what is said counts.",
        ),
    ] = None,
    narration_weight: Annotated[
        float, typer.Option(help="How much what is said counts; 0: no speech is recognised.", min=0.0)
    ] = 1.0,
    frames_weight: Annotated[float, typer.Option(help="How much what is seen counts.", min=0.0)] = 1.0,
    speech_model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A model of faster-whisper, by name or folder; tiny.en by default."),
    ] = None,
    language: Annotated[
        str | None, typer.Option(metavar="CODE", help="The language spoken, such as en; by default found out.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Write a page to look at: video, steps over time, graph, narration."),
    ] = None,
    embed_video: Annotated[
        bool, typer.Option("--embed-video", help="Put the video into the report; by default it is linked.")
    ] = False,
    video: Annotated[
        str | None, typer.Option(metavar="FILE", help="With arrays or captions: the video they are of, for the report.")
    ] = None,
    export: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT,…",
            help="Write the result in these formats, too (see `graph2vid export`), beside the output: vtt, youtube, …",
        ),
    ] = None,
    corrections: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What is known of some steps, exactly kept: an ELAN file (.eaf) or a .csv."),
    ] = None,
    clip_seconds: Annotated[float, typer.Option(help="Length of a clip in seconds.")] = 1.0,
    max_hours: Annotated[
        float, typer.Option(metavar="HOURS", help="The longest video that is taken for one; a longer one is an error.")
    ] = 24.0,
    offset: Annotated[float, typer.Option(help="Where the first clip begins, in seconds.")] = 0.0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the result (JSON); - is standard output."),
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
            help="The price of not showing a step: auto, constant:3, percentile:75, given:FILE.npy; constant:inf: it "
            "must appear. By default as narration says; with arrays every step must appear.",
        ),
    ] = None,
    repeat: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY[:VALUE]",
            help="The price of returning to a step: auto, 8, percentile:50, given:FILE.npy. By default it has one run.",
        ),
    ] = None,
    min_clips: Annotated[int, typer.Option(min=1, help="The fewest clips of a run of a step.")] = 1,
    durations: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="How long steps last: see the page on file formats.")
    ] = None,
    breaking: Annotated[
        float, typer.Option(min=0.0, help="What the log-odds of a doubtful edge are multiplied by when it is broken.")
    ] = 1.0,
    temperature: Annotated[
        float | None, typer.Option(help="Divides the similarities; by default 1, and 0.1 for embeddings.")
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="How long to search where there are too many legal orders to try all of them; by default 30.",
        ),
    ] = None,
    confidence: Annotated[
        bool, typer.Option(help="Say how sure each segment is; takes longer than finding it.")
    ] = True,
    gamma: Annotated[
        float, typer.Option(help="How soft the sums behind confidences are; more is less sure of itself.")
    ] = 1.0,
    margins: Annotated[
        bool,
        typer.Option("--margins", help="Say by how much each segment is cheaper than the best alternative to it."),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Say where the video does not follow the procedure, as `graph2vid check` does; kept in the result.",
        ),
    ] = False,
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

    The evidence is what is said in the video, what is seen in it (--frames), or both; or arrays: scores of steps in
    clips, embeddings, log-probabilities.
    """
    from graph2vid.cli.check_command import show_check
    from graph2vid.cli.export_command import formats_named, write_exports
    from graph2vid.cli.given import given, refuse
    from graph2vid.cli.outputs import check_output, is_stdout, tell_written
    from graph2vid.cli.progress import progress
    from graph2vid.cli.watching import check_video, ground_best, watch_with_progress
    from graph2vid.errors import InputError
    from graph2vid.evidence import read_array, text_embedder
    from graph2vid.evidence.embed import joint_embedder
    from graph2vid.evidence.evidence_cache import Cache
    from graph2vid.grounding import ground
    from graph2vid.grounding.durations_file import durations_of
    from graph2vid.grounding.from_arrays import check_settings
    from graph2vid.grounding.from_video import is_captions
    from graph2vid.grounding.timeline import print_timeline
    from graph2vid.text import is_flow_file, read_flow

    # What can be refused is refused before any work is done.
    formats = formats_named(export)
    check_output(output, "-o", ".json")
    array_files = {"scores": scores, "clips": clips, "steps": steps, "log_probabilities": log_probabilities}
    has_arrays = any(path is not None for path in array_files.values())
    if has_arrays and len(inputs) > 1:
        raise InputError(f"with arrays there is one procedure and no video, not {len(inputs)} files")
    if not has_arrays and len(inputs) == 1:
        raise InputError(f"{inputs[0]} alone is not enough: give the video too, its captions, or arrays (--scores …)")
    check_video(inputs, has_arrays)
    _refuse_what_changes_nothing(
        context,
        has_matrix=scores is not None or log_probabilities is not None,
        has_arrays=has_arrays,
        has_captions=not has_arrays and (captions is not None or is_captions(inputs[-1])),
        is_heard=narration_weight != 0,
        is_written=bool(output or json or report or formats),
    )
    sources = inputs[: None if has_arrays else -1]
    if given(context, "parser") and all(is_flow_file(path) for path in sources):
        refuse(context, ["parser"], f"no procedure is in words; {sources[0]} is a flow graph already")
    if frames is not None and (has_arrays or model is not None):
        raise InputError("--frames is for a video without --model; arrays take the place of its frames")
    if frames is None and narration_weight == 0:
        raise InputError("with --narration-weight 0 nothing is left to go by: give --frames too")
    if not has_arrays and model is not None and len(inputs) > 2:
        raise InputError(f"with --model there is one procedure, not {len(inputs) - 1}")
    if model is not None and has_arrays and (clips is None or steps is None):
        raise InputError("--model works on embeddings: give --clips and --steps, or a video and no arrays")
    check_settings(
        preset=preset,
        match=match,
        drop=_choice(drop),
        skip=_choice(skip),
        repeat=_choice(repeat),
        temperature=temperature,
        gamma=gamma,
        clip_seconds=clip_seconds,
    )
    arrays: dict[str, Any] = {name: read_array(path) for name, path in array_files.items() if path is not None}
    if transpose:
        arrays = {name: array if name in ("clips", "steps") else array.T for name, array in arrays.items()}
    trained = None if model is None else _trained(model)
    if not has_arrays and trained is None:
        if narration_weight != 0:
            text_embedder(embedder)
        if frames is not None:
            joint_embedder(frames)

    def options(procedure: FlowGraph) -> dict[str, Any]:
        return {
            "clip_seconds": clip_seconds,
            "match": match,
            "drop": _choice(drop),
            "skip": _choice(skip),
            "repeat": _choice(repeat),
            "durations": durations_of(procedure, clip_seconds, durations, min_clips),
            "breaking": breaking,
            "temperature": temperature,
            "time_limit": time_limit,
            "confidence": confidence,
            "margins": margins,
            "gamma": gamma,
            "constraints": [
                *(_of_step("within", text, procedure) for text in pin or ()),
                *(_of_step("forbid", text, procedure) for text in forbid or ()),
                *(_constraint("background", None, text) for text in background or ()),
                *(_corrections(corrections, procedure) if corrections is not None else ()),
            ],
        }

    with progress("reading the procedure") as tell:
        procedures = [read_flow(path, parser) for path in sources]
        if not any(procedure.confidences for procedure in procedures):
            refuse(context, ["breaking"], "no edge of the flow graph has a confidence below 1")
        of_procedure = {id(procedure): options(procedure) for procedure in procedures}
        cache = Cache()
        if trained is not None and not has_arrays:
            narration, _ = watch_with_progress(
                inputs[-1],
                cache,
                tell,
                captions=captions,
                model=speech_model,
                language=language,
                max_hours=max_hours,
            )
            heard = narration.cues, narration.duration
            arrays = trained.said(procedures[0].texts, *heard, clip_seconds=clip_seconds, max_hours=max_hours)
        elif trained is not None:
            arrays = trained.arrays(**arrays)
        if arrays:
            tell("aligning")
            (procedure,) = procedures
            settings = of_procedure[id(procedure)] | {"offset": offset, "preset": preset, "contiguous": contiguous}
            result = ground(procedure, **arrays, **settings)
        else:
            narration, seen = watch_with_progress(
                inputs[-1],
                cache,
                tell,
                captions=captions,
                frames=frames,
                listen=narration_weight != 0,
                model=speech_model,
                language=language,
                clip_seconds=clip_seconds,
                max_hours=max_hours,
            )
            tell(
                "comparing what is said and seen with the steps" if frames else "comparing what is said with the steps"
            )
            shared = {"language": language, "narration_weight": narration_weight, "frames_weight": frames_weight}
            shared["max_hours"] = max_hours
            result = ground_best(
                procedures,
                narration,
                seen,
                embedder=embedder,
                cache=cache,
                options=lambda procedure: of_procedure[id(procedure)] | shared,
            )
    if not has_arrays and not is_captions(inputs[-1]):
        video = video or str(inputs[-1])
    result = replace(result, video=video)
    checked, unchecked = _checked(result) if check else (None, "")
    if checked is not None:
        result = replace(result, options=result.options | {"check": checked.to_json()})
    written = list(dict.fromkeys(path for path in (output, json) if path is not None))
    for path in written:
        result.save(path)
    if report is not None:
        from graph2vid.report import write_report

        write_report(report, result, check=checked, embed_video=embed_video)
        written.append(report)
    tell_written(written)
    beside = next((path for path in (output, json, report) if path and not is_stdout(path)), Path(inputs[-1].name))
    try:
        write_exports(formats, result, beside)
    finally:  # a format that is refused does not hide the result
        print_timeline(result)
        _tell_gap(result.options["alignment"])
        if checked is not None:
            show_check(checked)
        elif check:
            typer.echo(f"not checked: {unchecked}")


def _refuse_what_changes_nothing(
    context: typer.Context, *, has_matrix: bool, has_arrays: bool, has_captions: bool, is_heard: bool, is_written: bool
) -> None:
    """Refuse options that this kind of evidence has no use for."""
    from graph2vid.cli.given import refuse

    asked = context.params
    if not has_matrix:
        refuse(context, ["transpose"], "there are no --scores or --log-probabilities to transpose")
    if has_arrays:
        of_video = ("captions", "embedder", "narration_weight", "speech_model", "language")
        refuse(context, of_video, "arrays take the place of what is said in a video")
        refuse(context, ["max_hours"], "arrays are as long as they are")
    elif asked["model"] is not None:
        refuse(context, ["embedder", "narration_weight"], "--model compares what is said with the steps")
    if not has_arrays:
        refuse(context, ["offset"], "it is for arrays; a video begins at 0")
        if asked["model"] is None:
            refuse(context, ["preset", "contiguous"], "it is for arrays; a video's narration has settings of its own")
    if asked["frames"] is None:
        refuse(context, ["frames_weight"], "no frames are looked at; --frames names what compares them with steps")
    if has_captions:
        refuse(context, ["speech_model"], "with captions no speech is recognised")
        if asked["model"] is not None:
            refuse(context, ["language"], "with captions no speech is recognised, and --model asks no language")
    if not is_heard:
        heard = ("embedder", "speech_model", "language", "captions")
        refuse(context, heard, "with --narration-weight 0 what is said does not count")
    if asked["report"] is None:
        refuse(context, ["embed_video"], "there is no report to put the video into; --report names one")
    elif has_arrays and asked["video"] is None:
        refuse(context, ["embed_video"], "arrays are of no video; --video names it")
    if not is_written:
        refuse(context, ["video"], "it is named in what is written: give --report, -o or --export")
    if not asked["confidence"]:
        refuse(context, ["gamma"], "it is for confidences, and with --no-confidence there are none")


def _checked(result: Grounding) -> tuple[OrderCheck | None, str]:
    """Check a result against its procedure; where that is too large, say so and lose nothing."""
    from graph2vid.errors import TooLargeError
    from graph2vid.grounding import check_order

    try:
        return check_order(result), ""
    except TooLargeError as error:
        return None, str(error)


def _tell_gap(alignment: dict[str, Any]) -> None:
    """Say of an answer that was searched how good it is proven to be."""
    if alignment["method"] != "anytime":
        return
    if alignment["gap"] == 0:
        typer.echo("too many legal orders to try all; searched, and proven to be the best")
    else:
        typer.echo(
            f"too many legal orders to try all; searched: the cost is at most {alignment['gap']:.4g} above the best "
            f"possible (proven: at least {alignment['lower_bound']:.6g})"
        )


def _trained(path: Path) -> TrainedFeatures:
    from graph2vid.errors import MissingDependencyError

    try:
        from graph2vid.learn.features.use import load_features

        return load_features(path)
    except ModuleNotFoundError as error:
        if error.name in ("torch", "safetensors"):
            raise MissingDependencyError("--model needs torch", extra="learn") from error
        raise


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
        raise InputError(f"{text!r} must be STEP=START-END, for example {flow.ids[0]}=40-60")
    return _constraint(kind, flow.index(name), span)


def _corrections(path: Path, flow: FlowGraph) -> tuple[Constraint, ...]:
    from graph2vid.export import read_annotations, to_constraints

    return to_constraints(read_annotations(path, flow))


def _constraint(kind: Kind, step: int | None, span: str) -> Constraint:
    from graph2vid.alignment import Constraint
    from graph2vid.grounding.times import parse_span

    start, stop = parse_span(span)
    return Constraint(kind, step, start, stop)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(ground)
