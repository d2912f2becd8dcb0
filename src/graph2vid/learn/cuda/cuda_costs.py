"""Costs of grounding a batch of videos on the GPU, and their gradients."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from graph2vid.errors import TooLargeError
from graph2vid.learn.cuda.compiler import Module, compile_cuda
from graph2vid.learn.cuda.cuda_graphs import DeviceGraph, graph_on, layout_of
from graph2vid.learn.cuda.cuda_numbers import CHUNK, Numbers
from graph2vid.learn.cuda.cuda_packs import Pack
from graph2vid.learn.cuda.plan import Fit, Int64s, Part, Shape, plan
from graph2vid.learn.padded import scaled
from graph2vid.tsort import TSortGraph

Given: TypeAlias = tuple[Tensor, Tensor, Tensor | None]
"""Of a padded batch match [B, K, N], drop [B, N] and, where steps may be left out, skip [B, K]."""

Result = TypeVar("Result")

SMOOTHINGS = ("hard", "softmin", "smoothmin")
SMALL = 256 * 2**20  # bytes of tables for which the free memory is not asked


class BatchStruct(ctypes.Structure):
    """``Batch`` of common.cuh."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("graphs", "graph", "start", "video", "clips")),
        *((name, ctypes.c_uint64) for name in ("table_at", "carry_at", "spilled_at", "resumed", "to_resume")),
        *((name, ctypes.c_int32) for name in ("rows", "columns", "first", "last")),
        *(
            (name, ctypes.c_uint64)
            for name in ("match", "drop", "skip", "cost", "match_grad", "drop_grad", "skip_grad")
        ),
        *((name, ctypes.c_uint64) for name in ("table", "carry", "spilled", "shift", "base", "own_cost")),
        ("gamma", ctypes.c_double),
        *((name, ctypes.c_uint64) for name in ("above", "above_stride")),
    )


OF_A_CALL = struct.Struct("=13Qd")  # what is another in every call: from ``match`` to ``gamma``


class Kind(NamedTuple):
    """What is computed.

    Attributes
    ----------
    smoothing : {"hard", "softmin", "smoothmin"}
    contiguous, gradient : bool
    starts : bool
        The gradient of match is that of a step's beginning at a clip, in place of its being shown there.
    skips : bool
        Whether steps may be left out, at a cost.
    """

    smoothing: str
    contiguous: bool
    gradient: bool
    starts: bool = False
    skips: bool = False

    def numbers(self, dtype: torch.dtype) -> Numbers:
        """Return what the kernels compute with."""
        return Numbers(dtype.itemsize, self.smoothing == "smoothmin", self.contiguous, self.skips)

    def defines(self, numbers: Numbers, shape: Shape) -> list[str]:
        """Return the options that the kernels are compiled with."""
        values = {
            "DOUBLE": numbers.bytes == 8,
            "SMOOTHING": SMOOTHINGS.index(self.smoothing),
            "CONTIGUOUS": self.contiguous,
            "ROWS": shape.rows,
            "WIDTH": shape.width,
            "THREADS": shape.bound,
            "BLOCKS": shape.blocks,
            "GROUP": shape.group,
            "TOGETHER": shape.together,
            "STAGES": shape.stages,
            "ALONE": shape.alone,
            "KEEP": self.gradient,
            "SPILL": shape.spills,
            "STARTS": self.starts,
            "SKIPS": self.skips,
        }
        defined = (f"-D{name}={int(value)}" for name, value in values.items())
        return ["--std=c++17", "--device-as-default-execution-space", *defined]


def source(shape: Shape) -> tuple[str, str]:
    """Return the code of the kernels that run so, and its name."""
    name = "in_registers.cu" if shape.rows else "in_shared.cu" if shape.width else "in_memory.cu"
    parts = ("machine.cuh", "common.cuh", *(("packs.cuh",) if shape.width else ()), name)
    return "".join(Path(__file__).with_name(part).read_text() for part in parts), name


@cache
def _module(device: int, kind: Kind, numbers: Numbers, kernel: Shape) -> Module:
    major, minor = torch.cuda.get_device_capability(device)
    options = kind.defines(numbers, kernel)
    code = compile_cuda(*source(kernel), [f"--gpu-architecture=sm_{major}{minor}", *options])
    with torch.cuda.device(device):
        return Module(code)


