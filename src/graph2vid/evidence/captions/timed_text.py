"""Plain transcripts whose lines begin with times: ``0:15 now we cut``, ``[00:15] …``, ``00:15 - 00:20 …``."""

from __future__ import annotations

import re

from graph2vid._values import seconds_of
from graph2vid.errors import FormatError
from graph2vid.evidence.captions.cues import Cue

_TIME = r"[\[(]?(?:(\d+):)?(\d+):(\d{2}(?:[.,]\d{1,3})?)[\])]?"
_LINE = re.compile(rf"\s*{_TIME}(?:\s*(?:-|–|—|to)\s*{_TIME})?(?!\d)(?P<said>.*)")
_LONGEST_WORD = 1.0  # seconds that a word takes, at the most
_LONGEST_CUE = 5.0  # seconds that a short line may last


def parse_timed_text(text: str, source: str = "transcript") -> tuple[Cue, ...]:
    """Read a transcript in which a line with a time at its beginning, alone or before words, begins a cue.

    Where a line gives no end, it lasts until the next begins, but not longer than its words take to say. Lines before
    the first time are passed over.

    Returns
    -------
    tuple of Cue
        In order of time.
    """
    begun: list[tuple[float, float | None, list[str]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        found = _LINE.fullmatch(line)
        if found is None:
            if begun and line.strip():
                begun[-1][2].append(line)
            continue
        where = f"{source}, line {number}: a time"
        first, last = found.groups()[:3], found.groups()[3:6]
        start = seconds_of(first[0], first[1], first[2].replace(",", "."), where)
        end = None if last[2] is None else seconds_of(last[0], last[1], last[2].replace(",", "."), where)
        if end is not None and end < start:
            raise FormatError(f"{source}, line {number}: it ends ({end:g} s) before it starts ({start:g} s)")
        begun.append((start, end, [found["said"].lstrip(" \t:-–—")]))
    if not begun and text.strip():
        raise FormatError(f"{source}: not a transcript with times, for no line begins with one, such as 0:15")
    begun.sort(key=lambda one: one[0])
    cues = []
    for place, (start, end, lines) in enumerate(begun):
        said = " ".join(" ".join(lines).split())
        if end is None:
            longest = start + max(_LONGEST_CUE, _LONGEST_WORD * len(said.split()))
            later = (other for other, _, _ in begun[place + 1 : place + 2])
            end = min(longest, next(later, longest))
        if said:
            cues.append(Cue(start, end, said))
    return tuple(cues)
