"""The lattice of ideals as flat arrays: compiled, or in NumPy where the extension is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graph2vid._stopping import go_on, native_watch

Masks = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]


def words_of(masks: Iterable[int], n_bits: int) -> Masks:
    """Return sets of steps, bit masks of Python, as rows of words, uint64 [n, W]."""
    words = (n_bits + 63) // 64
    raw = b"".join(mask.to_bytes(8 * words, "little") for mask in masks)
    return np.frombuffer(raw, "<u8").astype(np.uint64).reshape(-1, words)


def flags_of(sets: Masks, n_bits: int) -> npt.NDArray[np.bool_]:
    """Return such rows as flags, bool [n, n_bits]."""
    return np.unpackbits(sets.astype("<u8").view(np.uint8), axis=1, count=n_bits, bitorder="little").astype(bool)


def sums_over(flags: npt.NDArray[np.bool_], costs: npt.NDArray[np.floating[Any]]) -> npt.NDArray[Any]:
    """Return what sets of things cost, [n], from flags [n, M] and the cost of each thing [M], which may be ∞."""
    sums = np.asarray(flags @ np.where(np.isfinite(costs), costs, 0.0))
    sums[(flags & np.isinf(costs)).any(axis=1)] = np.inf
    return sums


class Lattice(NamedTuple):
    """Ideals and states in level order; :class:`graph2vid.tsort.TSortGraph` says what the arrays mean."""

    masks: Masks
    level_start: Offsets
    state_start: Offsets
    state_step: Indices
    state_from: Indices


Builder = Callable[[Masks, int], Lattice]


def build_lattice(before: Masks, limit: int) -> Lattice:
    """Build the lattice by the compiled builder, or the NumPy one where the extension is missing."""
    try:
        from graph2vid import _native
    except ImportError:
        return build_lattice_numpy(before, limit)
    return Lattice(*_native.build_lattice(before, limit, native_watch()))


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
    level, first = np.zeros((1, words), dtype=np.uint64), 0
    levels, level_start, states_of_level = [level], [0, 1], [np.zeros(1, dtype=np.int64)]
    steps_of_level, from_of_level = [], []
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
    singles = words_of((1 << step for step in range(len(before))), len(before))
    for step, (needed, own) in enumerate(zip(before, singles, strict=True)):
        # Ready: of the step and what it needs, exactly the latter is there.
        ready = np.flatnonzero(np.all((level & (needed | own)) == needed, axis=1))
        masks.append(level[ready] | own)
        steps.append(np.full(len(ready), step, dtype=np.int32))
        origins.append(ready)
    return np.concatenate(masks), np.concatenate(steps), np.concatenate(origins)
