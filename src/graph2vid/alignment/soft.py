"""Soft costs of many videos at once, with their gradients, by the compiled kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid._memory import FREE_BYTES
from graph2vid._stopping import native_watch
from graph2vid.alignment.backends import (
    choose_threads,
    cpu_count,
    memory_bound,
    native,
    procedure,
    too_large,
)
from graph2vid.errors import InputError
from graph2vid.tsort import TSortGraph

SMOOTHINGS = ("softmin", "smoothmin")


@dataclass(frozen=True, eq=False)
class SoftCost:
    """The soft cost of one video, and how it changes with each cost.

    Attributes
    ----------
    cost : float
        +inf where no alignment is possible; the gradients are zero then.
    match, drop, skip : arrays [K, N], [N], [K], or None
        Gradients. With softmin, ``match`` and ``drop`` are the probabilities of the labels of each clip, and ``skip``
        those of each step not being shown.
    start : array [K, N] or None
        With softmin, if asked for: the probability that each step begins at each clip.
    """

    cost: float
    match: NDArray[np.floating[Any]] | None
    drop: NDArray[np.floating[Any]] | None
    skip: NDArray[np.floating[Any]] | None
    start: NDArray[np.floating[Any]] | None = None


def check_gamma(gamma: Any) -> float:
    """Return gamma as a float; it must be finite and above 0."""
    if isinstance(gamma, bool) or not isinstance(gamma, int | float | np.number) or not 0 < gamma < np.inf:
        raise InputError(f"gamma must be a finite number above 0, not {gamma!r}")
    return float(gamma)


def soft_costs(
    tsorts: Sequence[TSortGraph],
    matches: Sequence[NDArray[np.floating[Any]]],
    drops: Sequence[NDArray[np.floating[Any]]],
    skips: Sequence[NDArray[np.floating[Any]] | None],
    *,
    gamma: float,
    smoothing: str,
    contiguous: bool,
    gradient: bool = True,
    starts: bool = False,
    threads: int | None = None,
    memory_limit: int | None = None,
) -> list[SoftCost]:
    """Return the soft cost of each video; they may be of different procedures and lengths.

    Parameters
    ----------
    tsorts : sequence of TSortGraph
        The procedure of each video; videos of one and the same are computed side by side.
    matches, drops, skips : sequences of arrays [K, N], [N], [K]
        Checked costs, C-contiguous and all of one dtype, float32 or float64. A skip may be None: every step appears.
    gamma : float
        How soft the minimum is.
    smoothing : {"softmin", "smoothmin"}
    contiguous : bool
        Whether a step is one unbroken run of clips.
    gradient : bool
        Whether gradients are wanted, too.
    starts : bool
        Whether those of beginning a step are; for contiguous softmin.
    threads, memory_limit
        As for :func:`graph2vid.align`. Tables that do not fit are computed twice, from checkpoints.

    Returns
    -------
    list of SoftCost
    """
    module = native()
    if module is None:
        raise InputError("soft costs need the compiled kernels (graph2vid doctor says more)")
    if smoothing not in SMOOTHINGS:
        raise InputError(f"unknown smoothing {smoothing!r}; known: {', '.join(SMOOTHINGS)}")
    gamma = check_gamma(gamma)
    updates = sum(tsort.n_states * match.shape[1] for tsort, match in zip(tsorts, matches, strict=True))
    team = choose_threads(threads, 50 * updates)  # an update takes some fifty times as long as a hard one
    largest = max(range(len(tsorts)), key=lambda at: tsorts[at].n_states * matches[at].shape[1])
    tsort, clips = tsorts[largest], matches[largest].shape[1]
    # A table of all columns, at the worst one lane of eight in use; small ones are not worth asking for the memory.
    whole = 32 * (tsort.n_states + 3 * tsort.n_ideals) * (clips + 1)
    # What each thread holds beside it: the costs, and their gradients lane by lane.
    beside = max(32 * (1 + (1 + starts) * gradient) * (match.shape[0] + 1) * match.shape[1] for match in matches)
    small = memory_limit is None and (whole + beside) * cpu_count() <= FREE_BYTES
    bound = FREE_BYTES if small else memory_bound(memory_limit)
    if beside * team >= bound:
        raise too_large(tsort, clips, beside * team + 1, bound, "use fewer threads, " if team > 1 else "")
    try:
        found = module.soft_many(
            [procedure(tsort) for tsort in tsorts],
            list(matches),
            list(drops),
            list(skips),
            gamma,
            smoothing == "smoothmin",
            contiguous,
            gradient,
            starts,
            team,
            bound - beside * team,
            native_watch(),
        )
    except ValueError as error:
        columns = 2 * int(clips**0.5) + 2
        needed = columns * (tsort.n_states + 3 * (tsort.n_ideals + 1)) * matches[largest].itemsize
        raise too_large(tsort, clips, max(needed, bound + 1), bound, "") from error
    results = []
    for (cost, flat), match in zip(found, matches, strict=True):
        if flat is None:
            results.append(SoftCost(cost, None, None, None))
            continue
        steps, clips = match.shape
        cells, most = steps * clips, (steps + 1) * clips  # of match, then of drop and of skip
        start = flat[most + steps :].reshape(steps, clips) if starts else None
        results.append(
            SoftCost(cost, flat[:cells].reshape(steps, clips), flat[cells:most], flat[most : most + steps], start)
        )
    return results
