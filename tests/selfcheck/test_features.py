"""Cases with features: they agree with enumeration, and what is wrong is found."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from graph2vid.alignment import ClipCosts, automata
from graph2vid.cli import main
from graph2vid.flow import FlowGraph
from graph2vid.selfcheck import selfcheck
from graph2vid.selfcheck.cases import FEATURES, Case, make_feature_case
from graph2vid.selfcheck.comparison import check_case
from graph2vid.selfcheck.enumerate import enumerate_segments, segments_cost


def test_all_agree() -> None:
    report = selfcheck(120, seed=3, features=True, workers=1)
    assert report.agreed, report.mismatches
    assert report.cases == 120
    assert 0 < report.infeasible < 60
    assert {name.partition(":")[0] for name in report.checks} == {*FEATURES, "together"}


def test_cases_are_reproducible_and_plain_json() -> None:
    for index in range(40):
        one, again = (json.dumps(make_feature_case(5, index).to_json(), allow_nan=False) for _ in range(2))
        assert one == again == json.dumps(Case.from_json(json.loads(one)).to_json())


def test_a_wrong_cost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = automata.solve

    def wrong(problem: automata.AutomatonProblem, *how: Any) -> tuple[float, object]:
        cost, labels = right(problem, *how)
        return cost + 0.5, labels

    monkeypatch.setattr(automata, "solve", wrong)
    reports = [check_case(make_feature_case(0, index)) for index in range(30)]
    assert any(report.failures for report in reports)
    assert all("align" in name or "k_best" in name for report in reports for name in report.failures)


def test_the_definition_on_a_case_by_hand() -> None:
    flow = FlowGraph.from_edges(["a", "b", "c"], [(0, 1), (1, 2, 0.75)])
    skip, repeat = np.array([3.0, 5.0, 7.0]), np.array([1.0, 2.0, 4.0])

    def cost(*steps: int) -> float:
        segments = [(step, at, at + 1) for at, step in enumerate(steps)]
        return segments_cost(flow, segments, skip, repeat, None, 1.0)

    assert cost(0, 1, 2) == 0
    assert cost(0, 1, 0, 2) == 1  # back to a
    assert cost(1, 0, 2) == 3 + 1  # a was waived, and is shown all the same
    assert cost(0, 2, 1) == pytest.approx(np.log(3))  # b after c
    assert cost(2) == 3 + 5
    costs = ClipCosts(np.zeros((3, 2)), np.zeros(2), skip)
    found = enumerate_segments(Case(0, 0, "together", flow, costs, 1.0, (), True, repeat=repeat))
    assert found.cost == 3.0  # b and c are shown


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selfcheck", "--features", "--cases", "20", "--workers", "1"]) == 0
    assert "20 cases" in capsys.readouterr().out
