"""Web pages: the JSON-LD in their scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

from graph2vid._files import parse_json
from graph2vid.errors import FormatError, InputError
from graph2vid.text.parsed_text import Procedure
from graph2vid.text.reading.json_ld import read_json_ld

_COMMENT_OR_SCRIPT = re.compile(r"<!--|<script\b[^<>]{,2000}>", re.IGNORECASE)
_COMMENT_END = re.compile(r"-->")
_SCRIPT_END = re.compile(r"</script\b", re.IGNORECASE)


def read_web_page(text: str, source: str) -> Procedure:
    """Read the first recipe or how-to in the JSON-LD scripts of a page; broken scripts are passed over.

    Raises
    ------
    InputError
        The page holds none.
    """
    scripts = list(_scripts(text))
    values, broken = [], 0
    for script in scripts:
        try:
            # Pages put bare line breaks into strings, which strict JSON forbids.
            values.append(parse_json(_bare(script), source, lenient=True))
        except FormatError:
            broken += 1
    procedure = read_json_ld(values, source)
    if procedure is None:
        why = "it has no JSON-LD" if not scripts else "none of its JSON-LD is a Recipe or HowTo"
        why = f"{broken} of its {len(scripts)} JSON-LD scripts cannot be read" if broken else why
        raise InputError(f"{source}: no recipe in this web page ({why}); save the instructions as text, one per line")
    return procedure


def _bare(script: str) -> str:
    """Return a script without the comment or CDATA marks that old pages wrap it in."""
    script = script.strip()
    for opening, closing in (("<!--", "-->"), ("//<![CDATA[", "//]]>"), ("<![CDATA[", "]]>")):
        script = script.removeprefix(opening).removesuffix(closing).strip()
    return script.removesuffix(";")


def _scripts(text: str) -> Iterator[str]:
    """Yield the JSON-LD scripts of a page, in linear time however broken it is."""
    place = 0
    while mark := _COMMENT_OR_SCRIPT.search(text, place):
        is_comment = mark[0] == "<!--"
        end = (_COMMENT_END if is_comment else _SCRIPT_END).search(text, mark.end())
        if not is_comment and _Type.of(mark[0]) == "application/ld+json":
            yield text[mark.end() : end.start() if end else len(text)]
        if end is None:
            return
        place = end.end()


class _Type(HTMLParser):
    """Finds the type that a start tag gives."""

    def __init__(self) -> None:
        super().__init__()
        self.found = ""

    @classmethod
    def of(cls, tag: str) -> str:
        """Return the type without its parameters, in small letters."""
        parser = cls()
        parser.feed(tag)
        return parser.found.partition(";")[0].strip().casefold()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found = dict(attrs).get("type") or ""
