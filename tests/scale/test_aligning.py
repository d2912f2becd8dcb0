"""Videos aligned side by side get the answers that they get alone, and those of ``ground``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from corpora import FLOWS, scores
from graph2vid.errors import Graph2VidError
from graph2vid.flow import FlowGraph
from graph2vid.grounding import ground
from graph2vid.scale.aligning import Found, Request, align_requests
from graph2vid.scale.procedures import compiled
from graph2vid.scale.settings import DEFAULTS
from graph2vid.tsort import TSortGraph

TSORTS = [TSortGraph.compile(flow) for flow in FLOWS.values()]


def request(seed: int, **options: Any) -> Request:
    tsort = TSORTS[seed % len(TSORTS)]
    matrix = scores(seed, len(tsort.flow)).astype(np.float64 if seed % 3 == 0 else np.float32)
    return Request(tsort.flow, tsort, {"scores": matrix}, dict(DEFAULTS) | options)


def as_lists(found: Found | Exception) -> Any:
    assert isinstance(found, Found)
    sure = None if found.confidence is None else found.confidence.tolist()
    return found.cost, found.steps.tolist(), found.starts.tolist(), found.ends.tolist(), sure, found.confidence_of_video


@pytest.mark.parametrize("group", [1, 2, 3, 7])
def test_answers_do_not_depend_on_who_else_asks(group: int) -> None:
    asked = [request(seed, **({"skip": "constant:1"} if seed % 5 == 0 else {})) for seed in range(40)]
    together = [as_lists(found) for found in align_requests(asked)]
    apart = [as_lists(found) for at in range(0, 40, group) for found in align_requests(asked[at : at + group])]
    assert together == apart


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"contiguous": False},
        {"drop": "constant:1", "skip": "percentile", "clip_seconds": 3.2, "offset": 5.0},
        {"preset": "released", "gamma": 0.3},
        {"confidence": False},
    ],
)
def test_answers_are_those_of_ground(options: dict[str, Any]) -> None:
    asked = [request(seed, **options) for seed in range(12)]
    for one, found in zip(asked, align_requests(asked), strict=True):
        wanted = ground(one.flow, **one.evidence, **options)
        assert isinstance(found, Found)
        assert found.cost == pytest.approx(wanted.cost, rel=1e-6)
        assert found.n_clips == len(wanted.labels)
        assert found.steps.tolist() == [segment.step for segment in wanted.segments]
        np.testing.assert_allclose(found.starts, [segment.start for segment in wanted.segments])
        np.testing.assert_allclose(found.ends, [segment.end for segment in wanted.segments])
        sure = [segment.confidence for segment in wanted.segments]
        if found.confidence is None:
            assert sure == [None] * len(sure)
        else:
            np.testing.assert_allclose(found.confidence, sure, atol=1e-5)


def test_one_that_has_no_answer_does_not_stop_the_others() -> None:
    tsort = TSORTS[0]
    short = Request(tsort.flow, tsort, {"scores": scores(1, 4, clips=2)}, dict(DEFAULTS))
    found = align_requests([request(0), short, request(2)])
    assert isinstance(found[0], Found) and isinstance(found[2], Found)
    assert isinstance(found[1], Graph2VidError) and "no alignment is possible" in str(found[1])
    assert as_lists(found[0]) == as_lists(align_requests([request(0)])[0])


def test_nothing_shown_is_an_answer() -> None:
    flow = FlowGraph.chain(["a", "b"])
    asked = Request(
        flow,
        TSortGraph.compile(flow),
        {"scores": np.full((2, 4), -5.0) + np.eye(2, 4)},
        dict(DEFAULTS) | {"preset": "log_odds", "skip": "constant:0"},
    )
    (found,) = align_requests([asked])
    assert isinstance(found, Found)
    assert found.steps.tolist() == [] and found.confidence is None and found.confidence_of_video is None


def test_procedures_with_steps_that_need_not_be_done() -> None:
    flow = FlowGraph.from_edges(["a", "b", "c"], [(0, 2)], optional=["2"])
    matrices = [scores(seed, 3) for seed in range(3)]
    asked = [Request(flow, compiled(flow), {"scores": matrix}, dict(DEFAULTS)) for matrix in matrices]
    for matrix, found in zip(matrices, align_requests(asked), strict=True):
        wanted = ground(flow, scores=matrix)
        assert isinstance(found, Found)
        assert found.cost == pytest.approx(wanted.cost, rel=1e-6)
        assert found.steps.tolist() == [segment.step for segment in wanted.segments]
        np.testing.assert_allclose(found.confidence, [segment.confidence for segment in wanted.segments], atol=1e-5)
