"""What the lines of a plain text are: headings, items of lists, running text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from graph2vid.errors import InputError
from graph2vid.text.reading.boilerplate import ends_page, is_boilerplate, is_button
from graph2vid.text.reading.tidy import has_words, tidy, without_markdown

Kind = Enum("Kind", "BLANK HEADING ITEM TEXT")
"""What a line is."""


class About(Enum):
    """What stands below a heading."""

    INGREDIENTS = "ingredients"
    METHOD = "method"
    ASIDE = "aside"
    """Notes, tips, nutrition: neither ingredients nor instructions."""
    PART = "part"
    """A part of the procedure ("For the sauce"), or anything else."""


KEYWORD_LEVEL = 7
"""The level of a heading that a word alone makes one ("Method"); those of Markdown are 1 to 6."""
SET_APART_LEVEL = 8
TIGHT_LEVEL = 9
"""The levels of a heading that only its place makes one, above a blank line or right above a list."""
PART_LEVEL = 10
"""The level of a heading within such a one ("For the sauce:")."""


class Line(NamedTuple):
    """One line of a text.

    Attributes
    ----------
    number : int
        From 1.
    kind : Kind
    text : str
        Tidied, without the marks that make it what it is.
    indent : int
        Columns of white space before it.
    level : int
        Of a heading; 1 is the highest. Of an item that was a heading ("## Step 1: …") too, else 0.
    about : About
        Of a heading.
    ordered : bool
        Whether an item is numbered.
    mark : int
        The number of an item; 0 where it has a letter, a bullet, or no mark of its own.
    """

    number: int
    kind: Kind
    text: str = ""
    indent: int = 0
    level: int = 0
    about: About = About.PART
    ordered: bool = False
    mark: int = 0


_ENDS_HEADING = r"(?:\s*\(.*\)|\s+for\s.*|\s*(?:and|&|/|,)\s+(?:tools|materials|equipment|supplies|ingredients))?"
_ABOUT = {
    About.INGREDIENTS: re.compile(
        r"(?i)(?:the\s+)?(?:ingredients?(?: list)?|shopping list|supplies|materials|equipment|tools|utensils"
        r"|(?:(?:here['’]s )?what |things )?you(?:['’]ll| will)? need|zutaten|ingr[ée]dients|ingredient(?:es|i)|材料)"
        + _ENDS_HEADING
    ),
    About.METHOD: re.compile(
        r"(?i)(?:the\s+)?(?:(?:cooking|preparation|step[- ]by[- ]step) )?(?:method|directions?|instructions?|steps"
        r"|procedure|preparation|how to make (?:it|them)|what to do|zubereitung|pr[ée]paration|preparaci[óo]n"
        r"|instrucciones|elaboraci[óo]n|preparazione|procedimento|modo de preparo|作り方|做法|步骤)" + _ENDS_HEADING
    ),
    About.ASIDE: re.compile(
        r"(?i)(?:(?:recipe|cook['’]?s|chef['’]?s) )?(?:notes?|tips?|hints|nutrition(?:al)?(?: facts| information)?"
        r"|storage|variations?|warnings?|comments|reviews|sources?|references|credits|about(?: this recipe)?"
        r"|introduction)"
    ),
}
_MARKDOWN_HEADING = re.compile(r"(#{1,6})\s+(.*?)[\s#]*")
_ALL_BOLD = re.compile(r"(\*\*|__)([^*_]+)\1:?")
_UNDERLINE = re.compile(r"(=|-)\1{2,}")
_RULE = re.compile(r"([-*_=~#+])(?:\s*\1){2,}|`{3,}.*|~{3,}.*")
_FACT = re.compile(  # what recipes say about themselves; "Cook 10 minutes" is not of this kind
    r"(?i)(?:prep(?:aration)?|cook(?:ing)?|baking|total|active|rest(?:ing)?)(?: time\s*:?|\s*:)\s*(?:about )?\d.{,40}"
    r"|(?:serves|servings?|yields?|makes|portions)\s*:?\s*(?:about )?\d.{,40}"
    r"|(?:ready|done|made) in (?:about |just |only |under )?\d.{,40}"
    r"|(?:difficulty|author|source|url|cuisine|course|category|calories)\s*:.{,80}"
)
_BULLET = re.compile(r"[-*+•‣◦▪●○·–—►✓☐□▢](?:\s+|$)(?:\[[ xX]\]\s+)?")
_NUMBER = re.compile(
    r"\(?(?P<number>\d{1,3})(?:[.)](?:\s+|(?=[^\W\d])|$)|[:．](?:\s+|$)|、)"
    r"|\((?:[a-zA-Z]|[ivxIVX]{1,5})\)\s*|(?:[a-zA-Z]|[ivx]{1,5})\)\s+|[a-z]\.\s+"
)
_STEP = re.compile(
    r"(?i)step\s+(?:\d{1,3}\b(?:\s+of\s+\d+)?(?:\s*[:.)–—-])?"
    r"|(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)(?:\s*[:.)–—-]|$))(?:\s+|$)"
)
_PART = re.compile(
    r"(?i)(?:for|to make) the(?: \S+){1,5}|für (?:den|die|das)(?: \S+){1,4}|pour (?:la|le|les)(?: \S+){1,4}"
    r"|(?:part|method|section|phase|stage|option|chapter|day)\s+(?:\d{1,2}|[ivx]{1,4}|[a-d]|one|two|three|four|five|six)"
    r"(?:\s+of\s+\d{1,2})?(?:\s*[:.)–—-](?:\s*\S.*)?)?"
)
_LIST_SIGN = re.compile(r"[(),;]|$")
_NEXT_NUMBER = re.compile(r"(?<=[.!?;,)])\s+\(?(\d{1,3})[.)]\s+(?=[^\W\d])")
_BARE_NUMBER = re.compile(r"\d{1,3}")
_MOST_HEADING_WORDS = 8
_MOST_PART_WORDS = 14
_MOST_LINES = 20_000
_LONGEST_PAGE_LINE = 200
_ENDS = (".", "!", "?", "…", "。", "！", "？")


def ends_sentence(text: str) -> bool:
    """Say whether ``text`` ends with a stop."""
    return text.rstrip("\"'”’)]»*_").endswith(_ENDS)


def is_part(text: str) -> bool:
    """Say whether a line calls itself a part: "Method 2", "Part 1: Removing the wheel", "For the sauce"."""
    return is_short(text, _MOST_PART_WORDS) and bool(_PART.fullmatch(text))


def lines_of(text: str, source: str) -> list[Line]:
    """Say for each line of a text what it is; a line that holds several things gives several, blank ones give one."""
    raw = text.splitlines()
    if len(raw) > _MOST_LINES:
        raise InputError(f"{source}: {len(raw)} lines are no procedure; cut out the part with the instructions")
    in_page = any(map(_is_of_page, raw))
    found: list[Line] = []
    for place, line in enumerate(raw):
        below = raw[place + 1].strip() if place + 1 < len(raw) else ""
        for made in _read(line, place + 1, below, found[-1] if found else None, in_page):
            if made.kind is not Kind.BLANK or (found and found[-1].kind is not Kind.BLANK):
                found.append(made)
    return found


def _is_of_page(line: str) -> bool:
    """Say whether a line is one that recipes on web pages have, and texts that people write by hand seldom."""
    bare = _bare(tidy(line)) if len(line) <= _LONGEST_PAGE_LINE else ""
    return is_boilerplate(bare) or ends_page(bare) or _about(bare.rstrip(":")) is About.INGREDIENTS


def _bare(text: str) -> str:
    return without_markdown(text.lstrip("#"))


def _read(raw: str, number: int, below: str, previous: Line | None, in_page: bool) -> Iterator[Line]:
    expanded = raw[:200].expandtabs(4)
    indent = len(expanded) - len(expanded.lstrip())
    text = tidy(raw)
    text = text.lstrip("> ") if text.startswith(">") else text  # a quotation
    if not text or _RULE.fullmatch(text) or _FACT.fullmatch(text):
        yield Line(number, Kind.BLANK)
    elif ends_page(bare := _bare(text)):
        yield Line(number, Kind.HEADING, bare, level=KEYWORD_LEVEL, about=About.ASIDE)
    elif is_boilerplate(bare) or (in_page and is_button(bare)):
        if previous is not None and previous.kind is Kind.ITEM:  # what follows does not go on with the item
            yield Line(number, Kind.BLANK)
    elif _BARE_NUMBER.fullmatch(text):
        yield Line(number, Kind.ITEM, "", indent, ordered=True, mark=int(text))
    elif heading := _MARKDOWN_HEADING.fullmatch(text):
        yield _heading(number, heading[2], len(heading[1]))
    elif item := _item(text, number, indent):
        boilerplate = not item.ordered and is_boilerplate(item.text)
        yield from [Line(number, Kind.BLANK)] if boilerplate else _enumerated(item, text)
    elif _UNDERLINE.fullmatch(below) and is_short(text):
        yield _heading(number, text, 1 if below[0] == "=" else 2)
    elif (bold := _ALL_BOLD.fullmatch(text)) and is_short(bold[2]):
        yield _heading(number, bold[2], PART_LEVEL)
    else:
        yield from _words(without_markdown(text), number, indent, previous)


def _words(text: str, number: int, indent: int, previous: Line | None) -> Iterator[Line]:
    """Read a line without marks: a heading by its words, or running text."""
    goes_on = previous is not None and previous.kind is Kind.TEXT and not ends_sentence(previous.text)
    announces = text.endswith(":") and not goes_on
    head, colon, rest = text.partition(":")
    about = _about(head)
    if about is not About.PART and (not rest.strip() or (colon and about is not About.ASIDE)):
        yield _heading(number, head, KEYWORD_LEVEL)
        if about is About.INGREDIENTS:
            yield from (Line(number, Kind.ITEM, part) for part in _listed(rest))
        elif has_words(rest):
            yield Line(number, Kind.TEXT, tidy(rest), indent)
    elif is_part(text.rstrip(":")) or (is_short(text) and indent < 2 and announces):
        yield _heading(number, text, PART_LEVEL)
    elif has_words(text):
        yield Line(number, Kind.TEXT, text, indent)
    else:
        yield Line(number, Kind.BLANK)


def _listed(text: str) -> Iterator[str]:
    """Part "flour, eggs (2, large); milk" at commas and semicolons outside of brackets."""
    start = depth = 0
    for sign in _LIST_SIGN.finditer(text):
        if sign[0] in ("(", ")"):
            depth = max(0, depth + (1 if sign[0] == "(" else -1))
        elif depth == 0 or not sign[0]:
            if has_words(part := tidy(text[start : sign.start()])):
                yield part
            start = sign.end()


def _heading(number: int, text: str, level: int) -> Line:
    text = without_markdown(text).strip().rstrip(":").rstrip()
    if not has_words(text):
        return Line(number, Kind.BLANK)
    about = _about(text)
    if about is not About.PART:
        return Line(number, Kind.HEADING, text, level=min(level, KEYWORD_LEVEL), about=about)
    if step := _STEP.match(text):
        return Line(number, Kind.ITEM, text[step.end() :], level=level, ordered=True)
    return Line(number, Kind.HEADING, text, level=level)


def _about(heading: str) -> About:
    heading = heading.strip()
    if not is_short(heading):
        return About.PART
    return next((about for about, words in _ABOUT.items() if words.fullmatch(heading)), About.PART)


def is_short(text: str, most_words: int = _MOST_HEADING_WORDS) -> bool:
    """Say whether a line may be a heading: a few words, and no sentence."""
    return len(text) < 100 and len(text.split()) <= most_words and not ends_sentence(text)


def _item(text: str, number: int, indent: int) -> Line | None:
    """Return the item of a list that ``text`` is."""
    bullet = _BULLET.match(text)
    text = text[bullet.end() :] if bullet else text
    marker = _STEP.match(text) or _NUMBER.match(text)
    if not bullet and not marker:
        return None
    words = without_markdown(text[marker.end() :] if marker else text)
    mark = int(counted[0]) if marker and (counted := _BARE_NUMBER.search(marker[0])) else 0
    return Line(number, Kind.ITEM, words if has_words(words) else "", indent, ordered=marker is not None, mark=mark)


def _enumerated(item: Line, text: str) -> Iterator[Line]:
    """Part "1. Mix. 2. Bake." in one line."""
    first = _NUMBER.match(text)
    if first is None or first["number"] is None:
        yield item
        return
    count, start, words = int(first["number"]), 0, item.text
    for marker in _NEXT_NUMBER.finditer(words):
        if int(marker[1]) == count + 1:
            yield item._replace(text=words[start : marker.start()], mark=count)
            count, start = count + 1, marker.end()
    yield item._replace(text=words[start:], mark=count)
