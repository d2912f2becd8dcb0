"""Legal orders drawn at random, each with the same chance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.tsort.tsort_graph import TSortGraph


def random_sorts(tsort: TSortGraph, count: int, random: np.random.Generator) -> list[tuple[int, ...]]:
    """Draw topological sorts, all of which are equally likely.

    Goes backwards from the ideal that holds all steps: the chance that a step comes last is the share of the
    sorts that end with it.

    Parameters
    ----------
    tsort : TSortGraph
        The procedure, of K steps.
    count : int
        How many to draw, with replacement.
    random : numpy.random.Generator

    Returns
    -------
    list of tuples of int
        Each the K steps in the order in which they are done.
    """
    if count < 0:
        raise InputError(f"cannot draw {count} orders")
    sorts = _sorts_of_ideals(tsort)
    drawn = []
    for _ in range(count):
        ideal, reversed_order = tsort.n_ideals - 1, []
        while ideal:
            states = slice(int(tsort.state_start[ideal]), int(tsort.state_start[ideal + 1]))
            origins = tsort.state_from[states]
            chances = (sorts[origins] / sorts[ideal]).astype(np.float64)
            last = min(int(np.searchsorted(np.cumsum(chances), random.random(), side="right")), len(origins) - 1)
            reversed_order.append(int(tsort.state_step[states][last]))
            ideal = int(origins[last])
        drawn.append(tuple(reversed_order[::-1]))
    return drawn


def _sorts_of_ideals(tsort: TSortGraph) -> NDArray[Any]:
    """Return [I]: in how many legal orders the steps of each ideal can be done."""
    # Python's integers: the counts outgrow 64 bits, and even floats, long before the ideals are too many.
    sorts = np.ones(tsort.n_ideals, dtype=object)
    for level in range(1, tsort.n_steps + 1):
        first, stop = int(tsort.level_start[level]), int(tsort.level_start[level + 1])
        starts = tsort.state_start[first : stop + 1]
        origins = tsort.state_from[starts[0] : starts[-1]]
        sorts[first:stop] = np.add.reduceat(sorts[origins], starts[:-1] - starts[0])
    return sorts
