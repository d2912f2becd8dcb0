"""Flow graphs from files: groundings, lists and tables of executions, and what the words say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graph2vid.cli import main
from graph2vid.errors import FormatError, Graph2VidError, InputError
from graph2vid.flow import Execution, FlowGraph, mine_executions
from graph2vid.grounding import (
    GroundedSegment,
    Grounding,
    durations_document,
    executions_of,
    mine_files,
    read_durations,
    read_executions,
    text_prior,
)
from graph2vid.text import Instruction, Parse, Procedure, Reason

SALAD = ("Wash the lettuce.", "Cut the tomato.", "Mix lettuce and tomato.")


def grounding(order: tuple[int, ...], confidence: float | None = None, posterior: float | None = None) -> Grounding:
    flow = FlowGraph.bag(SALAD)
    segments = tuple(
        GroundedSegment(step, flow.ids[step], flow.texts[step], 2.0 * at, 2.0 * at + 1, confidence, None, posterior)
        for at, step in enumerate(order)
    )
    return Grounding(flow, segments, (), order, 0.0, np.zeros(6, dtype=np.int64))


def test_graph_of_groundings_is_that_of_their_orders(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.json" for number in range(6)]
    for number, path in enumerate(paths):
        grounding((0, 1, 2) if number % 2 else (1, 0, 2)).save(path)
    mined = mine_files(paths, bootstrap=5)
    assert mined.flow.edges == ((0, 2), (1, 2))
    assert mined.flow.texts == SALAD
    assert mined.durations[0] == pytest.approx((1, 0))


def test_draws_have_segments_as_often_as_they_are_probable() -> None:
    for one in (grounding((0, 1, 2), confidence=0.25), grounding((0, 1, 2), posterior=0.25)):
        drawn = executions_of(one, draws=400)
        assert sum(execution.weight for execution in drawn) == pytest.approx(1 - 0.75**3, abs=0.08)
        shown = sum(execution.weight * len(execution.segments) for execution in drawn)
        assert shown == pytest.approx(3 * 0.25, abs=0.1)
    (sure,) = executions_of(grounding((0, 1, 2)))
    assert sure.weight == 1 and [step for step, _, _ in sure.segments] == ["1", "2", "3"]


def test_confidences_count_each_grounding_once(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.json" for number in range(3)]
    for path in paths:
        grounding((0, 1, 2), confidence=0.9).save(path)
    drawn, _ = read_executions(paths)
    assert len({one.source for one in drawn}) == 3 and len(drawn) == 24
    # Eight draws of one execution are as sure as that one execution, and no surer.
    once = [Execution.of("abc"), Execution.of("acb"), Execution.of("abc"), Execution.of("abc")]
    often = [replace(one, weight=1 / 8, source=str(at)) for at, one in enumerate(once) for _ in range(8)]
    assert mine_executions(often, bootstrap=40).confidence == mine_executions(once, bootstrap=40).confidence


def test_durations_count_draws_by_their_weight() -> None:
    rows = [Execution((("a", 0.0, 1.0),))] * 3 + [Execution((("a", 0.0, 9.0),), 1 / 8)] * 8
    median, spread = mine_executions(rows, bootstrap=0).durations[0]
    logs = np.log([1, 1, 1, 9])
    assert median == pytest.approx(1) and spread == pytest.approx(logs.std())
    even = [Execution((("a", 0.0, float(seconds)),)) for seconds in (1, 4)]
    assert mine_executions(even, bootstrap=0).durations[0][0] == pytest.approx(2)


def test_doubtful_groundings_count_less(tmp_path: Path) -> None:
    contrary, sure = tmp_path / "contrary.json", tmp_path / "sure.json"
    grounding((2, 1, 0), confidence=0.1).save(contrary)
    grounding((0, 1, 2), confidence=0.9).save(sure)
    executions, _ = read_executions([contrary] * 4 + [sure] * 4)
    assert sum(len(one.segments) * one.weight for one in executions) == pytest.approx(12, abs=2)
    assert mine_files([contrary] * 4 + [sure] * 4, bootstrap=0).flow.edges == ((0, 1), (1, 2))


def test_lists_and_tables_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text(json.dumps([[["wash", 0, 4], ["mix", 5, 9]], [["wash", 0, 4], ["mix", 3, 9]]]))
    (tmp_path / "e.csv").write_text("recording,step,start,end\nx,wash,0,4\nx,mix,5,9\ny,wash,0,4\ny,mix,3,9\n")
    (tmp_path / "one.csv").write_text("step\nwash\nmix\n")
    (tmp_path / "orders.json").write_text('[["wash", "mix"]]')
    assert read_executions([tmp_path / "e.json"]) == read_executions([tmp_path / "e.csv"])
    assert read_executions([tmp_path / "one.csv"]) == read_executions([tmp_path / "orders.json"])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("e.json", '{"a": 1}', "list of executions"),
        ("e.json", '[["a", ["b", 0, 1]]]', "execution 1: a step is its id"),
        ("e.json", '[[["a", 2, 1]]]', "it ends at 1 s"),
        ("e.json", "[]", "nothing to mine"),
        ("e.csv", "name\na\n", "line 1: there should be a column step"),
        ("e.csv", "step,start,end\n,0,1\n", "line 2: there is no step"),
        ("e.csv", "step,start,end\na,x,1\n", "line 2"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(Graph2VidError, match=message):
        read_executions([tmp_path / name])


def test_groundings_of_different_procedures_are_refused(tmp_path: Path) -> None:
    grounding((0, 1, 2)).save(tmp_path / "a.json")
    other = FlowGraph.bag([("x", "x")])
    Grounding(other, (), (0,), (), 0.0, np.zeros(1, dtype=np.int64)).save(tmp_path / "b.json")
    with pytest.raises(InputError, match="other steps"):
        read_executions([tmp_path / "a.json", tmp_path / "b.json"])


def test_reasons_in_the_words_are_a_prior() -> None:
    procedure = Procedure(tuple(map(Instruction, SALAD)))
    reasons = (Reason(0, 2, "same noun", "lettuce"), Reason(1, 2, "written order", "90%"))
    probabilities = np.full((3, 3), 0.8, dtype=np.float32)
    worth = text_prior(Parse(procedure, FlowGraph.bag(SALAD), "auto", reasons, (), None, probabilities), 2.0)
    assert worth[0, 2] == pytest.approx(1.6)
    assert worth.sum() == pytest.approx(1.6)
    with pytest.raises(InputError, match="no probabilities"):
        text_prior(Parse(procedure, FlowGraph.bag(SALAD), "rules", reasons, (), None))


def test_command_mines_with_the_words_of_a_procedure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "salad.txt").write_text("\n".join(f"{n}. {text}" for n, text in enumerate(SALAD, start=1)))
    orders = enumerate(((0, 1, 2), (1, 0, 2)))
    rows = [
        f"{number},{SALAD[step]},{10 * at},{10 * at + 5 + number}"
        for number, order in orders
        for at, step in enumerate(order)
    ]
    (tmp_path / "e.csv").write_text("\n".join(["recording,step,start,end", *rows]))
    report, durations, flow = tmp_path / "r.json", tmp_path / "d.json", tmp_path / "salad.flow"
    arguments = ["flow", "mine", str(tmp_path / "e.csv"), "--procedure", str(tmp_path / "salad.txt"), "-o", str(flow)]
    assert main([*arguments, "--confidences", "--durations", str(durations), "--json", str(report)]) == 0
    found = FlowGraph.load(flow)
    assert found.edges == ((0, 2), (1, 2)) and all(0.5 < chance < 1 for chance in found.confidences)
    document = json.loads(report.read_text())
    assert [step["skip_rate"] for step in document["steps"]] == [0, 0, 0]
    assert {"before", "after", "confidence", "honoured", "support"} == set(document["edges"][0])
    assert len(read_durations(durations, found, 1.0)) == 3
    assert "2 of 2" in capsys.readouterr().out


def test_durations_need_times(tmp_path: Path) -> None:
    (tmp_path / "orders.json").write_text('[["wash", "mix"]]')
    with pytest.raises(InputError, match="no times"):
        durations_document(mine_files([tmp_path / "orders.json"], bootstrap=0))


def test_numbers_must_be_numbers(tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text('[[["a", "x", 1]]]')
    with pytest.raises(FormatError, match="step 'a'"):
        read_executions([tmp_path / "e.json"])
