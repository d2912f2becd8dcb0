"""The JSON of the package recipe-scrapers (``scraper.to_json()``)."""

from __future__ import annotations

from typing import Any

from graph2vid.text.parsed_text import Instruction, Procedure
from graph2vid.text.reading.boilerplate import is_boilerplate
from graph2vid.text.reading.plain import plain_instructions
from graph2vid.text.reading.tidy import has_words, tidy, without_html


def read_scraped(value: Any, source: str) -> Procedure | None:
    """Read a scraped recipe; of several, the first with instructions.

    Returns
    -------
    Procedure or None
        None where ``value`` is no such document.
    """
    for recipe in value if isinstance(value, list) else [value]:
        if isinstance(recipe, dict) and (instructions := _instructions(recipe)):
            title = recipe.get("title")
            title = tidy(without_html(title)) if isinstance(title, str) else ""
            return Procedure(tuple(instructions), title, tuple(_ingredients(recipe)), source)
    return None


def _instructions(recipe: dict[str, Any]) -> list[Instruction]:
    listed = [
        Instruction(words, source=f"instructions_list[{place}]")
        for place, words in enumerate(_strings(recipe.get("instructions_list")))
        if has_words(words) and not is_boilerplate(words)
    ]
    text = recipe.get("instructions")
    if listed or not isinstance(text, str):
        return listed
    lines = [tidy(without_html(line)) for line in text.splitlines()]
    if sum(map(has_words, lines)) == 1:  # no list was found on the page
        found = plain_instructions(without_html(text, bullet="- "), "instructions")
        return [Instruction(instruction.text, source="instructions") for instruction in found]
    return [
        Instruction(words, source=f"instructions, line {number}")
        for number, words in enumerate(lines, start=1)
        if has_words(words) and not is_boilerplate(words)
    ]


def _ingredients(recipe: dict[str, Any]) -> list[str]:
    groups = recipe.get("ingredient_groups")
    groups = [group for group in groups if isinstance(group, dict)] if isinstance(groups, list) else []
    grouped = [words for group in groups for words in _strings(group.get("ingredients"))]
    return [words for words in _strings(recipe.get("ingredients")) or grouped if has_words(words)]


def _strings(value: Any) -> list[str]:
    """Return the tidied strings of a list, "" in the place of anything else."""
    return (
        [tidy(without_html(entry)) if isinstance(entry, str) else "" for entry in value]
        if isinstance(value, list)
        else []
    )
