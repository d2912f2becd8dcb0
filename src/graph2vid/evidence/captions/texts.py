"""WebVTT, SubRip and SubViewer, and automatic captions that roll."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from graph2vid._values import seconds_of, unescaped
from graph2vid.errors import FormatError
from graph2vid.evidence.captions.cues import Cue, Word

HEADER = "WEBVTT"

_TIME = r"(?:(\d+):)?(\d{1,2}):(\d{1,2}[.,]\d{1,3})"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?")
_SUBVIEWER = re.compile(r"\s*(\d+):(\d{1,2}):(\d{1,2}\.\d{1,3}),(\d+):(\d{1,2}):(\d{1,2}\.\d{1,3})\s*")
_TAG = re.compile(r"<[^<>]*>")
_MOST_REPEATED = 10  # lines that captions keep on screen
_WORD_TIME = re.compile(rf"<{_TIME}>")


@dataclass(frozen=True)
class _Block:
    """A cue as it stands in the file: its times and its lines, with markup and without."""

    start: float
    end: float
    marked: tuple[str, ...]
    lines: tuple[str, ...]


def parse_captions(text: str, source: str = "captions") -> tuple[Cue, ...]:
    """Parse the text of a WebVTT, SubRip or SubViewer file; ``source`` is what messages call it.

    Returns
    -------
    tuple of Cue
        In order of time.
    """
    blocks = sorted(_blocks(text, source), key=lambda block: (block.start, block.end))
    news = _news(blocks)
    if not _rolls(blocks, news):
        news = [0] * len(blocks)
    cues = []
    for block, first in zip(blocks, news, strict=True):
        said = " ".join(block.lines[first:])
        if said:
            words = tuple(_words(" ".join(block.marked[first:]), block.start, block.end, source))
            cues.append(Cue(block.start, block.end, said, words))
    return tuple(cues)


def _has_times(line: str) -> bool:
    return "-->" in line or bool(_SUBVIEWER.fullmatch(line))


def _blocks(text: str, source: str) -> list[_Block]:
    lines = text.splitlines()
    # In WebVTT a line of spaces belongs to the cue (rolling captions have them); elsewhere it ends it.
    spaces = None if not text.startswith(HEADER) else ""
    blocks = []
    number = 0
    while number < len(lines):
        if not _has_times(lines[number]):  # a header, a note, a style, a cue's name or number, or nothing
            number += 1
            continue
        start, end = _timing(lines[number], f"{source}, line {number + 1}")
        number += 1
        marked, plain = [], []
        while number < len(lines) and lines[number].strip(spaces) and not _has_times(lines[number]):
            words = _plain(lines[number])
            if words:
                marked.append(lines[number])
                plain.append(words)
            number += 1
        blocks.append(_Block(start, end, tuple(marked), tuple(plain)))
    return blocks


def _plain(line: str) -> str:
    return " ".join(unescaped(_TAG.sub("", line)).split())


def _timing(line: str, where: str) -> tuple[float, float]:
    match = _SUBVIEWER.fullmatch(line) or _TIMING.fullmatch(line)
    if match is None:
        raise FormatError(f"{where}: not a cue's times, such as 00:01:02.500 --> 00:01:04.000")
    start, end = _seconds(match.groups()[:3], where), _seconds(match.groups()[3:], where)
    if end < start:
        raise FormatError(f"{where}: the cue ends ({end} s) before it starts ({start} s)")
    return start, end


def _seconds(parts: tuple[str | None, ...], where: str) -> float:
    hours, minutes, seconds = parts
    return seconds_of(hours, minutes, (seconds or "0").replace(",", "."), f"{where}: a time")


def _news(blocks: list[_Block]) -> list[int]:
    """Return for each cue how many of its first lines were on screen, last, in the cue before."""
    news = [0] * min(len(blocks), 1)
    for before, now in pairwise(blocks):
        most = min(len(before.lines), len(now.lines), _MOST_REPEATED)
        news.append(next((n for n in range(most, 0, -1) if before.lines[-n:] == now.lines[:n]), 0))
    return news


def _rolls(blocks: list[_Block], news: list[int]) -> bool:
    """Say whether captions roll: most cues begin with the line before. A word said twice is not enough for that."""
    follow = sum(1 for before, now in pairwise(blocks) if before.lines and now.lines)
    return follow >= 2 and sum(1 for repeated in news if repeated) > follow / 2


def _words(marked: str, start: float, end: float, source: str) -> list[Word]:
    """Return the words of a line with times between them: ``one<00:01.500> two``; none if there are no times."""
    times = [start]
    pieces = [""]
    at = 0
    for match in _WORD_TIME.finditer(marked):
        pieces[-1] += marked[at : match.start()]
        times.append(min(max(_seconds(match.groups(), source), times[-1]), end))
        pieces.append("")
        at = match.end()
    if at == 0:
        return []
    pieces[-1] += marked[at:]
    said = [(time, _plain(piece)) for time, piece in zip(times, pieces, strict=True)]
    said = [(time, word) for time, word in said if word]
    ends = [time for time, _ in said[1:]] + [end]
    return [Word(time, until, word) for (time, word), until in zip(said, ends, strict=True)]
