"""Several sources made one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from graph2vid import FlowGraph
from graph2vid.errors import InputError
from graph2vid.evaluate import iou_strict
from graph2vid.evidence import Source, fuse, log_likelihood, log_odds
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
