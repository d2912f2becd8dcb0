"""Which frames of a video are read, and what is read in them.

A cheap difference comes first: twice a second, the edges in the picture that stay for half a second are counted block
by block. Where a row of blocks differs from what it was when the picture was last read, text may have come or gone, and
the picture is read again. A video is read in parts, each kept by itself: work that was interrupted goes on where it
stopped.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from threading import Event, Lock
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid._processes import cpu_count
from graph2vid.errors import MissingDependencyError
from graph2vid.evidence.embed.interface import Image
from graph2vid.evidence.evidence_cache import Cache, content_hash
from graph2vid.evidence.media import frames
from graph2vid.evidence.ocr.text_reader import DETECTED, LEAST_SCORE, SIDE, Line, is_installed, read_lines
from graph2vid.evidence.shots import histogram_distance

RATE = 2.0
"""Frames per second that are looked at."""

_PART_SECONDS = 60.0
_MOST_WORKERS = 4  # each takes 200 MB
_EDGE = 40  # of 255: between neighbouring pixels of half the size
_BLOCK = 8  # pixels
_ROW = 3  # blocks in a row that change together: about a word
_CHANGE, _DENSE = 0.10, 0.14  # shares of a block's pixels that lie on edges
_SHOT = 0.5  # of the histogram of a picture that is another
_OFTEN = 1.0  # reads per second on average, at the most
_AT_ONCE = 6.0  # reads that may follow each other at once
_SELDOM = 6.0  # seconds after which a picture that moves is read all the same
_STILL = 1.5  # of 255: the mean difference of pictures that do not move
_FORM = 1

Edges: TypeAlias = NDArray[np.bool_]
Progress: TypeAlias = Callable[[float, float], None]


class Reading(NamedTuple):
    """What is read at a time (seconds)."""

    seconds: float
    lines: tuple[Line, ...]


def read_screen(
    path: str | os.PathLike[str], duration: float, *, cache: Cache | None = None, progress: Progress | None = None
) -> list[Reading]:
    """Read the text in the picture of a video, wherever it may have changed.

    Parameters
    ----------
    path : path
        A media file with a moving picture.
    duration : float
        Seconds.
    cache : Cache, optional
        Where what was read is kept, minute by minute.
    progress : callable, optional
        Is told the seconds done, and the seconds in all.

    Returns
    -------
    list of Reading
        In order of time: between two of them, the text is as it was read at the first.

    Raises
    ------
    MissingDependencyError
        The extra ``ocr`` is not installed.
    """
    if not is_installed():
        raise MissingDependencyError("reading the text on the screen needs the package rapidocr", extra="ocr")
    path = Path(path)
    key = {
        "content": "" if cache is None else content_hash(path),
        "rapidocr": version("rapidocr"),
        "rate": RATE,
        "side": [SIDE, DETECTED],
        "score": LEAST_SCORE,
        "form": [_FORM, _EDGE, _BLOCK, _ROW, _CHANGE, _DENSE, _SHOT, _OFTEN, _AT_ONCE, _SELDOM, _STILL],
    }
    done: dict[float, float] = {}
    stopped, telling = Event(), Lock()

    def read_part(start: float) -> list[Any]:
        stop = start + _PART_SECONDS

        def make() -> list[Any]:
            found = []
            for seconds, image, due in _watched(frames(path, rate=RATE, size=SIDE, start=start, stop=stop)):
                if stopped.is_set():
                    raise InterruptedError
                if due:
                    found.append([seconds, [list(line) for line in read_lines(image)]])
                tell(start, seconds)
            return found

        kept: list[Any] = make() if cache is None else cache.json("screen", key | {"part": [start, stop]}, make)
        tell(start, min(stop, duration))
        return kept

    def tell(start: float, until: float) -> None:
        if progress is not None:
            with telling:
                done[start] = until - start
                progress(min(sum(done.values()), duration), duration)

    parts = [part * _PART_SECONDS for part in range(max(math.ceil(duration / _PART_SECONDS), 1))]
    with ThreadPoolExecutor(min(cpu_count(), _MOST_WORKERS, len(parts))) as pool:
        try:
            found = [part for parts_read in pool.map(read_part, parts) for part in parts_read]
        except BaseException:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [Reading(seconds, tuple(Line(*line) for line in lines)) for seconds, lines in found]


def _watched(pictures: Iterator[tuple[float, Image]]) -> Iterator[tuple[float, Image, bool]]:
    """Yield frames, and whether each is to be read."""
    small: NDArray[np.int16] | None = None
    edges: Edges | None = None
    read_at = -math.inf
    read_small: NDArray[np.int16] | None = None
    read_steady: NDArray[np.float64] | None = None
    allowed = _AT_ONCE
    for seconds, image in pictures:
        before_small, before_edges = small, edges
        small = image[::2, ::2].astype(np.int16) @ np.array([1, 2, 1], dtype=np.int16) // 4
        edges = _edges(small)
        steady = _blocks(edges if before_edges is None else edges & _widened(before_edges))
        allowed = min(allowed + _OFTEN / RATE, _AT_ONCE)
        if read_small is None or read_steady is None or before_small is None or small.shape != before_small.shape:
            due = True
        else:
            changed = _changed(steady, read_steady) or histogram_distance(small, before_small) > _SHOT
            moves = seconds - read_at >= _SELDOM and float(np.abs(small - read_small).mean()) > _STILL
            due = allowed >= 1.0 and (changed or moves)
        if due:
            read_at, read_small, read_steady = seconds, small, steady
            allowed -= 1.0
        yield seconds, image, due


def _edges(small: NDArray[np.int16]) -> Edges:
    """Return where neighbouring pixels differ much."""
    edges = np.zeros(small.shape, dtype=np.bool_)
    edges[:, 1:] |= np.abs(np.diff(small, axis=1)) > _EDGE
    edges[1:] |= np.abs(np.diff(small, axis=0)) > _EDGE
    return edges


def _widened(edges: Edges) -> Edges:
    """Return edges and the pixels beside them: what trembles a little stays where it is."""
    wide = edges.copy()
    wide[1:] |= edges[:-1]
    wide[:-1] |= edges[1:]
    across = wide.copy()
    across[:, 1:] |= wide[:, :-1]
    across[:, :-1] |= wide[:, 1:]
    return across


def _blocks(edges: Edges) -> NDArray[np.float64]:
    """Return the share of edges in each block of a picture."""
    rows, columns = (size // _BLOCK for size in edges.shape)
    cut = edges[: rows * _BLOCK, : columns * _BLOCK].reshape(rows, _BLOCK, columns, _BLOCK)
    shares: NDArray[np.float64] = cut.mean(axis=(1, 3))
    return shares


def _changed(now: NDArray[np.float64], before: NDArray[np.float64]) -> bool:
    """Say whether some blocks in a row hold many edges more, or less, than they did."""
    if now.shape != before.shape or now.shape[1] < _ROW:
        return True
    other = (np.abs(now - before) > _CHANGE) & (np.maximum(now, before) > _DENSE)
    in_row = np.ones((other.shape[0], other.shape[1] - _ROW + 1), dtype=np.bool_)
    for at in range(_ROW):
        in_row &= other[:, at : at + in_row.shape[1]]
    return bool(in_row.any())
