"""Wording shared by the messages about flow graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from graph2vid.errors import GraphError, TooLargeError

_MOST_LISTED = 12  # names of steps in a message
_LONGEST_COMPARED = 100  # characters of a name that a near one is looked for
_MOST_COMPARED = 2000
MOST_LOOKED_AT = 2000
"""Steps of a graph that is shown, drawn or counted: as many as a procedure in words may have."""
_MOST_READ = {"steps": 20_000, "edges": 200_000}  # about 100 MB while a file is read


def quoted(value: object, limit: int = 60) -> str:
    """Return ``value`` as it would be typed, in one line, shortened in the middle when long."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 16]}…{text[-15:]}"


def counted(number: int, noun: str) -> str:
    """Return "1 step", "2 steps"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def unknown_step(name: str, known: Iterable[str]) -> str:
    """Return the message for a step that does not exist, with the closest name that does, and what there is."""
    names = list(known)
    nearest = get_close_matches(name[:_LONGEST_COMPARED], names[:_MOST_COMPARED], n=1, cutoff=0.6)
    message = f"unknown step {quoted(name)}" + (f"; did you mean {quoted(nearest[0])}?" if nearest else "")
    if not names:
        return message
    shown = ", ".join(quoted(one, 40) for one in names[:_MOST_LISTED])
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return f"{message}{'' if nearest else ';'} there {'is' if len(names) == 1 else 'are'} {shown}{more}"


def no_such_index(index: int, count: int) -> str:
    """Return the message for a step number that does not exist."""
    return f"there is no step {index}; the {counted(count, 'step')} are numbered from 0 to {count - 1}"


def self_loop(name: str) -> str:
    """Return the message for an edge from a step to itself."""
    return f"step {quoted(name)} cannot come before itself (self loop)"


def cycle(ids: Sequence[str]) -> str:
    """Return the message for a cycle through the steps with these ids."""
    names = [quoted(step) for step in [*ids, ids[0]]]
    shown = names if len(names) <= 20 else [*names[:17], f"({len(names) - 19} more)", *names[-2:]]
    return f"the steps form a cycle: {' → '.join(shown)}"


def check_text(value: object, what: str) -> None:
    """Refuse what is no string, and a string that cannot be written to a file (a lone surrogate)."""
    if not isinstance(value, str):
        raise GraphError(f"{what} must be a string, not {quoted(value)}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise GraphError(f"{what} is not valid Unicode: {quoted(value)}") from None


def ordinal(place: int) -> str:
    """Write a place in an order: "1st", "2nd", …."""
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def refuse_large(n_steps: int, doing: str) -> None:
    """Refuse what would take minutes with a graph of so many steps: "drawing it" or the like."""
    if n_steps > MOST_LOOKED_AT:
        raise TooLargeError(
            f"the flow graph has {n_steps:,} steps; {doing} is for up to {MOST_LOOKED_AT:,}: split the procedure up"
        )


def too_many(count: int, noun: str) -> str:
    """Return why a .flow or .dot text with so many "steps" or "edges" is not read; empty if it is.

    Two groups of names stand for the product of edges: a short text for more than fits into memory.
    """
    most = _MOST_READ[noun]
    return f"{count:,} {noun}; up to {most:,} are read (.json has no limit)" if count > most else ""
