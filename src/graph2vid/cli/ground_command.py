"""``graph2vid ground``."""

from __future__ import annotations

import mimetypes
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graph2vid._options import GroundOptions, Options, basic_option, option
from graph2vid.cli.derived_options import given as flags_given
from graph2vid.cli.derived_options import needing_torch, refuse, with_options
from graph2vid.errors import InputError

if TYPE_CHECKING:
    from graph2vid.alignment import Constraint
    from graph2vid.flow import FlowGraph
    from graph2vid.grounding import Features, Grounding


@dataclass(frozen=True)
class InputOptions(Options, panel="Inputs in place of a video, or beside it"):
    """Files that evidence is read from."""

    captions: Path | None = basic_option(None, "Captions of the video; by default its speech is transcribed.")
    scores: Path | None = basic_option(None, "Scores, steps × clips; higher is a better match.", metavar="FILE.npy")
    clips: Path | None = basic_option(None, "Embeddings of the clips, clips × dimensions.", metavar="FILE.npy")
    steps: Path | None = basic_option(None, "Embeddings of the steps, steps × dimensions.", metavar="FILE.npy")
    log_probabilities: Path | None = basic_option(
        None, "Log-probabilities, steps × clips; a row more, the last, is of background.", metavar="FILE.npy"
    )
    transpose: bool = option(False, "The scores or log-probabilities are clips × steps.")
    model: Path | None = option(
        None,
        "Features from `graph2vid train features`, used on --clips, or on the transcript of the video.",
        metavar="CHECKPOINT",
    )

    @property
    def arrays(self) -> dict[str, Path]:
        """The files of arrays, by name."""
        files = {name: getattr(self, name) for name in ("scores", "clips", "steps", "log_probabilities")}
        return {name: path for name, path in files.items() if path is not None}


@dataclass(frozen=True)
class ConstraintOptions(Options, panel="What is known already"):
    """Pins and forbidden spans."""

    pin: tuple[str, ...] = basic_option(
        (), "The step happens in this span (0-10, 1:30-) and nowhere else.", metavar="STEP=START-END"
    )
    forbid: tuple[str, ...] = option((), "The step does not happen in this span.", metavar="STEP=START-END")
    background: tuple[str, ...] = option((), "No step happens in this span.", metavar="START-END")
    corrections: Path | None = option(None, "What is known of some steps, exactly kept: an ELAN file (.eaf) or a .csv.")

    def of(self, flow: FlowGraph) -> list[Constraint]:
        """Return the constraints for a procedure."""
        from graph2vid.alignment import Constraint
        from graph2vid.export import read_annotations, to_constraints
        from graph2vid.grounding import parse_span

        found = [Constraint("background", None, *parse_span(span)) for span in self.background]
        for kind, texts in (("within", self.pin), ("forbid", self.forbid)):
            for text in texts:
                name, equals, span = text.rpartition("=")
                if not equals:
                    raise InputError(f"{text!r} must be STEP=START-END, for example {flow.ids[0]}=40-60")
                found.append(Constraint(kind, flow.index(name), *parse_span(span)))  # type: ignore[arg-type]
        if self.corrections is not None:
            found += to_constraints(read_annotations(self.corrections, flow))
        return found


@dataclass(frozen=True)
class OutputOptions(Options, panel="Output"):
    """What is written."""

    output: Path | None = basic_option(None, "Write the result (JSON); - is standard output.", short="-o")
    json: Path | None = option(None, "Write the result; the same as --output.")
    report: Path | None = basic_option(
        None, "Write a page to look at: video, steps over time, graph, transcript.", metavar="FILE.html"
    )
    export: str = basic_option(
        "",
        "Write the result in these formats, too, beside the output: vtt, youtube, … (see `graph2vid export`).",
        metavar="FORMAT,…",
    )
    check: bool = basic_option(
        False, "Say where the video does not follow the procedure, as `graph2vid check` does; kept in the result."
    )
    embed_video: bool = option(False, "Put the video into the report; by default it is linked.")
    video: str | None = option(None, "With arrays or captions: the video they are of, for the report.", metavar="FILE")


