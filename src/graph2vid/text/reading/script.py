"""Reading scripts, lecture notes and slides: what is to be said, in paragraphs of sentences."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TypeAlias

from graph2vid._files import read_bytes
from graph2vid._values import repaired
from graph2vid.errors import InputError
from graph2vid.text.reading.sentences import sentence_spans
from graph2vid.text.reading.tidy import MOST_BYTES, decoded, has_words, tidy, without_markdown

Script: TypeAlias = tuple[tuple[str, ...], ...]
"""Paragraphs, each of sentences."""

_HEADING = re.compile(r"\s*#{1,6}\s|\s*(?:=+|-{3,}|\*{3,})\s*$")
_ITEM = re.compile(r"^\s*(?:[-*+•‣▪◦]|\(?\d{1,3}[.)])\s+")
_SENTENCE_END = (".", "!", "?", "…", ":", '"', "”", "。", "！", "？")


def read_script(path: str | os.PathLike[str]) -> Script:
    """Read a script from a text file: plain or Markdown; see :func:`script_from_text`."""
    return script_from_text(decoded(read_bytes(path, MOST_BYTES + 1), str(path)), source=str(Path(path)))


def script_from_text(text: str, *, source: str = "the script") -> Script:
    """Part a script into paragraphs and these into sentences.

    Empty lines part paragraphs; in a text without any, a line that ends a sentence does. Items of lists are sentences
    of their own. Headings of Markdown are left out: they are seldom said.

    Parameters
    ----------
    text : str
    source : str
        What messages call it.
    """
    lines = repaired(text).removeprefix("\ufeff").splitlines()
    has_gaps = any(not line.strip() for line in lines[1:-1])
    paragraphs: list[list[str]] = [[]]  # each of pieces that end a sentence: items of lists, or running text
    for line in lines:
        words = tidy(without_markdown(_ITEM.sub("", line)))
        if not words or _HEADING.match(line):
            paragraphs.append([])
            continue
        pieces = paragraphs[-1]
        if not has_gaps and pieces and pieces[-1].endswith(_SENTENCE_END):
            paragraphs.append(pieces := [])
        if pieces and not _ITEM.match(line):
            pieces[-1] = f"{pieces[-1]} {words}"
        else:
            pieces.append(words)
    found = tuple(
        sentences for pieces in paragraphs if (sentences := tuple(one for piece in pieces for one in _sentences(piece)))
    )
    if not found:
        raise InputError(f"{source} holds no words: a script needs at least one sentence")
    return found


def _sentences(text: str) -> list[str]:
    return [part for start, end in sentence_spans(text) if has_words(part := text[start:end])]
