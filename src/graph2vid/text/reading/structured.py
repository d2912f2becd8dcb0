"""Recipes as data: schema.org Recipe and HowTo in JSON-LD, alone or in web pages, and JSON of recipe-scrapers.

https://schema.org/Recipe, https://schema.org/HowTo.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

from graph2vid._files import parse_json
from graph2vid._values import shown
from graph2vid.errors import FormatError, InputError
from graph2vid.text.parsed_text import Instruction, Procedure
from graph2vid.text.reading.boilerplate import is_boilerplate
from graph2vid.text.reading.plain import plain_instructions
from graph2vid.text.reading.tidy import has_words, tidy, without_html

_INSTRUCTIONS = {"recipe": ("recipeInstructions", "instructions"), "howto": ("step", "steps", "itemListElement")}
_INGREDIENTS = {"recipe": ("recipeIngredient", "ingredients"), "howto": ("supply",)}
_STEPS_WITHIN = ("itemListElement", "steps", "step", "@list")


def read_json_ld(value: Any, source: str) -> Procedure | None:
    """Read the first recipe or how-to with instructions in a JSON-LD document.

    Parameters
    ----------
    value : object
        The parsed document: an object, a list, or a ``@graph``; recipes may lie anywhere in it.
    source : str
        What messages and the procedure call it.

    Returns
    -------
    Procedure or None
        None where the document holds neither a recipe nor a how-to.

    Raises
    ------
    InputError
        There is one, but it has no instructions.
    """
    empty = None
    for kind, found in _procedures(value):
        instructions = tuple(_instructions(found, kind))
        title = _words(found.get("name") or found.get("headline"))
        if instructions:
            return Procedure(instructions, title, tuple(_ingredients(found, kind)), source)
        empty = empty or (title, _INSTRUCTIONS[kind][0])
    if empty:
        raise InputError(f"{source}: the recipe {shown(empty[0])} has no instructions ({empty[1]})")
    return None


def _procedures(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the recipes and how-tos in the order of the document, outer ones first."""
    todo = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            types = _types(value)
            yield from ((kind, value) for kind in _INSTRUCTIONS if kind in types)
            todo.extend(reversed(value.values()))
        elif isinstance(value, list):
            todo.extend(reversed(value))


def _types(value: dict[str, Any]) -> set[str]:
    """Return what an object says it is: "recipe" for "Recipe", "schema:Recipe", "http://schema.org/Recipe"."""
    given = value.get("@type", value.get("type"))
    names = given if isinstance(given, list) else [given]
    return {
        name.replace(":", "/").replace("#", "/").rsplit("/", 1)[-1].casefold()
        for name in names
        if isinstance(name, str)
    }


def _instructions(found: dict[str, Any], kind: str) -> list[Instruction]:
    for key in _INSTRUCTIONS[kind]:
        instructions = list(_steps(found.get(key), key))
        if instructions:
            return instructions
    return []


def _steps(value: Any, path: str) -> Iterator[Instruction]:
    """Yield the instructions of a value in whichever form, with their sections and places.

    The entries of a list are an instruction each; a text that stands alone is read as plain text.
    """
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        value = value[0]
    if isinstance(value, str):
        text = without_html(value, bullet="- ").strip()
        several = "\n" in text
        for instruction in plain_instructions(text, path):
            yield replace(instruction, source=f"{path}, {instruction.source}" if several else path)
        return
    todo: list[tuple[Any, str, str]] = [(value, path, "")]
    while todo:
        value, path, section = todo.pop()
        if isinstance(value, list):
            todo.extend((entry, f"{path}[{place}]", section) for place, entry in reversed(list(enumerate(value))))
            continue
        within = _within(value) if isinstance(value, dict) else None
        if within is not None:
            key, inner = within
            name = _words(value.get("name")) if "howtosection" in _types(value) else ""
            todo.append((inner, f"{path}.{key}" if key != "item" else path, name or section))
            continue
        text = _step_text(value)
        if has_words(text) and not is_boilerplate(text):
            yield Instruction(text, section, path)


def _within(value: dict[str, Any]) -> tuple[str, Any] | None:
    """Return the steps within an object that is no step itself (a section, a list, an item of a list)."""
    types = _types(value)
    if "howtostep" in types and not any(_is_section(entry) for entry in _entries(value.get("itemListElement"))):
        return None
    if isinstance(value.get("item"), dict | list):
        return "item", value["item"]
    return next(((key, value[key]) for key in _STEPS_WITHIN if value.get(key)), None)


