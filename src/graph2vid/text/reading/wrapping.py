"""Lines that follow each other: a broken paragraph, an instruction each, or headings above what belongs to them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import dropwhile, pairwise

from graph2vid.text.lexicon import IMPERATIVES, words
from graph2vid.text.reading.lines import SET_APART_LEVEL, TIGHT_LEVEL, Kind, Line, ends_sentence, is_short

_NARROWEST_COLUMN = 24
"""Characters; nobody breaks running text into shorter lines."""
_USUAL_COLUMN = 50
"""So wide at least is running text where the letters that begin its lines, or its stops, do not tell."""

_ADVERBS = words(
    "then next finally first now meanwhile lastly afterwards also carefully gently slowly quickly gradually"
)
_LINKS = words(
    "the a an and or but nor of with without in into on onto over under at to for from by as until till so that which "
    "your its their this these than between about"
)
"""Words that neither end an instruction nor, in small letters, begin one."""
_GOES_ON = _LINKS | words("it them is are has have well again if when while once before after")
_OPENERS = words("in into on using with when once while after before if for at")
"""Words that may open an order, before its verb: "in a pan melt the butter"."""
_ALSO_NOUNS = words(
    "heat oil top brown cream ice dust butter core cube set form shape cover cool dry thin warm rest smooth open clean "
    "quarter stick line ring"
)
_NO_NEW_ORDER = words("and or then to you it they we should can")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_STOP_WITHIN = re.compile(r"[.!?]\s+[A-Z]")


def begins_order(text: str) -> bool:
    """Say whether a line begins as orders do, with a verb: "Add water", "then slowly stir", "in a pan melt butter"."""
    found = list(dropwhile(_ADVERBS.__contains__, _WORD.findall(text.lower()[:80])))
    if not found or found[0] not in _OPENERS:
        return bool(found) and found[0] in IMPERATIVES
    verbs = IMPERATIVES - _ALSO_NOUNS
    return any(word in verbs and before not in _NO_NEW_ORDER for before, word in pairwise(found))


def is_paragraph(lines: Sequence[Line]) -> bool:
    """Say whether lines are those of a broken paragraph, rather than instructions that begin on a line of their own.

    Parameters
    ----------
    lines : sequence of Line
        At least two, none of them blank.
    """
    widest = max(len(line.text) for line in lines)
    breaks = [(above.text, below.text) for above, below in pairwise(lines)]
    open_breaks = [(above, below) for above, below in breaks if not ends_sentence(above)]
    small = [(above, below) for above, below in open_breaks if below[0].islower()]
    filled = all(_is_full(above, below, widest) for above, below in open_breaks or breaks)
    if not small:
        # Sentences that fill their lines may end there by chance; an instruction per line leaves lines short.
        return filled and widest >= _USUAL_COLUMN
    if any(_STOP_WITHIN.search(above) for above, _ in open_breaks):
        return True
    in_prose = lines[0].text[0].isupper() and (ends_sentence(lines[-1].text) or widest >= _USUAL_COLUMN)
    only_orders = all(begins_order(below) and not is_open(above) for above, below in small)
    return filled and widest >= _NARROWEST_COLUMN and (in_prose or not only_orders)


def _is_full(above: str, below: str, width: int) -> bool:
    """Say whether the first word of ``below`` would not have fitted into the line ``above``."""
    return len(above) + 1 + len(below.split(maxsplit=1)[0]) > width


def goes_on(above: str, below: str, in_capitals: bool) -> bool:
    """Say whether ``below`` goes on with the instruction that ``above`` begins, in lines that are no paragraph.

    Parameters
    ----------
    above, below : str
    in_capitals : bool
        Whether instructions begin with capital letters; a small one that begins no order then goes on.
    """
    if ends_sentence(above) or not below[0].islower():
        return False
    if is_open(above):
        return True
    first = _WORD.match(below.lower())
    return not begins_order(below) and (in_capitals or (first is not None and first[0] in _GOES_ON))


def is_open(text: str) -> bool:
    """Say whether a line ends with a word after which something must follow."""
    found = _WORD.findall(text.lower()[-80:])
    return bool(found) and text[-1].isalpha() and found[-1] in _LINKS | {"then"}


_SHORT_ITEM = 24  # characters; an item so short was not broken into lines
_BLANK = Line(0, Kind.BLANK)


def with_sections(lines: Sequence[Line], after_title: bool = False) -> list[Line]:
    """Return lines in which those that stand over a part of the procedure are headings.

    Such a line is short, ends without a stop, and is the only one of its block. Above a list that begins anew it is a
    heading whatever it says; above sentences, where other sentences, a heading or the title stand before it, if it
    is a name ("Removing the wheel", "Assembly").

    Parameters
    ----------
    lines : sequence of Line
    after_title : bool
        Whether the title stood before them.
    """
    found = list(lines)
    for place, line in enumerate(lines):
        if line.kind is Kind.TEXT and is_short(line.text):
            set_apart = _at(lines, place + 1).kind is Kind.BLANK
            above, below = _at(lines, place - 1), _at(lines, place + 1 + set_apart)
            if below.kind is Kind.ITEM:
                is_heading = below.mark <= 1 and _is_complete(above, line, restarts=below.mark == 1)
            else:
                is_heading = set_apart and below.kind is Kind.TEXT and _is_among_sentences(lines, place, after_title)
            if is_heading:
                level = SET_APART_LEVEL if set_apart else TIGHT_LEVEL
                found[place] = line._replace(kind=Kind.HEADING, text=line.text.rstrip(":").rstrip(), level=level)
    return found


def _at(lines: Sequence[Line], place: int) -> Line:
    return lines[place] if 0 <= place < len(lines) else _BLANK


def _is_complete(above: Line, line: Line, restarts: bool) -> bool:
    """Say whether ``line`` does not go on with what stands above it; below it, the numbers of a list may restart."""
    if above.kind is Kind.ITEM:
        complete = restarts or ends_sentence(above.text) or (len(above.text) < _SHORT_ITEM and not is_open(above.text))
        return complete and line.text[0].isupper() and line.indent <= above.indent
    return above.kind is not Kind.TEXT


def _is_among_sentences(lines: Sequence[Line], place: int, after_title: bool) -> bool:
    """Say whether the line alone in its block is no sentence, while those around it are."""
    words, above = lines[place].text.split(), _at(lines, place - 1)
    before = _at(lines, place - 2) if above.kind is Kind.BLANK else above
    a_name = words[0].endswith("ing") or all(word[0].isupper() or len(word) < 4 for word in words)
    if above.kind is Kind.TEXT or not words[0][0].isupper() or not a_name or begins_order(lines[place].text):
        return False
    below_title = place <= 2 and before.number == lines[0].number
    if not (below_title or (after_title and place == 0) or before.kind is Kind.HEADING or ends_sentence(before.text)):
        return False
    end = place + 2
    while _at(lines, end + 1).kind is Kind.TEXT:
        end += 1
    return ends_sentence(lines[end].text)
