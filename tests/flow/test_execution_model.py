"""The probability of executions under a flow graph, against enumeration, and the graphs that it finds."""

from __future__ import annotations

import math
from itertools import chain, combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dags import dags
from graph2vid.errors import GraphError
from graph2vid.flow import Execution, ExecutionModel, FlowGraph, log_likelihood, mine_executions
from graph2vid.flow.execution_model import _choices, _closure, _Seen
from graph2vid.tsort import TSortGraph, random_sorts

PLAIN = ExecutionModel(habit=0.0, error=1e-12)


def chance_by_hand(
    flow: FlowGraph, order: tuple[int, ...], weights: list[float], error: float, apart: frozenset[frozenset[int]]
) -> float:
    """Return the probability of the choices of one execution; the pairs in ``apart`` overlap."""
    before = {step: {a for a, b in flow.transitive_closure().edges if b == step} for step in range(len(flow))}
    found, done = 1.0, set[int]()
    for step in order:
        left = [other for other in order if other not in done]
        free = [
            other
            for other in left
            if all(
                earlier in done or earlier not in order or frozenset((earlier, other)) in apart
                for earlier in before[other]
            )
        ]
        among_free = weights[step] / sum(weights[other] for other in free) if step in free else 0.0
        found *= (1 - error) * among_free + error * weights[step] / sum(weights[other] for other in left)
        done.add(step)
    return found


def subsets(count: int) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(range(count), size) for size in range(count + 1)))


@settings(max_examples=30, deadline=None)
@given(dags(max_steps=4), st.floats(0, 5), st.floats(0.001, 0.5), st.integers(0, 2**32 - 1))
def test_choices_are_those_by_hand_and_sum_to_one(flow: FlowGraph, habit: float, error: float, seed: int) -> None:
    model = ExecutionModel(habit, error)
    random = np.random.default_rng(seed)
    for shown in subsets(len(flow)):
        orders = list(permutations(shown))
        starts = random.uniform(0, 4, len(flow))
        ends = starts + random.uniform(0.1, 3, len(flow))
        apart = frozenset(
            frozenset((a, b)) for a, b in combinations(shown, 2) if starts[a] < ends[b] and starts[b] < ends[a]
        )
        seen = _Seen.of([list(order) for order in orders], flow.steps)
        for pair in apart:  # steps that overlap do not wait for each other
            a, b = pair
            seen.free_from[:, a, b] = seen.free_from[:, b, a] = 0
        weights = seen.choice_weights(habit).tolist()
        total = 0.0
        for at, order in enumerate(orders):
            seen.weight[:] = np.arange(len(orders)) == at
            here = _choices_with(seen, flow, model, weights)
            assert here == pytest.approx(math.log(chance_by_hand(flow, order, weights, error, apart)), abs=1e-9)
            total += math.exp(here)
        assert total == pytest.approx(1)


def _choices_with(seen: _Seen, flow: FlowGraph, model: ExecutionModel, weights: list[float]) -> float:
    """Return the log-probability with given choice weights rather than those of the execution itself."""
    seen.choice_weights = lambda habit: np.array(weights)  # type: ignore[method-assign]
    return float(_choices(seen, _closure(flow)[None], model)[0])


@settings(max_examples=30, deadline=None)
@given(dags(max_steps=6), st.integers(0, 2**32 - 1))
def test_without_habit_each_order_is_one_way_through_the_tsort_graph(flow: FlowGraph, seed: int) -> None:
    """The sum over all legal orders, enumerated, is 1: no other order has a probability."""
    orders = [order for order in permutations(range(len(flow))) if _is_legal(flow, order)]
    assert len(orders) == TSortGraph.compile(flow).n_sorts
    total = sum(math.exp(log_likelihood(flow, [list(order)], PLAIN)) for order in orders)
    assert total == pytest.approx(1)


def _is_legal(flow: FlowGraph, order: tuple[int, ...]) -> bool:
    return all(order.index(a) < order.index(b) for a, b in flow.edges)


