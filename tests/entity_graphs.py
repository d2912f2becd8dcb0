"""Hypothesis strategies and toys shared by the tests of this room."""

from __future__ import annotations

from hypothesis import strategies as st

from graph2vid.text import Entity, EntityEdge, EntityGraph

TAGS = ("Ac", "Ac2", "Af", "At", "F", "T", "D", "Q", "Sf", "St", "other")


@st.composite
def entity_graphs(draw: st.DrawFn, steps: int = 3, max_entities: int = 10) -> EntityGraph:
    """Draw a graph of entities in ``steps`` instructions: cycles, parallel edges and self loops included."""
    count = draw(st.integers(1, max_entities))
    places = sorted(draw(st.lists(st.integers(0, steps - 1), min_size=count, max_size=count)))
    words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
    entities = [
        Entity(place, number, number + 3, number, draw(words), draw(st.sampled_from(TAGS)))
        for number, place in enumerate(places)
    ]
    ends = st.integers(0, count - 1)
    labels = st.sampled_from(["t", "f-eq", "d", ""])
    edges = draw(st.lists(st.builds(EntityEdge, ends, ends, labels), max_size=2 * count))
    return EntityGraph(tuple(entities), tuple(edges))
