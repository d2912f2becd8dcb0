"""Flow graphs as figures for papers (matplotlib, extra ``plot``), and what the plots of all packages share."""

from __future__ import annotations

import io
import os
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph2vid._files import write_bytes
from graph2vid.errors import InputError, needing
from graph2vid.flow.colours import colour_of, ink_on
from graph2vid.flow.flow_drawing import ID_LINE, ID_SIZE, LINE, PADDING_X, PADDING_Y, TEXT_SIZE, plan_drawing
from graph2vid.flow.messages import ordinal
from graph2vid.flow.svg import CORNER, route
from graph2vid.flow.terminal import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from graph2vid.flow.flow_graph import FlowGraph
    from graph2vid.flow.layout import Box, Layout
    from graph2vid.flow.order import Edge

INK, DIM, FAINT = "#1f2430", "#6b7280", "#d5d8df"
"""Colours of text, of lesser text, and of lines."""

_UNITS_PER_INCH = 96.0  # layouts are measured in the pixels of SVG
_LARGEST = (12.0, 16.0)  # inches
_DASHES = (0, (4, 3))
_GREY = "#94a3b8"


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the given axes, or those of a new figure of ``size`` (inches)."""
    if ax is not None:
        return ax
    with needing("plots need matplotlib", "plot"):
        from matplotlib import pyplot
    _, axes = pyplot.subplots(figsize=size, layout="constrained", facecolor="white")
    return axes


@contextmanager
def written_figure(
    path: str | os.PathLike[str], size: tuple[float, float], *, font: float = 9.0, dpi: int = 130
) -> Iterator[Figure]:
    """Yield a new figure of ``size`` (inches), and write it to a .png, .svg or .pdf file, whole or not at all."""
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in ("png", "svg", "pdf"):
        raise InputError(f"cannot draw {path}: the name must end in .png, .svg or .pdf")
    with needing("plots need matplotlib", "plot"):
        import matplotlib
        from matplotlib.figure import Figure

    look: dict[Any, Any] = {"svg.hashsalt": "graph2vid", "text.color": INK, "font.size": font, "hatch.linewidth": 0.6}
    with matplotlib.rc_context(look):
        figure = Figure(figsize=size, facecolor="white", layout="constrained")
        yield figure
        picture = io.BytesIO()
        # Without a date, the same picture is the same bytes.
        date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
        figure.savefig(picture, format=form, dpi=dpi, metadata=date)
    write_bytes(path, picture.getvalue())


def plainly(axes: Axes, *, left: bool = False, grid: bool = False) -> None:
    """Take the frame away but for a faint line below, and if asked for one on the left; with a grid or without."""
    axes.set_axisbelow(True)
    axes.spines[["top", "right", *([] if left else ["left"])]].set_visible(False)
    axes.spines[:].set_color(FAINT)
    axes.tick_params(colors=INK, length=0)
    if grid:
        axes.grid(color=FAINT, linewidth=0.6)


def shown(text: str) -> str:
    """Return the text as matplotlib shall show it: in one line, and no sign of it is taken for mathematics."""
    return plain(text).replace("$", r"\$")


def plot_flow(flow: FlowGraph, ax: Axes | None = None, *, order: Sequence[int] = ()) -> Axes:
    """Draw a flow graph in layers: see :meth:`FlowGraph.plot`."""
    plan = plan_drawing(flow)
    axes, points = layout_axes(plan.layout, ax, margin=14.0)
    from matplotlib.patches import Circle, Rectangle  # after the axes, which say so when matplotlib is missing

    soft = {edge for edge, sure in plan.flow.confidence.items() if sure < 1.0}
    draw_edges(axes, plan.layout, plan.flow.edges, points, dashed=soft)
    for step, box in enumerate(plan.layout.boxes):
        rounded_box(axes, box, face="#f8fafc", edge=_GREY, dashed=step in flow.optional)
        bar = rounded_box(axes, box, face=colour_of(step), edge="none")
        bar.set_clip_path(Rectangle((box.x, box.y), 6.0, box.height, transform=axes.transData))
        y = box.y + PADDING_Y
        if plan.ids[step]:
            words(axes, box.x + PADDING_X, y, plan.ids[step], ID_SIZE, color=DIM, va="top", fontweight="bold")
            y += ID_LINE
        for line in plan.lines[step] if any(plan.lines[step]) else ():
            words(axes, box.x + PADDING_X, y, line, TEXT_SIZE, color=INK, va="top")
            y += LINE
    for place, step in enumerate(order, start=1):
        box = plan.layout.boxes[step]
        centre = (box.x + box.width, box.y)
        axes.add_patch(Circle(centre, 13.0, facecolor=colour_of(step), edgecolor="white", linewidth=1.2, zorder=5))
        style: dict[str, Any] = {"color": ink_on(colour_of(step)), "ha": "center", "va": "center_baseline"}
        words(axes, *centre, ordinal(place), 9.5, fontweight="bold", zorder=6, **style)
    if flow.title:
        axes.set_title(shown(flow.title), color=INK, fontweight="bold", fontsize=min(17 * points, 13))
    return axes


def layout_axes(layout: Layout, ax: Axes | None, margin: float) -> tuple[Axes, float]:
    """Return axes in the coordinates of a layout, and how many points a unit of it is there."""
    width, height = layout.width + 2 * margin, layout.height + 2 * margin
    shrink = min(1.0, _LARGEST[0] * _UNITS_PER_INCH / width, _LARGEST[1] * _UNITS_PER_INCH / height)
    axes = new_axes(ax, (width / _UNITS_PER_INCH * shrink, height / _UNITS_PER_INCH * shrink + 0.35))
    axes.set_xlim(-margin, layout.width + margin)
    axes.set_ylim(layout.height + margin, -margin)
    axes.set_aspect("equal")
    axes.set_axis_off()
    box = axes.get_position()
    across, down = axes.get_figure(root=True).get_size_inches()  # type: ignore[union-attr]
    points = 72.0 * min(across * box.width / width, down * box.height / height)
    return axes, points if ax is not None else 72.0 / _UNITS_PER_INCH * shrink


def draw_edges(
    axes: Axes, plan: Layout, edges: Iterable[Edge], points: float, *, dashed: Container[Edge] = (), colour: str = _GREY
) -> None:
    """Draw the edges of a layout as curves with heads."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    style: dict[str, Any] = {"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0, "zorder": 1}
    style |= {"mutation_scale": max(12.0 * points, 3.0), "linewidth": max(1.6 * points, 0.4)}
    for edge in edges:
        start, end = (plan.boxes[node] for node in edge)
        here = (start.x + start.width / 2, start.y + start.height)
        vertices, codes = [here], [Path.MOVETO]
        for first, second, stop, bottom in route(plan, edge, here, (end.x + end.width / 2, end.y)):
            vertices += [first, second, stop]
            codes += [Path.CURVE4] * 3
            if bottom > stop[1]:
                vertices.append((stop[0], bottom))
                codes.append(Path.LINETO)
        style["linestyle"], style["capstyle"] = (_DASHES, "butt") if edge in dashed else ("-", "round")
        axes.add_patch(FancyArrowPatch(path=Path(vertices, codes), **style))


