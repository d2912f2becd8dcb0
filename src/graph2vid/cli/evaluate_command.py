"""``graph2vid evaluate``."""

from __future__ import annotations

import math
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graph2vid.cli.evaluate_calibration_command import CALIBRATION, draw_confidence, judge_confidence
from graph2vid.cli.evaluate_check_command import CHECK, judge_check
from graph2vid.cli.evaluate_parser_command import PARSER, judge, show_and_write
from graph2vid.cli.evaluate_training_command import TRAINING, compare
from graph2vid.cli.given import refuse
from graph2vid.cli.progress import progress
from graph2vid.cli.terminal_table import show_table
from graph2vid.errors import InputError

if TYPE_CHECKING:
    from graph2vid.evaluate.tables import Report

_NOT_IN_COMMAND = ("json", "markdown", "plots", "workers", "debug")
"""Options that say where results go, not what they are."""


def evaluate(
    context: typer.Context,
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET",
            help="salads50, crosstask, youcook2, captaincook4d, captioned, synthetic; or parser, training, "
            "calibration, check: see below.",
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="The folder of the dataset (synthetic needs none)."),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="NAME,…",
            help="argmax, argmax+background, bag, linear, graph (all of them) or graph:SOURCE, true-order, "
            "true-order-repeats; all that the dataset has something for by default.",
        ),
    ] = None,
    parsers: Annotated[
        str | None,
        typer.Option(
            "--parsers",
            metavar="NAME,…",
            help="Parsers of procedures: those that parser judges (rules,learned,linear,bag by default), or whose "
            "graphs are grounded (rules,learned by default where tasks come with a text; none: no parser's).",
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option("--split", metavar="NAME", help="parser: the split of the corpus; by default dev.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help="Match and drop policies: paper, released or log_odds; by default log_odds for narration, else paper.",
        ),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option("--temperature", help="Divides similarities; by default 1, and 0.1 for cosines."),
    ] = None,
    drop: Annotated[
        str | None, typer.Option("--drop", metavar="POLICY[:N]", help="A drop policy in place of the preset's.")
    ] = None,
    skip_steps: Annotated[
        str | None,
        typer.Option(
            "--skip-steps",
            metavar="POLICY[:N]",
            help="Let steps be left out at this price (percentile, constant:3, …; constant:inf: none). By default as "
            "narration says, else every step must appear.",
        ),
    ] = None,
    beyond: Annotated[
        str | None,
        typer.Option(
            "--beyond",
            metavar="FEATURE,…",
            help="Run the graphs once more with each of these, their prices learnt from the training videos: skip, "
            "repeat, durations, precedence, share (of the time), several joined by +, or all; +likeliest: the "
            "likeliest label of each clip.",
        ),
    ] = None,
    tune_for: Annotated[
        str,
        typer.Option(
            metavar="MEASURE,…",
            help="The measures by whose mean the weights of these prices are chosen, on training videos alone.",
        ),
    ] = "acc,iou_strict",
    contiguous: Annotated[
        bool, typer.Option("--contiguous/--not-contiguous", help="Whether a step is one unbroken run of clips.")
    ] = True,
    drop_unmapped: Annotated[
        bool,
        typer.Option("--drop-unmapped", help="Remove steps of a procedure that no step of the dataset stands for."),
    ] = False,
    linear: Annotated[
        str,
        typer.Option(
            "--linear",
            metavar="ORDER",
            help="The order of the linear procedure: listed, mean-position (in the training split), or auto.",
        ),
    ] = "auto",
    min_support: Annotated[
        int, typer.Option("--min-support", min=1, help="Mined graphs: videos that must show both steps of an edge.")
    ] = 5,
    tolerance: Annotated[
        float,
        typer.Option("--tolerance", min=0.0, max=0.5, help="Mined graphs: the share of them that may break it."),
    ] = 0.0,
    folds: Annotated[
        int | None,
        typer.Option(
            "--folds",
            min=0,
            help="Deal each task's videos into so many folds for what is learnt; 0: its own splits. By default "
            "the own splits of salads50, else 5.",
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option("--limit", min=1, help="Legal sets of done steps up to which a procedure is grounded exactly."),
    ] = 2**18,
    noise: Annotated[
        str | None,
        typer.Option(
            "--noise",
            metavar="N,…",
            help="Levels of noise of simulated evidence; the tables are about the middle one, the curve about all.",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="NAME=VALUE", help="An option of the dataset's reader (repeatable)."),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Pass over videos and files that cannot be used; list them at the end.")
    ] = False,
    compare_graphs: Annotated[
        str | None,
        typer.Option("--compare-graphs", metavar="TASK", help="Compare the graphs of this task, edge by edge."),
    ] = None,
    video: Annotated[
        list[str] | None,
        typer.Option("--video", metavar="ID", help="Draw this video (repeatable); by default a typical one."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes and threads; all processors by default.")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write everything as JSON.")] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown", metavar="FILE", help="Write the tables into this page; other datasets' sections stay."
        ),
    ] = None,
    plots: Annotated[
        Path | None, typer.Option("--plots", metavar="DIR", help="Draw pictures into this folder (PNG).")
    ] = None,
) -> None:
    """Judge the ways of grounding side by side on a dataset, with every measure, interval and time.

    Methods: per-clip argmax, bag of steps, linear procedure, flow graphs (mined from the training split, or given),
    and the true order: what knowing it would give. All of them read the same costs.

    DATASET parser judges the parsers of procedures instead: --data is the recipe flow graph corpus; CrossTask and
    CaptainCook4D are read from the folders beside it (or -o crosstask=DIR, -o captaincook4d=DIR); -o weights=FILE and
    -o model=NAME are those of the learned parser and of the rules.

    DATASET training trains features with each objective on the datasets in --data (-o datasets=crosstask,salads50),
    with several seeds (-o seeds=3), and judges them on held-out videos; see `train features`.

    DATASET calibration holds the confidences of graphs against the truth on salads50 and crosstask in --data (or
    -o datasets=NAME), with a gamma chosen by cross-validation (-o gammas=1,2,4); --plots draws them.

    DATASET check looks for steps left out and done too late in the recordings of CaptainCook4D in --data, at several
    levels of --noise (-o skip=0, -o repeat=6, -o certainty=0.9, -o seed=0); see `graph2vid check`.
    """
    if plots is not None:
        from graph2vid.evaluate.plots import check_plots

        check_plots(plots)
    named = None if parsers is None else [name.strip() for name in parsers.split(",") if name.strip() != "none"]
    noises = None if noise is None else _numbers(noise)
    if methods is not None:
        from graph2vid.evaluate.methods import check_methods

        check_methods(name.strip() for name in methods.split(","))
    if named is not None:
        from graph2vid.evaluate.parsed import check_parsers

        check_parsers(named)
    reader = dict(reader_option(text) for text in option or ())
    if dataset == PARSER:
        with progress("reading the data") as tell:
            found = judge(context, data, split, named, reader, _command(context), tell)
        show_and_write(found, json, markdown)
        return
    if dataset == TRAINING:
        with progress("reading the data") as tell:
            compared = compare(context, data, reader, workers, _command(context), tell)
        show_and_write(compared, json, markdown)
        return
    if dataset == CALIBRATION:
        with progress("reading the data") as tell:
            judged = judge_confidence(context, data, reader, workers, _command(context), tell)
        show_and_write(judged, json, markdown)
        if plots is not None:
            draw_confidence(judged, plots, markdown)
        return
    if dataset == CHECK:
        with progress("reading the data") as tell:
            checked = judge_check(context, data, noises, reader, _command(context), tell)
        show_and_write(checked, json, markdown)
        return
    if split is not None:
        raise InputError(f"--split belongs to evaluate {PARSER}; the splits of {dataset} are its own (--folds)")
    if beyond is None:
        refuse(context, ["tune_for"], "no prices are learnt; --beyond names features that have some")
    if plots is None:
        refuse(context, ["video"], "no video is drawn; --plots names the folder of pictures")
    asked = None if methods is None else [name.strip().partition(":")[0] for name in methods.split(",")]
    if asked is not None and beyond is None and "graph" not in asked:
        refuse(context, ["min_support", "tolerance"], "they are for mined graphs, and --methods names none")
    if asked is not None and "linear" not in asked:
        refuse(context, ["linear"], "--methods does not name linear")
    from graph2vid.evaluate.engine import Options
    from graph2vid.evaluate.experiment import read_dataset, study
    from graph2vid.evaluate.learnt_costs import check_features
    from graph2vid.evaluate.metric_rows import check_measures

    options = Options(
        preset=preset,
        temperature=temperature,
        drop=drop,
        skip=skip_steps,
        contiguous=contiguous,
        linear=linear,
        min_support=min_support,
        tolerance=tolerance,
        folds=folds,
        limit=limit,
        drop_unmapped=drop_unmapped,
        beyond=() if beyond is None else check_features(beyond),
        tune_for=check_measures(tune_for),
    )
    ready: list[Report] = []
    try:
        with progress("reading the data") as tell:
            report = study(
                lambda **given: read_dataset(dataset, data, skip_bad=skip_bad, **(reader | given)),
                None if methods is None else [name.strip() for name in methods.split(",")],
                options,
                parsers=named,
                command=_command(context),
                noises=noises,
                task=compare_graphs,
                videos=video or (),
                workers=workers,
                skip_bad=skip_bad,
                progress=tell,
                interrupted=ready.append,
            )
    except (KeyboardInterrupt, SystemExit):
        for cut_short in ready:
            _deliver(cut_short, json, markdown)
        raise
    # Tables first, pictures after: whatever becomes of a picture, the tables are kept.
    _deliver(report, json, markdown)
    if plots is not None:
        report = report.drawn(plots, video or ())
        if markdown is not None:
            _write_page(report, markdown, plots)


