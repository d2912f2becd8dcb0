"""``graph2vid batch``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graph2vid._options import GroundOptions, Options, basic_option, declared, option
from graph2vid._values import repaired
from graph2vid.batch import RunOptions
from graph2vid.cli.derived_options import refuse, with_options

if TYPE_CHECKING:
    from graph2vid.batch import Manifest, Summary

_SHOWN_PROBLEMS = 20
_SHOWN_REASONS = 10


@dataclass(frozen=True)
class BatchFiles(Options, panel="Files"):
    """What is written, and where."""

    out: Path | None = basic_option(None, "The folder of the results.", metavar="DIR", short="-o")
    check: bool = basic_option(False, "Check the manifest, list all that is wrong, and do nothing else.")
    documents: bool = basic_option(False, "Write each video's grounding as JSON, too.")
    export: str = basic_option(
        "", "Write each video in these formats, too, beside its JSON: vtt, youtube, …", metavar="FORMAT,…"
    )
    clips: bool = basic_option(False, "Cut clips and stills of each video's steps, too, into a folder beside its JSON.")
    cache: Path | None = option(
        None, "Where transcripts and evidence are kept; by default in the cache of the user.", metavar="DIR"
    )
    json: Path | None = basic_option(None, "Write the summary, or what the check found.", metavar="FILE")


@with_options
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
    files: BatchFiles,
    run: RunOptions,
    options: GroundOptions,
) -> None:
    """Ground all videos of a manifest, and write data sets of segments and videos (Parquet).

    A run that was cut short, whatever cut it, goes on with --resume. Options such as --drop are for all rows that do
    not say otherwise in a column of that name. The exit status is 0 if all rows of the manifest are done, 1 if some
    failed (the column error of the videos says why), 2 if nothing could begin.
    """
    from graph2vid.batch import check_manifest, publish, run_batch
    from graph2vid.cli.export_command import formats_named
    from graph2vid.cli.outputs import save_json
    from graph2vid.cli.progress import progress
    from graph2vid.errors import InputError

    formats = formats_named(files.export)
    refuse(context, ["margins"], "the data sets have no place for margins (graph2vid ground finds them)")
    by_default = GroundOptions().to_mapping()
    row_options = {name: value for name, value in options.to_mapping().items() if value != by_default[name]}
    for name in {"adapted", "durations"} & row_options.keys():
        row_options[name] = str(Path(row_options[name]).resolve())
    if files.check:
        of_runs = ["out", "documents", "export", "clips", *(one.name for one in declared(RunOptions))]
        refuse(context, of_runs, "--check looks at the manifest and does nothing else")
        found = check_manifest(manifest, row_options, files.cache)
        save_json(files.json, _as_json(found))
        for problem in found.problems:
            typer.echo(str(problem))
        if found.problems:
            raise InputError(f"{manifest}: {_count(len(found.problems), 'problem')} in {_count(len(found), 'row')}")
        kinds = ", ".join(f"{count:,} with {kind}" for kind, count in found.kinds.items() if count)
        typer.echo(f"{manifest}: {_count(len(found), 'row')}, nothing wrong ({kinds})")
        return
    if (out := files.out) is None:
        raise InputError("name the folder of the results: --out DIR (or check the manifest alone: --check)")
    if repaired(str(out)) != str(out):  # Arrow opens no other names
        raise InputError(f"--out {out}: the name of this folder is not UTF-8; choose another")
    with progress("checking the manifest") as show:

        def tell(done: int, failed: int, total: int) -> None:
            words = f"grounding {done:,} of {_count(total, 'row')}"
            show(f"{words}, {failed:,} failed" if failed else words, done, total)

        def begin(found: Manifest) -> None:
            _tell_problems(found)
            if run.adapt:
                show("learning a model of each procedure")

        summary = run_batch(
            manifest,
            out,
            options=run,
            row_options=row_options,
            documents=files.documents or bool(formats) or files.clips,
            cache=files.cache,
            progress=tell,
            checked=begin,
        )
        if formats or files.clips:
            published = publish(
                out / "documents",
                formats,
                clips=files.clips,
                progress=lambda done, total: show("writing exports and clips", done, total),
            )
    save_json(files.json, summary.to_json())
    _show(summary, out)
    if formats or files.clips:
        typer.echo(f"  {published.written:,} exports and folders of clips written, {published.kept:,} kept")
        for reason, count in published.reasons.most_common(_SHOWN_REASONS):
            typer.echo(f"  not written, {count:,} ×: {reason}")
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


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s'[: number != 1]}"
