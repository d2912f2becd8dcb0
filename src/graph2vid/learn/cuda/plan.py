"""How a batch of videos is laid over kernels, blocks and memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from graph2vid.learn.cuda.cuda_graphs import Layout
from graph2vid.learn.cuda.cuda_nodes import LANES, REACH
from graph2vid.learn.cuda.cuda_numbers import CHUNK, MOST_ALIKE, WIDTHS, Numbers, up, width_of
from graph2vid.learn.cuda.cuda_waiving import MOST_STEPS, MOST_WARPS

MOST_THREADS = 1024
MOST_BLOCKS = 65535  # of one launch
MOST_IN_REGISTERS = {"forward": 24, "backward": 12, "shared": 12}  # states per thread
MOST_IN_SHARED = 65535  # places that are kept in 16 bits
MOST_SHARED_THREADS = {"forward": LANES * MOST_WARPS, "backward": 1024}
MOST_TOGETHER = 8  # videos of a block
FULL_LANES = 320  # lanes from which on a block takes one video alone
MANY_BLOCKS = 264  # blocks that keep a large GPU busy
REGISTERS = 65536  # of a multiprocessor
RESERVED = 1024  # bytes of shared memory that a block takes beside its own
BOUNDS = (64, 96, 128, 160, 192, 224, 288, 320, 512, 640, 704, 768, 1024)  # threads that kernels are compiled for

Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class Shape:
    """How one kernel runs over one procedure.

    Attributes
    ----------
    rows, width : int
        Ideals per thread and states per ideal in registers; no rows: states are in shared memory; no width: in memory.
    bound, blocks : int
        The most threads that the kernel is compiled for, and how many blocks a multiprocessor should hold.
    spills : bool
        Whether shared memory would not do.
    group : int
        Threads that add up the gradients of one label together; 0: none are to be added up.
    together, stages : int
        Clips whose gradients are added up at a time, and columns that are read ahead or wait to be written.
    threads : int
    shared : int
        Bytes of shared memory.
    working : int
        Numbers of memory that a block takes beside its table.
    alone : bool
        Whether there are few blocks, of one video each: then what one of them waits for counts, not what all do.
    """

    rows: int
    width: int
    bound: int
    blocks: int
    spills: bool
    group: int
    together: int
    stages: int
    threads: int
    shared: int
    working: int
    alone: bool = False

    @property
    def kernel(self) -> Shape:
        """What the kernel is compiled for: the shape without its sizes."""
        return replace(self, threads=0, shared=0, working=0)


@lru_cache(maxsize=4096)
def in_registers(
    kernel: str, layout: Layout, numbers: Numbers, most_shared: int, videos: int, gradient: bool, alone: bool = False
) -> Shape | None:
    """Return how ``kernel`` ("forward" or "backward") runs with ``videos`` in a block; None: it cannot."""
    lanes = videos * layout.ideals
    width = width_of(kernel, layout)
    if not width or rows_needed(numbers, lanes, kernel, width) == 0 or not _waives(layout, numbers):
        return None
    shared = numbers.pack_bytes(kernel, layout, videos, width, gradient)
    if shared > most_shared or (numbers.skips and numbers.farthest(kernel, layout, videos, width) >= REACH):
        return None
    rows = rows_needed(numbers, lanes, kernel, width)
    threads, working = up(-(-lanes // rows), 32), numbers.aside(layout, videos, in_registers=True)
    blocks = REGISTERS // (registers(kernel, rows * width, numbers) * _bound(threads))
    blocks = 1 if alone else max(1, min(blocks, (most_shared + RESERVED) // (shared + RESERVED)))
    if kernel == "forward":
        stages = numbers.stages(kernel, layout, videos)
        found = Shape(rows, width, _bound(threads), min(blocks, 16), False, 0, 1, stages, threads, shared, working)
        return replace(found, alone=alone)
    clips = numbers.together(layout, videos)
    # A quarter of the threads is enough to add gradients up, and the fewer do it the less there is to be done.
    items = videos * layout.steps * clips
    group = next(size for size in (8, 4, 2, 1) if size == 1 or 4 * items * size <= threads)
    stages = numbers.stages(kernel, layout, videos)
    found = Shape(rows, width, _bound(threads), min(blocks, 16), False, group, clips, stages, threads, shared, working)
    return replace(found, alone=alone)


def rows_needed(numbers: Numbers, lanes: int, kernel: str, width: int) -> int:
    """Return how many of so many lanes' ideals a thread must have; 0: there are too many."""
    needed = registers(kernel, width, numbers)
    most = next(most for most in (1024, 512) if most == 512 or needed * most <= REGISTERS)
    rows = 1 if numbers.skips else -(-lanes // most)
    fits = rows * width <= MOST_IN_REGISTERS[kernel] and needed * -(-lanes // rows) <= REGISTERS
    return rows if fits and (not numbers.skips or lanes <= MOST_THREADS) else 0


def _waives(layout: Layout, numbers: Numbers) -> bool:
    """Whether the kernels with videos in packs know how a procedure's steps are left out."""
    return not numbers.skips or (layout.steps <= MOST_STEPS and not (numbers.smoothmin and numbers.contiguous))


def registers(kernel: str, states: int, numbers: Numbers) -> int:
    """Return the registers that a thread with so many states should do with."""
    wanted = 32 + (8 if kernel == "backward" and not numbers.passes else 4) * states
    if numbers.skips and not numbers.shares:
        wanted += 8 + 2 * states * (kernel == "backward")
    return min(up(wanted * numbers.bytes // 4, 8), 128)


def in_shared(kernel: str, layout: Layout, numbers: Numbers, most_shared: int, gradient: bool) -> Shape | None:
    """Return how ``kernel`` ("forward" or "backward") runs with a video's states in shared memory; None: it cannot."""
    backward = kernel == "backward"
    width = next((width for width in WIDTHS if width >= max(layout.width, layout.out_width)), 0)
    # With skip costs, what a column holds of ideals and roots is written to memory as it comes.
    column = up(layout.states, 4) if numbers.skips else numbers.pack_column(layout, 1, in_registers=False)
    shown = up(layout.gradients + 1, 32) if backward else column if gradient else 0
    rows = width + 1 + -(-layout.ideals // 32) * (2 if numbers.skips else 1) + 1
    told = 2 * (layout.ideals + 1) + (2 * (layout.roots + 1) if backward else layout.roots)
    working = up(told, 4) + shown + layout.states + rows
    shared = 32 + up(((layout.steps + 1) | 1) * CHUNK * 4, 16) * (1 if backward else 2) + working * 4
    shared += numbers.waiving_bytes(kernel, layout, 1, in_registers=False)
    if not numbers.shares or shared > most_shared or not _waives(layout, numbers):
        return None
    most = max(layout.gradients, 4 * (layout.ideals + 1 + layout.roots))
    if not 0 < width <= MOST_IN_REGISTERS["shared"] or most > MOST_IN_SHARED:
        return None
    threads = min(up(layout.ideals, 32), MOST_SHARED_THREADS[kernel])
    group = next(size for size in (32, 16, 8, 4, 2, 1) if size == 1 or layout.steps * size <= threads)
    working = numbers.aside(layout, 1, in_registers=False)
    return Shape(
        0, width, MOST_SHARED_THREADS[kernel], 1, False, group if backward else 0, 1, 2, threads, shared, working
    )


def in_memory(kernel: str, layout: Layout, numbers: Numbers, most_shared: int) -> Shape:
    """Return how ``kernel`` ("forward" or "backward") runs with states in memory."""
    fixed = 8 + 32 * numbers.bytes + 4 * ((layout.width + 2) & ~1) + (layout.steps + 1) * CHUNK * numbers.bytes
    working = numbers.working(kernel, layout)
    needed = fixed + working * numbers.bytes
    spills = needed > most_shared
    threads = min(up(layout.ideals, 32), MOST_THREADS)
    return Shape(0, 0, MOST_THREADS, 1, spills, 0, 1, 1, threads, fixed if spills else needed, working if spills else 0)


def _bound(threads: int) -> int:
    return next(bound for bound in BOUNDS if bound >= threads)


def together(ideals: int, videos: int) -> int:
    """Return how many of so many videos a block takes: as fills its warps, where there are enough of them."""
    most = min(MOST_TOGETHER, max(1, FULL_LANES // ideals), max(1, videos // MANY_BLOCKS))
    return max(range(1, most + 1), key=lambda count: (round(count * ideals / up(count * ideals, 32), 1), -count))


@dataclass(frozen=True)
class Fit:
    """How one procedure runs: the shapes of the kernels, and the videos of a block."""

    forward: Shape
    backward: Shape
    videos: int = 1

    @classmethod
    def of(cls, layout: Layout, numbers: Numbers, most_shared: int, videos: int, gradient: bool) -> Fit:
        """Return how ``videos`` of a procedure run best."""
        count = together(layout.ideals, videos)
        given = (layout, numbers, most_shared)
        alone = count == 1 and videos <= MANY_BLOCKS and layout.ideals <= MOST_ALIKE
        forward, backward = (in_registers(kernel, *given, count, gradient, alone) for kernel in ("forward", "backward"))
        if forward is not None and (backward is not None or not gradient):
            return cls(forward, backward or forward, count)
        if count > 1:
            return cls.of(layout, numbers, most_shared, 1, gradient)
        forward, backward = (in_shared(kernel, *given, gradient) for kernel in ("forward", "backward"))
        if forward is not None and (backward is not None or not gradient):
            return cls(forward, backward or forward)
        return cls.in_memory(layout, numbers, most_shared)

    @classmethod
    def in_memory(cls, layout: Layout, numbers: Numbers, most_shared: int) -> Fit:
        """Return how any procedure runs."""
        given = (layout, numbers, most_shared)
        return cls(in_memory("forward", *given), in_memory("backward", *given))

    def column(self, layout: Layout, numbers: Numbers) -> int:
        """Return the numbers of one column of the table of a video."""
        if not self.resident:
            return layout.states + numbers.parts * layout.ideals
        return numbers.pack_column(layout, 1, in_registers=self.forward.rows > 0)

    def lag(self, layout: Layout, numbers: Numbers) -> int:
        """Return how many more columns than clips there are: lanes lag by as many clips as their ideals have steps."""
        return layout.steps + 1 if numbers.skips and self.forward.rows else 0

    def in_flight(self, layout: Layout, numbers: Numbers) -> int:
        """Return the numbers that a part of a video leaves to the next beside a column."""
        return numbers.in_flight(layout, self.backward.width) if self.lag(layout, numbers) else 0

    def aside(self, layout: Layout, numbers: Numbers) -> int:
        """Return the numbers that a video takes beside its columns."""
        waiving = 0 if self.resident else numbers.waiving(layout)
        return waiving + max(self.forward.working, self.backward.working)

    @property
    def resident(self) -> bool:
        """Whether states are in registers or in shared memory, and videos in packs."""
        return self.forward.width > 0

    @property
    def kernels(self) -> tuple[Shape, Shape]:
        """What the kernels are compiled for."""
        return self.forward.kernel, self.backward.kernel


@dataclass(frozen=True, eq=False)
class Part:
    """Videos that run through the kernels together.

    Attributes
    ----------
    videos : int64 [n]
        Those of the first block, of the second, …
    starts : int64 [blocks + 1]
        Where each block's begin.
    packed : int64 [blocks]
        The videos that each block has room for.
    forward, backward : Shape
        Threads and shared memory enough for all of them.
    kept : int
        Columns that are in the table at a time. Where that is not all of them, there is one video, and they are
        computed twice, from checkpoints.
    """

    videos: Int64s
    starts: Int64s
    packed: Int64s
    forward: Shape
    backward: Shape
    kept: int


def plan(
    layouts: tuple[Layout, ...],
    which: Int64s,
    clips: Int64s,
    numbers: Numbers,
    most_shared: int,
    budget: int,
    gradient: bool = True,
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
    gradient : bool
        Whether one is wanted.

    Raises
    ------
    MemoryError
        A video's table does not fit, not even with checkpoints; the message says how much it takes.
    """
    counts = np.bincount(which, minlength=len(layouts))
    fits = [
        Fit.of(layout, numbers, most_shared, int(count), gradient)
        for layout, count in zip(layouts, counts, strict=True)
    ]
    pairs = list(zip(fits, layouts, strict=True))
    clips = clips + np.array([fit.lag(layout, numbers) for fit, layout in pairs])[which]  # columns, from here on
    columns = np.array([fit.column(layout, numbers) * numbers.bytes for fit, layout in pairs])[which]
    aside = np.array([fit.aside(layout, numbers) * numbers.bytes for fit, layout in pairs])[which]
    needed = (clips + 2) * columns + aside  # the table, and a column of gradients
    found: list[Part] = []
    for kernels in dict.fromkeys(fit.kernels for fit in fits):
        members = [at for at, fit in enumerate(fits) if fit.kernels == kernels]
        forward, backward = (_largest([getattr(fits[at], side) for at in members]) for side in ("forward", "backward"))
        videos = np.flatnonzero(np.isin(which, members))
        for video in videos[needed[videos] > budget]:
            layout, fit = layouts[which[video]], Fit(forward, backward)
            size, flight, beside = (
                part(layout, numbers) * numbers.bytes for part in (fit.column, fit.in_flight, fit.aside)
            )
            kept = min(_kept(size + flight, int(clips[video]), budget - beside), int(clips[video]))
            found.append(Part(np.array([video]), np.array([0, 1]), np.array([1]), fit.forward, fit.backward, kept))
        blocks = []
        for at in members:
            own = videos[(which[videos] == at) & (needed[videos] <= budget)]
            own = own[np.argsort(-clips[own], kind="stable")] if fits[at].videos > 1 else own
            count = fits[at].videos if len(own) and needed[own[0]] * fits[at].videos <= budget else 1
            blocks += [(own[first : first + count], count) for first in range(0, len(own), count)]
        while blocks:
            sums = np.cumsum([needed[block].max() * count for block, count in blocks[:MOST_BLOCKS]])
            fitting = int(np.searchsorted(sums, budget, side="right"))
            now, blocks = blocks[:fitting], blocks[fitting:]
            own = np.concatenate([block for block, _ in now])
            starts = np.cumsum([0, *(len(block) for block, _ in now)])
            found.append(Part(own, starts, np.array([n for _, n in now]), forward, backward, int(clips[own].max())))
    return tuple(found)


def _largest(shapes: list[Shape]) -> Shape:
    """Return the shape that serves all of these, of one kernel."""
    most = {name: max(getattr(shape, name) for shape in shapes) for name in ("threads", "shared", "working")}
    return replace(shapes[0], **most)


def _kept(column: int, clips: int, budget: int) -> int:
    """Return how many of so many columns to keep between checkpoints: as many as fit."""
    for pieces in range(2, -(-clips // CHUNK) + 1):
        kept = -(-clips // (pieces * CHUNK)) * CHUNK
        if (kept + 2 + -(-clips // kept)) * column <= budget:
            return kept
    raise MemoryError(f"{(CHUNK + 2 + -(-clips // CHUNK)) * column / 2**30:.1f} GiB")
