"""Who computes, and with what: the compiled kernels, or the NumPy reference where they are missing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from graph2vid._memory import FREE_BYTES, available_memory, in_units, require_memory
from graph2vid._processes import cpu_count
from graph2vid._stopping import native_watch
from graph2vid.alignment import _reference
from graph2vid.alignment.alignment_result import Labels
from graph2vid.alignment.clip_costs import LONG, ClipCosts, check_gamma, widened
from graph2vid.errors import InputError, TooLargeError
from graph2vid.tsort import TSortGraph, words_of

BACKENDS = ("native", "reference")
SMOOTHINGS = ("softmin", "smoothmin")

_NOTHING = np.empty(0)
_WORKER_UPDATES = 4_000_000  # state-clip updates below which one worker is quicker than two


@cache
def native() -> ModuleType | None:
    """Return the extension module, or None (after one warning) where it was not built."""
    try:
        from graph2vid import _native
    except ImportError:
        warnings.warn(
            "graph2vid runs without its compiled kernels, on the slow NumPy reference; "
            "install it where a C++ compiler is found (graph2vid doctor says more)",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    module: ModuleType = _native
    return module


def choose_backend(backend: str | None) -> str:
    """Return the backend to use; None chooses the compiled kernels where they are there."""
    if backend is None:
        return "reference" if native() is None else "native"
    if backend not in BACKENDS:
        raise InputError(f"unknown backend {backend!r}; known: {', '.join(BACKENDS)}")
    if backend == "native" and native() is None:
        raise InputError("the compiled kernels are not installed: use backend='reference', or see graph2vid doctor")
    return backend


def procedure(tsort: TSortGraph) -> Any:
    """Return the compiled procedure as the extension holds it, made once per tSort graph and kept with it."""
    found = vars(tsort).get("_procedure")
    if found is None:
        module = native()
        assert module is not None
        # The copy, and how its ideals and states lie in vectors.
        needed = 64 * tsort.n_states + 2 * tsort.masks.nbytes
        require_memory(needed, f"a procedure of {tsort.n_states:,} states", "add order between steps")
        arrays = (tsort.level_start, tsort.state_start, tsort.state_step, tsort.state_from)
        costs = (_NOTHING if cost is None else cost for cost in (tsort.order, tsort.state_cost))
        found = module.Procedure(tsort.masks, words_of(tsort.flow.sure.descendants, tsort.n_steps), *arrays, *costs)
        vars(tsort)["_procedure"] = found
    return found


def choose_workers(workers: int | None, updates: int) -> int:
    """Return the number of workers: all processors where the work is worth it, or as told, but not more than those."""
    if workers is None:
        return cpu_count() if updates >= _WORKER_UPDATES else 1
    if isinstance(workers, bool) or not isinstance(workers, int | np.integer) or workers < 1:
        raise InputError(f"workers must be a whole number of at least 1, not {workers!r}")
    return min(int(workers), cpu_count())


def memory_bound(memory_limit: int | None) -> int:
    """Return the bytes a call may use: as told, or half of what this process may still use."""
    if memory_limit is None:
        return available_memory() // 2
    if isinstance(memory_limit, bool) or not isinstance(memory_limit, int | np.integer) or memory_limit < 1:
        raise InputError(f"memory_limit must be a whole number of bytes, at least 1, not {memory_limit!r}")
    return int(memory_limit)


class ResourceOptions(TypedDict, total=False):
    """What callers may say of :class:`Resources`."""

    backend: str | None
    workers: int | None
    memory_limit: int | None
    time_limit: float | None


class Resources(NamedTuple):
    """What one call may use; made by :meth:`check`.

    Attributes
    ----------
    backend : {"native", "reference"}
    workers : int or None
        None: all processors where the work is worth it.
    memory_limit : int or None
        Bytes; None: half of the memory available.
    time_limit : float or None
        Seconds; None: as long as it takes.
    """

    backend: str
    workers: int | None = None
    memory_limit: int | None = None
    time_limit: float | None = None

    @classmethod
    def check(
        cls,
        backend: str | None = None,
        workers: int | None = None,
        memory_limit: int | None = None,
        time_limit: float | None = None,
    ) -> Resources:
        """Check what was handed in and choose the backend."""
        if workers is not None:
            choose_workers(workers, 0)
        if memory_limit is not None:
            memory_bound(memory_limit)
        if time_limit is not None:
            is_number = isinstance(time_limit, int | float | np.number) and not isinstance(time_limit, bool)
            if not (is_number and time_limit > 0):
                raise InputError(f"time_limit must be a number of seconds above 0, not {time_limit!r}")
            time_limit = float(time_limit)
        return cls(choose_backend(backend), workers, memory_limit, time_limit)


def solve_plain(
    tsort: TSortGraph, costs: ClipCosts, contiguous: bool, cost_only: bool, resources: Resources
) -> tuple[float, Labels | None]:
    """Find the cheapest alignment on the tSort graph; cost ∞ and no labels where there is none."""
    clips = costs.match.shape[1]
    if resources.backend == "reference":
        spacing = _spacing(tsort, costs, cost_only, resources)
        return _reference.solve(tsort, costs, contiguous, cost_only, spacing)
    workers = choose_workers(resources.workers, tsort.n_states * clips)
    window = _window(tsort, costs, cost_only, workers, resources.memory_limit)
    answer: tuple[float, Labels | None] = procedure(tsort).solve(
        *costs, contiguous, cost_only, 0, window, workers, native_watch()
    )
    return answer


Exact = tuple[float, Labels | None, ClipCosts]
"""Cost and labels of the cheapest alignment, and the costs that it was found with: wider than given where need be."""


def solve_exactly(
    tsort: TSortGraph, costs: ClipCosts, contiguous: bool, cost_only: bool, resources: Resources, found: Any = None
) -> Exact:
    """Do the same, again in float64 where float32 does not tell the labels apart; ``found``: what it says.

    The costs are those of :meth:`Problem.exact_costs`: of more than ``LONG`` clips they are as wide as they need be.
    """
    cost, labels = found or solve_plain(tsort, costs, contiguous, cost_only, resources)
    if len(costs.drop) <= LONG < abs(cost) and (wide := widened(costs)) is not costs:
        return (*solve_plain(tsort, wide, contiguous, cost_only, resources), wide)
    return cost, labels, costs


def _spacing(tsort: TSortGraph, costs: ClipCosts, cost_only: bool, resources: Resources) -> int | None:
    """Return every how many clips the reference keeps a column (None: all), to stay within the memory's bound."""
    clips = costs.match.shape[1]
    column = (tsort.n_ideals + tsort.n_states) * costs.match.itemsize
    bound = memory_bound(resources.memory_limit)
    spacing = None
    needed = 2 * column if cost_only else (clips + 1) * column
    if not cost_only and needed > bound:
        spacing = max(1, int(np.sqrt(clips)))
        needed = (spacing + clips // spacing + 2) * column
    if needed > bound:
        raise too_large(tsort, clips, needed, bound, "" if cost_only else "use cost_only=True, ")
    return spacing


def _window(tsort: TSortGraph, costs: ClipCosts, cost_only: bool, workers: int, memory_limit: int | None) -> int:
    """Return how many blocks of the table the kernels keep (0: all), so that the memory stays within its bound.

    All of them where they fit; otherwise as few as needed, at the cost of a second pass. For the cost alone, one for
    each worker, since each works on a block of its own.
    """
    (n_steps, clips), itemsize = costs.match.shape, costs.match.itemsize
    # At most a vector for each ideal and clip, for each state, and for each step and clip: small ones are not measured.
    most = 32 * (tsort.n_ideals * (clips + 12) + tsort.n_states + 4 * n_steps * (clips + 12))
    if memory_limit is None and most * workers <= FREE_BYTES:
        return workers if cost_only else 0
    compiled, watch = procedure(tsort), native_watch()
    wanted = workers if cost_only else 0
    blocks, needed = compiled.memory(itemsize, clips, wanted, cost_only, watch)
    if memory_limit is None and needed <= FREE_BYTES:
        return wanted
    fewer = {1} if cost_only else {max(1, round(blocks / 2**i)) for i in range(1, blocks.bit_length() + 1)} - {blocks}
    sizes: dict[int, int] = {wanted: needed} | {
        window: compiled.memory(itemsize, clips, window, cost_only, watch)[1] for window in sorted(fewer, reverse=True)
    }
    if memory_limit is None and min(sizes.values()) <= FREE_BYTES:
        bound = max(memory_bound(None), FREE_BYTES)
    else:
        bound = memory_bound(memory_limit)
    for window, needed in sizes.items():
        if needed <= bound:
            return window
    raise too_large(tsort, clips, min(sizes.values()), bound, "" if cost_only else "use cost_only=True, ")


def too_large(tsort: TSortGraph, clips: int, needed: int, bound: int, advice: str) -> TooLargeError:
    """Return the error that refuses a problem for its memory, with sizes and what to do."""
    return TooLargeError(
        f"{tsort.n_steps} steps with {tsort.n_ideals:,} ideals and {tsort.n_states:,} states, and {clips:,} clips, "
        f"need at least {in_units(needed)}; the bound is {in_units(bound)}: {advice}"
        "raise memory_limit, use float32 or longer clips, or add order between steps"
    )


# -- soft costs -------------------------------------------------------------------------------------------------


class SoftCost(NamedTuple):
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


def soft_costs(
    videos: Sequence[tuple[TSortGraph, ClipCosts]],
    *,
    gamma: float,
    smoothing: str = "smoothmin",
    contiguous: bool = False,
    gradient: bool = True,
    starts: bool = False,
    workers: int | None = None,
    memory_limit: int | None = None,
) -> list[SoftCost]:
    """Return the soft cost of each video, by the compiled kernels; they may be of different procedures and lengths.

    Parameters
    ----------
    videos : sequence of (TSortGraph, ClipCosts)
        The procedure and the checked costs of each, all of one dtype.
    gamma : float
        Temperature of the soft minimum.
    smoothing : {"softmin", "smoothmin"}
    contiguous : bool
        Whether a step is one unbroken segment of clips.
    gradient : bool
        Whether gradients are wanted, too.
    starts : bool
        Whether those of beginning a step are; for contiguous softmin.
    workers, memory_limit
        As for :func:`graph2vid.align`. Tables that do not fit are computed twice, from checkpoints.
    """
    module = native()
    if module is None:
        raise InputError("soft costs need the compiled kernels (graph2vid doctor says more)")
    if smoothing not in SMOOTHINGS:
        raise InputError(f"unknown smoothing {smoothing!r}; known: {', '.join(SMOOTHINGS)}")
    gamma = check_gamma(gamma)
    updates = sum(tsort.n_states * costs.match.shape[1] for tsort, costs in videos)
    team = choose_workers(workers, 50 * updates)  # an update takes some fifty times as long as a hard one
    tsort, largest = max(videos, key=lambda video: video[0].n_states * video[1].match.shape[1])
    clips = largest.match.shape[1]
    # A table of all columns, at the worst one lane of eight in use; small ones are not worth asking for the memory.
    whole = 32 * (tsort.n_states + 3 * tsort.n_ideals) * (clips + 1)
    # What each worker holds beside it: the costs, and their gradients lane by lane.
    sizes = ((costs.match.shape[0] + 1) * costs.match.shape[1] for _, costs in videos)
    beside = 32 * (1 + (1 + starts) * gradient) * max(sizes)
    small = memory_limit is None and (whole + beside) * cpu_count() <= FREE_BYTES
    bound = FREE_BYTES if small else memory_bound(memory_limit)
    if beside * team >= bound:
        raise too_large(tsort, clips, beside * team + 1, bound, "use fewer workers, " if team > 1 else "")
    try:
        compiled, matches, drops, skips = zip(*((procedure(one), *costs) for one, costs in videos), strict=True)
        how = (gamma, smoothing == "smoothmin", contiguous, gradient, starts, False, team, bound - beside * team)
        found = module.soft_many(compiled, matches, drops, skips, *how, native_watch())
    except ValueError as error:
        columns = 2 * int(clips**0.5) + 2
        needed = columns * (tsort.n_states + 3 * (tsort.n_ideals + 1)) * largest.match.itemsize
        raise too_large(tsort, clips, max(needed, bound + 1), bound, "") from error
    results = []
    for (cost, flat), (_, costs) in zip(found, videos, strict=True):
        if flat is None:
            results.append(SoftCost(cost, None, None, None))
            continue
        steps, clips = costs.match.shape
        cells, most = steps * clips, (steps + 1) * clips  # of match, then of drop and of skip
        match = flat[:cells].reshape(steps, clips)
        start = flat[most + steps :].reshape(steps, clips) if starts else None
        results.append(SoftCost(cost, match, flat[cells:most], flat[most : most + steps], start))
    return results
