"""Deviations found in recordings: what is known of them, results at several levels of noise, the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from graph2vid import _options
from graph2vid._evaluation_options import CheckOptions
from graph2vid.cli import main
from graph2vid.datasets import captaincook4d
from graph2vid.datasets.dataset import Annotation
from graph2vid.evaluate.check_experiment import evaluate_check, known_deviations
from layouts import captaincook4d as write_captaincook4d
from layouts import real_data


def test_what_is_known_of_a_recording(tmp_path: Path) -> None:
    dataset = captaincook4d.load(write_captaincook4d(tmp_path))
    _, two = dataset.recordings
    # "Pour" stands twice in the graph: of the two nothing is known.
    known = known_deviations(dataset, two)
    assert known.deviations["skipped"] == {2} and not known.is_clean

    def of(*rows: tuple[int, float, float]) -> tuple[set[int], set[int], set[int], bool]:
        recording = replace(two, annotations=tuple(Annotation(*row) for row in rows))
        found = known_deviations(dataset, recording)
        return (set(found.steps), *(set(found.deviations[k]) for k in ("skipped", "out of order")), found.is_clean)

    # Dataset steps: 0 pour (nodes 1 and 3), 1 stir (node 2), 2 boil (node 0); boil → pour → stir → pour.
    assert of((2, 0, 10), (0, 10, 20), (1, 20, 30)) == ({0, 2}, set(), set(), True)
    assert of((1, 0, 10), (0, 10, 20), (2, 20, 30)) == ({0, 2}, set(), {0}, False)
    assert of((2, 0, 10), (1, 1, 9), (0, 10, 20)) == ({0} - {0}, set(), set(), True)
    assert of((2, 0, 10), (0, 10, 20), (1, 20, 25), (1, 30, 35))[-1] is False


def test_little_noise_finds_what_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_captaincook4d(tmp_path)
    page, document = tmp_path / "page.md", tmp_path / "found.json"
    asked = [
        "evaluate",
        "check",
        "--data",
        str(root),
        "--noise",
        "0.1,5",
        "--markdown",
        str(page),
        "--json",
        str(document),
    ]
    assert main(asked) == 0
    assert "Deviations found" in capsys.readouterr().out
    assert "<!-- evaluate check: begin -->" in page.read_text()
    levels = json.loads(document.read_text())["noise"]
    assert [level["noise"] for level in levels] == [0.1, 5.0]
    assert set(levels[0]["skipped"]) == {"right", "wrong", "missed", "f1"}
    assert main(["evaluate", "check", "--data", str(root), "--methods", "bag"]) == 2
    assert main(["evaluate", "check"]) == 2
    assert main(["evaluate", "check", "--data", str(root), "-o", "colour=2"]) == 2


def test_defaults_are_those_of_the_order_check() -> None:
    ours, theirs = CheckOptions(), _options.CheckOptions()
    assert all(getattr(ours, name) == getattr(theirs, name) for name in ("skip", "repeat", "certainty"))


def test_each_level_of_noise_is_reported_at_once(tmp_path: Path) -> None:
    reports = evaluate_check(write_captaincook4d(tmp_path), CheckOptions(noise="0.1,5"))
    rows = [(report.is_complete, report.tables[0].is_growing, len(report.tables[0].rows)) for report in reports]
    assert rows == [(False, True, 1), (True, False, 2)]


@pytest.mark.slow
def test_real_recordings() -> None:
    (report,) = evaluate_check(real_data("captaincook4d"), CheckOptions(noise="0.5"))
    (level,) = report.document["noise"]
    assert level["skipped"]["f1"] > 0.9 and level["out of order"]["f1"] > 0.88
    assert level["false_alarms"] < 0.06 * report.document["clean"]
