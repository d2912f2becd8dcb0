"""Bare imperatives, made sentences that a dependency parser reads well."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from graph2vid.text import lexicon

WORDS = "you should "
LONGEST_PIECE = 500
MOST_PIECES = 40
_LONGEST_ABBREVIATION = 24  # characters, with what may stand before it

_ABBREVIATIONS = lexicon.words(
    "approx. min. mins. hr. hrs. oz. lb. lbs. tbsp. tsp. no. e.g. i.e. vs. etc. dr. mr. ft. in."
)
# White space is looked at from where it begins: linear in its length.
_END = re.compile(r"(?<=[.!?])[)\"'”’]*\s+|(?<!\s)\s*;\s*|;\s*|(?<!\s)\s+[-–—]+\s+|(?<!\s)\s*\n\s*|\n\s*")
_MEASURE_IN_BRACKETS = re.compile(r"\([^()]{0,60}\d[^()]{0,60}\)")
_OPTIONAL_IN_BRACKETS = re.compile(r"\((?:optional|if [^()]{1,20})\)", re.IGNORECASE)
_PREHEAT = re.compile(r"\bpre[- ]heat(?= )", re.IGNORECASE)
_LABEL = re.compile(r"^[^,.:]{1,40}:\s+")
_WORD = re.compile(r"[^\W_][\w'’-]*")
_BULLET = re.compile(r"^[\W\d]*(?=[^\W\d])")


class Piece(NamedTuple):
    """A sentence of an instruction, within a carrier sentence.

    Attributes
    ----------
    instruction : int
        Which instruction, from 0.
    start : int
        Where the piece begins in the text of the instruction, in characters.
    text : str
        The carrier sentence.
    carrier : int
        Where the words of the carrier stand in ``text``.
    opening : str
        The adverbial before the order, in lower case ("in a large bowl, "); often empty.
    """

    instruction: int
    start: int
    text: str
    carrier: int
    opening: str

    def place(self, character: int) -> int:
        """Return where a character of ``text`` stands in the text of the instruction."""
        return self.start + (character if character < self.carrier else max(character - len(WORDS), self.carrier))

    def is_carrier(self, character: int) -> bool:
        """Tell whether a character of ``text`` belongs to the words that were put in."""
        return self.carrier <= character < self.carrier + len(WORDS)


def pieces(instruction: int, text: str) -> list[Piece]:
    """Split an instruction into sentences (and at semicolons), and put each into a carrier sentence.

    At most ``MOST_PIECES`` pieces of at most ``LONGEST_PIECE`` characters are made; what is left of an enormous line
    is not looked at.

    Examples
    --------
    >>> [piece.text for piece in pieces(0, "In a bowl, whisk the eggs; set aside. Heat the oil.")]
    ['in a bowl, you should whisk the eggs', 'you should set aside.', 'you should heat the oil.']
    """
    found = []
    text = _OPTIONAL_IN_BRACKETS.sub(lambda match: " " * len(match.group()), text)
    for start, end in _spans(text):
        words = _PREHEAT.sub(lambda match: "preheat ".rjust(len(match.group())), text[start:end])
        words = _MEASURE_IN_BRACKETS.sub(lambda match: " " * len(match.group()), words)
        if words.isupper() and len(words.lower()) == len(words):
            words = words.lower()
        label = _LABEL.match(words)
        at = label.end() if label else 0
        at += _order_begins(words[at:])
        carried = f"{_lower_start(words[:at])}{WORDS}{_lower_start(words[at:])}"
        found.append(Piece(instruction, start, carried, at, words[:at].lower()))
    return found


def _lower_start(words: str) -> str:
    small = words[:1].lower()
    return small + words[1:] if len(small) == 1 else words


def _spans(text: str) -> list[tuple[int, int]]:
    """Return where the sentences of a text begin and end, in characters."""
    spans: list[tuple[int, int]] = []
    start = 0
    for end, following in [*((m.start(), m.end()) for m in _END.finditer(text)), (len(text), len(text))]:
        last_word = text[max(start, end - _LONGEST_ABBREVIATION) : end].rsplit(None, 1)[-1:]
        if following < len(text) and last_word and last_word[0].lower() in _ABBREVIATIONS:
            continue
        while start < end and len(spans) < MOST_PIECES:
            stop = min(end, start + LONGEST_PIECE)
            if stop < end:
                stop = max(text.rfind(" ", start, stop), start + LONGEST_PIECE // 2)
            begin = start + (match.end() if (match := _BULLET.match(text[start:stop])) and "(" in match.group() else 0)
            begin += len(text[begin:stop]) - len(text[begin:stop].lstrip())
            if _WORD.search(text, begin, stop):
                spans.append((begin, stop))
            start = stop
        start = following
    return spans


def _order_begins(words: str) -> int:
    """Return where the order begins after an adverbial, in characters; 0 if none comes first.

    Examples
    --------
    >>> text = "In a large, deep pan, melt the butter"
    >>> text[_order_begins(text):]
    'melt the butter'
    """
    tokens = [(match.group().lower(), match.start(), match.end()) for match in _WORD.finditer(words[:LONGEST_PIECE])]
    if not tokens or (tokens[0][0] not in lexicon.OPENERS and not tokens[0][0].endswith("ly")):
        return 0
    gaps = [words[before[2] : after[1]] for before, after in pairwise(tokens)]
    for place in (place for place, gap in enumerate(gaps, start=1) if "," in gap or ")" in gap):
        verb = place
        while verb + 1 < len(tokens) and (tokens[verb][0].endswith("ly") or tokens[verb][0] in ("then", "you", "can")):
            verb += 1
        if tokens[verb][0] in lexicon.IMPERATIVES and tokens[verb - 1][0] not in ("you", "can"):
            return tokens[place][1]
    for place, ((before, _, _), (word, start, _)) in enumerate(pairwise(tokens)):
        may_be_verb = before not in _NOT_BEFORE_A_VERB and (place == 0 or before not in lexicon.OPENERS)
        if word in lexicon.IMPERATIVES and may_be_verb:
            return start
    return 0


_NOT_BEFORE_A_VERB = lexicon.words(
    "a an the your this that these those each every some any of to and or you should can will must it they i we not is "
    "are be has have medium low high large small hot cold"
)
