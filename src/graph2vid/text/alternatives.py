"""Instructions that say they are done in place of the one before: "Or bake them.", "Alternatively, use a pan."."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from graph2vid.text.parsed_text import Reason

_INSTEAD = re.compile(r"\W*(?:or(?: else| instead)?\b(?! (?:until|so|more|less)\b)|alternatively\b)", re.IGNORECASE)


def alternative_groups(texts: Sequence[str]) -> list[list[int]]:
    """Return the groups of consecutive instructions of which one is done, each group two or more.

    Examples
    --------
    >>> alternative_groups(["Peel.", "Fry them.", "Or boil them.", "Alternatively, bake them.", "Serve."])
    [[1, 2, 3]]
    """
    groups: list[list[int]] = []
    for number, text in enumerate(texts):
        if not number or not _INSTEAD.match(text):
            continue
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
        for a in before:
            for b in after:
                found[reason if (a, b) == (reason.before, reason.after) else replace(reason, before=a, after=b)] = None
    return list(found)
