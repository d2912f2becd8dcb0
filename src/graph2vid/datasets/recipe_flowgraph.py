"""The English recipe flow graph corpus: recipes with tagged entities and labelled edges between them.

``Parser/SPLIT.conllu`` holds one token per line in ten columns, tab between them, a blank line between recipes:
number from 1, token, _, part of speech, entity tag, _, head, label, further heads as ``[(head, 'label'), …]``, _.
``Tagger/SPLIT.conll03``, where it is there, repeats the tags: token, part of speech, chunk, tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from graph2vid._files import read_text
from graph2vid._values import count_of
from graph2vid.datasets.reader_tools import folder, stems
from graph2vid.errors import FormatError

ENTITY_CLASSES = ("Ac", "Ac2", "Af", "At", "D", "F", "Q", "Sf", "St", "T")
"""Action by the cook, discontinuous action, action by food, action by tool, duration, food, quantity, state of food,
state of tool, tool."""

_TAGS = {"O", *(f"{mark}-{kind}" for mark in "BI" for kind in ENTITY_CLASSES)}
SENTENCE_ENDS = frozenset({".", "!", "?"})
NO_HEAD = "_"
_EMPTY_LIST = re.compile(r"\[[\s,]*\]")
_FURTHER_HEAD = re.compile(r"\(\s*(\d+)\s*,\s*(?:'([^']*)'|\"([^\"]*)\")\s*\)")
_COLUMNS = 10
_TAGGER_COLUMNS = 4

Row: TypeAlias = tuple[int, list[str]]
"""A line number from 1 and the fields of that line."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One annotated recipe.

    Attributes
    ----------
    id : str
        Split and number in it, from 1 ("dev 3").
    tokens : tuple of str
    tags : tuple of str
        One per token: "O", or "B-" (begins an entity) or "I-" (goes on with it) and one of :data:`ENTITY_CLASSES`.
    edges : tuple of (int, int, str)
        Dependent token, head token (both from 0, first tokens of entities) and label; the first one of a dependent is
        its primary head, others may follow. Few recipes have cycles.
    sentences : tuple of (int, int)
        First token and end (not included) of each sentence; a sentence ends with a token ".", "!" or "?".
    """

    id: str
    tokens: tuple[str, ...]
    tags: tuple[str, ...]
    edges: tuple[tuple[int, int, str], ...]
    sentences: tuple[tuple[int, int], ...]


def read_recipes(data: str | Path, split: str) -> tuple[Recipe, ...]:
    """Read one split of the corpus.

    Parameters
    ----------
    data : path
        The folder with ``Parser/SPLIT.conllu``.
    split : str
        "train", "dev", or any other whose file is there.

    Returns
    -------
    tuple of Recipe
        In the order of the file.
    """
    data = folder(Path(data), "Parser/SPLIT.conllu")
    path = folder(data / "Parser", "SPLIT.conllu") / f"{split}.conllu"
    if not path.is_file():
        known = ", ".join(stems(path.parent, path.suffix)) or "none"
        raise FormatError(f"{path} is not there; splits in that folder: {known}")
    blocks = enumerate(_blocks(path, _COLUMNS), start=1)
    recipes = tuple(_recipe(f"{split} {number}", rows, path) for number, rows in blocks)
    if not recipes:
        raise FormatError(f"{path} holds no recipe")
    tagger = data / "Tagger" / f"{split}.conll03"
    if tagger.is_file():
        _compare(recipes, list(_blocks(tagger, _TAGGER_COLUMNS)), tagger)
    return recipes


def sentences_of(tokens: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """Cut tokens into sentences, each (first token, end): after every ".", "!" and "?", and at the end."""
    ends = [at for at, token in enumerate(tokens, start=1) if token in SENTENCE_ENDS]
    if not ends or ends[-1] < len(tokens):
        ends.append(len(tokens))
    return tuple(zip([0, *ends[:-1]], ends, strict=True))


def _blocks(path: Path, columns: int) -> Iterator[list[Row]]:
    """Yield the rows of each recipe."""
    lines = ((number, line.rstrip("\r")) for number, line in enumerate(read_text(path).split("\n"), start=1))
    told = (row for row in lines if not row[1].startswith("#") or "\t" in row[1])
    for worded, block in groupby(told, key=lambda row: bool(row[1].strip())):
        rows = [(number, line.split("\t")) for number, line in block if worded]
        for number, row in rows:
            if len(row) != columns:
                where = f"{path}, line {number}"
                raise FormatError(f"{where}: {len(row)} columns where there should be {columns}: {chr(9).join(row)!r}")
        if rows:
            yield rows


def _recipe(name: str, rows: list[Row], path: Path) -> Recipe:
    tokens, tags = [], []
    edges: dict[tuple[int, int, str], None] = {}
    for at, (number, fields) in enumerate(rows):
        where = f"{path}, line {number}"
        if fields[0] != str(at + 1):
            raise FormatError(f"{where}: token number {fields[0]!r} where {at + 1} should stand")
        tokens.append(fields[1])
        if fields[4] not in _TAGS:
            known = f"O, B- or I- with {', '.join(ENTITY_CLASSES)}"
            raise FormatError(f"{where}: {fields[4]!r} is no tag; tags are {known}")
        tags.append(fields[4])
        for head, label in _heads(fields, where):
            if not 0 <= head <= len(rows):
                raise FormatError(f"{where}: head {head} of {fields[1]!r} is no token: the recipe has {len(rows)}")
            if head:
                edges[at, head - 1, label] = None
    return Recipe(name, tuple(tokens), tuple(tags), tuple(edges), sentences_of(tuple(tokens)))


def _heads(fields: list[str], where: str) -> Iterator[tuple[int, str]]:
    """Yield the heads of a token with their labels, the primary one first; 0 is none."""
    if not (fields[6].isascii() and fields[6].isdecimal()):
        raise FormatError(f"{where}: the head must be a token number or 0, not {fields[6]!r}")
    yield count_of(fields[6], f"{where}: the head"), fields[7]
    further = fields[8].strip()
    if further == NO_HEAD:
        return
    found = _FURTHER_HEAD.findall(further)
    # the pairs, taken away, must leave nothing but the brackets and commas of a list
    if not found or not _EMPTY_LIST.fullmatch(_FURTHER_HEAD.sub("", further)):
        raise FormatError(f"{where}: further heads are {NO_HEAD} or [(head, 'label'), …], not {further!r}")
    for head, single, double in found:
        yield count_of(head, f"{where}: the head"), single or double


def _compare(recipes: tuple[Recipe, ...], blocks: list[list[Row]], path: Path) -> None:
    """Refuse tags that differ between the two files, wherever both have the same recipe."""
    if len(blocks) != len(recipes):
        raise FormatError(f"{path} holds {len(blocks)} recipes, the parser's file of the same split {len(recipes)}")
    for recipe, rows in zip(recipes, blocks, strict=True):
        if recipe.tokens != tuple(fields[0] for _, fields in rows):
            continue  # cut into other tokens: there is nothing to compare
        for tag, (number, fields) in zip(recipe.tags, rows, strict=True):
            if fields[3] != tag:
                raise FormatError(f"{path}, line {number}: tag {fields[3]!r}, but {tag!r} in the parser's file")
