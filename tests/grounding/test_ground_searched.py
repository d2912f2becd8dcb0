"""Groundings of procedures with too many legal orders: searched, and told how good they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graph2vid.cli import main
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding, ground

STEPS, CLIPS = 30, 120
BAG = FlowGraph.bag([f"do thing {k}" for k in range(STEPS)])
ORDER = np.random.default_rng(0).permutation(STEPS)
SCORES = np.random.default_rng(1).normal(0.0, 0.5, (STEPS, CLIPS))
SCORES[np.repeat(ORDER, CLIPS // STEPS), np.arange(CLIPS)] += 8.0


def test_the_gap_stands_in_the_options() -> None:
    found = ground(BAG, scores=SCORES, confidence=False)
    assert found.order == tuple(ORDER)
    assert found.options["alignment"]["method"] == "anytime"
    assert found.options["alignment"]["gap"] == 0.0
    assert found.options["alignment"]["lower_bound"] == found.cost


def test_confidences_weigh_the_orders_near_the_one_found() -> None:
    found = ground(BAG, scores=SCORES)
    assert found.order == tuple(ORDER)
    assert all(segment.posterior is not None and segment.posterior > 0.9 for segment in found.segments)


def test_the_command_says_the_gap(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    BAG.save(tmp_path / "bag.json")
    np.save(tmp_path / "scores.npy", SCORES)
    result = tmp_path / "result.json"
    arguments = ["ground", str(tmp_path / "bag.json"), "--scores", str(tmp_path / "scores.npy"), "--no-confidence"]
    assert main([*arguments, "-o", str(result)]) == 0
    assert "too many legal orders to try all; searched, and proven to be the best" in capfd.readouterr().out
    assert Grounding.load(result).options["alignment"]["gap"] == 0.0
    noise = np.random.default_rng(2).normal(0.0, 1.0, SCORES.shape)
    np.save(tmp_path / "scores.npy", noise)
    assert main([*arguments, "--time-limit", "0.001"]) == 0
    assert "searched: the cost is at most" in capfd.readouterr().out
    assert main([*arguments, "--time-limit", "0"]) == 2
    assert "time_limit must be a number above 0" in capfd.readouterr().err
