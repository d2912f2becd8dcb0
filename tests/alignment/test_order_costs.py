"""Soft edges on the plain kernels: the cost of showing steps in another order than expected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graph2vid as g2v
from graph2vid.alignment import ClipCosts, order_margin, order_trust
from graph2vid.errors import InfeasibleError
from graph2vid.flow import FlowGraph, as_written, certainly
from graph2vid.selfcheck.enumerate import enumerate_alignments
from graph2vid.tsort import Restrictions, TSortGraph, order_costs


def soft_case(random: np.random.Generator, whole: bool) -> tuple[FlowGraph, ClipCosts, dict[str, Any]]:
    """Draw a procedure with soft edges, costs, and options; with ``whole``, all sums are exact."""
    steps = int(random.integers(1, 5))
    clips = int(random.integers(1, 7 if steps < 4 else 6))
    place = random.permutation(steps)
    kinds = [1.0, 0.5] if whole else [1.0, 0.4, 0.7, 0.95]
    edges = [
        (
            int(place[a]),
            int(place[b]),
            float(random.choice(kinds, p=[0.25] + [0.75 / (len(kinds) - 1)] * (len(kinds) - 1))),
        )
        for b in range(steps)
        for a in range(b)
        if random.random() < 0.6
    ]
    flow = FlowGraph.from_edges([f"step {step}" for step in range(steps)], edges)
    if whole:
        match, drop = random.integers(-3, 4, (steps, clips)).astype(float), random.integers(-2, 3, clips).astype(float)
        skip = random.integers(0, 5, steps).astype(float)
    else:
        match, drop, skip = random.normal(0, 2, (steps, clips)), random.normal(size=clips), random.uniform(0, 4, steps)
    match[random.random(match.shape) < 0.1] = np.inf
    skip[random.random(steps) < 0.3] = np.inf
    options = {"contiguous": bool(random.random() < 0.6), "violation": float(random.choice([0.0, 0.5, 1.0, 2.0]))}
    return flow, ClipCosts(match, drop, skip if random.random() < 0.7 else None), options


def check_against_enumeration(seed: int, cases: int) -> None:
    random = np.random.default_rng(seed)
    for number in range(cases):
        flow, costs, options = soft_case(random, whole=number % 2 == 0)
        truth = enumerate_alignments(flow, *costs, gamma=1.0, **options)
        if truth.labels is None:
            with pytest.raises(InfeasibleError):
                g2v.align(flow, *costs, **options)
            continue
        for backend in ("native", "reference"):
            found = g2v.align(flow, *costs, backend=backend, **options)
            assert found.cost == pytest.approx(truth.cost, abs=1e-9)
            if number % 2 == 0:
                np.testing.assert_array_equal(found.labels, truth.labels)
            soft = g2v.posterior(flow, *costs, backend=backend, **options)
            assert soft.cost == pytest.approx(truth.soft_cost, abs=1e-7)
            np.testing.assert_allclose(soft.probability, truth.probability, atol=1e-7)
        assert g2v.align(flow, *costs, method="brute", **options).cost == pytest.approx(truth.cost, abs=1e-9)
        assert g2v.k_best(flow, *costs, k=1, **options)[0].cost == pytest.approx(truth.cost, abs=1e-9)
        stream = g2v.Stream(flow, costs.skip, **options)
        for clip in range(len(costs.drop)):
            stream.push(costs.match[:, clip], float(costs.drop[clip]))
        assert stream.finish().cost == pytest.approx(truth.cost, abs=1e-9)


def test_hard_soft_streams_and_orders_equal_enumeration() -> None:
    check_against_enumeration(seed=0, cases=300)


@pytest.mark.slow
def test_hard_soft_streams_and_orders_equal_enumeration_often() -> None:
    check_against_enumeration(seed=1, cases=5000)


def whole_costs(random: np.random.Generator, steps: int, clips: int) -> ClipCosts:
    """Draw costs of a larger video whose sums are exact, with ties."""
    match = random.integers(-3, 5, (steps, clips)).astype(float) * 60
    skip = random.integers(0, 9, steps).astype(float) * 60
    skip[random.random(steps) < 0.3] = np.inf
    return ClipCosts(match, random.integers(-2, 3, clips).astype(float) * 60, skip)


def test_backends_windows_workers_and_lanes_agree_with_brute_force() -> None:
    random = np.random.default_rng(3)
    for steps in (3, 5, 6):
        flow = FlowGraph.from_edges([str(step) for step in range(steps)], [(0, steps - 1)])
        tsort = TSortGraph.compile(flow).with_order(np.triu(random.integers(0, 5, (steps, steps)), 1) * 60.0)
        for contiguous in (True, False):
            costs = whole_costs(random, steps, 45)
            sliced = [ClipCosts(costs.match[:, :n], costs.drop[:n], costs.skip) for n in (45, 44, 41, 30)]
            many = g2v.align_many(tsort, *zip(*sliced, strict=True), contiguous)
            for one, alignment in zip(sliced, many, strict=True):
                for resources in ({"backend": "reference"}, {"workers": 2}, {"memory_limit": 300_000}):
                    other = g2v.align(tsort, *one, contiguous, **resources)
                    assert other.cost == alignment.cost
                    np.testing.assert_array_equal(other.labels, alignment.labels)


def test_violation_goes_from_no_order_to_laws() -> None:
    random = np.random.default_rng(4)
    flow = as_written(FlowGraph.bag(list("abcd")))
    costs = random.normal(size=(4, 12)), np.zeros(12)
    by_law, free = FlowGraph.chain(list("abcd")), FlowGraph.bag(list("abcd"))
    assert g2v.align(flow, *costs, violation=np.inf).cost == g2v.align(by_law, *costs).cost
    assert g2v.align(flow, *costs, violation=0.0).cost == g2v.align(free, *costs).cost
    compiled = TSortGraph.compile(flow)
    for violation in (0.5, 2.0, np.inf):
        assert g2v.align(compiled, *costs, violation=violation).cost == pytest.approx(
            g2v.align(flow, *costs, violation=violation).cost
        )


def test_edges_at_even_odds_become_laws_too() -> None:
    flow = FlowGraph.from_edges(list("ab"), [(0, 1, 0.5)])
    match = np.array([[2.0, 0.0], [0.0, 2.0]])
    for given in (flow, TSortGraph.compile(flow)):
        assert g2v.align(given, match, np.inf).cost == 0.0
        assert g2v.align(given, match, np.inf, violation=np.inf).cost == 4.0


def test_each_inverted_pair_costs_its_log_odds() -> None:
    flow = as_written(FlowGraph.bag(list("abc")))
    costs = order_costs(flow)
    assert costs is not None
    np.testing.assert_allclose(costs, [[0, 4, 2], [0, 0, 4], [0, 0, 0]], atol=2e-3)
    law = FlowGraph.from_edges(list("abc"), [(2, 0), (0, 1, 0.9)])
    assert order_costs(law) is not None and order_costs(law, 0.0) is None and order_costs(FlowGraph.bag(["a"])) is None


def test_a_certain_edge_leaves_out_guesses_against_it() -> None:
    flow = certainly(as_written(FlowGraph.bag(list("abcd"))), (3, 0))
    assert flow.confidence[3, 0] == 1.0 and (0, 3) not in flow.edges and (1, 2) in flow.edges
    with pytest.raises(g2v.errors.GraphError, match="cycle"):
        certainly(flow, (0, 3))


def test_far_orders_are_left_out_of_large_procedures_and_pinned_steps_are_not() -> None:
    flow = as_written(FlowGraph.bag([str(step) for step in range(40)]))
    match = np.full((40, 120), 3.0)
    for step in range(40):
        match[(step + 1) % 40, 3 * step : 3 * step + 3] = -3.0  # the last step written comes first
    match[0], match[39] = match[39].copy(), match[0].copy()
    found = g2v.align(flow, match, 0.0)
    assert 0 < found.options["displacement"] < 39
    assert Restrictions(flow).fitting(2**10) > 0
    pinned = g2v.align(flow, match, 0.0, constraints=[g2v.Constraint("show", 39, 0, 3)])
    assert pinned.labels[:3].tolist() == [39] * 3


def test_a_video_says_how_far_the_expected_order_is_to_be_trusted() -> None:
    flow = as_written(FlowGraph.bag(list("abcd")))
    for strength, factor in ((0.1, 0.0), (3.0, 1.0), (20.0, 8.0)):
        costs = ClipCosts(-strength * np.eye(4).repeat(3, axis=1), np.zeros(12), np.zeros(4))
        assert order_trust(flow, costs) == factor
    reverse = ClipCosts(-20.0 * np.eye(4)[::-1].repeat(3, axis=1), np.zeros(12), np.zeros(4))
    assert order_trust(flow, reverse) == 0.0 and order_trust(FlowGraph.chain(list("abcd")), reverse) == 1.0
    assert np.isnan(order_margin(ClipCosts(np.zeros((4, 2)), np.zeros(2), None), [0, 1, 2, 3]))


def test_the_gradient_of_soft_costs_is_right() -> None:
    torch = pytest.importorskip("torch", reason="needs graph2vid[learn]")
    from graph2vid.learn import soft_cost

    random = np.random.default_rng(5)
    tsort = TSortGraph.compile(as_written(FlowGraph.from_edges(list("abc"), [(0, 2)])))
    for options in ({"contiguous": True, "smoothing": "softmin"}, {"contiguous": False, "smoothing": "smoothmin"}):
        match = torch.tensor(random.normal(size=(1, 3, 7)), requires_grad=True)
        drop = torch.tensor(random.normal(size=(1, 7)), requires_grad=True)
        skip = torch.tensor(random.uniform(0, 3, (1, 3)), requires_grad=True)
        assert torch.autograd.gradcheck(
            lambda *costs, how=options: soft_cost([tsort], *costs, gamma=0.7, **how), (match, drop, skip)
        )
