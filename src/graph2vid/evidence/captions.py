"""Captions: transcripts with times, read from WebVTT, SubRip, plain text, and the JSON of YouTube and Whisper."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from graph2vid._files import parse_json, read_bytes
from graph2vid._values import number_of, seconds_of, unescaped
from graph2vid.errors import FormatError

SUFFIXES = (".vtt", ".srt", ".sbv", ".json3")
"""Files that hold captions and nothing else."""

MOST_BYTES = 256 << 20
"""Larger files hold no captions."""

TRANSCRIPT_SUFFIXES = (".json", ".txt")
"""Files that may be what a speech recogniser wrote, or a transcript with times."""

HEADER = "WEBVTT"

_TIME = r"(?:(\d+):)?(\d{1,2}):(\d{1,2}[.,]\d{1,3})"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?")
_SUBVIEWER = re.compile(r"\s*(\d+):(\d{1,2}):(\d{1,2}\.\d{1,3}),(\d+):(\d{1,2}):(\d{1,2}\.\d{1,3})\s*")
_TAG = re.compile(r"<[^<>]*>")
_MOST_REPEATED = 10  # lines that captions keep on screen
_WORD_TIME = re.compile(rf"<{_TIME}>")

_LINE_TIME = r"[\[(]?(?:(\d+):)?(\d+):(\d{2}(?:[.,]\d{1,3})?)[\])]?"
_LINE = re.compile(rf"\s*{_LINE_TIME}(?:\s*(?:-|–|—|to)\s*{_LINE_TIME})?(?!\d)(?P<said>.*)")
_LONGEST_WORD = 1.0  # seconds that a word takes, at the most
_LONGEST_CUE = 5.0  # seconds that a short line may last


@dataclass(frozen=True)
class Word:
    """One word: ``text`` is said from ``start`` to ``end`` (seconds).

    ``probability`` is how sure the recogniser was of it, in 0 … 1; None if it did not say.
    """

    start: float
    end: float
    text: str
    probability: float | None = None


@dataclass(frozen=True)
class Cue:
    """One caption: ``text`` is said, or on screen, from ``start`` to ``end`` (seconds).

    ``words`` are its words as far as their times are known, in order of time. Of text that was read off the picture,
    ``kind`` says what it is (``caption``, ``title``, ``ingredients``, ``watermark``), and ``box`` where it stands:
    left, top, width and height as shares of the picture. ``kind`` is empty where the text is said.
    """

    start: float
    end: float
    text: str
    words: tuple[Word, ...] = ()
    kind: str = ""
    box: tuple[float, float, float, float] | None = None


_Timed = TypeVar("_Timed", Cue, Word)


def in_order(timed: Iterable[_Timed]) -> tuple[_Timed, ...]:
    """Return cues or words in order of time."""
    return tuple(sorted(timed, key=lambda one: (one.start, one.end)))


def _check_times(start: float, end: float, where: str) -> None:
    """Refuse a cue that ends before it starts."""
    if end < start:
        raise FormatError(f"{where}: the cue ends ({end} s) before it starts ({start} s)")


def read_captions(path: str | os.PathLike[str]) -> tuple[Cue, ...]:
    """Read a caption file; the suffix names the format.

    ``.vtt`` is WebVTT, ``.srt`` SubRip, ``.sbv`` SubViewer, ``.json3`` YouTube's JSON, ``.json`` that or what Whisper,
    faster-whisper or WhisperX writes, ``.txt`` a transcript whose lines begin with times. Markup is removed, entities
    are resolved, lines of one cue are joined by a space, and cues without text are left out. In automatic captions
    that roll (each cue shows the line before once more) every line is read once. Times of words are kept where the
    file has them. Text that was once decoded wrongly ("donâ€™t") is mended.

    Returns
    -------
    tuple of Cue
        In order of time; they may overlap. None if nothing is said.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    known = (*SUFFIXES, *TRANSCRIPT_SUFFIXES)
    if suffix not in known:
        raise FormatError(f"{path}: captions are read from {', '.join(known)} files, not {path.suffix!r}")
    text = _decoded(read_bytes(path, MOST_BYTES + 1), path)
    if suffix in (".json", ".json3"):
        document = parse_json(text, str(path))
        parse = parse_json3 if isinstance(document, dict) and "events" in document else parse_transcript
        cues = parse(document, str(path))
    elif suffix == ".txt" and "-->" not in text:
        cues = parse_timed_text(text, str(path))
    else:
        if suffix == ".vtt" and not text.startswith(HEADER):
            raise FormatError(f"{path}, line 1: a WebVTT file begins with WEBVTT")
        cues = parse_captions(text, str(path))
        if not cues and "-->" not in text and suffix in (".srt", ".sbv") and text.strip():
            kind = "SubRip" if suffix == ".srt" else "SubViewer"
            raise FormatError(f"{path}: not a {kind} file, for no line holds a cue's times")
    return tuple(_mended(cue) for cue in cues)


