"""From links between the parts of instructions to a flow graph with one step per instruction.

Instructions may say that they can be left out, or that they are done in place of the one before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from graph2vid.flow import FlowGraph
from graph2vid.text.parsed_text import EntityGraph, Parse, Procedure, Reason

_WISH = r"if (?:desired|liked|wanted|wished|preferred|you (?:like|want|wish|prefer|desire)|you(?:'|’)d like)"
_BEFORE = re.compile(
    rf"(?i)\W*(?:optionally\b|optional(?: step)?\s*[):,–—-]|{_WISH}\s*[,:)]|if (?:desired|liked|wanted|preferred) \w)"
)
# White space is looked at from where it begins, and not twice: linear in its length.
_AFTER = re.compile(rf"(?i)(?:\(\s*(?:optional|{_WISH})\s*\)|,?(?<!\s)\s+{_WISH}|,\s+optional(?:ly)?)\s*+[.!]*+\s*$")
_LONGEST_WORDS = 60  # characters that the words of a reason show
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")
_SEVERAL = re.compile(r",|;|:|\b(?:and|then|plus)\b|\bserve\b", re.IGNORECASE)


def is_optional(text: str) -> bool:
    """Tell whether an instruction says that it may be left out, as a whole.

    A wish at the end counts only where there is but one thing to do with one thing: of "Mix the flour, sugar and nuts
    (optional)" and of "Serve with cream, if you like" only a part may be left out.

    Examples
    --------
    >>> [is_optional(text) for text in ("Optionally, add nuts.", "(Optional) Add nuts.", "Add nuts, if you like.")]
    [True, True, True]
    >>> [is_optional(text) for text in ("Bake it, with nuts if desired.", "If you like it hot, add chilli.")]
    [False, False]
    """
    sentences = [sentence for sentence in _SENTENCE_END.split(text) if any(map(str.isalpha, sentence))]
    return bool(sentences) and all(map(_may_be_left_out, sentences))


def _may_be_left_out(sentence: str) -> bool:
    wish = _AFTER.search(sentence)
    order = sentence[: wish.start()].strip() if wish else ""
    return bool((order and not _SEVERAL.search(order)) or _BEFORE.match(sentence))


_INSTEAD = re.compile(r"\W*(?:or(?: else| instead)?\b(?! (?:until|so|more|less)\b)|alternatively\b)", re.IGNORECASE)


def alternative_groups(texts: Sequence[str]) -> list[list[int]]:
    """Return the groups of consecutive instructions of which one is done, each group two or more.

    Examples
    --------
    >>> alternative_groups(["Peel.", "Fry them.", "Or boil them.", "Alternatively, bake them.", "Serve."])
    [[1, 2, 3]]
    """
    groups: list[list[int]] = []
    for number in (number for number, text in enumerate(texts) if number and _INSTEAD.match(text)):
        if groups and groups[-1][-1] == number - 1:
            groups[-1].append(number)
        else:
            groups.append([number - 1, number])
    return groups


def share_links(reasons: Iterable[Reason], groups: Iterable[Sequence[int]]) -> list[Reason]:
    """Return the links with none between alternatives; what one of them waits for, or waits for it, holds for all."""
    members = {number: group for group in groups for number in group}
    found: dict[Reason, None] = {}
    for reason in reasons:
        before, after = (members.get(end, [end]) for end in (reason.before, reason.after))
        if before == after and reason.before in members:
            continue
        found |= dict.fromkeys(replace(reason, before=a, after=b) for a, b in product(before, after))
    return list(found)


def reason(before: int, after: int, rule: str, made: str, used: str) -> Reason:
    """Return why an instruction waits for another, given the words for what is made and for what is used."""
    one_line = (" ".join(words.split()) for words in (made, used))
    made, used = (words if len(words) <= _LONGEST_WORDS else f"{words[: _LONGEST_WORDS - 1]}…" for words in one_line)
    return Reason(before, after, rule, f"{made or '…'} → {used}")


class Links(NamedTuple):
    """Links between instructions: those that go forward in the text, and those that go back; groups of alternatives."""

    forward: tuple[Reason, ...]
    backward: tuple[Reason, ...]
    alternatives: list[list[int]]


def distinct_links(procedure: Procedure, reasons: Iterable[Reason]) -> Links:
    """Return the links between different instructions, each once, shared among alternatives."""
    groups = alternative_groups(procedure.texts)
    distinct = dict.fromkeys(share_links(reasons, groups) if groups else reasons)
    forward = tuple(reason for reason in distinct if reason.before < reason.after)
    backward = tuple(reason for reason in distinct if reason.before > reason.after)
    return Links(forward, backward, groups)


def coarsen(procedure: Procedure, reasons: Iterable[Reason], parser: str, entities: EntityGraph | None = None) -> Parse:
    """Merge all nodes of an instruction, keep the connections, and make them a flow graph.

    Links within one instruction vanish. Links that point backwards in the text are dropped and reported, so that
    no cycle remains. The graph is transitively reduced. Instructions that say so are optional steps,
    or alternatives to the one before.

    Parameters
    ----------
    procedure : Procedure
    reasons : iterable of Reason
        The links, in any order and direction; equal ones count once.
    parser : str
        Which parser found them.
    entities : EntityGraph, optional
        The graph they come from.

    Returns
    -------
    Parse
    """
    links = distinct_links(procedure, reasons)
    texts, edges = procedure.texts, {(reason.before, reason.after) for reason in links.forward}
    optional = (number for number, text in enumerate(texts) if is_optional(text))
    flow = FlowGraph.from_edges(texts, edges, procedure.title, optional=optional, alternatives=links.alternatives)
    return Parse(procedure, flow.transitive_reduction(), parser, links.forward, links.backward, entities)
