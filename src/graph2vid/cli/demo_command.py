"""``graph2vid demo``."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from graph2vid.sample import Outcome

_NEEDED = {"av": "media", "faster_whisper": "media", "wordllama": "text"}
_NEEDED_SILENT = {"av": "media", "rapidocr": "ocr", "onnxruntime": "ocr", "wordllama": "text"}


def demo(
    silent: Annotated[
        bool, typer.Option("--silent", help="Ground a silent video by the text in its picture (extra ocr).")
    ] = False,
    save: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the samples' files there, to play with.")
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write a page to look at.")] = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the metrics as JSON.")] = None,
) -> None:
    """Ground the bundled sample: a recipe in words and a narrated video of it, which keeps to another order.

    Its flow graph is found in its words, its speech is recognised, and the result is set beside the truth. Where what
    that needs is not installed, scores of a made-up video are grounded instead. --silent takes another video of the
    same recipe: nobody speaks, and captions are written into the picture.
    """
    from rich.console import Console

    from graph2vid.cli.outputs import save_json
    from graph2vid.errors import MissingDependencyError, how_to_install
    from graph2vid.grounding import print_timeline
    from graph2vid.sample import ground_sample, load

    if save is not None:
        _save(save)
    console = Console(highlight=False)
    needed = _NEEDED_SILENT if silent else _NEEDED
    missing = sorted({extra for package, extra in needed.items() if not _is_installed(package)})
    if missing and silent:
        raise MissingDependencyError("the silent video is grounded by the text in it", extra=",".join(missing))
    if missing:
        hint = how_to_install(",".join(missing))
        console.print(f"scores are grounded; for the narrated video: {hint}", markup=False)
        outcomes = ground_sample(load())
    else:
        outcomes = _from_silent_video(console) if silent else _from_video(console)
    if report is not None:
        _write_report(report, outcomes)
        console.print(f"wrote {report}", markup=False, soft_wrap=True, style="dim")
    console.print()
    rows = [{"method": one.method, "near": one.near, "of": len(one.truth), **one.metrics} for one in outcomes]
    save_json(json, {"format": "graph2vid-demo", "version": 2, "rows": rows})
    print_timeline(outcomes[0].grounding, console)
    console.print()
    console.print(_table(outcomes))


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ImportError:
        return False


def _from_video(console: Console) -> tuple[Outcome, ...]:
    from graph2vid.cli.progress import progress
    from graph2vid.evidence import Cache, acquire
    from graph2vid.sample import ground_narrated_sample, load_narrated
    from graph2vid.text import parse

    sample = load_narrated()
    found = parse(sample.files.text)
    steps, links = len(found.flow), len(found.flow.edges)
    console.print(f"{sample.files.text.name}: {steps} steps, {links} links ({found.parser} parser)", style="dim")
    with progress("loading") as tell:
        transcript, _ = acquire(sample.files.video, cache=Cache(), progress=tell)
    words = sum(len(cue.text.split()) for cue in transcript.cues)
    console.print(f"{sample.files.video.name}: {words} words by {transcript.source}", style="dim")
    return ground_narrated_sample(sample, found.flow, transcript)


def _from_silent_video(console: Console) -> tuple[Outcome, ...]:
    from graph2vid.cli.progress import progress
    from graph2vid.evidence import Cache, EvidenceOptions, acquire
    from graph2vid.sample import ground_silent_sample, load_silent
    from graph2vid.text import parse

    sample = load_silent()
    found = parse(sample.text)
    steps, links = len(found.flow), len(found.flow.edges)
    console.print(f"{sample.text.name}: {steps} steps, {links} links ({found.parser} parser)", style="dim")
    with progress("loading") as tell:
        transcript, _ = acquire(
            sample.files.video, options=EvidenceOptions(on_screen="on"), cache=Cache(), progress=tell
        )
    said = sum(len(cue.text.split()) for cue in transcript.cues if not cue.kind)
    kinds = Counter(cue.kind for cue in transcript.cues if cue.kind)
    counted = ", ".join(f"{count} × {kind}" for kind, count in kinds.most_common())
    console.print(f"{sample.files.video.name}: {said} words are said; written in the picture: {counted}", style="dim")
    return ground_silent_sample(sample, found.flow, transcript)


def _write_report(path: Path, outcomes: tuple[Outcome, ...]) -> None:
    """Write the page that sets both ways of grounding beside the truth."""
    from graph2vid.report import write_report

    graph, linear = outcomes
    truth = [(step, start, end) for step, (start, end) in graph.truth.items()]
    write_report(path, graph.grounding, compare={"Order as written": linear.grounding, "Truth": truth})


def _save(folder: Path) -> None:
    from graph2vid._files import write_bytes
    from graph2vid.errors import Graph2VidError
    from graph2vid.sample import FILES, NarratedFiles, SilentFiles

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Graph2VidError(f"cannot make the folder {folder}: {error.strerror}") from error
    for file in (*FILES, *NarratedFiles().all, *SilentFiles().all):
        write_bytes(folder / file.name, file.read_bytes())


def _table(outcomes: tuple[Outcome, ...]) -> Table:
    """Return the table that sets each way of grounding beside the truth, steps in the order of the video."""
    from rich.table import Table

    from graph2vid.grounding import format_time
    from graph2vid.sample import NEAR

    flow, truth = outcomes[0].grounding.flow, outcomes[0].truth
    names = {"graph": "any legal order", "linear": "the order as written"}
    table = Table(box=None, pad_edge=False, show_footer=True)
    table.add_column("step", footer=f"begins within {NEAR:g} s of the truth")
    table.add_column("truth", justify="right", no_wrap=True)
    for outcome in outcomes:
        footer = f"{outcome.near} of {len(truth)}"
        table.add_column(names[outcome.method], justify="right", no_wrap=True, footer=footer)
    shown = sorted(truth, key=lambda step: truth[step])
    for step in [*shown, *(step for step in range(len(flow)) if step not in truth)]:
        span = "not shown" if step not in truth else "–".join(map(format_time, truth[step]))
        name = flow.ids[step] if not flow.ids[step].isdecimal() else flow.texts[step]
        table.add_row(name, span, *(_verdict(outcome, step) for outcome in outcomes))
    return table


def _verdict(outcome: Outcome, step: int) -> str:
    from graph2vid.sample import NEAR

    off = outcome.distance(step)
    if off is not None:
        style = "green" if off <= NEAR else "yellow" if off <= 10 else "red"
        return f"[{style}]{off:.1f} s off[/]"
    if outcome.span(step) is None:
        return "[green]not shown[/]" if step not in outcome.truth else "[red]missed[/]"
    return "[red]not there[/]"
