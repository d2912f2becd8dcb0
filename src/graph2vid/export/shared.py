"""What the formats share: segments on the video's clock, times as whole milliseconds, and names of steps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from graph2vid.flow import FlowGraph, counted
from graph2vid.footage import Chapter
from graph2vid.grounding import FORMATS, Exported, Film, Format, Grounding

# What XML 1.0 cannot hold in any form, and what steers terminals and players elsewhere; tabs and line ends stay.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")


Exporter: TypeAlias = Callable[[Grounding, Film], Exported]


def format_named(name: str, suffix: str, *uses: str) -> Callable[[Exporter], Exporter]:
    """Return a decorator that enters an exporting function as the format ``name`` with these ``uses``."""

    def enter(exporter: Exporter) -> Exporter:
        FORMATS.register(name)(Format(suffix, exporter, frozenset(uses)))
        return exporter

    return enter


@dataclass(frozen=True)
class Timed:
    """A segment in whole milliseconds from the beginning of the video: ``start`` < ``end``, ``start`` ≥ 0."""

    step: int
    start: int
    end: int
    confidence: float | None
    why: str = ""

    @property
    def mark(self) -> str:
        """What is set behind the title of a doubtful segment."""
        return " (?)" if self.why else ""


def timed(grounding: Grounding) -> tuple[list[Timed], list[str]]:
    """Return the segments in order of time, and notes on those that the video's clock has no place for."""
    found = [(one, round(one.start * 1000), round(one.end * 1000)) for one in grounding.segments]
    shown = [(one, start, end) for one, start, end in found if end > 0]
    segments = [
        Timed(one.step, max(start, 0), max(end, start + 1, 1), one.confidence, one.why) for one, start, end in shown
    ]
    notes = []
    if unsure := sum(bool(one.why) for one in segments):
        notes.append(f"{counted(unsure, 'segment')} of {len(segments)} doubtful")
    if before := len(found) - len(shown):
        notes.append(f"{counted(before, 'segment')} before the beginning of the video (0 s) left out")
    if any(start < 0 for _, start, _ in shown):
        notes.append("a segment that begins before the video (0 s) is cut there")
    return sorted(segments, key=lambda one: (one.start, one.end)), notes


def chapters(grounding: Grounding) -> tuple[list[Chapter], list[str]]:
    """Return a chapter per segment, and one for what comes before the first; and notes."""
    segments, notes = timed(grounding)
    names = titles(grounding.flow)
    found = [Chapter(segment.start, segment.end, names[segment.step] + segment.mark) for segment in segments]
    if found and found[0].start > 0:
        found.insert(0, Chapter(0, found[0].start, "Intro"))
        notes.append('an "Intro" is added before the first step: MP4 lets the first chapter begin at 0 in any case')
    return found, notes


def clock(milliseconds: int, decimal_sign: str = ".") -> str:
    """Write a time as ``hh:mm:ss.mmm``."""
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest // 1000:02d}{decimal_sign}{rest % 1000:03d}"


def printable(text: str) -> str:
    """Return the text with signs that no file format can carry replaced by �."""
    return _UNPRINTABLE.sub("\ufffd", text)


def one_line(text: str) -> str:
    """Return the text in one line of printable signs."""
    return " ".join(printable(text).split())


def titles(flow: FlowGraph) -> list[str]:
    """Return a title per step for people to read: its text in one line, or its id where it has none."""
    return [one_line(step.text) or one_line(step.id) or "step" for step in flow.steps]


def labels(flow: FlowGraph) -> list[str]:
    """Return a title per step that no other step has: its text, with the id before it where that is not enough."""
    plain = titles(flow)
    often = Counter(plain)
    ids = [one_line(step_id) for step_id in flow.ids]
    named = [
        title if often[title] == 1 and title not in ids[:at] + ids[at + 1 :] else f"{step_id}: {title}"
        for at, (title, step_id) in enumerate(zip(plain, ids, strict=True))
    ]
    if len(set(named)) < len(named):  # ids that differ in blanks alone, or a text that looks like "id: text"
        named = [f"#{number} {name}" for number, name in enumerate(named, start=1)]
    return named


def seconds(milliseconds: int) -> str:
    """Write milliseconds as seconds, with no more decimals than are needed."""
    return f"{milliseconds / 1000:.3f}".rstrip("0").rstrip(".")


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")


def cell(text: str) -> str:
    """Return a text as a cell of a table that no spreadsheet takes for a formula: with a ' before it where need be.

    What begins with ' gets one more, so that :func:`text_of_cell` gives back just what was written.
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def text_of_cell(cell: str) -> str:
    """Return the text that :func:`cell` has written; what others wrote stays as it is."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell
