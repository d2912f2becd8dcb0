"""Check the CUDA kernels against the torch reference in float64, on random procedures, lengths and costs.

    python benchmarks/gpu_check.py [--cases 200] [--seed 0]

Needs a GPU, torch and numpy alone. Every case is one mixed batch: different graphs and lengths, NaN in the padding,
some costs infinite, some videos impossible; once as it is and once with skip costs, and a short one with repeats and
durations. Kernels run with states in registers, one video or several to a block, in shared memory, in memory, with
shared memory spilled, and from checkpoints. Prints the largest deviations; fails where one is too large.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from benchmarks.torch_reference import reference_cost
from graph2vid.alignment import Durations
from graph2vid.flow import FlowGraph
from graph2vid.learn import GraphDropDTWLoss, soft_cost
from graph2vid.learn.cuda import cuda_costs, plan
from graph2vid.learn.cuda.cuda_graphs import Layout, layout_of
from graph2vid.learn.cuda.cuda_numbers import CHUNK, Numbers
from graph2vid.tsort import TSortGraph

Worst = dict[tuple[str, ...], list[float]]
DEVICE = "cuda"
GAMMAS = (1e-3, 0.01, 0.1, 1.0, 10.0)
# Of costs, relative to the sum over clips of the largest label's; of gradients, to the largest one of the video, or to
# 1 (those of smoothmin may be larger). float32 promises gradients from gamma = 0.01 on.
BOUNDS = {torch.float64: (1e-13, 1e-10), torch.float32: (1e-6, 1e-3)}


def random_flow(random: np.random.Generator, most: int) -> FlowGraph:
    """Return a random procedure of 1 to ``most`` steps."""
    steps = int(random.integers(1, most + 1))
    order, density = random.permutation(steps), random.random()
    pairs = itertools.combinations(range(steps), 2)
    edges = [(int(order[a]), int(order[b])) for a, b in pairs if random.random() < density]
    return FlowGraph.from_edges([f"step {i}" for i in range(steps)], edges)


def clear() -> None:
    """Forget how batches were laid out."""
    plan.in_registers.cache_clear()
    cuda_costs._prepared.cache_clear()


@contextmanager
def variant(name: str) -> Iterator[int | None]:
    """Make the kernels run in one of their ways; yields a memory limit."""
    kept, many, in_shared = dict(plan.MOST_IN_REGISTERS), plan.MANY_BLOCKS, plan.MOST_IN_SHARED
    most_shared = cuda_costs._most_shared
    clear()
    try:
        if name == "packed":
            plan.MANY_BLOCKS = 1
        if name in ("shared", "shared checkpoints", "memory", "spilled"):
            plan.MOST_IN_REGISTERS.update(forward=0, backward=0)
        if name in ("memory", "spilled"):
            plan.MOST_IN_SHARED = 0
        if name == "spilled":
            cuda_costs._most_shared = lambda device: 0  # type: ignore[assignment]
        yield None
    finally:
        plan.MOST_IN_REGISTERS.update(kept)
        plan.MANY_BLOCKS, plan.MOST_IN_SHARED = many, in_shared
        cuda_costs._most_shared = most_shared
        clear()


@dataclass(frozen=True)
class Batch:
    """Videos of different procedures and lengths: match [B, K, N], drop [B, N], skip [B, K] or None, all float64."""

    tsorts: list[TSortGraph]
    lengths: list[int]
    match: torch.Tensor
    drop: torch.Tensor
    skip: torch.Tensor | None

    @property
    def magnitude(self) -> torch.Tensor:
        """The sum over clips of each video's largest label, and of its skip costs, as far as they are finite: [B]."""
        parts = [torch.cat([self.match, self.drop[:, None]], dim=1)]
        if self.skip is not None:
            parts.append(self.skip[:, None])
        sizes = [part.double().nan_to_num(0.0, 0.0, 0.0).abs() for part in parts]
        return sum((size.amax(dim=1).sum(dim=1) for size in sizes), torch.ones(len(self.tsorts), dtype=torch.float64))

    def map(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Batch:
        """Return the batch with other costs."""
        skip = None if self.skip is None else change(self.skip)
        return replace(self, match=change(self.match), drop=change(self.drop), skip=skip)


def on_device(part: torch.Tensor) -> torch.Tensor:
    """Return a tensor where the kernels run."""
    return part.to(DEVICE)


def make_batch(random: np.random.Generator, videos: int, most: int = 7) -> Batch:
    """Return a mixed batch with NaN in the padding."""
    known = [TSortGraph.compile(random_flow(random, most)) for _ in range(3)]
    tsorts = [known[int(random.integers(len(known)))] for _ in range(videos)]
    lengths = [int(random.integers(1, 80)) for _ in range(videos)]
    match = np.full((videos, max(t.n_steps for t in tsorts), max(lengths)), np.nan)
    drop = np.full((videos, match.shape[2]), np.nan)
    skip = np.full(match.shape[:2], np.nan)
    scale = 10 ** random.uniform(-1, 1)
    for at, (tsort, length) in enumerate(zip(tsorts, lengths, strict=True)):
        costs_ = random.normal(size=(tsort.n_steps + 1, length)) * scale + random.normal() * 5
        if random.random() < 0.5:
            costs_[random.random(costs_.shape) < 0.2] = np.inf
        match[at, : tsort.n_steps, :length], drop[at, :length] = costs_[:-1], costs_[-1]
        skips = random.normal(size=tsort.n_steps) * scale * 3
        skips[random.random(tsort.n_steps) < random.random()] = np.inf
        skip[at, : tsort.n_steps] = skips
    return Batch(tsorts, lengths, *map(torch.from_numpy, (match, drop, skip)))


def reference(batch: Batch, smoothing: str, contiguous: bool, gamma: float) -> list[torch.Tensor]:
    """Return costs and gradients in float64, on the CPU."""
    given = [part for part in (batch.match, batch.drop, batch.skip) if part is not None]
    found = [torch.zeros(len(batch.tsorts), dtype=torch.float64), *map(torch.zeros_like, given)]
    for at, (tsort, length) in enumerate(zip(batch.tsorts, batch.lengths, strict=True)):
        own = [(at, slice(tsort.n_steps), slice(length)), (at, slice(length)), (at, slice(tsort.n_steps))][: len(given)]
        inputs = [part[where].clone().requires_grad_() for part, where in zip(given, own, strict=True)]
        cost = reference_cost(tsort, *inputs, gamma=gamma, smoothing=smoothing, contiguous=contiguous)
        found[0][at] = cost.detach()
        if torch.isfinite(cost):
            gradients = torch.autograd.grad(cost, inputs, allow_unused=True)
            for part, where, gradient in zip(found[1:], own, gradients, strict=True):
                part[where] = 0.0 if gradient is None else gradient
    return found


def main() -> None:
    """Run the checks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    worst: Worst = {}
    failures = 0
    for case in range(arguments.cases):
        smoothing = ("softmin", "smoothmin")[case % 2]
        contiguous = bool(case // 2 % 2)
        gamma = GAMMAS[(case // 4 + arguments.seed) % len(GAMMAS)]  # so that short runs see others
        made = make_batch(random, 8)
        for batch in (replace(made, skip=None), made):
            for dtype in (torch.float64, torch.float32):
                failures += check(
                    batch.map(partial(torch.Tensor.to, dtype=dtype)), smoothing, contiguous, gamma, worst, case
                )
            if case % 2 == 0:
                failures += not check_hard(batch, contiguous, worst)
        failures += not check_extended(random, gamma, worst, case)
    failures += not check_strange(make_batch(random, 8))
    failures += not check_training(random)
    for key, (value, gradient) in sorted(worst.items()):
        print(f"{' '.join(key):66s} cost {value:.1e} (relative)   gradient {gradient:.1e}")
    print(f"{arguments.cases} mixed batches, {failures} mismatches")
    sys.exit(bool(failures))


def check(batch: Batch, smoothing: str, contiguous: bool, gamma: float, worst: Worst, case: int) -> int:
    """Compare every way of the kernels with the reference; return in how many they differ."""
    # The reference sees what the kernels see: costs rounded to their precision.
    wanted = reference(batch.map(torch.Tensor.double), smoothing, contiguous, gamma)
    skips, dtype = batch.skip is not None, batch.match.dtype
    kind = cuda_costs.Kind(smoothing, contiguous, gradient=True, skips=skips)
    on_gpu = batch.map(on_device)
    failures = 0
    ways: tuple[str, ...] = ("memory", "spilled", "checkpoints")
    if not (skips and smoothing == "smoothmin" and contiguous):
        ways = ("registers", "packed", *ways)
    if kind.numbers(dtype).shares:
        ways = (*ways, "shared", "shared checkpoints")
    for name in ways:
        limit = None
        if "checkpoints" in name:
            limit = few_columns(kind.numbers(dtype), [layout_of(tsort, skips) for tsort in batch.tsorts], name)
        given = (batch.tsorts, on_gpu.match, on_gpu.drop, batch.lengths, on_gpu.skip)
        with variant(name):
            found = cuda_costs.costs_on_gpu(*given, gamma=gamma, kind=kind, memory_limit=limit)
            begun = cuda_costs.begun_on_gpu(*given, gamma=gamma, kind=kind) if limit is None else None
        if begun is not None and not is_the_same_later(found, *begun):
            print(f"case {case} {name} {smoothing} {dtype} gamma {gamma}: gradients that are asked for later differ")
            failures += 1
        key = (name, smoothing, "contiguous" if contiguous else "interrupted", "skips" if skips else "all shown")
        failures += not compare(batch, wanted, found, gamma, key, worst, case)
    return failures


def is_the_same_later(found: cuda_costs.Costs, cost: torch.Tensor, pass_back: cuda_costs.PassBack) -> bool:
    """Whether gradients asked for after the cost are the same, times what arrives: exactly, for powers of 2."""
    if not torch.equal(cost, found.cost):
        return False
    for above, last in ((cost.new_tensor(-0.25).expand(len(cost)), False), (torch.full_like(cost, 2.0), True)):
        for later, part in zip(pass_back(above, in_place=last), found[1:], strict=True):
            if part is not None and (later is None or not torch.equal(later, part * above[0])):
                return False
    return True


def few_columns(numbers: Numbers, layouts: list[Layout], name: str) -> int:
    """Return a memory limit with which videos are done in parts."""
    with variant(name):
        fits = [plan.Fit.of(layout, numbers, cuda_costs._most_shared(0), 1, gradient=True) for layout in layouts]
    limits = [
        (CHUNK + 9) * (fit.column(layout, numbers) + fit.in_flight(layout, numbers)) + fit.aside(layout, numbers)
        for fit, layout in zip(fits, layouts, strict=True)
    ]
    return max(limits) * numbers.bytes


def compare(
    batch: Batch,
    wanted: list[torch.Tensor],
    found: cuda_costs.Costs,
    gamma: float,
    key: tuple[str, ...],
    worst: Worst,
    case: int,
) -> bool:
    """Note how far the kernels are from the reference; whether that is near enough."""
    dtype = batch.match.dtype
    parts = (found.cost, found.match, found.drop, found.skip)[: len(wanted)]
    cost, *gradients = (part.double().cpu() for part in parts if part is not None)
    if any(part.isnan().any() for part in (cost, *gradients)):
        print(f"case {case} {key} {dtype} gamma {gamma}: NaN")
        return False
    finite = torch.isfinite(wanted[0])
    if not torch.equal(finite, torch.isfinite(cost)):
        print(f"case {case} {key} {dtype} gamma {gamma}: {wanted[0].tolist()} against {cost.tolist()}")
        return False
    scale = batch.magnitude.cpu()[finite]
    value = float(((cost - wanted[0])[finite].abs() / scale).max()) if finite.any() else 0.0
    largest = torch.stack([part.abs().flatten(1).amax(dim=1) for part in wanted[1:]]).amax(dim=0).clamp(min=1)
    away = torch.stack([(a - b).abs().flatten(1).amax(dim=1) for a, b in zip(gradients, wanted[1:], strict=True)])
    gradient = float((away / largest).max())
    key = (*key, str(dtype).removeprefix("torch."), "gamma>=0.01" if gamma >= 0.01 else "gamma<0.01")
    worst[key] = [max(pair) for pair in zip(worst.get(key, [0, 0]), (value, gradient), strict=True)]
    bounds = BOUNDS[dtype]
    if value > bounds[0] or (gradient > bounds[1] and (gamma >= 0.01 or dtype == torch.float64)):
        print(f"case {case} {key} gamma {gamma}: cost {value:.1e}, gradient {gradient:.1e}")
        return False
    return True


def check_strange(batch: Batch) -> bool:
    """Whether NaN and -inf among a video's costs make its cost NaN, and no other video's."""
    kind, fine = cuda_costs.Kind("softmin", True, gradient=True, skips=True), True
    for at, (which, bad) in enumerate(itertools.product(("match", "drop", "skip"), (math.nan, -math.inf))):
        spoilt = batch.map(torch.Tensor.clone)
        getattr(spoilt, which)[at, 0] = bad
        gpu = spoilt.map(on_device)
        found = cuda_costs.costs_on_gpu(gpu.tsorts, gpu.match, gpu.drop, gpu.lengths, gpu.skip, gamma=0.1, kind=kind)
        fine &= [place for place, cost in enumerate(found.cost.tolist()) if math.isnan(cost)] == [at]
        fine &= found.match is not None and not found.match.isnan().any() and not found.match[at].any()
    print("NaN and -inf are seen" if fine else "NaN or -inf went unseen")
    return fine


def check_extended(random: np.random.Generator, gamma: float, worst: Worst, case: int) -> bool:
    """Compare repeats, durations and soft precedence with the automaton on the CPU, in float64 there."""
    made = make_batch(random, 4, 4)
    lengths = [min(length, int(random.integers(2, 9))) for length in made.lengths]
    batch = replace(made, lengths=lengths, skip=made.skip if case % 2 else None)
    longest = int(random.integers(1, 5))
    by_length = random.random(longest) * (random.random(longest) < 0.8)
    options: dict[str, Any] = {
        "repeat": float(random.random()) if case % 3 else None,
        "durations": (lambda flow: Durations(np.tile(by_length, (len(flow), 1)), np.full(len(flow), 0.3)))
        if case % 3 != 1
        else None,
    }

    def found(batch: Batch) -> list[torch.Tensor]:
        given = [part.clone().requires_grad_() for part in (batch.match, batch.drop)]
        how = options | {"gamma": gamma, "smoothing": "softmin", "contiguous": True}
        cost = soft_cost(batch.tsorts, given[0], given[1], batch.skip, batch.lengths, **how)
        return [cost.detach(), *torch.autograd.grad(cost.sum(), given)]

    fine = True
    for dtype in (torch.float64, torch.float32):
        rounded = batch.map(partial(torch.Tensor.to, dtype=dtype))
        wanted = found(rounded.map(torch.Tensor.double))
        gpu = cuda_costs.Costs(*found(rounded.map(on_device)))
        key = ("automaton", "softmin", "contiguous", "skips" if batch.skip is not None else "all shown")
        fine &= compare(rounded, wanted, gpu, gamma, key, worst, case)
    return fine


def check_training(random: np.random.Generator) -> bool:
    """Train a layer with repeats and durations on the GPU and on the CPU: the losses are the same, and they fall."""
    flow = FlowGraph.from_edges([f"step {i}" for i in range(4)], [(0, 2), (1, 2)])
    steps = torch.from_numpy(random.normal(size=(len(flow), 8)))
    shown = torch.from_numpy(random.normal(size=(3, 12, 8)))
    losses: dict[str, list[float]] = {}
    for device in ("cuda", "cpu"):
        layer = torch.nn.Linear(8, 8, dtype=torch.float64)
        with torch.no_grad():
            layer.weight.copy_(torch.eye(8))
            layer.bias.zero_()
        layer = layer.to(device)
        loss_of = GraphDropDTWLoss(gamma=0.1, smoothing="softmin", contiguous=True, repeat=1.0, durations=2)
        optimiser = torch.optim.Adam(layer.parameters(), lr=0.02)
        losses[device] = []
        for _ in range(12):
            loss = loss_of(layer(shown.to(device)), [steps.to(device)] * 3, [flow] * 3)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses[device].append(loss.item())
    print("training with repeats and durations on the GPU: loss", *(f"{loss:.4f}" for loss in losses["cuda"][::4]))
    fine = losses["cuda"][-1] < losses["cuda"][0] and np.allclose(losses["cuda"], losses["cpu"], rtol=1e-8)
    if not fine:
        print("on the CPU:", *losses["cpu"], "against", *losses["cuda"])
    return fine


def check_hard(batch: Batch, contiguous: bool, worst: Worst) -> bool:
    """Compare the hard minimum with that of the reference at a tiny gamma."""
    wanted = reference(batch, "softmin", contiguous, 1e-9)[0]
    kind = cuda_costs.Kind("hard", contiguous, gradient=False, skips=batch.skip is not None)
    finite, fine = torch.isfinite(wanted), True
    for name in ("registers", "shared", "memory"):
        gpu = batch.map(
            partial(torch.Tensor.to, dtype=torch.float32 if name == "shared" else torch.float64, device=DEVICE)
        )
        with variant(name):
            cost = cuda_costs.costs_on_gpu(
                gpu.tsorts, gpu.match, gpu.drop, gpu.lengths, gpu.skip, gamma=1.0, kind=kind
            ).cost.cpu()
        if not torch.equal(finite, torch.isfinite(cost)):
            print(f"hard minimum, {name}: {wanted.tolist()} against {cost.tolist()}")
            return False
        far = (cost - wanted)[finite].abs() / batch.magnitude[finite]
        value = float(far.max()) if finite.any() else 0.0
        key = (name, "hard", "contiguous" if contiguous else "interrupted", "skips" if kind.skips else "all shown")
        worst[key] = [max(worst.get(key, [0.0])[0], value), 0.0]
        if value > (1e-6 if name == "shared" else 1e-8):  # the reference is of a soft minimum, after all
            print(f"hard minimum, {name}: {value:.1e}")
            fine = False
    return fine


if __name__ == "__main__":
    main()
