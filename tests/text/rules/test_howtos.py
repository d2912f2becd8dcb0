"""Whole procedures, in and out of the kitchen: sensible edges are there, silly ones are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graph2vid.text import Parse

Run = Callable[..., Parse]

PIZZA = """Mix the flour, yeast, salt and water and knead for ten minutes.
Cover the dough and let it rise for an hour.
Meanwhile, heat the oil in a saucepan.
Fry the garlic, then add the tomatoes and simmer for twenty minutes.
Season the sauce with salt and set aside.
Preheat the oven to 250 C.
Slice the mozzarella.
Roll out the dough on a floured surface.
Spread the sauce over the dough.
Top with the mozzarella.
Bake for ten minutes.
Scatter the basil over the pizza and serve."""

TYRE = """Park the car on level ground and pull the handbrake.
Loosen the wheel nuts half a turn.
Place the jack under the sill.
Raise the car with the jack.
Remove the wheel nuts and pull off the flat wheel.
Put the spare wheel onto the hub.
Tighten the wheel nuts by hand.
Lower the car and remove the jack."""

SHELF = """Gather your tools.
Cut the board to length.
Sand the board until it is smooth.
Mark the position of the brackets on the wall.
Drill holes at the marks.
Screw the brackets to the wall.
Paint the board and let it dry.
Place the board on the brackets.
Fasten the board with screws."""

OIL = """Raise the front of the car and secure it with stands.
Place a basin under the drain plug.
Unscrew the drain plug and let the old oil run out.
Clean the drain plug and screw it back in.
Unscrew the old filter.
Lower the car."""

CASES = {
    "pizza": (
        PIZZA,
        [(0, 1), (2, 3), (3, 4), (1, 7), (4, 8), (7, 8), (6, 9), (5, 10), (9, 11)],
        [(1, 2), (4, 7), (5, 6)],
    ),
    "tyre": (TYRE, [(0, 3), (2, 3), (1, 4), (4, 6), (3, 7)], [(0, 1), (1, 2)]),
    "shelf": (SHELF, [(0, 1), (1, 2), (3, 4), (4, 5), (2, 6), (5, 7), (6, 7), (7, 8)], [(2, 3), (5, 6)]),
    "oil": (OIL, [(1, 2), (2, 3), (0, 5)], [(0, 1), (3, 4)]),
}


@pytest.mark.parametrize("name", CASES)
def test_procedure(name: str, parse: Run) -> None:
    text, before, free = CASES[name]
    closure = set(parse(text.split("\n")).flow.transitive_closure().edges)
    assert not [pair for pair in before if pair not in closure]
    assert not [pair for pair in free if pair in closure]


def test_every_edge_has_a_reason_with_words(parse: Run) -> None:
    result = parse(PIZZA.split("\n"))
    supported = {(reason.before, reason.after) for reason in result.reasons}
    assert set(result.flow.edges) <= supported
    assert all(" → " in reason.words for reason in result.reasons)
    assert any(reason.words == "Season → the sauce" for reason in result.reasons)


def test_entities(parse: Run) -> None:
    texts = ["Whisk the eggs in a bowl.", "Melt the butter in a pan.", "Add it to the eggs."]
    graph = parse(texts).entities
    assert graph is not None
    assert [(entity.text, entity.tag) for entity in graph.entities] == [
        ("Whisk", "Ac"),
        ("the eggs", "F"),
        ("a bowl", "T"),
        ("Melt", "Ac"),
        ("the butter", "F"),
        ("a pan", "T"),
        ("Add", "Ac"),
        ("it", "F"),
        ("the eggs", "F"),
    ]
    for entity in graph.entities:
        assert texts[entity.instruction][entity.start : entity.end] == entity.text
    edges = {(edge.source, edge.target, edge.label) for edge in graph.edges}
    assert {(1, 0, "t"), (2, 0, "t-comp"), (3, 7, "f-eq"), (0, 8, "f-eq"), (8, 6, "d")} <= edges
    assert len({(edge.source, edge.target) for edge in graph.edges}) == len(graph.edges)
