"""The readable solver and brute force against plain enumeration, and against answers found by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dags import dags
from graph2vid.alignment import ClipCosts, _brute, _reference
from graph2vid.errors import TooLargeError
from graph2vid.flow import FlowGraph
from graph2vid.selfcheck.cases import make_case
from graph2vid.selfcheck.enumerate import enumerate_alignments, is_legal, labels_cost
from graph2vid.tsort import TSortGraph

INF = math.inf
BOTH = pytest.mark.parametrize("contiguous", [True, False])


def costs(match, drop, skip=None):
    return ClipCosts(np.array(match, float), np.array(drop, float), None if skip is None else np.array(skip, float))


def solve(flow, given_costs, contiguous=True, **options):
    cost, labels = _reference.solve(TSortGraph.compile(flow), given_costs, contiguous=contiguous, **options)
    return cost, None if labels is None else labels.tolist()


def brute(flow, given_costs, contiguous=True, **options):
    cost, labels = _brute.solve(flow, given_costs, contiguous=contiguous, **options)
    return cost, None if labels is None else labels.tolist()


def enumerated(flow, given_costs, contiguous=True):
    found = enumerate_alignments(flow, *given_costs, contiguous=contiguous)
    return found.cost, None if found.labels is None else found.labels.tolist()


@st.composite
def tiny_problems(draw):
    """Graphs and whole-numbered costs small enough to enumerate, with many ties."""
    flow = draw(dags(max_steps=4))
    n_clips = draw(st.integers(1, 5))
    number = st.sampled_from([0.0, 1.0, 2.0, 3.0, -1.0, INF])
    skip = draw(st.none() | st.lists(number, min_size=len(flow), max_size=len(flow)))
    match = draw(st.lists(number, min_size=len(flow) * n_clips, max_size=len(flow) * n_clips))
    drop = draw(st.lists(number, min_size=n_clips, max_size=n_clips))
    return flow, costs(np.reshape(match, (len(flow), n_clips)), drop, skip), draw(st.booleans())


@given(tiny_problems())
@settings(max_examples=150, deadline=None)
def test_equals_enumeration(problem):
    flow, given_costs, contiguous = problem
    expected = enumerated(flow, given_costs, contiguous)
    assert solve(flow, given_costs, contiguous) == expected
    assert brute(flow, given_costs, contiguous) == expected


@given(tiny_problems(), st.sampled_from([1e-3, 0.1, 1.0, 10.0]))
@settings(max_examples=100, deadline=None)
def test_posterior_equals_enumeration(problem, gamma):
    flow, given_costs, contiguous = problem
    expected = enumerate_alignments(flow, *given_costs, contiguous=contiguous, gamma=gamma)
    cost, probability, _ = _reference.forward_backward(
        TSortGraph.compile(flow), given_costs, contiguous=contiguous, gamma=gamma
    )
    assert cost == pytest.approx(expected.soft_cost, abs=1e-9)
    np.testing.assert_allclose(probability, expected.probability, atol=1e-9)
    if cost < INF:
        np.testing.assert_allclose(probability.sum(axis=0), 1)


@pytest.mark.parametrize("index", range(60))
def test_modes_agree(index):
    case = make_case(7, index)
    tsort, lowered = TSortGraph.compile(case.flow), case.lowered
    cost, labels = _reference.solve(tsort, lowered, contiguous=case.contiguous)
    for spacing in (1, 2, 5, 1000):
        again = _reference.solve(tsort, lowered, contiguous=case.contiguous, checkpoint=spacing)
        assert again[0] == cost
        np.testing.assert_array_equal(again[1], labels)
    assert _reference.solve(tsort, lowered, contiguous=case.contiguous, cost_only=True) == (cost, None)
    if labels is not None:
        assert labels.dtype == np.int64
        assert is_legal(case.flow, labels, case.contiguous, case.rules)
        assert labels_cost(labels[None], *lowered)[0] == pytest.approx(cost, rel=1e-4, abs=1e-4)


def test_worked_example():
    """Cutting in either order, then mixing; the second clip shows nothing."""
    flow = FlowGraph.from_edges(["cut tomato", "cut cucumber", "mix"], [(0, 2), (1, 2)])
    match = [[9, 9, 1, 9, 9], [1, 9, 9, 9, 9], [9, 9, 9, 1, 1]]
    assert solve(flow, costs(match, [3] * 5)) == (7, [1, -1, 0, 2, 2])


@BOTH
def test_several_sinks(contiguous):
    """Of two last steps either may come last; the order against the numbering is the cheaper one."""
    flow = FlowGraph.from_edges(["begin", "left", "right"], [(0, 1), (0, 2)])
    one_order = costs([[0, 9, 9], [9, 0, 9], [9, 9, 0]], [5] * 3)
    other_order = costs([[0, 9, 9], [9, 9, 0], [9, 0, 9]], [5] * 3)
    assert solve(flow, one_order, contiguous) == brute(flow, one_order, contiguous) == (0, [0, 1, 2])
    assert solve(flow, other_order, contiguous) == brute(flow, other_order, contiguous) == (0, [0, 2, 1])


def test_background_inside_a_step():
    flow = FlowGraph.chain(["stir", "pour"])
    given_costs = costs([[0, 9, 0, 9], [9, 9, 9, 0]], [4, 1, 4, 4])
    assert solve(flow, given_costs, contiguous=False) == (1, [0, -1, 0, 1])
    assert solve(flow, given_costs, contiguous=True) == (
        5,
        [0, -1, -1, 1],
    )  # and not [-1, -1, 0, 1]: the tie rule


class TestTies:
    """Among the cheapest the smallest labels, read from the last clip backwards, background first."""

    @BOTH
    def test_all_equal(self, contiguous):
        assert solve(FlowGraph.bag(list("ab")), costs(np.zeros((2, 4)), np.zeros(4)), contiguous) == (
            0,
            [1, 0, -1, -1],
        )

    @BOTH
    def test_an_edge_forces_the_order(self, contiguous):
        flow = FlowGraph.from_edges(list("ab"), [(0, 1)])
        assert solve(flow, costs(np.zeros((2, 4)), np.zeros(4)), contiguous) == (0, [0, 1, -1, -1])

    @BOTH
    def test_no_background(self, contiguous):
        """Step 0 takes the last clips, and as many as it can."""
        given_costs = costs(np.zeros((2, 4)), np.full(4, INF))
        assert solve(FlowGraph.bag(list("ab")), given_costs, contiguous) == (0, [1, 0, 0, 0])

    @BOTH
    def test_free_skips_win(self, contiguous):
        given_costs = costs(np.zeros((2, 3)), np.zeros(3), np.zeros(2))
        assert solve(FlowGraph.chain(list("ab")), given_costs, contiguous) == (0, [-1, -1, -1])

    def test_skip_against_show(self):
        """Waiving b after a and waiving a before b cost the same: the clip shows the smaller number."""
        given_costs = costs([[0], [0]], [9], [1, 1])
        assert solve(FlowGraph.chain(list("ab")), given_costs) == (1, [0])
        assert solve(FlowGraph.from_edges(list("ab"), [(1, 0)]), given_costs) == (1, [0])

    def test_background_does_not_choose_the_state(self):
        """Clips 2 and 3 are background whichever step came last; only clip 1 tells the two apart."""
        given_costs = costs([[0, 0, 9, 9], [0, 0, 9, 9]], [0] * 4)
        assert solve(FlowGraph.bag(list("ab")), given_costs, contiguous=False) == (0, [1, 0, -1, -1])
        assert enumerated(FlowGraph.bag(list("ab")), given_costs, False) == (0, [1, 0, -1, -1])


class TestNoFiniteAlignment:
    @BOTH
    def test_fewer_clips_than_steps(self, contiguous):
        flow, given_costs = FlowGraph.bag(list("abc")), costs(np.zeros((3, 2)), np.zeros(2))
        assert solve(flow, given_costs, contiguous) == brute(flow, given_costs, contiguous) == (INF, None)
        cost, probability, _ = _reference.forward_backward(
            TSortGraph.compile(flow), given_costs, contiguous=contiguous, gamma=1
        )
        assert cost == INF
        assert probability.shape == (4, 2)
        assert not probability.any()

    def test_skips_mend_it(self):
        given_costs = costs(np.zeros((3, 2)), np.full(2, 7), [5, 2, 2])
        assert solve(FlowGraph.bag(list("abc")), given_costs) == (2, [1, 0])

    def test_a_step_without_a_place(self):
        given_costs = costs([[0, 0], [INF, INF]], [0, 0])
        assert solve(FlowGraph.bag(list("ab")), given_costs) == (INF, None)


def test_waived_steps_still_order_their_neighbours():
    """a → b → c without b: c may still not come before a."""
    given_costs = costs([[9, 0], [9, 9], [0, 9]], [INF, INF], [20, 0, 20])
    assert solve(FlowGraph.chain(list("abc")), given_costs) == (18, [0, 2])
    assert solve(FlowGraph.from_edges(list("abc"), [(0, 1)]), given_costs) == (0, [2, 0])


@BOTH
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_more_steps_than_bits_in_a_word(contiguous, dtype):
    n_steps = 70
    rng = np.random.default_rng(0)
    given_costs = ClipCosts(
        rng.integers(0, 5, (n_steps, 90)).astype(dtype), np.full(90, 2, dtype), np.full(n_steps, 3, dtype)
    )
    flow = FlowGraph.from_edges([str(step) for step in range(n_steps)], [(s, s + 1) for s in range(n_steps - 1)])
    assert solve(flow, given_costs, contiguous) == brute(flow, given_costs, contiguous)


@pytest.mark.parametrize("index", range(40))
def test_small_gamma_gives_the_minimum(index):
    """As γ → 0 the soft cost tends to the smallest cost."""
    case = make_case(11, index)
    tsort = TSortGraph.compile(case.flow)
    lowered = case.lowered.astype(np.float64)
    cost, labels = _reference.solve(tsort, lowered, contiguous=case.contiguous)
    gaps = []
    for gamma in (1.0, 0.1, 1e-3):
        soft, probability, _ = _reference.forward_backward(tsort, lowered, contiguous=case.contiguous, gamma=gamma)
        if labels is None:
            assert soft == INF
            return
        assert np.isfinite(probability).all()
        gaps.append(cost - soft)
        assert gaps[-1] >= -1e-9
    assert gaps[-1] <= 1e-3 * lowered.match.size * math.log(len(lowered.match) + 1) + 1e-9
    assert gaps == sorted(gaps, reverse=True) or max(gaps) < 1e-9
    chosen = probability[labels, np.arange(len(labels))]
    assert (chosen > 0).all()


class TestBrute:
    def test_every_sort_once(self):
        flow = FlowGraph.from_edges(list("abcd"), [(0, 2), (1, 2)])
        orders = list(_brute.topological_sorts(flow))
        assert len(orders) == len(set(orders)) == 8  # two orders of a, b before c, and d in any of four places
        assert all(order.index(2) > max(order.index(0), order.index(1)) for order in orders)
        assert orders == sorted(orders)

    def test_limit(self):
        given_costs = costs(np.zeros((5, 6)), np.zeros(6))
        with pytest.raises(TooLargeError, match=r"more than 119 topological sorts.*method='exact'"):
            brute(FlowGraph.bag(list("abcde")), given_costs, limit=119)
        assert brute(FlowGraph.bag(list("abcde")), given_costs, limit=120)[0] == 0

    def test_a_long_chain(self):
        n_steps = 1500
        flow = FlowGraph.chain([f"step {step}" for step in range(n_steps)])
        match = np.ones((n_steps, n_steps))
        np.fill_diagonal(match, 0)
        assert brute(flow, costs(match, np.ones(n_steps))) == (0, list(range(n_steps)))
