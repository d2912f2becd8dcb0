"""Alignments as figures for papers: steps over time, rows to compare, and costs with the path on them; and steps over
time as an SVG drawing, for notebooks.

What is drawn here has a span of time and a unit, so that groundings, in seconds, are drawn by the same functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid.alignment.alignment_result import runs_of
from graph2vid.errors import InputError
from graph2vid.flow import BACKGROUND_COLOUR, FlowGraph, Layout, colour_of, hatch_of, ink_on, plain
from graph2vid.flow.flow_plot import DIM, FAINT, INK, new_axes, plainly, shown
from graph2vid.flow.svg import document, escaped, text_width, words, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST = 44  # signs of a text beside the axes

# Of the SVG drawing.
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


@dataclass(frozen=True)
class Bar:
    """A step from ``start`` to ``end``; ``sure`` (0 … 1) is how opaque it is."""

    step: int
    start: float
    end: float
    sure: float = 1.0


@dataclass(frozen=True)
class Span:
    """What the horizontal axis covers, and in what unit."""

    start: float
    end: float
    unit: str = "clip"


def bars_of(labels: NDArray[np.int64]) -> list[Bar]:
    """Return the segments."""
    return [Bar(step, start, stop) for step, start, stop in runs_of(labels) if step >= 0]


def plot_lanes(flow: FlowGraph, bars: Sequence[Bar], span: Span, ax: Axes | None = None) -> Axes:
    """Draw a row per step, a bar where it happens; rows stand in the order of the video, what is not shown below."""
    first = {bar.step: bar.start for bar in reversed(bars)}
    rows = sorted(range(len(flow)), key=lambda step: (step not in first, first.get(step, 0.0), step))
    axes = new_axes(ax, (9.0, 1.1 + 0.32 * len(rows)))
    place = {step: at for at, step in enumerate(rows)}
    for step, at in place.items():
        axes.barh(at, span.end - span.start, left=span.start, height=0.68, color=BACKGROUND_COLOUR, linewidth=0)
        if step not in first:
            middle = (span.start + span.end) / 2
            axes.text(middle, at, "not shown", color=DIM, fontsize=8, ha="center", va="center", style="italic")
    for bar in bars:
        _draw_bar(axes, bar, place[bar.step], 0.68)
    axes.set_yticks(range(len(rows)), [numbered(flow, step) for step in rows])
    _finish(axes, span, flow.title)
    for tick in axes.get_yticklabels()[len(first) :]:
        tick.set_color(DIM)
    return axes


def plot_rows(
    flow: FlowGraph, rows: Mapping[str, Sequence[Bar]], span: Span, ax: Axes | None = None, *, alone: bool = False
) -> Axes:
    """Draw one segmentation per row (graph, linear, truth, …), steps in their colours, with a legend below.

    ``alone`` says that the figure of ``ax`` holds nothing else, as a new one does.
    """
    there = sorted({bar.step for bars in rows.values() for bar in bars})
    columns = 2 if any(len(_name(flow, step)) > 36 for step in there) else 3
    legend_height = 0.2 * -(-len(there) // columns)
    axes = new_axes(ax, (9.0, 0.9 + 0.46 * len(rows) + legend_height))
    for at, bars in enumerate(rows.values()):
        axes.barh(at, span.end - span.start, left=span.start, height=0.74, color=BACKGROUND_COLOUR, linewidth=0)
        for bar in bars:
            _draw_bar(axes, bar, at, 0.74)
            _number(axes, bar, at, span)
    axes.set_yticks(range(len(rows)), [shown(name) for name in rows])
    if there:
        from matplotlib.patches import Patch

        handles = [
            Patch(facecolor=colour_of(step), hatch=hatch_of(step), edgecolor="white", label=numbered(flow, step))
            for step in there
        ]
        style: dict[str, Any] = {"frameon": False, "fontsize": 8, "handlelength": 1.2}
        if ax is None or alone:
            axes.figure.legend(handles=handles, loc="outside lower left", ncols=columns, **style)
        else:  # below the axes, in as many columns as are about as wide as they are
            across = max(int(_inches(axes) / 3), 1)
            axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, -0.3), ncols=across, **style)
    return _finish(axes, span, flow.title)


def plot_matrix(
    flow: FlowGraph,
    values: ArrayLike,
    labels: NDArray[np.int64],
    span: Span,
    ax: Axes | None = None,
    *,
    meaning: str,
    high_is_good: bool,
    background: ArrayLike | None = None,
) -> Axes:
    """Draw a matrix of steps × clips as a heat map, and the path of an alignment on it.

    Parameters
    ----------
    flow : FlowGraph
        The procedure, of K steps.
    values : array [K, N]
        What is drawn; infinite entries are left grey.
    labels : int64 [N]
        The step of each clip, or -1.
    span : Span
        What the clips cover.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    meaning : str
        What the values are, for the colour bar.
    high_is_good : bool
        Whether high values speak for a step; the dark end of the colours does.
    background : array [N] or number, optional
        A row for background below the steps.
    """
    matrix = np.array(values, dtype=np.float64)
    if matrix.shape != (len(flow), len(labels)):
        wanted = f"{len(flow)} steps × {len(labels)} clips"
        raise InputError(f"the matrix has the shape {matrix.shape}, which must be {wanted}")
    names = [numbered(flow, step) for step in range(len(flow))]
    if background is not None:
        matrix = np.vstack([matrix, np.broadcast_to(np.asarray(background, dtype=np.float64), len(labels))])
        names.append("background")
    finite = np.ma.masked_invalid(matrix)
    axes = new_axes(ax, (9.0, 1.2 + 0.32 * len(names)))
    axes.set_facecolor("#c9ccd3")
    extent, colours = (span.start, span.end, len(names) - 0.5, -0.5), "Blues" if high_is_good else "Blues_r"
    picture = axes.imshow(finite, aspect="auto", interpolation="nearest", cmap=colours, extent=extent)
    _draw_path(axes, labels, span, len(flow), background is not None)
    axes.set_yticks(range(len(names)), names)
    if background is not None:
        axes.axhline(len(flow) - 0.5, color="white", linewidth=2)
    bar = axes.figure.colorbar(picture, ax=axes, pad=0.015, fraction=0.025)
    bar.set_label(meaning, color=INK)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=INK, length=0)
    _finish(axes, span, flow.title).grid(False)
    if ax is None:
        axes.get_figure(root=True).draw_without_rendering()  # type: ignore[union-attr]  # else the label of the bar may be cut off
    return axes


def _draw_path(axes: Axes, labels: NDArray[np.int64], span: Span, n_steps: int, with_background: bool) -> None:
    """Draw the segments as lines in the colours of the steps, and thin lines from one to the next."""
    width = (span.end - span.start) / len(labels)
    end: tuple[float, float] | None = None
    for step, start, stop in runs_of(labels):
        if step < 0 and not with_background:
            continue
        row = step if step >= 0 else n_steps
        left, right = span.start + start * width, span.start + stop * width
        if end is not None:
            axes.plot([end[0], left], [end[1], row], color=INK, linewidth=0.9, alpha=0.65, zorder=3)
        colour = colour_of(step) if step >= 0 else DIM
        for thick, ink in ((6.5, "white"), (4.0, colour)):
            axes.plot([left, right], [row, row], color=ink, linewidth=thick, solid_capstyle="butt", zorder=4)
        end = (right, row)


def _draw_bar(axes: Axes, bar: Bar, at: float, height: float) -> None:
    from matplotlib.colors import to_rgba

    # What is unsure is paler, but never gone.
    style: dict[str, Any] = {"color": to_rgba(colour_of(bar.step), 0.3 + 0.7 * bar.sure), "hatch": hatch_of(bar.step)}
    axes.barh(at, bar.end - bar.start, left=bar.start, height=height, edgecolor="white", linewidth=0.5, **style)


def _number(axes: Axes, bar: Bar, at: float, span: Span) -> None:
    """Write the number of the step on its bar, where there is room."""
    if bar.end - bar.start >= 0.022 * (span.end - span.start):
        colour = colour_of(bar.step)
        ground = {"facecolor": colour, "edgecolor": "none", "pad": 0.8} if hatch_of(bar.step) else None
        style: dict[str, Any] = {"color": ink_on(colour), "fontsize": 8, "ha": "center", "va": "center"}
        axes.text((bar.start + bar.end) / 2, at, str(bar.step + 1), bbox=ground, **style)


def _name(flow: FlowGraph, step: int) -> str:
    text = plain(flow.texts[step]) or plain(flow.ids[step])
    return shown(text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…")


def numbered(flow: FlowGraph, step: int) -> str:
    """Return a step for the eye: its number, which is its place in the procedure, and its text."""
    return f"{step + 1}  {_name(flow, step)}"


def _finish(axes: Axes, span: Span, title: str) -> Axes:
    axes.set_ylim(len(axes.get_yticks()) - 0.5, -0.5)
    axes.set_xlim(span.start, span.end)
    axes.set_xlabel(span.unit, color=INK)
    plainly(axes)
    axes.grid(axis="x", color=FAINT, linewidth=0.5)
    if span.unit != "clip":
        from matplotlib.ticker import FuncFormatter, MultipleLocator

        gap = _round_gap((span.end - span.start) / max(int(1.25 * _inches(axes)), 2), _ROUND_SECONDS)
        axes.xaxis.set_major_locator(MultipleLocator(gap))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: clock(seconds)))
    if title:
        axes.set_title(shown(title), loc="left", color=INK, fontweight="bold", fontsize=11)
    return axes


def _inches(axes: Axes) -> float:
    """Return how wide the axes are."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return float(figure.get_size_inches()[0] * axes.get_position().width)


