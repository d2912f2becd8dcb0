"""Confidences compared with the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graph2vid._evaluation_options import CalibrationOptions
from graph2vid.datasets import synthetic
from graph2vid.errors import InputError
from graph2vid.evaluate import evaluate_calibration, evaluate_dataset
from graph2vid.evaluate.calibration import BINS, Reliability, calibrate, draw_reliability


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
    overall, bins = found.tables()
    assert len(bins.rows) == BINS and [row[0] for row in overall.rows][:3] == ["0.05", "1", "4"]
    assert found.to_json()["dataset"] == "synthetic"
    pytest.importorskip("matplotlib")
    curves = {found.dataset: found.curves}
    (tmp_path / "a file").write_text("")
    with pytest.warns(UserWarning, match="could not be drawn"):
        assert draw_reliability(curves, tmp_path / "a file") == ()
    assert draw_reliability(curves, tmp_path)[0][1] == "calibration.png"
    assert (tmp_path / "calibration.png").stat().st_size > 5000


def test_methods_without_posterior_and_unknown_datasets_are_refused(tmp_path: Path) -> None:
    results = evaluate_dataset(synthetic.load(tasks=1, recordings=6, seed=1), ["argmax"], workers=1)
    with pytest.raises(InputError, match="no posterior"):
        calibrate(results, "argmax")
    with pytest.raises(InputError, match="holds none of these datasets: salads50, crosstask"):
        list(evaluate_calibration(tmp_path))
    with pytest.raises(InputError, match="salads50"):
        list(evaluate_calibration(tmp_path, CalibrationOptions(datasets=("soup",))))


def test_each_dataset_is_reported_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {
        "salads50": synthetic.load(tasks=1, recordings=6, seed=1),
        "crosstask": synthetic.load(tasks=1, recordings=5),
    }
    for name in made:
        (tmp_path / {"crosstask": "captions"}.get(name, name)).mkdir()
    monkeypatch.setattr("graph2vid.evaluate.calibration.DATASETS", dict.fromkeys(made, "graph:expert"))
    monkeypatch.setattr("graph2vid.evaluate.calibration.read_dataset", lambda name, data: made[name])
    seen = [
        (report.is_complete, len(report.tables), len(report.to_json()["calibrations"]))
        for report in evaluate_calibration(tmp_path, CalibrationOptions(gammas="1,4"), workers=1)
    ]
    assert seen == [(False, 2, 1), (True, 4, 2)]
