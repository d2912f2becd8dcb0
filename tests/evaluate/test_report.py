"""Tables, JSON, Markdown, graphs compared, and pictures."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graph2vid._evaluation_options import METRICS
from graph2vid.datasets import Dataset
from graph2vid.errors import InputError
from graph2vid.evaluate import DatasetExperiment, ExperimentOptions, Report, Results
from graph2vid.evaluate.graph_statistics import compare_graphs, graph_sizes, time_against_brute_force
from graph2vid.evaluate.plots import plot_video, typical_video
from graph2vid.evaluate.summary import Summary, noise_tables
from toys import make_dataset, make_task, spread

TASK = make_task(expert=[(0, 2), (1, 2), (2, 3)], manual=[(0, 1), (2, 3)])
VIDEOS = {
    "a": spread([1, 0, 2, 3]),
    "b": spread([0, 1, 2, 3]),
    "c": spread([1, 2, 0, 3]),
    "empty": [-1] * 8,
}


def evaluated(dataset: Dataset, **options: Any) -> tuple[DatasetExperiment, Report]:
    experiment = DatasetExperiment(lambda **_: dataset, ExperimentOptions(folds=0, workers=1, **options))
    *_, report = experiment.run()
    report.command = "graph2vid evaluate toy"
    return experiment, report


@pytest.fixture(scope="module")
def experiment() -> tuple[DatasetExperiment, Report]:
    return evaluated(make_dataset(VIDEOS, TASK, noise=1.0))


@pytest.fixture
def report(experiment: tuple[DatasetExperiment, Report]) -> Report:
    return experiment[1]


@pytest.fixture
def results(experiment: tuple[DatasetExperiment, Report]) -> Results:
    return experiment[0].results


def test_rows_are_means_in_percent(report: Report, results: Results) -> None:
    for row in report.document["rows"]:
        metrics = results.methods[row["method"]].metrics
        assert row["videos"] == 4
        # The video without steps has no accuracy, and counts for the share of right clips.
        assert row["acc"] == pytest.approx(100 * sum(metrics[at]["acc"] for at in range(3)) / 3)
        assert row["mof"] == pytest.approx(100 * sum(metrics[at]["mof"] for at in range(4)) / 4)
        assert row["macro"]["acc"] == pytest.approx(row["acc"])  # one task


def test_differences_are_paired(report: Report) -> None:
    rows = {row["method"]: row for row in report.document["rows"]}
    found = {(row["first"], row["second"]): row for row in report.document["differences"]}
    assert set(found) == {(f"graph:{source}", other) for source in ("expert", "manual") for other in ("linear", "bag")}
    difference = found["graph:expert", "linear"]["acc"]
    assert difference["mean"] == pytest.approx(rows["graph:expert"]["acc"] - rows["linear"]["acc"])
    assert difference["low"] <= difference["mean"] <= difference["high"]


def test_json_is_strict_and_whole(report: Report, results: Results) -> None:
    document = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert document["dataset"] == "toy" and document["complete"]
    assert [row["method"] for row in document["rows"]] == list(results.methods)
    for row in document["rows"]:
        assert {*METRICS, "videos", "intervals", "seconds_per_video"} <= set(row)
    assert document["options"]["preset"] == "paper"
    assert len(document["per_video"]) == 4
    assert document["per_video"][3]["methods"]["linear"]["acc"] is None  # nothing to measure
    assert document["common"] is None
    assert {"differences", "tasks", "graphs", "exact_against_brute_force"} <= set(document)


def test_a_method_beyond_the_limit_is_said_to_be() -> None:
    found, partial = evaluated(make_dataset(VIDEOS, TASK), limit=10)
    rows = {row["method"]: row for row in json.loads(json.dumps(partial.to_json(), allow_nan=False))["rows"]}
    assert rows["bag"]["videos"] == 0
    assert rows["bag"]["acc"] is None
    assert not rows["bag"]["exact"]
    text = partial.to_markdown()
    assert "bag (not exact)" in text
    assert "bag: 0 videos covered (not exact for 4)" in text
    swept, _ = noise_tables(dict.fromkeys((1.0, 2.0), Summary(found.results, samples=50)))
    assert "at each level of noise. bag on 0 of 4 videos." in swept.to_markdown()


def test_markdown_says_what_and_how(report: Report) -> None:
    text = report.to_markdown()
    assert "    graph2vid evaluate toy" in text
    assert "4 videos of 1 task" in text
    assert "preset paper (match likelihood, drop percentile:30, temperature 1)" in text
    assert "| graph:expert | 4 |" in text
    assert "cut short" not in text


def test_sections_of_a_page_are_replaced_one_by_one(report: Report) -> None:
    page = report.into_page("")
    assert page.startswith("# Results")
    assert report.into_page(page) == page
    other = page.replace("evaluate toy: ", "evaluate other: ")
    both = report.into_page(other)
    assert both.startswith(other.rstrip())
    assert both.count(": begin -->") == 2


def test_what_is_ready_is_reported_at_once() -> None:
    dataset = make_dataset(VIDEOS, TASK)
    experiment = DatasetExperiment(lambda: dataset, ExperimentOptions(folds=0, workers=1, methods=("bag", "linear")))
    methods, whole = [], []
    for report in experiment.run():
        methods.append([row["method"] for row in report.document["rows"]])
        whole.append([table.title for table in report.tables if not table.is_growing])
        assert ("cut short" in report.to_markdown()) != report.is_complete
    assert methods[:2] == [["bag"], ["bag", "linear"]]
    assert whole[:3] == [[], [], ["Methods", "95% intervals"]]
    assert report.is_complete


def test_tables_fit_a_hundred_columns(report: Report, results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    from graph2vid._evaluation_options import ReportOptions
    from graph2vid.cli.evaluate_command import _Delivery

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "100")
        delivery = _Delivery(ReportOptions(), "graph2vid evaluate toy")
        assert delivery.take(report)
        delivery.finish()
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    heading = next(line for line in lines if line.startswith("method") and "ms/video" in line)
    rows = lines[lines.index(heading) + 1 :][: len(results.methods)]
    assert [row.split()[0] for row in rows] == list(results.methods)  # nothing is folded or cut


def test_simulation_is_stated() -> None:
    dataset = replace(make_dataset(VIDEOS, TASK), simulated=True)
    _, simulated = evaluated(dataset, methods=["linear", "graph"], noise=[1.0])
    assert "simulated evidence" in simulated.headline
    assert "simulated" in simulated.to_markdown()
    assert simulated.to_json()["simulated"] is True


# -- graphs --------------------------------------------------------------------------------------------------


def test_sizes_of_the_graphs(results: Results) -> None:
    expert, manual = graph_sizes(results)
    assert (expert["source"], expert["graphs"], expert["steps"], expert["threads"]) == ("expert", 1, 4, 2)
    assert expert["sorts"] == 2
    assert expert["tsort_nodes"] == 7  # the root; two first steps; two second; mix; serve
    assert manual["sorts"] == 6


def test_brute_force_agrees_and_is_capped(results: Results) -> None:
    expert, manual = time_against_brute_force(results, most_sorts=4)
    assert expert["complete"] == 1
    assert (manual["complete"], manual["cases"][0]["tried"], manual["cases"][0]["sorts"]) == (0, 4, 6)
    assert expert["ratio"] > 0


def test_graphs_are_compared_edge_by_edge(results: Results) -> None:
    found = compare_graphs(results, "salad")
    edges = {(edge.before, edge.after): edge for edge in found.differences}
    assert (2, 3) not in edges  # all sources say so
    assert edges[0, 1].sources == ("manual", "linear")
    assert (edges[0, 1].honoured, edges[0, 1].seen) == (1, 3)
    assert edges[0, 2].sources == ("expert", "linear")
    assert (edges[0, 2].honoured, edges[0, 2].seen) == (2, 3)
    assert found.to_json()["differences"][0]["share"] == pytest.approx(1 / 3)
    with pytest.raises(InputError, match="no task 'soup'; it has: salad"):
        compare_graphs(results, "soup")


# -- pictures ------------------------------------------------------------------------------------------------


def test_pictures_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from graph2vid.datasets.synthetic import load

    options = ExperimentOptions(noise="1,4,8", compare_graphs="task1", video=("task2_1",), workers=1)
    experiment = DatasetExperiment(lambda **given: load(tasks=2, recordings=4, steps=(4, 5), **given), options)
    *_, report = experiment.run()
    assert report.draw is not None
    report.pictures = report.draw(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {file for _, file in report.pictures}
    assert {"synthetic-video-task2_1.png", "synthetic-noise.png", "synthetic-graphs-task1.png"} <= {
        file for _, file in report.pictures
    }
    assert list(experiment.sweep) == [1.0, 4.0, 8.0]
    assert experiment.results.dataset.options["noise"] == 4.0
    assert "![Accuracy against noise](pictures/synthetic-noise.png)" in report.to_markdown("pictures")
    assert all(row["videos"] == 4 for row in report.document["rows"])


def test_more_sorts_than_a_machine_word_holds_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    task = make_task(steps=[f"step {number}" for number in range(22)], expert=[(0, 1), (2, 3)])  # 22! / 4 sorts
    _, report = evaluated(make_dataset({"a": spread(range(22))}, task), methods=["linear", "graph"])
    assert report.draw is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pictures = report.draw(tmp_path)
    assert "toy-flexibility-expert.png" in {file for _, file in pictures}
    assert (tmp_path / "toy-flexibility-expert.png").stat().st_size > 5000


def test_a_picture_that_fails_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    _, report = evaluated(make_dataset(VIDEOS, TASK), methods=["linear", "graph:expert"], video=["b"])
    monkeypatch.setattr("graph2vid.evaluate.plots.plot_flexibility", _fail)
    assert report.draw is not None
    with pytest.warns(UserWarning, match=r"toy-flexibility-expert\.png could not be drawn: no ink"):
        pictures = report.draw(tmp_path)
    assert [file for _, file in pictures] == ["toy-video-b.png"]
    assert [path.name for path in tmp_path.iterdir()] == ["toy-video-b.png"]


def _fail(*_: object, **__: object) -> None:
    raise ValueError("no ink")


def test_pictures_need_known_names(results: Results, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(InputError, match="'nobody' is not among the 4 videos"):
        plot_video(tmp_path / "a.png", results, "nobody")
    with pytest.raises(InputError, match=r"must end in \.png"):
        plot_video(tmp_path / "a.gif", results, "a")
    plot_video(tmp_path / "a.svg", results, typical_video(results))
    assert "ground truth" in (tmp_path / "a.svg").read_text() or (tmp_path / "a.svg").stat().st_size > 1000


def test_recordings_that_deviate_from_the_procedure_stand_apart() -> None:
    dataset = make_dataset(VIDEOS, TASK)
    notes = [{"order_error": False}, {"order_error": False}, {"order_error": True}, {"skipped": (0, 1, 2, 3)}]
    marked = tuple(replace(video, notes=note) for video, note in zip(dataset.recordings, notes, strict=True))
    _, report = evaluated(replace(dataset, recordings=marked))
    assert {row["method"]: row["videos"] for row in report.document["rows"]}["graph:expert"] == 2
    assert {group["group"]: group["videos"] for group in report.document["groups"]} == {
        "without skipped steps or order errors": 2,
        "with skipped steps": 1,
        "with order errors": 1,
        "all": 4,
    }
    assert not math.isnan(report.document["rows"][0]["acc"])
