"""Graphs compared with the orders in which people do things."""

from __future__ import annotations

import pytest

from graph2vid.datasets.crosstask import Executions
from graph2vid.evaluate.counts import Counts
from graph2vid.evaluate.parsed import ParsedGraphs
from graph2vid.evaluate.parser.executions import admits, compare_with_executions, known_pairs
from graph2vid.flow import FlowGraph
from toys import make_task

INSTRUCTIONS = ("wash", "cut", "boil", "mix", "serve")


@pytest.mark.parametrize(
    ("order", "allowed"),
    [((0, 1, 2), True), ((2, 0, 1), True), ((1, 0, 2), False), ((3, 0), False), ((3,), True), ((), True)],
)
def test_admits(order: tuple[int, ...], allowed: bool) -> None:
    flow = FlowGraph.from_edges([*"abcd"], [(0, 1), (1, 3), (2, 3)])  # 0 before 3 by what is not shown
    assert admits(flow, order) is allowed


def test_known_pairs_by_hand() -> None:
    # step 0 stands for instructions 0 and 1, step 1 for 2, step 2 for 3; 4 is never shown
    task = make_task(steps=("a", "b", "c"), procedure=INSTRUCTIONS, correspondence=[(0, 1), (2,), (3,)])
    orders = [(0, 1, 2, 3), (0, 1, 2), (2, 3), (3, 0, 1)]
    pairs = known_pairs(task, orders, min_support=2)
    assert pairs.never_violated == {(0, 2), (1, 2), (2, 3)}
    # 0 and 1 come as one step; 0 and 3 are seen both ways
    assert pairs.known == {(0, 2), (2, 0), (1, 2), (2, 1), (2, 3), (3, 2), (0, 3), (3, 0), (1, 3), (3, 1)}
    assert known_pairs(task, orders, min_support=3).never_violated == frozenset()


def test_by_hand() -> None:
    task = make_task(
        steps=("a", "b", "c", "d"),
        procedure=INSTRUCTIONS,
        correspondence=[(0,), (1,), (), (3,)],
        manual=[(0, 3), (1, 3), (2, 3), (3, 4)],
    )
    orders = ((0, 1, 3),) * 4 + ((1, 0, 3),) * 3 + ((3, 0),) * 2 + ((2, 1),)
    other = make_task("tea", steps=("a", "b"), manual=[(0, 1)])
    found = compare_with_executions([Executions(task, orders), Executions(other, ())], ParsedGraphs(["linear", "bag"]))
    document = found.to_json()
    assert (document["executions"], document["executions_of_two"]) == (10, 9)
    assert document["step_list_admitted"] == 0.4
    sources = document["sources"]
    assert sources["linear"]["admitted"] == pytest.approx(0.5)  # four, and the one with a single mapped step
    assert sources["linear"]["admitted_of_two"] == pytest.approx(4 / 9)
    assert sources["manual"]["admitted"] == pytest.approx(0.8)
    assert sources["bag"]["admitted"] == 1
    # numbers of orders: linear 1 and 1, manual 3! and 1, bag 5! and 2
    assert sources["linear"]["sorts_median"] == 1
    assert sources["manual"]["sorts_median"] == 3.5
    assert sources["bag"]["sorts_median"] == 61
    assert sources["manual"]["bag_sorts_ratio"] == pytest.approx(61 / 3.5)
    # pairs seen five times or more: 0-1 both ways (7), 0-3 both ways (9), 1-3 never violated (7)
    assert found.sources["manual"]["salad"].pairs == Counts(right=1, predicted=2, gold=1)
    assert found.sources["linear"]["salad"].pairs == Counts(right=1, predicted=3, gold=1)
    tea = document["tasks"][1]
    assert tea["executions"] == 0
    assert tea["sources"]["manual"]["sorts"] == 1
