"""Caption files: their format by suffix, their text by its encoding."""

from __future__ import annotations

import codecs
import os
from dataclasses import replace
from pathlib import Path

from graph2vid._files import parse_json, read_bytes
from graph2vid.errors import FormatError
from graph2vid.evidence.captions.cues import Cue
from graph2vid.evidence.captions.json3 import parse_json3
from graph2vid.evidence.captions.texts import HEADER, parse_captions
from graph2vid.evidence.captions.timed_text import parse_timed_text
from graph2vid.evidence.captions.whisper import parse_transcript

SUFFIXES = (".vtt", ".srt", ".sbv", ".json3")
"""Files that hold captions and nothing else."""

MOST_BYTES = 256 << 20
"""Larger files hold no captions."""

TRANSCRIPT_SUFFIXES = (".json", ".txt")
"""Files that may be what a speech recogniser wrote, or a transcript with times."""


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
