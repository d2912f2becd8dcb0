"""``graph2vid evaluate check``: deviations from the procedure found under noise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from graph2vid.cli.evaluate_parser_command import refuse_other_options
from graph2vid.errors import InputError

if TYPE_CHECKING:
    from graph2vid.evaluate.check_experiment import CheckReport
    from graph2vid.evaluate.engine import Progress

CHECK = "check"
_HAS = ("dataset", "data", "noise", "option", "json", "markdown")
_OPTIONS = ("skip", "repeat", "certainty", "seed")


def judge_check(
    context: typer.Context,
    data: Path | None,
    noises: list[float] | None,
    options: dict[str, Any],
    command: str,
    progress: Progress | None,
) -> CheckReport:
    """Judge the order check as the command line says."""
    from graph2vid.evaluate.check_experiment import NOISES, judge_checks

    refuse_other_options(context, CHECK, _HAS, options, _OPTIONS)
    if data is None:
        raise InputError("CaptainCook4D is read from a folder: say which with --data DIR")
    return judge_checks(data, noises=noises or NOISES, **options, command=command, progress=progress)
