"""Parses as JSON documents."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import graph2vid
from entity_graphs import entity_graphs
from graph2vid.errors import FormatError
from graph2vid.text import EntityGraph, Instruction, Parse, Procedure, Reason
from graph2vid.text.coarsen import coarsen
from graph2vid.text.parse_json import from_json, to_json

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@st.composite
def parses(draw: st.DrawFn) -> Parse:
    """Draw a parse of three instructions."""
    instructions = draw(st.lists(st.builds(Instruction, WORDS, WORDS, WORDS), min_size=3, max_size=3))
    procedure = Procedure(tuple(instructions), draw(WORDS), tuple(draw(st.lists(WORDS))), draw(WORDS))
    steps = st.integers(0, 2)
    reasons = draw(st.lists(st.builds(Reason, steps, steps, WORDS, WORDS)))
    return coarsen(procedure, reasons, draw(WORDS), draw(st.none() | entity_graphs()))


@given(parses())
def test_what_is_written_is_read(parse: Parse) -> None:
    assert from_json(json.loads(json.dumps(to_json(parse)))) == parse


def example() -> dict[str, Any]:
    procedure = Procedure(
        (Instruction("Mix it."), Instruction("Bake it.", "Oven", "line 2")), "Pie", ("flour",), "pie.txt"
    )
    return to_json(coarsen(procedure, [Reason(0, 1, "pronoun", "it"), Reason(1, 0, "t")], "toy", EntityGraph((), ())))


def test_the_document() -> None:
    document = example()
    assert document["format"] == "graph2vid-parse"
    assert (document["version"], document["graph2vid"]) == (1, graph2vid.__version__)
    assert document["procedure"]["instructions"][1] == {"text": "Bake it.", "section": "Oven", "source": "line 2"}
    assert document["flow"]["edges"] == [["1", "2"]]
    assert document["reasons"] == [{"before": 0, "after": 1, "rule": "pronoun", "words": "it"}]
    assert document["backward"] == [{"before": 1, "after": 0, "rule": "t", "words": ""}]
    assert document["entities"] == {"entities": [], "edges": []}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["format"], "other", "p.json is not a graph2vid-parse file"),
        (["version"], 2, "install a newer one"),
        (["procedure"], [], "p.json: procedure must be an object"),
        (["procedure", "title"], 3, "title must be a string"),
        (["procedure", "instructions"], [], "holds no instruction"),
        (["procedure", "instructions", 0], {}, r"instructions\[0\] lacks text"),
        (["procedure", "ingredients"], [1], "ingredients must be a list of strings"),
        (["flow", "edges"], [["1", "9"]], r"edges\[0\]\[1\]: unknown step '9'"),
        (["flow"], None, "flow is not a graph2vid-flow file"),
        (["reasons"], None, "reasons must be a list"),
        (["reasons", 0, "after"], 2, r"reasons\[0\].after is 2; there is no such place"),
        (["reasons", 0, "after"], True, r"reasons\[0\].after must be a number"),
        (["entities"], [], "entities must be an object or null"),
        (["entities", "edges"], [{"source": 0, "target": 0, "label": ""}], r"edges\[0\].source is 0; there is no such"),
    ],
)
def test_bad_documents(path: list[Any], value: Any, message: str) -> None:
    document = copy.deepcopy(example())
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(FormatError, match=message):
        from_json(document, "p.json")
