"""Odd input gives a sensible graph or a clear line: never a crash, never a cycle."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph2vid.errors import InputError, MissingDependencyError
from graph2vid.text import Instruction, Parse, Procedure
from graph2vid.text.rules import dependency_parser as models
from graph2vid.text.rules import parse_by_rules

Run = Callable[..., Parse]


@pytest.mark.parametrize(
    "texts",
    [
        ["."],
        ["...", "!!!", "42", "—"],
        ["Enjoy!"],
        ["Salt", "Two large eggs", "A pinch of pepper"],
        ["Die Zwiebeln fein hacken.", "In einer Pfanne anbraten.", "Mit Salz würzen und servieren."],
        ["鍋に水を入れて沸かす。", "麺を茹でる。"],
        ["WHISK THE EGGS IN A BOWL.", "ADD THE MILK TO THE BOWL."],
        ["(Optional)", "1)", "- stir;;; stir; -"],
        ["\u0130stanbul İİİ CHOP THE ONİON", "a\u0000b", "\ud7ff\U0001f355 🍕 bake 🍕"],
        ["stir " * 5000, "x" * 20000],
    ],
)
def test_odd_texts(texts: list[str], parse: Run) -> None:
    result = parse(texts)
    assert len(result.flow) == len(texts)
    assert all(a < b for a, b in result.flow.edges)


def test_all_capitals_are_read(parse: Run) -> None:
    assert parse(["WHISK THE EGGS IN A BOWL.", "ADD THE MILK TO THE BOWL."]).flow.edges == ((0, 1),)


def test_several_sentences_in_an_instruction(parse: Run) -> None:
    result = parse(["Whisk the eggs. Heat the oil in a pan.", "Fry the onions. Add the eggs and serve."])
    assert result.flow.edges == ((0, 1),)


def test_five_hundred_sentences(parse: Run) -> None:
    rng = random.Random(0)
    verbs, things = (
        ("Chop", "Add", "Fry", "Stir in", "Set aside", "Serve"),
        ("onions", "eggs", "mixture", "cake", "tin"),
    )
    result = parse([f"{rng.choice(verbs)} the {rng.choice(things)}." for _ in range(500)])
    assert len(result.flow) == 500


@settings(max_examples=15, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=4))
def test_any_text(texts: list[str]) -> None:
    result = parse_by_rules(Procedure(tuple(Instruction(text) for text in texts)))
    assert result.entities is not None
    for entity in result.entities.entities:
        assert texts[entity.instruction][entity.start : entity.end] == entity.text


def test_no_model_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(models, "find_spec", lambda name: find(name) if name == "spacy" else None)
    with pytest.raises(MissingDependencyError, match="spacy download en_core_web_md"):
        models.language_model.__wrapped__()
    monkeypatch.setattr(models, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="pip install"):
        models.language_model.__wrapped__()


def test_a_model_that_is_none(tmp_path: Path) -> None:
    procedure = Procedure((Instruction("Stir."),))
    with pytest.raises(InputError, match="cannot load the model no_such_model"):
        parse_by_rules(procedure, model="no_such_model")
    import spacy

    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(InputError, match="no parser"):
        parse_by_rules(procedure, model=str(tmp_path / "blank"))
