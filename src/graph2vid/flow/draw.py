"""Flow graphs as pictures: SVG by our own hand, PNG through resvg."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from graph2vid._files import write_bytes
from graph2vid.errors import InputError, MissingDependencyError
from graph2vid.flow.graph import FlowGraph
from graph2vid.flow.layout import Box, Layout, lay_out
from graph2vid.flow.messages import counted, quoted
from graph2vid.flow.typeset import escaped, text_width, wrapped

_MARGIN = 28.0
_PADDING_X, _PADDING_Y = 16.0, 11.0
_TEXT_SIZE, _ID_SIZE, _TITLE_SIZE = 14.0, 11.0, 19.0
_LINE, _ID_LINE = 19.0, 15.0
_TEXT_WIDTH = 190.0  # widest column of text in a box
_MOST_LINES = 6
_CORNER = 9.0
_HEAD = 8.0  # length of an arrow head
_PNG_PIXELS = 30_000_000

# One hue per thread, of middle lightness: they stand out on white and on near-black alike.
_HUES = (
    "#3b82f6",
    "#f59e0b",
    "#10b981",
    "#ec4899",
    "#8b5cf6",
    "#14b8a6",
    "#ef4444",
    "#84cc16",
    "#64748b",
    "#d97757",
)

# Rules are bound to the class of the root, since the style of an inline SVG holds for the page around it too.
_STYLE = """
.g2v-flow { font-family: Inter, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; }
.g2v-flow .ground { fill: #ffffff; }
.g2v-flow .box { fill: #f8fafc; stroke: #cbd5e1; }
.g2v-flow .text, .g2v-flow .title { fill: #0f172a; }
.g2v-flow .id, .g2v-flow .note { fill: #64748b; }
.g2v-flow .edge { fill: none; stroke: #94a3b8; stroke-width: 1.6; stroke-linecap: round; }
.g2v-flow .head { fill: #94a3b8; }
"""
_DARK_STYLE = """
@media (prefers-color-scheme: dark) {
.g2v-flow .ground { fill: #0f172a; }
.g2v-flow .box { fill: #1e293b; stroke: #475569; }
.g2v-flow .text, .g2v-flow .title { fill: #f1f5f9; }
.g2v-flow .id, .g2v-flow .note { fill: #94a3b8; }
.g2v-flow .edge { stroke: #7c8aa0; }
.g2v-flow .head { fill: #7c8aa0; }
}
"""


def save(flow: FlowGraph, path: str | os.PathLike[str]) -> None:
    """Draw a flow graph to a .svg or .png file, whole or not at all."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix == ".svg":
        write_bytes(path, to_svg(flow).encode("utf-8"))
    elif suffix == ".png":
        write_bytes(path, to_png(flow))
    else:
        raise InputError(f"{path}: the suffix {quoted(path.suffix)} names no picture format; use .svg or .png")


def to_png(flow: FlowGraph) -> bytes:
    """Draw a flow graph as PNG (on white, twice as large as the SVG, less when that would be huge)."""
    try:
        import resvg_py
    except ImportError:
        raise MissingDependencyError(
            "drawing PNG needs the package resvg-py: pip install 'graph2vid[plot]' (SVG needs nothing)"
        ) from None
    svg, width, height = _svg(flow, dark_too=False)
    zoom = min(2.0, (_PNG_PIXELS / (width * height)) ** 0.5)
    matplotlib = find_spec("matplotlib")  # it carries fonts, for machines that have none
    places = list(matplotlib.submodule_search_locations or ()) if matplotlib else []
    fonts = [f"{place}/mpl-data/fonts/ttf" for place in places]
    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=svg,
            background="#ffffff",
            width=round(width * zoom),
            sans_serif_family="DejaVu Sans",
            font_dirs=fonts or None,
        )
    )


def to_svg(flow: FlowGraph) -> str:
    """Draw a flow graph as one self-contained SVG document that follows the reader's light or dark scheme.

    Edges that others imply are left out. Each thread (chain of a minimum chain cover) has a colour.
    """
    return _svg(flow, dark_too=True)[0]


def _svg(flow: FlowGraph, dark_too: bool) -> tuple[str, float, float]:
    """Return the document, its width and its height."""
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

    header, header_width, header_height = _header(flow)
    width = max(plan.width, header_width) + 2 * _MARGIN
    height = plan.height + header_height + 2 * _MARGIN
    shift_x, shift_y = (width - plan.width) / 2, _MARGIN + header_height
    hues = {edge: _hue(thread_of, edge) for edge in reduced.edges}
    # Coloured edges lie above plain ones.
    body = [_edge(plan, edge, hues[edge]) for edge in sorted(hues, key=lambda edge: hues[edge] is not None)]
    for step, box in enumerate(plan.boxes):
        hue = _HUES[thread_of[step] % len(_HUES)]
        body.append(_box(flow, step, box, ids[step], lines[step], hue))
    style = _STYLE + (_DARK_STYLE if dark_too else "")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="g2v-flow" role="img" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<title>{escaped(flow.title or 'Flow graph')}</title>",
        f"<style>{style}</style>",
        f'<rect class="ground" width="100%" height="100%" rx="{_CORNER:.0f}"/>',
        *(f'<g transform="translate({width / 2:.1f} {_MARGIN:.1f})">{header}</g>' for _ in range(bool(header))),
        f'<g transform="translate({shift_x:.1f} {shift_y:.1f})">',
        *body,
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n", width, height


def _shown_id(flow: FlowGraph, step: int) -> str:
    """Return what to write over the text: the id, unless the text is the same."""
    step_id, text = flow.ids[step], flow.texts[step]
    return "" if step_id == text else wrapped(step_id, _ID_SIZE, _TEXT_WIDTH, 1)[0]


def _header(flow: FlowGraph) -> tuple[str, float, float]:
    """Return title and summary, drawn about x = 0, and their width and height."""
    if not flow.title:
        return "", 0.0, 0.0
    lines = wrapped(flow.title, _TITLE_SIZE, 560.0, 3)
    note = f"{counted(len(flow), 'step')} · {counted(flow.width, 'thread')}"
    drawn = [
        _text("title", 0, _TITLE_SIZE + 24 * row, _TITLE_SIZE, line, 'text-anchor="middle" font-weight="600"')
        for row, line in enumerate(lines)
    ]
    bottom = _TITLE_SIZE + 24 * len(lines)
    drawn.append(_text("note", 0, bottom - 3, 12, note, 'text-anchor="middle"'))
    widest = max(*(text_width(line, _TITLE_SIZE) for line in lines), text_width(note, 12))
    return "".join(drawn), widest, bottom + 22


def _text(kind: str, x: float, y: float, size: float, text: str, extra: str = "") -> str:
    attributes = f'class="{kind}" x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" {extra}'.rstrip()
    return f"<text {attributes}>{escaped(text)}</text>"


def _box(flow: FlowGraph, step: int, box: Box, step_id: str, lines: list[str], hue: str) -> str:
    right, bottom, r = box.x + box.width, box.y + box.height, _CORNER
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
        drawn.append(_text("id", box.x + _PADDING_X, y + _ID_SIZE, _ID_SIZE, step_id, 'font-weight="600"'))
        y += _ID_LINE
    for row, line in enumerate(lines if any(lines) else []):
        drawn.append(_text("text", box.x + _PADDING_X, y + 14 + row * _LINE, _TEXT_SIZE, line))
    return "".join([*drawn, "</g>"])


def _hue(thread_of: dict[int, int], edge: tuple[int, int]) -> str | None:
    """Return the colour of a thread that runs along this edge."""
    a, b = edge
    return _HUES[thread_of[a] % len(_HUES)] if thread_of[a] == thread_of[b] else None


def _edge(plan: Layout, edge: tuple[int, int], hue: str | None) -> str:
    start, end = plan.boxes[edge[0]], plan.boxes[edge[1]]
    x, y = start.x + start.width / 2, start.y + start.height
    drawn = f"M{x:.1f} {y:.1f}"
    tip_x, tip_y = end.x + end.width / 2, end.y - 1.0
    for lane_x, top, bottom in (*plan.lanes.get(edge, ()), (tip_x, tip_y - _HEAD, tip_y - _HEAD)):
        bend = 0.6 * (top - y)
        drawn += f"C{x:.1f} {y + bend:.1f} {lane_x:.1f} {top - bend:.1f} {lane_x:.1f} {top:.1f}"
        if bottom > top:
            drawn += f"V{bottom:.1f}"
        x, y = lane_x, bottom
    line_colour, head_colour = (f' style="stroke:{hue}"', f' style="fill:{hue}"') if hue else ("", "")
    head = f"M{tip_x:.1f} {tip_y:.1f}l-4.5 {-_HEAD - 1:g}q4.5 2 9 0Z"
    return f'<path class="edge"{line_colour} d="{drawn}"/><path class="head"{head_colour} d="{head}"/>'
