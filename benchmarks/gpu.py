"""``python -m benchmarks gpu``: costs on the GPU, beside what its shared memory can do, and checked against the CPU."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if not __package__:  # run as a file: python benchmarks/gpu.py [--only …]
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.cases import choose, salads, threads
from benchmarks.machine import machine
from benchmarks.report import Report, Table, duration, table
from benchmarks.timing import Effort
from graph2vid.alignment import ClipCosts, Durations
from graph2vid.errors import Graph2VidError, MissingDependencyError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

if TYPE_CHECKING:
    from torch import Tensor

    from graph2vid.learn.cuda import Costs, Kind

GAMMA = 0.1
CLIPS = (128, 256, 1024)
VIDEOS = (1, 64, 1024, 8192)
TORCH_ROUNDS = 8
CHAIN_STEPS, CHAIN_CLIPS, CHAIN_VIDEOS = 50, 500, 64
KINDS = {
    "hard cost": ("hard", True, False),
    "softmin": ("softmin", True, False),
    "softmin + gradient": ("softmin", True, True),
    "smoothmin + gradient": ("smoothmin", False, True),
}
FLOWS = {
    "77": threads(2, 2, 3, ends=True),
    "770": threads(3, 3, 3, 3, ends=True),
    "2002": threads(4, 4, 4, 4, ends=True),
    "20004": salads(),
}
SKIP_CLIPS, SKIP_STATES, EXTENDED_VIDEOS = 128, 21_000_000, (1, 64, 1024)
EXTENDED: dict[str, dict[str, Any]] = {
    "repeats": {"repeat": 2.0},
    "repeats, durations": {
        "repeat": 2.0,
        "durations": lambda flow: Durations.log_normal([6] * len(flow), [0.7] * len(flow)),
    },
}

# As many updates as a multiprocessor can do that does nothing else: two reads of shared memory, an addition and a
# minimum each, no two threads in one bank, and nobody waits for anybody.
CEILING = """
extern "C" __global__ void __launch_bounds__(256) ceiling(float *out, const int rounds) {
    __shared__ float values[2048];
    for (int n = threadIdx.x; n < 2048; n += 256) values[n] = n * 1e-3f;
    __syncthreads();
    float x[4] = {0, 1, 2, 3};
    for (int n = 0; n < rounds; ++n) {
        const float *at = values + ((n * 32 + threadIdx.x) & 1023);
#pragma unroll
        for (int w = 0; w < 4; ++w) x[w] = at[w * 32] + fminf(at[512 + w * 32], x[w]);
    }
    out[blockIdx.x * 256 + threadIdx.x] = x[0] + x[1] + x[2] + x[3];
}
"""


def bench_gpu(
    only: Sequence[str] | None = None,
    effort: Effort | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Measure the CUDA kernels; parameters, result and errors as for `bench_align`.

    Cases are numbers of states, ``mixed`` (one batch of several procedures and lengths), ``one`` (single videos, on the
    device and through torch), ``skips`` (with costs of leaving steps out, beside the same without them), ``extended``
    (repeats and durations), and ``chain`` (beside pysdtw).
    """
    if find_spec("torch") is None:
        raise MissingDependencyError("this measures CUDA kernels, and needs torch", extra="learn")
    torch = import_module("torch")
    if not torch.cuda.is_available():
        raise Graph2VidError("this measures CUDA kernels, and there is no GPU here that torch can use")
    effort = effort or Effort(seconds=0.2)
    before = machine() | {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    begin = time.perf_counter()
    ceiling = _ceiling()
    contests: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
        name: partial(_grid, name, ceiling, effort) for name in FLOWS
    }
    contests |= {
        "mixed": partial(_mixed, ceiling, effort),
        "one": partial(_one, effort),
        "skips": partial(_skips, effort),
        "extended": partial(_extended, effort),
        "chain": partial(_chain, effort),
    }
    found: list[dict[str, Any]] = [{"name": "ceiling", "updates_per_second": ceiling}]
    for name, contest in choose({name: (name, contest) for name, contest in contests.items()}, only):
        if progress is not None:
            progress(name)
        found += contest()
    return Report("gpu", tuple(only or ()), before, tuple(found), _tables(found, before), time.perf_counter() - begin)


