"""Flow graphs that parsers find in procedures: each text parsed once, missing parsers named and left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from graph2vid.datasets import Dataset, Task, onto_steps
from graph2vid.errors import Graph2VidError, InputError
from graph2vid.flow import FlowGraph
from graph2vid.text import PARSERS, Instruction, Procedure, parse
from graph2vid.text.precedence import fold_of

PARSED_BY_DEFAULT = ("auto", "rules", "learned")
"""Parsers whose graphs are grounded beside the given ones, where tasks come with a how-to text."""


def check_parsers(names: Iterable[str]) -> None:
    """Refuse names that are those of no parser."""
    for name in names:
        if name not in PARSERS:
            raise InputError(f"unknown parser {name!r}; known: {', '.join(PARSERS)}")


class ParsedGraphs:
    """The graphs of some parsers.

    Parameters
    ----------
    parsers : iterable of str
        Names in :data:`graph2vid.text.PARSERS`; an unknown one is an error.
    options : mapping of str to mapping, optional
        Options of parsers by their name.
    held_out : bool
        Texts may be among those that ``auto`` was trained on: it is asked by the network that did not see them.

    Attributes
    ----------
    unavailable : dict of str to str
        Parsers that cannot work here, and why; they are asked no more.
    seconds, texts : dict of str to float, int
        How long each parser took for how many texts, its first one (it loads models then) left out.
    """

    def __init__(
        self, parsers: Iterable[str], options: Mapping[str, Mapping[str, Any]] | None = None, *, held_out: bool = False
    ) -> None:
        self._names = tuple(dict.fromkeys(parsers))
        check_parsers(self._names)
        self._options = options or {}
        self._held_out = held_out
        self._made: dict[tuple[str, str, tuple[str, ...]], FlowGraph] = {}
        self.unavailable: dict[str, str] = {}
        self.seconds: dict[str, float] = dict.fromkeys(self._names, 0.0)
        self.texts: dict[str, int] = dict.fromkeys(self._names, 0)

    @property
    def parsers(self) -> tuple[str, ...]:
        """The parsers that work, as far as is known."""
        return tuple(name for name in self._names if name not in self.unavailable)

    def flow(self, parser: str, texts: Sequence[str], title: str = "") -> FlowGraph | None:
        """Return the graph of a procedure, one step per text; None where the parser is not available."""
        key = (parser, title, tuple(texts))
        if key in self._made:
            return self._made[key]
        if parser in self.unavailable:
            return None
        procedure = Procedure(tuple(Instruction(text) for text in texts), title)
        is_first = not any(made[0] == parser for made in self._made)
        began = perf_counter()
        try:
            fold = {"fold": fold_of(texts)} if self._held_out and parser == "auto" else {}
            flow = parse(procedure, parser, **self._options.get(parser, {}), **fold).flow
            if len(flow) != len(texts):
                raise InputError(f"it made a graph of {len(flow)} steps for {len(texts)} instructions")
        except (Graph2VidError, ImportError) as error:
            self.unavailable[parser] = str(error)
            return None
        if not is_first:
            self.seconds[parser] += perf_counter() - began
            self.texts[parser] += 1
        self._made[key] = flow
        return flow


def with_parsed_graphs(dataset: Dataset, graphs: ParsedGraphs, *, all_tasks: bool = False) -> Dataset:
    """Return the dataset with the graphs of parsers beside the given ones, under the parsers' names.

    Tasks with a how-to text get the graph of that text, carried over to the steps of the dataset where these are what
    is grounded. What is not available is said in the remarks.

    Parameters
    ----------
    dataset : Dataset
    graphs : ParsedGraphs
    all_tasks : bool
        Whether the steps of tasks without a how-to text are parsed too, as if they were one.
    """
    tasks: dict[str, Task] = {}
    for name, task in dataset.tasks.items():
        flows = dict(task.flows)
        for parser in graphs.parsers:
            flow = _flow(task, parser, graphs, all_tasks)
            if flow is not None and parser not in flows:
                flows[parser] = flow
        tasks[name] = replace(task, flows=flows)
    remarks = tuple(f"graph:{name} is left out: {why}" for name, why in graphs.unavailable.items())
    return replace(dataset, tasks=tasks, remarks=dataset.remarks + remarks)


def _flow(task: Task, parser: str, graphs: ParsedGraphs, all_tasks: bool) -> FlowGraph | None:
    howto = task.howto
    if howto is None:
        return graphs.flow(parser, task.procedure, task.title) if all_tasks else None
    flow = graphs.flow(parser, howto.instructions, task.title)
    if flow is None or task.procedure == howto.instructions:
        return flow
    return onto_steps(flow, howto.correspondence, task.steps)
