"""``graph2vid train calibration``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graph2vid._evaluation_options import CalibrationTrainingOptions
from graph2vid.cli.derived_options import with_options
from graph2vid.cli.progress import progress


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
