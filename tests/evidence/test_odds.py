"""Log-odds of steps against background."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graph2vid.errors import InputError
from graph2vid.evidence import costs_from_arrays, log_likelihood, log_odds


def test_likelihood_against_its_definition() -> None:
    similarity = np.array([[0.1, 0.5, 0.3], [0.2, 0.2, 0.8]])
    score = np.empty((2, 3))
    for step, row in enumerate(similarity):
        score[step] = 2.0 * (row - row.mean()) / (row.std() + 0.007)
    for clip in range(3):
        score[:, clip] -= 0.25 * math.log(math.exp(score[0, clip]) + math.exp(score[1, clip]))
    np.testing.assert_allclose(log_likelihood(similarity, gain=2.0, rivalry=0.25), score)


def test_odds_against_their_definition() -> None:
    likelihood = np.array([[1.0, 5.0, 2.0], [4.0, 0.0, 1.0]])  # best: 4, 5, 2
    np.testing.assert_allclose(log_odds(likelihood, level=-3.0), likelihood - (4.0 - 3.0) / 2)


def test_steps_that_are_like_everything_gain_nothing_by_it() -> None:
    similarity = np.random.default_rng(0).uniform(0, 0.2, (3, 50))
    np.testing.assert_allclose(
        log_likelihood(similarity), log_likelihood(similarity + np.array([[3.0], [0.0], [-1.0]]))
    )
    wide = log_likelihood(similarity * [[1.0], [5.0], [1.0]])
    assert np.abs(log_likelihood(similarity) - wide).max() < 0.6  # but for what counts as noise


def test_the_preset_calls_background_what_is_likelier_background() -> None:
    odds = np.array([[1.5, -2.0]])
    costs = costs_from_arrays(scores=odds, preset="log_odds")
    assert costs.match.tolist() == [[-1.5, 2.0]] and costs.drop.tolist() == [0, 0]


def test_one_clip_and_flat_rows() -> None:
    assert np.isfinite(log_odds(log_likelihood([[0.3], [0.1]]))).all()
    assert np.ptp(log_likelihood(np.ones((2, 5)))) == 0


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="finite"):
        log_likelihood([[np.nan]])
    with pytest.raises(InputError, match="gain"):
        log_likelihood([[1.0]], gain=0.0)
    with pytest.raises(InputError, match="finite"):
        log_odds([[np.inf]])
    with pytest.raises(InputError, match="level"):
        log_odds([[1.0]], level=np.nan)