def test_skips_and_repeats_sum_to_one_over_all_executions() -> None:
    flow = FlowGraph.from_edges(["a", "b"], [(0, 1)])
    seen = _Seen.of([["1", "2"], ["1", "2", "1"], ["2"]], flow.steps)
    rates = seen.skip_rates()
    assert rates == (pytest.approx(1 / 3), 0.0)
    rate = 1 / 6  # one repeat among six segments
    total = 0.0
    for shown in subsets(2):
        chance_of_shown = math.prod(1 - rates[step] if step in shown else rates[step] for step in range(2))
        for length, order in product(range(12), permutations(shown)):
            if shown:  # how often a repeat comes after each of the steps
                ways = sum(1 for _ in combinations(range(length + len(shown) - 1), len(shown) - 1))
                total += chance_of_shown * (order == shown) * ways * rate**length * (1 - rate) ** len(shown)
    assert total == pytest.approx(1, abs=1e-6)
    by_hand = 2 * (math.log(2 / 3)) + math.log(1 / 3) + math.log(rate) + 5 * math.log(1 - rate) - math.log(2)
    assert log_likelihood(flow, [["1", "2"], ["1", "2", "1"], ["2"]], PLAIN) == pytest.approx(by_hand, abs=1e-6)


@settings(max_examples=15, deadline=None)
@given(dags(max_steps=6), st.integers(0, 2**32 - 1))
def test_many_executions_give_the_graph(flow: FlowGraph, seed: int) -> None:
    orders = random_sorts(TSortGraph.compile(flow), 150, np.random.default_rng(seed))
    mined = mine_executions(orders, flow.steps, model=ExecutionModel(habit=0.0), bootstrap=0)
    assert mined.flow.edges == flow.transitive_reduction().edges


def test_one_contradiction_does_not_remove_a_precedence() -> None:
    sequences = [["a", "b", "c"], ["a", "c", "b"]] * 10 + [["b", "a", "c"]]
    mined = mine_executions(sequences, model=ExecutionModel(habit=0.0))
    assert mined.flow.edges == ((0, 1), (0, 2))
    assert mined.honoured[0, 1] == 20
    assert mined.support[0, 1] == 21
    assert 0.5 < mined.confidence[0, 1] <= 21 / 23


def test_steps_that_overlap_do_not_contradict() -> None:
    apart = [Execution((("a", 0, 10), ("b", 12, 15)))] * 6
    beside = [Execution((("a", 0, 10), ("b", 2, 5)))] * 6
    assert mine_executions([*apart, *beside]).flow.edges == ((0, 1),)
    assert mine_executions(beside).flow.edges == ()


def test_a_prior_decides_where_executions_do_not() -> None:
    sequences = [["a", "b", "c", "d"], ["b", "a", "d", "c"], ["a", "b", "d", "c"]]
    worth = np.zeros((4, 4))
    worth[1, 3] = 5
    assert (1, 3) in mine_executions(sequences, prior=worth).flow.edges


def test_what_else_is_learned() -> None:
    mined = mine_executions([Execution((("a", 0, 10), ("b", 10, 30), ("b", 40, 80))), Execution((("a", 5, 15),))])
    assert mined.skip_rates == (0.0, 0.5)
    assert mined.durations[0] == pytest.approx((10, 0))
    assert mined.durations[1] == pytest.approx((math.sqrt(20 * 40), math.log(2) / 2))


def test_weights_count_executions() -> None:
    plain = mine_executions([["a", "b", "c"], ["a", "c", "b"]] * 4, bootstrap=0)
    weighted = mine_executions(
        [Execution(Execution.of(order).segments, 4.0) for order in (["a", "b", "c"], ["a", "c", "b"])], bootstrap=0
    )
    assert weighted.flow == plain.flow
    assert weighted.score == pytest.approx(plain.score)


def test_same_seed_same_confidence() -> None:
    sequences = [["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"], ["a", "b", "c"]]
    assert mine_executions(sequences, seed=3) == mine_executions(sequences, seed=3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ExecutionModel(error=0.0), "error"),
        (lambda: ExecutionModel(habit=-1.0), "habit"),
        (lambda: ExecutionModel(edge_cost=math.nan), "edge_cost"),
        (lambda: Execution((("a", 3.0, 1.0),)), "from 3.0 to 1.0"),
        (lambda: Execution((), 0.0), "weight"),
        (lambda: mine_executions([]), "nothing to mine"),
        (lambda: mine_executions(["ab"]), "must be a list of steps"),
        (lambda: mine_executions([["a", "z"]], [("a", "do a")]), "execution 0: unknown step 'z'"),
        (lambda: mine_executions([["a", "b"]], prior=np.zeros((3, 3))), "2 × 2"),
    ],
)
def test_bad_input(make: object, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        make()  # type: ignore[operator]
