"""A grounding drawn in the terminal: one row per step, a bar where it happens."""

from __future__ import annotations

import textwrap
from itertools import accumulate
from statistics import fmean
from typing import TYPE_CHECKING

from graph2vid.flow import PALETTE as PALETTE
from graph2vid.flow import colour_of, plain
from graph2vid.grounding.grounding_result import GroundedSegment, Grounding
from graph2vid.grounding.times import format_time

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_LEAST_BAR = 12
_MOST_PLACES = 5  # that are named
_WIDEST = 1000  # columns; $COLUMNS may say anything


def print_timeline(grounding: Grounding, console: Console | None = None) -> None:
    """Draw the grounding on a console (stdout by default) in the width it has."""
    from rich.console import Console

    console = console or Console(highlight=False)
    drawing = draw_timeline(grounding, min(console.width, _WIDEST), ascii_only=console.options.ascii_only)
    console.print(drawing, soft_wrap=True, end="")


def draw_timeline(grounding: Grounding, width: int = 80, *, ascii_only: bool = False) -> Text:
    """Return the drawing as rich text, no line wider than ``width`` columns (from 40 on).

    Rows stand in the order of the video: the number of the step (its place in the procedure), its id where that is
    something else, text, bar, start–end, confidence; what is doubtful is paler and has a question mark. Then come
    background, the steps that are not shown (with the probability of that), the order that was found, if it differs
    from that of the procedure, and edges of the flow graph that fight the evidence.
    """
    from rich.text import Text

    flow = grounding.flow
    dash, times, full, gap, pale = ("-", "x", "#", ".", "?") if ascii_only else ("–", "×", "█", "░", "▒")
    shown = {step: grounding.segments_of(step) for step in grounding.order}
    spans = {step: f"{format_time(runs[0].start)}{dash}{format_time(runs[-1].end)}" for step, runs in shown.items()}
    spans |= {step: f"{spans[step]} {times}{len(runs)}" for step, runs in shown.items() if len(runs) > 1}
    background = _gaps(grounding)
    columns = _Columns(
        width,
        ids=["" if step.id in (str(at), step.text) else plain(step.id) for at, step in enumerate(flow.steps, start=1)],
        texts=[plain(step.text) or plain(step.id) for step in flow.steps],
        spans=[*spans.values(), "not shown"],
    )
    drawing = Text(no_wrap=True, end="")
    if flow.title:
        drawing.append(_cropped(plain(flow.title), width) + "\n", style="bold")
    facts = (
        f"{grounding.count}, {format_time(grounding.offset)}{dash}{format_time(grounding.end)} in "
        f"{len(grounding.labels)} clips of {grounding.clip_seconds:g} s, cost {grounding.cost:.6g}"
    )
    drawing.append(_cropped(facts, width) + "\n", style="dim")
    if columns.id_width:
        drawing.append(columns.head() + "\n", style="dim")
    for step, runs in shown.items():
        doubtful = all(run.is_doubtful for run in runs)
        sign, mark = (pale, "?") if doubtful else (full, "")
        drawing.append(columns.name(step), style="dim" if doubtful else "")
        drawing.append(columns.bar([(run.start, run.end) for run in runs], grounding, sign), style=colour_of(step))
        drawing.append(columns.times(spans[step], _confidence(runs) + mark) + "\n")
    if background:
        share = sum(end - start for start, end in background) / grounding.duration
        drawing.append(columns.label("background"), style="dim")
        drawing.append(columns.bar(background, grounding, gap), style="dim")
        drawing.append(columns.times("", f"{share:.0%}") + "\n", style="dim")
    for step in grounding.not_shown:
        drawing.append(columns.name(step) + " " * columns.bar_width, style="dim")
        absent = f"{grounding.absent[step]:.0%}" if grounding.absent else ""
        drawing.append(columns.times("not shown", absent) + "\n", style="yellow")
    if list(grounding.order) != sorted(grounding.order):
        found = (" > " if ascii_only else " → ").join(str(step + 1) for step in grounding.order)
        drawing.append(textwrap.fill(found, width, initial_indent="order found ", subsequent_indent=" " * 12) + "\n")
    if unsure := grounding.count.doubtful:
        told = ", ".join(str(step + 1) for step in unsure)
        drawing.append(textwrap.fill(told, width, initial_indent="doubtful (?) ", subsequent_indent=" " * 13) + "\n")
    for question in grounding.questions:
        drawing.append(textwrap.fill(f"{plain(question)} (--relax grounds without)", width) + "\n", style="yellow")
    for place in sorted(grounding.elsewhere, key=lambda one: -one.gain)[:_MOST_PLACES]:
        drawing.append(textwrap.fill(plain(place.question(flow)), width) + "\n", style="yellow")
    if grounding.is_uncalibrated:
        drawing.append("confidence: uncalibrated\n", style="dim")
    return drawing


