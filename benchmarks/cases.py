"""The procedures and costs that are measured; fixed, so that runs can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

Floats = NDArray[np.floating[Any]]


def threads(*lengths: int, ends: bool = False) -> FlowGraph:
    """Return separate threads of this many steps each, on demand between a first and a last step."""
    edges: list[tuple[int, int]] = []
    first = sum(lengths)
    last = first + 1
    head = 0
    for length in lengths:
        tail = head + length - 1
        edges += [(step, step + 1) for step in range(head, tail)]
        if ends:
            edges += [(first, head), (tail, last)]
        head += length
    return FlowGraph.from_edges([f"step {i}" for i in range(last + 1 if ends else first)], edges)


def bag(steps: int) -> FlowGraph:
    """Return steps without any order."""
    return FlowGraph.bag([f"step {i}" for i in range(steps)])


def salads() -> FlowGraph:
    """Return an irregular procedure of 17 steps, 30 precedences: 12 ingredients and 5 salads made of them."""
    needs = {
        8: (7,),
        12: (2, 5, 6, 7, 11),
        13: (2, 3, 4, 9),
        14: (1, 2, 3, 6, 7, 9, 11),
        15: (0, 1, 3, 5, 6, 7),
        16: (2, 3, 4, 5, 6, 8, 9),
    }
    texts = [f"prepare ingredient {i + 1}" for i in range(12)] + [f"mix salad {i + 1}" for i in range(5)]
    return FlowGraph.from_edges(texts, [(before, step) for step, all_ in needs.items() for before in all_])


@dataclass(frozen=True)
class Case:
    """A procedure with videos of random costs.

    Attributes
    ----------
    name : str
        What it is called in the tables, and by ``--only``.
    flow : FlowGraph
        The procedure.
    clips : int
        Clips of each video.
    videos : int
        Number of videos.
    """

    name: str
    flow: FlowGraph
    clips: int
    videos: int = 1

    @cached_property
    def tsort(self) -> TSortGraph:
        """The compiled procedure."""
        return TSortGraph.compile(self.flow)

    @property
    def updates(self) -> int:
        """States × clips × videos."""
        return self.tsort.n_states * self.clips * self.videos

    def costs(self, dtype: type[np.floating[Any]], clips: int | None = None) -> list[tuple[Floats, Floats]]:
        """Return match [K, N] and drop [N] of each video: uniform in [0, 1), and 0.3."""
        random = np.random.default_rng(0)
        shape = (len(self.flow), clips or self.clips)
        return [
            (random.random(shape, np.float32).astype(dtype), np.full(shape[1], 0.3, dtype)) for _ in range(self.videos)
        ]

    def sizes(self) -> dict[str, Any]:
        """Return the fields that every report of a case begins with."""
        return {
            "name": self.name,
            "steps": len(self.flow),
            "states": self.tsort.n_states,
            "ideals": self.tsort.n_ideals,
            "clips": self.clips,
            "videos": self.videos,
        }


CASES = (
    Case("crosstask", threads(2, 2, 3, ends=True), 100),
    Case("threads4x4", threads(4, 4, 4, 4), 200),
    Case("salads", salads(), 332),
    *(Case(f"bag{steps}", bag(steps), 100) for steps in (10, 14, 16, 18)),
    Case("long", threads(2, 2, 3, ends=True), 20_000),
    Case("many", threads(4, 4, 4, 4), 200, videos=64),
)

_Item = TypeVar("_Item")


def choose(items: dict[str, _Item], only: Sequence[str] | None) -> list[_Item]:
    """Return the items asked for, in their own order; all by default.

    Raises
    ------
    InputError
        For a name that is not among them.
    """
    for name in only or ():
        if name not in items:
            raise InputError(f"unknown case {name!r}; known: {', '.join(items)}")
    return [item for name, item in items.items() if not only or name in only]
