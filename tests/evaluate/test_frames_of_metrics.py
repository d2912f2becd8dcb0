"""Tables of pandas in and out of evaluation."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from graph2vid._evaluation_options import ExperimentOptions
from graph2vid.datasets import read_dataset
from graph2vid.errors import InputError
from graph2vid.evaluate import DatasetExperiment, Report, Table, evaluate_dataset, evaluate_segments

pandas = pytest.importorskip("pandas")


def segments(*rows: tuple[Any, ...]) -> Any:
    return pandas.DataFrame(rows, columns=["video", "step", "start", "end"])


def test_metrics_of_segments_in_tables() -> None:
    true = segments(("a", "cut", 0, 4), ("a", "mix", 6, 10), ("b", "cut", 0, 2))
    predicted = segments(("a", "cut", 0, 2), ("a", "mix", 6, 10), ("a", "fry", None, None))
    found = evaluate_segments(predicted, true).set_index("video")
    assert found.loc["a", ["acc", "iou", "mof"]].tolist() == pytest.approx([6 / 8, 6 / 8, 8 / 10])
    assert found.loc["b", "acc"] == 0
    longer = evaluate_segments(predicted, true, durations={"a": 20.0}).set_index("video")
    assert longer.loc["a", "mof"] == pytest.approx(18 / 20)
    alone = [frame[frame["video"] == "a"].drop(columns="video") for frame in (predicted, true)]
    assert evaluate_segments(*alone)["acc"].tolist() == [6 / 8]


def test_tables_that_do_not_fit_are_named() -> None:
    true = segments(("a", "cut", 0, 4))
    with pytest.raises(InputError, match="video 'c' has predictions and no annotations"):
        evaluate_segments(segments(("c", "cut", 0, 4)), true)
    with pytest.raises(InputError, match="the table of predictions has no column 'step'"):
        evaluate_segments(true.drop(columns="step"), true)
    with pytest.raises(InputError, match="the true table has no segments"):
        evaluate_segments(true, true.iloc[:0])
    with pytest.raises(InputError, match="clip_seconds must be a finite number above 0"):
        evaluate_segments(true, true, clip_seconds=0)


def test_results_have_a_row_per_video_and_method() -> None:
    results = evaluate_dataset(read_dataset("synthetic", recordings=6, tasks=1), ["bag", "linear"], workers=1)
    frame = results.to_frame()
    assert len(frame) == 2 * len(results.videos) and {"video", "task", "split", "method", "iou"} <= set(frame.columns)
    for name, method in results.methods.items():
        assert frame[frame["method"] == name]["acc"].tolist() == [row["acc"] for row in method.metrics.values()]


def test_reports_give_their_rows_or_a_table() -> None:
    options = ExperimentOptions(methods=("bag", "linear"), noise=(1.0,), workers=1)
    *_, report = DatasetExperiment(partial(read_dataset, "synthetic", recordings=6, tasks=1), options).run()
    rows = report.to_frame()
    assert rows["method"].tolist() == ["bag", "linear"] and rows["acc"].max() > 1  # percent
    assert report.to_frame("95% intervals").columns[0] == "method"
    with pytest.raises(InputError, match="there is no table 'Parsers'; there are: 'Methods"):
        report.to_frame("Parsers")


def test_columns_of_numbers_are_numbers() -> None:
    table = Table("T", "", ("name", "count", "share"), [("a", "1,200", "3.5"), ("b", "2", "—")])
    frame = Report("r", tables=[table]).to_frame()
    assert frame["name"].tolist() == ["a", "b"] and frame["count"].tolist() == [1200, 2]
    assert frame["share"].isna().tolist() == [False, True]
    assert Table("T", "", ("name", "count"), []).to_frame().columns.tolist() == ["name", "count"]
