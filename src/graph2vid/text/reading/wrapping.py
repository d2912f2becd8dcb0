"""Lines that follow each other: a broken paragraph, or an instruction each, some of them over several lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import dropwhile, pairwise

from graph2vid.text.lexicon import IMPERATIVES, words
from graph2vid.text.reading.lines import Line, ends_sentence

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