def clock(seconds: float) -> str:
    """Write seconds as ``m:ss``, or ``h:mm:ss`` from one hour on."""
    whole = round(abs(seconds))
    sign = "-" if seconds < 0 and whole else ""
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{sign}{hours}:{minutes:02d}:{rest:02d}" if hours else f"{sign}{minutes}:{rest:02d}"


# -- for notebooks ------------------------------------------------------------------------------------------------


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
        body += [_bar(bar, span, x, top) for bar in bars if bar.step == step]
    height = len(rows) * _ROW + 20.0
    if len(rows) < len(flow):
        body.append(words("note", left, height + 12, _SMALL, f"… and {len(flow) - len(rows)} more steps"))
        height += 16.0
    layout = Layout(left + _TRACK + 16.0, height, (), {})
    title = flow.title or "Steps over time"
    return document(layout, body, name="Steps over time", title=title, note=note, styles=_STYLES, dark=True).svg


def _time(at: float, span: Span) -> str:
    return clock(at) if span.unit == "time" else f"{at:g}"


def _bar(bar: Bar, span: Span, x: Callable[[float], float], top: float) -> str:
    begins, ends = (_time(at, span) for at in (bar.start, bar.end))
    title = escaped(f"{bar.step + 1}: {begins}–{ends}" + (f", {bar.sure:.0%} sure" if bar.sure < 1 else ""))
    width = max(x(bar.end) - x(bar.start), 1.5)
    return (
        f'<rect x="{x(bar.start):.1f}" y="{top:.1f}" width="{width:.1f}" height="{_BAR:g}" rx="2" '
        f'fill="{colour_of(bar.step)}" fill-opacity="{0.3 + 0.7 * bar.sure:.2f}"><title>{title}</title></rect>'
    )


def _round_gap(rough: float, round_times: Sequence[float]) -> float:
    """Return the first round time from ``rough`` on."""
    return next((one for one in round_times if one >= rough), 7200 * math.ceil(rough / 7200))


def _axis(span: Span, x: Callable[[float], float], rows: int) -> list[str]:
    """Draw about six ticks, at round times."""
    rough = (span.end - span.start) / 6
    power = 10 ** math.floor(math.log10(max(rough, 1)))
    round_times = _ROUND_SECONDS if span.unit == "time" else [power, 2 * power, 5 * power, 10 * power]
    gap = _round_gap(rough, round_times)
    bottom = rows * _ROW
    drawn = []
    for number in range(math.ceil(span.start / gap), math.floor(span.end / gap) + 1):
        at = number * gap
        drawn.append(f'<path class="tick" d="M{x(at):.1f} 0V{bottom + 3:.1f}"/>')
        drawn.append(words("note", x(at), bottom + 16, _SMALL, _time(at, span), 'text-anchor="middle"'))
    return drawn