@dataclass(frozen=True)
class _Batch:
    """Videos of random costs on the GPU, uniform in [0, 1), 0.3 for background, and 2 for leaving a step out."""

    tsorts: list[TSortGraph]
    lengths: list[int]
    match: Tensor
    drop: Tensor

    @classmethod
    def of(cls, tsorts: list[TSortGraph], lengths: list[int]) -> _Batch:
        import torch

        torch.manual_seed(0)
        steps, longest = max(tsort.n_steps for tsort in tsorts), max(lengths)
        match = torch.rand(len(tsorts), steps, longest, device="cuda")
        return cls(tsorts, lengths, match, torch.full((len(tsorts), longest), 0.3, device="cuda"))

    @cached_property
    def skip(self) -> Tensor:
        return self.match.new_full(self.match.shape[:2], 2.0)

    @property
    def updates(self) -> int:
        return sum(tsort.n_states * length for tsort, length in zip(self.tsorts, self.lengths, strict=True))

    def run(self, kind: Kind) -> Costs:
        from graph2vid.learn.cuda import costs_on_gpu

        skip = self.skip if kind.skips else None
        return costs_on_gpu(self.tsorts, self.match, self.drop, self.lengths, skip, gamma=GAMMA, kind=kind)

    def refuse_if_videos_differ(self, kind: Kind) -> None:
        """Compare what was timed with some of its videos done alone: parts and checkpoints change nothing."""
        from graph2vid.learn.cuda import costs_on_gpu

        together = self.run(kind)
        for at in sorted({0, len(self.tsorts) // 2, len(self.tsorts) - 1}):
            given = (self.match[at : at + 1], self.drop[at : at + 1], self.lengths[at : at + 1])
            skip = (self.skip[at : at + 1],) if kind.skips else ()
            alone = costs_on_gpu([self.tsorts[at]], *given, *skip, gamma=GAMMA, kind=kind)
            for name in ("cost", "match", "drop", "skip"):
                one, all_ = getattr(alone, name), getattr(together, name)
                if one is not None and one.numel() and not one.allclose(all_[at : at + 1], rtol=1e-5, atol=1e-4):
                    raise Graph2VidError(f"video {at} of {len(self.tsorts)}: its {name} is another than done alone")

    def deviation(self, kind: Kind, video: int, clips: int) -> tuple[float, float]:
        """Return how far cost and gradients are from those of the torch loop, float64 on the CPU.

        Both are relative, to the cost and to the largest gradient, or to 1: gradients of smoothmin may be larger.
        """
        import torch

        from benchmarks.torch_reference import reference_cost
        from graph2vid.learn.cuda import costs_on_gpu

        tsort, clips = self.tsorts[video], min(clips, self.lengths[video])
        given = [self.match[video, : tsort.n_steps, :clips], self.drop[video, :clips]]
        given += [self.skip[video, : tsort.n_steps]] * kind.skips
        match, drop, *skip = (part[None] for part in given)
        found = costs_on_gpu([tsort], match, drop, [clips], *skip, gamma=GAMMA, kind=kind)
        inputs = [part.double().cpu().requires_grad_() for part in given]
        hard = kind.smoothing == "hard"
        cost = reference_cost(
            tsort,
            *inputs,
            gamma=1e-9 if hard else GAMMA,
            smoothing="softmin" if hard else kind.smoothing,
            contiguous=kind.contiguous,
        )
        far = abs(float(found.cost[0]) - cost.item()) / max(abs(cost.item()), 1.0)
        if not kind.gradient:
            return far, 0.0
        gradients = [part[0] for part in (found.match, found.drop, found.skip)[: len(given)] if part is not None]
        wanted = torch.autograd.grad(cost, inputs)
        largest = max(1.0, *(float(part.abs().max()) for part in wanted))
        away = max(float((a.double().cpu() - b).abs().max()) for a, b in zip(gradients, wanted, strict=True))
        return far, away / largest


def _kind(name: str) -> Kind:
    from graph2vid.learn.cuda import Kind

    return Kind(*KINDS[name])


def _grid(name: str, ceiling: float, effort: Effort) -> Iterator[dict[str, Any]]:
    tsort = TSortGraph.compile(FLOWS[name])
    for clips, videos in product(CLIPS, VIDEOS):
        batch = _Batch.of([tsort] * videos, [clips] * videos)
        for what in KINDS:
            kind = _kind(what)
            row = {"name": name, "what": what, "states": tsort.n_states, "clips": clips, "videos": videos}
            row |= _measured(partial(batch.run, kind), batch.updates, ceiling, effort)
            batch.refuse_if_videos_differ(kind)
            if clips == CLIPS[0] and videos == VIDEOS[1]:
                # The loop on the CPU keeps every column for its gradient: of a large procedure, a few clips must do.
                far = batch.deviation(kind, 3, 128 if tsort.n_states < 10_000 else 32)
                row["cost_deviation"], row["gradient_deviation"] = far
                _refuse_if_wrong(row)
            yield row


def _mixed(ceiling: float, effort: Effort) -> Iterator[dict[str, Any]]:
    random = np.random.default_rng(0)
    tsorts = [TSortGraph.compile(FLOWS[name]) for name in ("77", "770", "2002")]
    chosen = [tsorts[at] for at in random.choice(3, 1024, p=[0.6, 0.3, 0.1])]
    batch = _Batch.of(chosen, random.integers(64, 257, 1024).tolist())
    for what in KINDS:
        kind = _kind(what)
        row = {"name": "mixed", "what": what, "states": "77/770/2002", "clips": "64-256", "videos": 1024}
        row |= _measured(partial(batch.run, kind), batch.updates, ceiling, effort)
        batch.refuse_if_videos_differ(kind)
        found = [batch.deviation(kind, video, 256) for video in (1, 2, 5)]
        row["cost_deviation"], row["gradient_deviation"] = (max(pair) for pair in zip(*found, strict=True))
        _refuse_if_wrong(row)
        yield row


def _one(effort: Effort) -> Iterator[dict[str, Any]]:
    """Cost and gradient of one video: kernels, call, and `soft_cost` with its backward pass, captured or not."""
    import torch

    for flow, what in product(list(FLOWS.values())[:3], [what for what in KINDS if _kind(what).gradient]):
        tsort, kind = TSortGraph.compile(flow), _kind(what)
        batch = _Batch.of([tsort], [CLIPS[0]])
        row = {"name": "one", "what": what, "states": tsort.n_states, "clips": CLIPS[0], "videos": 1}
        graph = torch.cuda.CUDAGraph()
        batch.run(kind)
        with torch.cuda.graph(graph):
            batch.run(kind)
        row["device_seconds"] = _seconds(graph.replay, effort)
        row["seconds"] = _seconds(partial(batch.run, kind), effort)
        row |= _through_torch_and_alone(tsort, batch, kind, effort)
        row["captured_seconds"] = _seconds(_captured(tsort, batch, kind), effort)
        yield row


def _through_torch_and_alone(tsort: TSortGraph, batch: _Batch, kind: Kind, effort: Effort) -> dict[str, float]:
    """Time the call, and torch with a function that does nothing, in turns: the processors are shared with others."""
    import torch

    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, match: Tensor, drop: Tensor) -> Tensor:
            return match.new_empty(1)

        @staticmethod
        def backward(ctx: Any, above: Tensor) -> tuple[Tensor, Tensor]:
            return zeros

    zeros = (torch.zeros_like(batch.match), torch.zeros_like(batch.drop))
    given = [batch.match.requires_grad_(), batch.drop.requires_grad_()]
    best: dict[str, float] = {}
    for _, many in product(range(TORCH_ROUNDS), (True, False)):
        with torch.autograd.set_multithreading_enabled(many):
            calls: dict[str, Callable[[], object]] = {
                "torch": _through_torch(tsort, batch, kind),
                "alone": lambda: torch.autograd.grad(Nothing.apply(*given), given),  # type: ignore[no-untyped-call]
            }
            for name, call in calls.items():
                name = f"{name}_seconds" if many else f"one_thread_{name}_seconds"
                best[name] = min(best.get(name, float("inf")), _seconds(call, effort))
    return best


def _through_torch(tsort: TSortGraph, batch: _Batch, kind: Kind) -> Callable[[], list[Tensor]]:
    """Return a call that gives the cost and its gradients by match and drop."""
    import torch

    from graph2vid.learn import soft_cost

    given = [batch.match.requires_grad_(), batch.drop.requires_grad_()]

    def call() -> list[Tensor]:
        cost = soft_cost([tsort], *given, gamma=GAMMA, smoothing=kind.smoothing, contiguous=kind.contiguous)
        return [cost, *torch.autograd.grad(cost, given)]

    return call


def _captured(tsort: TSortGraph, batch: _Batch, kind: Kind) -> Callable[[], None]:
    """Return `_through_torch` as a CUDA graph, to be replayed; with other costs it finds what a call finds."""
    import torch

    call, graph = _through_torch(tsort, batch, kind), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = call()
    with torch.no_grad():
        batch.match.copy_(torch.rand_like(batch.match))
    graph.replay()
    wanted = call()
    if not all(one.equal(other) for one, other in zip(found, wanted, strict=True)):
        raise Graph2VidError(f"{kind.smoothing} of {tsort.n_states} states: a captured call finds something else")
    return graph.replay


def _skips(effort: Effort) -> Iterator[dict[str, Any]]:
    for flow in FLOWS.values():
        tsort = TSortGraph.compile(flow)
        for what, videos in product([what for what in KINDS if _kind(what).gradient], VIDEOS):
            if tsort.n_states * videos > SKIP_STATES:
                continue
            batch = _Batch.of([tsort] * videos, [SKIP_CLIPS] * videos)
            plain = _kind(what)
            kind = plain._replace(skips=True)
            row = {"name": "skips", "what": what, "states": tsort.n_states, "clips": SKIP_CLIPS, "videos": videos}
            row["seconds"], row["plain_seconds"] = (_seconds(partial(batch.run, k), effort) for k in (kind, plain))
            batch.refuse_if_videos_differ(kind)
            if videos == 1 and tsort.n_states < 1000:  # the reference compares every state with every ideal
                row["cost_deviation"], row["gradient_deviation"] = batch.deviation(kind, 0, SKIP_CLIPS)
                _refuse_if_wrong(row)
            yield row


def _extended(effort: Effort) -> Iterator[dict[str, Any]]:
    """Repeats and durations, cost and gradient through torch."""
    import torch

    from graph2vid.learn import soft_cost
    from graph2vid.learn.operator import SoftOptions

    for name, (what, options), videos in product(("77", "770", "20004"), EXTENDED.items(), EXTENDED_VIDEOS):
        tsort = TSortGraph.compile(FLOWS[name])
        if tsort.n_states * videos > 2_000_000:
            continue
        batch = _Batch.of([tsort] * videos, [SKIP_CLIPS] * videos)
        how = SoftOptions(GAMMA, "softmin", True, **options)
        given = [batch.match.requires_grad_(), batch.drop.requires_grad_()]
        of_one = ClipCosts(np.zeros((tsort.n_steps, SKIP_CLIPS)), np.zeros(SKIP_CLIPS), None)
        asked = how.problem(tsort, of_one).on_automaton(of_one)

        def call(tsorts: list[TSortGraph] = batch.tsorts, given: list[Tensor] = given, options: Any = options) -> None:
            cost = soft_cost(tsorts, *given, gamma=GAMMA, smoothing="softmin", contiguous=True, **options)
            torch.autograd.grad(cost.sum(), given)

        row = {"name": "extended", "what": what, "states": asked.automaton.n_states, "clips": SKIP_CLIPS}
        row |= {"arcs": len(asked.arc), "longest": asked.length.shape[1], "videos": videos}
        yield row | {"seconds": _seconds(call, effort)}


def _chain(effort: Effort) -> Iterator[dict[str, Any]]:
    """Soft-DTW of pysdtw on the GPU, beside ours on a chain, cost and gradient."""
    row: dict[str, Any] = {"name": "chain", "what": "pysdtw", "states": CHAIN_STEPS, "clips": CHAIN_CLIPS}
    row["videos"] = CHAIN_VIDEOS
    flow = FlowGraph.chain([f"step {i}" for i in range(CHAIN_STEPS)])
    batch = _Batch.of([TSortGraph.compile(flow)] * CHAIN_VIDEOS, [CHAIN_CLIPS] * CHAIN_VIDEOS)
    kind = _kind("softmin + gradient")
    row["seconds"] = _seconds(lambda: batch.run(kind), effort)
    try:
        package, torch = import_module("pysdtw"), import_module("torch")
        distances = batch.match.clone().requires_grad_()
        soft_dtw = package.SoftDTW(gamma=GAMMA, dist_func=lambda *_: distances, use_cuda=True)
        rows, columns = (torch.zeros(CHAIN_VIDEOS, n, 1, device="cuda") for n in (CHAIN_STEPS, CHAIN_CLIPS))
        row["peer_seconds"] = _seconds(lambda: torch.autograd.grad(soft_dtw(rows, columns).sum(), distances), effort)
    except Exception as error:  # numba's CUDA side fails in many ways
        row["peer_seconds"], row["why"] = None, f"{type(error).__name__}: {error}"
    yield row


def _refuse_if_wrong(row: dict[str, Any]) -> None:
    if not (row["cost_deviation"] < 1e-5 and row["gradient_deviation"] < 1e-3):
        raise Graph2VidError(
            f"{row['what']} of {row['name']}: the GPU is {row['cost_deviation']:.1e} (cost) and "
            f"{row['gradient_deviation']:.1e} (gradient) away from the CPU"
        )


def _measured(call: Callable[[], object], updates: int, ceiling: float, effort: Effort) -> dict[str, Any]:
    seconds = _seconds(call, effort)
    return {"seconds": seconds, "updates_per_second": updates / seconds, "share": updates / seconds / ceiling}


def _seconds(call: Callable[[], object], effort: Effort) -> float:
    """Return the time of one call among calls that follow one another, by the device's clock; the best of three."""
    import torch

    call()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    call()
    torch.cuda.synchronize()
    repeats = max(1, min(200, int(effort.seconds / 3 / (time.perf_counter() - begin))))
    best = float("inf")
    for _ in range(3):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        for _ in range(repeats):
            call()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) / 1e3 / repeats)
    return best


