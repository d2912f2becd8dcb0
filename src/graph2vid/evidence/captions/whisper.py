"""The JSON of Whisper, faster-whisper and WhisperX: segments with their words."""

from __future__ import annotations

from typing import Any

from graph2vid._values import number_of
from graph2vid.errors import FormatError
from graph2vid.evidence.captions.cues import Cue, Word


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
        if end < start:
            raise FormatError(f"{where}: it ends ({end} s) before it starts ({start} s)")
        text = " ".join(segment["text"].split())
        if text:
            cues.append(Cue(start, end, text, _words(segment.get("words"), where)))
    return tuple(sorted(cues, key=lambda cue: (cue.start, cue.end)))


def _words(words: Any, where: str) -> tuple[Word, ...]:
    if words is None:
        return ()
    if not isinstance(words, list):
        raise FormatError(f"{where}: 'words' must be a list")
    read = []
    for number, word in enumerate(words):
        text = word.get("word", word.get("text")) if isinstance(word, dict) else None
        if not isinstance(text, str):
            raise FormatError(f"{where}, word {number} (counted from 0): a word has word, start and end")
        if word.get("start") is None or word.get("end") is None:
            continue
        start, end = (number_of(word[key], f"{where}, word {number}, {key!r}") for key in ("start", "end"))
        sure = word.get("probability", word.get("score"))
        if sure is not None:
            sure = min(max(number_of(sure, f"{where}, word {number}, its probability"), 0.0), 1.0)
        read.append(Word(start, max(end, start), text.strip(), sure))
    return tuple(sorted(read, key=lambda word: (word.start, word.end)))
