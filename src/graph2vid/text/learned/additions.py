"""Plain additions may be done in any order among themselves: "Add the sugar. Add the milk."

The corpus, and so the network, lets each addition flow into the next one. That is the order of the text, not one that
the work asks for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from graph2vid.text.learned.decode import Candidate
from graph2vid.text.learned.words import ACTIONS, Span
from graph2vid.text.lexicon import PUTTING_INTO

DESTINATION = "d"
_DETERMINERS = frozenset({"the", "a", "an", "your", "this", "these", "those", "some"})
_MORE_THAN_ADDED = frozenset({"D", "Sf", "St"})


class Addition(NamedTuple):
    """An instruction that does nothing but put something to the work.

    Attributes
    ----------
    action : int
        The entity that says so.
    places : frozenset of int
        The entities that say where to.
    """

    action: int
    places: frozenset[int]


Additions: TypeAlias = Mapping[int, Addition]


def plain_additions(
    words: Sequence[str], units: Sequence[int], spans: Sequence[Span], edges: Sequence[Candidate]
) -> Additions:
    """Find the plain additions by their instruction.

    "Add the sugar.", "Stir in the milk." and "Crack the eggs into a bowl." are; "Add the eggs and beat well.", "Once
    hot, add the onions." and "Add the rice for the last ten minutes." are not.

    Parameters
    ----------
    words : sequence of str
    units : sequence of int
        The instruction of each word.
    spans : sequence of Span
    edges : sequence of Candidate
        Between numbers of spans.
    """
    orders: dict[int, list[int]] = defaultdict(list)
    for at, span in enumerate(spans):
        if span.kind in ACTIONS and not _describes(words, span):
            orders[units[span.start]].append(at)
    arguments: dict[int, list[Candidate]] = defaultdict(list)
    for edge in edges:
        arguments[edge.head].append(edge)
    found = {}
    for unit, actions in orders.items():
        action, span = actions[0], spans[actions[0]]
        first = span.start == 0 or units[span.start - 1] != unit
        if len(actions) > 1 or span.kind != "Ac" or not first:
            continue
        own = [edge for edge in arguments[action] if units[spans[edge.dependent].start] == unit]
        kinds = {spans[edge.dependent].kind for edge in own}
        places = frozenset(edge.dependent for edge in own if edge.label == DESTINATION)
        into_tool = any(spans[place].kind == "T" for place in places)
        before_tool = action + 1 < len(spans) and spans[action + 1].kind == "T"
        verb, *others = (word.lower() for word in words[span.start : span.end + 1])
        # "add", "stir in" before a food, "pour" into a tool
        adds = verb == "add" or ("in" in others and not before_tool) or (into_tool and verb in PUTTING_INTO)
        if adds and "F" in kinds and not kinds & _MORE_THAN_ADDED:
            found[unit] = Addition(action, places)
    return found


def _describes(words: Sequence[str], span: Span) -> bool:
    """Tell whether an action describes a thing ("the *warmed* mug", "*chopped* nuts") rather than being ordered."""
    before, last = words[max(span.start - 1, 0)].lower(), words[span.end - 1].lower()
    return span.start > 0 and (before in _DETERMINERS or last.endswith("ed"))


def freed(units: Sequence[int], edges: Sequence[Candidate], additions: Additions) -> list[tuple[int, int, str]]:
    """Return the edges with none from one addition into the next one of the same pile.

    What the first of them was added to, all wait for; what uses the pile waits for all of them.

    Parameters
    ----------
    units : sequence of int
        The instruction of each entity.
    edges : sequence of Candidate
        Between entities.
    additions : mapping
        By instruction.

    Returns
    -------
    list of (int, int, str)
        Dependent, head and label.
    """
    found = []
    under: dict[int, dict[int, int]] = defaultdict(dict)  # by addition: what it is put to, and the entity that made it
    beside: dict[int, dict[int, int]] = defaultdict(dict)  # by addition: those before it on the same pile
    for edge in sorted(edges, key=lambda edge: (units[edge.head], units[edge.dependent])):
        before, after = units[edge.dependent], units[edge.head]
        if before >= after:
            found.append(edge[1:])
            continue
        addition, earlier = additions.get(after), additions.get(before)
        said_so = addition is not None and edge.head == addition.action and edge.label == DESTINATION
        onto = said_so or (addition is not None and edge.head in addition.places)
        if onto and earlier is not None and edge.dependent == earlier.action:
            beside[after] |= {before: edge.dependent} | beside[before]
            sources = under[before]
        else:
            sources = {before: edge.dependent} | beside[before]
        if onto:
            under[after] |= sources
        found += [(source, edge.head, edge.label) for source in sources.values()]
    return found
