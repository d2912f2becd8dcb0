"""Costs of grounding a batch of videos on the GPU, and their gradients."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from graph2vid.errors import TooLargeError
from graph2vid.learn.cuda.compiler import Module, compile_cuda
from graph2vid.learn.cuda.cuda_graphs import DeviceGraph, graph_on, layout_of
from graph2vid.learn.cuda.cuda_packs import Pack
from graph2vid.learn.cuda.plan import CHUNK, Fit, Int64s, Numbers, Part, Shape, plan
from graph2vid.tsort import TSortGraph

SMOOTHINGS = ("hard", "softmin", "smoothmin")
SMALL = 256 * 2**20  # bytes of tables for which the free memory is not asked


class BatchStruct(ctypes.Structure):
    """``Batch`` of common.cuh."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("graphs", "graph", "start", "video", "clips", "match", "drop")),
        *((name, ctypes.c_int32) for name in ("rows", "columns")),
        ("gamma", ctypes.c_double),
        *((name, ctypes.c_int32) for name in ("first", "last")),
        *((name, ctypes.c_uint64) for name in ("table", "table_at", "shift", "base", "cost")),
        *((name, ctypes.c_uint64) for name in ("carry", "carry_at", "resumed", "to_resume")),
        *((name, ctypes.c_uint64) for name in ("match_grad", "drop_grad", "spilled", "spilled_at")),
        *((name, ctypes.c_uint64) for name in ("skip", "skip_grad")),
    )


@dataclass(frozen=True)
class Kind:
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
    parts = ("common.cuh", "packs.cuh", name) if shape.width else ("common.cuh", name)
    return "".join(Path(__file__).with_name(part).read_text() for part in parts), name


@cache
def _module(device: int, kind: Kind, numbers: Numbers, kernel: Shape) -> Module:
    major, minor = torch.cuda.get_device_capability(device)
    options = kind.defines(numbers, kernel)
    code = compile_cuda(*source(kernel), [f"--gpu-architecture=sm_{major}{minor}", *options])
    with torch.cuda.device(device):
        if kind.gradient:
            _scaling(device, numbers.bytes)  # here, since the thread that runs backward may not have a context yet
        return Module(code)


@cache
def _most_shared(device: int) -> int:
    properties = torch.cuda.get_device_properties(device)
    return int(properties.shared_memory_per_block_optin)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Costs:
    """What the GPU found.

    Attributes
    ----------
    cost : Tensor [B]
        +inf where no alignment is possible.
    match, drop, skip : Tensor [B, K, N], [B, N], [B, K], or None
        Gradients; zero beyond a video's steps and clips, and where no alignment is possible.
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
    here = torch.cuda.current_device() == match.device.index
    with nullcontext() if here else torch.cuda.device(match.device):
        given = (match.contiguous(), drop.contiguous(), match.new_empty(0) if skip is None else skip.contiguous())
        try:
            return _costs(tsorts, *given, lengths, gamma, kind, memory_limit)
        except torch.OutOfMemoryError:
            # Others took memory since the batch was laid out, or what is free lies in pieces.
            _prepared.cache_clear()
            torch.cuda.empty_cache()
            return _costs(tsorts, *given, lengths, gamma, kind, _free(match.device) // 16)


def _costs(
    tsorts: Sequence[TSortGraph],
    match: Tensor,
    drop: Tensor,
    skip: Tensor,
    lengths: Sequence[int],
    gamma: float,
    kind: Kind,
    memory_limit: int | None,
) -> Costs:
    asked, numbers = (tuple(tsorts), tuple(lengths)), kind.numbers(match.dtype)
    place = (tuple(match.shape), match.device, memory_limit)
    parts = _prepared(*asked, kind.gradient, kind.skips, numbers, *place)
    found = Costs(match.new_empty(len(tsorts)))
    if kind.gradient:
        found = Costs(
            found.cost, torch.empty_like(match), torch.empty_like(drop), torch.empty_like(skip) if kind.skips else skip
        )
    scratch = match.new_empty(max(part.scratch for part in parts))  # one after the other, all parts use it
    for part in parts:
        part.run(match, drop, skip, found, scratch, gamma, kind)
    return found


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
    gradient: bool,
    skips: bool,
    numbers: Numbers,
    shape: tuple[int, ...],
    device: torch.device,
    memory_limit: int | None,
) -> tuple[_Prepared, ...]:
    """Lay a batch out; the same batch again costs nothing."""
    place: dict[TSortGraph, int] = {}
    which = np.array([place.setdefault(tsort, len(place)) for tsort in tsorts], np.int64)
    layouts = tuple(layout_of(tsort, skips) for tsort in place)
    clips = np.array(lengths, np.int64)
    sizes = np.array([numbers.column(layout, resident=True) for layout in layouts])[which]
    budget = memory_limit or _budget(int(((clips + 2) * sizes).sum()) * numbers.bytes, device)
    try:
        parts = plan(layouts, which, clips, numbers, _most_shared(device.index), budget, gradient)
    except MemoryError as error:
        raise TooLargeError(
            f"the table of one video needs {error} of GPU memory, even with checkpoints; {budget / 2**30:.1f} GiB are "
            "to be had: cut the video or the procedure"
        ) from None
    graphs = tuple(graph_on(tsort, skips, device) for tsort in place)
    return tuple(
        _Prepared(part, graphs, which[part.videos], clips[part.videos], gradient, numbers, shape) for part in parts
    )


def _stream(device: int) -> int:
    """Return the stream that torch launches on; its own way there makes an object of it first, and takes longer."""
    quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return torch.cuda.current_stream(device).cuda_stream if quick is None else quick(device)


class ScaledStruct(ctypes.Structure):
    """``Scaled`` of scaled.cu."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("cost", "above", "videos", "stride")),
        *((name, ctypes.c_uint64 * 3) for name in ("each", "of", "to")),
    )


