"""Graphs of parsers beside the given ones of a dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from graph2vid.datasets.dataset import Dataset, HowTo
from graph2vid.errors import InputError, MissingDependencyError
from graph2vid.evaluate import DatasetExperiment, ExperimentOptions, Report
from graph2vid.evaluate.parsed import ParsedGraphs, with_parsed_graphs
from graph2vid.flow import FlowGraph
from graph2vid.text.coarsen import coarsen
from graph2vid.text.parsed_text import PARSERS, Parse, Procedure, Reason
from toys import STEPS, make_dataset, make_task, spread

VIDEOS = {"a": spread([1, 0, 2, 3]), "b": spread([0, 1, 2, 3])}
TEXT = HowTo(("Wash it.", "Cut it.", "Talk.", "Mix it."), ((0,), (1,), (3,), ()))


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def enter(name: str, parse: Callable[..., Parse]) -> None:
        monkeypatch.setitem(PARSERS._parts, name, parse)

    return enter


def star(procedure: Procedure, **_: Any) -> Parse:
    """Let everything wait for the first instruction."""
    return coarsen(procedure, (Reason(0, after, "star") for after in range(1, len(procedure))), "star")


def missing(procedure: Procedure) -> Parse:
    raise MissingDependencyError("star charts are not installed")


def evaluated(dataset: Dataset, **options: Any) -> tuple[DatasetExperiment, Report]:
    experiment = DatasetExperiment(lambda: dataset, ExperimentOptions(**options, workers=1))
    *_, report = experiment.run()
    return experiment, report


def with_text() -> Dataset:
    return make_dataset(VIDEOS, replace(make_task(), howto=TEXT))


def test_each_text_is_parsed_once(parser: Callable[..., None]) -> None:
    asked = []

    def counting(procedure: Procedure, **options: Any) -> Parse:
        asked.append((procedure.title, procedure.texts, options))
        return star(procedure)

    parser("star", counting)
    graphs = ParsedGraphs(["star"], {"star": {"bright": True}})
    for _ in range(2):
        flow = graphs.flow("star", ["a", "b", "c"], "Sky")
        assert flow is not None
        assert flow.edges == ((0, 1), (0, 2))
    assert asked == [("Sky", ("a", "b", "c"), {"bright": True})]
    graphs.flow("star", ["d"])
    assert graphs.texts == {"star": 1}  # the first one is not timed: models are loaded then
    assert graphs.seconds["star"] > 0


def test_what_is_missing_is_said_and_left_out(parser: Callable[..., None]) -> None:
    parser("star", missing)
    graphs = ParsedGraphs(["star", "linear"])
    dataset = with_parsed_graphs(with_text(), graphs)
    assert dataset.remarks == ("graph:star is left out: star charts are not installed",)
    assert list(dataset.tasks["salad"].flows) == ["linear"]
    assert graphs.parsers == ("linear",)


def test_a_graph_of_another_size_is_refused(parser: Callable[..., None]) -> None:
    parser("star", lambda procedure: replace(star(procedure), flow=FlowGraph.chain([*"ab"])))
    graphs = ParsedGraphs(["star"])
    assert graphs.flow("star", ["a", "b", "c"]) is None
    assert graphs.unavailable == {"star": "it made a graph of 2 steps for 3 instructions"}


def test_an_unknown_parser_is_refused() -> None:
    with pytest.raises(InputError, match="unknown parser 'magic'"):
        ParsedGraphs(["magic"])


def test_graphs_of_texts_are_carried_over_to_steps(parser: Callable[..., None]) -> None:
    parser("star", star)
    task = with_parsed_graphs(with_text(), ParsedGraphs(["star"])).tasks["salad"]
    assert task.flows["star"].texts == STEPS
    assert task.flows["star"].edges == ((0, 1), (0, 2))  # serve has no instruction
    own = replace(make_task(procedure=TEXT.instructions, correspondence=TEXT.correspondence), howto=TEXT)
    over_text = with_parsed_graphs(make_dataset(VIDEOS, own), ParsedGraphs(["star"])).tasks["salad"]
    assert over_text.flows["star"].edges == ((0, 1), (0, 2), (0, 3))


def test_given_graphs_stay() -> None:
    dataset = make_dataset(VIDEOS, replace(make_task(linear=[(3, 0)]), howto=TEXT))
    assert with_parsed_graphs(dataset, ParsedGraphs(["linear"])).tasks["salad"].flows["linear"].edges == ((3, 0),)


def test_steps_are_parsed_only_when_asked() -> None:
    dataset = make_dataset(VIDEOS)
    assert dict(with_parsed_graphs(dataset, ParsedGraphs(["linear"])).tasks["salad"].flows) == {}
    asked = with_parsed_graphs(dataset, ParsedGraphs(["linear"]), all_tasks=True)
    assert asked.tasks["salad"].flows["linear"].edges == ((0, 1), (1, 2), (2, 3))


def test_the_experiment_has_rows_and_paired_differences(parser: Callable[..., None]) -> None:
    parser("star", star)
    _, report = evaluated(with_text(), parsers=["star"])
    assert "graph:star" in [row["method"] for row in report.document["rows"]]
    assert {("graph:star", "linear"), ("graph:star", "bag")} <= {
        (row["first"], row["second"]) for row in report.document["differences"]
    }


def test_the_experiment_goes_on_without_unless_asked_for(parser: Callable[..., None]) -> None:
    parser("star", missing)
    experiment, report = evaluated(with_text(), parsers=["star"])
    assert "graph:star" not in [row["method"] for row in report.document["rows"]]
    remark = "graph:star is left out: star charts are not installed"
    assert experiment.results.dataset.remarks == (remark,) and f"note: {remark}" in report.remarks
    with pytest.raises(InputError, match="graph:star cannot be had: star charts are not installed"):
        evaluated(with_text(), methods=["linear", "graph:star"], parsers=["star"])
    evaluated(with_text(), methods=["linear", "bag"], parsers=["star"])  # it is not even asked


def test_mined_graphs_stand_beside_all_but_those_of_experts(parser: Callable[..., None]) -> None:
    parser("star", star)
    experiment, _ = evaluated(with_text(), parsers=["star"])
    assert "graph:mined" in experiment.results.methods
    experiment, _ = evaluated(make_dataset(VIDEOS, make_task(expert=[(0, 1)])))
    assert "graph:mined" not in experiment.results.methods