def _ceiling() -> float:
    """Return the updates per second that the device could do at most."""
    import ctypes

    import torch

    from graph2vid.learn.cuda import Module, compile_cuda

    device = torch.cuda.get_device_properties(torch.cuda.current_device())
    blocks, rounds = device.multi_processor_count * 8, 4096
    out = torch.empty(blocks * 256, device="cuda")
    code = compile_cuda(CEILING, "ceiling.cu", [f"--gpu-architecture=sm_{device.major}{device.minor}"])
    kernel = Module(code).kernel("ceiling", 256)
    arguments = [ctypes.c_uint64(out.data_ptr()), ctypes.c_int32(rounds)]
    stream = torch.cuda.current_stream().cuda_stream
    seconds = _seconds(lambda: kernel.launch(blocks, stream, *arguments), Effort(0.2))
    return blocks * 256 * rounds * 4 / seconds


def _tables(found: Sequence[dict[str, Any]], device: dict[str, Any]) -> tuple[Table, ...]:
    rows = [row for row in found if row["name"] in (*FLOWS, "mixed")]
    tables = []
    if rows:
        places = list(dict.fromkeys((row["states"], row["clips"], row["videos"]) for row in rows))
        figures = {(row["states"], row["clips"], row["videos"], row["what"]): row for row in rows}
        lines = []
        for place in places:
            cells = [
                f"{duration(row['seconds'])} ({row['updates_per_second']:.1e}/s, {row['share']:.0%})"
                for what in KINDS
                if (row := figures.get((*place, what)))
            ]
            lines.append((*(f"{number:,}" if isinstance(number, int) else number for number in place), *cells))
        checked = [row for row in rows if "cost_deviation" in row]
        worst = [max(row[name] for row in checked) for name in ("cost_deviation", "gradient_deviation")]
        note = (
            f"{device['gpu']}, torch {device['torch']}, float32. Time of a batch, updates (states × clips × videos) "
            f"per second, and their share of the {found[0]['updates_per_second']:.1e}/s that shared memory allows. "
            "Videos of every batch give what they give alone. "
            f"Against float64 on the CPU, in the same run: costs within {worst[0]:.0e} (relative), gradients within "
            f"{worst[1]:.0e} (relative to the largest, or to 1)."
        )
        tables.append(table("Costs on the GPU", note, ("states", "clips", "videos", *KINDS), lines, words=0))
    if ones := [row for row in found if row["name"] == "one"]:
        note = (
            f"{CLIPS[0]} clips, cost and gradient, float32: the kernels in a CUDA graph; a call of them from Python; "
            "`soft_cost` and its backward pass through torch, the same with "
            "`torch.autograd.set_multithreading_enabled(False)`, in brackets what torch takes for a function that does "
            "nothing, and both passes captured in one `torch.cuda.graph` and replayed. Calls follow one another."
        )
        lines = []
        for row in ones:
            calls = [duration(row[name]) for name in ("device_seconds", "seconds")]
            for way in ("", "one_thread_"):
                calls.append(f"{duration(row[f'{way}torch_seconds'])} ({duration(row[f'{way}alone_seconds'])})")
            lines.append((f"{row['states']:,}", row["what"], *calls, duration(row["captured_seconds"])))
        columns = ("states", "what", "device", "call", "through torch", "in one thread", "captured")
        tables.append(table("One video on the GPU", note, columns, lines, words=0))
    if skips := [row for row in found if row["name"] == "skips"]:
        tables.append(_skip_table(skips))
    if extended := [row for row in found if row["name"] == "extended"]:
        tables.append(_extended_table(extended))
    for row in (row for row in found if row["name"] == "chain"):
        note = f"{CHAIN_STEPS} steps, {CHAIN_CLIPS} clips, {CHAIN_VIDEOS} videos, softmin, cost and gradient, float32."
        theirs = duration(row["peer_seconds"]) if row["peer_seconds"] else f"not measured: {row['why']}"
        tables.append(
            table("A chain on the GPU", note, ("graph2vid", "pysdtw"), [(duration(row["seconds"]), theirs)], 0)
        )
    return tuple(tables)