def _entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_section(value: Any) -> bool:
    return isinstance(value, dict) and bool(_types(value) & {"howtostep", "howtosection"})


def _step_text(value: Any) -> str:
    """Return the words of one step; its directions make one text, tips are left out where it has others."""
    if not isinstance(value, dict):
        return _words(value)
    if text := _words(value.get("text")) or _words(value.get("description")):
        return text
    parts = _entries(value.get("itemListElement"))
    are_tips = [isinstance(part, dict) and "howtotip" in _types(part) for part in parts]
    told = [part for part, is_tip in zip(parts, are_tips, strict=True) if not is_tip] or parts
    return " ".join(filter(None, map(_words, told))) or _words(value)


def _ingredients(found: dict[str, Any], kind: str) -> list[str]:
    for key in _INGREDIENTS[kind]:
        listed = _entries(found.get(key))
        if len(listed) == 1 and isinstance(listed[0], str):
            listed = list(without_html(listed[0]).splitlines())
        words = [word for word in map(_words, listed) if has_words(word)]
        if words:
            return words
    return []


def _words(value: Any) -> str:
    """Return the words of a string, a number, or an object that holds some; "" where there are none."""
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, dict):
        value = next((value[key] for key in ("@value", "text", "name") if isinstance(value.get(key), str)), None)
    return tidy(without_html(value)) if isinstance(value, str) else ""


def read_scraped(value: Any, source: str) -> Procedure | None:
    """Read a scraped recipe; of several, the first with instructions.

    Returns
    -------
    Procedure or None
        None where ``value`` is no such document.
    """
    for recipe in value if isinstance(value, list) else [value]:
        if isinstance(recipe, dict) and (instructions := _scraped_instructions(recipe)):
            title = recipe.get("title")
            title = tidy(without_html(title)) if isinstance(title, str) else ""
            return Procedure(tuple(instructions), title, tuple(_scraped_ingredients(recipe)), source)
    return None


def _scraped_instructions(recipe: dict[str, Any]) -> list[Instruction]:
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


def _scraped_ingredients(recipe: dict[str, Any]) -> list[str]:
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


_COMMENT_OR_SCRIPT = re.compile(r"<!--|<script\b[^<>]{,2000}>", re.IGNORECASE)
_COMMENT_END = re.compile(r"-->")
_SCRIPT_END = re.compile(r"</script\b", re.IGNORECASE)


def read_web_page(text: str, source: str) -> Procedure:
    """Read the first recipe or how-to in the JSON-LD scripts of a page; broken scripts are passed over.

    Raises
    ------
    InputError
        The page holds none.
    """
    scripts = list(_scripts(text))
    values, broken = [], 0
    for script in scripts:
        try:
            # Pages put bare line breaks into strings, which strict JSON forbids.
            values.append(parse_json(_bare(script), source, lenient=True))
        except FormatError:
            broken += 1
    procedure = read_json_ld(values, source)
    if procedure is None:
        why = "it has no JSON-LD" if not scripts else "none of its JSON-LD is a Recipe or HowTo"
        why = f"{broken} of its {len(scripts)} JSON-LD scripts cannot be read" if broken else why
        raise InputError(f"{source}: no recipe in this web page ({why}); save the instructions as text, one per line")
    return procedure


def _bare(script: str) -> str:
    """Return a script without the comment or CDATA marks that old pages wrap it in."""
    script = script.strip()
    for opening, closing in (("<!--", "-->"), ("//<![CDATA[", "//]]>"), ("<![CDATA[", "]]>")):
        script = script.removeprefix(opening).removesuffix(closing).strip()
    return script.removesuffix(";")


def _scripts(text: str) -> Iterator[str]:
    """Yield the JSON-LD scripts of a page, in linear time however broken it is."""
    place = 0
    while mark := _COMMENT_OR_SCRIPT.search(text, place):
        is_comment = mark[0] == "<!--"
        end = (_COMMENT_END if is_comment else _SCRIPT_END).search(text, mark.end())
        if not is_comment and _Type.of(mark[0]) == "application/ld+json":
            yield text[mark.end() : end.start() if end else len(text)]
        if end is None:
            return
        place = end.end()


class _Type(HTMLParser):
    """Finds the type that a start tag gives."""

    def __init__(self) -> None:
        super().__init__()
        self.found = ""

    @classmethod
    def of(cls, tag: str) -> str:
        """Return the type without its parameters, in small letters."""
        parser = cls()
        parser.feed(tag)
        return parser.found.partition(";")[0].strip().casefold()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found = dict(attrs).get("type") or ""
