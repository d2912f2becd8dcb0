"""From arrays to a grounding in seconds."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dags import dags
from graph2vid import alignment
from graph2vid.alignment import Constraint
from graph2vid.errors import Graph2VidError, InfeasibleError, InputError, TooLargeError
from graph2vid.evidence import costs_from_arrays
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding, ground
from graph2vid.tsort import TSortGraph

FLOW = FlowGraph.from_edges(
    [("t", "cut tomato"), ("c", "cut cucumber"), ("m", "mix")], [("t", "m"), ("c", "m")], "Salad"
)
# The video: background, cucumber ×2, background, tomato ×2, mix ×2, background.
SHOWN = [-1, 1, 1, -1, 0, 0, 2, 2, -1]


def scores_of(labels: list[int], n_steps: int, strength: float = 6.0) -> np.ndarray:
    scores = np.zeros((n_steps, len(labels)))
    for clip, step in enumerate(labels):
        if step >= 0:
            scores[step, clip] = strength
    return scores


SCORES = scores_of(SHOWN, 3)


def test_the_steps_are_found_in_seconds_in_the_order_of_the_video() -> None:
    found = ground(FLOW, scores=SCORES, clip_seconds=2.0, offset=10.0)
    assert found.labels.tolist() == SHOWN
    assert [(s.id, s.text, s.start, s.end) for s in found.segments] == [
        ("c", "cut cucumber", 12.0, 16.0),
        ("t", "cut tomato", 18.0, 22.0),
        ("m", "mix", 22.0, 26.0),
    ]
    assert [s.step for s in found.segments] == [1, 0, 2]
    assert found.order == (1, 0, 2) and found.not_shown == ()
    assert found.duration == 18.0 and found.end == 28.0 and found.segments_of("t") == (found.segments[1],)
    assert all(0.5 < s.confidence <= 1.0 for s in found.segments if s.confidence is not None)
    assert found.options["evidence"] == "scores" and found.options["match"] == "likelihood"
    assert "1. cut tomato" in str(found) and "3 of 3 steps shown" in repr(found)


def test_without_a_calibrator_the_posterior_is_told_and_no_confidence() -> None:
    scores = np.random.default_rng(3).normal(size=(3, 9))
    found = ground(FLOW, scores=scores, gamma=0.7)
    costs = costs_from_arrays(scores=scores)
    sure = alignment.posterior(FLOW, costs.match, costs.drop, gamma=0.7)
    for segment in found.segments:
        clips = sure.probability[segment.step, int(segment.start) : int(segment.end)]
        assert segment.posterior == pytest.approx(clips.mean()) and segment.confidence is None
        assert segment.sureness == "uncalibrated"
    assert found.is_uncalibrated and found.options["calibration"] is None and found.absent == ()
    without = ground(FLOW, scores=scores, confidence=False)
    assert all(segment.posterior is None and segment.sureness == "" for segment in without.segments)
    assert without.options["gamma"] is None


def test_where_the_posterior_does_not_fit_the_answer_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*args: object, **kwargs: object) -> None:
        raise TooLargeError("it would take 9 TB")

    monkeypatch.setattr(alignment.Problem, "posterior", too_large)
    with pytest.warns(UserWarning, match="no confidence is given: to weigh all orders"):
        found = ground(FLOW, scores=SCORES)
    assert found.labels.tolist() == SHOWN and found.segments[0].confidence is None


def test_a_compiled_procedure_embeddings_and_log_probabilities_give_the_same() -> None:
    assert ground(TSortGraph.compile(FLOW), scores=SCORES) == ground(FLOW, scores=SCORES)
    steps = np.eye(3)
    clips = np.array([steps[label] if label >= 0 else [1.0, 1.0, 1.0] for label in SHOWN])
    assert ground(FLOW, clips=clips, steps=steps).labels.tolist() == SHOWN
    likely = SCORES - np.log(np.exp(SCORES).sum(axis=0))
    assert ground(FLOW, log_probabilities=likely).labels.tolist() == SHOWN


def test_a_step_that_is_not_shown() -> None:
    scores = scores_of([-1, 1, 1, -1, 2, 2], 3)
    found = ground(FLOW, scores=scores, drop=0.5, skip=0.4)  # a vague clip costs log 3 - 0.5 more
    assert found.not_shown == (0,) and found.order == (1, 2)
    assert found.segments_of(0) == () and "not shown" in str(found)
    assert found.options["skip"] == "constant:0.4"
    assert ground(FLOW, scores=scores, drop=0.5).not_shown == ()


def test_one_step_in_one_clip() -> None:
    found = ground(FlowGraph.chain(["only"]), scores=[[0.3]])
    assert found.labels.tolist() == [0] and found.segments[0].end == 1.0


def test_one_step_is_found_where_its_score_is_high() -> None:
    found = ground(FlowGraph.chain(["only"]), scores=[[0.0, 0.1, 5.0, 5.0, 0.0, 0.2]])
    assert found.labels.tolist() == [-1, -1, 0, 0, -1, -1]


@pytest.mark.parametrize(
    ("constraint", "labels"),
    [
        (
            Constraint("within", 0, 10.0, 12.9),
            [0, 1, 1, -1, -1, -1, 2, 2, -1],
        ),  # the middle of clip 1 is 13.0
        (Constraint("within", 0, -math.inf, 13.0), [0, 1, 1, -1, -1, -1, 2, 2, -1]),
        (Constraint("forbid", 2, 0.0, 24.5), [-1, 1, 1, -1, 0, 0, -1, 2, -1]),
        (Constraint("forbid", 2, 24.0, math.inf), [-1, 1, 1, -1, 0, 0, 2, -1, -1]),
        (Constraint("background", None, 14.0, 20.0), [-1, 1, -1, -1, -1, 0, 2, 2, -1]),
        (Constraint("show", 1, 10.5, 16.0), [1, 1, 1, -1, 0, 0, 2, 2, -1]),
    ],
)
def test_constraints_are_in_seconds_and_hold_the_clips_whose_middle_they_hold(
    constraint: Constraint, labels: list[int]
) -> None:
    found = ground(FLOW, scores=SCORES, clip_seconds=2.0, offset=10.0, drop=0.5, constraints=[constraint])
    assert found.labels.tolist() == labels
    json.dumps(found.to_json(), allow_nan=False)
    assert found.options["constraints"][0]["kind"] == constraint.kind


def test_a_span_without_a_clip_is_named() -> None:
    with pytest.raises(InputError, match=r"'within' of step 'm' from 3.6 s to 4.2 s: no clip has its middle .*9 clips"):
        ground(FLOW, scores=SCORES, constraints=[Constraint("within", 2, 3.6, 4.2)])
    with pytest.raises(InputError, match="'background' from 90 s to 95 s"):
        ground(FLOW, scores=SCORES, constraints=[Constraint("background", None, 90.0, 95.0)])
    with pytest.raises(InputError, match="from nan s"):
        ground(FLOW, scores=SCORES, constraints=[Constraint("background", None, math.nan, 5.0)])


def test_bad_input_is_named() -> None:
    with pytest.raises(InputError, match=r"\(9, 3\).*3 steps.*transposed"):
        ground(FLOW, scores=SCORES.T)
    with pytest.raises(InputError, match="there are no clips"):
        ground(FLOW, scores=np.zeros((3, 0)))
    with pytest.raises(InputError, match="scores is nan at step 1, clip 4"):
        bad = SCORES.copy()
        bad[1, 4] = math.nan
        ground(FLOW, scores=bad)
    with pytest.raises(InfeasibleError, match=r"2 clips.*3 steps"):
        ground(FLOW, scores=SCORES[:, :2])
    with pytest.raises(Graph2VidError, match=r"cannot read flow\.json"):
        ground("flow.json", scores=SCORES)
    for options, message in (
        ({"clip_seconds": 0.0}, "clip_seconds must be a number above 0 and at most 1e\\+09, not 0.0"),
        ({"clip_seconds": math.nan}, "clip_seconds must be a number above 0"),
        ({"offset": math.inf}, "offset must be a number of at least -1e\\+09"),
        ({"gamma": 0.0}, "gamma"),
        ({"method": "magic"}, "magic"),
    ):
        with pytest.raises(InputError, match=message):
            ground(FLOW, scores=SCORES, **options)


@settings(max_examples=25, deadline=None)
@given(dags(max_steps=5), st.data())
def test_a_clear_video_in_any_legal_order_is_read_back(flow: FlowGraph, data: st.DataObject) -> None:
    order: list[int] = []
    while len(order) < len(flow):
        ready = [s for s in range(len(flow)) if s not in order and all(p in order for p in flow.predecessors[s])]
        order.append(data.draw(st.sampled_from(ready)))
    labels = [label for step in order for label in (-1, step, step)]
    found = ground(flow, scores=scores_of(labels, len(flow), 20.0), drop=("prototype", np.full(len(labels), 10.0)))
    assert found.labels.tolist() == labels and list(found.order) == order
    assert Grounding.from_json(json.loads(json.dumps(found.to_json()))) == found