def _decoded(data: bytes, path: Path) -> str:
    """Return the text of a file: UTF-8, UTF-16 with a byte-order mark, or else the Western code page of old."""
    if len(data) > MOST_BYTES:
        raise FormatError(f"{path} is larger than {MOST_BYTES >> 20} MiB: these are no captions of one video")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError as error:
            raise FormatError(f"{path} is not a UTF-16 text file (byte {error.start})") from error
    if b"\0" in data:
        raise FormatError(f"{path} is not a text file (byte {data.index(0)})")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _mended(cue: Cue) -> Cue:
    """Return a cue whose UTF-8 was taken for the Western code page as it was meant; others as they are."""
    text = mend(cue.text)
    if text == cue.text:
        return cue
    return replace(cue, text=text, words=tuple(replace(word, text=mend(word.text)) for word in cue.words))


def mend(text: str) -> str:
    """Return text as it was before its UTF-8 bytes were read as cp1252; unchanged if they were not."""
    if text.isascii():
        return text
    try:
        return b"".join(map(_western, text)).decode("utf-8")
    except UnicodeError:
        return text


def _western(character: str) -> bytes:
    # Bytes to which the code page gives no character are kept as they are by those who decode with it.
    return bytes((ord(character),)) if "\x80" <= character <= "\x9f" else character.encode("cp1252")


# -- text ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Block:
    """A cue as it stands in the file: its times and its lines, with markup and without."""

    start: float
    end: float
    marked: list[str]
    lines: list[str]


def parse_captions(text: str, source: str = "captions") -> tuple[Cue, ...]:
    """Parse the text of a WebVTT, SubRip or SubViewer file; ``source`` is what messages call it.

    Returns
    -------
    tuple of Cue
        In order of time.
    """
    blocks = sorted(_blocks(text, source), key=lambda block: (block.start, block.end))
    news = _news(blocks)
    # Captions roll if most cues begin with the line before. A word said twice is not enough for that.
    follow = sum(1 for before, now in pairwise(blocks) if before.lines and now.lines)
    if follow < 2 or sum(map(bool, news)) <= follow / 2:
        news = [0] * len(blocks)
    cues = []
    for block, first in zip(blocks, news, strict=True):
        if said := " ".join(block.lines[first:]):
            words = tuple(_timed_words(" ".join(block.marked[first:]), block.start, block.end, source))
            cues.append(Cue(block.start, block.end, said, words))
    return tuple(cues)


def _blocks(text: str, source: str) -> list[_Block]:
    # In WebVTT a line of spaces belongs to the cue (rolling captions have them); elsewhere it ends it.
    spaces = None if not text.startswith(HEADER) else ""
    blocks: list[_Block] = []
    inside = False  # otherwise: a header, a note, a style, a cue's name or number, or nothing
    for number, line in enumerate(text.splitlines(), start=1):
        if "-->" in line or _SUBVIEWER.fullmatch(line):
            blocks.append(_Block(*_timing(line, f"{source}, line {number}"), [], []))
            inside = True
        elif not line.strip(spaces):
            inside = False
        elif inside and (words := _plain(line)):
            blocks[-1].marked.append(line)
            blocks[-1].lines.append(words)
    return blocks


