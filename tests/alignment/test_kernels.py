"""The compiled kernels against the NumPy reference, through every block, window, thread and instruction set."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dags import dags
from graph2vid.alignment import ClipCosts, _reference, backends
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

native = backends.native()
pytestmark = pytest.mark.skipif(native is None, reason="the compiled kernels are not built")


def random_costs(seed: int, steps: int, clips: int, dtype: Any, infinite: float, skips: bool) -> ClipCosts:
    """Integer costs, so that sums are exact and ties are many."""
    rng = np.random.default_rng(seed)
    match = rng.integers(0, 5, (steps, clips)).astype(dtype)
    match[rng.random(match.shape) < infinite] = np.inf
    drop = rng.integers(0, 5, clips).astype(dtype)
    drop[rng.random(clips) < infinite] = np.inf
    skip = rng.integers(-1, 9, steps).astype(dtype) if skips else None
    return ClipCosts(match, drop, skip)


def check(tsort: TSortGraph, costs: ClipCosts, contiguous: bool, block: int, window: int, workers: int) -> None:
    expected, expected_labels = _reference.solve(tsort, costs, contiguous=contiguous)
    kernels = backends.procedure(tsort)
    cost, labels = kernels.solve(*costs, contiguous, False, block, window, workers)
    assert cost == expected
    assert (labels is None) == (expected_labels is None)
    if expected_labels is not None:
        assert labels.tolist() == expected_labels.tolist()
    assert kernels.solve(*costs, contiguous, True, block, max(window, 1), workers)[0] == expected


@settings(deadline=None, max_examples=150)
@given(
    flow=dags(max_steps=8),
    seed=st.integers(0, 2**32 - 1),
    clips=st.integers(1, 70),
    dtype=st.sampled_from([np.float32, np.float64]),
    infinite=st.sampled_from([0.0, 0.05, 0.3]),
    skips=st.booleans(),
    contiguous=st.booleans(),
    block=st.sampled_from([0, 8, 16, 24]),
    window=st.integers(0, 4),
    workers=st.integers(1, 3),
)
def test_all_ways_give_the_reference(
    flow: FlowGraph,
    seed: int,
    clips: int,
    dtype: Any,
    infinite: float,
    skips: bool,
    contiguous: bool,
    block: int,
    window: int,
    workers: int,
) -> None:
    costs = random_costs(seed, len(flow), clips, dtype, infinite, skips)
    check(TSortGraph.compile(flow), costs, contiguous, block, window, workers)


LARGER = {
    "chain of 100": FlowGraph.chain([str(i) for i in range(100)]),
    "two chains of 40": FlowGraph.from_edges([str(i) for i in range(80)], [(i, i + 1) for i in range(79) if i != 39]),
    "bag of 10": FlowGraph.bag([str(i) for i in range(10)]),
    "threads": FlowGraph.from_edges([str(i) for i in range(12)], [(i, i + 1) for i in range(11) if i % 3 != 2]),
    "crown": FlowGraph.from_edges(
        [str(i) for i in range(10)], [(i, 5 + j) for i in range(5) for j in range(5) if i != j]
    ),
}


@pytest.mark.parametrize("name", LARGER)
@pytest.mark.parametrize("level", range(len(native.simd_levels()) if native else 1))
def test_larger_graphs_on_every_instruction_set(name: str, level: int) -> None:
    assert native is not None
    tsort = TSortGraph.compile(LARGER[name])
    native.use_simd(level)
    try:
        for seed, (contiguous, skips, dtype) in enumerate(
            product([True, False], [True, False], [np.float32, np.float64])
        ):
            costs = random_costs(seed, tsort.n_steps, 130, dtype, 0.02, skips)
            check(tsort, costs, contiguous, block=32, window=2, workers=1 + seed % 2)
    finally:
        native.use_simd(0)


@settings(deadline=None, max_examples=60)
@given(
    flow=dags(max_steps=7),
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=20),
    dtype=st.sampled_from([np.float32, np.float64]),
    contiguous=st.booleans(),
    workers=st.integers(1, 2),
)
def test_videos_in_lanes(
    flow: FlowGraph, seed: int, sizes: list[int], dtype: Any, contiguous: bool, workers: int
) -> None:
    tsort = TSortGraph.compile(flow)
    videos = [random_costs(seed + i, len(flow), n, dtype, 0.02, (seed + i) % 3 == 0) for i, n in enumerate(sizes)]
    found = backends.procedure(tsort).solve_many(*map(list, zip(*videos, strict=True)), contiguous, False, 16, workers)
    for costs, (cost, labels) in zip(videos, found, strict=True):
        expected, expected_labels = _reference.solve(tsort, costs, contiguous=contiguous)
        assert cost == expected
        assert (None if labels is None else labels.tolist()) == (
            None if expected_labels is None else expected_labels.tolist()
        )


def test_float_costs_are_the_sum_of_what_the_labels_say() -> None:
    rng = np.random.default_rng(3)
    tsort = TSortGraph.compile(LARGER["threads"])
    for dtype in (np.float32, np.float64):
        match, drop = rng.random((12, 500)).astype(dtype), rng.random(500).astype(dtype)
        cost, labels = backends.procedure(tsort).solve(match, drop, None, True, False, 0, 0, 1)
        chosen = np.where(labels < 0, drop, match[labels, np.arange(500)])
        assert cost == pytest.approx(chosen.sum(dtype=np.float64), rel=1e-6)


ROOT = Path(__file__).parents[2]
OBJECTS = [
    path
    for path in sorted(ROOT.glob("build/cp*/CMakeFiles/kernel_*.dir/*.o"))
    if (ROOT / "src" / "native" / path.stem).exists()  # a build tree keeps what was made of sources that are gone
]


@pytest.mark.skipif(not OBJECTS or shutil.which("nm") is None, reason="there is no build tree here, or no nm")
def test_no_template_is_emitted_per_instruction_set() -> None:
    """The linker keeps one copy of a weak symbol: that of AVX2 must not be the one that runs elsewhere."""
    for path in OBJECTS:
        listed = subprocess.run(["nm", "-C", str(path)], capture_output=True, text=True, check=True).stdout
        weak = [line for line in listed.splitlines() if re.search(r" [VWuvw] ", line)]
        assert not weak, f"{path.parent.name}/{path.name}: {weak[:5]}"
