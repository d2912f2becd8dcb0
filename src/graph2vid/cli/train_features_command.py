"""``graph2vid train features``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graph2vid._training_options import TrainingDataOptions, TrainingOptions
from graph2vid.cli.derived_options import needing_torch, refuse, with_options
from graph2vid.cli.evaluate_command import reader_option
from graph2vid.cli.outputs import save_json
from graph2vid.cli.progress import progress
from graph2vid.errors import InputError

if TYPE_CHECKING:
    from graph2vid.learn.features import FeatureEvaluation, Processes, Report, State, TrainingRun


@with_options
def features(
    context: typer.Context,
    dataset: Annotated[
        str, typer.Option(metavar="NAME", help="crosstask, salads50, synthetic, …: one whose reader has features.")
    ],
    options: TrainingOptions,
    on: TrainingDataOptions,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder of the dataset (synthetic needs none).")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where checkpoints and logs go; `ground --model` uses it."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the training in --out, if any.")] = False,
    preset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Settings to start from: default, or paper (10 epochs of Adam at 1e-4, smoothmin, match likelihood); "
            "options change them one by one. The defaults shown are those of default.",
        ),
    ] = "default",
    device: Annotated[
        str | None, typer.Option(metavar="NAME", help="cpu, cuda, cuda:1, …; by default a GPU where there is one.")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the results as JSON.")] = None,
) -> None:
    """Train features of clips from procedures, and ground the test videos before and after.

    The losses read no labels: the flow graph teaches. Labels of training videos are read by --validate (which epoch is
    kept), by graphs that are mined and linear orders by mean position (the orders of steps), and by true-order.

    Under torchrun (torchrun --nproc-per-node 2 -m graph2vid train features …) the processes share every batch.
    """
    with needing_torch("training"):
        from graph2vid.learn.features import TrainingRun, processes, with_graphs, with_splits
        from graph2vid.learn.features import preset as settings
    from graph2vid.datasets import read_dataset
    from graph2vid.evaluate import EvaluationOptions

    sources = {name: context.get_parameter_source(name) for name in vars(options)}
    given = [name for name, source in sources.items() if source is not None and source.name != "DEFAULT"]
    options = settings(preset, **{name: getattr(options, name) for name in given})
    if not on.validate:
        refuse(context, ["patience"], "with --no-validate there is no validation to wait for")
    if resume and output is None:
        raise InputError("--resume needs --out, the folder of the training to go on with")
    with progress("reading the data"):
        read = read_dataset(dataset, data, skip_bad=on.skip_bad, **dict(reader_option(text) for text in on.option))
    found, source = with_graphs(with_splits(read, on.folds), on.graph)
    named = [one for one in found.splits if on.split is None or one.name == on.split]
    if not named:
        raise InputError(f"{dataset} has no split {on.split!r}; it has: {', '.join(one.name for one in found.splits)}")
    run = TrainingRun(found, named[0], source, on.validate, EvaluationOptions(tolerance=on.tolerance))
    with processes(device) as group:
        with _progress(run, options.objective, options.epochs, group) as report:
            state = run.train(options, folder=output, resume=resume, group=group, report=report)
        if group.first:
            _tell(run, state, output, json)


@contextmanager
def _progress(run: TrainingRun, objective: str, epochs: int, group: Processes) -> Iterator[Report]:
    """Say what is left out, and yield what shows progress."""
    examples, left_out = run.examples(objective)
    if not group.first:
        yield lambda *_: None
        return
    if left_out:
        typer.secho(f"left out ({len(left_out)}): {'; '.join(left_out)}", err=True, dim=True)
    with progress("videos") as tell:

        def report(epoch: int, videos: int, loss: float) -> None:
            done = (epoch - 1) * len(examples) + videos
            tell(f"epoch {epoch}, loss {loss:.3f}", done, epochs * len(examples))

        yield report


def _tell(run: TrainingRun, state: State, output: Path | None, json: Path | None) -> None:
    from rich.console import Console

    from graph2vid.cli.terminal_table import show_table

    console = Console(highlight=False)
    options, history = state.options, state.history
    typer.echo(
        f"{run.dataset.name}, {run.split.name}: {len(run.parts[0])} videos trained on, {len(run.parts[1])} "
        f"to validate, {len(run.split.test)} to test; objective {options.objective}, graphs {run.source}, "
        f"{state.epoch} of {options.epochs} epochs, the best is {state.best}"
    )
    measured = [name for name in ("acc", "iou") if name in history[0]]
    losses = ["" if row["loss"] is None else f"{row['loss']:.4f}" for row in history]
    epochs = [
        (str(row["epoch"]), loss, *(f"{100 * row[name]:.1f}" for name in measured))
        for row, loss in zip(history, losses, strict=True)
    ]
    show_table(console, ("epoch", "loss", *(f"validation {name}" for name in measured)), epochs, 0)
    if measured and state.epoch and not state.best:
        typer.echo(
            "No epoch was better on the validation videos than the features as given, by more than chance: those are "
            "what is kept. Other settings may help, see “Where learning helps” in the documentation."
        )
    evaluation = run.evaluation("test")
    before, after = ({}, {}) if evaluation is None else (_means(evaluation, None), _means(evaluation, state))
    if evaluation is not None:
        typer.secho("\ntest videos, acc / iou in percent", dim=True)
        rows = [(name, *(_both(means[name]) for means in (before, after))) for name in before]
        show_table(console, ("grounded by", "features as given", "trained"), rows, 1)
    save_json(json, {"history": history, "best": state.best, "test": {"before": before, "after": after}})
    if output is not None:
        typer.echo(f"\nwrote {output}: graph2vid ground … --model {output}")
        if find_spec("tensorboard") is None:
            typer.secho("(the package tensorboard is not installed: the log is log.csv alone)", dim=True)


def _means(evaluation: FeatureEvaluation, state: State | None) -> dict[str, dict[str, Any]]:
    from graph2vid.evaluate import mean_over_videos

    methods = evaluation.results(None if state is None else state.model()).methods
    return {name: mean_over_videos(list(result.metrics.values())) for name, result in methods.items()}


def _both(means: dict[str, float]) -> str:
    return f"{100 * means['acc']:.1f} / {100 * means['iou']:.1f}"