@cache
def _most_shared(device: int) -> int:
    properties = torch.cuda.get_device_properties(device)
    return int(properties.shared_memory_per_block_optin)  # type: ignore[attr-defined]


class Costs(NamedTuple):
    """What the GPU found.

    Attributes
    ----------
    cost : Tensor [B]
        +inf where no alignment is possible.
    match, drop, skip : Tensor [B, K, N], [B, N], [B, K], or None
        Gradients where they are wanted; zero beyond a video's steps and clips, and where no alignment is possible.
    """

    cost: Tensor
    match: Tensor | None = None
    drop: Tensor | None = None
    skip: Tensor | None = None


def costs_on_gpu(
    tsorts: Sequence[TSortGraph],
    match: Tensor,
    drop: Tensor,
    lengths: Sequence[int],
    skip: Tensor | None = None,
    *,
    gamma: float,
    kind: Kind,
    memory_limit: int | None = None,
) -> Costs:
    """Return the cost of each video of a padded batch; they may be of different procedures and lengths.

    Parameters
    ----------
    tsorts : sequence of B TSortGraph
    match, drop : Tensor [B, K, N], [B, N]
        On one GPU, float32 or float64 both; checked.
    lengths : sequence of B int
    skip : Tensor [B, K]
        Of the same kind; for ``kind.skips`` alone.
    gamma : float
        Not used by the hard minimum.
    kind : Kind
    memory_limit : int, optional
        Bytes for tables; a quarter of what is free by default. What does not fit at once is done part by part,
        and a video that does not fit alone is computed twice, from checkpoints.

    Returns
    -------
    Costs
    """
    return _on_gpu(_Prepared.costs, tsorts, lengths, (match, drop, skip), gamma, kind, memory_limit)


PassBack: TypeAlias = Callable[..., Sequence[Tensor | None]]
"""Called with what arrives from above [B], and whether it is the last call (``in_place``); returns the gradients."""


def begun_on_gpu(
    tsorts: Sequence[TSortGraph],
    match: Tensor,
    drop: Tensor,
    lengths: Sequence[int],
    skip: Tensor | None = None,
    *,
    gamma: float,
    kind: Kind,
) -> tuple[Tensor, PassBack]:
    """Return the costs, and what gives their gradients later; parameters as for `costs_on_gpu`.

    A large batch is done at once, so that its tables need not be kept.
    """
    return _on_gpu(_Prepared.begin, tsorts, lengths, (match, drop, skip), gamma, kind)


