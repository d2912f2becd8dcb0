"""What speed is measured from: the same work in plain Python, and the least that compiled code can do."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import Floats
from graph2vid.errors import Graph2VidError
from graph2vid.tsort import TSortGraph

_SCAN_UPDATES = 1_000_000  # updates of one timed scan; about a millisecond


def python_loop(tsort: TSortGraph, match: Floats, drop: Floats) -> Callable[[], float]:
    """Return a function that finds the cost of the best alignment in a tight loop over lists of floats.

    The procedure and the costs are turned into lists here, before the clock starts. The loop is that of
    ``contiguous=True``, ideal by ideal with one pass over the clips for each state; it finds no labels.

    Parameters
    ----------
    tsort : TSortGraph
        The procedure.
    match : [K, N]
        Cost of showing a step in a clip.
    drop : [N]
        Cost of a clip as background.
    """
    starts = tsort.state_start.tolist()
    steps = tsort.state_step.tolist()
    origins = tsort.state_from.tolist()
    shows: list[list[float]] = match.tolist()
    drops: list[float] = drop.tolist()
    infinity = float("inf")

    def loop() -> float:
        nothing_done = [0.0]
        for clip_cost in drops:
            nothing_done.append(nothing_done[-1] + clip_cost)
        best = [nothing_done]  # of each ideal: its best cost after 0, 1, … clips
        for ideal in range(1, len(starts) - 1):
            own = [infinity] * (len(drops) + 1)
            for state in range(starts[ideal], starts[ideal + 1]):
                cost = infinity
                clip = 0  # counted by hand, which is quicker than enumerate
                for before, clip_cost in zip(best[origins[state]], shows[steps[state]]):  # noqa: B905
                    if before < cost:
                        cost = before
                    cost += clip_cost
                    clip += 1  # noqa: SIM113
                    if cost < own[clip]:
                        own[clip] = cost
            cost = infinity
            clip = 0
            for clip_cost in drops:
                cost += clip_cost
                clip += 1  # noqa: SIM113
                if own[clip] < cost:
                    cost = own[clip]
                else:
                    own[clip] = cost
            best.append(own)
        return best[-1][-1]

    return loop


@cache
def _compiled_scan() -> ctypes.CDLL:
    """Compile ``scan.cpp`` as the kernels are, and load it."""
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        raise Graph2VidError("the scalar scan that speed is compared with needs a C++ compiler")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "scan.so"
        source = Path(__file__).with_name("scan.cpp")
        command = [compiler, "-O2", "-ffp-contract=off", "-fPIC", "-shared", str(source), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Graph2VidError(f"{source.name} did not compile: {done.stderr.strip()}")
        return ctypes.CDLL(str(library))


class ScalarScan:
    """The scalar compiled scan: one minimum and one addition for each update, and nothing else.

    It keeps no table, so all it reads stays in the nearest cache. Call it to scan; `seconds_per_update` turns
    the time of a call into that of an update.
    """

    def __init__(self, clips: int, dtype: type[np.floating[Any]]) -> None:
        random = np.random.default_rng(0)
        self._best = random.random(clips, np.float32).astype(dtype)
        self._match = random.random(clips, np.float32).astype(dtype)
        self._states = max(1, _SCAN_UPDATES // clips)
        self._scan = getattr(_compiled_scan(), f"scan_{np.dtype(dtype).name}")
        self._scan.restype = ctypes.c_double

    def __call__(self) -> float:
        best, match = (ctypes.c_void_p(array.ctypes.data) for array in (self._best, self._match))
        found: float = self._scan(best, match, ctypes.c_int64(self._states), ctypes.c_int64(len(self._match)))
        return found

    def seconds_per_update(self, seconds: float) -> float:
        """Return the time of one update, where a call took ``seconds``."""
        return seconds / (self._states * len(self._match))
