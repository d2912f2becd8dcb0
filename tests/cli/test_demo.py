"""``graph2vid demo`` and the sample it grounds."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from graph2vid import sample
from graph2vid.cli import main
from graph2vid.sample import make


def test_sample_is_what_its_script_makes(tmp_path: Path) -> None:
    make.main(tmp_path)
    for file in sample.FILES:
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()


def test_sample_is_a_fair_example() -> None:
    bundled = sample.load()
    assert bundled.scores.shape[0] == len(bundled.flow)
    assert np.isfinite(bundled.scores).all()
    spans = sorted(bundled.truth.items(), key=lambda item: item[1])
    order = [step for step, _ in spans]
    assert order != sorted(order)  # not the order as written
    assert len(order) < len(bundled.flow)  # and one step left out
    for (_, (_, end)), (_, (start, _)) in itertools.pairwise(spans):
        assert end <= start
    for before, after in bundled.flow.edges:
        if before in bundled.truth and after in bundled.truth:
            assert order.index(before) < order.index(after)


def test_any_legal_order_comes_closer_than_the_written_one() -> None:
    bundled = sample.load()
    graph, linear = sample.ground_sample(bundled)
    assert graph.measures["acc"] > linear.measures["acc"]
    assert list(graph.grounding.order) == sorted(bundled.truth, key=lambda step: bundled.truth[step])
    assert graph.grounding.not_shown == (bundled.flow.index("rest"),)
    assert graph.distance(bundled.flow.index("rest")) is None
    assert all((graph.distance(step) or 0) < 5 for step in bundled.truth)


def test_demo_prints_a_timeline(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    report, files = tmp_path / "demo.json", tmp_path / "new" / "folder"
    assert main(["demo", "--json", str(report), "--save", str(files)]) == 0
    written = capfd.readouterr().out
    assert "Pancakes with berries" in written
    assert "order seen" in written
    assert "s off" in written
    rows = json.loads(report.read_text(encoding="utf-8"))["rows"]
    assert [row["method"] for row in rows] == ["graph", "linear"]
    assert sorted(path.name for path in files.iterdir()) == sorted(path.name for path in sample.FILES)


def test_folder_that_cannot_be_made_is_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["demo", "--save", str(tmp_path / "file" / "folder")]) == 2
    assert capfd.readouterr().err.count("\n") == 1