def _plain(line: str) -> str:
    return " ".join(unescaped(_TAG.sub("", line)).split())


def _timing(line: str, where: str) -> tuple[float, float]:
    match = _SUBVIEWER.fullmatch(line) or _TIMING.fullmatch(line)
    if match is None:
        raise FormatError(f"{where}: not a cue's times, such as 00:01:02.500 --> 00:01:04.000")
    start, end = _seconds(match.groups()[:3], where), _seconds(match.groups()[3:], where)
    _check_times(start, end, where)
    return start, end


def _seconds(parts: Sequence[str | None], where: str) -> float:
    hours, minutes, seconds = parts
    return seconds_of(hours, minutes, (seconds or "0").replace(",", "."), f"{where}: a time")


def _news(blocks: list[_Block]) -> list[int]:
    """Return for each cue how many of its first lines were on screen, last, in the cue before."""
    news = [0] * min(len(blocks), 1)
    for before, now in pairwise(blocks):
        most = min(len(before.lines), len(now.lines), _MOST_REPEATED)
        news.append(next((n for n in range(most, 0, -1) if before.lines[-n:] == now.lines[:n]), 0))
    return news


def _timed_words(marked: str, start: float, end: float, source: str) -> list[Word]:
    """Return the words of a line with times between them: ``one<00:01.500> two``; none if there are no times."""
    pieces = _WORD_TIME.split(marked)  # a piece, then three parts of a time and the next piece, again and again
    if len(pieces) == 1:
        return []
    times = [start]
    for time in zip(pieces[1::4], pieces[2::4], pieces[3::4], strict=True):
        times.append(min(max(_seconds(time, source), times[-1]), end))
    said = [(time, word) for time, piece in zip(times, pieces[::4], strict=True) if (word := _plain(piece))]
    ends = [time for time, _ in said[1:]] + [end]
    return [Word(time, until, word) for (time, word), until in zip(said, ends, strict=True)]


