"""The soft kernels against the recursion in torch, which autograd differentiates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dags import dags
from graph2vid import alignment
from graph2vid.alignment import ClipCosts, SoftCost, _reference, align, backends
from graph2vid.errors import InputError, TooLargeError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

pytestmark = pytest.mark.skipif(backends.native() is None, reason="the kernels were not built")

SMOOTHINGS = st.sampled_from(["softmin", "smoothmin"])
SEEDS = st.integers(0, 2**32 - 1)


def random_video(
    seed: int, tsort: TSortGraph, dtype: Any, skips: bool, clips: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return match, drop and skip with infinities among them."""
    rng = np.random.default_rng(seed)
    steps = tsort.n_steps
    clips = clips or int(rng.integers(max(1, steps - 1), steps + 12))
    match = 2 * rng.normal(size=(steps, clips)) + 1
    match[rng.random(match.shape) < 0.05] = np.inf
    drop = 2 * rng.random(clips)
    drop[rng.random(clips) < 0.05] = np.inf
    skip = rng.normal(size=steps) + 1
    skip[rng.random(steps) < 0.2] = np.inf
    return match.astype(dtype), drop.astype(dtype), skip.astype(dtype) if skips else None


def soft_costs(tsorts: Any, matches: Any, drops: Any, skips: Any, **options: Any) -> list[SoftCost]:
    """Return the soft costs of videos that are given by columns."""
    videos = [ClipCosts(*costs) for costs in zip(matches, drops, skips, strict=True)]
    return alignment.soft_costs(list(zip(tsorts, videos, strict=True)), **options)


def check(found: SoftCost, tsort: TSortGraph, video: Any, tolerance: tuple[float, float], **options: Any) -> None:
    torch = pytest.importorskip("torch")
    from benchmarks.torch_reference import reference_cost

    costs = [None if part is None else torch.tensor(part.astype(np.float64), requires_grad=True) for part in video]
    expected = reference_cost(tsort, *costs, **options)
    gradients = (found.match, found.drop, found.skip)
    if not torch.isfinite(expected):
        assert found.cost == np.inf
        assert all((gradient == 0).all() for gradient in gradients)  # type: ignore[union-attr]
        return
    expected.backward()
    assert found.cost == pytest.approx(expected.item(), rel=tolerance[0], abs=tolerance[0])
    for cost, gradient in zip(costs, gradients, strict=True):
        assert gradient is not None
        assert np.isfinite(gradient).all()
        if cost is not None:
            assert np.abs(gradient - cost.grad.numpy()).max() < tolerance[1]


@settings(deadline=None, max_examples=80)
@given(
    flows=st.lists(dags(max_steps=5), min_size=1, max_size=3),
    videos=st.lists(st.tuples(SEEDS, st.booleans()), min_size=1, max_size=11),
    dtype=st.sampled_from([np.float32, np.float64]),
    gamma=st.floats(1e-2, 10),
    smoothing=SMOOTHINGS,
    contiguous=st.booleans(),
    workers=st.integers(1, 2),
)
def test_batches_of_graphs_and_lengths_give_the_reference(
    flows: list[FlowGraph],
    videos: list[tuple[int, bool]],
    dtype: Any,
    gamma: float,
    smoothing: str,
    contiguous: bool,
    workers: int,
) -> None:
    compiled = [TSortGraph.compile(flow) for flow in flows]
    tsorts = [compiled[seed % len(compiled)] for seed, _ in videos]
    costs = [random_video(seed, tsort, dtype, skips) for (seed, skips), tsort in zip(videos, tsorts, strict=True)]
    options: dict[str, Any] = {"gamma": gamma, "smoothing": smoothing, "contiguous": contiguous}
    found = soft_costs(tsorts, *zip(*costs, strict=True), **options, workers=workers)
    tolerance = (1e-10, 1e-10) if dtype == np.float64 else (1e-5, 1e-3)
    for result, tsort, video in zip(found, tsorts, costs, strict=True):
        check(result, tsort, video, tolerance, **options)


@settings(deadline=None, max_examples=30)
@given(flow=dags(max_steps=7), seed=SEEDS, smoothing=SMOOTHINGS, contiguous=st.booleans(), exponent=st.floats(-3, 1))
def test_no_gamma_gives_nan(flow: FlowGraph, seed: int, smoothing: str, contiguous: bool, exponent: float) -> None:
    tsort = TSortGraph.compile(flow)
    for dtype in (np.float32, np.float64):
        video = random_video(seed, tsort, dtype, skips=seed % 2 == 0, clips=40)
        (found,) = soft_costs(
            [tsort], *([part] for part in video), gamma=10**exponent, smoothing=smoothing, contiguous=contiguous
        )
        assert not np.isnan(found.cost)
        for gradient in (found.match, found.drop, found.skip):
            assert gradient is not None and np.isfinite(gradient).all()


