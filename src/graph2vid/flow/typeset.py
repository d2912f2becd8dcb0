"""Setting short texts without a font at hand: estimated widths, wrapping, characters fit for XML."""

from __future__ import annotations

import html
import re
import unicodedata

# Widths in em, rather too wide than too narrow: the reader's sans-serif font is not known.
_NARROW = dict.fromkeys("iljI|.,:;'!`", 0.34) | dict.fromkeys('ftr()[]{}-/\\ "*°', 0.42)
_WIDE = dict.fromkeys("mwMW@%", 0.98)
_NOT_XML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    """Return ``text`` for use in XML; characters that XML cannot hold become the replacement character."""
    return html.escape(_NOT_XML.sub("\ufffd", text), quote=True)


def text_width(text: str, size: float) -> float:
    """Return about how wide ``text`` is in a sans-serif font of this size, in the unit of ``size``."""
    return size * sum(map(_em, text))


def _em(character: str) -> float:
    if character in _NARROW:
        return _NARROW[character]
    if character in _WIDE:
        return _WIDE[character]
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    return 0.70 if character.isupper() else 0.61


def wrapped(text: str, size: float, limit: float, most_lines: int) -> list[str]:
    """Break ``text`` into lines of about equal width within ``limit``; too long a text ends with "…"."""
    lines = _filled(text, size, limit)
    if len(lines) > most_lines:
        lines = lines[:most_lines]
        while lines[-1] and text_width(lines[-1] + "…", size) > limit:
            lines[-1] = lines[-1][:-1]
        lines[-1] = lines[-1].rstrip() + "…"
        return lines
    # The narrowest column that needs no further line makes the lines even.
    for percent in range(50, 100, 5):
        narrower = _filled(text, size, limit * percent / 100)
        if len(narrower) == len(lines):
            return narrower
    return lines


def _filled(text: str, size: float, limit: float) -> list[str]:
    lines = [""]
    for word in text.split():
        candidate = f"{lines[-1]} {word}" if lines[-1] else word
        if text_width(candidate, size) <= limit:
            lines[-1] = candidate
            continue
        if lines[-1]:
            lines.append("")
        for character in word:  # a word wider than the column is broken
            if lines[-1] and text_width(lines[-1] + character, size) > limit:
                lines.append("")
            lines[-1] += character
    return lines
