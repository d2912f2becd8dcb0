"""Reading procedures: plain text, lists, Markdown, schema.org JSON-LD, web pages, recipe-scrapers' JSON.

This module finds out which form a procedure has; the others read it.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Any

from graph2vid._files import parse_json, read_bytes
from graph2vid._values import repaired
from graph2vid.errors import FormatError, InputError
from graph2vid.flow import is_text_notation
from graph2vid.text.parsed_text import Procedure
from graph2vid.text.reading.plain import read_plain
from graph2vid.text.reading.structured import read_json_ld, read_scraped, read_web_page
from graph2vid.text.reading.tidy import MOST_BYTES, decoded, has_words

_MOST_INSTRUCTIONS = 2000
_JSON_SUFFIXES = (".json", ".jsonld")
_HTML_SUFFIXES = (".html", ".htm", ".xhtml")
FLOW_SUFFIXES = (".flow", ".dot", ".gv")
_LONGEST_NAME = 1000
_LIKE_NAME = re.compile(r"\S+\.[A-Za-z0-9]{1,8}")
_LIKE_JSON = re.compile(r'\s*(?:\{\s*["}]|\[\s*[{\]])')
_LIKE_HTML = re.compile(
    r"(?i)\s*<(?:!--|(?:!doctype|\?xml|html|head|body|script|meta|title|div|main|article|section)\b)"
)


def read_procedure(path: str | os.PathLike[str]) -> Procedure:
    """Read a procedure from a file; what is in it decides the form.

    Plain paragraphs (one instruction per sentence), lists of any kind, Markdown, one instruction per line; schema.org
    Recipe or HowTo in JSON-LD, alone or in a web page; JSON of recipe-scrapers. UTF-8, UTF-16 with a byte-order mark,
    or cp1252.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Procedure
        Each instruction says where it came from ("line 4", "recipeInstructions[2]").

    Raises
    ------
    Graph2VidError
        The file cannot be read, is no text, or holds no procedure.
    """
    return procedure_from_bytes(read_bytes(path, MOST_BYTES + 1), source=str(Path(path)))


def procedure_of(given: Procedure | str | os.PathLike[str]) -> Procedure:
    """Return a procedure as it is, or read it: from the file that a path or string names, or from the string itself.

    A string names a file where there is one of that name, or where it looks like a name and not like words: one
    word with a suffix, such as "recipe.txt".
    """
    if isinstance(given, Procedure):
        return given
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"a procedure is a text, a path or a Procedure, not {type(given).__name__}")
    return procedure_from_text(given) if isinstance(given, str) and not _names_file(given) else read_procedure(given)


def _names_file(text: str) -> bool:
    if "\n" in text or "\0" in text or len(text) > _LONGEST_NAME:
        return False
    with contextlib.suppress(OSError):
        if Path(text).is_file():
            return True
    return bool(_LIKE_NAME.fullmatch(text))


def procedure_from_bytes(data: bytes, *, source: str = "") -> Procedure:
    """Read a procedure from the bytes of a file; see :func:`read_procedure`."""
    return procedure_from_text(decoded(data, source or "the input"), source=source)


def procedure_from_text(text: str, *, source: str = "") -> Procedure:
    """Read a procedure from a string in any of the forms of :func:`read_procedure`.

    Parameters
    ----------
    text : str
        The text.
    source : str
        Where it came from: what messages call it, and the source of the procedure.
    """
    text = repaired(text).removeprefix("\ufeff")
    called = source or "the text"
    suffix = Path(source).suffix.lower()
    if suffix in FLOW_SUFFIXES or is_text_notation(text):
        raise FormatError(f"{called} is a flow graph already, not a procedure in words; see `graph2vid flow`")
    if not has_words(text):
        raise InputError(f"{called} holds no words; a procedure needs at least one instruction")
    if suffix in _JSON_SUFFIXES or _LIKE_JSON.match(text):
        found = _from_json(parse_json(text, called, lenient=True), called)
    elif suffix in _HTML_SUFFIXES or _LIKE_HTML.match(text):
        found = read_web_page(text, called)
    else:
        found = read_plain(text, called)
    if len(found) > _MOST_INSTRUCTIONS:
        raise InputError(f"{called} holds {len(found)} instructions, more than {_MOST_INSTRUCTIONS}: split it up")
    return Procedure(found.instructions, found.title, found.ingredients, source)


def _from_json(value: Any, source: str) -> Procedure:
    own = value.get("format") if isinstance(value, dict) else None
    if isinstance(own, str) and own.startswith("graph2vid-"):
        raise FormatError(f"{source} is a {own[:40]} file already, not a procedure in words")
    if found := read_json_ld(value, source) or read_scraped(value, source):
        return found
    raise FormatError(
        f"{source}: no recipe in this JSON; schema.org Recipe and HowTo, and recipe-scrapers' JSON are read"
    )
