"""Recipes as data: schema.org Recipe and HowTo in JSON-LD, alone or in web pages, and JSON of recipe-scrapers.

https://schema.org/Recipe, https://schema.org/HowTo.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
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
_TYPE_END = re.compile("[:#/]")
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
        title = _words(found.get("name") or found.get("headline"))
        for key in _INSTRUCTIONS[kind]:
            if instructions := tuple(_steps(found.get(key), key)):
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
    return {_TYPE_END.split(name)[-1].casefold() for name in _entries(given) if isinstance(name, str)}


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
        if _says_something(text):
            yield Instruction(text, section, path)


def _says_something(text: str) -> bool:
    return has_words(text) and not is_boilerplate(text)


def _within(value: dict[str, Any]) -> tuple[str, Any] | None:
    """Return the steps within an object that is no step itself (a section, a list, an item of a list)."""
    inner = [entry for entry in _entries(value.get("itemListElement")) if isinstance(entry, dict)]
    if "howtostep" in _types(value) and not any(_types(entry) & {"howtostep", "howtosection"} for entry in inner):
        return None
    if isinstance(value.get("item"), dict | list):
        return "item", value["item"]
    return next(((key, value[key]) for key in _STEPS_WITHIN if value.get(key)), None)


def _entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _step_text(value: Any) -> str:
    """Return the words of one step; its directions make one text, tips are left out where it has others."""
    if not isinstance(value, dict):
        return _words(value)
    if text := _words(value.get("text")) or _words(value.get("description")):
        return text
    parts = _entries(value.get("itemListElement"))
    told = [part for part in parts if not isinstance(part, dict) or "howtotip" not in _types(part)] or parts
    return " ".join(filter(None, map(_words, told))) or _words(value)


def _ingredients(found: dict[str, Any], kind: str) -> list[str]:
    for key in _INGREDIENTS[kind]:
        listed = _entries(found.get(key))
        if len(listed) == 1 and isinstance(listed[0], str):
            listed = without_html(listed[0]).splitlines()
        if words := list(filter(has_words, map(_words, listed))):
            return words
    return []


def _words(value: Any) -> str:
    """Return the words of a string, a number, or an object that holds some; "" where there are none."""
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, dict):
        value = next((value[key] for key in ("@value", "text", "name") if isinstance(value.get(key), str)), None)
    return _tidied(value)


def _tidied(value: Any) -> str:
    """Return the words of a string, "" of anything else."""
    return tidy(without_html(value)) if isinstance(value, str) else ""


def read_scraped(value: Any, source: str) -> Procedure | None:
    """Read a scraped recipe; of several, the first with instructions.

    Returns
    -------
    Procedure or None
        None where ``value`` is no such document.
    """
    for recipe in _entries(value):
        if isinstance(recipe, dict) and (instructions := _scraped_instructions(recipe)):
            groups = [group for group in _listed(recipe.get("ingredient_groups")) if isinstance(group, dict)]
            grouped = [entry for group in groups for entry in _listed(group.get("ingredients"))]
            ingredients = map(_tidied, _listed(recipe.get("ingredients")) or grouped)
            return Procedure(instructions, _tidied(recipe.get("title")), tuple(filter(has_words, ingredients)), source)
    return None


def _scraped_instructions(recipe: dict[str, Any]) -> tuple[Instruction, ...]:
    found = [
        (f"instructions_list[{n}]", _tidied(entry)) for n, entry in enumerate(_listed(recipe.get("instructions_list")))
    ]
    text = recipe.get("instructions")
    if not any(_says_something(words) for _, words in found) and isinstance(text, str):
        found = [(f"instructions, line {n}", _tidied(line)) for n, line in enumerate(text.splitlines(), start=1)]
        if sum(has_words(words) for _, words in found) == 1:  # no list was found on the page
            plain = plain_instructions(without_html(text, bullet="- "), "instructions")
            return tuple(Instruction(instruction.text, source="instructions") for instruction in plain)
    return tuple(Instruction(words, source=source) for source, words in found if _says_something(words))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


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
    scripts, values = list(_scripts(text)), []
    for script in scripts:
        with suppress(FormatError):
            # Pages put bare line breaks into strings, which strict JSON forbids.
            values.append(parse_json(_bare(script), source, lenient=True))
    if procedure := read_json_ld(values, source):
        return procedure
    why = "it has no JSON-LD" if not scripts else "none of its JSON-LD is a Recipe or HowTo"
    if broken := len(scripts) - len(values):
        why = f"{broken} of its {len(scripts)} JSON-LD scripts cannot be read"
    raise InputError(f"{source}: no recipe in this web page ({why}); save the instructions as text, one per line")


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

    found = ""

    @classmethod
    def of(cls, tag: str) -> str:
        """Return the type without its parameters, in small letters."""
        parser = cls()
        parser.feed(tag)
        return parser.found.partition(";")[0].strip().casefold()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found = dict(attrs).get("type") or ""
