"""Calibrators: fitted, applied, kept in files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graph2vid.alignment import Problem
from graph2vid.errors import FormatError, InputError
from graph2vid.flow import FlowGraph
from graph2vid.grounding import GAMMAS, NARRATION, Calibrator, Example, Observed, observe
from graph2vid.grounding.calibrator import SEGMENT, STEP, VIDEO, Logistic


def observed(seed: int = 0, n_steps: int = 4, n_clips: int = 40) -> tuple[Problem, Observed]:
    random = np.random.default_rng(seed)
    match = random.normal(size=(n_steps, n_clips))
    problem = Problem(
        FlowGraph.chain([str(step) for step in range(n_steps)]), match, np.zeros(n_clips), np.ones(n_steps)
    )
    return problem, observe(problem, problem.align(), clip_seconds=2.0)


def example(seed: int, own: bool = False) -> Example:
    """A video whose segments are right by chance, rarely where they are short."""
    problem, seen = observed(seed)
    random = np.random.default_rng(seed)
    labels = problem.align().labels
    truth = (labels == np.arange(4)[:, np.newaxis]) & (random.random(len(labels)) < (0.6 if own else 0.2))
    right = np.array([truth[part.step, part.start : part.stop].mean() for part in problem.align().segments])
    return Example(seen, right, 1.0 - truth.any(axis=1), truth, own)


def test_a_regression_finds_the_chances_behind_shares() -> None:
    random = np.random.default_rng(3)
    features = random.normal(size=(20_000, 3)) * [1.0, 10.0, 0.0]
    chance = 1 / (1 + np.exp(-(0.5 + features @ [1.0, -0.1, 0.0])))
    found = Logistic.fit(features, (random.random(len(chance)) < chance).astype(float), l2=1.0)
    assert found.bias == pytest.approx(0.5, abs=0.1)
    assert found.weights == pytest.approx([1.0, -0.1, 0.0], abs=0.1)
    assert found(features).mean() == pytest.approx(chance.mean(), abs=0.01)
    far = np.array([[1e9, 0.0, 0.0]])
    assert found(far) == found(np.array([[found.high[0], 0.0, 0.0]])), "it does not go on beyond what it was fitted on"


def test_what_is_observed_has_the_features_it_says() -> None:
    problem, seen = observed()
    found, sharp = problem.align(), problem.posterior(GAMMAS[0])
    assert seen.segments.shape == (len(found.segments), len(SEGMENT)) and seen.video.shape == (len(VIDEO),)
    assert seen.steps.shape == (4, len(STEP)) and seen.clips().shape[:2] == (4, 40)
    part = found.segments[0]
    row = dict(zip(SEGMENT, seen.segments[0], strict=True))
    assert 1 / (1 + np.exp(-row["posterior"])) == pytest.approx(np.clip(sharp.confidence(part), 1e-3, 1 - 1e-3))
    assert row["length"] == pytest.approx(np.log(2.0 * (part.stop - part.start)))
    assert row["peak"] == -problem.costs.match[part.step, part.start : part.stop].min()
    outside = np.delete(problem.costs.match[part.step], np.arange(part.start, part.stop))
    assert row["elsewhere"] == pytest.approx(row["peak"] + outside.min())
    told = observe(problem, found, likeness={"mean": 0.1, "closest": 0.2, "said": 0.3})
    assert told.video.tolist() == [seen.video[0], 0.1, 0.2, 0.3]
    assert np.isfinite(seen.clips()).all()


def test_agreement_with_the_written_order() -> None:
    match = np.full((4, 40), 2.0)
    for step in range(4):
        match[step, 10 * step : 10 * step + 10] = -2.0
    chain = FlowGraph.chain(list("abcd"))
    along, against = (
        observe(problem, problem.align())
        for problem in (Problem(chain, rows, np.zeros(40), np.zeros(4)) for rows in (match, match[::-1]))
    )
    assert along.steps[0, STEP.index("agreement")] > 1.0 > -1.0 > against.steps[0, STEP.index("agreement")]
    assert along.video[0] > 1.0 > -1.0 > against.video[0], "cheaper than its reverse, or more expensive"


def test_constraints_steps_that_must_be_shown_and_short_videos_are_observed() -> None:
    match = np.zeros((3, 3))
    match[0, 1:] = np.inf
    problem = Problem(FlowGraph.chain(list("abc")), match, np.ones(3))
    assert np.isfinite(observe(problem, problem.align()).clips()).all()
    problem = Problem(FlowGraph.bag(list("abc")), np.zeros((3, 2)), np.ones(2), np.array([0.0, 1.0, 2.0]))
    assert np.isfinite(observe(problem, problem.align()).video).all()
    problem = Problem(FlowGraph.bag(["a"]), np.zeros((1, 2)), np.ones(2), repeat=1.0)
    assert np.isfinite(observe(problem, problem.align()).steps).all()


def test_fitted_saved_and_read_again(tmp_path: Path) -> None:
    examples = [example(seed, own=seed % 3 == 0) for seed in range(60)]
    fitted = Calibrator.fit(examples, "scores", about={"by": "a test"})
    assert fitted.segment.gate is not None and len(fitted.segment.experts) == 2
    fitted.save(tmp_path / "calibrator.json")
    again = Calibrator.load(tmp_path / "calibrator.json")
    seen = examples[0].observed
    assert again.evidence == "scores" and again.about == {"by": "a test"}
    assert again.confidences(seen) == pytest.approx(fitted.confidences(seen), abs=1e-3)
    stated = np.concatenate([fitted.confidences(one.observed) for one in examples])
    assert stated.mean() == pytest.approx(np.concatenate([one.right for one in examples]).mean(), abs=0.05)
    probability = again.probabilities(seen)
    assert probability.shape == (5, 40) and probability.min() >= 0
    assert probability.sum(axis=0) == pytest.approx(np.ones(40))
    assert ((again.absences(seen) > 0) & (again.absences(seen) < 1)).all()


def test_steps_of_a_procedure_that_tells_what_the_video_shows_are_not_absent() -> None:
    examples = []
    for seed in range(60):
        own = seed % 3 == 0
        one = example(seed, own)
        seen = replace(one.observed, video=np.array([2.0, 0.2, 0.6, 0.8] if own else [0.5, 0.1, 0.5, 0.4]))
        examples.append(replace(one, observed=seen, absent=np.zeros(4) if own else one.absent))
    fitted = Calibrator.fit(examples, "scores")
    general, own = (
        np.mean([fitted.absences(one.observed).mean() for one in examples if one.own == kind]) for kind in (False, True)
    )
    truth = np.mean([one.absent.mean() for one in examples if not one.own])
    assert own < 0.05 and general == pytest.approx(truth, abs=0.05)


def test_one_kind_of_procedures_needs_no_gate_and_nothing_is_refused() -> None:
    assert Calibrator.fit([example(seed) for seed in range(10)], "scores").segment.gate is None
    with pytest.raises(InputError, match="no segment"):
        Calibrator.fit([], "scores")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"evidence": 3}, "'evidence' must be a name"),
        ({"gammas": [1.0]}, "'gammas'"),
        ({"segment": {}}, "segment must have one list of experts"),
        ({"absent": {"experts": [{"bias": 1.0}]}}, "absent must have a bias"),
        ({"version": 99}, "99"),
    ],
)
def test_files_that_are_none_are_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    document = Calibrator.shipped().to_json() | change
    (tmp_path / "bad.json").write_text(json.dumps(document))
    with pytest.raises(FormatError, match=message):
        Calibrator.load(tmp_path / "bad.json")


def test_what_ships_is_for_narration_and_is_never_sure() -> None:
    shipped = Calibrator.shipped()
    assert shipped.evidence == NARRATION and shipped is Calibrator.shipped()
    for seed in range(5):
        stated = shipped.confidences(observed(seed)[1])
        assert ((stated > 0.005) & (stated < 0.95)).all()
