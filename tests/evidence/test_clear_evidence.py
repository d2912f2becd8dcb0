"""Perfect evidence of every kind gives every step its whole block, with the default costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graph2vid as g2v
from graph2vid.errors import InputError
from graph2vid.evidence import costs_from_arrays

Array = NDArray[Any]


def blocks(n_steps: int, length: int, between: int) -> Array:
    """Return the step of each clip, -1 = background: blocks of a length, with background around them."""
    around = [-1] * between
    return np.array([clip for step in range(n_steps) for clip in [*around, *[step] * length]] + around)


def evidence(kind: str, truth: Array, n_steps: int, noise: float) -> dict[str, Array]:
    random = np.random.default_rng(0)
    hot = (truth == np.arange(n_steps)[:, None]).astype(float)
    noises = noise * random.normal(size=(n_steps + 1, len(truth)))
    with np.errstate(divide="ignore"):
        if kind == "scores":
            return {"scores": 5.0 * hot + noises[:-1]}
        if kind == "small scores":
            return {"scores": hot + noises[:-1]}
        if kind == "embeddings":
            axes = np.linalg.qr(random.normal(size=(16, 16)))[0][: n_steps + 1]
            return {"steps": axes[:-1], "clips": axes[truth] + noise * random.normal(size=(len(truth), 16))}
        if kind == "certain log-probabilities":
            return {"log_probabilities": np.log(hot)}
        if kind == "log-probabilities":
            weights = np.where(truth < 0, 1.0, 0.98 * hot + 0.02 / n_steps) * np.exp(noises[:-1])
        else:
            weights = (0.98 * np.vstack([hot, truth < 0]) + 0.02 / (n_steps + 1)) * np.exp(noises)
        return {"log_probabilities": np.log(weights / weights.sum(axis=0))}


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("between", [0, 1, 6])
@pytest.mark.parametrize(
    "kind",
    [
        *("scores", "small scores", "embeddings"),
        *("log-probabilities", "certain log-probabilities", "log-probabilities with background"),
    ],
)
def test_every_step_has_its_whole_block(kind: str, between: int, noise: float) -> None:
    for n_steps in range(2, 9):
        flow = g2v.FlowGraph.chain([f"step {step}" for step in range(n_steps)])
        for length in (1, 2, 7, 20):
            truth = blocks(n_steps, length, between)
            found = g2v.ground(flow, **evidence(kind, truth, n_steps, noise), confidence=False)
            np.testing.assert_array_equal(found.labels, truth)


def test_the_first_thing_to_try() -> None:
    flow = g2v.FlowGraph.chain(["a", "b", "c"])
    found = g2v.ground(flow, scores=np.eye(3).repeat(4, 1) * 5, clip_seconds=2.0)
    assert str(found.count) == "3 of 3 steps shown"
    assert [(one.start, one.end) for one in found.segments] == [(0.0, 8.0), (8.0, 16.0), (16.0, 24.0)]


@pytest.mark.parametrize("n_steps", [2, 5, 12])
def test_evidence_that_is_not_clear_has_the_percentile_of_the_paper(n_steps: int) -> None:
    random = np.random.default_rng(n_steps)
    embeddings = {"clips": random.normal(size=(60, 16)), "steps": random.normal(size=(n_steps, 16))}
    for given in ({"scores": random.normal(size=(n_steps, 60))}, embeddings):
        costs = costs_from_arrays(**given)
        np.testing.assert_array_equal(costs.drop, costs_from_arrays(**given, drop="percentile:30").drop)
        assert costs.options["drop"] == "auto"


def test_raw_scores_have_no_cost_of_chance() -> None:
    scores = np.random.default_rng(0).uniform(-0.3, -0.2, size=(10, 50))
    costs = costs_from_arrays(scores=scores, match="raw")
    np.testing.assert_array_equal(costs.drop, costs_from_arrays(scores=scores, match="raw", drop="percentile:30").drop)


def test_a_row_of_background_is_the_cost_of_background() -> None:
    rows = np.log([[0.7, 0.2], [0.1, 0.2], [0.2, 0.6]])
    costs = costs_from_arrays(log_probabilities=rows, n_steps=2)
    np.testing.assert_array_equal(costs.match, -rows[:2])
    np.testing.assert_array_equal(costs.drop, -rows[2])
    assert costs.options["drop"] == "prototype"
    named = costs_from_arrays(log_probabilities=rows, n_steps=2, match="likelihood", drop="prototype")
    np.testing.assert_allclose(named.drop - named.match[0], costs.drop - costs.match[0])
    assert costs_from_arrays(log_probabilities=rows, n_steps=2, drop=1.5).drop.tolist() == [1.5, 1.5]


def test_a_row_too_many_is_background_only_where_the_rows_sum_to_one() -> None:
    rows = np.log([[0.7, 0.2], [0.1, 0.2], [0.9, 0.6]])
    with pytest.raises(InputError, match=r"shape \(3, 2\), one row more .* sum to 1 to 1.7"):
        costs_from_arrays(log_probabilities=rows, n_steps=2)
