"""The lattice of ideals as flat arrays: compiled, or in NumPy where the extension is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from graph2vid._stopping import go_on, native_watch
from graph2vid.flow import FlowGraph

Masks = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]


class Lattice(NamedTuple):
    """Ideals and states in level order; :class:`graph2vid.tsort.TSortGraph` says what the arrays mean."""

    masks: Masks
    level_start: Offsets
    state_start: Offsets
    state_step: Indices
    state_from: Indices


Builder = Callable[[Masks, int], Lattice]


def predecessor_masks(flow: FlowGraph) -> Masks:
    """Return the direct predecessors of each step as bit sets, uint64 [K, W]."""
    masks = np.zeros((len(flow), (len(flow) + 63) // 64), dtype=np.uint64)
    for before, after in flow.edges:
        masks[after, before // 64] |= np.uint64(1 << before % 64)
    return masks


def builder() -> Builder:
    """Return the compiled builder, or the NumPy one where the extension is missing."""
    try:
        from graph2vid import _native
    except ImportError:
        return build_lattice_numpy
    return lambda before, limit: Lattice(*_native.build_lattice(before, limit, native_watch()))


def build_lattice_numpy(before: Masks, limit: int) -> Lattice:
    """Build the lattice level by level: every ideal plus every step that is ready, sorted, doubles joined.

    Parameters
    ----------
    before : uint64 [K, W]
        What must be done before each step.
    limit : int
        The largest number of ideals.

    Returns
    -------
    Lattice

    Raises
    ------
    ValueError
        When there are more than ``limit`` ideals, or the precedences have a cycle.
    """
    n_steps, words = before.shape
    level = np.zeros((1, words), dtype=np.uint64)
    first = 0
    levels, level_start, states_of_level = [level], [0, 1], [np.zeros(1, dtype=np.int64)]
    steps_of_level: list[Indices] = []
    from_of_level: list[Indices] = []
    for _ in range(n_steps):
        go_on()
        masks, steps, origins = _arrivals(level, before)
        if not len(masks):
            raise ValueError("the precedences have a cycle")
        # lexsort is stable and its last key leads: masks as integers, then (as they arrive) ascending steps.
        order = np.lexsort(tuple(masks.T))
        masks = masks[order]
        is_new = np.ones(len(masks), dtype=bool)
        is_new[1:] = np.any(masks[1:] != masks[:-1], axis=1)
        starts = np.flatnonzero(is_new)
        if level_start[-1] + len(starts) > limit:
            raise ValueError("more ideals than the limit")
        steps_of_level.append(steps[order])
        from_of_level.append((origins[order] + first).astype(np.int32))
        states_of_level.append(np.diff(starts, append=len(masks)))
        first = level_start[-1]
        level = masks[starts]
        levels.append(level)
        level_start.append(first + len(level))
    return Lattice(
        masks=np.concatenate(levels),
        level_start=np.array(level_start, dtype=np.int64),
        state_start=np.concatenate([[0], np.cumsum(np.concatenate(states_of_level))]).astype(np.int64),
        state_step=np.concatenate(steps_of_level),
        state_from=np.concatenate(from_of_level),
    )


def _arrivals(level: Masks, before: Masks) -> tuple[Masks, Indices, npt.NDArray[np.int64]]:
    """Return every way to do one more step: the ideal reached, the step, the row of ``level`` left."""
    masks, steps, origins = [], [], []
    for step, needed in enumerate(before):
        own = np.zeros(before.shape[1], dtype=np.uint64)
        own[step // 64] = np.uint64(1 << step % 64)
        # Ready: of the step and what it needs, exactly the latter is there.
        ready = np.flatnonzero(np.all((level & (needed | own)) == needed, axis=1))
        masks.append(level[ready] | own)
        steps.append(np.full(len(ready), step, dtype=np.int32))
        origins.append(ready)
    return np.concatenate(masks), np.concatenate(steps), np.concatenate(origins)
