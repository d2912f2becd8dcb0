"""Confidences held against the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graph2vid.cli.evaluate_calibration_command import draw_confidence
from graph2vid.datasets import synthetic
from graph2vid.errors import InputError
from graph2vid.evaluate.calibration import BINS, CalibrationReport, Reliability, calibrate, judge_calibration
from graph2vid.evaluate.engine import evaluate_dataset


def test_error_of_known_bins() -> None:
    found = Reliability.of(np.array([0.95, 0.95, 0.95, 0.95, 0.05, 1.0]), np.array([1, 1, 0, 0, 0, 1], bool))
    assert found.clips.tolist() == [1, *[0] * 8, 5]
    # Five clips of confidence 4.8 in all, three right; one of 0.05, wrong.
    assert found.error == pytest.approx((1.8 + 0.05) / 6)
    assert found.mean == pytest.approx((4.85 / 6, 0.5))
    assert Reliability.together([found, found]).error == pytest.approx(found.error)


def test_a_gamma_chosen_on_other_splits_helps(tmp_path: Path) -> None:
    dataset = synthetic.load(tasks=2, recordings=12, seed=1)
    results = evaluate_dataset(dataset, ["graph:expert"], workers=1)
    found = calibrate(results, "graph:expert", gammas=(0.05, 1.0, 4.0))
    assert set(found.by_gamma) == {0.05, 1.0, 4.0} and set(found.chosen.values()) <= {0.05, 1.0, 4.0}
    assert found.calibrated.clips.sum() == found.by_gamma[1.0].clips.sum()
    assert found.calibrated.error < max(kept.error for kept in found.by_gamma.values())
    report = CalibrationReport([found], "graph2vid evaluate calibration", 1.0)
    assert len(report.tables()[1].rows) == BINS
    assert report.to_json()["calibrations"][0]["dataset"] == "synthetic"
    pytest.importorskip("matplotlib")
    page = tmp_path / "results.md"
    page.write_text(report.into_page(""))
    with pytest.warns(UserWarning, match="could not be drawn"):
        draw_confidence(report, page / "no folder", page)
    assert "](" not in page.read_text()
    (tmp_path / "pictures").mkdir()
    draw_confidence(report, tmp_path / "pictures", page)
    assert (tmp_path / "pictures" / "calibration.png").stat().st_size > 5000
    assert "](pictures/calibration.png)" in page.read_text()


def test_methods_without_posterior_and_unknown_datasets_are_refused(tmp_path: Path) -> None:
    results = evaluate_dataset(synthetic.load(tasks=1, recordings=6, seed=1), ["argmax"], workers=1)
    with pytest.raises(InputError, match="no posterior"):
        calibrate(results, "argmax")
    with pytest.raises(InputError, match="salads50"):
        judge_calibration(tmp_path, datasets=["soup"])