def _deliver(report: Report, json: Path | None, markdown: Path | None) -> None:
    """Write the tables where they are wanted, and show them."""
    if json is not None:
        from graph2vid._files import write_json

        write_json(json, report.to_json())
    if markdown is not None:
        _write_page(report, markdown, None)
    _show(report)


def _write_page(report: Report, markdown: Path, plots: Path | None) -> None:
    from os.path import relpath

    from graph2vid._files import read_text, write_text

    page = read_text(markdown) if markdown.exists() else ""
    folder = "" if plots is None else Path(relpath(plots, markdown.parent)).as_posix()
    write_text(markdown, report.into_page(page, folder))


def reader_option(text: str) -> tuple[str, Any]:
    """Read NAME=VALUE; words, numbers and lists of them become what they say."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise InputError(f"an option of the reader is NAME=VALUE, not {text!r}")
    values = [_value(part.strip()) for part in value.split(",")]
    return name.strip().replace("-", "_"), values[0] if len(values) == 1 else tuple(values)


def _value(text: str) -> Any:
    words: dict[str, Any] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _numbers(text: str) -> list[float]:
    with suppress(ValueError):
        levels = [float(part) for part in text.split(",")]
        if all(0 <= level < math.inf for level in levels):
            return levels
    raise InputError(f"--noise must be numbers from 0 with commas between them (0.5,1,2), not {text!r}")


def _command(context: typer.Context) -> str:
    """Return the command that repeats the evaluation: every option that was set, but not where results go."""
    words = ["graph2vid", "evaluate"]
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if parameter.name in _NOT_IN_COMMAND or value == parameter.default or value in (None, (), []):
            continue
        if parameter.param_type_name == "argument":
            words.append(str(value))
        elif isinstance(value, bool):
            words.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            for item in value if isinstance(value, list | tuple) else [value]:
                words += [parameter.opts[0], str(item)]
    return shlex.join(words)


def _show(report: Report) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    console.print(f"{report.headline()}.", markup=False)
    for table in report.tables():
        console.print()
        console.print(f"{table.title}. {table.note}".rstrip(), markup=False, style="dim")
        show_table(console, table.columns, table.rows, table.words)
    results = report.results
    if results.problems:
        console.print(f"\npassed over ({len(results.problems)}):", style="yellow")
        for problem in results.problems:
            console.print(f"  {problem}", markup=False, soft_wrap=True)
    for remark in results.dataset.remarks:
        console.print(f"note: {remark}", markup=False, soft_wrap=True, style="dim")
    console.print(f"\n{report.seconds:.0f} s in all, {results.workers} workers", markup=False)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(evaluate)