def parse_timed_text(text: str, source: str = "transcript") -> tuple[Cue, ...]:
    """Read a transcript in which a line with a time at its beginning, alone or before words, begins a cue.

    Where a line gives no end, it lasts until the next begins, but not longer than its words take to say. Lines before
    the first time are passed over.

    Returns
    -------
    tuple of Cue
        In order of time.
    """
    begun: list[tuple[float, float | None, list[str]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        found = _LINE.fullmatch(line)
        if found is None:
            if begun and line.strip():
                begun[-1][2].append(line)
            continue
        where, times = f"{source}, line {number}", found.groups()
        start, end = _seconds(times[:3], where), None
        if times[5] is not None:
            end = _seconds(times[3:6], where)
            _check_times(start, end, where)
        begun.append((start, end, [found["said"].lstrip(" \t:-–—")]))
    if not begun and text.strip():
        raise FormatError(f"{source}: not a transcript with times, for no line begins with one, such as 0:15")
    begun.sort(key=lambda one: one[0])
    cues = []
    for place, (start, end, lines) in enumerate(begun):
        said = " ".join(" ".join(lines).split())
        if end is None:
            longest = start + max(_LONGEST_CUE, _LONGEST_WORD * len(said.split()))
            end = min([longest, *(later for later, _, _ in begun[place + 1 : place + 2])])
        if said:
            cues.append(Cue(start, end, said))
    return tuple(cues)


# -- JSON ---------------------------------------------------------------------------------------------------


def parse_json3(document: Any, source: str = "captions") -> tuple[Cue, ...]:
    """Read ``{"events": [{"tStartMs", "dDurationMs", "segs": [{"utf8", "tOffsetMs"}, …]}, …]}``.

    Events without words (windows, line breaks) are passed over. An event of automatic captions stays on screen while
    the next is said: it ends where that begins, at the latest.

    Returns
    -------
    tuple of Cue
        In order of time.
    """
    events = document.get("events") if isinstance(document, dict) else None
    if not isinstance(events, list):
        raise FormatError(f"{source}: not captions of YouTube, for it has no list of events")
    cues = in_order(cue for number, event in enumerate(events) for cue in _cues(event, f"{source}, event {number}"))
    return (*(_ending(cue, after.start) for cue, after in pairwise(cues)), *cues[-1:])


def _cues(event: Any, where: str) -> list[Cue]:
    """Return the cue of an event, or none."""
    if not isinstance(event, dict):
        raise FormatError(f"{where} (counted from 0): an event has tStartMs, dDurationMs and segs")
    pieces = event.get("segs")
    if not pieces:
        return []
    start = _milliseconds(event, "tStartMs", where)
    end = start + _milliseconds(event, "dDurationMs", where)
    said, times = [], []
    for piece in pieces if isinstance(pieces, list) else [None]:
        if not isinstance(piece, dict) or not isinstance(piece.get("utf8", ""), str):
            raise FormatError(f"{where} (counted from 0): 'segs' must be a list of objects with utf8")
        if text := " ".join(piece.get("utf8", "").split()):
            said.append((text, "tOffsetMs" in piece))
            times.append(min(start + _milliseconds(piece, "tOffsetMs", where), end))
    if not said:
        return []
    words = in_order(
        Word(time, max(time, until), text)
        for (text, _), time, until in zip(said, times, [*times[1:], end], strict=True)
        if any(timed for _, timed in said)
    )
    return [Cue(start, end, " ".join(text for text, _ in said), words)]


def _milliseconds(holder: dict[str, Any], key: str, where: str) -> float:
    return number_of(holder.get(key, 0), f"{where}, {key!r}", least=0.0) / 1000.0


def _ending(cue: Cue, latest: float) -> Cue:
    """Return a cue that ends where the next begins, if it did later."""
    end = max(min(cue.end, latest), cue.start)
    words = tuple(Word(min(word.start, end), min(word.end, end), word.text) for word in cue.words)
    return Cue(cue.start, end, cue.text, words)


def parse_transcript(document: Any, source: str = "transcript") -> tuple[Cue, ...]:
    """Read what a speech recogniser wrote: ``{"segments": [{"start", "end", "text", "words"}, …]}``, or the list alone.

    A word is ``{"word", "start", "end", "probability" or "score"}``; one without times, as WhisperX leaves numbers, is
    in the text of its segment alone.

    Returns
    -------
    tuple of Cue
        In order of time.
    """
    segments = document.get("segments") if isinstance(document, dict) else document
    if not isinstance(segments, list):
        raise FormatError(f"{source}: not a transcript of Whisper, for it has no list of segments")
    cues = []
    for number, segment in enumerate(segments):
        where = f"{source}, segment {number}"
        if not isinstance(segment, dict) or not isinstance(segment.get("text"), str):
            raise FormatError(f"{where} (counted from 0): a segment has start, end and text")
        start, end = (number_of(segment.get(key), f"{where}, {key!r}") for key in ("start", "end"))
        _check_times(start, end, where)
        if text := " ".join(segment["text"].split()):
            cues.append(Cue(start, end, text, _recognised_words(segment.get("words"), where)))
    return in_order(cues)


def _recognised_words(words: Any, where: str) -> tuple[Word, ...]:
    if words is not None and not isinstance(words, list):
        raise FormatError(f"{where}: 'words' must be a list")
    read = []
    for number, word in enumerate(words or ()):
        here = f"{where}, word {number}"
        text = word.get("word", word.get("text")) if isinstance(word, dict) else None
        if not isinstance(text, str):
            raise FormatError(f"{here} (counted from 0): a word has word, start and end")
        if word.get("start") is None or word.get("end") is None:
            continue
        start, end = (number_of(word[key], f"{here}, {key!r}") for key in ("start", "end"))
        sure = word.get("probability", word.get("score"))
        if sure is not None:
            sure = min(max(number_of(sure, f"{here}, its probability"), 0.0), 1.0)
        read.append(Word(start, max(end, start), text.strip(), sure))
    return in_order(read)