def _skip_table(rows: Sequence[dict[str, Any]]) -> Table:
    note = (
        f"{SKIP_CLIPS} clips, cost and gradient, float32, every step may be left out; in brackets, times the same "
        "without skip costs."
    )
    whats = list(dict.fromkeys(row["what"] for row in rows))
    lines: dict[tuple[int, int], list[str]] = {}
    for row in rows:
        cell = f"{duration(row['seconds'])} ({row['seconds'] / row['plain_seconds']:.2f})"
        lines.setdefault((row["states"], row["videos"]), []).append(cell)
    cells = [(f"{states:,}", f"{videos:,}", *times) for (states, videos), times in lines.items()]
    return table("Skip costs on the GPU", note, ("states", "videos", *whats), cells, words=0)


def _extended_table(rows: Sequence[dict[str, Any]]) -> Table:
    note = (
        f"{SKIP_CLIPS} clips, `soft_cost` and its backward pass through torch, costs of float32 computed in float64. "
        "States and arcs: of the automaton; lengths: those with a cost of their own. Updates: states × clips × videos."
    )
    lines = [
        (
            row["what"],
            *(f"{row[name]:,}" for name in ("states", "arcs", "longest", "videos")),
            f"{duration(row['seconds'])} ({row['states'] * row['clips'] * row['videos'] / row['seconds']:.1e}/s)",
        )
        for row in rows
    ]
    columns = ("what", "states", "arcs", "lengths", "videos", "cost + gradient")
    return table("The extended model on the GPU", note, columns, lines, words=1)


if __name__ == "__main__":
    from benchmarks.__main__ import main

    sys.exit(main(["gpu", *sys.argv[1:]]))
