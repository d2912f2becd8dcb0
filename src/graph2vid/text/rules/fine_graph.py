"""The fine-grained graph of what the rules found, for drawing and for reading the reasons."""

from __future__ import annotations

from collections.abc import Sequence

from graph2vid.text.parsed_text import Entity, EntityEdge, EntityGraph
from graph2vid.text.rules.clauses import SIMPLE_OBJECT, Action, Mention
from graph2vid.text.rules.connect import Link

_TOOLS = ("container", "appliance", "tool")
_IMPLIED_LABELS = {"addition": "d", "oven": "t-comp", "hot pan": "d", "supplies": "t-comp"}


def entity_graph(actions: Sequence[tuple[int, Action]], links: Sequence[Link]) -> EntityGraph:
    """Build the graph of actions ("Ac"), materials ("F") and tools ("T").

    A thing flows into the action that names it: ``t`` what is acted on, ``d`` where it goes, ``t-comp`` what it is
    done with or in. An earlier action flows into a thing that means its product (``f-eq``, ``t-eq``), or directly into
    an action that uses it without naming it (``t``, ``d``, ``t-comp``).

    Parameters
    ----------
    actions : sequence of (int, Action)
        Each action with its instruction.
    links : sequence of Link

    Returns
    -------
    EntityGraph
    """
    found: dict[tuple[int, int, int], Entity] = {}
    for instruction, action in actions:
        if action.text:
            _enter(found, instruction, action, action.text, "Ac")
        for mention in action.mentions:
            _enter(found, instruction, mention, mention.text, "T" if mention.kind in _TOOLS else "F")
    places = sorted(found)
    index = {place: number for number, place in enumerate(places)}

    def of(instruction: int, part: Action | Mention) -> int | None:
        return index.get((instruction, part.start, part.end))

    edges: dict[tuple[int, int], str] = {}

    def connect(source: int | None, target: int | None, label: str) -> None:
        if source is not None and target is not None and source != target:
            edges.setdefault((source, target), label)

    for instruction, action in actions:
        for mention in action.mentions:
            connect(of(instruction, mention), of(instruction, action), _label(mention))
    for link in links:
        instruction, action = actions[link.after]
        before = of(*actions[link.before])
        if link.mention is not None:
            label = "t-eq" if link.mention.kind in _TOOLS else "f-eq"
            connect(before, of(instruction, link.mention), label)
        else:
            connect(before, of(instruction, action), _IMPLIED_LABELS.get(link.rule, "t"))
    return EntityGraph(
        tuple(found[place] for place in places),
        tuple(EntityEdge(source, target, label) for (source, target), label in edges.items()),
    )


def _enter(
    found: dict[tuple[int, int, int], Entity], instruction: int, part: Action | Mention, text: str, tag: str
) -> None:
    place = (instruction, part.start, part.end)
    found.setdefault(place, Entity(instruction, part.start, part.end, part.token, text, tag))


def _label(mention: Mention) -> str:
    if mention.kind in _TOOLS:
        return "t" if mention.role == SIMPLE_OBJECT else "t-comp"
    return "d" if mention.role in ("to", "into", "over", "onto", "on", "in") else "t"
