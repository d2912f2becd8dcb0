"""Text from bytes, whatever the encoding; words without what surrounds them: white space, HTML, Markdown's marks."""

from __future__ import annotations

import codecs
import re

from graph2vid._values import repaired, unescaped
from graph2vid.errors import FormatError

# Soft hyphens, zero-width spaces, marks of direction. Joiners stay: words of some scripts need them.
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_ITEM_TAG = re.compile(r"<li\b[^<>]*>", re.IGNORECASE)
_BREAKING_TAG = re.compile(r"</?(?:br|p|div|li|ul|ol|t[rdh]|d[dt]|h[1-6]|section|article)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)
_IMAGE = re.compile(r"!\[[^\[\]]*\]\([^()\s]*\)")
_LINK = re.compile(r"\[([^\[\]]+)\]\([^()\s]*\)")
_EMPHASIS = re.compile(r"(\*\*|__|~~|`|(?<![\w*])\*(?![\s*])|(?<![\w_])_(?![\s_]))([^*_`~]+)\1(?!\w)")


def tidy(text: str) -> str:
    """Return ``text`` in one line: single spaces, nothing invisible."""
    return " ".join(_CONTROL.sub(" ", _INVISIBLE.sub("", text)).split())


def has_words(text: str) -> bool:
    """Say whether there is anything in ``text`` but punctuation."""
    return any(map(str.isalnum, text))


def without_html(text: str, bullet: str = "") -> str:
    """Return ``text`` without tags and entities.

    Tags that begin or end a line become line breaks; ``bullet`` marks the items of lists.
    """
    for _ in range(3):  # pages often escape twice
        text = unescaped(text)
    text = _ITEM_TAG.sub(f"\n{bullet}", _without_comments(text))
    return repaired(_TAG.sub("", _BREAKING_TAG.sub("\n", text)))


def _without_comments(text: str) -> str:
    kept, place = [], 0
    while (start := text.find("<!--", place)) >= 0 and (end := text.find("-->", start)) >= 0:
        kept.append(text[place:start])
        place = end + 3
    return "".join(kept) + text[place:]


def without_markdown(text: str) -> str:
    """Return ``text`` in one line without the marks of links, images and emphasis."""
    text = _LINK.sub(r"\1", _IMAGE.sub("", text))
    return tidy(_EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", text)))  # twice: one may lie within another


MOST_BYTES = 16 << 20
"""Larger files are no procedures."""

_ADVICE = "save the procedure as text, Markdown, HTML or JSON"

# How files begin that people take for text.
_BINARY = {
    b"%PDF-": "a PDF file",
    b"PK\x03\x04": "a packed file (.docx, .odt, .zip, …)",
    b"\xd0\xcf\x11\xe0": "an old Office file",
    b"{\\rtf": "a rich-text file",
}


def _as_windows_text(error: UnicodeError) -> tuple[str, int]:
    """Read the bytes that are not UTF-8 as cp1252, or latin-1 where that has a gap."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    data = error.object[error.start : error.end]
    try:
        return data.decode("cp1252"), error.end
    except UnicodeDecodeError:
        return data.decode("latin-1"), error.end


codecs.register_error("graph2vid-windows-text", _as_windows_text)


def decoded(data: bytes, source: str) -> str:
    """Return the text in ``data``: UTF-8, UTF-16 with a byte-order mark, or else cp1252 (also for single bytes).

    Raises
    ------
    FormatError
        This is no text, or too much of it; the message names ``source``.
    """
    if len(data) > MOST_BYTES:
        raise FormatError(f"{source} is larger than {MOST_BYTES >> 20} MiB: it is no procedure; {_ADVICE}")
    for head, kind in _BINARY.items():
        if data.startswith(head):
            raise FormatError(f"{source} is {kind}, not a text file; {_ADVICE}")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    if b"\x00" in data:
        raise FormatError(f"{source} is not a text file (it holds NUL bytes); {_ADVICE}")
    return data.decode("utf-8-sig", "graph2vid-windows-text")
