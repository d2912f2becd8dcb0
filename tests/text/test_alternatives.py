"""Instructions that stand in place of others."""

from __future__ import annotations

from graph2vid.text import parse
from graph2vid.text.coarsen import alternative_groups, coarsen, share_links
from graph2vid.text.parsed_text import Instruction, Procedure, Reason

TEXTS = ("Peel the potatoes.", "Fry them.", "Or boil them.", "Serve.")


def test_groups() -> None:
    assert alternative_groups(TEXTS) == [[1, 2]]
    assert alternative_groups(["Or not.", "Bake.", "Alternatively, fry.", "Eat.", "Or else share."]) == [[1, 2], [3, 4]]
    assert alternative_groups(["Bake.", "Order more.", "Organise.", "Or until golden, bake on."]) == []


def test_links_are_shared() -> None:
    found = share_links([Reason(0, 1, "x"), Reason(1, 2, "x"), Reason(2, 3, "y")], [[1, 2]])
    assert {(r.before, r.after) for r in found} == {(0, 1), (0, 2), (1, 3), (2, 3)}


def test_parsers_make_alternatives() -> None:
    procedure = Procedure(tuple(Instruction(text) for text in TEXTS))
    flow = parse(procedure, "linear").flow
    assert flow.alternatives == (((1,), (2,)),)
    assert set(flow.edges) == {(0, 1), (0, 2), (1, 3), (2, 3)}
    assert coarsen(procedure, [Reason(1, 2, "pronoun")], "rules").flow.edges == ()
