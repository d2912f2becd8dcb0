"""Costs of many videos at once are those of each alone, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph2vid.batch.row_costs import costs_of_many, repeat_costs_of_many
from graph2vid.errors import InputError
from graph2vid.evidence import Costs, costs_from_arrays, repeat_costs

options = st.fixed_dictionaries(
    {},
    optional={
        "preset": st.sampled_from(["paper", "released", "log_odds"]),
        "match": st.sampled_from(["likelihood", "likelihood_bg", "raw"]),
        "drop": st.sampled_from(
            [
                *("percentile:30", "percentile", "auto", "constant:1.5", "entropy", "percentile:99", "2"),
                *("1e300", "-1e39", "constant:-1e39", "inf", "nan"),
            ]
        ),
        "skip": st.sampled_from(["constant:3", "percentile", "percentile:20", "1e300", "inf", "-inf"]),
        "temperature": st.sampled_from([0.1, 1.0, 7.0]),
    },
)


def evidence(seed: int) -> tuple[int, list[dict[str, Any]]]:
    """Return some videos of one procedure, some of them out of the ordinary."""
    random = np.random.default_rng(seed)
    steps = int(random.integers(1, 7))
    same, order = random.random() < 0.5, random.choice(["C", "F"])
    videos = []
    for _ in range(int(random.integers(1, 7))):
        clips = 12 if same else int(random.integers(1, 40))
        dtype = random.choice([np.float32, np.float64, np.int64], p=[0.5, 0.4, 0.1])
        if random.random() < 0.3:
            width = int(random.integers(1, 6))
            videos.append({"clips": random.normal(size=(clips, width)), "steps": random.normal(size=(steps, width))})
            continue
        matrix = (random.normal(size=(steps, clips)) * 3).astype(dtype, order=order)
        if random.random() < 0.3:  # clips that show a step, and others, clearly apart
            matrix[:] = matrix / 100 + 9 * (
                np.arange(clips) % (steps + random.integers(2)) == np.arange(steps)[:, None]
            )
        if random.random() < 0.2:
            matrix[0] = matrix[-1]
        if random.random() < 0.1:
            matrix[0, 0] = 1e35 if dtype == np.float32 else 1e300 if dtype == np.float64 else 7
        videos.append({"log_probabilities": -np.abs(matrix)} if random.random() < 0.1 else {"scores": matrix})
    return steps, videos


def alone(video: dict[str, Any], steps: int, chosen: dict[str, Any]) -> Costs | Exception:
    try:
        return costs_from_arrays(**video, **chosen, n_steps=steps)
    except Exception as error:
        return error


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), options)
def test_many_are_as_each_alone(seed: int, chosen: dict[str, Any]) -> None:
    steps, videos = evidence(seed)
    for found, video in zip(costs_of_many(videos, steps, chosen), videos, strict=True):
        wanted = alone(video, steps, chosen)
        if isinstance(wanted, Exception):
            assert str(found) == str(wanted)
            continue
        assert isinstance(found, Costs)
        for name in ("match", "drop", "skip"):
            ours, theirs = getattr(found, name), getattr(wanted, name)
            assert (ours is None) == (theirs is None)
            if theirs is not None:
                assert ours.dtype == theirs.dtype
                assert ours.flags.c_contiguous
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "repeat", ["2", "constant:0.5", "inf", "percentile", "percentile:20", "auto", ("given", [1, 2, 3])]
)
def test_repeats_of_many_are_as_those_of_each(repeat: Any) -> None:
    random = np.random.default_rng(0)
    videos = [costs_from_arrays(scores=random.normal(size=(3, clips))) for clips in (4, 9, 9)]
    wanted = [repeat_costs(one, repeat)[0] for one in videos]
    for found, of_one in zip(repeat_costs_of_many(videos, repeat), wanted, strict=True):
        np.testing.assert_array_equal(found, of_one, strict=True)


def test_errors_belong_to_their_video() -> None:
    good, bad = np.zeros((3, 5)) + np.arange(3)[:, None], np.full((3, 5), np.nan)
    found = costs_of_many([{"scores": good}, {"scores": bad}, {"scores": good[:2]}], 3, {})
    assert isinstance(found[0], Costs)
    assert isinstance(found[1], InputError) and "finite" in str(found[1])
    assert isinstance(found[2], InputError) and "shape" in str(found[2])


@pytest.mark.parametrize("drop", ["percentile:120", "constant:x", "nonsense"])
def test_wrong_policies_are_told_as_ever(drop: str) -> None:
    scores = np.random.default_rng(0).normal(size=(3, 8))
    (found,) = costs_of_many([{"scores": scores}], 3, {"drop": drop})
    assert str(found) == str(alone({"scores": scores}, 3, {"drop": drop}))
