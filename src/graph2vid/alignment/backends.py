"""Who computes: the compiled kernels, or the NumPy reference where they are missing."""

from __future__ import annotations

import os
import warnings
from functools import cache
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from graph2vid._memory import FREE_BYTES, available_memory, in_units, require_memory
from graph2vid._stopping import native_watch
from graph2vid.errors import InputError, TooLargeError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

BACKENDS = ("native", "reference")

_THREAD_UPDATES = 4_000_000  # state-clip updates below which one thread is quicker than two

_procedures: WeakKeyDictionary[TSortGraph, Any] = WeakKeyDictionary()


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
    """Return the compiled procedure as the extension holds it, made once per tSort graph."""
    found = _procedures.get(tsort)
    if found is None:
        module = native()
        assert module is not None
        # The copy, and how its ideals and states lie in vectors.
        require_memory(
            64 * tsort.n_states + 2 * tsort.masks.nbytes,
            f"a procedure of {tsort.n_states:,} states",
            "add order between steps",
        )
        found = module.Procedure(
            tsort.masks,
            _descendants(tsort.flow),
            tsort.level_start,
            tsort.state_start,
            tsort.state_step,
            tsort.state_from,
        )
        _procedures[tsort] = found
    return found


def _descendants(flow: FlowGraph) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    """Steps that must come after each step, as bit sets, uint64 [K, W]."""
    words = (len(flow) + 63) // 64
    raw = b"".join(mask.to_bytes(8 * words, "little") for mask in flow.descendants)
    return np.frombuffer(raw, dtype="<u8").astype(np.uint64).reshape(len(flow), words)


def cpu_count() -> int:
    """Number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def choose_threads(threads: int | None, updates: int) -> int:
    """Return the number of threads: all processors where the work is worth it, or as told, but not more than those."""
    if threads is None:
        return cpu_count() if updates >= _THREAD_UPDATES else 1
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise InputError(f"threads must be a whole number of at least 1, not {threads!r}")
    return min(int(threads), cpu_count())


def memory_bound(memory_limit: int | None) -> int:
    """Return the bytes a call may use: as told, or half of what this process may still use."""
    if memory_limit is None:
        return available_memory() // 2
    if isinstance(memory_limit, bool) or not isinstance(memory_limit, int | np.integer) or memory_limit < 1:
        raise InputError(f"memory_limit must be a whole number of bytes, at least 1, not {memory_limit!r}")
    return int(memory_limit)


def choose_window(
    tsort: TSortGraph, itemsize: int, clips: int, cost_only: bool, threads: int, memory_limit: int | None
) -> int:
    """Return how many blocks of the table to keep (0: all), so that the memory stays within its bound.

    All of them where they fit; otherwise as few as needed, at the price of a second pass. For the cost alone, one for
    each thread, since each works on a block of its own.

    Raises
    ------
    TooLargeError
        Where not even the smallest window fits.
    """
    compiled, watch = procedure(tsort), native_watch()
    if cost_only:
        sizes = {window: compiled.memory(itemsize, clips, window, True, watch)[1] for window in (threads, 1)}
    else:
        blocks, full = compiled.memory(itemsize, clips, 0, False, watch)
        if memory_limit is None and full <= FREE_BYTES:
            return 0
        windows = sorted({max(1, round(blocks / 2**i)) for i in range(1, blocks.bit_length() + 1)}, reverse=True)
        sizes = {0: full} | {w: compiled.memory(itemsize, clips, w, False, watch)[1] for w in windows if w < blocks}
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
