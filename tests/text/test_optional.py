"""Instructions that say they may be left out are optional steps, whoever parses."""

from __future__ import annotations

import pytest

from graph2vid.text import Instruction, Procedure, parse
from graph2vid.text.coarsen import is_optional
from graph2vid.text.parse_json import from_json, to_json


@pytest.mark.parametrize(
    "text",
    [
        "Optionally, add nuts.",
        "Optionally add nuts and stir.",
        "(Optional) Add nuts.",
        "Optional: toast the bread, then butter it.",
        "OPTIONAL STEP - toast the bread",
        "If desired, sprinkle with sugar.",
        "If desired sprinkle with sugar.",
        "If you like, top with cheese and bake.",
        "Add nuts (optional).",
        "Garnish with parsley, if you’d like!",
        "Add chilli, if you like. Optionally, add lime.",
    ],
)
def test_what_may_be_left_out(text: str) -> None:
    assert is_optional(text)


@pytest.mark.parametrize(
    "text",
    [
        "Add nuts.",
        "Optional",
        "Optional toppings go on now.",
        "Serve with cream, if you like.",
        "Mix the flour, sugar and nuts (optional).",
        "Chop the parsley and scatter it over, if desired.",
        "If you like it hot, add chilli.",
        "If you want to freeze it, wrap it well.",
        "Bake for an hour. Optionally, dust with sugar.",
        "Take the desired amount.",
        "",
        "…",
    ],
)
def test_what_may_not(text: str) -> None:
    assert not is_optional(text)


@pytest.mark.parametrize("parser", ["linear", "bag", "learned"])
def test_every_parser_marks_them(parser: str) -> None:
    texts = ("Whisk the eggs.", "Add chilli (optional).", "Fry the eggs in a pan.")
    found = parse(Procedure(tuple(map(Instruction, texts))), parser)
    assert found.flow.optional == (1,)
    assert from_json(to_json(found)) == found
