"""YouTube's own JSON of captions (``fmt=json3``): events with segments of text."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from graph2vid._values import number_of
from graph2vid.errors import FormatError
from graph2vid.evidence.captions.cues import Cue, Word


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
    cues = [cue for number, event in enumerate(events) if (cue := _cue(event, f"{source}, event {number}")) is not None]
    cues.sort(key=lambda cue: (cue.start, cue.end))
    ended = [_ending(cue, after.start) for cue, after in pairwise(cues)]
    return (*ended, *cues[-1:])


def _cue(event: Any, where: str) -> Cue | None:
    if not isinstance(event, dict):
        raise FormatError(f"{where} (counted from 0): an event has tStartMs, dDurationMs and segs")
    pieces = event.get("segs")
    if not pieces:
        return None
    start = _seconds(event, "tStartMs", where)
    end = start + _seconds(event, "dDurationMs", where)
    words = []
    for piece in pieces if isinstance(pieces, list) else [None]:
        if not isinstance(piece, dict) or not isinstance(piece.get("utf8", ""), str):
            raise FormatError(f"{where} (counted from 0): 'segs' must be a list of objects with utf8")
        said = " ".join(piece.get("utf8", "").split())
        if said:
            words.append((min(start + _seconds(piece, "tOffsetMs", where), end), said, "tOffsetMs" in piece))
    if not words:
        return None
    ends = [*(time for time, _, _ in words[1:]), end]
    text = " ".join(said for _, said, _ in words)
    if not any(timed for _, _, timed in words):
        return Cue(start, end, text)
    timed = [Word(time, max(time, until), said) for (time, said, _), until in zip(words, ends, strict=True)]
    return Cue(start, end, text, tuple(sorted(timed, key=lambda word: (word.start, word.end))))


def _seconds(holder: dict[str, Any], key: str, where: str) -> float:
    return number_of(holder.get(key, 0), f"{where}, {key!r}", least=0.0) / 1000.0


def _ending(cue: Cue, latest: float) -> Cue:
    """Return a cue that ends where the next begins, if it did later."""
    end = max(min(cue.end, latest), cue.start)
    words = tuple(Word(min(word.start, end), min(word.end, end), word.text) for word in cue.words)
    return Cue(cue.start, end, cue.text, words)
