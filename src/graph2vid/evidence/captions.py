"""Captions: what is said when, read from WebVTT and SubRip files."""

from __future__ import annotations

import html
import os
import re
from dataclasses import dataclass
from pathlib import Path

from graph2vid._files import read_text
from graph2vid.errors import FormatError

SUFFIXES = (".vtt", ".srt")

_TIME = r"(?:(\d+):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?$")
_TAG = re.compile(r"<[^>]*>")


@dataclass(frozen=True)
class Cue:
    """One caption: ``text`` is on screen from ``start`` to ``end`` (seconds)."""

    start: float
    end: float
    text: str


def read_captions(path: str | os.PathLike[str]) -> tuple[Cue, ...]:
    """Read a caption file; the suffix names the format: ``.vtt`` (WebVTT) or ``.srt`` (SubRip).

    Markup is removed, entities are resolved, lines of one cue are joined by a space, and cues without text
    are left out.

    Returns
    -------
    tuple of Cue
        In the order of the file; none if nothing is said.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise FormatError(f"{path}: captions are read from {' and '.join(SUFFIXES)} files, not {path.suffix!r}")
    text = read_text(path)
    if path.suffix.lower() == ".vtt" and not text.startswith("WEBVTT"):
        raise FormatError(f"{path}, line 1: a WebVTT file begins with WEBVTT")
    return parse_captions(text, str(path))


def parse_captions(text: str, source: str = "captions") -> tuple[Cue, ...]:
    """Parse the text of a WebVTT or SubRip file; ``source`` is what messages call it."""
    lines = text.splitlines()
    cues = []
    number = 0
    while number < len(lines):
        if "-->" not in lines[number]:  # a header, a note, a style, a cue's name or number, or nothing
            number += 1
            continue
        start, end = _timing(lines[number], f"{source}, line {number + 1}")
        number += 1
        said = []
        while number < len(lines) and lines[number].strip() and "-->" not in lines[number]:
            said.append(html.unescape(_TAG.sub("", lines[number])).strip())
            number += 1
        words = " ".join(" ".join(said).split())
        if words:
            cues.append(Cue(start, end, words))
    return tuple(cues)


def _timing(line: str, where: str) -> tuple[float, float]:
    match = _TIMING.match(line)
    if match is None:
        raise FormatError(f"{where}: not a cue's times, such as 00:01:02.500 --> 00:01:04.000")
    start, end = _seconds(match.groups()[:4]), _seconds(match.groups()[4:])
    if end < start:
        raise FormatError(f"{where}: the cue ends ({end} s) before it starts ({start} s)")
    return start, end


def _seconds(parts: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, fraction = parts
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0) + float(f"0.{fraction}")
