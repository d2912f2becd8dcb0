"""Procedures in words with their true precedences: asynchow (JSON lines) and wikihow_fg (a JSON file per article)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from graph2vid._files import parse_json, read_text
from graph2vid.datasets.reader_tools import folder
from graph2vid.errors import FormatError


@dataclass(frozen=True, slots=True)
class OrderedText:
    """A procedure and what must come before what in it.

    Attributes
    ----------
    id : str
    title : str
    steps : tuple of str
        In the written order; of wikihow_fg, tokens with blanks between them.
    before : frozenset of (int, int)
        The first step must come before the second; not closed under transitivity.
    domain : str
        Of the article ("Home-and-Garden"); empty where there are no domains.
    """

    id: str
    title: str
    steps: tuple[str, ...]
    before: frozenset[tuple[int, int]]
    domain: str = ""

    def __post_init__(self) -> None:
        if not self.steps or not all(0 <= step < len(self.steps) for pair in self.before for step in pair):
            raise ValueError(f"a precedence names a step that is not among the {len(self.steps)}")


def read_asynchow(data: str | os.PathLike[str]) -> list[OrderedText]:
    """Read the tasks of asynchow: ``tasks.jsonl`` with id, title, steps and before."""
    path = folder(Path(data), "tasks.jsonl of asynchow") / "tasks.jsonl"
    found = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            task = parse_json(line, where)
            with _checked(where):
                pairs = frozenset((int(before), int(after)) for before, after in task["before"])
                found.append(OrderedText(str(task["id"]), str(task["title"]), tuple(map(str, task["steps"])), pairs))
    return found


def read_wikihow_fg(data: str | os.PathLike[str]) -> list[OrderedText]:
    """Read the articles of wikihow_fg: ``DOMAIN/ARTICLE.json`` with the tokens of each step and flows between tokens.

    A step comes before a later one when some flow leads from the one into the other.
    """
    root = folder(Path(data), "the articles of wikihow_fg, by domain")
    found = []
    for path in sorted(root.glob("*/*.json")):
        article = parse_json(read_text(path), str(path))
        with _checked(str(path)):
            steps = tuple(" ".join(str(word["token"]) for word in step) for step in article["steps"])
            ends = [[int(str(end).partition("-")[0]) for end in flow[:2]] for flow in article["flows"]]
            pairs = frozenset((before, after) for before, after in ends if before < after)
            title = path.stem.partition("_")[2].replace("-", " ")
            found.append(OrderedText(path.stem, title, steps, pairs, path.parent.name))
    return found


@contextmanager
def _checked(where: str) -> Iterator[None]:
    """Say which part of a file is not as it should be."""
    try:
        yield
    except KeyError as error:
        raise FormatError(f"{where}: there is no {error}") from error
    except (TypeError, ValueError) as error:
        raise FormatError(f"{where}: {error}") from error
