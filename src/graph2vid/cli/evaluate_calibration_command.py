"""``graph2vid evaluate calibration``: are confidences what they say?"""

from __future__ import annotations

from dataclasses import replace
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from graph2vid.cli.evaluate_parser_command import refuse_other_options
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
    command: str,
    progress: Progress | None,
) -> CalibrationReport:
    """Judge confidences as the command line says."""
    from graph2vid.evaluate.calibration import judge_calibration

    refuse_other_options(context, CALIBRATION, _HAS, options, _OPTIONS)
    if data is None:
        raise InputError("the datasets are read from a folder: say which with --data DIR")
    several = {name: value if isinstance(value, tuple) else (value,) for name, value in options.items()}
    return judge_calibration(data, **several, workers=workers, command=command, progress=progress)


def draw_confidence(report: CalibrationReport, plots: Path, markdown: Path | None) -> None:
    """Draw the confidences, and put the picture into the page of results, if there is one."""
    from graph2vid._files import read_text, write_text
    from graph2vid.evaluate.plots import is_drawn

    path = plots / f"{CALIBRATION}.png"
    if is_drawn(path, report.draw) and markdown is not None:
        seen_as = Path(relpath(path, markdown.parent)).as_posix()
        write_text(markdown, replace(report, picture=seen_as).into_page(read_text(markdown)))
