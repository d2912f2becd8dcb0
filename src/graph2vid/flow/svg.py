"""What the drawings of graphs share: colours, words, arrows, the SVG document, PNG through resvg."""

from __future__ import annotations

import html
import os
import re
import unicodedata
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from graph2vid._files import write_bytes
from graph2vid.errors import InputError, needing
from graph2vid.flow.layout import Layout
from graph2vid.flow.messages import quoted
from graph2vid.flow.order import Edge

# Widths in em, rather too wide than too narrow: the reader's sans-serif font is not known.
_WIDTHS = dict.fromkeys("iljI|.,:;'!`", 0.34) | dict.fromkeys('ftr()[]{}-/\\ "*°', 0.42)
_WIDTHS |= dict.fromkeys("mwMW@%", 0.98)
_NOT_XML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    """Return ``text`` for use in XML; characters that XML cannot hold become the replacement character."""
    return html.escape(_NOT_XML.sub("\ufffd", text), quote=True)


def text_width(text: str, size: float) -> float:
    """Return about how wide ``text`` is in a sans-serif font of this size, in the unit of ``size``."""
    return size * sum(map(_em, text))


def _em(character: str) -> float:
    if character in _WIDTHS:
        return _WIDTHS[character]
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    return 0.70 if character.isupper() else 0.61


def wrapped(text: str, size: float, limit: float, most_lines: int) -> list[str]:
    """Break ``text`` into lines of about equal width within ``limit``; too long a text ends with "…"."""
    lines = _filled(text, size, limit)
    if len(lines) > most_lines:
        *lines, last = lines[:most_lines]
        while last and text_width(last + "…", size) > limit:
            last = last[:-1]
        return [*lines, last.rstrip() + "…"]
    # The narrowest column that needs no further line makes the lines even.
    narrower = (_filled(text, size, limit * percent / 100) for percent in range(50, 100, 5))
    return next((even for even in narrower if len(even) == len(lines)), lines)


def _filled(text: str, size: float, limit: float) -> list[str]:
    lines = [""]
    for word in text.split():
        candidate = f"{lines[-1]} {word}" if lines[-1] else word
        if text_width(candidate, size) <= limit:
            lines[-1] = candidate
            continue
        lines += [""] if lines[-1] else []
        for character in word:  # a word wider than the column is broken
            if lines[-1] and text_width(lines[-1] + character, size) > limit:
                lines.append("")
            lines[-1] += character
    return lines


Point: TypeAlias = tuple[float, float]

CORNER = 9.0
"""Radius of rounded corners."""
_MARGIN = 28.0
_TITLE_SIZE = 19.0
_HEAD = 8.0  # length of an arrow head
_PNG_PIXELS = 30_000_000

