"""The comparison: it passes on what is right, and finds what is wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest

from graph2vid.alignment import _reference
from graph2vid.cli import main
from graph2vid.errors import InfeasibleError
from graph2vid.selfcheck import Case, comparison, selfcheck
from graph2vid.selfcheck.comparison import Outcome, check_case
from graph2vid.selfcheck.enumerate import _legal, _sequences, labels_cost


def test_all_agree():
    done = []
    report = selfcheck(150, seed=1, workers=1, progress=done.append)
    assert report.agreed, report.mismatches
    assert report.cases == sum(done) == 150
    assert 0 < report.infeasible < 75
    assert report.checks["reference"] == 150
    assert report.checks["enumeration"] > 75
    if report.native:
        assert report.checks["align, native"] == report.checks["posterior, native"] == 150


def test_workers_do_not_change_the_findings():
    one, two = (selfcheck(70, seed=2, workers=workers).to_json() for workers in (1, 2))
    one.pop("seconds"), two.pop("seconds")
    assert one == two


def one_sink(problem):
    """Wrong: read the answer off one of the last states only."""
    cost, labels = _reference.solve(problem.tsort, problem.lowered, contiguous=problem.contiguous)
    if labels is None:
        raise InfeasibleError
    last = labels[labels >= 0][-1:]
    return Outcome(cost + bool(last.size and last[0] != problem.flow.sinks[0]), labels)


def other_tie(problem):
    """Wrong: among the cheapest alignments the last one, not the first."""
    case = problem
    if problem.enumeration is None:
        return None
    if problem.enumeration.labels is None:
        raise InfeasibleError
    labels, first = _sequences(*case.costs.match.shape, case.contiguous)
    labels = labels[_legal(case.flow, first, labels.shape[1])]
    cost = labels_cost(labels, *problem.lowered)
    return Outcome(cost.min(), labels[np.flatnonzero(cost == cost.min())[-1]])


def crashes(problem):
    raise ZeroDivisionError("oh")


def never_infeasible(problem):
    cost, labels = _reference.solve(problem.tsort, problem.lowered, contiguous=problem.contiguous)
    return Outcome(cost, labels)


@pytest.mark.parametrize("wrong", [one_sink, other_tie, crashes, never_infeasible])
def test_finds_what_is_wrong(monkeypatch, wrong):
    right = comparison.solvers()
    monkeypatch.setattr(comparison, "solvers", lambda: {"reference": right["reference"], "wrong": wrong})
    monkeypatch.setattr(comparison, "soft_solvers", dict)
    report = selfcheck(120, seed=4, workers=1)
    assert not report.agreed
    assert set(report.failures) == {"wrong"}
    mismatch = report.mismatches[0].to_json()
    assert mismatch["check"] == "wrong"
    assert mismatch["detail"]
    repeated = check_case(Case.from_json(json.loads(json.dumps(mismatch, allow_nan=False))["case"]))
    assert repeated.failures["wrong"] == 1


def test_command(tmp_path, capsys):
    file = tmp_path / "report.json"
    assert main(["selfcheck", "--cases", "30", "--seed", "5", "--workers", "1", "--json", str(file)]) == 0
    printed = capsys.readouterr()
    assert "all agree" in printed.out
    assert printed.err == ""
    report = json.loads(file.read_text())
    assert report["cases"] == 30
    assert report["seed"] == 5
    assert report["mismatches"] == []


def test_command_fails_on_a_mismatch(monkeypatch, capsys):
    right = comparison.solvers()
    monkeypatch.setattr(comparison, "solvers", lambda: {"reference": right["reference"], "wrong": crashes})
    assert main(["selfcheck", "--cases", "3", "--workers", "1"]) == 1
    assert "ZeroDivisionError: oh" in capsys.readouterr().out
