"""A small recipe flow graph corpus, written by the tests; all of it made up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from layouts import write

Row = tuple[str, str, int, str, str]
"""Token, tag, head (from 1, 0: none), label, further heads."""

# "Boil rice . Cut leeks . Mix them ( well ) !": boil → mix (f-eq of a pronoun), cut → mix (t, unnamed product)
LEEKS: tuple[Row, ...] = (
    ("Boil", "B-Ac", 8, "f-eq", "_"),  # 1
    ("rice", "B-F", 1, "t", "_"),
    (".", "O", 0, "root", "_"),
    ("Cut", "B-Ac", 7, "t", "[(8, 'f-part-of')]"),  # 4
    ("leeks", "B-F", 4, "t", "_"),
    (".", "O", 0, "root", "_"),
    ("Mix", "B-Ac", 0, "root", "_"),  # 7
    ("them", "B-F", 7, "t", "_"),  # 8
    ("(", "O", 0, "root", "_"),
    ("well", "B-Sf", 7, "v-tm", "_"),
    (")", "O", 0, "root", "_"),
    ("!", "O", 0, "root", "_"),
)
# "Heat the large pan . Serve": one edge points backwards in the text
PAN: tuple[Row, ...] = (
    ("Heat", "B-Ac", 0, "root", "_"),
    ("the", "O", 0, "root", "_"),
    ("large", "B-T", 1, "t", "_"),
    ("pan", "I-T", 0, "root", "_"),
    (".", "O", 0, "root", "_"),
    ("Serve", "B-Ac", 1, "a", "_"),
)


def parser_file(*recipes: Sequence[Row]) -> str:
    """Return recipes in the ten columns of the parser's file."""
    blocks = []
    for recipe in recipes:
        lines = [
            f"{number}\t{token}\t_\tXX\t{tag}\t_\t{head}\t{label}\t{further}\t_"
            for number, (token, tag, head, label, further) in enumerate(recipe, start=1)
        ]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def tagger_file(*recipes: Sequence[Row]) -> str:
    """Return recipes in the four columns of the tagger's file."""
    return "\n".join("".join(f"{row[0]}\tXX\tO\t{row[1]}\n" for row in recipe) for recipe in recipes)


def corpus(root: Path, split: str = "dev") -> Path:
    """Write the corpus with two recipes."""
    write(root / "Parser" / f"{split}.conllu", parser_file(LEEKS, PAN))
    write(root / "Tagger" / f"{split}.conll03", tagger_file(LEEKS, PAN))
    return root
