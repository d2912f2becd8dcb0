"""From bytes to text, whatever the encoding."""

from __future__ import annotations

import codecs

from graph2vid.errors import FormatError

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
