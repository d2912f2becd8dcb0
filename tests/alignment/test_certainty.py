"""Margins of segments and the best orders, against every label sequence written down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graph2vid.alignment import Constraint, Problem, align, k_best, margins
from graph2vid.errors import InfeasibleError, InputError, TooLargeError
from graph2vid.flow import FlowGraph
from graph2vid.selfcheck import Case, make_case
from graph2vid.selfcheck.enumerate import count_sequences, labels_cost
from sequences import double_case, legal_sequences, order_of, sequences_with_costs

CASES = range(300)


def options_of(case: Case) -> dict[str, Any]:
    return {
        "repeat": case.repeat,
        "durations": case.durations,
        "violation": case.violation,
        "constraints": [Constraint(*rule) for rule in case.rules],
    }


def test_margins_are_those_of_enumeration() -> None:
    checked = 0
    for index in CASES:
        case = double_case(3, index)
        known = sequences_with_costs(case)
        if not known:
            continue
        options = options_of(case)
        found = align(case.flow, *case.costs, **options)
        expected = []
        for segment in found.segments:
            others = [cost for cost, labels in known if segment.step not in labels[segment.start : segment.stop]]
            expected.append(min(others, default=np.inf) - found.cost)
        assert margins(case.flow, *case.costs, found=found, **options) == pytest.approx(expected, abs=1e-9), case
        checked += len(expected)
    assert checked > 200


def test_best_orders_are_those_of_enumeration() -> None:
    several = 0
    for index in CASES:
        case = double_case(5, index)
        known = sequences_with_costs(case)
        best: dict[tuple[int, ...], float] = {}
        for cost, labels in known:
            best[order_of(labels)] = min(best.get(order_of(labels), np.inf), cost)
        if not best:
            with pytest.raises(InfeasibleError):
                k_best(case.flow, *case.costs, **options_of(case))
            continue
        found = k_best(case.flow, *case.costs, k=4, **options_of(case))
        assert len(found) == min(4, len(best)), case
        assert [one.cost for one in found] == pytest.approx(sorted(best.values())[:4], abs=1e-9), case
        assert len({one.order for one in found}) == len(found)
        by_labels = {labels: cost for cost, labels in known}
        for one in found:
            assert one.cost == pytest.approx(best[one.order], abs=1e-9)
            assert one.cost == pytest.approx(by_labels[tuple(one.labels.tolist())], abs=1e-9)
        several += len(found) > 1
    assert several > 100


def test_the_best_of_all_orders_is_the_alignment() -> None:
    random = np.random.default_rng(0)
    flow = FlowGraph.from_edges([f"step {i}" for i in range(9)], [(0, 3), (1, 3), (2, 4), (5, 6), (6, 7)])
    match, drop = random.normal(size=(9, 60)), 0.5
    found = k_best(flow, match, drop, skip=4.0, k=8)
    assert found[0].labels.tolist() == align(flow, match, drop, skip=4.0).labels.tolist()
    assert found[0].cost == pytest.approx(align(flow, match, drop, skip=4.0).cost)
    costs = [one.cost for one in found]
    assert costs == sorted(costs)
    # No order is cheaper than the second best, unless it is the best: each is tried alone.
    second = found[1].order
    chain = FlowGraph.chain([str(step) for step in second])
    others = 4.0 * (9 - len(second))
    assert align(chain, match[list(second)], drop).cost + others == pytest.approx(found[1].cost)


def test_all_orders_of_a_bag_and_bad_input() -> None:
    flow = FlowGraph.bag(["a", "b", "c"])
    match = np.arange(12.0).reshape(3, 4)
    assert len(k_best(flow, match, 1.0, k=100)) == 6
    with pytest.raises(InputError, match="k must be a whole number"):
        k_best(flow, match, 1.0, k=0)
    with pytest.raises(TooLargeError):
        k_best(flow, match, 1.0, memory_limit=10)
    assert margins(flow, match, 0.0, 0.0, found=align(flow, match + 1, 0.0, 0.0)).shape == (0,)


def test_best_orders_with_background_inside_steps_are_those_of_enumeration() -> None:
    checked = 0
    for index in range(250):
        case = make_case(12, index)
        if count_sequences(*case.costs.match.shape) > 4000:
            continue
        known = legal_sequences(case, contiguous=False)
        best: dict[tuple[int, ...], float] = {}
        for labels, cost in zip(known, labels_cost(np.array(known), *case.costs.astype(np.float64)), strict=True):
            if cost < np.inf:
                best[order_of(labels)] = min(best.get(order_of(labels), np.inf), float(cost))
        problem = Problem(case.flow, *case.costs, contiguous=False)
        if not best:
            with pytest.raises(InfeasibleError):
                problem.k_best(3)
            continue
        found = problem.k_best(3)
        assert [one.cost for one in found] == pytest.approx(sorted(best.values())[:3], abs=1e-5), case
        for one in found:
            assert one.cost == pytest.approx(best[one.order], abs=1e-5)
            assert one.cost == pytest.approx(labels_cost(one.labels[None], *case.costs)[0], abs=1e-5)
            assert tuple(one.labels.tolist()) in known
        checked += 1
    assert checked > 80
