"""Numbers, tables and character references in files: the one reader of each, with limits."""

from __future__ import annotations

import csv
import html
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from graph2vid.errors import FormatError

LONGEST_FIELD = 131_072
"""The most characters of a field of a table."""

LARGEST = 1e15
"""No number in a file that means something (seconds, counts, costs) is larger."""
_MOST_SHOWN = 40  # characters of a value that a message quotes

# Nor is one written with more digits.
_NUMBER = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONG_REFERENCE = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{7,});?")


def shown(value: object) -> str:
    """Return a value as a message quotes it, in one line and not at length."""
    text = value[:100] if isinstance(value, str) else value
    if isinstance(value, int) and abs(value) > LARGEST:
        return f"a number of about {value.bit_length() * 0.30103:.0f} digits"
    quoted = repr(text)
    return quoted if len(quoted) <= _MOST_SHOWN else quoted[: _MOST_SHOWN - 1] + "…"


def number_of(value: Any, place: str, *, least: float = -LARGEST, most: float = LARGEST) -> float:
    """Return a number of a parsed file, as JSON has them.

    Parameters
    ----------
    value : int or float
        What stands in the file.
    place : str
        What messages call it: file, line, key.
    least, most : float
        What it must lie between.

    Raises
    ------
    FormatError
        It is no number, not finite, or outside of the limits.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < math.inf:
        raise FormatError(f"{place} must be a number, not {shown(value)}")
    if not least <= value <= most:
        raise FormatError(f"{place} must be a number from {least:g} to {most:g}, not {shown(value)}")
    return float(value)


def read_number(text: str, place: str, *, least: float = -LARGEST, most: float = LARGEST) -> float:
    """Return the decimal number that is written in a file; see :func:`number_of`."""
    if not _NUMBER.fullmatch(text.strip()):
        raise FormatError(f"{place} must be a number, not {shown(text)}")
    return number_of(float(text), place, least=least, most=most)


def count_of(value: Any, place: str, *, least: int = 0, most: int = int(LARGEST)) -> int:
    """Return a whole number, of a parsed file or written in it; see :func:`number_of`."""
    of_text = isinstance(value, str) and value.strip().isdecimal() and value.isascii()
    found = read_number(value, place, least=least, most=most) if of_text else value
    if isinstance(found, str) or number_of(found, place, least=least, most=most) != int(found):
        raise FormatError(f"{place} must be a whole number, not {shown(value)}")
    return int(found)


def seconds_of(hours: str | None, minutes: str | None, seconds: str, place: str) -> float:
    """Return a time written as hours, minutes and seconds (with its fraction), rounded to milliseconds."""
    parts = ((hours, 3600.0), (minutes, 60.0), (seconds, 1.0))
    found = sum(scale * read_number(part, place, least=0.0) for part, scale in parts if part)
    return round(number_of(found, place), 3)


def unescaped(text: str) -> str:
    """Return ``text`` with its HTML character references resolved; those of no character are U+FFFD."""
    return html.unescape(_LONG_REFERENCE.sub("\ufffd", text))


def repaired(text: str) -> str:
    """Return ``text`` with surrogate pairs joined, and lone surrogates as the replacement character.

    Names of files that are not UTF-8 hold such surrogates, and no file or answer can.
    """
    found = _SURROGATE.search(text)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") if found else text


def table_rows(
    lines: Iterable[str], source: str, delimiter: str = ",", longest: int = LONGEST_FIELD
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV table, each with the number of the line on which it begins; ``source`` is for messages.

    Parameters
    ----------
    lines : iterable of str
        An open file, say.
    longest : int
        The most characters of a field.
    """
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        line = rows.line_num + 1
        before = csv.field_size_limit(longest)  # one for the whole process, so it is put back at once
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            reason = f"a field of more than {longest:,} characters" if "field limit" in str(error) else error
            raise FormatError(f"{source}, line {line}: not CSV ({reason})") from error
        finally:
            csv.field_size_limit(before)
        yield line, row
