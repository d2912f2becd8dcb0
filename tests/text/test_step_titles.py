"""Short titles: at most 40 characters, whole words of the text, verb and object."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph2vid.datasets.recipe_flowgraph import read_recipes
from graph2vid.errors import MissingDependencyError
from graph2vid.text import LONGEST, read_procedure, short_titles
from graph2vid.text.rules.dependency_parser import language_model
from layouts import real_data

GALLERY = Path(__file__).parents[2] / "examples" / "procedures"
WORD = re.compile(r"[^\W_][\w'’/%&-]*")


def check(texts: list[str]) -> list[str]:
    """Check that titles are short and hold whole words of their texts alone, in their order."""
    found = short_titles(texts)
    for text, title in zip(texts, found, strict=True):
        assert 0 < len(title) <= LONGEST and title == " ".join(title.split()), title
        words = iter(WORD.findall(text.lower()))
        assert all(word in words for word in WORD.findall(title.lower())), f"{title!r} is not in {text!r}"
    return found


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Wash the berries.", "Wash the berries"),
        ("In a large bowl, whisk together the eggs and the milk until frothy.", "Whisk together the eggs and the milk"),
        ("Pour the eggs into the flour and stir to a batter.", "Pour the eggs into the flour"),
        ("Combine tea, spinach, kiwi, avocado, banana and ginger.", "Combine tea, spinach, kiwi, avocado …"),
        ("Mix the flour (sifted, and without any lumps in it) with the salt.", "Mix the flour with the salt"),
        ("For best results, do not remove the lid while the rice is cooking.", "Do not remove the lid"),
        ("Whisk the egg yolks, and then stir in the sugar until it is dissolved.", "Whisk the egg yolks"),
    ],
)
def test_verb_and_object(text: str, title: str) -> None:
    try:
        language_model()
    except MissingDependencyError as error:
        pytest.skip(str(error))
    assert short_titles([text]) == [title]


def test_without_a_parser_clauses_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graph2vid.text.step_titles._sentences", lambda texts: [])
    assert check(["Whisk the egg yolks, then stir in the sugar until it is dissolved."]) == ["Whisk the egg yolks"]
    assert check(["Put the very large and really rather heavy pan on the hob."])[0].endswith(" …")


def test_what_has_no_short_words_is_numbered() -> None:
    assert short_titles(["cut", "x" * 41, "", "卵を割って" * 20]) == ["Cut", "Step 2", "Step 3", "Step 4"]
    assert short_titles(["卵を割って混ぜる、" * 9]) == ["、".join(["卵を割って混ぜる"] * 4)]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=120), max_size=4))
@settings(max_examples=60, deadline=None)
def test_any_text_has_a_short_title(texts: list[str]) -> None:
    found = short_titles(texts)
    assert len(found) == len(texts) and all(0 < len(title) <= LONGEST for title in found)


def test_titles_of_the_gallery() -> None:
    files = [path for path in GALLERY.iterdir() if path.name != "expected.json"]
    assert len(files) == 6
    check([text for path in files for text in read_procedure(path).texts])


def test_titles_of_recipes() -> None:
    data = real_data("recipe_flowgraph") / "recipe_flowgraph"
    recipes = [*read_recipes(data, "dev"), *read_recipes(data, "train")][:50]
    texts = [" ".join(recipe.tokens[start:end]) for recipe in recipes for start, end in recipe.sentences]
    assert len(recipes) == 50
    check(texts)