class _Columns:
    """How wide each column is, and cells cut or filled to that width."""

    def __init__(self, width: int, ids: list[str], texts: list[str], spans: list[str]) -> None:
        from rich.cells import cell_len

        width = max(width, 40)
        self.ids, self.texts = ids, texts
        self.number_width = len(str(len(ids)))
        self.id_width = min(max(*map(cell_len, ids), 2), 12, width // 5) if any(ids) else 0
        self.span_width = max(map(len, spans))
        names = self.number_width + (1 + self.id_width if self.id_width else 0)
        left = width - names - self.span_width - 5 - 3  # confidence " 100%", a blank between columns
        self.text_width = min(max(map(cell_len, texts)), left - _LEAST_BAR, max(left * 2 // 5, 10))
        if self.text_width < 0 or (self.text_width < 6 and self.id_width):  # too little to read
            self.text_width = -1  # nor a blank before it
        self.bar_width = max(left - self.text_width - 1, 4)
        self.name_width = names + self.text_width + 1

    def head(self) -> str:
        step = " step" if self.text_width > 0 else ""
        return f"{'#':>{self.number_width}} {_cropped('id', self.id_width, fill=True)}{step}".rstrip()

    def name(self, step: int) -> str:
        named = f" {_cropped(self.ids[step], self.id_width, fill=True)}" if self.id_width else ""
        text = f" {_cropped(self.texts[step], self.text_width, fill=True)}" if self.text_width > 0 else ""
        return f"{step + 1:>{self.number_width}}{named}{text} "

    def label(self, text: str) -> str:
        return _cropped(text, self.name_width, fill=True) + " "

    def times(self, span: str, confidence: str) -> str:
        return f" {span:>{self.span_width}} {confidence:>4}".rstrip()

    def bar(self, spans: list[tuple[float, float]], grounding: Grounding, sign: str) -> str:
        """Return the bar: ``sign`` where one of ``spans`` (seconds) is, at least once for each."""
        cells = [" "] * self.bar_width
        scale = self.bar_width / grounding.duration
        for start, end in spans:
            first = min(round((start - grounding.offset) * scale), self.bar_width - 1)
            stop = max(round((end - grounding.offset) * scale), first + 1)
            cells[first:stop] = sign * (min(stop, self.bar_width) - first)
        return "".join(cells)


def _confidence(runs: tuple[GroundedSegment, ...]) -> str:
    """Return the mean confidence of the segments of one step, weighted by their lengths, in percent."""
    sure = {run: run.confidence for run in runs if run.confidence is not None}
    return f"{fmean(sure.values(), [run.duration for run in sure]):.0%}" if sure else ""


def _gaps(grounding: Grounding) -> list[tuple[float, float]]:
    """Return the spans in seconds where no step is shown."""
    ends = accumulate((one.end for one in grounding.segments), max, initial=grounding.offset)
    starts = [*(one.start for one in grounding.segments), grounding.end]
    return [(at, start) for at, start in zip(ends, starts, strict=True) if start > at]


def _cropped(text: str, width: int, *, fill: bool = False) -> str:
    """Cut the text to ``width`` columns, or also fill it to that width."""
    from rich.cells import cell_len, set_cell_size

    shown = text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"
    return set_cell_size(shown, width) if fill else shown
