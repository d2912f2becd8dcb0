"""``graph2vid evaluate`` from the outside, on made and on real data."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from graph2vid.cli import main

DATA = Path(os.environ.get("GRAPH2VID_DATA", Path(__file__).parents[2] / ".." / "shared" / "data"))
SMALL = ["-o", "tasks=2", "-o", "recordings=8", "-o", "steps=4,6", "--workers", "1"]


def test_synthetic_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, figures = tmp_path / "results.md", tmp_path / "results.json"
    arguments = ["evaluate", "synthetic", *SMALL, "--noise", "2,4,8", "--json", str(figures), "--markdown", str(page)]
    assert main(arguments) == 0
    document = json.loads(figures.read_text())
    assert document["dataset"] == "synthetic"
    assert [level["noise"] for level in document["noise"]] == [2, 4, 8]
    rows = {row["method"]: row for row in document["rows"]}
    assert set(rows) == {"argmax", "bag", "linear", "graph:expert", "true-order", "true-order-repeats"}
    assert rows["graph:expert"]["videos"] == 8
    command = "graph2vid evaluate synthetic --noise 2,4,8 --option tasks=2 --option recordings=8 --option steps=4,6"
    assert document["command"] == command
    assert command in page.read_text()
    assert "simulated" in capsys.readouterr().out


def test_tables_are_there_before_pictures_are_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    page, figures = tmp_path / "results.md", tmp_path / "results.json"
    told = []

    def fail(*_: object, **__: object) -> None:
        if not told:
            told.append(("graph:expert" in capsys.readouterr().out, figures.exists(), page.exists()))
        raise ValueError("no ink")

    for name in ("plot_video", "plot_flexibility"):
        monkeypatch.setattr(f"graph2vid.evaluate.plots.{name}", fail)
    arguments = ["evaluate", "synthetic", *SMALL, "--noise", "4", "--json", str(figures), "--markdown", str(page)]
    assert main([*arguments, "--plots", str(tmp_path / "pictures")]) == 0
    assert told == [(True, True, True)]
    assert "| graph:expert | 8 |" in page.read_text()
    errors = capsys.readouterr().err
    assert errors.count("warning: ") == errors.count("could not be drawn: no ink") == 2


def test_pictures_that_cannot_be_drawn_at_all_are_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph2vid.evaluate.plots.find_spec", lambda name: None)
    assert main(["evaluate", "nothing", "--plots", str(tmp_path / "pictures")]) == 2
    assert "plots need matplotlib" in capsys.readouterr().err
    assert not (tmp_path / "pictures").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "unknown dataset 'nothing'"),
        (["salads50"], "say which with --data DIR"),
        (["salads50", "--data", "nowhere"], "nowhere is not a folder"),
        (["synthetic", "-o", "colour=red"], "synthetic has no option 'colour'"),
        (["synthetic", "-o", "seed"], "an option of the reader is NAME=VALUE"),
        (["synthetic", *SMALL, "--noise", "much"], "--noise must be numbers"),
        (["synthetic", *SMALL, "--methods", "magic"], "no method 'magic' here"),
        (["synthetic", *SMALL, "--video", "none", "--plots", "pictures"], "no video 'none'"),
        (["synthetic", *SMALL, "--compare-graphs", "none"], "no task 'none'"),
        (["synthetic", *SMALL, "--preset", "none"], "unknown preset 'none'"),
        (["synthetic", *SMALL, "--folds", "1"], "folds is 0"),
        (["synthetic", *SMALL, "--linear", "up"], "listed or mean-position"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", *arguments]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


def test_salads_with_some_of_the_videos(tmp_path: Path) -> None:
    source = DATA / "salads50"
    if not source.is_dir():
        pytest.skip(f"no data in {source}; GRAPH2VID_DATA says where they are")
    folder = tmp_path / "salads"  # a folder of the same layout with fewer videos and one split
    for name in ("scores", "groundTruth", "splits"):
        (folder / name).mkdir(parents=True)
    (folder / "mapping.txt").symlink_to((source / "mapping.txt").resolve())
    videos = sorted(path.stem for path in (source / "scores").glob("*.npy"))[:14]
    for video in videos:
        (folder / "scores" / f"{video}.npy").symlink_to((source / "scores" / f"{video}.npy").resolve())
        (folder / "groundTruth" / f"{video}.txt").symlink_to((source / "groundTruth" / f"{video}.txt").resolve())
    for side, names in (("train", videos[4:]), ("test", videos[:4])):
        (folder / "splits" / f"{side}.split1.bundle").write_text("".join(f"{name}.txt\n" for name in names))
    figures = tmp_path / "figures.json"
    methods = "argmax,argmax+background,linear,graph,true-order"
    arguments = ["evaluate", "salads50", "--data", str(folder), "--methods", methods, "--json", str(figures)]
    assert main(arguments) == 0
    rows = {row["method"]: row for row in json.loads(figures.read_text())["rows"]}
    assert {row["videos"] for row in rows.values()} == {4}
    assert rows["linear"]["acc"] < rows["graph:mined"]["acc"]
    assert rows["true-order"]["acc"] > 50
