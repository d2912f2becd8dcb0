"""Check the CUDA kernels against the torch reference in float64, on random procedures, lengths and costs.

    python benchmarks/gpu_check.py [--cases 200] [--seed 0]

Needs a GPU, torch and numpy alone. Every case is one mixed batch: different graphs and lengths, NaN in the padding,
some costs infinite, some videos impossible. Kernels run with states in registers, in memory, with shared memory
spilled, and from checkpoints. Prints the largest deviations, and fails where one is too large.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from graph2vid.flow import FlowGraph
from graph2vid.learn.cuda import costs, plan
from graph2vid.learn.reference import reference_cost
from graph2vid.tsort import TSortGraph

GAMMAS = (1e-3, 0.01, 0.1, 1.0, 10.0)
# Relative for costs, absolute for gradients; float32 promises gradients from gamma = 0.01 on.
BOUNDS = {torch.float64: (1e-10, 1e-10), torch.float32: (1e-5, 1e-3)}


def random_flow(random: np.random.Generator, most: int) -> FlowGraph:
    """Return a random procedure of 1 to ``most`` steps."""
    steps = int(random.integers(1, most + 1))
    order, density = random.permutation(steps), random.random()
    pairs = itertools.combinations(range(steps), 2)
    edges = [(int(order[a]), int(order[b])) for a, b in pairs if random.random() < density]
    return FlowGraph.from_edges([f"step {i}" for i in range(steps)], edges)


def clear() -> None:
    """Forget how batches were laid out."""
    plan.shape.cache_clear()
    costs._prepared.cache_clear()


@contextmanager
def variant(name: str) -> Iterator[int | None]:
    """Make the kernels run in one of their ways; yields a memory limit."""
    kept = dict(plan.MOST_IN_REGISTERS)
    most_shared = costs._most_shared
    clear()
    try:
        if name in ("memory", "spilled"):
            plan.MOST_IN_REGISTERS.update(forward=0, backward=0)
        if name == "spilled":
            costs._most_shared = lambda device: 0
        yield None
    finally:
        plan.MOST_IN_REGISTERS.update(kept)
        costs._most_shared = most_shared
        clear()


def make_batch(
    random: np.random.Generator, videos: int
) -> tuple[list[TSortGraph], list[int], torch.Tensor, torch.Tensor]:
    """Return a mixed batch in float64, with NaN in the padding."""
    tsorts = [TSortGraph.compile(random_flow(random, 7)) for _ in range(videos)]
    lengths = [int(random.integers(1, 80)) for _ in range(videos)]
    match = np.full((videos, max(t.n_steps for t in tsorts), max(lengths)), np.nan)
    drop = np.full((videos, match.shape[2]), np.nan)
    scale = 10 ** random.uniform(-1, 1)
    for at, (tsort, length) in enumerate(zip(tsorts, lengths, strict=True)):
        costs_ = random.normal(size=(tsort.n_steps + 1, length)) * scale + random.normal() * 5
        if random.random() < 0.5:
            costs_[random.random(costs_.shape) < 0.2] = np.inf
        match[at, : tsort.n_steps, :length], drop[at, :length] = costs_[:-1], costs_[-1]
    return tsorts, lengths, torch.from_numpy(match), torch.from_numpy(drop)


def reference(batch, smoothing: str, contiguous: bool, gamma: float):  # type: ignore[no-untyped-def]
    """Return costs and gradients in float64, on the CPU."""
    tsorts, lengths, match, drop = batch
    found = torch.zeros(len(tsorts), dtype=torch.float64)
    match_grad, drop_grad = torch.zeros_like(match), torch.zeros_like(drop)
    for at, (tsort, length) in enumerate(zip(tsorts, lengths, strict=True)):
        inputs = [match[at, : tsort.n_steps, :length].clone(), drop[at, :length].clone()]
        for part in inputs:
            part.requires_grad_()
        cost = reference_cost(tsort, *inputs, gamma=gamma, smoothing=smoothing, contiguous=contiguous)
        found[at] = cost.detach()
        if torch.isfinite(cost):
            grads = torch.autograd.grad(cost, inputs)
            match_grad[at, : tsort.n_steps, :length], drop_grad[at, :length] = grads
    return found, match_grad, drop_grad


def main() -> None:
    """Run the checks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    worst: dict[tuple[str, ...], list[float]] = {}
    failures = 0
    for case in range(arguments.cases):
        smoothing = ("softmin", "smoothmin")[case % 2]
        contiguous = bool(case // 2 % 2)
        gamma = GAMMAS[case // 4 % len(GAMMAS)]
        batch = make_batch(random, 6)
        for dtype in (torch.float64, torch.float32):
            # The reference sees what the kernels see: costs rounded to their precision.
            rounded = (*batch[:2], *(part.to(dtype).double() for part in batch[2:]))
            wanted = reference(rounded, smoothing, contiguous, gamma)
            inputs = [part.to(dtype).cuda() for part in batch[2:]]
            for name in ("registers", "memory", "spilled", "checkpoints"):
                limit = None
                if name == "checkpoints":
                    numbers = costs.Kind(smoothing, contiguous, gradient=True).numbers(dtype)
                    column = max(numbers.column(costs.layout_of(tsort)) for tsort in batch[0])
                    limit = (plan.CHUNK + 6) * column * numbers.bytes
                with variant(name):
                    found = costs.costs_on_gpu(
                        batch[0],
                        *inputs,
                        batch[1],
                        gamma=gamma,
                        kind=costs.Kind(smoothing, contiguous, gradient=True),
                        memory_limit=limit,
                    )
                failures += not compare(wanted, found, dtype, gamma, (name, smoothing, str(contiguous)), worst, case)
        if case % 2 == 0:
            failures += not check_hard(batch, contiguous, worst)
    for key, (value, gradient) in sorted(worst.items()):
        print(f"{' '.join(key):55s} cost {value:.1e} (relative)   gradient {gradient:.1e} (absolute)")
    print(f"{arguments.cases} mixed batches, {failures} mismatches")
    sys.exit(bool(failures))


def compare(wanted, found, dtype, gamma, key, worst, case) -> bool:  # type: ignore[no-untyped-def]
    """Note how far the kernels are from the reference; whether that is near enough."""
    cost, match, drop = (part.double().cpu() for part in (found.cost, found.match, found.drop))
    if any(part.isnan().any() for part in (cost, match, drop)):
        print(f"case {case} {key} {dtype} gamma {gamma}: NaN")
        return False
    finite = torch.isfinite(wanted[0])
    if not torch.equal(finite, torch.isfinite(cost)):
        print(f"case {case} {key} {dtype} gamma {gamma}: {wanted[0].tolist()} against {cost.tolist()}")
        return False
    scale = wanted[0][finite].abs().clamp(min=1)
    value = float(((cost - wanted[0])[finite].abs() / scale).max()) if finite.any() else 0.0
    gradient = max(float((match - wanted[1]).abs().max()), float((drop - wanted[2]).abs().max()))
    key = (*key, str(dtype).removeprefix("torch."), "gamma>=0.01" if gamma >= 0.01 else "gamma<0.01")
    worst[key] = [max(pair) for pair in zip(worst.get(key, [0, 0]), (value, gradient), strict=True)]
    bounds = BOUNDS[dtype]
    if value > bounds[0] or (gradient > bounds[1] and (gamma >= 0.01 or dtype == torch.float64)):
        print(f"case {case} {key} gamma {gamma}: cost {value:.1e}, gradient {gradient:.1e}")
        return False
    return True


def check_hard(batch, contiguous, worst) -> bool:  # type: ignore[no-untyped-def]
    """Compare the hard minimum with that of the reference at a tiny gamma."""
    wanted = reference(batch, "softmin", contiguous, 1e-9)[0]
    inputs = [part.cuda() for part in batch[2:]]
    kind = costs.Kind("hard", contiguous, gradient=False)
    cost = costs.costs_on_gpu(batch[0], *inputs, batch[1], gamma=1.0, kind=kind).cost.cpu()
    finite = torch.isfinite(wanted)
    if not torch.equal(finite, torch.isfinite(cost)):
        return False
    value = float((cost - wanted)[finite].abs().max()) if finite.any() else 0.0
    key = ("hard", str(contiguous))
    worst[key] = [max(worst.get(key, [0.0])[0], value), 0.0]
    return value < 1e-6


if __name__ == "__main__":
    main()
