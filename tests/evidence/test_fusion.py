"""Several sources made one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from graph2vid import FlowGraph
from graph2vid.errors import InputError
from graph2vid.evaluate import iou_strict
from graph2vid.evidence import Source, fuse, log_likelihood, log_odds, source_weights
from graph2vid.evidence.fusion import given_evidence
from graph2vid.grounding import ground

NAN = np.nan


def test_a_weighted_sum_against_background() -> None:
    one, other = np.array([[1.0, 2.0], [0.0, -1.0]]), np.array([[-2.0, 4.0], [6.0, 0.0]])
    odds, skip = fuse([Source("narration", one), Source("frames", other, weight=0.5)], level=-2.0)
    np.testing.assert_allclose(odds, log_odds([[0.0, 4.0], [3.0, -1.0]], level=-2.0))
    assert skip is None


def test_one_source_stays_as_it_is() -> None:
    odds, skip = fuse([Source("narration", [[1.0, -1.0]], skip=[2.0])])
    assert odds.tolist() == log_odds([[1.0, -1.0]]).tolist() and skip is not None and skip.tolist() == [2.0]


def test_what_a_source_does_not_see_is_uncertain() -> None:
    frames = Source("frames", [[4.0, NAN, 2.0], [NAN, NAN, NAN]])
    odds, _ = fuse([Source("narration", np.zeros((2, 3))), frames])
    np.testing.assert_allclose(odds, log_odds([[4.0, 3.0, 2.0], [0.0, 0.0, 0.0]]))


def test_costs_of_skipping_add_up_where_they_are_told() -> None:
    flat = np.zeros((2, 3))
    sources = [Source("a", flat, skip=[1.0, -1.0]), Source("b", flat), Source("c", flat, 2.0, skip=[0.5, 3.0])]
    skip = fuse(sources)[1]
    assert skip is not None and skip.tolist() == [2.0, 5.0]


def test_weak_sources_find_together_what_none_finds_alone() -> None:
    rng = np.random.default_rng(3)
    truth = np.repeat([-1, 0, -1, 1, -1, 2, -1], 12)
    sources = []
    for _ in range(6):
        similarity = 1.0 * (truth == np.arange(3)[:, np.newaxis]) + rng.normal(0, 1.2, (3, len(truth)))
        sources.append(Source("one of many", log_likelihood(similarity)))
    flow = FlowGraph.bag(["a", "b", "c"])

    def right(odds: NDArray[np.float64]) -> float:
        return iou_strict(ground(flow, scores=odds, preset="log_odds", confidence=False).labels, truth)

    alone = np.mean([right(fuse([source], level=0.0)[0]) for source in sources])
    assert right(fuse(sources, level=0.0)[0]) > 0.9 > 2 * alone


def test_bad_sources_are_refused() -> None:
    with pytest.raises(InputError, match="no source"):
        fuse([])
    with pytest.raises(InputError, match=r"'frames' is about \(1, 3\).*'narration' about \(1, 2\)"):
        fuse([Source("narration", [[1.0, 2.0]]), Source("frames", [[1.0, 2.0, 3.0]])])
    with pytest.raises(InputError, match="weight"):
        fuse([Source("narration", [[1.0]], weight=-1.0)])
    with pytest.raises(InputError, match="frames"):
        fuse([Source("frames", [[np.inf]])])
    with pytest.raises(InputError, match="skip of frames"):
        fuse([Source("frames", [[1.0]], skip=[1.0, 2.0])])


# -- weights -------------------------------------------------------------------------------------------------

CALIBRATION = (-2.0, 1.0)


def narrated(seed: int = 0, spread: float = 1.5) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Nats of a source that is right in part, for four steps in 800 clips, and what is true."""
    truth = np.repeat([-1, 0, -1, 1, -1, 2, -1, 3], 100)[np.newaxis] == np.arange(4)[:, np.newaxis]
    return 2.0 * truth - 1.0 + np.random.default_rng(seed).normal(0, spread, truth.shape), truth


def weight_of(nats: NDArray[np.float64], **more: float) -> float:
    first = Source("narration", narrated()[0], calibration=CALIBRATION)
    return source_weights([first, Source("frames", nats, None)], **more)[1]


def test_calibrated_sources_count_by_their_slopes() -> None:
    flat = np.zeros((2, 3))
    sources = [Source("narration", flat, None, calibration=(-2.0, 1.25)), Source("frames", flat, 0.5)]
    sources += [Source("text", flat, None, is_odds=True, calibration=(-2.0, 2.5))]
    assert source_weights(sources) == [1.0, 0.5, 2.0]
    assert source_weights([Source("frames", flat, None), Source("scores", flat, None)]) == [1.0, 1.0]


def test_others_count_as_far_as_they_agree() -> None:
    truth, random = narrated()[1], np.random.default_rng(1)
    noise = random.normal(0, 1, truth.shape)
    strong, weak, none = (weight_of(gap * truth + noise) for gap in (2.0, 0.8, 0.0))
    assert strong > weak > none and strong > 1.2 and none < 0.35
    assert weight_of(noise - 2.0 * truth) == 0.0
    # Nats of half the size count twice as much.
    assert weight_of((2.0 * truth + noise) / 2) > 1.4 * strong


def test_where_little_is_known_a_weight_stays_near_one() -> None:
    truth, random = narrated()[1], np.random.default_rng(2)
    nats = 2.0 * truth + random.normal(0, 1, truth.shape)
    few = np.where((np.arange(800) >= 85) & (np.arange(800) < 115), nats, NAN)
    assert abs(weight_of(few) - 1.0) < abs(weight_of(nats) - 1.0)
    assert weight_of(np.full(truth.shape, NAN)) == 1.0
    assert weight_of(nats, clip_seconds=10.0) >= weight_of(nats)  # the same clips are more time, and tell more


def test_log_odds_that_are_not_known_are_nothing() -> None:
    odds, _ = fuse([Source("narration", [[1.0, -1.0]]), Source("text", [[NAN, 2.0]], is_odds=True)])
    np.testing.assert_allclose(odds - [[0.0, 2.0]], log_odds([[1.0, -1.0]]))


def test_scores_of_the_user_may_leave_out_anything() -> None:
    scores = np.array([[0.1, 0.9, NAN, 0.2], [NAN, NAN, NAN, NAN]])
    nats = given_evidence(scores, 2, 5, "mine.npy")  # the last clip is filled up
    assert np.isnan(nats[1]).all() and np.isnan(nats[0, [2, 4]]).all()
    assert np.nanargmax(nats[0]) == 1
    with pytest.raises(InputError, match=r"mine.npy holds \(2, 4\) scores, and 3 steps × 9 clips are wanted"):
        given_evidence(scores, 3, 9, "mine.npy")
    with pytest.raises(InputError, match="all are NaN"):
        given_evidence(np.full((1, 2), NAN), 1, 2, "mine.npy")
    with pytest.raises(InputError, match="NaN where nothing is known"):
        given_evidence([[np.inf, 1.0]], 1, 2, "mine.npy")
