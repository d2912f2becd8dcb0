"""What the learned parser says of a text: classes of entities, their tags, and labels of edges."""

from __future__ import annotations

from collections.abc import Sequence
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
    numbers, number = [], 0
    for word in words:
        numbers.append(number)
        number += word in SENTENCE_ENDS
    return numbers
