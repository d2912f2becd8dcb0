"""Words of a text, the pieces of words that the encoder reads, and what the learned parser says of them.

Classes of entities, their tags, and labels of edges.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

CLASSES = ("Ac", "Ac2", "Af", "At", "D", "F", "Q", "Sf", "St", "T")
"""Action by the cook, its second part, action by food, action by tool, duration, food, quantity, state of food,
state of tool, tool."""

TAGS = ("O", *(f"{mark}-{kind}" for kind in CLASSES for mark in "BI"))
"""Outside of an entity; begins one of a class; goes on with it."""

LABELS = (
    "-", "a", "a-eq", "d", "f-comp", "f-eq", "f-part-of", "f-set",
    "o", "s", "t", "t-comp", "t-eq", "t-part-of", "v", "v-tm",
)  # fmt: skip
"""Labels of the edges from an entity to its head, as in the recipe flow graph corpus."""

SAME_THING = ("a-eq", "f-eq", "f-part-of", "t-eq", "t-part-of")
"""The labels that say: the head is what the dependent made, or a part of it."""

ACTIONS = frozenset({"Ac", "Ac2", "Af"})
SENTENCE_ENDS = frozenset({".", "!", "?"})


class Span(NamedTuple):
    """An entity: its first word, its end (not included) and its class."""

    start: int
    end: int
    kind: str


def spans_of(tags: Sequence[str]) -> list[Span]:
    """Return the entities of BIO tags; an "I-" that goes on with nothing begins one."""
    found: list[Span] = []
    for at, tag in enumerate(tags):
        mark, _, kind = tag.partition("-")
        if mark == "I" and found and found[-1][1:] == (at, kind):
            found[-1] = Span(found[-1].start, at + 1, kind)
        elif mark in ("B", "I"):
            found.append(Span(at, at + 1, kind))
    return found


def sentence_numbers(words: Sequence[str]) -> list[int]:
    """Return the sentence, from 0, of each word; a sentence ends with ".", "!" or "?"."""
    return list(accumulate((word in SENTENCE_ENDS for word in words), initial=0))[: len(words)]


UNKNOWN, BEGIN, END, MASK = "[UNK]", "[CLS]", "[SEP]", "[MASK]"
LONGEST_WORD = 100
MOST_PIECES = 16

_WORD = re.compile(
    r"\.?\d+(?:[.,/x×–-]\d+)*[°º]?[^\W\d_]*"  # 180C, 1/2, 2-3, 20x10cm, .5cm
    r"|[^\W_]+(?:['’/&-][^\W_]+)*"  # medium-high, don't, and/or
    r"|\S"
)
_SIGNS = frozenset("$+<=>^`|~")


class Word(NamedTuple):
    """A word and where it stands: characters of the text, end not included."""

    text: str
    start: int
    end: int


def words_of(text: str) -> list[Word]:
    """Cut a text into words, numbers with their units, and single signs."""
    return [Word(match.group(), match.start(), match.end()) for match in _WORD.finditer(text)]


def tidy(word: str) -> str:
    """Return a word in lower case without accents, UTF-8 that was read as Latin-1 mended."""
    with suppress(UnicodeError):
        for _ in range(3):
            word = word.encode("latin-1").decode("utf-8")
    decomposed = unicodedata.normalize("NFD", word.lower())
    return "".join(sign for sign in decomposed if unicodedata.category(sign) not in ("Mn", "Cc", "Cf"))


@lru_cache(50_000)
def stem(word: str) -> str:
    """Cut common endings, so that "tomatoes" and "tomato", "mashed" and "mash", "slicing" and "slice" agree."""
    word = word.lower()
    for ending in ("ing", "ied", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            if ending in ("ing", "ed") and word[-1] == word[-2] and word[-1] not in "ls":  # chopped, but rolled
                word = word[:-1]
            return word.removesuffix("e")
    return word[:-1] if word.endswith(("y", "e")) and len(word) > 3 else word


class Pieces:
    """Cuts words into the pieces of a vocabulary, the longest first (WordPiece).

    Parameters
    ----------
    vocabulary : sequence of str
        The pieces by number; one that goes on with a word begins with "##".
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.vocabulary = tuple(vocabulary)
        self._numbers = {piece: number for number, piece in enumerate(self.vocabulary)}
        self.unknown, self.begin, self.end, self.mask = (self._numbers[name] for name in (UNKNOWN, BEGIN, END, MASK))
        self._known: dict[str, tuple[int, ...]] = {}

    def of(self, word: str) -> tuple[int, ...]:
        """Return the numbers of a word's pieces: at least one, at most ``MOST_PIECES``."""
        found = self._known.get(word)
        if found is None:
            if len(self._known) > 50_000:  # a long-lived process must not collect every word it ever saw
                self._known.clear()
            numbers = [number for part in _parts(tidy(word[: 4 * LONGEST_WORD])) for number in self._cut(part)]
            found = tuple(numbers[:MOST_PIECES]) or (self.unknown,)
            self._known[word] = found
        return found

    def _cut(self, part: str) -> list[int]:
        if len(part) > LONGEST_WORD:
            return [self.unknown]
        numbers, start = [], 0
        while start < len(part):
            for end in range(len(part), start, -1):
                number = self._numbers.get(("##" if start else "") + part[start:end])
                if number is not None:
                    numbers.append(number)
                    start = end
                    break
            else:
                return [self.unknown]
        return numbers


def _parts(word: str) -> list[str]:
    """Return the runs of letters and digits of a word, and each punctuation sign by itself."""
    alone = {sign for sign in word if unicodedata.category(sign).startswith("P") or sign in _SIGNS}
    return "".join(f" {sign} " if sign in alone else sign for sign in word).split()
