"""Objectives side by side, and the page that they go into."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import numpy as np
import pytest

from layouts import segmentation

pytest.importorskip("torch")
pytest.importorskip("safetensors")


from graph2vid._evaluation_options import ComparisonOptions
from graph2vid.cli import main
from graph2vid.errors import InputError
from graph2vid.learn.features import TrainingOptions, TrainingRun, evaluate_training
from graph2vid.learn.features.checkpoint import State
from graph2vid.learn.features.objective_comparison import REGIMES, Comparison, Row, compare_objectives

QUICK = ComparisonOptions(seeds=1, epochs=1)
VIDEOS = {f"v{number}": order for number, order in enumerate(("0111220333", "2221110330", "01111022233", "1122220333"))}


def test_one_command_writes_the_table(tmp_path: Path, capsys: Any) -> None:
    segmentation(tmp_path / "salads50", VIDEOS)
    page = tmp_path / "results.md"
    page.write_text("# Results\n\nother words\n")
    command = ["evaluate", "training", "--data", str(tmp_path), "--seeds", "2", "--epochs", "1", "--workers", "2"]
    assert main([*command, "--json", str(tmp_path / "r.json"), "--markdown", str(page)]) == 0
    document = json.loads((tmp_path / "r.json").read_text())
    (found,) = document["comparisons"]
    assert (found["dataset"], found["videos"], len(found["splits"]), found["seeds"]) == ("salads50", 4, 4, [0, 1])
    by_graph = [row["features"] for row in found["rows"] if row["method"] == "graph:mined"]
    assert by_graph == ["pre-trained", "bag", "linear", "graph", "true-order", "graph, unbalanced"]
    assert [row["features"] for row in found["rows"] if row["method"] == "true-order"] == ["pre-trained", "true-order"]
    assert {(row["first"], row["second"]) for row in found["differences"]} >= {
        ("graph", "pre-trained"),
        ("graph", "linear"),
    }
    text = page.read_text()
    assert "other words" in text and "<!-- evaluate training: begin -->" in text
    assert "| graph: Graph-Drop-DTW + clustering | graph:mined |" in text
    assert "salads50: paired differences" in capsys.readouterr().out


def test_graphs_of_a_parser_in_place_of_mined_ones(tmp_path: Path) -> None:
    segmentation(tmp_path / "salads50", VIDEOS)
    options = ComparisonOptions(seeds=1, epochs=1, graphs=("mined", "linear"))
    *_, report = evaluate_training(tmp_path, options, workers=1)
    assert [found["graph"] for found in report.document["comparisons"]] == ["mined", "linear"]
    assert [table.title for table in report.tables][::2] == [
        "salads50: objectives",
        "salads50, graphs linear: objectives",
    ]
    with pytest.raises(InputError, match="salads50 has no graphs 'theirs'"):
        compare_objectives(tmp_path, "salads50", ComparisonOptions(seeds=1, epochs=1, graphs=("theirs",)))


def test_results_do_not_depend_on_workers(tmp_path: Path) -> None:
    segmentation(tmp_path / "salads50", VIDEOS)
    one, two = (compare_objectives(tmp_path, "salads50", QUICK, workers=workers) for workers in (1, 3))
    for left, right in zip(one.rows, two.rows, strict=True):
        assert all(np.array_equal(left.values[name], right.values[name], equal_nan=True) for name in left.values)


def test_an_interrupt_ends_the_trainings_of_all_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segmentation(tmp_path / "salads50", VIDEOS)
    train, begun, ended = TrainingRun.train, Event(), []

    def endless(self: TrainingRun, options: TrainingOptions, **given: Any) -> State:
        if options.objective != "graph":
            begun.wait(60)
            return train(self, options)
        begun.set()
        limit = monotonic() + 60
        try:
            while monotonic() < limit:
                given["report"](1, 1, 0.0)
        finally:
            ended.append(monotonic() < limit)
        return train(self, options)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TrainingRun, "train", endless)
    with pytest.raises(KeyboardInterrupt):
        compare_objectives(tmp_path, "salads50", QUICK, workers=3, progress=interrupt)
    assert ended and all(ended)


def test_means_spreads_and_differences() -> None:
    def row(features: str, *values: tuple[float, ...]) -> Row:
        return Row(features, "graph:mined", {name: np.array(values) for name in ("acc", "iou", "iou_strict", "mof")})

    rows = (row("pre-trained", (0.1, 0.3)), row("graph", (0.2, 0.4), (0.4, 0.6)))
    found = Comparison("salads50", REGIMES["salads50"], "mined", ("a",), ("v", "w"), (0, 1), rows)
    assert found.row("graph").mean("acc") == pytest.approx(0.4)
    assert found.row("graph").spread("acc") == pytest.approx(np.std([0.3, 0.5], ddof=1))
    assert np.isnan(found.row("pre-trained").spread("acc"))
    interval = found.difference("graph", "pre-trained", "iou")
    assert (interval.mean, interval.low, interval.high) == pytest.approx((0.2, 0.2, 0.2))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["-o", "datasets=youcook2"], "there is no regime of training for 'youcook2'"),
        (["--datasets", "youcook2"], "there is no regime of training for 'youcook2'"),
        (["-o", "rate=1"], "unknown option 'rate'; known: datasets, epochs, graphs, seeds"),
        (["--temperature", "1"], "No such option: --temperature"),
        (["-o", "seeds=0"], "seeds must be a whole number of at least 1"),
        ([], "holds none of these datasets"),
    ],
)
def test_what_cannot_be_compared_is_said(tmp_path: Path, capsys: Any, more: list[str], message: str) -> None:
    assert main(["evaluate", "training", "--data", str(tmp_path), *more]) == 2
    assert message in capsys.readouterr().err


def test_regimes_are_complete() -> None:
    assert set(REGIMES) == {"crosstask", "salads50"}
    with pytest.raises(InputError, match="seeds must be a whole number of at least 1"):
        ComparisonOptions(seeds=0)
    with pytest.raises(InputError, match="holds none of these datasets"):
        next(evaluate_training("."))