def _on_gpu(
    what: Callable[[_Prepared, Given, float], Result],
    tsorts: Sequence[TSortGraph],
    lengths: Sequence[int],
    given: Given,
    gamma: float,
    kind: Kind,
    memory_limit: int | None = None,
) -> Result:
    """Do that on the device of the costs."""
    match, drop, skip = given
    if torch.cuda.current_device() != match.device.index:
        with torch.cuda.device(match.device):
            return _on_gpu(what, tsorts, lengths, given, gamma, kind, memory_limit)
    given = (match.contiguous(), drop.contiguous(), None if skip is None else skip.contiguous())
    batch = (tuple(tsorts), tuple(lengths), kind, match.dtype, match.shape, match.device)
    try:
        return what(_prepared(*batch, memory_limit), given, gamma)
    except torch.OutOfMemoryError:
        # Others took memory since the batch was laid out, or what is free lies in pieces.
        _prepared.cache_clear()
        torch.cuda.empty_cache()
        return what(_prepared(*batch, _free(match.device) // 16), given, gamma)


def _free(device: torch.device) -> int:
    """Return the bytes that are free, or that torch keeps and does not use."""
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


def _budget(wanted: int, device: torch.device) -> int:
    return SMALL if wanted <= SMALL else max(_free(device) // 4, SMALL)


@lru_cache(maxsize=64)
def _prepared(
    tsorts: tuple[TSortGraph, ...],
    lengths: tuple[int, ...],
    kind: Kind,
    dtype: torch.dtype,
    shape: tuple[int, ...],
    device: torch.device,
    memory_limit: int | None,
) -> _Prepared:
    """Lay a batch out; the same batch again costs nothing."""
    numbers, skips = kind.numbers(dtype), kind.skips
    place: dict[TSortGraph, int] = {}
    which = np.array([place.setdefault(tsort, len(place)) for tsort in tsorts], np.int64)
    layouts = tuple(layout_of(tsort, skips) for tsort in place)
    clips = np.array(lengths, np.int64)
    sizes = np.array([numbers.most(layout) for layout in layouts])[which]
    lags = np.array([layout.steps for layout in layouts])[which]
    budget = memory_limit or _budget(int(((clips + lags + 2) * sizes).sum()) * numbers.bytes, device)
    try:
        parts = plan(layouts, which, clips, numbers, _most_shared(device.index), budget, kind.gradient)
    except MemoryError as error:
        raise TooLargeError(
            f"the table of one video needs {error} of GPU memory, even with checkpoints; {budget / 2**30:.1f} GiB are "
            "to be had: cut the video or the procedure"
        ) from None
    graphs = tuple(graph_on(tsort, skips, device) for tsort in place)
    return _Prepared(
        [_PreparedPart(part, graphs, which[part.videos], clips[part.videos], kind, numbers, shape) for part in parts]
    )


def _stream(device: int) -> int:
    """Return the stream that torch launches on; its own way there makes an object of it first, and takes longer."""
    quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return torch.cuda.current_stream(device).cuda_stream if quick is None else quick(device)


class _Prepared:
    """A batch, ready to run part by part."""

    def __init__(self, parts: Sequence[_PreparedPart]) -> None:
        self.parts, self.scratch = parts, max(part.scratch for part in parts)
        part = parts[0]
        # The gradients of one part can be asked for later: its table is kept until then.
        self.can_wait = len(parts) == 1 and part.can_wait and self.scratch * part.numbers.bytes <= SMALL

    def costs(self, given: Given, gamma: float) -> Costs:
        """Compute costs and gradients."""
        match = given[0]
        cost = match.new_empty(match.shape[0])
        found = Costs(cost, *_empty_like(given)) if self.parts[0].kind.gradient else Costs(cost)
        scratch = match.new_empty(self.scratch)  # one after the other, all parts use it
        for part in self.parts:
            part.run(part.batch(given, found, scratch, gamma), scratch)
        return found

    def begin(self, given: Given, gamma: float) -> tuple[Tensor, PassBack]:
        """Compute costs, and return with them what gives the gradients."""
        if not self.can_wait:
            cost, *gradients = self.costs(given, gamma)
            return cost, partial(scaled, cost.clone(), gradients)  # whoever has the cost may change it
        (part,), match = self.parts, given[0]
        cost, scratch, wanted = match.new_empty(match.shape[0]), match.new_empty(self.scratch), _empty_like(given)
        batch = part.batch(given, Costs(cost, *wanted), scratch, gamma)
        part.forward(batch, 0, part.longest)
        return cost, _Begun(part, batch, given, wanted, scratch)


class _Begun:
    """A batch whose costs are computed, and whose gradients may be asked for.

    For that torch changes threads, which makes everything slow there: as much as possible is done before.
    """

    def __init__(
        self, part: _PreparedPart, batch: BatchStruct, given: Given, gradients: Given, scratch: Tensor
    ) -> None:
        self._part, self._batch, self._given, self._gradients = part, batch, given, gradients
        self._scratch = scratch  # the table is there
        self._versions = self._read_versions()

    def _read_versions(self) -> tuple[int, ...]:
        match, drop, skip = self._given
        return match._version, drop._version, 0 if skip is None else skip._version

    def __call__(self, above: Tensor, *, in_place: bool = False) -> Sequence[Tensor | None]:
        """Return the gradients times what arrives from above. Unless it is the last call, they are new ones."""
        if self._read_versions() != self._versions:
            raise RuntimeError("the costs that the soft cost was computed from were changed in place since")
        batch, found = self._batch, self._gradients
        if not in_place:
            match, drop, skip = found = _empty_like(self._given)
            batch = BatchStruct.from_buffer_copy(batch)
            batch.match_grad, batch.drop_grad = match.data_ptr(), drop.data_ptr()
            batch.skip_grad = 0 if skip is None else skip.data_ptr()
        batch.above, batch.above_stride = above.data_ptr(), above.stride(0)
        self._part.backward(batch, 0, self._part.behind)
        return found


def _empty_like(given: Given) -> Given:
    match, drop, skip = given
    return torch.empty_like(match), torch.empty_like(drop), None if skip is None else torch.empty_like(skip)


class _PreparedPart:
    """A part of a batch with its places in memory, ready to run."""

    def __init__(
        self,
        part: Part,
        graphs: tuple[DeviceGraph, ...],
        which: Int64s,
        clips: Int64s,
        kind: Kind,
        numbers: Numbers,
        shape: tuple[int, ...],
    ) -> None:
        self.part, self.kind, self.numbers, self.resident = part, kind, numbers, part.forward.width > 0
        gradient = kind.gradient
        layouts = [graph.layout for graph in graphs]
        fit = Fit(part.forward, part.backward)
        columns = clips + np.array([fit.lag(layout, numbers) for layout in layouts])[which]
        self.longest = int(columns.max())
        self.behind = max(self.longest, shape[2])  # the clips that gradients are written of
        self.pieces = -(-self.longest // part.kept) if gradient else 1
        which = which[part.starts[:-1]]  # of each block
        longest = np.maximum.reduceat(columns, part.starts[:-1])
        in_registers = part.forward.rows > 0
        if self.resident:
            packed = zip(which.tolist(), part.packed.tolist(), strict=True)
            sizes = np.array(
                [numbers.pack_column(layouts[at], count, in_registers=in_registers) for at, count in packed]
            )
        else:
            sizes = np.array([fit.column(layout, numbers) for layout in layouts])[which]
        # Without a gradient columns are needed only where states stay in memory, and then two of them.
        columns = (
            np.minimum(longest, part.kept) + 1 if gradient else np.full_like(longest, 0 if part.forward.width else 2)
        )
        shapes = (part.forward, part.backward) if gradient else (part.forward,)
        working = max(one.working for one in shapes)
        # What a part of a video leaves to the next: a column, and what is told there.
        self.left = int(sizes[0]) + (fit.in_flight(layouts[which[0]], numbers) if self.pieces > 1 else 0)
        table, table_at = _places(columns * sizes)
        waiving = np.array([0 if self.resident else numbers.waiving(layout) for layout in layouts])[which]
        carried = gradient and (self.pieces > 1 or not self.resident)
        carry, carry_at = _places(sizes + waiving + self.left - int(sizes[0]) if carried else 0 * sizes)
        spilled, spilled_at = _places(np.full_like(sizes, working))
        shifts = len(clips) * (-(-shape[2] // CHUNK) + 2) if gradient else 0  # lanes are behind by two chunks at most
        # All in one piece of memory, what is kept in float64 where it may begin.
        shifts += (table + carry + spilled + shifts) % 2
        places = np.cumsum([0, table, carry, spilled, shifts, len(clips) * 8 // numbers.bytes])
        self.scratch = int(places[-1]) + shape[0]
        self.offsets = [int(place) * numbers.bytes for place in places]
        states = max(layout.states / layout.steps for layout in layouts)
        self.group = 32 if states > 64 else 8 if states > 4 else 1
        device, self.blocks = graphs[0].device, (blocks := len(which))
        self.device = device.index
        modules = [_module(device.index, kind, numbers, one.kernel) for one in shapes]
        self.kernels = {
            name: module.kernel(name, one.threads, one.shared)
            for name, module, one in zip(("forward", "backward"), modules, shapes, strict=False)
        }
        if gradient and not self.resident:
            for name in ("collect", "collect_skips") if kind.skips else ("collect",):
                self.kernels[name] = modules[-1].kernel(name, 256, across=len(clips))
        if self.resident:
            kinds = dict.fromkeys(zip(which.tolist(), part.packed.tolist(), strict=True))
            self.graphs = [self._pack(graphs[at], count) for at, count in kinds]
            known = {kind: at for at, kind in enumerate(kinds)}
            which = np.array([known[kind] for kind in zip(which.tolist(), part.packed.tolist(), strict=True)])
        else:
            self.graphs = [graph.numbers_and_struct for graph in graphs]
        structs = b"".join(struct for _, struct in self.graphs)
        # The kernels look up graph and videos by block, and of the videos their places in the batch, and clips.
        narrow = np.concatenate([which, part.starts, part.videos, clips]).astype(np.int32)
        wide = np.concatenate([table_at, carry_at, spilled_at, np.frombuffer(structs, np.int64)])
        narrow = np.concatenate([narrow, np.zeros(len(narrow) % 2, np.int32)]).view(np.int64)
        self.places = torch.from_numpy(np.concatenate([wide, narrow])).to(device)
        at = self.places.data_ptr()
        behind = at + 8 * len(wide)
        self.struct = BatchStruct(
            table_at=at,
            carry_at=at + 8 * blocks,
            spilled_at=at + 16 * blocks,
            graphs=at + 24 * blocks,
            graph=behind,
            start=behind + 4 * blocks,
            video=behind + 4 * (2 * blocks + 1),
            clips=behind + 4 * (2 * blocks + 1 + len(clips)),
            rows=shape[1],
            columns=shape[2],
        )

    def _pack(self, graph: DeviceGraph, videos: int) -> tuple[Tensor, bytes]:
        forward, backward = self.part.forward, self.part.backward
        column = self.numbers.pack_column(graph.layout, videos, in_registers=forward.rows > 0)
        key = (videos, forward.width, backward.width, self.numbers, column, forward.rows > 0)
        if key not in graph.packs:
            graph.packs[key] = Pack(graph.layout, *key).on(graph.device)
        return graph.packs[key]

    @property
    def can_wait(self) -> bool:
        """Whether the gradients can be computed later: then the table, which backward leaves as it is, is whole."""
        return self.resident and self.kind.gradient and self.pieces == 1

    def batch(self, given: Given, found: Costs, scratch: Tensor, gamma: float) -> BatchStruct:
        """Return what the kernels are given: costs, where to put what is found, and where to work."""
        batch, at = BatchStruct.from_buffer_copy(self.struct), scratch.data_ptr()
        places = [0 if part is None else part.data_ptr() for part in (*given, *found)]
        OF_A_CALL.pack_into(batch, BatchStruct.match.offset, *places, *[at + offset for offset in self.offsets], gamma)
        return batch

    def run(self, batch: BatchStruct, scratch: Tensor) -> None:
        """Compute costs and gradients."""
        if self.pieces > 1:
            self._run_in_pieces(batch, scratch)
        else:
            self.forward(batch, 0, self.longest)
            if self.kind.gradient:
                self.backward(batch, 0, self.behind)
        if self.kind.gradient and self.kind.skips and not self.resident:
            self.kernels["collect_skips"].launch(batch.rows, _stream(self.device), batch)

    def forward(self, batch: BatchStruct, first: int, last: int) -> None:
        """Compute clips from first to last, and the costs with the last clip."""
        batch.first, batch.last = first, last
        self.kernels["forward"].launch(self.blocks, _stream(self.device), batch)

    def backward(self, batch: BatchStruct, first: int, last: int) -> None:
        """Compute the gradients of these clips."""
        batch.first, batch.last = first, last
        stream = _stream(self.device)
        self.kernels["backward"].launch(self.blocks, stream, batch)
        if not self.resident:
            blocks = -(-(last - first) // (256 // self.group))
            self.kernels["collect"].launch(blocks, stream, batch, ctypes.c_int32(self.group))

    def _run_in_pieces(self, batch: BatchStruct, scratch: Tensor) -> None:
        """Compute one video from checkpoints: the column before each piece."""
        kept = self.part.kept
        saved = scratch.new_empty((self.pieces, self.left))
        place, step = saved.data_ptr(), self.left * self.numbers.bytes
        for piece in range(self.pieces):
            batch.resumed = place + piece * step
            batch.to_resume = place + (piece + 1) * step if piece < self.pieces - 1 else 0
            self.forward(batch, piece * kept, (piece + 1) * kept)
        batch.to_resume = 0
        for piece in reversed(range(self.pieces)):
            if piece < self.pieces - 1:
                batch.resumed = place + piece * step
                self.forward(batch, piece * kept, (piece + 1) * kept)
            last = (piece + 1) * kept if piece < self.pieces - 1 else self.behind
            self.backward(batch, piece * kept, last)


def _places(sizes: Int64s) -> tuple[int, Int64s]:
    """Return the sum of all sizes, and where each begins."""
    ends = np.cumsum(sizes)
    return int(ends[-1]), ends - sizes
