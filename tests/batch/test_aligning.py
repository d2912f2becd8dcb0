"""Videos aligned side by side get the answers that they get alone, and those of ``ground``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora import FLOWS, scores
from graph2vid._stopping import Watch, watched
from graph2vid.batch.aligning import Found, Request, align_requests
from graph2vid.batch.rows import compiled
from graph2vid.batch.settings import DEFAULTS
from graph2vid.errors import Graph2VidError
from graph2vid.evidence import Evidence
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding, ground
from graph2vid.tsort import TSortGraph

TSORTS = [TSortGraph.compile(flow) for flow in FLOWS.values()]


def request(seed: int, **options: Any) -> Request:
    tsort = TSORTS[seed % len(TSORTS)]
    matrix = scores(seed, len(tsort.flow)).astype(np.float64 if seed % 3 == 0 else np.float32)
    return Request(tsort.flow, tsort, Evidence({"scores": matrix}), dict(DEFAULTS) | options)


def segments_of(found: Found) -> slice:
    return slice(*found.answers.first[found.at : found.at + 2].tolist())


def as_lists(found: Found | Exception) -> Any:
    assert isinstance(found, Found)
    answers, at, own = found.answers, found.at, segments_of(found)
    of_segments = (answers.steps[own], answers.starts[own], answers.ends[own], answers.posterior[own])
    return answers.cost[at], *(values.tolist() for values in of_segments)


def check(found: Found | Exception, wanted: Grounding) -> None:
    """Compare an answer with a grounding."""
    assert isinstance(found, Found)
    answers, at, own = found.answers, found.at, segments_of(found)
    assert answers.cost[at] == pytest.approx(wanted.cost, rel=1e-6)
    assert answers.n_clips[at] == len(wanted.labels)
    assert answers.steps[own].tolist() == [segment.step for segment in wanted.segments]
    np.testing.assert_allclose(answers.starts[own], [segment.start for segment in wanted.segments])
    np.testing.assert_allclose(answers.ends[own], [segment.end for segment in wanted.segments])
    sure = [np.nan if segment.confidence is None else segment.confidence for segment in wanted.segments]
    raw = [np.nan if segment.posterior is None else segment.posterior for segment in wanted.segments]
    np.testing.assert_allclose(answers.confidence[own], sure, atol=1e-5)
    np.testing.assert_allclose(answers.posterior[own], raw, atol=1e-5)
    assert answers.doubtful[own].tolist() == [segment.is_doubtful for segment in wanted.segments]
    lengths = answers.ends[own] - answers.starts[own]
    if len(lengths):
        assert answers.confidence_of_video[at] == pytest.approx(
            np.average(sure, weights=lengths), abs=1e-5, nan_ok=True
        )


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
        check(found, ground(one.flow, **one.evidence.arrays, **options))


@pytest.mark.parametrize(("offset", "clips"), [(1e4, 128), (1e4, 6000), (100.0, 6000)])
def test_single_precision_far_from_zero_is_that_of_ground(offset: float, clips: int) -> None:
    """Sums that float32 would round away are computed in float64, as `ground` does; others stay as they are."""
    tsort, options = TSORTS[0], {"match": "raw"}
    matrix = np.random.default_rng(0).random((len(tsort.flow), clips)) * 3
    far, near = (
        Request(tsort.flow, tsort, Evidence({"scores": (add + matrix).astype(np.float32)}), dict(DEFAULTS) | options)
        for add in (offset, 0.0)
    )
    for one, found in zip((far, near), align_requests([far, near]), strict=True):
        wanted = ground(one.flow, **one.evidence.arrays, **options)
        assert isinstance(found, Found)
        check(found, wanted)
        assert found.answers.cost[found.at] == wanted.cost
        assert wanted.options["alignment"]["dtype"] == ("float64" if one is far else "float32")


@pytest.mark.parametrize("gamma", [1e-18, 1e290])
def test_gammas_are_refused_as_ground_refuses_them(gamma: float) -> None:
    asked = [request(seed, gamma=gamma) for seed in range(4)]
    for one, found in zip(asked, align_requests(asked), strict=True):
        with pytest.raises(Graph2VidError, match=r"gamma=") as refused:
            ground(one.flow, **one.evidence.arrays, gamma=gamma)
        assert str(found) == str(refused.value)


def test_forbidden_clips_do_not_make_gamma_unsuited() -> None:
    tsort = TSORTS[0]
    matrices = [scores(seed, len(tsort.flow)) - 9 for seed in range(4)]
    for matrix in matrices:
        matrix[0, 1] = -np.inf
    asked = [Request(tsort.flow, tsort, Evidence({"log_probabilities": matrix}), dict(DEFAULTS)) for matrix in matrices]
    for one, found in zip(asked, align_requests(asked), strict=True):
        check(found, ground(one.flow, **one.evidence.arrays))
        assert isinstance(found, Found) and len(found.answers.requests) == len(asked)  # side by side


def long_work(**options: Any) -> list[Request]:
    """Return what takes long enough for the clock to be looked at."""
    tsort = TSortGraph.compile(FlowGraph.bag(list("abcdefgh")))
    return [Request(tsort.flow, tsort, Evidence({"scores": scores(1, 8, clips=400)}), dict(DEFAULTS) | options)] * 10


@pytest.mark.parametrize("options", [{}, {"min_clips": 2}])
def test_work_ends_when_a_watch_says_so(options: dict[str, Any]) -> None:
    """Side by side, and one by one."""
    watch = Watch()
    watch.stop()
    with watched(watch), pytest.raises(InterruptedError):
        align_requests(long_work(**options))


def test_what_takes_longer_than_its_time_is_left_to_ground(monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[Request] = []
    monkeypatch.setattr("graph2vid.batch.aligning._alone", alone.append)
    align_requests(long_work(time_limit=60.0))
    assert not alone
    align_requests(long_work(time_limit=1e-9))
    assert len(alone) == 10


@pytest.mark.parametrize(
    "options",
    [
        {"repeat": "2"},
        {"min_clips": 3, "skip": "constant:2"},
        {"repeat": "2", "min_clips": 2, "skip": "constant:1", "gamma": 0.5},
        {"repeat": "1", "durations": True, "clip_seconds": 2.0},
        {"durations": True, "confidence": False},
        {"repeat": "1", "match": "raw"},
        {"repeat": "percentile:20", "confidence": False},
        {"repeat": "1", "skip": "percentile", "confidence": False},
        {"violation": 0.5},
        {"time_limit": 9.0},
    ],
)
def test_answers_beyond_the_ordinary_are_those_of_ground(options: dict[str, Any], tmp_path: Path) -> None:
    if options.get("durations"):
        path = tmp_path / "durations.json"
        told = {"format": "graph2vid-durations", "version": 1, "others": {"median": 5.0, "spread": 0.6}}
        path.write_text(json.dumps(told))
        options = options | {"durations": str(path)}
    asked = [request(seed, **options) for seed in range(12)]
    for one, found in zip(asked, align_requests(asked), strict=True):
        check(found, ground(one.flow, **one.evidence.arrays, **options))


@pytest.mark.parametrize("options", [{"repeat": "2"}, {"repeat": "1", "min_clips": 3, "skip": "constant:2"}])
def test_the_extended_model_goes_side_by_side(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[Request] = []
    monkeypatch.setattr("graph2vid.batch.aligning._alone", alone.append)
    asked = [request(seed, **options) for seed in range(40)]
    together = [as_lists(found) for found in align_requests(asked)]
    assert together == [as_lists(found) for at in range(0, 40, 3) for found in align_requests(asked[at : at + 3])]
    flow = FlowGraph.from_edges(["a", "b", "c"], [(0, 1)], alternatives=[[[1], [2]]])
    either = [Request(flow, None, Evidence({"scores": scores(seed, 3)}), dict(DEFAULTS)) for seed in range(5)]
    for one, found in zip(either, align_requests(either), strict=True):
        check(found, ground(flow, **one.evidence.arrays))
    assert not alone


def test_large_tables_are_answered_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [request(seed) for seed in range(6)]
    monkeypatch.setattr("graph2vid.batch.aligning._LANE_BYTES", 0)
    for one, found in zip(asked, align_requests(asked), strict=True):
        check(found, ground(one.flow, **one.evidence.arrays))


def test_one_that_has_no_answer_does_not_stop_the_others() -> None:
    tsort = TSORTS[0]
    short = Request(tsort.flow, tsort, Evidence({"scores": scores(1, 4, clips=2)}), dict(DEFAULTS))
    found = align_requests([request(0), short, request(2)])
    assert isinstance(found[0], Found) and isinstance(found[2], Found)
    assert isinstance(found[1], Graph2VidError) and "no alignment is possible" in str(found[1])
    assert as_lists(found[0]) == as_lists(align_requests([request(0)])[0])


def test_nothing_shown_is_an_answer() -> None:
    flow = FlowGraph.chain(["a", "b"])
    asked = Request(
        flow,
        TSortGraph.compile(flow),
        Evidence({"scores": np.full((2, 4), -5.0) + np.eye(2, 4)}),
        dict(DEFAULTS) | {"preset": "log_odds", "skip": "constant:0"},
    )
    (found,) = align_requests([asked])
    assert isinstance(found, Found)
    assert len(found.answers.steps[segments_of(found)]) == 0 and np.isnan(found.answers.confidence_of_video[found.at])


def test_procedures_with_steps_that_need_not_be_done() -> None:
    flow = FlowGraph.from_edges(["a", "b", "c"], [(0, 2)], optional=["2"])
    matrices = [scores(seed, 3) for seed in range(3)]
    asked = [Request(flow, compiled(flow), Evidence({"scores": matrix}), dict(DEFAULTS)) for matrix in matrices]
    for matrix, found in zip(matrices, align_requests(asked), strict=True):
        check(found, ground(flow, scores=matrix))