@with_options
def ground(
    context: typer.Context,
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="PROCEDURE… [VIDEO]",
            help="A procedure in words, or its flow graph (.json, .flow, .dot), and the video: a media file, or its "
            "captions (.vtt, .srt, .sbv, .json3, Whisper's .json, .txt with times). Of several procedures the one "
            "that fits best is used. With arrays (--scores, …) there is no VIDEO.",
        ),
    ],
    given: InputOptions,
    options: GroundOptions,
    known: ConstraintOptions,
    output: OutputOptions,
) -> None:
    """Say when each step of a procedure happens in a video.

    The evidence is the transcript of the video, its frames (--frames), or both; or arrays: scores of steps in clips,
    embeddings, log-probabilities. Defaults can be set in graph2vid.toml, in the working directory or in
    ~/.config/graph2vid: clip-seconds = 2 under [ground], for example.
    """
    from graph2vid.cli.export_command import formats_named
    from graph2vid.cli.outputs import check_output
    from graph2vid.cli.progress import progress
    from graph2vid.evidence import read_array
    from graph2vid.grounding import ground as ground_video
    from graph2vid.text import read_flow

    # What can be refused is refused before any work is done.
    formats = formats_named(output.export)
    check_output(output.output, "-o", ".json")
    sources, video = (inputs, None) if given.arrays else (inputs[:-1], inputs[-1])
    check_inputs(sources, video)
    _refuse_what_changes_nothing(context, sources, video, given, output)
    arrays: dict[str, Any] = {name: read_array(path) for name, path in given.arrays.items()}
    if given.transpose:
        arrays = {name: array if name in ("clips", "steps") else array.T for name, array in arrays.items()}
    features = None if given.model is None else _trained(given.model)
    if options.procedure.parser == "rules":
        from graph2vid.text.rules import spare_imports

        spare_imports()
    with progress("reading the procedure") as tell:
        procedures: list[Any] = sources
        if flags_given(context, "violation"):
            procedures = [read_flow(path, options.procedure.parser) for path in sources]
            if not any(flow.confidences for flow in procedures):
                refuse(context, ["violation"], "no edge of the flow graph has a confidence below 1")
        found = ground_video(
            procedures,
            video,
            captions=given.captions,
            features=features,
            constraints=known.of,
            check=output.check,
            video_name=output.video,
            progress=tell,
            **arrays,
            **options.to_mapping(),
        )
    _write(found, output, formats, inputs[-1])


def check_inputs(procedures: Sequence[Path], video: Path | None) -> None:
    """Refuse what is not a procedure, or is not a video, by its name, and what is not there: PROCEDURE… [VIDEO]."""
    from graph2vid.grounding import refuse_address

    if video is None and len(procedures) > 1:
        raise InputError(f"with arrays there is one procedure and no video, not {len(procedures)} files")
    if video is not None and not procedures:
        raise InputError(f"{video} alone is not enough: give the video too, its captions, or arrays (--scores …)")
    inputs = [*procedures, *([] if video is None else [video])]
    for path in inputs:
        refuse_address(path)
    for path in filter(_is_media, procedures):
        if video is not None and not _is_media(video):
            order = shlex.join(["graph2vid", "ground", *(str(one) for one in inputs if one != path), str(path)])
            raise InputError(f"{path} is a video or its captions, which come after the procedure: {order}")
        raise InputError(f"{path} is a video or captions, where a procedure is expected: a text, or a flow graph")
    if video is not None and not video.exists():
        raise InputError(f"cannot read {video}: No such file or directory")


def _is_media(path: Path) -> bool:
    """Say whether a file is a video, a sound or captions, by its suffix."""
    from graph2vid.evidence import SUFFIXES

    kind = mimetypes.guess_type(path.name)[0] or ""
    return path.suffix.lower() in SUFFIXES or kind.startswith(("video/", "audio/"))


