"""Numbers at the edge of what floating point holds, and scalars and arrays of unusual kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graph2vid as g2v
from graph2vid.alignment import ClipCosts, clip_costs
from graph2vid.errors import InputError

CHAIN = g2v.FlowGraph.chain(["a", "b", "c"])
BAG = g2v.FlowGraph.bag(["a", "b", "c"])


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize(("offset", "clips"), [(1e4, 20_000), (1e6, 200)])
def test_single_precision_far_from_zero(offset: float, clips: int, many: bool) -> None:
    random = np.random.default_rng(0)
    match = (offset + random.random((3, clips))).astype(np.float32)
    drop = (offset + 0.3 * random.random(clips)).astype(np.float32)
    exact = g2v.align(BAG, match.astype(np.float64), drop.astype(np.float64))
    found = g2v.align_many(BAG, [match, match], [drop, drop])[1] if many else g2v.align(BAG, match, drop)
    assert found.labels.tolist() == exact.labels.tolist()
    assert found.cost == exact.cost
    assert found.options["dtype"] == "float64"


def test_single_precision_stays_where_it_is_enough() -> None:
    random = np.random.default_rng(0)
    match = random.random((3, 20_000), np.float32)
    assert g2v.align(BAG, match, np.float32(0.3)).options["dtype"] == "float32"
    constant = np.full((3, 50), 1e6, np.float32)  # nothing to be told apart
    assert g2v.align(BAG, constant, np.float32(1e6)).options["dtype"] == "float32"


def test_single_precision_is_enough_by_one_rule() -> None:
    """Sums up to 2¹⁸ times the median difference between the labels of a clip; what is forbidden does not count."""
    random = np.random.default_rng(0)
    widened = 0
    for case in range(300):
        steps, clips = random.integers(1, 5), random.integers(1, 30)
        match = random.normal(10.0 ** random.integers(-3, 8), 10.0 ** random.integers(-6, 3), (steps, clips))
        drop = random.normal(match.mean(), 10.0 ** random.integers(-6, 3), clips)
        match[random.random(match.shape) < 0.3 * (case % 3 == 0)] = np.inf
        drop[random.random(clips) < 0.3 * (case % 5 == 0)] = np.inf
        costs = ClipCosts(match.astype(np.float32), drop.astype(np.float32), None)
        columns = np.vstack(costs[:2]).astype(np.float64).T
        finite = [column[column < np.inf] for column in columns if (column < np.inf).any()]
        apart = [np.ptp(column) for column in finite if np.ptp(column) > 0]
        largest = sum(np.abs(column).max() for column in finite)
        needs_more = bool(apart) and largest > 2.0**18 * float(np.median(apart))
        assert (clip_costs.widened(costs) is not costs) == needs_more
        widened += needs_more
    assert 20 < widened < 280


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_gammas_are_right_or_refused(backend: str) -> None:
    """Three steps in four clips: which clip is double, or which one is background."""
    match = np.ones((3, 4))
    for gamma in (1e-7, 1e-3, 1.0, 1e6, 1e11):  # all cost the same: 7 sequences, one of which begins with background
        found = g2v.posterior(CHAIN, match, 1.0, gamma=gamma, backend=backend)
        assert found.probability[0, 0] == pytest.approx(6 / 7)
        assert found.cost == pytest.approx(4 - gamma * np.log(7))
    for gamma in (1e-18, 1e-300, 1e290, 1e308):
        with pytest.raises(InputError, match=r"gamma=.* is (lost in the rounding of|so large that)"):
            g2v.posterior(CHAIN, match, 1.0, gamma=gamma, backend=backend)


@pytest.mark.parametrize("gamma", [1.0, 1e-3])
def test_a_stream_knows_what_comes_next_whatever_skips_cost(gamma: float) -> None:
    stream = g2v.Stream(BAG, [-800.0, 0.0, 800.0], gamma=gamma)
    stream.push([1.0, 1.0, 1.0], 0.5)
    assert np.isfinite(stream.next).all() and stream.next.sum() <= 1 + 1e-9
    assert np.isfinite(stream.posterior).all()


@pytest.mark.parametrize("seed", range(30))
def test_a_stream_breaks_ties_of_rounding_as_align_does(seed: int) -> None:
    random = np.random.default_rng(seed)
    match = random.integers(0, 4, (3, 30)) * 0.1  # 0.1 + 0.2 is not 0.3
    drop = random.integers(1, 4, 30) * 0.1
    skip = None if seed % 2 else np.full(3, 0.3)
    stream = g2v.Stream(BAG, skip)
    for clip in range(30):
        stream.push(match[:, clip], drop[clip])
    found, expected = stream.finish(), g2v.align(BAG, match, drop, skip)
    assert found.labels.tolist() == expected.labels.tolist()
    assert found.cost == expected.cost


def test_numbers_of_numpy_are_numbers() -> None:
    match = np.random.default_rng(0).random((3, 9))
    expected = g2v.align(CHAIN, match, 1.0, 2.0)
    for one in (np.float32(1), np.int64(1), np.array(1.0)):
        (found,) = g2v.align_many(CHAIN, [match], one, np.float32(2))
        assert found.labels.tolist() == expected.labels.tolist()


def test_masked_arrays_are_refused() -> None:
    match = np.ma.masked_less(np.random.default_rng(0).random((3, 9)), 0.2)
    calls: list[Any] = [
        lambda: g2v.align(CHAIN, match, 1.0),
        lambda: g2v.align(CHAIN, match.data, np.ma.masked_array(np.ones(9), [True] * 9)),
        lambda: g2v.posterior(CHAIN, match, 1.0),
        lambda: g2v.align_many(CHAIN, [match], 1.0),
        lambda: g2v.k_best(CHAIN, match, 1.0),
    ]
    for call in calls:
        with pytest.raises(InputError, match="is a masked array: fill what is masked"):
            call()
    nothing_masked = np.ma.masked_array(match.data, False)
    assert g2v.align(CHAIN, nothing_masked, 1.0).cost == g2v.align(CHAIN, match.data, 1.0).cost


@pytest.mark.parametrize("workers", [0, -5, True, 1.5])
def test_workers_are_at_least_one_on_every_path(workers: Any) -> None:
    match = np.random.default_rng(0).random((3, 9))
    options: list[dict[str, Any]] = [{}, {"repeat": 1.0}, {"method": "brute"}, {"method": "anytime"}, {"durations": 2}]
    for option in options:
        with pytest.raises(InputError, match="workers must be a whole number of at least 1"):
            g2v.align(CHAIN, match, 1.0, workers=workers, **option)
    for option in ({}, {"repeats": 1.0}):
        with pytest.raises(InputError, match="workers must be a whole number of at least 1"):
            g2v.align_many(CHAIN, [match], 1.0, workers=workers, **option)
