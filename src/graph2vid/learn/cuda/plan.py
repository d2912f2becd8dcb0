"""How a batch of videos is laid over kernels, blocks and memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from graph2vid.learn.cuda.cuda_graphs import Layout

CHUNK = 32  # clips whose costs are staged at a time; as in kernels.cu
WIDE_PARTS = 5  # numbers of a state with many arcs; as in kernels.cu
MOST_THREADS = 1024
MOST_RESIDENT_THREADS = 512
MOST_VIDEOS = 65535  # of one launch
MOST_IN_REGISTERS = {"forward": 24, "backward": 12}  # states per thread
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24)  # states per ideal that kernels are compiled for

Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class Numbers:
    """What a kernel computes with: bytes of a number, and how many of them an ideal needs."""

    bytes: int
    parts: int

    def column(self, layout: Layout) -> int:
        """Return the numbers of one column of the table."""
        return layout.states + self.parts * layout.ideals + 1

    def waiving(self, layout: Layout) -> int:
        """Return the numbers of a video's gradients of what is waived."""
        return 0 if layout.waivers is None else layout.arcs + layout.ideals

    def working(self, kernel: str, layout: Layout) -> int:
        """Return the numbers that ideals and states tell one another."""
        ideals = 2 * self.parts * (layout.ideals + 1)
        states = 2 * self.parts * (layout.arcs + 1) if kernel == "backward" else 0
        if layout.waivers is None:
            return ideals + states
        return ideals + states + len(layout.waivers.sets) + WIDE_PARTS * len(layout.waivers.wide)


@dataclass(frozen=True)
class Shape:
    """How one kernel runs over one procedure.

    Attributes
    ----------
    rows, width : int
        Ideals per thread and states per ideal in registers; 0 and 0: they stay in memory.
    bound : int
        The most threads that the kernel is compiled for.
    spills : bool
        Whether shared memory would not do.
    threads : int
    shared : int
        Bytes of shared memory.
    working : int
        Numbers that ideals and states tell one another, in shared memory or spilled.
    """

    rows: int
    width: int
    bound: int
    spills: bool
    threads: int
    shared: int
    working: int

    @property
    def kernel(self) -> Shape:
        """What the kernel is compiled for: the shape without its sizes."""
        return replace(self, threads=0, shared=0, working=0)


@lru_cache(maxsize=4096)
def shape(kernel: str, layout: Layout, numbers: Numbers, most_shared: int) -> Shape:
    """Return how ``kernel`` ("forward" or "backward") runs over a procedure."""
    fixed = 8 + 32 * numbers.bytes + 4 * ((layout.width + 2) & ~1) + (layout.steps + 1) * CHUNK * numbers.bytes
    working = numbers.working(kernel, layout)
    widest = max(layout.width, layout.out_width) if kernel == "backward" else layout.width
    rows = -(-layout.ideals // MOST_RESIDENT_THREADS)
    width = next((width for width in WIDTHS if width >= widest), 0)
    needed = fixed + working * numbers.bytes
    resident = width and layout.waivers is None and layout.states < 65536
    if resident and rows * width <= MOST_IN_REGISTERS[kernel] and needed <= most_shared:
        threads = _rounded(-(-layout.ideals // rows))
        return Shape(rows, width, _bound(threads), False, threads, needed, working)
    threads = min(_rounded(layout.ideals), MOST_THREADS)
    spills = needed > most_shared
    return Shape(0, 0, MOST_THREADS, spills, threads, fixed if spills else needed, working)


def _rounded(threads: int) -> int:
    return -(-threads // 32) * 32


def _bound(threads: int) -> int:
    return next(bound for bound in (32, 64, 128, 256, 512) if bound >= threads)


@dataclass(frozen=True, eq=False)
class Part:
    """Videos that run through the kernels together.

    Attributes
    ----------
    videos : int64 [n]
    forward, backward : Shape
        Threads and shared memory enough for all of them.
    kept : int
        Clips whose columns are in the table at a time. Where that is not all of them, there is one video, and columns
        are computed twice, from checkpoints.
    """

    videos: Int64s
    forward: Shape
    backward: Shape
    kept: int


def plan(
    layouts: tuple[Layout, ...], which: Int64s, clips: Int64s, numbers: Numbers, most_shared: int, budget: int
) -> tuple[Part, ...]:
    """Return the parts of a batch whose tables fit into ``budget`` bytes each.

    Parameters
    ----------
    layouts : tuple of Layout
        The procedures of the batch.
    which, clips : int64 [B]
        The procedure and the clips of each video.
    numbers : Numbers
    most_shared, budget : int
        Bytes of shared memory that a block may have, and for tables.

    Raises
    ------
    MemoryError
        A video's table does not fit, not even with checkpoints; the message says how much it takes.
    """
    shapes = [
        (shape("forward", layout, numbers, most_shared), shape("backward", layout, numbers, most_shared))
        for layout in layouts
    ]
    columns = np.array([numbers.column(layout) * numbers.bytes for layout in layouts])[which]
    aside = np.array([_aside(layout, pair, numbers) for layout, pair in zip(layouts, shapes, strict=True)])[which]
    needed = (clips + 2) * columns + aside  # the table, and a column of gradients
    found: list[Part] = []
    for kernels in dict.fromkeys((forward.kernel, backward.kernel) for forward, backward in shapes):
        members = [at for at, pair in enumerate(shapes) if tuple(s.kernel for s in pair) == kernels]
        forward, backward = (_largest([shapes[at][side] for at in members]) for side in (0, 1))
        videos = np.flatnonzero(np.isin(which, members))
        for video in videos[needed[videos] > budget]:
            kept = _kept(int(columns[video]), int(clips[video]), budget - int(aside[video]))
            found.append(Part(np.array([video]), forward, backward, kept))
        videos = videos[needed[videos] <= budget]
        while len(videos):
            fitting = int(np.searchsorted(np.cumsum(needed[videos]), budget, side="right"))
            now, videos = np.split(videos, [min(fitting, MOST_VIDEOS)])
            found.append(Part(now, forward, backward, int(clips[now].max())))
    return tuple(found)


def _aside(layout: Layout, shapes: tuple[Shape, Shape], numbers: Numbers) -> int:
    """Return the bytes that a video takes beside its columns."""
    spilled = max((shape.working for shape in shapes if shape.spills), default=0)
    return (numbers.waiving(layout) + spilled) * numbers.bytes


def _largest(shapes: list[Shape]) -> Shape:
    """Return the shape that serves all of these, of one kernel."""
    most = {name: max(getattr(shape, name) for shape in shapes) for name in ("threads", "shared", "working")}
    return replace(shapes[0], **most)


def _kept(column: int, clips: int, budget: int) -> int:
    """Return how many clips to keep between checkpoints: as many as fit."""
    for pieces in range(2, -(-clips // CHUNK) + 1):
        kept = -(-clips // (pieces * CHUNK)) * CHUNK
        if (kept + 2 + -(-clips // kept)) * column <= budget:
            return kept
    raise MemoryError(f"{(CHUNK + 2 + -(-clips // CHUNK)) * column / 2**30:.1f} GiB")
