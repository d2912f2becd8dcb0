"""Doubtful segments, and edges of the flow graph that fight the evidence."""

from __future__ import annotations

import numpy as np
import pytest

import graph2vid as g2v
from graph2vid.alignment import Problem
from graph2vid.cli import main
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding, draw_timeline
from graph2vid.grounding.doubt import conflicts, forced_steps

CARCASS, DRAWERS, FINISH = range(17), range(17, 27), range(27, 35)
CLIPS = 8  # of each step


def cabinet() -> tuple[FlowGraph, np.ndarray]:
    """A cabinet in 35 steps, drawers first; the flow graph wrongly says that they come after the carcass."""
    edges = [(a, a + 1) for part in (CARCASS, DRAWERS, FINISH) for a in part[:-1]]
    edges += [(CARCASS[-1], FINISH[0]), (DRAWERS[-1], FINISH[0]), (CARCASS[-1], DRAWERS[0])]
    flow = FlowGraph.from_edges([(str(step + 1), f"step {step + 1}") for step in range(35)], edges)
    random = np.random.default_rng(7)
    scores = random.normal(size=(35, CLIPS * 35))
    for place, step in enumerate([*DRAWERS, *CARCASS, *FINISH]):
        scores[step, CLIPS * place : CLIPS * (place + 1)] += 4.0
    return flow, scores


@pytest.fixture(scope="module")
def grounded() -> Grounding:
    flow, scores = cabinet()
    return g2v.ground(flow, scores=scores)


def test_steps_that_a_false_edge_squeezes_are_not_shown(grounded: Grounding) -> None:
    lost = {*grounded.not_shown, *grounded.count.doubtful}
    assert lost >= set(DRAWERS) - {DRAWERS[0]}, "squeezed between the carcass and the finish"
    assert len(lost) <= 12 and len(grounded.not_shown) >= 9
    assert not {*grounded.not_shown} & {*grounded.order} and not {*grounded.not_shown} & {*grounded.labels.tolist()}
    again = Grounding.from_json(grounded.to_json())
    assert again.count == grounded.count and again.questions == grounded.questions
    assert "not shown" in str(grounded) and "uncalibrated" in str(grounded)


def test_the_edge_is_named(grounded: Grounding) -> None:
    (first, *_) = grounded.options["conflicts"]
    assert (first["before"], first["after"]) == ("17", "18") and first["gain"] > 50 and first["relieved"] >= 9
    assert grounded.questions[0].startswith("17 before 18 costs ") and "in doubt: is it right?" in grounded.questions[0]
    text = draw_timeline(grounded, 100).plain
    assert "17 before 18 costs" in text and "not shown" in text and "confidence: uncalibrated" in text


def test_relaxed_all_is_found(grounded: Grounding) -> None:
    flow, scores = cabinet()
    found = g2v.ground(flow, scores=scores, relax=True)
    assert [(one["before"], one["after"]) for one in found.options["relaxed"]] == [("17", "18")]
    assert found.count.shown == tuple(range(35)) and not found.questions
    assert found.order == (*DRAWERS, *CARCASS, *FINISH)
    assert (CARCASS[-1], DRAWERS[0]) not in found.flow.edges and len(found.flow.edges) == len(flow.edges) - 1
    truth = np.repeat([*DRAWERS, *CARCASS, *FINISH], CLIPS)
    assert (found.labels == truth).mean() > 0.9 > (grounded.labels == truth).mean()


def test_gains_of_all_edges_are_exact() -> None:
    random = np.random.default_rng(2)
    for _ in range(5):
        flow = FlowGraph.from_edges(list("abcde"), [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3), (3, 4)])
        match, drop = random.normal(size=(5, 12)), np.zeros(12)
        problem = Problem(flow, match, drop)
        found = problem.align()
        gains, complete = conflicts(problem, found)
        assert complete and len(gains) == 5, "that a comes before d follows from other edges"
        assert [one.gain for one in gains] == sorted((one.gain for one in gains), reverse=True)
        for one in gains:
            rest = [edge for edge in flow.edges if edge != (one.before, one.after)]
            best = g2v.align(FlowGraph.from_edges(list("abcde"), rest), match, drop, method="brute").cost
            assert one.gain == pytest.approx(found.cost - best)
        assert conflicts(problem, found, seconds=0.0) == ([], False)


def test_margins_tell_the_gains_of_all_edges() -> None:
    flow, scores = cabinet()
    true = FlowGraph(flow.steps, tuple(edge for edge in flow.edges if edge != (CARCASS[-1], DRAWERS[0])))
    found = g2v.ground(true, scores=scores, margins=True)
    told = found.options["edges"]
    assert told["complete"] and len(told["gains"]) == len(true.edges)
    assert max(one["gain"] for one in told["gains"]) < 4.0 and found.options.get("conflicts", []) == []


def test_the_command_names_the_edge_and_relaxes_it(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    flow, scores = cabinet()
    flow.save(tmp_path / "cabinet.json")
    np.save(tmp_path / "scores.npy", scores)
    asked = ["ground", str(tmp_path / "cabinet.json"), "--scores", str(tmp_path / "scores.npy")]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert "17 before 18 costs" in shown and "35 of 35" not in shown
    assert main([*asked, "--relax"]) == 0
    shown = capsys.readouterr().out
    assert "35 of 35 steps shown" in shown and " doubtful, " not in shown and "17 before 18" not in shown


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_of_several_videos_are_forced_as_those_of_each(dtype: type) -> None:
    random = np.random.default_rng(0)
    for steps, clips in [(1, 1), (1, 9), (4, 1), (5, 40), (9, 300)]:
        odds = random.normal(size=(6, steps, clips)).astype(dtype)
        odds[random.random(odds.shape) < 0.02] = -np.inf
        labels = random.integers(-1, steps, (6, clips))
        each = [forced_steps(one, of_clips) for one, of_clips in zip(odds, labels, strict=True)]
        np.testing.assert_array_equal(forced_steps(odds, labels), each, strict=True)


def test_clear_evidence_is_not_doubted_and_what_is_absent_is() -> None:
    for n_steps in (4, 6, 9):
        scores = np.repeat(3.0 * np.eye(n_steps), 5, axis=1)
        found = g2v.ground(FlowGraph.bag([f"step {step}" for step in range(n_steps)]), scores=scores)
        assert not found.count.doubtful and not found.questions
    scores = np.repeat(3.0 * np.eye(3), 5, axis=1)
    absent = g2v.ground(FlowGraph.chain(list("abcd")), scores=np.vstack([scores, np.full(15, -3.0)]))
    assert absent.not_shown == (3,), "it must be shown, and nothing speaks for it"
