"""``graph2vid train features``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graph2vid.cli.evaluate_command import reader_option
from graph2vid.cli.given import refuse
from graph2vid.cli.progress import progress
from graph2vid.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from graph2vid.learn.features.checkpoint import State
    from graph2vid.learn.features.feature_metrics import GroundingJudge
    from graph2vid.learn.features.loop import Report
    from graph2vid.learn.features.processes import Processes
    from graph2vid.learn.features.training_run import Course


def features(
    context: typer.Context,
    dataset: Annotated[
        str, typer.Option(metavar="NAME", help="crosstask, salads50, synthetic, …: one whose reader has features.")
    ],
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder of the dataset (synthetic needs none).")
    ] = None,
    objective: Annotated[
        str, typer.Option(help="What is learnt from: bag, linear, graph or true-order; each with the clustering loss.")
    ] = "graph",
    output: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where checkpoints and logs go; `ground --model` uses it."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the training in --out, if any.")] = False,
    split: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Whose training videos train and test videos test; the first."),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=0, help="Deal the videos into so many folds for splits; 0: the dataset's own.")
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(metavar="SOURCE", help="Flow graphs: expert, manual, mined, rules, …; else the best known."),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(min=0.0, max=0.5, help="Mined graphs: the share of the videos that may break an edge.")
    ] = 0.0,
    preset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Settings to start from: default, or paper (10 epochs of Adam at 1e-4, smoothmin, match likelihood); "
            "options change them one by one. Below are the values of default.",
        ),
    ] = "default",
    epochs: Annotated[int | None, typer.Option(min=0, help="How often every video is seen at most (30).")] = None,
    lr: Annotated[float | None, typer.Option(help="The learning rate of Adam (0.003).")] = None,
    weight_decay: Annotated[float | None, typer.Option(help="Of Adam (0.0001).")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Videos at once, of all processes together.")] = 16,
    gamma: Annotated[float | None, typer.Option(help="How soft the minimum over alignments is (0.3).")] = None,
    smoothing: Annotated[str | None, typer.Option(help="softmin or smoothmin (softmin).")] = None,
    contiguous: Annotated[
        bool | None,
        typer.Option(
            "--contiguous/--no-contiguous",
            help="While training, each step in one unbroken segment, or with background inside it (unbroken).",
        ),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(
            help="Match costs: balanced, likelihood (the paper's; may collapse), likelihood_bg or raw (balanced)."
        ),
    ] = None,
    drop: Annotated[
        str | None,
        typer.Option(
            metavar="COST", help="Of background: percentile:N of the match costs, or a number (percentile:30)."
        ),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="Divides similarities; by default 0.1 for cosines and 1 for scores.")
    ] = None,
    pool_temperature: Annotated[float | None, typer.Option(help="Of the clustering loss (1).")] = None,
    clustering: Annotated[float, typer.Option(help="The weight of the clustering loss.")] = 1.0,
    hidden: Annotated[int | None, typer.Option(min=1, help="Width of the hidden layer; that of the features.")] = None,
    every: Annotated[int, typer.Option(min=1, help="Train on every N-th clip, each time with another one first.")] = 1,
    patience: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Stop after so many epochs in which neither the training loss fell nor the validation was better; "
            "0: never (3).",
        ),
    ] = None,
    validate: Annotated[
        bool,
        typer.Option(
            help="Keep one of eight training videos, and choose the best epoch by their labels. Without, no label is "
            "read to choose it, and the last epoch counts."
        ),
    ] = True,
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives other features, the same seed the same.")] = 0,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1, …; by default a GPU where there is one.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="An option of the dataset's reader.")
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Pass over what cannot be used.")] = False,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the figures as JSON.")] = None,
) -> None:
    """Train features of clips from procedures, and ground the test videos before and after.

    The losses read no labels: the flow graph teaches. Labels of training videos are read by --validate (which epoch is
    kept), by graphs that are mined and linear orders by mean position (the orders of steps), and by true-order.

    Under torchrun (torchrun --nproc-per-node 2 -m graph2vid train features …) the processes share every batch.
    """
    try:
        from graph2vid.learn.features.options import preset as settings
        from graph2vid.learn.features.processes import processes
        from graph2vid.learn.features.training_run import Course, with_graphs, with_splits
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("torch", "safetensors"):
            raise MissingDependencyError("training needs torch", extra="learn") from error
        raise
    from graph2vid.evaluate.engine import Options
    from graph2vid.evaluate.experiment import read_dataset

    options = settings(
        preset,
        objective=objective,
        epochs=epochs,
        batch=batch,
        rate=lr,
        weight_decay=weight_decay,
        gamma=gamma,
        smoothing=smoothing,
        contiguous=contiguous,
        match=match,
        drop=drop,
        temperature=temperature,
        pool_temperature=pool_temperature,
        clustering=clustering,
        hidden=hidden,
        every=every,
        patience=patience,
        seed=seed,
    )
    if not validate:
        refuse(context, ["patience"], "with --no-validate there is no validation to wait for")
    if resume and output is None:
        raise InputError("--resume needs --out, the folder of the training to go on with")
    with progress("reading the data"):
        read = read_dataset(dataset, data, skip_bad=skip_bad, **dict(reader_option(text) for text in option or ()))
    found, source = with_graphs(with_splits(read, folds), graph)
    named = [one for one in found.splits if split is None or one.name == split]
    if not named:
        raise InputError(f"{dataset} has no split {split!r}; it has: {', '.join(one.name for one in found.splits)}")
    course = Course(found, named[0], source, validate, Options(tolerance=tolerance))
    with processes(device) as group:
        with _progress(course, options.objective, options.epochs, group) as report:
            state = course.train(options, folder=output, resume=resume, group=group, report=report)
        if group.first:
            _tell(course, state, output, json)


@contextmanager
def _progress(course: Course, objective: str, epochs: int, group: Processes) -> Iterator[Report]:
    """Say what is left out, and yield what shows progress."""
    from rich.console import Console

    stderr = Console(stderr=True, highlight=False)
    examples, left_out = course.examples(objective)
    if left_out and group.first:
        stderr.print(f"left out ({len(left_out)}): {'; '.join(left_out)}", markup=False, soft_wrap=True, style="dim")
    if not group.first:
        yield lambda *_: None
        return
    with progress("videos") as tell:

        def report(epoch: int, videos: int, loss: float) -> None:
            done = (epoch - 1) * len(examples) + videos
            tell(f"epoch {epoch}, loss {loss:.3f}", done, epochs * len(examples))

        yield report


def _tell(course: Course, state: State, output: Path | None, json: Path | None) -> None:
    from rich.console import Console

    from graph2vid._files import write_json
    from graph2vid.cli.terminal_table import show_table

    console = Console(highlight=False)
    options, history = state.options, state.history
    console.print(
        f"{course.dataset.name}, {course.split.name}: {len(course.parts[0])} videos trained on, {len(course.parts[1])} "
        f"to validate, {len(course.split.test)} to test; objective {options.objective}, graphs {course.source}, "
        f"{state.epoch} of {options.epochs} epochs, the best is {state.best}",
        markup=False,
        soft_wrap=True,
    )
    measured = [name for name in ("acc", "iou") if name in history[0]]
    show_table(
        console,
        ("epoch", "loss", *(f"validation {name}" for name in measured)),
        tuple(
            (
                str(row["epoch"]),
                "" if row["loss"] is None else f"{row['loss']:.4f}",
                *(f"{100 * row[name]:.1f}" for name in measured),
            )
            for row in history
        ),
        0,
    )
    if measured and state.epoch and not state.best:
        console.print(
            "No epoch was better on the validation videos than the features as given, by more than chance: those are "
            "what is kept. Other settings may help, see “Where learning helps” in the documentation.",
            soft_wrap=True,
        )
    judge = course.judge("test")
    before, after = ({}, {}) if judge is None else (_figures(judge, None), _figures(judge, state))
    if judge is not None:
        console.print()
        console.print("test videos, acc / iou in percent", style="dim")
        rows = [(name, *(_both(figures[name]) for figures in (before, after))) for name in before]
        show_table(console, ("grounded by", "features as given", "trained"), tuple(rows), 1)
    if json is not None:
        write_json(json, {"history": history, "best": state.best, "test": {"before": before, "after": after}})
    if output is not None:
        console.print(f"\nwrote {output}: graph2vid ground … --model {output}", markup=False, soft_wrap=True)


def _figures(judge: GroundingJudge, state: State | None) -> dict[str, dict[str, Any]]:
    from graph2vid.evaluate.intervals import mean_over_videos

    runs = judge.results(None if state is None else state.model()).runs
    return {name: mean_over_videos(list(run.measures.values())) for name, run in runs.items()}


def _both(figures: dict[str, float]) -> str:
    return f"{100 * figures['acc']:.1f} / {100 * figures['iou']:.1f}"
