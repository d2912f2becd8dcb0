"""``graph2vid adapt``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graph2vid._options import EvidenceOptions, ProcedureOptions
from graph2vid.cli.derived_options import refuse, with_options

if TYPE_CHECKING:
    from graph2vid.evidence import TaskModel

_CHOSEN = {
    "general": "nothing was learnt: the general evidence stays",
    "unlabelled": "learnt without labels",
    "labelled": "learnt from labels",
}


@with_options
def adapt(
    context: typer.Context,
    procedure: Annotated[
        Path, typer.Argument(metavar="PROCEDURE", help="A procedure in words, or its flow graph (.json, .flow, .dot).")
    ],
    videos: Annotated[
        list[Path],
        typer.Argument(metavar="VIDEOS…", help="Videos of it, or their captions; the more, the better (from 5 on)."),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The task model to write (.safetensors).")
    ],
    parsing: ProcedureOptions,
    options: EvidenceOptions,
    annotations: Annotated[
        list[Path] | None,
        typer.Option(
            "--annotations",
            metavar="FILE",
            help="What some of the videos show (repeatable): a table with the columns video, step, start, end; one "
            ".csv or .eaf (ELAN) named as its video; a result of `ground`, corrected; or a folder of these. Steps "
            "that are not named are not shown.",
        ),
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write what was learnt, too.")] = None,
) -> None:
    """Learn from your own videos of a procedure, labelled or not, what words and frames say about its steps.

    `ground --adapted FILE` then uses the task model beside the general evidence. From 3 labelled videos on (better: 10)
    it is cross-validated among them, and used only if it is no worse. Frames are learnt from with --frames, which
    `ground` is then given, too.
    """
    from graph2vid.cli.outputs import check_output, save_json
    from graph2vid.cli.progress import progress
    from graph2vid.export import read_video_annotations
    from graph2vid.grounding import adapt as learn
    from graph2vid.text import read_flow

    refuse(
        context,
        ["adapted", "extra_scores", "narration_weight", "offset"],
        "words and frames are learnt from, as they are",
    )
    check_output(output, "-o", ".safetensors")
    flow = read_flow(procedure, parsing.parser)
    known = read_video_annotations(annotations or [], flow, videos)
    with progress("reading the videos") as tell:
        asked = vars(options) | {"adapted": None}
        model = learn(flow, videos, annotations=known, progress=tell, **asked)
    model.save(output)
    save_json(json, {"title": model.title, "steps": list(model.steps), "embedder": model.embedder, **model.about})
    _show(model)
    typer.echo(f"wrote {output}")


def _show(model: TaskModel) -> None:
    about = model.about
    typer.echo(f"{about['videos']} videos, {about['labelled']} of them labelled: {_CHOSEN[about['chosen']]}")
    if "gain" in about:
        mean, error = about["gain"]
        typer.echo(f"cross-validated on the labelled videos: IoU {mean:+.1f} ± {error:.1f} points")
    for number, (step, words) in enumerate(zip(model.steps, about["words"], strict=True), start=1):
        if words:
            typer.echo(f"{number:3}  {step}: {', '.join(words)}")
