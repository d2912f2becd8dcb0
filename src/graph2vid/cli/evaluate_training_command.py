"""``graph2vid evaluate training``: what features learn from each objective."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from graph2vid.cli.evaluate_parser_command import refuse_other_options
from graph2vid.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from graph2vid.evaluate.engine import Progress
    from graph2vid.learn.features.comparison_report import TrainingReport

TRAINING = "training"
_HAS = ("dataset", "data", "option", "workers", "json", "markdown")
_OPTIONS = ("datasets", "seeds", "epochs")


def compare(
    context: typer.Context,
    data: Path | None,
    options: dict[str, Any],
    workers: int | None,
    command: str,
    progress: Progress | None,
) -> TrainingReport:
    """Compare the objectives as the command line says."""
    refuse_other_options(context, TRAINING, _HAS, options, _OPTIONS)
    if data is None:
        raise InputError("the datasets are read from a folder: say which with --data DIR")
    try:
        from graph2vid.learn.features.comparison_report import TrainingReport
        from graph2vid.learn.features.objective_comparison import compare_objectives
    except ModuleNotFoundError as error:
        if error.name in ("torch", "safetensors"):
            raise MissingDependencyError("training needs torch", extra="learn") from error
        raise
    named = options.pop("datasets", None)
    datasets = [named] if isinstance(named, str) else named
    found, seconds = compare_objectives(data, datasets, **options, workers=workers, progress=progress)
    return TrainingReport(found, command, seconds)