@cache
def _scaling(device: int, bytes_: int) -> Module:
    major, minor = torch.cuda.get_device_capability(device)
    code = Path(__file__).with_name("scaled.cu").read_text()
    options = [f"--gpu-architecture=sm_{major}{minor}", f"-DDOUBLE={int(bytes_ == 8)}"]
    return Module(compile_cuda(code, "scaled.cu", options))


def scaled_on_gpu(cost: Tensor, above: Tensor, gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Return the gradients by match, drop and skip of each video times what arrives from above, in one launch.

    What is impossible passes zero, whatever arrives. None: not wanted.
    """
    found = [None if part is None else torch.empty_like(part) for part in gradients]
    sizes = [0 if part is None else part.numel() // len(cost) for part in gradients]
    of, to = ([0 if part is None else part.data_ptr() for part in parts] for parts in (gradients, found))
    struct = ScaledStruct(
        cost.data_ptr(), above.data_ptr(), len(cost), above.stride(0), tuple(sizes), tuple(of), tuple(to)
    )
    blocks = min(-(-max(sizes) * len(cost) // 256), 4096)
    device = cost.device.index
    with nullcontext() if torch.cuda.current_device() == device else torch.cuda.device(device):
        _scaling(device, cost.itemsize).launch("scaled", (max(blocks, 1), 1), 256, 0, _stream(device), [struct])
    return found


class _Prepared:
    """A part of a batch with its places in memory, ready to run."""

    def __init__(
        self,
        part: Part,
        graphs: tuple[DeviceGraph, ...],
        which: Int64s,
        clips: Int64s,
        gradient: bool,
        numbers: Numbers,
        shape: tuple[int, ...],
    ) -> None:
        self.part, self.numbers, self.resident = part, numbers, part.forward.width > 0
        self.longest = int(clips.max())
        self.pieces = -(-self.longest // part.kept) if gradient else 1
        which = which[part.starts[:-1]]  # of each block
        longest = np.maximum.reduceat(clips, part.starts[:-1])
        layouts = [graph.layout for graph in graphs]
        fit = Fit(part.forward, part.backward)
        if self.resident:
            packed = zip(which.tolist(), part.packed.tolist(), strict=True)
            sizes = np.array([numbers.pack_column(layouts[at], count) for at, count in packed])
        else:
            sizes = np.array([fit.column(layout, numbers) for layout in layouts])[which]
        # Without a gradient columns are needed only where states stay in memory, and then two of them.
        columns = (
            np.minimum(longest, part.kept) + 1 if gradient else np.full_like(longest, 0 if part.forward.width else 2)
        )
        kernels = (part.forward, part.backward) if gradient else (part.forward,)
        working = max(kernel.working for kernel in kernels)
        self.column = int(sizes[0])
        table, table_at = _places(columns * sizes)
        waiving = np.array([0 if self.resident else numbers.waiving(layout) for layout in layouts])[which]
        carried = gradient and (self.pieces > 1 or not self.resident)
        carry, carry_at = _places(sizes + waiving if carried else 0 * sizes)
        spilled, spilled_at = _places(np.full_like(sizes, working))
        shifts = len(clips) * -(-shape[2] // CHUNK) if gradient else 0
        # All in one piece of memory, what is kept in float64 last.
        places = np.cumsum([0, table, carry, spilled, shifts + (table + carry + spilled + shifts) % 2])
        self.scratch = int(places[-1]) + len(clips) * 8 // numbers.bytes
        self.offsets = [int(place) * numbers.bytes for place in places]
        self._kernels: dict[Kind, dict[str, tuple[Module, Shape]]] = {}
        states = max(layout.states / layout.steps for layout in layouts)
        self.group = 32 if states > 64 else 8 if states > 4 else 1
        device, blocks = graphs[0].device, len(which)
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
        column = self.numbers.pack_column(graph.layout, videos)
        key = (videos, forward.width, backward.width, self.numbers, column, forward.rows > 0)
        if key not in graph.packs:
            graph.packs[key] = Pack(graph.layout, *key).on(graph.device)
        return graph.packs[key]

    def run(
        self, match: Tensor, drop: Tensor, skip: Tensor, found: Costs, scratch: Tensor, gamma: float, kind: Kind
    ) -> None:
        """Compute costs and gradients."""
        batch = BatchStruct.from_buffer_copy(self.struct)
        batch.match, batch.drop, batch.skip = match.data_ptr(), drop.data_ptr(), skip.data_ptr()
        batch.gamma, batch.cost = gamma, found.cost.data_ptr()
        at = scratch.data_ptr()
        batch.table, batch.carry, batch.spilled, batch.shift, batch.base = [at + offset for offset in self.offsets]
        if found.match is not None and found.drop is not None and found.skip is not None:
            batch.match_grad, batch.drop_grad = found.match.data_ptr(), found.drop.data_ptr()
            batch.skip_grad = found.skip.data_ptr()
        launch = _Launch(self, batch, kind, _stream(match.device.index))
        if self.pieces != 1:
            self._run_in_pieces(launch, scratch, match.shape[2])
        else:
            launch.start("forward", 0, self.longest)
            if kind.gradient:
                launch.backward(0, match.shape[2])
        if kind.gradient and kind.skips and not self.resident:
            launch.collect_skips(match.shape[1])

    def kernels(self, kind: Kind) -> dict[str, tuple[Module, Shape]]:
        """Return the compiled kernels by name, and how each runs."""
        if kind not in self._kernels:
            shapes = {"forward": self.part.forward} | ({"backward": self.part.backward} if kind.gradient else {})
            self._kernels[kind] = {
                name: (_module(self.places.device.index, kind, self.numbers, shape.kernel), shape)
                for name, shape in shapes.items()
            }
        return self._kernels[kind]

    def _run_in_pieces(self, launch: _Launch, scratch: Tensor, end: int) -> None:
        """Compute one video from checkpoints: the column before each piece."""
        kept, column = self.part.kept, self.column
        saved = scratch.new_empty((self.pieces, column))
        place, step = saved.data_ptr(), column * self.numbers.bytes
        for piece in range(self.pieces):
            launch.batch.resumed = place + piece * step
            launch.batch.to_resume = place + (piece + 1) * step if piece < self.pieces - 1 else 0
            launch.start("forward", piece * kept, (piece + 1) * kept)
        launch.batch.to_resume = 0
        for piece in reversed(range(self.pieces)):
            if piece < self.pieces - 1:
                launch.batch.resumed = place + piece * step
                launch.start("forward", piece * kept, (piece + 1) * kept)
            launch.backward(piece * kept, (piece + 1) * kept if piece < self.pieces - 1 else end)


def _places(sizes: Int64s) -> tuple[int, Int64s]:
    """Return the sum of all sizes, and where each begins."""
    ends = np.cumsum(sizes)
    return int(ends[-1]), ends - sizes


class _Launch:
    """Starts the kernels of one part of a batch."""

    def __init__(self, prepared: _Prepared, batch: BatchStruct, kind: Kind, stream: int) -> None:
        self.prepared, self.batch, self.stream = prepared, batch, stream
        self.kernels = prepared.kernels(kind)

    def backward(self, first: int, last: int) -> None:
        self.start("backward", first, last)
        if self.prepared.resident:
            return
        group = self.prepared.group
        grid = (-(-(last - first) // (256 // group)), len(self.prepared.part.videos))
        module, _ = self.kernels["backward"]
        module.launch("collect", grid, 256, 0, self.stream, [self.batch, ctypes.c_int32(group)])

    def collect_skips(self, steps: int) -> None:
        module, _ = self.kernels["backward"]
        module.launch("collect_skips", (steps, len(self.prepared.part.videos)), 256, 0, self.stream, [self.batch])

    def start(self, name: str, first: int, last: int) -> None:
        self.batch.first, self.batch.last = first, last
        module, shape = self.kernels[name]
        grid = (len(self.prepared.part.packed), 1)
        module.launch(name, grid, shape.threads, shape.shared, self.stream, [self.batch])
