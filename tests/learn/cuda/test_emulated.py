"""The kernels compute what the reference does, without a GPU: every way they run, on threads in any order."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra 'learn' is not installed")

from benchmarks import gpu_check  # noqa: E402
from benchmarks.gpu import FLOWS  # noqa: E402
from emulated import emulation  # noqa: E402
from graph2vid.flow import FlowGraph  # noqa: E402
from graph2vid.learn.cuda import Kind, cuda_costs  # noqa: E402
from graph2vid.tsort import TSortGraph  # noqa: E402

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("g++") is None, reason="this needs g++ and Linux"
)
KINDS = list(product(("softmin", "smoothmin"), (True, False), (False, True)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_check, "DEVICE", "cpu")


def check(folder: Path, seed: int, smoothing: str, contiguous: bool, skips: bool, dtype: torch.dtype) -> None:
    """Compare all ways that the kernels run on one mixed batch."""
    random = np.random.default_rng(seed)
    batch = gpu_check.make_batch(random, 3)
    batch = batch if skips else replace(batch, skip=None)
    batch = batch.map(partial(torch.Tensor.to, dtype=dtype))
    gamma = gpu_check.GAMMAS[1:][seed % 4]
    with emulation(folder, seed):
        assert gpu_check.check(batch, smoothing, contiguous, gamma, {}, seed) == 0


@pytest.mark.parametrize(("smoothing", "contiguous", "skips"), KINDS)
def test_costs_and_gradients_are_those_of_the_reference(
    folder: Path, smoothing: str, contiguous: bool, skips: bool
) -> None:
    seed = KINDS.index((smoothing, contiguous, skips))
    check(folder, seed, smoothing, contiguous, skips, torch.float32)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 12))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize(("smoothing", "contiguous", "skips"), KINDS)
def test_many_batches(
    folder: Path, smoothing: str, contiguous: bool, skips: bool, dtype: torch.dtype, seed: int
) -> None:
    check(folder, seed, smoothing, contiguous, skips, dtype)


@pytest.mark.parametrize("skips", [False, True])
def test_the_hard_minimum(folder: Path, skips: bool) -> None:
    batch = gpu_check.make_batch(np.random.default_rng(40 + skips), 3)
    with emulation(folder):
        assert gpu_check.check_hard(batch if skips else replace(batch, skip=None), True, {})


def test_what_is_no_cost_makes_the_cost_nan(folder: Path) -> None:
    with emulation(folder):
        assert gpu_check.check_strange(gpu_check.make_batch(np.random.default_rng(50), 6, 4))


@pytest.mark.parametrize("skips", [False, True])
def test_large_procedures_of_different_sizes(folder: Path, skips: bool) -> None:
    """Warps that a smaller procedure has no ideals for keep nobody waiting."""
    random = np.random.default_rng(2)
    flows = [
        FlowGraph.from_edges([f"step {k}" for k in range(steps)], edges) for steps, edges in ((7, [(0, 1)]), (6, []))
    ]
    tsorts = [TSortGraph.compile(flow) for flow in flows]
    assert [tsort.n_ideals for tsort in tsorts] == [96, 64]  # three warps and two, for one kernel
    shapes = ((2, 7, 40), (2, 40), (2, 7))
    costs = gpu_check.Batch(tsorts, [40, 33], *(torch.from_numpy(random.random(shape)).float() for shape in shapes))
    costs = costs if skips else replace(costs, skip=None)
    wanted = gpu_check.reference(costs.map(torch.Tensor.double), "softmin", True, 0.1)
    kind = Kind("softmin", True, gradient=True, skips=skips)
    with emulation(folder), gpu_check.variant("shared"):
        found = cuda_costs.costs_on_gpu(
            tsorts, costs.match, costs.drop, costs.lengths, costs.skip, gamma=0.1, kind=kind
        )
    assert gpu_check.compare(costs, wanted, found, 0.1, ("sizes",), {}, 0)


@pytest.mark.parametrize(("smoothing", "contiguous", "skips"), [KINDS[1], KINDS[7]])
def test_short_videos(folder: Path, smoothing: str, contiguous: bool, skips: bool) -> None:
    """Columns that few lanes write hold nothing that is not a number where others read."""
    random = np.random.default_rng(1)
    kind = Kind(smoothing, contiguous, gradient=True, skips=skips)
    for steps, clips in ((1, 1), (1, 5), (2, 3), (2, 6)):
        tsort = TSortGraph.compile(FlowGraph.chain([f"step {k}" for k in range(steps)]))
        shapes = ((1, steps, clips), (1, clips), (1, steps))
        costs = gpu_check.Batch([tsort], [clips], *(torch.from_numpy(random.random(shape)).float() for shape in shapes))
        wanted = gpu_check.reference(costs.map(torch.Tensor.double), smoothing, contiguous, 0.1)
        with emulation(folder), gpu_check.variant("registers"):
            found = cuda_costs.costs_on_gpu([tsort], costs.match, costs.drop, [clips], costs.skip, gamma=0.1, kind=kind)
        assert gpu_check.compare(costs, wanted, found, 0.1, ("short",), {}, clips)


@pytest.mark.parametrize(("smoothing", "contiguous", "skips"), [KINDS[0], KINDS[1], KINDS[7]])
def test_the_order_of_threads_does_not_matter(folder: Path, smoothing: str, contiguous: bool, skips: bool) -> None:
    """Whatever is read before a barrier says that it is there comes out differently when others run first."""
    random = np.random.default_rng(0)
    tsort = TSortGraph.compile(FLOWS["77"])
    match, drop, skip = (torch.from_numpy(random.random(shape)).float() for shape in ((3, 9, 40), (3, 40), (3, 9)))
    kind = Kind(smoothing, contiguous, gradient=True, skips=skips)
    found = []
    for seed in range(3):
        with emulation(folder, seed), gpu_check.variant("packed"):
            given = ([tsort] * 3, match, drop, [40, 33, 7], skip if skips else None)
            found.append(cuda_costs.costs_on_gpu(*given, gamma=0.1, kind=kind))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert one is two is None or torch.equal(one, two)


@pytest.mark.parametrize("way", ["registers", "shared", "memory"])
@pytest.mark.parametrize(("smoothing", "contiguous", "skips"), [KINDS[0], KINDS[1], KINDS[7]])
def test_gradients_can_be_asked_for_later(
    folder: Path, smoothing: str, contiguous: bool, skips: bool, way: str
) -> None:
    """They are those that are found at once, times what arrives from above, however often they are asked for."""
    random = np.random.default_rng(3)
    tsort = TSortGraph.compile(FLOWS["77"])
    match, drop, skip = (torch.from_numpy(random.random(shape)).float() for shape in ((3, 9, 40), (3, 40), (3, 9)))
    match[1] = torch.inf
    given = ([tsort] * 3, match, drop, [40, 33, 12], skip if skips else None)
    kind = Kind(smoothing, contiguous, gradient=True, skips=skips)
    arrivals = torch.tensor([[2.0, 7.0], [1.0 if skips else torch.nan, 7.0], [-0.5, 7.0]])
    with emulation(folder), gpu_check.variant(way):
        wanted = cuda_costs.costs_on_gpu(*given, gamma=0.1, kind=kind)
        cost, pass_back = cuda_costs.begun_on_gpu(*given, gamma=0.1, kind=kind)
        assert cost.isinf().tolist() == [False, not skips, False]
        assert torch.equal(cost, wanted.cost)
        impossible = cost.isinf()
        for above in (arrivals[:, 0], torch.tensor(3.0).expand(3), arrivals[:, 0]):
            found = pass_back(above, in_place=False)
            cost.masked_fill_(impossible, 0.0)  # whoever has the cost may change it
            for one, two in zip(found, wanted[1:], strict=True):
                if two is not None:
                    scale = torch.where(impossible, 0.0, above).view(-1, *[1] * (two.ndim - 1))
                    assert torch.allclose(one, two * scale, rtol=1e-6, atol=0)
        waits = isinstance(pass_back, cuda_costs._Begun)
        assert waits == (way == "registers" or (way == "shared" and smoothing == "softmin"))
        if waits:
            drop += 1
            with pytest.raises(RuntimeError, match="changed in place"):
                pass_back(arrivals[:, 0])
