"""Confidences compared with the truth, and calibrators fitted on annotated videos."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import layouts
from graph2vid._evaluation_options import CalibrationOptions
from graph2vid.cli import main
from graph2vid.datasets import Dataset, synthetic
from graph2vid.errors import InputError
from graph2vid.evaluate import evaluate_calibration
from graph2vid.evaluate.calibration import (
    BINS,
    Reliability,
    _add_new_datasets,
    _tables,
    cross_validated,
    draw_reliability,
    reliability,
)
from graph2vid.evaluate.calibration_examples import Evaluated, Source, evaluated_videos, find_sources
from graph2vid.evaluate.report import Report
from graph2vid.grounding import NARRATION, Calibrator


def test_error_and_auc_of_known_bins() -> None:
    found = Reliability.of(np.array([0.95, 0.95, 0.95, 0.95, 0.05, 1.0]), [1, 1, 0, 0, 0, 1])
    assert found.count.tolist() == [1, *[0] * 8, 5]
    # Five statements of confidence 4.8 in all, three right; one of 0.05, wrong.
    assert found.error == pytest.approx((1.8 + 0.05) / 6)
    assert found.mean == pytest.approx((4.85 / 6, 0.5))
    assert found.auc == pytest.approx((2 * (1 + 1) + 3 * 1 + 0) / 9)  # of 3 × 3 pairs, ties half
    assert np.isnan(Reliability.of(np.array([0.5, 0.6]), [1, 1]).auc)
    assert Reliability.of(np.array([0.2, 0.8]), [0.25, 0.75]).auc == pytest.approx(0.75 * (0.75 + 0.125) + 0.25 * 0.375)


def test_datasets_are_found_by_their_layouts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds none of these datasets: salads50, crosstask"):
        find_sources(tmp_path)
    for name, make in (("scores_of_mine", layouts.segmentation), ("youcook2_narrated", layouts.youcook2)):
        make(tmp_path / name)
    layouts.crosstask(tmp_path)
    layouts.captioned(tmp_path / "plain")
    found = {one.name: one.layout for one in find_sources(tmp_path)}
    assert found["scores_of_mine"] == "salads50" and found["youcook2"] == "youcook2" and found["plain"] == "captioned"
    assert "crosstask" in set(found.values())
    assert [one.name for one in find_sources(tmp_path / "scores_of_mine")] == ["salads50"]
    with pytest.raises(InputError, match="holds no dataset 'soup'; it holds: "):
        find_sources(tmp_path, ["soup"])


class Made(Source):
    """A source that is made rather than read."""

    def read(self) -> Dataset:
        return synthetic.load(tasks=1, recordings=40, seed=1)


@pytest.fixture(scope="module")
def evaluated() -> list[Evaluated]:
    return list(evaluated_videos(Made("made", "salads50", Path(), {}), workers=1))


def test_fitted_on_other_splits_confidences_are_calibrated(evaluated: list[Evaluated]) -> None:
    assert len({one.group for one in evaluated}) == 5 and {one.evidence for one in evaluated} == {"embeddings"}
    how = cross_validated(evaluated)
    before, after = (reliability(evaluated, "segment", way) for way in (None, how))
    assert after.error < 0.06 and after.auc > before.auc - 0.05
    assert how(evaluated[0]) is how(evaluated[0]), "each is fitted once"
    assert reliability(evaluated, "clip", how).error < 0.06 and reliability(evaluated, "not shown", how).error < 0.06
    with pytest.raises(InputError, match="at least two"):
        cross_validated([one for one in evaluated if one.group == evaluated[0].group])


def test_a_dataset_that_is_left_out_says_nothing_about_its_own_calibrator(evaluated: list[Evaluated]) -> None:
    narrated = [replace(one, evidence=NARRATION) for one in evaluated]
    first, second = (
        [replace(one, dataset=name) for one in narrated[at::2]] for at, name in enumerate(("first", "second"))
    )
    found = cross_validated([*first, *second], new_dataset=True)(first[0]).segment.experts[0]
    rest = [one.example for one in second if one.group != first[0].group]
    assert found.weights == pytest.approx(Calibrator.fit(rest, NARRATION).segment.experts[0].weights)
    report = Report("calibration")
    _add_new_datasets(report, {"first": first, "second": second}, lambda one: Calibrator.shipped())
    assert [row["dataset"] for row in report.document["new_datasets"]] == ["first"] * 3 + ["second"] * 3
    report.document |= {"rows": [], "tasks": []}
    assert len(_tables(report.document)[2].rows) == 6
    _add_new_datasets(report, {"first": first, "scores": evaluated}, lambda one: Calibrator.shipped())
    assert report.document["new_datasets"] == [], "nothing else has this kind of evidence"


def test_a_report_of_what_ships_and_of_cross_validation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [Made("made", "salads50", Path(), {})]
    monkeypatch.setattr("graph2vid.evaluate.calibration.find_sources", lambda data, names: made)
    (report,) = evaluate_calibration(tmp_path, workers=1)
    assert [row["calibrated"] for row in report.document["rows"]] == [False] * 3
    assert report.notes == ["made: no calibrator for embeddings is given: its confidences are uncalibrated"]
    (report,) = evaluate_calibration(tmp_path, CalibrationOptions(cross_validate=True), workers=1)
    rows = {(row["level"], row["calibrated"]): row for row in report.document["rows"]}
    assert report.is_complete and len(rows) == 6
    assert rows["segment", True].keys() >= {"dataset", "stated", "right", "ece", "auc"}
    assert rows["segment", True]["right"] == pytest.approx(rows["segment", False]["right"])
    assert {row["task"] for row in report.document["tasks"]} == {f"fold {number}" for number in range(1, 6)}
    pytest.importorskip("matplotlib")
    (tmp_path / "a file").write_text("")
    with pytest.warns(UserWarning, match="could not be drawn"):
        assert draw_reliability(report.document["bins"], tmp_path / "a file") == ()
    assert report.draw is not None and report.draw(tmp_path)[0][1] == "calibration.png"
    assert (tmp_path / "calibration.png").stat().st_size > 5000
    assert len(report.document["bins"]["made"]["posterior"]["count"]) == BINS
    with pytest.warns(DeprecationWarning, match="--gammas"):
        next(iter(evaluate_calibration(tmp_path, CalibrationOptions(gammas="1,4"), workers=1)))


def test_the_command_fits_on_scores_of_the_user_and_ground_uses_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = layouts.segmentation(tmp_path / "mine")
    calibrator = tmp_path / "calibrator.json"
    assert main(["train", "calibration", "--data", str(data), "-o", str(calibrator), "--workers", "1"]) == 0
    assert "fitted for scores" in capsys.readouterr().out
    assert Calibrator.load(calibrator).evidence == "scores"
    (tmp_path / "two.flow").write_text("a: cut\nb: mix\na -> b\n")
    np.save(tmp_path / "scores.npy", np.random.default_rng(0).normal(size=(2, 12)))
    asked = ["ground", str(tmp_path / "two.flow"), "--scores", str(tmp_path / "scores.npy")]
    assert main([*asked, "--calibration", str(calibrator), "-o", str(tmp_path / "r.json")]) == 0
    result = json.loads((tmp_path / "r.json").read_text())
    assert all(0 < one["confidence"] < 1 for one in result["segments"]) and "%" in capsys.readouterr().out
    assert result["options"]["calibration"]["evidence"] == "scores"
    np.save(tmp_path / "log.npy", -np.ones((2, 12)))
    asked[2:] = ["--log-probabilities", str(tmp_path / "log.npy")]
    assert main([*asked, "--calibration", str(calibrator)]) == 2
    assert "is for scores, and the evidence is log_probabilities" in capsys.readouterr().err


def test_what_ships_is_calibrated_on_real_narration(monkeypatch: pytest.MonkeyPatch) -> None:
    data = layouts.real_data("youcook2_narrated")
    whole = find_sources(data, ["youcook2"])[0].read()
    some = whole.recordings[::4]
    part = replace(whole, recordings=some, tasks={one.task: whole.tasks[one.task] for one in some})
    monkeypatch.setattr(Source, "read", lambda self: part)
    (report,) = evaluate_calibration(data, CalibrationOptions(datasets=("youcook2",)), workers=1)
    rows = {(row["level"], row["calibrated"]): row for row in report.document["rows"]}
    assert Calibrator.shipped().evidence == NARRATION
    assert rows["segment", False]["ece"] > 25 and rows["segment", True]["ece"] < 8
    assert rows["segment", True]["auc"] > rows["segment", False]["auc"]
