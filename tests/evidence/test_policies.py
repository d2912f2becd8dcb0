"""Match, drop and skip policies against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.evidence import (
    DROP_POLICIES,
    MATCH_POLICIES,
    PRESETS,
    REPEAT_POLICIES,
    SKIP_POLICIES,
    costs_from_arrays,
    costs_from_similarity,
)
from graph2vid.evidence.policies import StepEvidence

Matrix = NDArray[np.float64]
DROPS = ["auto", "percentile:45", "constant:1.25", "entropy", "entropy:0.5"]


def matrices(dtype: type = np.float64, min_rows: int = 1) -> st.SearchStrategy[Matrix]:
    shapes = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6).filter(lambda s: s[0] >= min_rows)
    values = st.floats(-50, 50, width=32)
    return hnp.arrays(dtype, shapes, elements=values)


def softmax(logits: Matrix) -> Matrix:
    weights = np.exp(logits - logits.max(axis=0))
    likely: Matrix = weights / weights.sum(axis=0)
    return likely


def test_the_registries_hold_what_the_product_promises() -> None:
    assert {"likelihood", "likelihood_bg", "raw"} <= set(MATCH_POLICIES)
    assert {"auto", "percentile", "constant", "vector", "prototype", "entropy"} <= set(DROP_POLICIES)
    assert {"constant", "percentile", "given"} <= set(SKIP_POLICIES)


@settings(max_examples=50, deadline=None)
@given(matrices(), st.floats(0.05, 20))
def test_likelihoods_of_the_distinct_steps_sum_to_one(similarity: Matrix, temperature: float) -> None:
    costs = costs_from_similarity(similarity, temperature=temperature)
    distinct = np.unique(similarity + 0.0, axis=0, return_index=True)[1]
    assert (costs.match >= 0).all()
    np.testing.assert_allclose(np.exp(-costs.match[distinct]).sum(axis=0), 1.0, rtol=1e-9)
    np.testing.assert_allclose(np.exp(-costs.match[distinct]), softmax(similarity[distinct] / temperature), atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(matrices(), st.sampled_from(DROPS))
def test_with_background_in_the_softmax_steps_and_background_sum_to_one(similarity: Matrix, drop: str) -> None:
    costs = costs_from_similarity(similarity, match="likelihood_bg", drop=drop)
    distinct = np.unique(similarity + 0.0, axis=0, return_index=True)[1]
    total = np.exp(-costs.match[distinct]).sum(axis=0) + np.exp(-costs.drop)
    np.testing.assert_allclose(total, 1.0, rtol=1e-9)


@settings(max_examples=50, deadline=None)
@given(matrices(), st.floats(0, 100), st.sampled_from(["likelihood", "raw"]))
def test_the_percentile_is_that_of_the_distinct_steps(similarity: Matrix, q: float, match: str) -> None:
    costs = costs_from_similarity(similarity, match=match, drop=("percentile", q))
    distinct = np.unique(similarity + 0.0, axis=0, return_index=True)[1]
    expected = np.percentile(costs.match[distinct], q, method="linear")
    np.testing.assert_allclose(costs.drop, np.full(similarity.shape[1], expected), rtol=1e-9, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(
    matrices(),
    st.randoms(use_true_random=False),
    st.sampled_from(["likelihood", "likelihood_bg", "raw"]),
    st.sampled_from(DROPS),
)
def test_costs_follow_the_steps_and_clips_when_those_are_reordered(
    similarity: Matrix, random: object, match: str, drop: str
) -> None:
    rows, columns = (list(range(length)) for length in similarity.shape)
    random.shuffle(rows)  # type: ignore[attr-defined]
    random.shuffle(columns)  # type: ignore[attr-defined]
    before = costs_from_similarity(similarity, match=match, drop=drop, skip="percentile")
    after = costs_from_similarity(similarity[rows][:, columns], match=match, drop=drop, skip="percentile")
    np.testing.assert_allclose(after.match, before.match[rows][:, columns], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(after.drop, before.drop[columns], rtol=1e-9, atol=1e-9)
    assert before.skip is not None and after.skip is not None
    np.testing.assert_allclose(after.skip, before.skip[rows], rtol=1e-9, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(matrices(np.float32), st.sampled_from(["likelihood", "likelihood_bg", "raw"]), st.sampled_from(DROPS))
def test_float32_stays_and_is_as_right_as_it_can_be(similarity: Matrix, match: str, drop: str) -> None:
    small = costs_from_similarity(similarity, match=match, drop=drop, skip=1.0)
    large = costs_from_similarity(similarity.astype(np.float64), match=match, drop=drop, skip=1.0)
    assert small.skip is not None
    assert small.match.dtype == small.drop.dtype == small.skip.dtype == np.float32
    assert large.match.dtype == np.float64
    np.testing.assert_array_equal(small.match, large.match.astype(np.float32))
    np.testing.assert_array_equal(small.drop, large.drop.astype(np.float32))


def test_raw_is_minus_similarity_over_temperature() -> None:
    costs = costs_from_similarity([[1.0, 2.0], [3.0, -4.0]], match="raw", temperature=2.0, drop=0.25)
    np.testing.assert_array_equal(costs.match, [[-0.5, -1.0], [-1.5, 2.0]])
    np.testing.assert_array_equal(costs.drop, [0.25, 0.25])
    assert costs.skip is None


def test_large_similarities_neither_overflow_nor_lose_their_differences() -> None:
    costs = costs_from_similarity(np.array([[1e30, -1e30], [1e30, 1e30], [0.0, 0.0]]), temperature=0.1)
    np.testing.assert_allclose(costs.match[:2, 0], math.log(2))
    assert costs.match[1, 1] == 0.0
    assert np.isfinite(costs.match).all()


def test_identical_rows_count_once() -> None:
    once = costs_from_similarity([[1.0, 0.0], [0.0, 2.0]])
    twice = costs_from_similarity([[1.0, 0.0], [0.0, 2.0], [1.0, -0.0]])
    np.testing.assert_array_equal(twice.match[:2], once.match)
    np.testing.assert_array_equal(twice.match[2], once.match[0])
    np.testing.assert_array_equal(twice.drop, once.drop)


def test_classes_may_be_given_and_their_first_step_speaks_for_them() -> None:
    costs = costs_from_similarity([[1.0, 0.0], [1.0001, 0.0], [0.0, 2.0]], classes=[7, 7, 3])
    expected = costs_from_similarity([[1.0, 0.0], [0.0, 2.0]])
    np.testing.assert_array_equal(costs.match, expected.match[[0, 0, 1]])
    np.testing.assert_array_equal(costs.drop, expected.drop)


def test_one_step_says_nothing_by_likelihood_and_something_with_background() -> None:
    scores = np.array([[0.0, 3.0, 0.0, 1.0]])
    np.testing.assert_array_equal(costs_from_similarity(scores).match, np.zeros((1, 4)))
    costs = costs_from_arrays(scores=scores)
    assert costs.options["match"] == "likelihood_bg"
    assert costs.match[0, 1] < costs.drop[1] and costs.match[0, 0] > costs.drop[0]


@pytest.mark.parametrize("match", ["likelihood", "likelihood_bg", "raw"])
@pytest.mark.parametrize("drop", [*DROPS, ("vector", [2.0]), ("prototype", [0.5])])
def test_one_step_and_one_clip(match: str, drop: object) -> None:
    costs = costs_from_similarity([[0.5]], match=match, drop=drop, skip="percentile")  # type: ignore[arg-type]
    assert costs.match.shape == (1, 1) and costs.drop.shape == (1,)
    assert np.isfinite(costs.match).all() and np.isfinite(costs.drop).all()


def test_the_prototype_costs_what_a_step_would() -> None:
    scores = np.array([[1.0, 0.0], [0.0, 3.0]])
    background = np.array([2.0, 0.5])
    raw = costs_from_similarity(scores, match="raw", drop=("prototype", background), temperature=0.5)
    np.testing.assert_allclose(raw.drop, -background / 0.5)
    alone = costs_from_similarity(scores, drop=("prototype", background))
    np.testing.assert_allclose(alone.drop, np.log(np.exp(scores).sum(axis=0)) - background)
    joint = costs_from_similarity(scores, match="likelihood_bg", drop=("prototype", background))
    expected = softmax(np.vstack([scores, background]))
    np.testing.assert_allclose(np.exp(-joint.match), expected[:2])
    np.testing.assert_allclose(np.exp(-joint.drop), expected[2])


def test_by_entropy_a_confident_clip_is_expensive_to_drop_and_a_vague_one_free() -> None:
    costs = costs_from_similarity([[50.0, 1.0, 2.0], [0.0, 1.0, 0.0], [-1.0, 1.0, 0.0]], drop="entropy")
    assert costs.drop[0] == pytest.approx(math.log(3))
    assert costs.drop[1] == pytest.approx(0.0, abs=1e-12)
    assert costs.drop[1] < costs.drop[2] < costs.drop[0]
    assert costs.drop[0] > costs.match[0, 0] and costs.drop[1] < costs.match[:, 1].min()


def test_the_best_decision_between_step_and_background_is_the_same_on_every_scale() -> None:
    scores = np.random.default_rng(0).normal(size=(4, 9)) * 3
    for drop in ("entropy", ("prototype", np.linspace(-2, 3, 9))):
        margins = []
        for match in ("likelihood", "likelihood_bg", "raw"):
            costs = costs_from_similarity(scores, match=match, drop=drop)
            margins.append(costs.match - costs.drop)
        np.testing.assert_allclose(margins[0], margins[1], atol=1e-9)
        np.testing.assert_allclose(margins[0], margins[2], atol=1e-9)


def test_skip_policies() -> None:
    scores = [[-1.0, -3.0], [-5.0, -4.0], [-2.0, -9.0]]
    given_costs = costs_from_similarity(scores, match="raw", drop=1.0, skip=[1.0, math.inf, 3.0])
    np.testing.assert_array_equal(given_costs.skip, [1.0, math.inf, 3.0])
    constant = costs_from_similarity(scores, match="raw", drop=1.0, skip="constant:2.5")
    np.testing.assert_array_equal(constant.skip, [2.5, 2.5, 2.5])
    # best evidence, match - drop: 0, 3, 1
    middle = costs_from_similarity(scores, match="raw", drop=1.0, skip="percentile:50")
    np.testing.assert_array_equal(middle.skip, [1.0, 1.0, 1.0])
    never_below_zero = costs_from_similarity(scores, match="raw", drop=100.0, skip="percentile")
    np.testing.assert_array_equal(never_below_zero.skip, [0.0, 0.0, 0.0])


def test_auto_costs_are_multiples_of_the_best_segment_of_the_middle_step() -> None:
    random = np.random.default_rng(0)
    for clips in (1, 2, 7):
        match, drop = random.normal(size=(3, clips)), random.normal(size=clips)
        match[0, 0], drop[-1] = math.inf, math.inf
        gain = np.where(np.isfinite(drop), drop, 0.0) - match
        runs = [(start, stop) for start in range(clips) for stop in range(start + 1, clips + 1)]
        best = [max(0.0, *(float(row[start:stop].sum()) for start, stop in runs)) for row in gain]
        evidence = StepEvidence(match, drop, np.arange(3))
        middle = sorted(best)[1]
        np.testing.assert_allclose(SKIP_POLICIES.get("auto")(evidence, None), [0.5 * middle] * 3)
        np.testing.assert_allclose(REPEAT_POLICIES.get("auto")(evidence, None), [1.25 * middle] * 3)
        np.testing.assert_allclose(REPEAT_POLICIES.get("auto")(evidence, 2.0), [2.0 * middle] * 3)


def test_presets_and_what_overrules_them() -> None:
    scores = np.arange(12.0).reshape(3, 4)
    paper = costs_from_arrays(scores=scores, preset="paper")
    np.testing.assert_array_equal(paper.drop, costs_from_similarity(scores, drop="percentile:30").drop)
    released = costs_from_arrays(scores=scores, preset="released")
    np.testing.assert_allclose(released.match, -scores / 10)
    np.testing.assert_allclose(released.drop, -scores.max() / 10)  # the top 10% of 12 are one
    changed = costs_from_arrays(scores=scores, preset="released", temperature=1.0)
    np.testing.assert_allclose(changed.match, -scores)
    assert changed.options == {
        "evidence": "scores",
        "preset": "released",
        "match": "raw",
        "drop": "top:10",
        "skip": None,
        "temperature": 1.0,
    }
    assert set(PRESETS) == {"paper", "released", "log_odds"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"match": "liklihood"}, "unknown match policy 'liklihood'; known: likelihood, likelihood_bg, raw"),
        ({"drop": "median"}, "unknown drop policy 'median'; known: auto, constant, entropy"),
        ({"drop": "constant"}, "drop policy 'constant' needs a number, for example constant:1.5"),
        ({"drop": "percentile:lots"}, "'lots' is not a number"),
        ({"drop": "percentile:101"}, "must lie in 0 … 100, not 101"),
        ({"drop": math.nan}, "drop policy 'constant' is nan at clip 0"),
        ({"drop": [1.0, -math.inf]}, "drop policy 'vector' is -inf at clip 1"),
        ({"drop": [1.0, 2.0, 3.0]}, r"must have shape \(2,\), one number per clip, not \(3,\)"),
        ({"drop": "vector"}, "needs an array with one number per clip"),
        ({"skip": "all"}, "unknown skip policy 'all'; known: auto, constant, given, percentile"),
        ({"skip": [1.0]}, r"must have shape \(3,\), one number per step, not \(1,\)"),
        ({"skip": [0.0, math.nan, 0.0]}, "skip policy 'given' is nan at step 1"),
        ({"temperature": 0.0}, "temperature must be a number above 0, not 0.0"),
        ({"temperature": math.nan}, "temperature must be a number above 0, not nan"),
        ({"classes": [0, 1]}, r"classes must be whole numbers of shape \(3,\)"),
        ({"preset": "theirs"}, "unknown preset 'theirs'; known: log_odds, paper, released"),
    ],
)
def test_bad_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        costs_from_arrays(scores=[[1.0, 2.0], [0.0, 1.0], [3.0, 1.0]], **options)  # type: ignore[arg-type]
