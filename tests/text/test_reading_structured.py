"""Reading JSON-LD, web pages, recipe-scrapers' JSON, and files of every encoding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import graph2vid
from graph2vid.errors import FormatError, Graph2VidError, InputError
from graph2vid.text import Procedure, procedure_from_bytes, procedure_from_text, read_procedure


def recipe(instructions: Any, **more: Any) -> dict[str, Any]:
    return {
        "@context": "https://schema.org",
        "@type": "Recipe",
        "name": "Pie",
        "recipeInstructions": instructions,
    } | more


def read(value: Any) -> Procedure:
    return procedure_from_text(json.dumps(value))


def rows(procedure: Procedure) -> list[tuple[str, str, str]]:
    return [(found.text, found.section, found.source) for found in procedure.instructions]


STEP = {"@type": "HowToStep", "name": "Mixing", "text": "Mix. Wait."}


def test_strings() -> None:
    found = read(
        recipe(
            ["Mix. Wait.", "Bake &amp;amp; <b>serve</b>.", "", None, "\ud800"],
            recipeIngredient=["1 egg", "&frac12; cup"],
        )
    )
    assert rows(found) == [
        ("Mix. Wait.", "", "recipeInstructions[0]"),
        ("Bake & serve.", "", "recipeInstructions[1]"),
    ]
    assert (found.title, found.ingredients) == ("Pie", ("1 egg", "½ cup"))


@pytest.mark.parametrize("wrap", [lambda text: text, lambda text: [text]])
def test_a_lone_text_is_read_as_text(wrap: Any) -> None:
    assert rows(read(recipe(wrap("Mix it. Bake it.")))) == [
        ("Mix it.", "", "recipeInstructions"),
        ("Bake it.", "", "recipeInstructions"),
    ]
    assert rows(read(recipe(wrap("<ol><li>Mix. Wait.</li><li>Bake.</li></ol>")))) == [
        ("Mix. Wait.", "", "recipeInstructions, line 1"),
        ("Bake.", "", "recipeInstructions, line 3"),
    ]


def test_steps_and_sections() -> None:
    sections = [
        {"@type": "HowToSection", "name": "Dough", "itemListElement": [STEP, {"@type": "HowToStep", "text": "Knead."}]},
        {"@type": "HowToSection", "name": "Oven", "itemListElement": "Bake. Serve."},
        {
            "@type": "HowToStep",
            "itemListElement": [{"@type": "HowToTip", "text": "Hot!"}, {"@type": "HowToDirection", "text": "Eat"}],
        },
        {"@type": "HowToStep", "name": "Rest"},
        {"@type": "ListItem", "position": 5, "item": {"@type": "HowToStep", "text": "End"}},
    ]
    assert rows(read(recipe(sections))) == [
        ("Mix. Wait.", "Dough", "recipeInstructions[0].itemListElement[0]"),
        ("Knead.", "Dough", "recipeInstructions[0].itemListElement[1]"),
        ("Bake. Serve.", "Oven", "recipeInstructions[1].itemListElement"),
        ("Eat", "", "recipeInstructions[2]"),
        ("Rest", "", "recipeInstructions[3]"),
        ("End", "", "recipeInstructions[4]"),
    ]
    assert rows(read(recipe({"@type": "ItemList", "itemListElement": [STEP]}))) == [
        ("Mix. Wait.", "", "recipeInstructions.itemListElement[0]")
    ]


def test_how_to() -> None:
    found = read(
        {
            "@type": "HowTo",
            "name": ["Change a tyre"],
            "supply": [{"@type": "HowToSupply", "name": "a spare wheel"}, "nuts"],
            "step": [{"@type": "HowToSection", "name": "Off", "itemListElement": [STEP]}, STEP],
        }
    )
    assert (found.title, found.ingredients) == ("Change a tyre", ("a spare wheel", "nuts"))
    assert rows(found) == [
        ("Mix. Wait.", "Off", "step[0].itemListElement[0]"),
        ("Mix. Wait.", "", "step[1]"),
    ]


@pytest.mark.parametrize(
    "document",
    [
        [{"@type": "WebPage"}, recipe("Bake.")],
        {"@context": "https://schema.org", "@graph": [{"@type": "Person", "name": "A"}, recipe("Bake.")]},
        {"@type": "WebPage", "mainEntity": recipe("Bake.")},
        recipe("Bake.") | {"@type": ["NewsArticle", "Recipe"]},
        recipe("Bake.") | {"@type": "http://schema.org/Recipe"},
        recipe("Bake.") | {"@type": "schema:Recipe"},
        [recipe([]), recipe("Bake.")],
    ],
    ids=["list", "graph", "main entity", "two types", "address", "prefix", "empty one before"],
)
def test_where_recipes_lie(document: Any) -> None:
    assert read(document).texts == ("Bake.",)


def page(*scripts: str, head: str = '<script type="application/ld+json">') -> str:
    return (
        "<!DOCTYPE html><html><head>" + "".join(f"{head}{script}</script>" for script in scripts) + "</head><p>Hi</p>"
    )


def test_web_pages() -> None:
    good = json.dumps(recipe(["Mix <i>it</i>.", "Bake."], name="Pie &amp; cream"))
    for text in (
        page(good),
        page("{ broken", '{"@type": "Organization"}', good),
        page(good, head='<SCRIPT id=x type="application/ld+json; charset=utf-8" async>'),
        page(f"<!-- {good} -->"),
        page(f"//<![CDATA[\n{good};\n//]]>"),
        page(good).removesuffix("</script></head><p>Hi</p>"),
        page(good.replace("Mix", "\nMix\t")),
        page("<!-- ", "never") + page(good),
        "<!-- " + page("{}") + "-->" + page(good),
    ):
        found = procedure_from_text(text)
        assert (found.title, found.texts) == ("Pie & cream", ("Mix it.", "Bake."))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<html><p>Mix. Bake.</p>", r"no recipe in this web page \(it has no JSON-LD\); save the instructions as text"),
        (page('{"@type": "Organization"}'), "none of its JSON-LD is a Recipe or HowTo"),
        (page("{", "{}"), "1 of its 2 JSON-LD scripts cannot be read"),
        (page(json.dumps(recipe([]))), r"page.html: the recipe 'Pie' has no instructions \(recipeInstructions\)"),
        (page("[" * 100_000), "1 of its 1 JSON-LD scripts cannot be read"),
    ],
)
def test_web_pages_without_a_recipe(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        procedure_from_text(text, source="page.html")


def scraped(**more: Any) -> dict[str, Any]:
    return {"title": "Pie &amp; cream", "host": "example.org", "instructions": "Mix. Wait.\nBake."} | more


def test_recipe_scrapers() -> None:
    listed = scraped(instructions_list=["Mix. Wait.", "Bake."], ingredients=["1 egg", "flour"])
    assert rows(read(listed)) == [("Mix. Wait.", "", "instructions_list[0]"), ("Bake.", "", "instructions_list[1]")]
    assert (read(listed).title, read(listed).ingredients) == ("Pie & cream", ("1 egg", "flour"))
    assert rows(read(scraped())) == [("Mix. Wait.", "", "instructions, line 1"), ("Bake.", "", "instructions, line 2")]
    assert read(scraped(instructions="Mix it. Bake it.")).texts == ("Mix it.", "Bake it.")
    groups = [{"purpose": "Dough", "ingredients": ["flour"]}, {"purpose": None, "ingredients": ["1 egg"]}]
    assert read(scraped(ingredient_groups=groups)).ingredients == ("flour", "1 egg")
    assert read([scraped(instructions=""), scraped()]).texts == ("Mix. Wait.", "Bake.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}', "no recipe in this JSON"),
        ('[{"@type": "Person"}]', "no recipe in this JSON"),
        ('{"@type": "Recipe", "name": "Pie"}', r"the recipe 'Pie' has no instructions \(recipeInstructions\)"),
        ('{"@type": "Recipe", ', r"line 1, column 21: not JSON"),
        ('{"format": "graph2vid-flow", "version": 1}', "is a graph2vid-flow file already"),
        ('{"a":' * 5000, "nested too deeply|not JSON"),
    ],
)
def test_json_without_a_recipe(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        procedure_from_text(text)


def test_what_looks_like_json_but_is_not() -> None:
    assert procedure_from_text("{mix} it. [1] Bake it.").texts == ("{mix} it.", "[1] Bake it.")
    with pytest.raises(FormatError, match=r"a\.json, line 1, column 1: not JSON"):
        procedure_from_text("Mix.", source="a.json")
    with pytest.raises(FormatError, match=r"a\.flow is a flow graph already"):
        procedure_from_text("a -> b", source="a.flow")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "soup.txt"
    path.write_bytes("Crème brûlée\n\n1. Mix ½ l.\n2. Bake – at 180 °C.".replace("–", "-").encode(encoding))
    found = graph2vid.read_procedure(path)
    assert (found.title, found.texts) == ("Crème brûlée", ("Mix ½ l.", "Bake - at 180 °C."))
    assert found.source == str(path)


def test_mixed_encodings() -> None:
    assert procedure_from_bytes("Mix “it” ½.".encode() + b" Bake \x96 at 180 \xb0C. \x81").texts == (
        "Mix “it” ½.",
        "Bake – at 180 °C.",
    )
    assert procedure_from_bytes("Mix. Bake.".encode("utf-16") + b"\x00").texts[0] == "Mix."


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b"\x89PNG\r\n\x1a\n\x00\x00",
            r"file\.txt is not a text file \(it holds NUL bytes\); save the procedure as text",
        ),
        (b"%PDF-1.7 hello", r"file\.txt is a PDF file, not a text file"),
        (b"PK\x03\x04 hello", r"is a packed file"),
        (b"{\\rtf1 hello}", r"is a rich-text file"),
        (b"a" * (16 << 20) + b"a", "is larger than 16 MiB"),
        (b"", "holds no words"),
    ],
    ids=["png", "pdf", "docx", "rtf", "huge", "empty"],
)
def test_other_files(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_procedure(tmp_path / "file.txt")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(Graph2VidError, match=r"cannot read .*nowhere: No such file"):
        read_procedure(tmp_path / "nowhere")
    with pytest.raises(Graph2VidError, match=r"cannot read .*: Is a directory"):
        read_procedure(str(tmp_path))


@given(st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        assert len(procedure_from_bytes(data)) > 0
    except Graph2VidError as error:
        assert "\n" not in str(error)


KEYS = ("@type", "@graph", "name", "text", "item", "itemListElement", "step", "recipeInstructions", "recipeIngredient")
KEYS += ("instructions", "instructions_list", "ingredients", "ingredient_groups", "title", "@value", "supply")
LEAVES = ("Recipe", "HowTo", "HowToStep", "HowToSection", "Mix. Bake.", "<p>a</p>", "&amp;", "\ud800", "")
VALUES = st.recursive(
    st.sampled_from(LEAVES) | st.none() | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=25,
)


@given(VALUES, st.booleans())
def test_any_json_is_read_or_refused(value: Any, in_a_page: bool) -> None:
    text = json.dumps([{"@type": "Recipe", "recipeInstructions": value}, value])
    try:
        found = procedure_from_text(page(text) if in_a_page else text)
    except Graph2VidError:
        return
    for instruction in found.instructions:
        instruction.text.encode("utf-8")
        assert instruction.text.strip()
        assert instruction.source


def test_a_format_of_our_own_is_named_in_short() -> None:
    with pytest.raises(FormatError, match=r"is a graph2vid-x{30} file already, not a procedure in words"):
        procedure_from_text('{"format": "graph2vid-' + "x" * 5000 + '"}')
