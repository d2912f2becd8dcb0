"""The flow graphs of the CrossTask procedures that were made by hand."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest

from graph2vid._files import check_format, parse_json, read_json
from graph2vid.flow import FlowGraph
from layouts import real_data

NAME = "crosstask_manual.json"


@pytest.fixture(scope="module")
def tasks() -> dict[str, Any]:
    text = files("graph2vid.datasets").joinpath(NAME).read_text(encoding="utf-8")
    document = check_format(parse_json(text, NAME), kind="graph2vid-crosstask-manual", version=1, source=NAME)
    assert set(document) == {"format", "version", "tasks"}
    return document["tasks"]  # type: ignore[no-any-return]


def test_all_eighteen_tasks(tasks: dict[str, Any]) -> None:
    assert len(tasks) == 18
    assert all(task.isdecimal() and set(graph) == {"instructions", "edges"} for task, graph in tasks.items())


def test_acyclic_and_reduced(tasks: dict[str, Any]) -> None:
    for task, graph in tasks.items():
        edges = [(before, after) for before, after in graph["edges"]]
        assert len(set(edges)) == len(edges), task
        flow = FlowGraph.from_edges([str(i) for i in range(graph["instructions"])], edges, task)  # refuses a cycle
        assert set(flow.transitive_reduction().edges) == set(edges), task


def test_no_instruction_waits_for_a_later_one(tasks: dict[str, Any]) -> None:
    assert all(before < after for graph in tasks.values() for before, after in graph["edges"])


def test_one_step_per_instruction_of_the_data(tasks: dict[str, Any]) -> None:
    records = read_json(real_data("crosstask_procedures") / "crosstask_procedures" / "procedures.json")
    counts = {str(record["task_id"]): len(record["instructions"]) for record in records if record.get("instructions")}
    assert {task: graph["instructions"] for task, graph in tasks.items()} == {task: counts.get(task) for task in tasks}
