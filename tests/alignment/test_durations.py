"""Durations: what segments cost by their length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graph2vid.alignment import Durations, Problem
from graph2vid.alignment.durations import check_durations
from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph


def test_least() -> None:
    made = Durations.least([1, 3], 2)
    assert made.length.tolist() == [[0.0, 0.0, 0.0], [np.inf, np.inf, 0.0]]
    assert made.at_least.tolist() == [1, 3]
    assert made.with_least(2).at_least.tolist() == [2, 3]
    assert made.rows([1]).at_least.tolist() == [3]


def test_log_normal_is_minus_the_log_of_its_shares() -> None:
    made = Durations.log_normal([10.0, 3.0], [0.4, 0.8], longest=400)
    assert (made.length.min(axis=1) == 0).all()
    assert abs(int(made.length[0].argmin()) + 1 - 10 * np.exp(-(0.4**2))) <= 1  # the mode of a log-normal
    share = np.exp(-made.length[0])
    share /= share.sum()
    lengths = np.arange(1, len(share) + 1)
    assert np.exp((share * np.log(lengths)).sum()) == pytest.approx(10, rel=0.03)
    twice = Durations.log_normal([10.0, 3.0], [0.4, 0.8], weight=2.0, longest=400)
    assert np.allclose(twice.length, 2 * made.length)
    short = Durations.log_normal([10.0, 3.0], [0.4, 0.8], longest=20)
    assert short.length.shape == (2, 20) and (short.tail >= 0).all()


def test_histogram() -> None:
    made = Durations.histogram([[0, 8, 2], [1]], smooth=0.5)
    assert made.length[0].tolist() == pytest.approx([np.log(17), 0.0, np.log(8.5 / 2.5)])
    assert made.length[1].argmin() == 0


def test_mined_from_runs() -> None:
    random = np.random.default_rng(0)
    often = np.exp(random.normal(np.log(20), 0.3, 400))
    made = Durations.mine([often, [2.0], []])
    most_probable = made.length.argmin(axis=1) + 1
    assert 14 <= most_probable[0] <= 21
    assert 2 < most_probable[1] <= most_probable[2] <= 21  # hardly seen: it leans on the others


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Durations(np.zeros(3), np.zeros(3)), "costs \\[steps, lengths\\]"),
        (lambda: Durations(np.full((1, 2), -1.0), np.zeros(1)), "at least 0"),
        (lambda: Durations(np.zeros((1, 2)), np.full(1, np.inf)), "finite"),
        (lambda: Durations(np.array([[0.0, np.inf]]), np.zeros(1)), "step 0 can have no length of 2"),
        (lambda: Durations.least(1.5, 1), "whole number"),
        (lambda: Durations.log_normal([0.0], [1.0]), "above 0"),
        (lambda: Durations.log_normal([1.0], [1.0], weight=-1), "weight"),
        (lambda: Durations.histogram([]), "histogram"),
        (lambda: Durations.mine([[], []]), "no segment of any step"),
    ],
)
def test_bad_input(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_what_is_free_needs_no_machine() -> None:
    for free in (None, 1, [1, 1], Durations(np.zeros((2, 5)), np.zeros(2))):
        assert check_durations(free, 2) is None
    for given in (2, [1, 2], Durations(np.zeros((2, 1)), np.ones(2))):
        assert check_durations(given, 2) is not None
    assert not Problem(FlowGraph.bag(["a", "b"]), np.zeros((2, 3)), 1.0, None, np.inf, 1, np.inf).is_extended
