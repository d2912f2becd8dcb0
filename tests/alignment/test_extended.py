"""The extended model beyond its limits: less is left open, or it is searched; and that is said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import graph2vid as g2v
from graph2vid.alignment import automata
from graph2vid.errors import InfeasibleError, TooLargeError


def soft_chain(n_steps: int) -> g2v.FlowGraph:
    edges = [(step, step + 1, 0.7 + 0.01 * step) for step in range(n_steps - 1)]
    return g2v.FlowGraph.from_edges([str(step) for step in range(n_steps)], edges)


def pairs(number: int) -> g2v.FlowGraph:
    steps = [str(step) for step in range(2 * number)]
    return g2v.FlowGraph.from_edges(steps, [], alternatives=[[[2 * at], [2 * at + 1]] for at in range(number)])


def count_updates(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note states × clips of every automaton that is solved."""
    seen: list[int] = []
    solve = automata.solve

    def noted(problems: Sequence[automata.AutomatonProblem], *rest: Any) -> Any:
        seen.extend(problem.automaton.n_states * len(problem.drop) for problem in problems)
        return solve(problems, *rest)

    monkeypatch.setattr(automata, "solve", noted)
    return seen


def test_a_long_chain_of_soft_edges() -> None:
    """With all 22 left open there would be 2²³ ideals: orders far from the expected one are left out."""
    flow = soft_chain(23)
    match = np.random.default_rng(0).random((23, 60))
    found = g2v.align(flow, match, 0.5)
    assert 0 < found.options["displacement"] < 22
    # The best of what is left: never more expensive than with all edges certain.
    certain = flow.with_confidence(dict.fromkeys(flow.edges, 1.0))
    assert found.cost <= g2v.align(certain, match, 0.5).cost + 1e-9


def test_many_pairs_of_alternatives_are_searched() -> None:
    match = np.random.default_rng(1).random((24, 60))
    found = g2v.align(pairs(12), match, 0.5)
    assert found.options["method"] == "anytime"
    shown = set(found.order)
    assert len(shown) == 12 and all(len({2 * at, 2 * at + 1} & shown) == 1 for at in range(12))
    assert found.gap == pytest.approx(found.cost - found.options["lower_bound"])
    assert found.options["branches"] == [[2 * at + int(2 * at + 1 in shown)] for at in range(12)]
    (many,) = g2v.align_many(pairs(12), [match], 0.5)
    assert many.cost == pytest.approx(found.cost) and many.gap == pytest.approx(found.gap)


@pytest.mark.parametrize("seed", range(25))
def test_the_optimum_lies_in_the_gap(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ones, of which the exact answer is known, with limits that they exceed."""
    random = np.random.default_rng(seed)
    groups = [[[0], [1, 2]], [[3], [4], [5]]][: 1 + seed % 2]
    edges = [(0, 3), (2, 6)] if seed % 3 else [(3, 6, 0.8), (6, 7, 0.9)]
    flow = g2v.FlowGraph.from_edges([str(step) for step in range(8)], edges, alternatives=groups)
    match, drop = random.normal(1.0, 1.0, (8, 12)), random.random(12)
    skip = [None, random.normal(0.5, 0.7, 8)][seed % 2]
    exact = g2v.align(flow, match, drop, skip, method="exact")
    certain = g2v.align(flow, match, drop, skip, method="exact", violation=np.inf)
    monkeypatch.setattr(automata, "QUICK_NODES", 4)
    if flow.confidences:
        with pytest.warns(RuntimeWarning, match="taken as certain"):
            found = g2v.align(flow, match, drop, skip)
    else:
        found = g2v.align(flow, match, drop, skip)
    assert found.options["method"] == "anytime"
    assert found.lower_bound - 1e-9 <= certain.cost <= found.cost + 1e-9
    assert exact.cost <= found.cost + 1e-9
    # What was found is legal, and costs what it says it does.
    pinned = np.full(match.shape, np.inf)
    at = np.flatnonzero(found.labels >= 0)
    pinned[found.labels[at], at] = match[found.labels[at], at]
    again = g2v.align(flow, pinned, np.where(found.labels < 0, drop, np.inf), skip, method="exact", violation=np.inf)
    assert again.cost == pytest.approx(found.cost)


def test_no_choice_is_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automata, "QUICK_NODES", 4)
    match = np.full((6, 9), np.inf)
    with pytest.raises((InfeasibleError, TooLargeError)):
        g2v.align(pairs(3), match, 0.5)


def test_what_takes_too_long_is_refused_before(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = count_updates(monkeypatch)
    monkeypatch.setattr(automata, "_UPDATES", 20_000)
    bag = g2v.FlowGraph.bag([str(step) for step in range(12)])
    with pytest.raises(TooLargeError, match=r"give more order.*method='exact' goes further"):
        g2v.align(bag, np.ones((12, 40)), 0.5, repeat=1.0)
    with pytest.raises(TooLargeError, match="method='exact' goes further"):
        g2v.posterior(bag, np.ones((12, 40)), 0.5, repeat=1.0)
    assert not seen
