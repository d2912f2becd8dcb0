"""Flow graphs as pictures: SVG by our own hand, PNG through resvg."""

from __future__ import annotations

import os
from functools import partial

from graph2vid.flow.graph import FlowGraph
from graph2vid.flow.layout import Box, lay_out
from graph2vid.flow.messages import counted
from graph2vid.flow.picture import CORNER, HUES, Picture, arrow, document, save_picture, words
from graph2vid.flow.typeset import escaped, text_width, wrapped

_PADDING_X, _PADDING_Y = 16.0, 11.0
_TEXT_SIZE, _ID_SIZE = 14.0, 11.0
_LINE, _ID_LINE = 19.0, 15.0
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

    Edges that others imply are left out. Each thread (chain of a minimum chain cover) has a colour.
    """
    return _picture(flow, True).svg


def _picture(flow: FlowGraph, dark: bool) -> Picture:
    reduced = flow.transitive_reduction()
    lines = [wrapped(step.text, _TEXT_SIZE, _TEXT_WIDTH, _MOST_LINES) for step in flow.steps]
    ids = [_shown_id(flow, step) for step in range(len(flow))]
    column = max(
        *(text_width(line, _TEXT_SIZE) for texts in lines for line in texts),
        *(text_width(step_id, _ID_SIZE) for step_id in ids),
        40.0,
    )
    sizes = []
    for texts, step_id in zip(lines, ids, strict=True):
        rows = _LINE * len(texts) * any(texts) + _ID_LINE * bool(step_id)
        sizes.append((column + 2 * _PADDING_X, rows + 2 * _PADDING_Y))
    plan = lay_out(reduced, sizes)
    thread_of = {step: number for number, thread in enumerate(flow.threads) for step in thread}
    hues = {edge: _hue(thread_of, edge) for edge in reduced.edges}
    # Coloured edges lie above plain ones.
    body = [arrow(plan, edge, hues[edge]) for edge in sorted(hues, key=lambda edge: hues[edge] is not None)]
    for step, box in enumerate(plan.boxes):
        body.append(_box(flow, step, box, ids[step], lines[step], HUES[thread_of[step] % len(HUES)]))
    note = f"{counted(len(flow), 'step')} · {counted(flow.width, 'thread')}"
    return document(plan, body, name="Flow graph", title=flow.title, note=note, dark=dark)


def _shown_id(flow: FlowGraph, step: int) -> str:
    """Return what to write over the text: the id, unless the text is the same."""
    step_id, text = flow.ids[step], flow.texts[step]
    return "" if step_id == text else wrapped(step_id, _ID_SIZE, _TEXT_WIDTH, 1)[0]


def _box(flow: FlowGraph, step: int, box: Box, step_id: str, lines: list[str], hue: str) -> str:
    right, bottom, r = box.x + box.width, box.y + box.height, CORNER
    bar = (
        f"M{box.x + r:.1f} {box.y:.1f}a{r:g} {r:g} 0 0 0 {-r:g} {r:g}V{bottom - r:.1f}"
        f"a{r:g} {r:g} 0 0 0 {r:g} {r:g}A14 14 0 0 1 {box.x + 5:.1f} {bottom - r:.1f}V{box.y + r:.1f}"
        f"A14 14 0 0 1 {box.x + r:.1f} {box.y:.1f}Z"
    )
    drawn = [
        f"<g><title>{escaped(f'{flow.ids[step]}: {flow.texts[step]}')}</title>",
        f'<rect class="box" x="{box.x:.1f}" y="{box.y:.1f}" width="{right - box.x:.1f}" '
        f'height="{box.height:.1f}" rx="{r:g}"/>',
        f'<path fill="{hue}" d="{bar}"/>',
    ]
    y = box.y + _PADDING_Y
    if step_id:
        drawn.append(words("id", box.x + _PADDING_X, y + _ID_SIZE, _ID_SIZE, step_id, 'font-weight="600"'))
        y += _ID_LINE
    for row, line in enumerate(lines if any(lines) else []):
        drawn.append(words("text", box.x + _PADDING_X, y + 14 + row * _LINE, _TEXT_SIZE, line))
    return "".join([*drawn, "</g>"])


def _hue(thread_of: dict[int, int], edge: tuple[int, int]) -> str | None:
    """Return the colour of a thread that runs along this edge."""
    a, b = edge
    return HUES[thread_of[a] % len(HUES)] if thread_of[a] == thread_of[b] else None
