"""CrossTask: graphs made by hand beside the how-to texts, and the orders in which people do the tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graph2vid.datasets import crosstask, crosstask_tasks
from graph2vid.errors import FormatError
from layouts import crosstask as write_crosstask
from layouts import real_data, write, write_json

MANUAL = {"instructions": 4, "edges": [[0, 2], [1, 2], [2, 3]]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_crosstask(tmp_path)


def by_hand(monkeypatch: pytest.MonkeyPatch, root: Path, tasks: dict[str, Any]) -> None:
    document = {"format": "graph2vid-crosstask-manual", "version": 1, "tasks": tasks}
    monkeypatch.setattr(crosstask_tasks, "MANUAL_FILE", write_json(root / "manual.json", document))


class TestGraphsMadeByHand:
    pytestmark = pytest.mark.usefixtures("_embedder")

    @pytest.fixture
    def _embedder(self) -> None:
        pytest.importorskip("wordllama", reason="needs graph2vid[text]")

    def test_over_instructions_and_steps(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        by_hand(monkeypatch, root, {"101": MANUAL, "999": {"instructions": 1, "edges": []}})
        task = crosstask.load(root, descriptions="instructions").tasks["101"]
        assert task.flows["manual"].edges == ((0, 2), (1, 2), (2, 3))
        assert task.howto is not None
        assert task.howto.instructions == task.procedure
        steps = crosstask.load(root).tasks["101"]  # its steps stand for instructions 0, none, and 1 with 2
        assert steps.flows["manual"].edges == ((0, 2),)
        assert steps.flows["manual"].texts == steps.steps
        assert steps.howto == task.howto

    def test_of_other_texts_is_left_out(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        by_hand(monkeypatch, root, {"101": MANUAL | {"instructions": 5}})
        dataset = crosstask.load(root, descriptions="instructions")
        assert dict(dataset.tasks["101"].flows) == {}
        assert "made by hand is of 5 instructions and is left out: here it has 4" in dataset.remarks[0]

    def test_published_ones_win(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        by_hand(monkeypatch, root, {"101": MANUAL})
        recipe = {"instructions": ["a", "b", "c", "d"], "edges": [[0, 1]], "recipe_2_caption": []}
        path = write_json(root / "flow_graphs.json", [{"recipe_type": 101, "recipe": recipe}])
        task = crosstask.load(root, descriptions="instructions", flows=path).tasks["101"]
        assert task.flows["manual"].edges == ((0, 1),)

    def test_a_broken_file_is_named(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        by_hand(monkeypatch, root, {"101": {"instructions": 4, "edges": [[0, 1], [1, 0]]}})
        with pytest.raises(FormatError, match=r"manual\.json, task 101: the steps form a cycle"):
            crosstask.load(root)


class TestExecutions:
    def test_orders_of_first_occurrences(self, root: Path) -> None:
        annotations = root / "crosstask_release" / "annotations"
        write(annotations / "101_a.csv", "3,5,6\n1,1,2\n3,0.5,0.8\n")  # in the order of their times
        write(annotations / "101_b.csv", "1,1,2\n2,3,4\n")
        write(annotations / "102_c.csv", "1,1,2\n")  # a task without a text
        (found,) = crosstask.read_executions(root)
        assert (found.task.id, found.task.procedure[0]) == ("101", "Wash and cut.")
        assert found.orders == ((2, 0), (0, 1))

    def test_narrated_videos_serve_where_the_release_has_none(self, root: Path) -> None:
        (found,) = crosstask.read_executions(root / "crosstask_release")
        assert found.orders == ((0, 2), (0, 2))

    def test_a_task_without_videos_is_there(self, root: Path) -> None:
        write(root / "crosstask_release" / "annotations" / "102_c.csv", "1,1,2\n")
        (found,) = crosstask.read_executions(root)
        assert (found.task.id, found.orders) == ("101", ())

    def test_what_it_cannot_go_without(self, root: Path) -> None:
        write(root / "crosstask_narrated" / "annotations" / "101_a.csv", "9,1,2\n")
        with pytest.raises(FormatError, match=r"101_a\.csv, line 1: there is no step '9'"):
            crosstask.read_executions(root)
        (root / "crosstask_procedures" / "procedures.json").unlink()
        with pytest.raises(FormatError, match=r"no procedures\.json"):
            crosstask.read_executions(root)

    def test_real_ones(self) -> None:
        found = crosstask.read_executions(real_data("crosstask_release") / "crosstask_release")
        assert len(found) == 18
        assert sum(len(one.orders) for one in found) == 2579
        assert all("manual" in one.task.flows for one in found)
