"""Tables, JSON, Markdown, graphs compared, and pictures."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path

import pytest

from graph2vid.errors import InputError
from graph2vid.evaluate.engine import Options, evaluate_dataset
from graph2vid.evaluate.experiment import study
from graph2vid.evaluate.graph_statistics import compare_graphs, graph_figures, time_against_brute_force
from graph2vid.evaluate.plots import plot_video, typical_video
from graph2vid.evaluate.tables import MEASURES, Level, Report
from toys import make_dataset, make_task, spread

TASK = make_task(expert=[(0, 2), (1, 2), (2, 3)], manual=[(0, 1), (2, 3)])
VIDEOS = {
    "a": spread([1, 0, 2, 3]),
    "b": spread([0, 1, 2, 3]),
    "c": spread([1, 2, 0, 3]),
    "empty": [-1] * 8,
}


@pytest.fixture(scope="module")
def report() -> Report:
    results = evaluate_dataset(make_dataset(VIDEOS, TASK, noise=1.0), options=Options(folds=0), workers=1)
    return Report(results, "graph2vid evaluate toy", samples=200)


def test_rows_are_means_in_percent(report: Report) -> None:
    for row in report.rows():
        measures = report.results.runs[row["method"]].measures
        assert row["videos"] == 4
        # The video without steps has no accuracy, and counts for the share of right clips.
        assert row["acc"] == pytest.approx(100 * sum(measures[at]["acc"] for at in range(3)) / 3)
        assert row["mof"] == pytest.approx(100 * sum(measures[at]["mof"] for at in range(4)) / 4)
        assert row["macro"]["acc"] == pytest.approx(row["acc"])  # one task


def test_differences_are_paired(report: Report) -> None:
    rows = {row["method"]: row for row in report.rows()}
    found = {(row["first"], row["second"]): row for row in report.differences()}
    assert set(found) == {(f"graph:{source}", other) for source in ("expert", "manual") for other in ("linear", "bag")}
    difference = found["graph:expert", "linear"]["acc"]
    assert difference["mean"] == pytest.approx(rows["graph:expert"]["acc"] - rows["linear"]["acc"])
    assert difference["low"] <= difference["mean"] <= difference["high"]


def test_json_is_strict_and_whole(report: Report) -> None:
    document = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert document["dataset"] == "toy"
    assert [row["method"] for row in document["rows"]] == list(report.results.runs)
    for row in document["rows"]:
        assert {*MEASURES, "videos", "intervals", "seconds_per_video"} <= set(row)
    assert document["options"]["preset"] == "paper"
    assert len(document["per_video"]) == 4
    assert document["per_video"][3]["methods"]["linear"]["acc"] is None  # nothing to measure
    assert document["common"] is None
    assert {"differences", "tasks", "graphs", "exact_against_brute_force"} <= set(document)


def test_a_method_beyond_the_limit_is_said_to_be(report: Report) -> None:
    results = evaluate_dataset(make_dataset(VIDEOS, TASK), options=Options(folds=0, limit=10), workers=1)
    partial = Report(results, "", samples=50)
    rows = {row["method"]: row for row in json.loads(json.dumps(partial.to_json(), allow_nan=False))["rows"]}
    assert rows["bag"]["videos"] == 0
    assert rows["bag"]["acc"] is None
    assert not rows["bag"]["exact"]
    text = partial.to_markdown()
    assert "bag (not exact)" in text
    assert "bag: 0 videos covered (not exact for 4)" in text
    swept = Report(results, "", sweep=(Level(1.0, results), Level(2.0, results)), samples=50)
    assert "at each level of noise. bag on 0 of 4 videos." in swept.to_markdown()


def test_markdown_says_what_and_how(report: Report) -> None:
    text = report.to_markdown()
    assert "    graph2vid evaluate toy" in text
    assert "4 videos of 1 task" in text
    assert "preset paper (match likelihood, drop percentile:30, temperature 1)" in text
    assert "| graph:expert | 4 |" in text


def test_sections_of_a_page_are_replaced_one_by_one(report: Report) -> None:
    page = report.into_page("")
    assert page.startswith("# Results")
    assert report.into_page(page) == page
    other = page.replace("evaluate toy: ", "evaluate other: ")
    both = report.into_page(other)
    assert both.startswith(other.rstrip())
    assert both.count(": begin -->") == 2


def test_tables_fit_a_hundred_columns(report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    from graph2vid.cli.evaluate_command import _show

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "100")
        _show(report)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    heading = next(line for line in lines if line.startswith("method") and "ms/video" in line)
    rows = lines[lines.index(heading) + 1 :][: len(report.results.runs)]
    assert [row.split()[0] for row in rows] == list(report.results.runs)  # nothing is folded or cut


def test_simulation_is_stated() -> None:
    from dataclasses import replace

    dataset = replace(make_dataset(VIDEOS, TASK), simulated=True)
    simulated = Report(evaluate_dataset(dataset, ["linear", "graph"], Options(folds=0)), "", samples=50)
    assert "simulated evidence" in simulated.headline()
    assert "simulated" in simulated.to_markdown()
    assert simulated.to_json()["simulated"] is True


# -- graphs --------------------------------------------------------------------------------------------------


def test_figures_of_the_graphs(report: Report) -> None:
    expert, manual = graph_figures(report.results)
    assert (expert["source"], expert["graphs"], expert["steps"], expert["threads"]) == ("expert", 1, 4, 2)
    assert expert["sorts"] == 2
    assert expert["tsort_nodes"] == 7  # the root; two first steps; two second; mix; serve
    assert manual["sorts"] == 6


def test_brute_force_agrees_and_is_capped(report: Report) -> None:
    expert, manual = time_against_brute_force(report.results, most_sorts=4)
    assert expert["complete"] == 1
    assert (manual["complete"], manual["cases"][0]["tried"], manual["cases"][0]["sorts"]) == (0, 4, 6)
    assert expert["ratio"] > 0


def test_graphs_are_compared_edge_by_edge(report: Report) -> None:
    found = compare_graphs(report.results, "salad")
    edges = {(edge.before, edge.after): edge for edge in found.differences}
    assert (2, 3) not in edges  # all sources say so
    assert edges[0, 1].sources == ("manual", "linear")
    assert (edges[0, 1].honoured, edges[0, 1].seen) == (1, 3)
    assert edges[0, 2].sources == ("expert", "linear")
    assert (edges[0, 2].honoured, edges[0, 2].seen) == (2, 3)
    assert found.to_json()["differences"][0]["share"] == pytest.approx(1 / 3)
    with pytest.raises(InputError, match="no task 'soup'; it has: salad"):
        compare_graphs(report.results, "soup")


# -- pictures ------------------------------------------------------------------------------------------------


def test_pictures_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from graph2vid.datasets.synthetic import load

    made = study(
        lambda **given: load(tasks=2, recordings=4, steps=(4, 5), **given),
        noises=[1.0, 4.0, 8.0],
        task="task1",
        videos=["task2_1"],
        workers=1,
    ).drawn(tmp_path, ["task2_1"])
    assert {path.name for path in tmp_path.iterdir()} == {file for _, file in made.pictures}
    assert {"synthetic-video-task2_1.png", "synthetic-noise.png", "synthetic-graphs-task1.png"} <= {
        file for _, file in made.pictures
    }
    assert [level.noise for level in made.sweep] == [1.0, 4.0, 8.0]
    assert made.results.dataset.options["noise"] == 4.0
    assert "![Accuracy against noise](pictures/synthetic-noise.png)" in made.to_markdown("pictures")
    assert all(row["videos"] == 4 for row in made.rows())


def test_more_sorts_than_a_machine_word_holds_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    task = make_task(steps=[f"step {number}" for number in range(22)], expert=[(0, 1), (2, 3)])  # 22! / 4 sorts
    found = study(
        lambda: make_dataset({"a": spread(range(22))}, task), ["linear", "graph"], Options(folds=0), workers=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = found.drawn(tmp_path)
    assert "toy-flexibility-expert.png" in {file for _, file in drawn.pictures}
    assert (tmp_path / "toy-flexibility-expert.png").stat().st_size > 5000


def test_a_picture_that_fails_is_a_warning(report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("graph2vid.evaluate.plots.plot_flexibility", _fail)
    with pytest.warns(UserWarning, match=r"toy-flexibility-expert\.png could not be drawn: no ink"):
        drawn = report.drawn(tmp_path, ["b"])
    assert [file for _, file in drawn.pictures] == ["toy-video-b.png"]
    assert [path.name for path in tmp_path.iterdir()] == ["toy-video-b.png"]


def _fail(*_: object, **__: object) -> None:
    raise ValueError("no ink")


def test_pictures_need_known_names(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(InputError, match="'nobody' is not among the 4 videos"):
        plot_video(tmp_path / "a.png", report.results, "nobody")
    with pytest.raises(InputError, match=r"must end in \.png"):
        plot_video(tmp_path / "a.gif", report.results, "a")
    plot_video(tmp_path / "a.svg", report.results, typical_video(report.results))
    assert "ground truth" in (tmp_path / "a.svg").read_text() or (tmp_path / "a.svg").stat().st_size > 1000


def test_recordings_that_break_the_procedure_stand_apart() -> None:
    from dataclasses import replace

    dataset = make_dataset(VIDEOS, TASK)
    notes = [{"order_error": False}, {"order_error": False}, {"order_error": True}, {"skipped": (0, 1, 2, 3)}]
    marked = tuple(replace(video, notes=note) for video, note in zip(dataset.recordings, notes, strict=True))
    found = study(lambda: replace(dataset, recordings=marked), options=Options(folds=0), workers=1)
    assert {row["method"]: row["videos"] for row in found.rows()}["graph:expert"] == 2
    groups = {group["group"]: group["videos"] for group in found.by_group()}
    assert groups == {
        "without skipped steps or order errors": 2,
        "with skipped steps": 1,
        "with order errors": 1,
        "all": 4,
    }
    assert not math.isnan(found.rows()[0]["acc"])
