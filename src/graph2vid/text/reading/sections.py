"""Headings without a mark: short lines above a list, or alone between paragraphs ("Removing the Wheel")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graph2vid.text.reading.lines import SET_APART_LEVEL, TIGHT_LEVEL, Kind, Line, ends_sentence, is_short
from graph2vid.text.reading.wrapping import begins_order, is_open

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
                found[place] = replace(line, kind=Kind.HEADING, text=line.text.rstrip(":").rstrip(), level=level)
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
