"""Lines without marks: broken paragraphs, lists of orders in small or capital letters, items over several lines."""

from __future__ import annotations

import textwrap

import pytest

from graph2vid.text import procedure_from_text
from graph2vid.text.reading.wrapping import begins_order

PROSE = (
    "Preheat the oven to 180 degrees and grease a large tin with butter.",
    "Mix the flour, the sugar and a pinch of salt in a bowl.",
    "Whisk the eggs with the milk until they are pale, then pour the mixture over a low heat and stir it well.",
    "Bake for 40 minutes.",
    "Serve warm with cream.",
)
RICE = ("wash the rice", "add water", "boil for ten minutes")


@pytest.mark.parametrize("width", range(26, 110, 3))
@pytest.mark.parametrize("small", [False, True], ids=["capitals", "small letters"])
@pytest.mark.parametrize("title", ["", "Cake\n\n", "Method:\n"], ids=["bare", "title", "heading"])
def test_wrapped_prose_is_read_sentence_by_sentence(width: int, small: bool, title: str) -> None:
    sentences = tuple(sentence.lower() if small else sentence for sentence in PROSE)
    assert procedure_from_text(title + textwrap.fill(" ".join(sentences), width)).texts == sentences


@pytest.mark.parametrize("width", range(26, 110, 7))
def test_one_wrapped_sentence_without_a_stop_is_one_instruction(width: int) -> None:
    for sentence in (
        PROSE[2].rstrip("."),
        "whisk the eggs with the milk and the sugar until all of it is thick and pale",
    ):
        assert procedure_from_text(textwrap.fill(sentence, width)).texts == (sentence,)


@pytest.mark.parametrize("end", ["", ",", ";", "."])
@pytest.mark.parametrize("begin", ["", "\t", "    "], ids=["flush", "tab", "indented"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\n\n"], ids=["LF", "CRLF", "blank"])
@pytest.mark.parametrize("capitals", ["", "0", "1", "02", "012"])
def test_short_orders_are_an_instruction_each(end: str, begin: str, newline: str, capitals: str) -> None:
    texts = tuple(
        (text.capitalize() if str(place) in capitals else text) + end * (place < 2 or end == ".")
        for place, text in enumerate(RICE)
    )
    assert procedure_from_text(newline.join(begin + text for text in texts)).texts == texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("wash the rice\nand drain it\nadd water", ("wash the rice and drain it", "add water")),
        ("wash the rice. drain it\nadd water\nboil", ("wash the rice. drain it", "add water", "boil")),
        (
            "peel two potatoes\nthen slice them\nslowly fry them",
            ("peel two potatoes", "then slice them", "slowly fry them"),
        ),
        ("cut the ends off the\nbeans\njulienne them", ("cut the ends off the beans", "julienne them")),
        (
            "reis waschen\nwasser zugeben\nzehn minuten kochen",
            ("reis waschen", "wasser zugeben", "zehn minuten kochen"),
        ),
        (
            "in a bowl mix the eggs\nadd milk\nin a pan melt the butter\nwhen it foams pour in the eggs\nfor a minute",
            (
                "in a bowl mix the eggs",
                "add milk",
                "in a pan melt the butter",
                "when it foams pour in the eggs for a minute",
            ),
        ),
        ("fry the eggs\nin a hot pan and turn them", ("fry the eggs in a hot pan and turn them",)),
        ("1) wash the rice\n   until clear\n2) add water", ("wash the rice until clear", "add water")),
        ("* wash the rice\nuntil clear\n* add water", ("wash the rice until clear", "add water")),
        (
            "Mix the flour\nwith the water. Knead\nthe dough and let it\nrise.",
            ("Mix the flour with the water.", "Knead the dough and let it rise."),
        ),
        ("Whisk the cold\nmilk with the eggs.\nBake it.", ("Whisk the cold milk with the eggs.", "Bake it.")),
        (
            "Cook the onions in a pan over a medium\nheat until they are soft.",
            ("Cook the onions in a pan over a medium heat until they are soft.",),
        ),
        (
            "wash the rice\nadd two cups of cold water and a little salt to the pot on the stove\nboil",
            ("wash the rice", "add two cups of cold water and a little salt to the pot on the stove", "boil"),
        ),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
def test_lines_that_go_on(text: str, expected: tuple[str, ...]) -> None:
    assert procedure_from_text(text).texts == expected


@pytest.mark.parametrize("title", ["Rice", "Plain Rice", "Rice for two"])
@pytest.mark.parametrize("between", ["\n", "\n\n"], ids=["next line", "blank line"])
def test_a_name_over_a_list_in_small_letters_is_the_title(title: str, between: str) -> None:
    found = procedure_from_text(title + between + "\n".join(RICE))
    assert (found.title, found.texts) == (title, RICE)


def test_a_line_over_a_paragraph_is_the_title() -> None:
    found = procedure_from_text("Lay turf\nDig the soil over. Rake it level. Unroll the first strip. Water it.")
    assert (found.title, len(found)) == ("Lay turf", 4)
    assert len(procedure_from_text("Lay the turf\nWater it. Wait for a week.")) == 2


def test_an_order_is_no_title() -> None:
    found = procedure_from_text("Wash the rice\n\nadd water\n\nboil it")
    assert (found.title, len(found)) == ("", 3)


def test_how_orders_begin() -> None:
    assert begins_order("Add water")
    assert begins_order("then slowly stir in the milk")
    assert begins_order("in a small pan, melt the butter")
    assert not begins_order("in a small pan and melt the butter")
    assert not begins_order("on a medium heat until the top is brown")
    assert not begins_order("the dough and let it rise")
    assert not begins_order("")
    assert not begins_order("then")
