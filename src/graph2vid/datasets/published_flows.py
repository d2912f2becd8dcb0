"""Flow graphs of how-to tasks in the published JSON form.

A list of ``{"recipe_type": TASK, "recipe": {"instructions": [text, …], "edges": [[a, b], …], "recipe_2_caption":
[[instruction, step], …]}}``, all numbers counted from 0 and step -1 for an instruction that stands for no step of the
dataset; ``"predicted_edges"``, in the recipe or beside it, are those of a learned parser.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph2vid._files import read_json
from graph2vid._values import count_of
from graph2vid.datasets.reader_tools import entry
from graph2vid.errors import FormatError, GraphError
from graph2vid.flow import FlowGraph

SOURCES = {"edges": "manual", "predicted_edges": "predicted"}


@dataclass(frozen=True)
class PublishedFlow:
    """The instructions of one task, its graphs by source, and which dataset step each instruction stands for.

    Attributes
    ----------
    instructions : tuple of str
    flows : mapping of str to FlowGraph
        "manual" and, where there is one, "predicted".
    step_of : tuple of (int, int)
        Pairs (instruction, dataset step).
    """

    instructions: tuple[str, ...]
    flows: Mapping[str, FlowGraph]
    step_of: tuple[tuple[int, int], ...]

    def correspondence(self, n_steps: int, where: str) -> tuple[tuple[int, ...], ...]:
        """Return for each of the ``n_steps`` dataset steps its instructions."""
        found: list[list[int]] = [[] for _ in range(n_steps)]
        for instruction, step in self.step_of:
            if step >= n_steps:
                raise FormatError(f"{where}: instruction {instruction} stands for step {step} of {n_steps}")
            found[step].append(instruction)
        return tuple(tuple(sorted(set(instructions))) for instructions in found)


def read_published_flows(path: str | Path) -> dict[str, PublishedFlow]:
    """Read a file of flow graphs in the published form, by task id."""
    path = Path(path)
    document = read_json(path)
    if not isinstance(document, list):
        raise FormatError(f"{path} should be a list of tasks with their recipes, not a {type(document).__name__}")
    tasks: dict[str, PublishedFlow] = {}
    for number, record in enumerate(document):
        task = str(entry(record, "recipe_type", (str, int), f"{path}, entry {number}"))
        where = f"{path}, task {task}"
        if task in tasks:
            raise FormatError(f"{where} is there twice")
        tasks[task] = _read_recipe(entry(record, "recipe", dict, where), record, where)
    return tasks


def _read_recipe(recipe: dict[str, Any], record: dict[str, Any], where: str) -> PublishedFlow:
    instructions = entry(recipe, "instructions", list, where)
    if not instructions or not all(isinstance(text, str) for text in instructions):
        raise FormatError(f"{where}: the instructions must be texts, and there must be one")
    pairs = {"edges": entry(recipe, "edges", list, where)}
    for holder in (recipe, record):
        if "predicted_edges" in holder:
            pairs["predicted_edges"] = entry(holder, "predicted_edges", list, where)
    flows = {}
    for key, edges in pairs.items():
        title = str(recipe.get("title", ""))
        try:
            flows[SOURCES[key]] = FlowGraph.from_edges(instructions, pairs_of(edges, key, where), title)
        except GraphError as error:
            raise FormatError(f"{where}, {key}: {error}") from error
    step_of = []
    for instruction, step in pairs_of(recipe.get("recipe_2_caption", []), "recipe_2_caption", where):
        if not 0 <= instruction < len(instructions):
            raise FormatError(f"{where}: there is no instruction {instruction} in recipe_2_caption")
        if step >= 0:  # -1: it stands for none
            step_of.append((instruction, step))
    return PublishedFlow(tuple(instructions), flows, tuple(step_of))


def pairs_of(value: Any, key: str, where: str) -> list[tuple[int, int]]:
    """Return a list of pairs of whole numbers."""
    if isinstance(value, dict):  # {"instruction": step} says the same
        value = [[count_of(a, f"{where}: {key}") if a.isdecimal() else a, b] for a, b in value.items()]
    pairs = []
    for pair in value if isinstance(value, list) else [value]:
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(number) is int for number in pair)):
            raise FormatError(f"{where}: {key} must be pairs of whole numbers, not {pair!r}")
        pairs.append((pair[0], pair[1]))
    return pairs
