"""Precision, recall, F1, and intervals of it."""

from __future__ import annotations

import math

import pytest

from graph2vid.evaluate.counts import Counts, compare, f1_interval, total


def test_shares_by_hand() -> None:
    counts = compare("abcd", "bcxyz")
    assert counts == Counts(right=2, predicted=4, gold=5)
    assert (counts.precision, counts.recall) == (0.5, 0.4)
    assert counts.f1 == pytest.approx(2 * 0.5 * 0.4 / 0.9)
    assert compare(["a", "a"], ["a"]) == Counts(1, 1, 1)


def test_nothing_predicted_or_nothing_to_find() -> None:
    assert math.isnan(Counts(0, 0, 3).precision)
    assert Counts(0, 0, 3).f1 == 0
    assert math.isnan(Counts(0, 2, 0).recall)
    assert math.isnan(Counts().f1)


def test_sums_are_micro_averages() -> None:
    assert total([Counts(1, 2, 3), Counts(4, 5, 6)]) == Counts(5, 7, 9)


def test_intervals() -> None:
    same = [Counts(1, 2, 2)] * 5
    assert f1_interval(same) == (0.5, 0.5)
    low, high = f1_interval([Counts(0, 2, 2), Counts(2, 2, 2), Counts(1, 2, 2)])
    assert low == 0 < high == 1
    better = [Counts(2, 2, 2), Counts(1, 2, 2), Counts(2, 2, 2)]
    worse = [Counts(1, 2, 2), Counts(0, 2, 2), Counts(1, 2, 2)]
    assert f1_interval(better, worse) == (0.5, 0.5)  # the same texts are drawn for both
    assert all(math.isnan(end) for end in (*f1_interval([]), *f1_interval([Counts()])))