def _refuse_what_changes_nothing(
    context: typer.Context, sources: Sequence[Path], video: Path | None, given: InputOptions, output: OutputOptions
) -> None:
    """Refuse options that this kind of evidence has no use for, and those that contradict each other."""
    from graph2vid.evidence import is_captions
    from graph2vid.text import is_flow_file

    asked, has_model = context.params, given.model is not None
    has_captions = video is not None and (given.captions is not None or is_captions(video))
    is_written = output.output or output.json or output.report or output.export
    no_frames, no_matrix = asked["frames"] is None, given.scores is None and given.log_probabilities is None
    of_transcript, weight = ["embedder", "speech_model", "language", "captions"], "narration_weight"
    is_read = asked["on_screen"] == "on"
    no_transcription = "with captions no speech is transcribed"
    rules: list[tuple[Any, list[str], str]] = [
        (no_matrix, ["transpose"], "there are no --scores or --log-probabilities to transpose"),
        (video is None, [*of_transcript, weight], "arrays take the place of the transcript of a video"),
        (video is None, ["max_hours"], "arrays are as long as they are"),
        (video is None or has_model, ["extra_scores"], "they stand beside a video without --model; --scores alone"),
        (has_model and video, ["embedder", weight], "--model compares the transcript with the steps"),
        (video, ["offset"], "it is for arrays; a video begins at 0"),
        (
            not asked["frames"],
            ["frames_weight"],
            "no frames are embedded; --frames names what compares them with steps",
        ),
        (has_captions, ["speech_model"], no_transcription),
        (video is None or has_model, ["on_screen"], "the text in the picture is read of a video without --model"),
        (has_captions and has_model, ["language"], f"{no_transcription}, and --model asks no language"),
        (
            asked[weight] == 0 and not is_read,
            of_transcript,
            "with --narration-weight 0 there is no transcript",
        ),
        (output.report is None, ["embed_video"], "there is no report to put the video into; --report names one"),
        (video is None and output.video is None, ["embed_video"], "arrays are of no video; --video names it"),
        (not is_written, ["video"], "it is named in what is written: give --report, -o or --export"),
        (not asked["confidence"], ["gamma"], "it is for confidences, and with --no-confidence there are none"),
    ]
    for applies, names, why in rules:
        if applies:
            refuse(context, names, why)
    if flags_given(context, "parser") and all(is_flow_file(path) for path in sources):
        refuse(context, ["parser"], f"no procedure is in words; {sources[0]} is a flow graph already")
    if not no_frames and (video is None or has_model):
        raise InputError("--frames is for a video without --model; arrays take the place of its frames")
    if no_frames and asked["extra_scores"] is None and asked[weight] == 0 and not is_read:
        raise InputError("with --narration-weight 0 nothing is left to go by: give --frames or --on-screen on too")
    if has_model and video and len(sources) > 1:
        raise InputError(f"with --model there is one procedure, not {len(sources)}")
    if has_model and given.arrays and (given.clips is None or given.steps is None):
        raise InputError("--model works on embeddings: give --clips and --steps, or a video and no arrays")


def _trained(path: Path) -> Features:
    with needing_torch("--model"):
        from graph2vid.learn.features import load_features

        return load_features(path)


def _write(found: Grounding, output: OutputOptions, formats: tuple[str, ...], last: Path) -> None:
    """Write what is asked for, and show the result; say on stderr which of several procedures fits best."""
    from graph2vid.cli.check_command import show_check
    from graph2vid.cli.export_command import write_exports
    from graph2vid.cli.outputs import is_stdout, tell_written
    from graph2vid.grounding import OrderCheck, print_timeline

    if ranking := found.options.get("ranking"):
        fits = ("" if one["plausibility"] is None else f" {one['plausibility']:.0%}" for one in ranking)
        names = [f"{one['procedure']}{fit}" for one, fit in zip(ranking, fits, strict=True)]
        typer.secho(f"fits best: {'; '.join(names)}", err=True, dim=True)
    checked = OrderCheck.from_json(found.options["check"], found.flow) if "check" in found.options else None
    written = list(dict.fromkeys(filter(None, (output.output, output.json))))
    for path in written:
        found.save(path)
    if output.report is not None:
        from graph2vid.report import write_report

        write_report(output.report, found, check=checked, embed_video=output.embed_video)
        written.append(output.report)
    tell_written(written)
    beside = next((path for path in written if not is_stdout(path)), Path(last.name))
    try:
        write_exports(formats, found, beside)
    finally:  # a format that is refused does not hide the result
        print_timeline(found)
        _tell_gap(found.options["alignment"])
        if checked is not None:
            show_check(checked)


def _tell_gap(alignment: dict[str, Any]) -> None:
    """Say of an answer that was searched how good it is proven to be."""
    if alignment["method"] == "anytime":
        proven = "searched, and proven to be the best"
        if alignment["gap"] != 0:
            proven = (
                f"searched: the cost is at most {alignment['gap']:.4g} above the best possible (proven: at least "
                f"{alignment['lower_bound']:.6g})"
            )
        typer.echo(f"too many legal orders to try all; {proven}")
