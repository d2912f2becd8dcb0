"""Corrections of real videos: the truth of one step pinned, the others must not lose by it."""

from __future__ import annotations

import numpy as np
import pytest

from graph2vid._evaluation_options import ExperimentOptions
from graph2vid.alignment import Constraint, Problem, check_costs, order_trust
from graph2vid.datasets import read_dataset
from graph2vid.evaluate.engine import evaluate_one_by_one
from graph2vid.evaluate.parsed import ParsedGraphs, with_parsed_graphs
from graph2vid.grounding.doubt import suspend
from layouts import real_data

pytest.importorskip("wordllama", reason="needs graph2vid[text]")


def iou(labels: np.ndarray, truth: np.ndarray, steps: list[int]) -> float:
    shared = sum(((labels == step) & (truth == step)).sum() for step in steps)
    either = sum(((labels == step) | (truth == step)).sum() for step in steps)
    return 100.0 * shared / either


@pytest.mark.slow
def test_a_pinned_step_costs_the_others_nothing() -> None:
    dataset = with_parsed_graphs(read_dataset("crosstask", real_data("crosstask_narrated")), ParsedGraphs(["auto"]))
    *_, results = evaluate_one_by_one(dataset, ["linear"], ExperimentOptions(), lambda *_: None)
    random, changes = np.random.default_rng(0), []
    for video in results.videos[::5]:
        flow, costs, truth = video.task.flows["auto"], video.costs, video.truth
        shown = [step for step in range(len(flow)) if (truth == step).any()]
        if len(shown) < 2:
            continue
        step = int(random.choice(shown))
        start = int((truth == step).argmax())
        length = int((truth[start:] != step).argmax()) or len(truth) - start
        pins = [Constraint(kind, step, start, start + length) for kind in ("show", "within")]
        trust = order_trust(flow, check_costs(flow, costs.match, costs.drop, costs.skip))
        before = Problem(flow, costs.match, costs.drop, costs.skip, violation=trust).align()
        pinned = Problem(flow, costs.match, costs.drop, costs.skip, violation=trust, constraints=pins)
        _, after, _ = suspend(pinned, pinned.align())
        others = [other for other in shown if other != step]
        changes.append(iou(after.labels, truth, others) - iou(before.labels, truth, others))
    means = [random.choice(changes, len(changes)).mean() for _ in range(2000)]
    low, high = np.percentile(means, [2.5, 97.5])
    print(f"{len(changes)} videos: {np.mean(changes):+.2f} [{low:.2f}, {high:.2f}], worst {min(changes):.1f}")
    assert len(changes) >= 100 and np.mean(changes) >= 0.0
