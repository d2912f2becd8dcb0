"""``graph2vid batch``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from graph2vid.batch import Manifest, Summary

_SHOWN_PROBLEMS = 20
_SHOWN_REASONS = 10


def batch(
    context: typer.Context,
    manifest: Annotated[
        Path,
        typer.Argument(
            metavar="MANIFEST",
            help="What to ground (.jsonl, .csv, .parquet): id, procedure, and video, captions, scores, "
            "log_probabilities, or clips and steps; options of a row in columns of their own.",
        ),
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="The folder of the results.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check the manifest, list all that is wrong, and do nothing else.")
    ] = False,
    engine: Annotated[str, typer.Option(help="Who does the work: local (processes here) or ray.")] = "local",
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Worker processes; one per processor by default.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with a run that was cut short: rows that are done, and are as they were then, are left as "
            "they are.",
        ),
    ] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="With --resume: try again what failed.")] = False,
    on_error: Annotated[
        str, typer.Option(metavar="skip|stop", help="A row that fails is reported and left out, or ends the run.")
    ] = "skip",
    row_seconds: Annotated[float, typer.Option(metavar="S", help="The time limit of a row.")] = 1800.0,
    address: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Ray cluster; by default one is started here for the run.")
    ] = None,
    gpus: Annotated[
        float, typer.Option(metavar="N", help="GPUs of each Ray actor that recognises speech or embeds.")
    ] = 0.0,
    documents: Annotated[bool, typer.Option("--documents", help="Write each video's grounding as JSON, too.")] = False,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where transcripts and evidence are kept; by default in the cache of the user."
        ),
    ] = None,
    parser: Annotated[
        str | None, typer.Option(help="Who finds the flow graph of words: auto (default), rules, learned, linear, bag.")
    ] = None,
    embedder: Annotated[
        str | None, typer.Option(metavar="NAME", help="What compares words said with steps; wordllama by default.")
    ] = None,
    speech_model: Annotated[
        str | None, typer.Option(metavar="NAME", help="A model of faster-whisper; tiny.en by default.")
    ] = None,
    language: Annotated[str | None, typer.Option(metavar="CODE", help="The language spoken, such as en.")] = None,
    frames: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What compares frames with steps; by default only what is said counts."),
    ] = None,
    narration_weight: Annotated[float | None, typer.Option(min=0.0, help="How much what is said counts.")] = None,
    frames_weight: Annotated[float | None, typer.Option(min=0.0, help="How much what is seen counts.")] = None,
    clip_seconds: Annotated[float | None, typer.Option(help="Length of a clip in seconds; 1 by default.")] = None,
    max_hours: Annotated[
        float | None, typer.Option(metavar="HOURS", help="The longest video that is taken for one; 24 by default.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Named settings of the costs of arrays.")] = None,
    match: Annotated[str | None, typer.Option(help="Match policy.")] = None,
    drop: Annotated[str | None, typer.Option(metavar="POLICY[:VALUE]", help="The price of background.")] = None,
    skip: Annotated[str | None, typer.Option(metavar="POLICY[:VALUE]", help="The price of not showing a step.")] = None,
    repeat: Annotated[
        str | None, typer.Option(metavar="POLICY[:VALUE]", help="The price of returning to a step.")
    ] = None,
    min_clips: Annotated[int | None, typer.Option(min=1, help="The fewest clips of a run of a step.")] = None,
    durations: Annotated[Path | None, typer.Option(metavar="FILE.json", help="How long steps last.")] = None,
    breaking: Annotated[
        float | None, typer.Option(min=0.0, help="What the log-odds of a doubtful edge are multiplied by.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="Divides the similarities.")] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="How long to search where there are too many legal orders.")
    ] = None,
    gamma: Annotated[float | None, typer.Option(help="How soft the sums behind confidences are.")] = None,
    confidence: Annotated[bool | None, typer.Option(help="Say how sure each segment is (default).")] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the summary, or what the check found.")
    ] = None,
) -> None:
    """Ground all videos of a manifest, and write data sets of segments and videos (Parquet).

    A run that was cut short, whatever cut it, goes on with --resume. Options such as --drop are for all rows that do
    not say otherwise in a column of that name. The exit status is 0 if all rows of the manifest are done, 1 if some
    failed (the column error of the videos says why), 2 if nothing could begin.
    """
    from graph2vid._files import write_json
    from graph2vid.batch import RunOptions, check_manifest, run_batch
    from graph2vid.cli.given import refuse
    from graph2vid.cli.progress import progress
    from graph2vid.errors import InputError

    row_options = {
        "parser": parser,
        "embedder": embedder,
        "speech_model": speech_model,
        "language": language,
        "frames": frames,
        "narration_weight": narration_weight,
        "max_hours": max_hours,
        "frames_weight": frames_weight,
        "clip_seconds": clip_seconds,
        "preset": preset,
        "match": match,
        "drop": drop,
        "skip": skip,
        "repeat": repeat,
        "min_clips": min_clips,
        "durations": None if durations is None else str(durations.resolve()),
        "breaking": breaking,
        "temperature": temperature,
        "time_limit": time_limit,
        "gamma": gamma,
        "confidence": confidence,
    }
    options = RunOptions(engine, workers, resume, retry_failed, on_error, row_seconds, address, gpus)
    if check:
        of_runs = ("out", "workers", "resume", "retry_failed", "on_error", "row_seconds", "gpus", "documents")
        refuse(context, ("engine", "address", *of_runs), "--check looks at the manifest and does nothing else")
        found = check_manifest(manifest, row_options, cache)
        if json is not None:
            write_json(json, _as_json(found))
        for problem in found.problems:
            typer.echo(str(problem))
        if found.problems:
            raise InputError(f"{manifest}: {_count(len(found.problems), 'problem')} in {_count(len(found), 'row')}")
        typer.echo(f"{manifest}: {_count(len(found), 'row')}, nothing wrong ({_kinds(found)})")
        return
    if out is None:
        raise InputError("name the folder of the results: --out DIR (or check the manifest alone: --check)")
    with progress("checking the manifest") as show:

        def tell(done: int, failed: int, total: int) -> None:
            words = f"grounding {done:,} of {_count(total, 'row')}"
            show(f"{words}, {failed:,} failed" if failed else words, done, total)

        summary = run_batch(
            manifest,
            out,
            options=options,
            row_options=row_options,
            documents=documents,
            cache=cache,
            progress=tell,
            checked=_tell_problems,
        )
    if json is not None:
        write_json(json, summary.to_json())
    _show(summary, out)
    if summary.failed or summary.failed_before:
        raise typer.Exit(1)


def _as_json(manifest: Manifest) -> dict[str, object]:
    return {
        "format": "graph2vid-batch-check",
        "version": 1,
        "rows": len(manifest),
        "kinds": manifest.kinds,
        "problems": [{"place": problem.place, "id": problem.id, "text": problem.text} for problem in manifest.problems],
    }


def _tell_problems(manifest: Manifest) -> None:
    """Say what is wrong with the manifest before the work begins."""
    for problem in manifest.problems[:_SHOWN_PROBLEMS]:
        typer.echo(f"{manifest.path}, {problem}", err=True)
    more = len(manifest.problems) - _SHOWN_PROBLEMS
    if more > 0:
        typer.echo(f"… and {_count(more, 'problem')} more; --check lists all of them", err=True)


def _show(summary: Summary, out: Path) -> None:
    before = f"{summary.skipped - summary.failed_before:,} done before"
    failed = f"{summary.failed:,} failed"
    if summary.failed_before:
        failed += f" and {summary.failed_before:,} failed before (--retry-failed tries those again)"
    typer.echo(
        f"{_count(summary.done, 'video')} done, {before}, {failed}; "
        f"{summary.seconds:.1f} s, {summary.videos_per_second:,.0f} videos/s"
    )
    others = [
        f"{_count(number, what)} {words}"
        for number, what, words in (
            (summary.changed, "row", "changed since, and done again"),
            (summary.removed, "row", "no longer in the manifest, and left out"),
            (summary.damaged, "damaged part", "whose rows were done again"),
        )
        if number
    ]
    if others:
        typer.echo(f"  {'; '.join(others)}")
    for reason, count in summary.reasons.most_common(_SHOWN_REASONS):
        typer.echo(f"  failed, {count:,} ×: {reason}")
    more = len(summary.reasons) - _SHOWN_REASONS
    if more > 0:
        typer.echo(f"  … and {_count(more, 'other reason')}: column error of {out / 'videos'}")
    typer.echo(f"results: {out / 'videos'}, {out / 'segments'}")


def _kinds(manifest: Manifest) -> str:
    return ", ".join(f"{count:,} with {kind}" for kind, count in manifest.kinds.items() if count)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s'[: number != 1]}"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(batch)