@settings(deadline=None, max_examples=40)
@given(flow=dags(max_steps=5), seed=SEEDS, smoothing=SMOOTHINGS, contiguous=st.booleans(), skips=st.booleans())
def test_checkpoints_change_nothing(flow: FlowGraph, seed: int, smoothing: str, contiguous: bool, skips: bool) -> None:
    tsort = TSortGraph.compile(flow)
    video = [[part] for part in random_video(seed, tsort, np.float64, skips, clips=50)]
    options: dict[str, Any] = {"gamma": 0.5, "smoothing": smoothing, "contiguous": contiguous}
    (whole,) = soft_costs([tsort], *video, **options)
    column = 32 * (3 * (tsort.n_ideals + 1) + tsort.n_states)
    beside = 64 * 50 * (tsort.n_steps + 1)  # costs and gradients
    (parts,) = soft_costs([tsort], *video, **options, memory_limit=20 * column + beside)
    assert parts.cost == pytest.approx(whole.cost, rel=1e-12)
    for one, other in ((whole.match, parts.match), (whole.drop, parts.drop), (whole.skip, parts.skip)):
        assert np.abs(one - other).max() < 1e-12  # type: ignore[operator]
    with pytest.raises(TooLargeError, match="memory_limit"):
        soft_costs([tsort], *video, **options, memory_limit=8)


@settings(deadline=None, max_examples=40)
@given(flow=dags(max_steps=6), seed=SEEDS, contiguous=st.booleans(), skips=st.booleans())
def test_softmin_gives_the_posterior_of_the_reference(
    flow: FlowGraph, seed: int, contiguous: bool, skips: bool
) -> None:
    tsort = TSortGraph.compile(flow)
    video = random_video(seed, tsort, np.float64, skips, clips=12)
    cost, probability, start = _reference.forward_backward(tsort, ClipCosts(*video), contiguous=contiguous, gamma=0.7)
    options: dict[str, Any] = {"gamma": 0.7, "smoothing": "softmin", "contiguous": contiguous}
    (found,) = soft_costs([tsort], *([part] for part in video), **options, starts=contiguous)
    if contiguous:
        assert np.abs(found.start - start).max() < 1e-9  # type: ignore[operator]
    assert found.cost == pytest.approx(cost, rel=1e-9, abs=1e-9)
    assert np.abs(np.vstack([found.match, found.drop]) - probability).max() < 1e-9  # type: ignore[list-item]


@settings(deadline=None, max_examples=30)
@given(flow=dags(max_steps=6), seed=SEEDS, smoothing=SMOOTHINGS, contiguous=st.booleans())
def test_small_gamma_gives_the_exact_alignment(flow: FlowGraph, seed: int, smoothing: str, contiguous: bool) -> None:
    tsort = TSortGraph.compile(flow)
    rng = np.random.default_rng(seed)
    match, drop = rng.random((len(flow), 20)), rng.random(20)
    (found,) = soft_costs([tsort], [match], [drop], [None], gamma=1e-3, smoothing=smoothing, contiguous=contiguous)
    exact = align(tsort, match, drop, contiguous=contiguous)
    assert found.cost == pytest.approx(exact.cost, abs=0.2)
    (sharp,) = soft_costs([tsort], [match], [drop], [None], gamma=1e-7, smoothing=smoothing, contiguous=contiguous)
    assert sharp.cost == pytest.approx(exact.cost, abs=1e-4)
    labels = np.vstack([sharp.match, sharp.drop]).argmax(0)  # type: ignore[list-item]
    assert np.where(labels == len(flow), -1, labels).tolist() == exact.labels.tolist()


def test_long_videos_stay_precise_in_float32() -> None:
    tsort = TSortGraph.compile(FlowGraph.from_edges(list("abcdef"), [(0, 1), (2, 3), (1, 5), (3, 5), (4, 5)]))
    rng = np.random.default_rng(5)
    match, drop = 3 * rng.random((6, 3000)), 3 * rng.random(3000)
    for smoothing in ("softmin", "smoothmin"):
        for contiguous in (True, False):
            options: dict[str, Any] = {"gamma": 0.01, "smoothing": smoothing, "contiguous": contiguous}
            (exact,) = soft_costs([tsort], [match], [drop], [None], **options)
            single = [[part.astype(np.float32)] for part in (match, drop)]
            (rounded,) = soft_costs([tsort], *single, [None], **options)
            (same,) = soft_costs([tsort], *([part[0].astype(np.float64)] for part in single), [None], **options)
            assert rounded.cost == pytest.approx(exact.cost, rel=1e-5)
            assert np.abs(rounded.match - same.match).max() < 1e-3  # type: ignore[operator]


@pytest.mark.parametrize("gamma", [0, -1, np.nan, np.inf, True, "soft"])
def test_impossible_gammas_are_refused(gamma: Any) -> None:
    tsort = TSortGraph.compile(FlowGraph.chain(["a"]))
    with pytest.raises(InputError, match="gamma must be"):
        soft_costs([tsort], [np.ones((1, 2))], [np.ones(2)], [None], gamma=gamma, smoothing="softmin", contiguous=True)


def test_unknown_smoothings_are_refused() -> None:
    tsort = TSortGraph.compile(FlowGraph.chain(["a"]))
    with pytest.raises(InputError, match="unknown smoothing 'mean'; known: softmin, smoothmin"):
        soft_costs([tsort], [np.ones((1, 2))], [np.ones(2)], [None], gamma=1, smoothing="mean", contiguous=True)