def rounded_box(axes: Axes, box: Box, *, face: str, edge: str, dashed: bool = False, corner: float = CORNER) -> Any:
    """Draw the rectangle of a step with rounded corners."""
    from matplotlib.patches import FancyBboxPatch

    style: dict[str, Any] = {"facecolor": face, "edgecolor": edge, "linestyle": _DASHES if dashed else "-"}
    shape = f"round,pad=0,rounding_size={corner}"
    patch = FancyBboxPatch((box.x, box.y), box.width, box.height, boxstyle=shape, linewidth=0.9, zorder=2, **style)
    return axes.add_patch(patch)


def words(axes: Axes, x: float, y: float, text: str, size: float, **style: Any) -> None:
    """Write a text whose size is in the units of the axes, so that it fits its box however large they are."""
    made = _scaled_text()(x, y, shown(text), size, **({"zorder": 3} | style))
    made.set_clip_on(False)
    axes.add_artist(made)


@cache
def _scaled_text() -> Any:
    from matplotlib.text import Text

    class ScaledText(Text):
        """A text that takes its size from the axes whenever it is drawn or measured."""

        def __init__(self, x: float, y: float, text: str, units: float, **style: Any) -> None:
            super().__init__(x, y, text, **style)
            self._units = units

        def _fit(self) -> None:
            assert self.axes is not None
            (left, _), (right, _) = self.axes.transData.transform([(0.0, 0.0), (1.0, 0.0)])
            figure = self.get_figure(root=True)
            assert figure is not None
            self.set_fontsize(max(self._units * (right - left) * 72.0 / figure.dpi, 0.1))

        def draw(self, renderer: Any) -> None:
            self._fit()
            super().draw(renderer)

        def get_window_extent(self, renderer: Any = None, dpi: float | None = None) -> Any:
            self._fit()
            return super().get_window_extent(renderer, dpi)

    return ScaledText
