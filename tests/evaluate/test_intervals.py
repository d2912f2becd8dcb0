"""Means over videos and their intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graph2vid.errors import InputError
from graph2vid.evaluate import bootstrap_interval, mean_over_videos, paired_interval


def test_means_leave_out_what_is_not_defined() -> None:
    rows = [{"acc": 0.5, "iou": 0.25}, {"acc": math.nan, "iou": 0.75}]
    assert mean_over_videos(rows) == {"acc": 0.5, "iou": 0.5, "videos": 2}
    assert math.isnan(mean_over_videos([{"acc": math.nan}])["acc"])
    with pytest.raises(InputError, match="no videos"):
        mean_over_videos([])
    with pytest.raises(InputError, match="the same metrics"):
        mean_over_videos([{"acc": 1.0}, {"iou": 1.0}])


def test_the_interval_is_that_of_the_normal_law_where_it_holds() -> None:
    values = np.random.default_rng(5).normal(10.0, 2.0, size=400)
    found = bootstrap_interval(values, seed=3)
    half = 1.96 * values.std() / math.sqrt(400)
    assert found.mean == pytest.approx(values.mean())
    assert found.low == pytest.approx(found.mean - half, abs=0.02)
    assert found.high == pytest.approx(found.mean + half, abs=0.02)
    assert found.videos == 400 and found.level == 0.95


def test_the_seed_decides_and_blocks_do_not() -> None:
    values = np.random.default_rng(6).random(3000)
    assert bootstrap_interval(values, seed=1, samples=3000) == bootstrap_interval(values, seed=1, samples=3000)
    assert bootstrap_interval(values, seed=1) != bootstrap_interval(values, seed=2)


def test_few_videos() -> None:
    one = bootstrap_interval([0.5, math.nan])
    assert (one.mean, one.low, one.high, one.videos) == (0.5, 0.5, 0.5, 1)
    assert math.isnan(bootstrap_interval([]).mean)


def test_a_paired_interval_sees_what_two_single_ones_do_not() -> None:
    random = np.random.default_rng(7)
    base = random.random(60)
    better = base + 0.02 + 0.01 * random.random(60)
    assert bootstrap_interval(base).high > bootstrap_interval(better).low
    difference = paired_interval(better, base)
    assert 0.02 < difference.low < difference.mean < difference.high < 0.03
    with pytest.raises(InputError, match=r"\(2,\) and \(3,\) must be of the same videos"):
        paired_interval([1.0, 2.0], [1.0, 2.0, 3.0])
