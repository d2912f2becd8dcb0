"""A grounding as one self-contained HTML page: bars over time, a table, the flow graph, and what is said."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape

from graph2vid._files import write_text
from graph2vid.evidence.captions import Cue
from graph2vid.flow.draw import to_svg
from graph2vid.grounding import GroundedSegment, Grounding
from graph2vid.grounding.timeline import PALETTE
from graph2vid.grounding.times import format_time

_STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --dim: #5b6470; --line: #d6dbe1; --back: #ffffff; --bar: #eef1f4; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e9ed; --dim: #9aa4b0; --line: #363d46; --back: #15181c; --bar: #23282f; }
}
body { margin: 2rem auto; max-width: 64rem; padding: 0 1rem; background: var(--back); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.5rem; } .dim { color: var(--dim); }
.row { display: grid; grid-template-columns: minmax(9rem, 20rem) 1fr; gap: .75rem; align-items: center;
  margin: .3rem 0; }
.track { position: relative; height: 1.2rem; background: var(--bar); border-radius: .25rem; overflow: hidden; }
.track i { position: absolute; top: 0; bottom: 0; border-radius: .2rem; min-width: 2px; }
.axis { display: flex; justify-content: space-between; font-size: .8rem; }
table { border-collapse: collapse; width: 100%; } th, td { padding: .3rem .6rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
.swatch { display: inline-block; width: .8rem; height: .8rem; border-radius: .2rem; margin-right: .5rem; }
.scroll { overflow-x: auto; } svg { max-width: 100%; height: auto; }
"""


def write_report(
    path: str | os.PathLike[str], grounding: Grounding, cues: Sequence[Cue] = (), source: str = ""
) -> None:
    """Write the page of a grounding, whole or not at all.

    Parameters
    ----------
    path : path
    grounding : Grounding
    cues : sequence of Cue
        What is said in the video.
    source : str
        Where that comes from, for people.
    """
    write_text(path, page(grounding, cues, source))


def page(grounding: Grounding, cues: Sequence[Cue] = (), source: str = "") -> str:
    """Return the page as HTML; parameters as for :func:`write_report`."""
    flow = grounding.flow
    title = escape(flow.title or "Grounding")
    colours = {step: PALETTE[place % len(PALETTE)] for place, step in enumerate(grounding.order)}
    parts = [
        f"<h1>{title}</h1>",
        f'<p class="dim">{_facts(grounding)}</p>',
        "<h2>When each step happens</h2>",
        _bars(grounding, colours),
        _table(grounding, colours),
        _orders(grounding),
        "<h2>The procedure</h2>",
        f'<div class="scroll">{to_svg(flow)}</div>',
    ]
    if cues:
        parts += ["<h2>What is said</h2>", f'<p class="dim">{escape(source)}</p>', _said(grounding, cues, colours)]
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>\n'
        f"<body>\n{body}\n"
        f'<p class="dim">Made by graph2vid {escape(grounding.version)}.</p>\n</body></html>\n'
    )


def _facts(grounding: Grounding) -> str:
    shown, steps = len(grounding.order), len(grounding.flow)
    return f"{shown} of {steps} steps shown, {format_time(grounding.offset)} to {format_time(grounding.end)}"


def _bars(grounding: Grounding, colours: dict[int, str]) -> str:
    rows = []
    for step in grounding.order:
        spans = "".join(_span(grounding, segment, colours[step]) for segment in grounding.segments_of(step))
        rows.append(f'<div class="row"><span>{_name(grounding, step)}</span><div class="track">{spans}</div></div>')
    ends = f"<span>{format_time(grounding.offset)}</span><span>{format_time(grounding.end)}</span>"
    return "\n".join([*rows, f'<div class="row"><span></span><div class="axis dim">{ends}</div></div>'])


def _span(grounding: Grounding, segment: GroundedSegment, colour: str) -> str:
    left = 100 * (segment.start - grounding.offset) / grounding.duration
    width = 100 * segment.duration / grounding.duration
    times = f"{format_time(segment.start)}–{format_time(segment.end)}"
    return f'<i style="left:{left:.3f}%;width:{width:.3f}%;background:{colour}" title="{times}"></i>'


def _name(grounding: Grounding, step: int) -> str:
    return escape(grounding.flow.texts[step] or grounding.flow.ids[step])


def _table(grounding: Grounding, colours: dict[int, str]) -> str:
    numbers = "".join(f'<th class="number">{name}</th>' for name in ("start", "end", "confidence"))
    head = f"<tr><th>step</th>{numbers}</tr>"
    rows = []
    for segment in grounding.segments:
        sure = "" if segment.confidence is None else f"{segment.confidence:.0%}"
        times = "".join(f'<td class="number">{format_time(at)}</td>' for at in (segment.start, segment.end))
        swatch = f'<span class="swatch" style="background:{colours[segment.step]}"></span>'
        rows.append(f'<tr><td>{swatch}{_name(grounding, segment.step)}</td>{times}<td class="number">{sure}</td></tr>')
    for step in grounding.not_shown:
        rows.append(
            f'<tr class="dim"><td>{_name(grounding, step)}</td><td class="number" colspan="3">not shown</td></tr>'
        )
    return f"<table>{head}{''.join(rows)}</table>"


def _orders(grounding: Grounding) -> str:
    def listed(steps: Sequence[int]) -> str:
        return " → ".join(escape(grounding.flow.ids[step]) for step in steps)

    written = sorted(grounding.order)
    if list(grounding.order) == written:
        return '<p class="dim">The steps are shown in the order in which they are written.</p>'
    return f'<p><span class="dim">order seen</span> {listed(grounding.order)}<br>' + (
        f'<span class="dim">as written</span> {listed(written)}</p>'
    )


def _said(grounding: Grounding, cues: Sequence[Cue], colours: dict[int, str]) -> str:
    rows = []
    for cue in cues:
        middle = (cue.start + cue.end) / 2
        step = next((s.step for s in grounding.segments if s.start <= middle < s.end), None)
        swatch = "" if step is None else f'<span class="swatch" style="background:{colours[step]}"></span>'
        rows.append(f'<tr><td class="number dim">{format_time(cue.start)}</td><td>{swatch}{escape(cue.text)}</td></tr>')
    return f"<table>{''.join(rows)}</table>"