# Of middle lightness: they stand out on white and on near-black alike.
HUES = (
    "#3b82f6", "#f59e0b", "#10b981", "#ec4899", "#8b5cf6",
    "#14b8a6", "#ef4444", "#84cc16", "#64748b", "#d97757",
)  # fmt: skip

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
.g2v-flow .ground { fill: #0f172a; }
.g2v-flow .box { fill: #1e293b; stroke: #475569; }
.g2v-flow .text, .g2v-flow .title { fill: #f1f5f9; }
.g2v-flow .id, .g2v-flow .note { fill: #94a3b8; }
.g2v-flow .edge { stroke: #7c8aa0; }
.g2v-flow .head { fill: #7c8aa0; }
"""


class Picture(NamedTuple):
    """A drawing: the SVG document, and its width and height in pixels."""

    svg: str
    width: float
    height: float

    def to_png(self) -> bytes:
        """Return the drawing as PNG (on white, twice as large, less when that would be huge)."""
        with needing("drawing PNG (SVG needs nothing) needs the package resvg-py", "plot"):
            from resvg_py import svg_to_bytes
        width = round(self.width * min(2.0, (_PNG_PIXELS / (self.width * self.height)) ** 0.5))
        matplotlib = find_spec("matplotlib")  # it carries fonts, for machines that have none
        places = matplotlib.submodule_search_locations if matplotlib else None
        fonts = [f"{place}/mpl-data/fonts/ttf" for place in places or ()] or None
        style: dict[str, Any] = {"background": "#ffffff", "sans_serif_family": "DejaVu Sans", "font_dirs": fonts}
        return bytes(svg_to_bytes(svg_string=self.svg, width=width, **style))


def save_picture(path: str | os.PathLike[str], draw: Callable[[bool], Picture]) -> None:
    """Draw to a .svg or .png file, whole or not at all.

    Parameters
    ----------
    path : str or path
        The file.
    draw : callable
        Makes the picture; takes whether it shall follow a dark scheme, too.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (".svg", ".png"):
        raise InputError(f"{path}: the suffix {quoted(path.suffix)} names no picture format; use .svg or .png")
    write_bytes(path, draw(True).svg.encode("utf-8") if suffix == ".svg" else draw(False).to_png())


def document(
    plan: Layout, body: list[str], *, name: str, title: str, note: str, dark: bool, styles: tuple[str, str] = ("", "")
) -> Picture:
    """Return the self-contained document around what is drawn in the coordinates of ``plan``.

    Parameters
    ----------
    plan : Layout
        For its width and height.
    body : list of str
        The drawn things, the lowest first.
    name : str
        What the picture is called where it has no title.
    title, note : str
        What stands above the picture: nothing without a title.
    dark : bool
        Whether the picture follows the reader's light or dark scheme.
    styles : (str, str)
        Further rules, and those for a dark scheme.
    """
    header, header_width, header_height = _header(title, note)
    width, height = max(plan.width, header_width) + 2 * _MARGIN, plan.height + header_height + 2 * _MARGIN
    style = _STYLE + styles[0]
    if dark:
        style += f"\n@media (prefers-color-scheme: dark) {{{_DARK_STYLE}{styles[1]}}}\n"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="g2v-flow" role="img" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<title>{escaped(title or name)}</title>",
        f"<style>{style}</style>",
        f'<rect class="ground" width="100%" height="100%" rx="{CORNER:.0f}"/>',
        *([f'<g transform="translate({width / 2:.1f} {_MARGIN:.1f})">{header}</g>'] if header else []),
        f'<g transform="translate({(width - plan.width) / 2:.1f} {_MARGIN + header_height:.1f})">',
        *body,
        "</g>\n</svg>\n",
    ]
    return Picture("\n".join(parts), width, height)


def _header(title: str, note: str) -> tuple[str, float, float]:
    """Return title and note, drawn about x = 0, and their width and height."""
    if not title:
        return "", 0.0, 0.0
    drawn, widest, bottom = "", text_width(note, 12), _TITLE_SIZE
    for line in wrapped(title, _TITLE_SIZE, 560.0, 3):
        drawn += words("title", 0, bottom, _TITLE_SIZE, line, 'text-anchor="middle" font-weight="600"')
        widest, bottom = max(widest, text_width(line, _TITLE_SIZE)), bottom + 24
    return drawn + words("note", 0, bottom - 3, 12, note, 'text-anchor="middle"'), widest, bottom + 22


def words(kind: str, x: float, y: float, size: float, text: str, extra: str = "") -> str:
    """Return a drawn text of the class ``kind``, its base line beginning at (x, y)."""
    attributes = f'class="{kind}" x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" {extra}'.rstrip()
    return f"<text {attributes}>{escaped(text)}</text>"


def route(plan: Layout, edge: Edge, start: Point, foot: Point) -> Iterator[tuple[Point, Point, Point, float]]:
    """Iterate over the curves of an edge from ``start`` down to ``foot``, through the lanes that it passes.

    Yields
    ------
    (point, point, point, float)
        The two control points and the end of a cubic curve, and how far down a straight line goes on from there.
    """
    x, y = start
    for lane_x, top, bottom in (*plan.lanes.get(edge, ()), (*foot, foot[1])):
        bend = 0.6 * (top - y)
        yield (x, y + bend), (lane_x, top - bend), (lane_x, top), bottom
        x, y = lane_x, bottom


def arrow(plan: Layout, edge: Edge, hue: str = "", *, upwards: bool = False, dashed: bool = False) -> str:
    """Return a drawn edge from the middle of one box's lower side to that of the other's upper side.

    Parameters
    ----------
    plan : Layout
    edge : (int, int)
        An edge of the layout.
    hue : str
        Its colour; empty for the usual one.
    upwards : bool
        Whether the head is at the upper end.
    dashed : bool
        Whether the line is broken: the edge is not certain.
    """
    start, end = plan.boxes[edge[0]], plan.boxes[edge[1]]
    x, y = start.x + start.width / 2, start.y + start.height
    tip_x, tip_y = end.x + end.width / 2, end.y - 1.0
    head = f"M{tip_x:.1f} {tip_y:.1f}l-4.5 {-_HEAD - 1:g}q4.5 2 9 0Z"
    if upwards:
        head = f"M{x:.1f} {y + 1:.1f}l-4.5 {_HEAD + 1:g}q4.5 -2 9 0Z"
        y += 1 + _HEAD
    foot = tip_y if upwards else tip_y - _HEAD
    drawn = f"M{x:.1f} {y:.1f}"
    for first, second, (end_x, end_y), bottom in route(plan, edge, (x, y), (tip_x, foot)):
        drawn += f"C{first[0]:.1f} {first[1]:.1f} {second[0]:.1f} {second[1]:.1f} {end_x:.1f} {end_y:.1f}"
        if bottom > end_y:
            drawn += f"V{bottom:.1f}"
    line_colour, head_colour = (f' style="stroke:{hue}"', f' style="fill:{hue}"') if hue else ("", "")
    dashes = ' stroke-dasharray="5 5"' if dashed else ""
    return f'<path class="edge"{line_colour}{dashes} d="{drawn}"/><path class="head"{head_colour} d="{head}"/>'
