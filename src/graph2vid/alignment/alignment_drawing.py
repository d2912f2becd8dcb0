"""Steps over time as an SVG drawing, for notebooks: a row per step, a bar where it happens."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from graph2vid.alignment.alignment_plot import Bar, Span, clock
from graph2vid.flow import FlowGraph, Layout, colour_of
from graph2vid.flow.svg import document, escaped, text_width, words, wrapped

_ROW, _BAR = 24.0, 15.0
_TRACK = 520.0  # width of the bars' ground
_TEXT, _SMALL = 13.0, 11.0
_TEXT_WIDTH = 280.0
_MOST_ROWS = 60
_ROUND_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
_STYLES = (
    ".g2v-flow .track { fill: #eef1f4; } .g2v-flow .tick { stroke: #cbd5e1; }",
    ".g2v-flow .track { fill: #1e293b; } .g2v-flow .tick { stroke: #475569; }",
)


def lanes_svg(flow: FlowGraph, bars: Sequence[Bar], span: Span, note: str) -> str:
    """Return the drawing, which follows the reader's light or dark scheme.

    Parameters
    ----------
    flow : FlowGraph
        The procedure.
    bars : sequence of Bar
        What is shown when.
    span : Span
        What the drawing covers.
    note : str
        A line under the title.
    """
    shown = list(dict.fromkeys(bar.step for bar in sorted(bars, key=lambda bar: bar.start)))
    missing = [step for step in range(len(flow)) if step not in set(shown)]
    rows = [*shown, *missing][:_MOST_ROWS]
    names = [wrapped(f"{step + 1}  {flow.texts[step] or flow.ids[step]}", _TEXT, _TEXT_WIDTH, 1)[0] for step in rows]
    left = max((text_width(name, _TEXT) for name in names), default=0.0) + 12.0

    def x(at: float) -> float:
        return left + _TRACK * (at - span.start) / (span.end - span.start)

    body = list(_axis(span, x, len(rows)))
    for place, (step, name) in enumerate(zip(rows, names, strict=True)):
        top = place * _ROW + (_ROW - _BAR) / 2
        kind = "text" if step in shown else "note"
        body.append(words(kind, left - 12.0, top + _BAR - 3, _TEXT, name, 'text-anchor="end"'))
        body.append(f'<rect class="track" x="{left:.1f}" y="{top:.1f}" width="{_TRACK:g}" height="{_BAR:g}" rx="3"/>')
        if step not in shown:
            extra = 'text-anchor="middle" font-style="italic"'
            body.append(words("note", left + _TRACK / 2, top + _BAR - 3.5, _SMALL, "not shown", extra))
        body += [_bar(bar, flow, span, x, top) for bar in bars if bar.step == step]
    height = len(rows) * _ROW + 20.0
    if len(rows) < len(flow):
        body.append(words("note", left, height + 12, _SMALL, f"… and {len(flow) - len(rows)} more steps"))
        height += 16.0
    layout = Layout(left + _TRACK + 16.0, height, (), {})
    title = flow.title or "Steps over time"
    return document(layout, body, name="Steps over time", title=title, note=note, styles=_STYLES, dark=True).svg


def _bar(bar: Bar, flow: FlowGraph, span: Span, x: Callable[[float], float], top: float) -> str:
    begins, ends = (clock(at) if span.unit == "time" else f"{at:g}" for at in (bar.start, bar.end))
    title = escaped(f"{bar.step + 1}: {begins}–{ends}" + (f", {bar.sure:.0%} sure" if bar.sure < 1 else ""))
    width = max(x(bar.end) - x(bar.start), 1.5)
    return (
        f'<rect x="{x(bar.start):.1f}" y="{top:.1f}" width="{width:.1f}" height="{_BAR:g}" rx="2" '
        f'fill="{colour_of(bar.step)}" fill-opacity="{0.3 + 0.7 * bar.sure:.2f}"><title>{title}</title></rect>'
    )


def _axis(span: Span, x: Callable[[float], float], rows: int) -> list[str]:
    """Draw about six ticks, at round times."""
    rough = (span.end - span.start) / 6
    power = 10 ** math.floor(math.log10(max(rough, 1)))
    round_times = _ROUND_SECONDS if span.unit == "time" else [power, 2 * power, 5 * power, 10 * power]
    gap = next((one for one in round_times if one >= rough), 7200 * math.ceil(rough / 7200))
    bottom = rows * _ROW
    drawn = []
    for number in range(math.ceil(span.start / gap), math.floor(span.end / gap) + 1):
        at = number * gap
        label = clock(at) if span.unit == "time" else f"{at:g}"
        drawn.append(f'<path class="tick" d="M{x(at):.1f} 0V{bottom + 3:.1f}"/>')
        drawn.append(words("note", x(at), bottom + 16, _SMALL, label, 'text-anchor="middle"'))
    return drawn
