"""Flow graphs as pictures: SVG by our own hand, PNG through resvg."""

from __future__ import annotations

import os
from functools import partial
from typing import NamedTuple

from graph2vid.flow.colours import colour_of
from graph2vid.flow.flow_graph import FlowGraph
from graph2vid.flow.layout import Box, Layout, lay_out
from graph2vid.flow.messages import counted, refuse_large
from graph2vid.flow.svg import CORNER, Picture, arrow, document, escaped, save_picture, text_width, words, wrapped

PADDING_X, PADDING_Y = 16.0, 11.0
TEXT_SIZE, ID_SIZE = 14.0, 11.0
LINE, ID_LINE = 19.0, 15.0
_TEXT_WIDTH = 190.0  # widest column of text in a box
_MOST_LINES = 6


def save(flow: FlowGraph, path: str | os.PathLike[str]) -> None:
    """Draw a flow graph to a .svg or .png file, whole or not at all."""
    save_picture(path, partial(_picture, flow))


def to_png(flow: FlowGraph) -> bytes:
    """Draw a flow graph as PNG (on white, twice as large as the SVG, less when that would be huge)."""
    return _picture(flow, False).to_png()


def to_svg(flow: FlowGraph) -> str:
    """Draw a flow graph as one self-contained SVG document that follows the reader's light or dark scheme.

    Edges that others imply are left out. Each step has its colour (:mod:`graph2vid.flow.colours`).
    """
    return _picture(flow, True).svg


class Plan(NamedTuple):
    """What a drawing of a flow graph holds, and where.

    Attributes
    ----------
    flow : FlowGraph
        The graph without the edges that others imply.
    ids : tuple of str
        What to write over the text of each step; may be empty.
    lines : tuple of lists of str
        The text of each step, in lines.
    layout : Layout
        Where the boxes and edges are.
    """

    flow: FlowGraph
    ids: tuple[str, ...]
    lines: tuple[list[str], ...]
    layout: Layout


def plan_drawing(flow: FlowGraph) -> Plan:
    """Set the texts of a flow graph and lay it out."""
    refuse_large(len(flow), "drawing it")
    reduced = flow.transitive_reduction()
    lines = tuple(wrapped(step.text, TEXT_SIZE, _TEXT_WIDTH, _MOST_LINES) for step in flow.steps)
    ids = tuple(_shown_id(flow, step) for step in range(len(flow)))
    sizes, column = [], max(40.0, *(text_width(step_id, ID_SIZE) for step_id in ids))
    column = max(column, *(text_width(line, TEXT_SIZE) for texts in lines for line in texts))
    for texts, step_id in zip(lines, ids, strict=True):
        rows = LINE * len(texts) * any(texts) + ID_LINE * bool(step_id)
        sizes.append((column + 2 * PADDING_X, rows + 2 * PADDING_Y))
    return Plan(reduced, ids, lines, lay_out(reduced, sizes))


def _picture(flow: FlowGraph, dark: bool) -> Picture:
    plan = plan_drawing(flow)
    body = [arrow(plan.layout, edge, dashed=sure < 1.0) for edge, sure in plan.flow.confidence.items()]
    for step, box in enumerate(plan.layout.boxes):
        body.append(_box(flow, step, box, plan.ids[step], plan.lines[step], colour_of(step)))
    note = f"{counted(len(flow), 'step')} · {counted(flow.width, 'thread')}"
    return document(plan.layout, body, name="Flow graph", title=flow.title, note=note, dark=dark)


def _shown_id(flow: FlowGraph, step: int) -> str:
    """Return what to write over the text: the id, unless the text is the same, and whether the step need be done."""
    step_id, text = flow.ids[step], flow.texts[step]
    parts = [*([] if step_id == text else [step_id]), *flow.marks(step)]
    return wrapped(" · ".join(parts), ID_SIZE, _TEXT_WIDTH, 1)[0] if parts else ""


def _box(flow: FlowGraph, step: int, box: Box, step_id: str, lines: list[str], hue: str) -> str:
    right, bottom, r = box.x + box.width, box.y + box.height, CORNER
    bar = (
        f"M{box.x + r:.1f} {box.y:.1f}a{r:g} {r:g} 0 0 0 {-r:g} {r:g}V{bottom - r:.1f}"
        f"a{r:g} {r:g} 0 0 0 {r:g} {r:g}A14 14 0 0 1 {box.x + 5:.1f} {bottom - r:.1f}V{box.y + r:.1f}"
        f"A14 14 0 0 1 {box.x + r:.1f} {box.y:.1f}Z"
    )
    dashes = ' stroke-dasharray="5 4"' if flow.marks(step) else ""
    size = f'width="{right - box.x:.1f}" height="{box.height:.1f}" rx="{r:g}"'
    drawn = f"<g><title>{escaped(f'{flow.ids[step]}: {flow.texts[step]}')}</title>"
    drawn += f'<rect class="box" x="{box.x:.1f}" y="{box.y:.1f}" {size}{dashes}/><path fill="{hue}" d="{bar}"/>'
    y = box.y + PADDING_Y
    if step_id:
        drawn += words("id", box.x + PADDING_X, y + ID_SIZE, ID_SIZE, step_id, 'font-weight="600"')
        y += ID_LINE
    for row, line in enumerate(lines if any(lines) else []):
        drawn += words("text", box.x + PADDING_X, y + 14 + row * LINE, TEXT_SIZE, line)
    return f"{drawn}</g>"
