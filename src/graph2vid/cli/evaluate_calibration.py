"""``graph2vid evaluate calibration``: are confidences what they say?"""

from __future__ import annotations

from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from graph2vid.cli.evaluate_parser import refuse_other_options
from graph2vid.errors import InputError

if TYPE_CHECKING:
    from graph2vid.evaluate.calibration import CalibrationReport
    from graph2vid.evaluate.engine import Progress

CALIBRATION = "calibration"
_HAS = ("dataset", "data", "option", "workers", "json", "markdown", "plots")
_OPTIONS = ("datasets", "gammas")


def judge_confidence(
    context: typer.Context,
    data: Path | None,
    options: dict[str, Any],
    workers: int | None,
    markdown: Path | None,
    plots: Path | None,
    command: str,
    progress: Progress | None,
) -> CalibrationReport:
    """Judge confidences as the command line says, and draw them where pictures are wanted."""
    from graph2vid.evaluate.calibration import judge_calibration

    refuse_other_options(context, CALIBRATION, _HAS, options, _OPTIONS)
    if data is None:
        raise InputError("the datasets are read from a folder: say which with --data DIR")
    several = {name: value if isinstance(value, tuple) else (value,) for name, value in options.items()}
    report = judge_calibration(data, **several, workers=workers, command=command, progress=progress)
    if plots is not None:
        plots.mkdir(parents=True, exist_ok=True)
        path = plots / f"{CALIBRATION}.png"
        seen_as = path.name if markdown is None else Path(relpath(path, markdown.parent)).as_posix()
        report = report.draw(path, seen_as)
    return report
