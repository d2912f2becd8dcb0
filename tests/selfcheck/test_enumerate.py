"""The oracle itself, against answers found by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graph2vid.flow import FlowGraph
from graph2vid.selfcheck.enumerate import enumerate_alignments, is_legal, labels_cost

CHAIN = FlowGraph.chain(["a", "b"])
BAG = FlowGraph.bag(["a", "b"])


@pytest.mark.parametrize(
    ("labels", "contiguous", "legal"),
    [
        ([0, 1], True, True),
        ([-1, 0, 0, -1, 1, -1], True, True),
        ([0, -1, 0, 1], True, False),
        ([0, -1, 0, 1], False, True),
        ([1, 0], True, False),
        ([0, 1, 0], False, False),
        ([0, 0], True, True),  # b is not shown, which costs what a skip costs
        ([-1, -1], False, True),
        ([0, 2], True, False),
    ],
)
def test_legal(labels, contiguous, legal):
    assert is_legal(CHAIN, np.array(labels), contiguous) is legal


def test_order_holds_across_what_is_not_shown():
    chain = FlowGraph.chain(["a", "b", "c"])
    assert is_legal(chain, np.array([0, 2]), True)
    assert not is_legal(chain, np.array([2, 0]), True)


@pytest.mark.parametrize(
    ("rule", "legal"),
    [
        (("within", 0, 0, 2), True),
        (("within", 0, 0, 1), False),
        (("forbid", 0, 2, 5), True),
        (("forbid", 1, 2, 5), False),
        (("background", None, 2, 3), True),
        (("background", None, 2, 4), False),
        (("show", 0, 0, 2), True),
        (("show", 0, 0, 3), False),
    ],
)
def test_constraints(rule, legal):
    assert is_legal(CHAIN, np.array([0, 0, -1, 1, -1]), True, [rule]) is legal


def test_cost():
    match, drop = np.array([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]]), np.array([64.0, 128.0, 256.0])
    labels = np.array([[0, 0, 1], [-1, 1, -1]])
    assert labels_cost(labels, match, drop, None).tolist() == [35, math.inf]
    assert labels_cost(labels, match, drop, np.array([512.0, 1024.0])).tolist() == [35, 64 + 16 + 256 + 512]


def test_counts_each_label_sequence_once():
    """With all costs 0, the soft cost is minus the log of the number of alignments."""
    free = np.zeros((2, 3)), np.zeros(3)
    # Two runs in three clips: two with a longer first or second one, three with a background clip.
    assert enumerate_alignments(CHAIN, *free, None, contiguous=True).soft_cost == pytest.approx(-math.log(5))
    assert enumerate_alignments(BAG, *free, None, contiguous=True).soft_cost == pytest.approx(-math.log(10))
    # And with skips: nothing, or one step alone with 1 + 2 + 3 runs.
    skip = np.zeros(2)
    assert enumerate_alignments(CHAIN, *free, skip, contiguous=True).soft_cost == pytest.approx(
        -math.log(5 + 1 + 6 + 6)
    )
    # Background inside a step: one more sequence for each step alone.
    assert enumerate_alignments(CHAIN, *free, skip, contiguous=False).soft_cost == pytest.approx(
        -math.log(5 + 1 + 7 + 7)
    )


def test_posterior_by_hand():
    """One step in two clips: [0, -1], [-1, 0] and [0, 0] weigh ½, ¼ and ½."""
    match, drop = np.array([[0.0, math.log(2)]]), np.full(2, math.log(2))
    found = enumerate_alignments(FlowGraph.bag(["a"]), match, drop, None, contiguous=True)
    np.testing.assert_allclose(found.probability, [[0.8, 0.6], [0.2, 0.4]])
    assert found.labels is not None
    assert found.labels.tolist() == [0, -1]


def test_nothing_finite():
    found = enumerate_alignments(CHAIN, np.zeros((2, 1)), np.zeros(1), None, contiguous=True)
    assert (found.cost, found.labels, found.soft_cost) == (math.inf, None, math.inf)
    assert not found.probability.any()
