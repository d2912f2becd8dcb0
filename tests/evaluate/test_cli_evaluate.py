"""``graph2vid evaluate`` from the outside, on made and on real data."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graph2vid._processes import Terminated
from graph2vid.cli import main
from layouts import captaincook4d as write_captaincook4d

DATA = Path(os.environ.get("GRAPH2VID_DATA", Path(__file__).parents[2] / ".." / "shared" / "data"))
SMALL = ["-o", "tasks=2", "-o", "recordings=8", "-o", "steps=4,6", "--workers", "1"]


def test_synthetic_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, written = tmp_path / "results.md", tmp_path / "results.json"
    arguments = [
        "evaluate",
        "synthetic",
        *SMALL,
        "--noise",
        "2,4,8",
        "--json",
        str(written),
        "--markdown",
        str(page),
    ]
    assert main(arguments) == 0
    document = json.loads(written.read_text())
    assert document["dataset"] == "synthetic"
    assert [level["noise"] for level in document["noise"]] == [2, 4, 8]
    rows = {row["method"]: row for row in document["rows"]}
    assert set(rows) == {"argmax", "bag", "linear", "written", "graph:expert", "true-order", "true-order-repeats"}
    assert rows["graph:expert"]["videos"] == 8
    command = "graph2vid evaluate synthetic --noise 2,4,8 --option tasks=2 --option recordings=8 --option steps=4,6"
    assert document["command"] == command
    assert command in page.read_text()
    assert "simulated" in capsys.readouterr().out


def test_tables_are_there_before_pictures_are_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    page, written = tmp_path / "results.md", tmp_path / "results.json"
    told = []

    def fail(*_: object, **__: object) -> None:
        if not told:
            told.append(("graph:expert" in capsys.readouterr().out, written.exists(), page.exists()))
        raise ValueError("no ink")

    for name in ("plot_video", "plot_flexibility"):
        monkeypatch.setattr(f"graph2vid.evaluate.plots.{name}", fail)
    arguments = ["evaluate", "synthetic", *SMALL, "--noise", "4", "--json", str(written), "--markdown", str(page)]
    assert main([*arguments, "--plots", str(tmp_path / "pictures")]) == 0
    assert told == [(True, True, True)]
    assert "| graph:expert | 8 |" in page.read_text()
    errors = capsys.readouterr().err
    assert errors.count("warning: ") == errors.count("could not be drawn: no ink") == 2


def test_pictures_that_cannot_be_drawn_at_all_are_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph2vid.evaluate.plots.find_spec", lambda name: None)
    assert main(["evaluate", "synthetic", "--plots", str(tmp_path / "pictures")]) == 2
    assert "plots need matplotlib" in capsys.readouterr().err
    assert not (tmp_path / "pictures").exists()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("at", ["true-order", "noise 8: "])
def test_what_is_ready_is_kept_when_the_run_is_interrupted(
    at: str,
    number: signal.Signals,
    status: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the first run (at noise 4) after some methods; and in the sweep after noise 2."""
    page, written = tmp_path / "results.md", tmp_path / "results.json"

    @contextmanager
    def interrupting(_: str) -> Iterator[Callable[..., None]]:
        def tell(what: str, *_: object) -> None:
            if what.startswith(at):
                raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)

        yield tell

    monkeypatch.setattr("graph2vid.cli.evaluate_command.progress", interrupting)
    arguments = [
        "evaluate",
        "synthetic",
        *SMALL,
        "--noise",
        "2,4,8",
        "--json",
        str(written),
        "--markdown",
        str(page),
    ]
    assert main(arguments) == status
    document, told = json.loads(written.read_text()), capsys.readouterr()
    in_sweep = at.startswith("noise")
    assert [level["noise"] for level in document["noise"]] == ([2, 4] if in_sweep else [])
    methods = [row["method"] for row in document["rows"]]
    assert "graph:expert" in methods and ("true-order" in methods) == in_sweep
    assert "the run was cut short" in " ".join(document["remarks"]) and "the run was cut short" in told.out
    assert "graph:expert" in told.out and "| graph:expert | 8 |" in page.read_text()


def test_nothing_is_written_where_nothing_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("graph2vid.evaluate.experiment.evaluate_one_by_one", interrupt)
    assert main(["evaluate", "synthetic", *SMALL, "--json", str(tmp_path / "results.json")]) == 130
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "bag,magic"], "there is no method 'magic'; there are: argmax, argmax+background, bag, linear"),
        (["--parsers", "rules,magic"], "unknown parser 'magic'; known: "),
        (["--parsers", "magic", "--methods", "bag"], "unknown parser 'magic'; known: "),
        (["--noise", "1,-2"], "--noise must be numbers from 0"),
        (["--noise", "nan"], "--noise must be numbers from 0"),
    ],
)
def test_wrong_names_are_refused_before_the_data_are_read(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object, **__: object) -> None:
        raise AssertionError("the data are read")

    monkeypatch.setattr("graph2vid.datasets.read_dataset", read)
    assert main(["evaluate", "synthetic", *arguments]) == 2
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "No such command 'nothing'"),
        (["salads50"], "say which with --data DIR"),
        (["salads50", "--data", "nowhere"], "nowhere is not a folder"),
        (["synthetic", "-o", "colour=red"], "synthetic has no option 'colour'"),
        (["synthetic", "-o", "seed"], "an option of the reader is NAME=VALUE"),
        (["synthetic", *SMALL, "--noise", "much"], "--noise must be numbers"),
        (["synthetic", *SMALL, "--methods", "magic"], "no method 'magic'"),
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
    written = tmp_path / "written.json"
    methods = "argmax,argmax+background,linear,graph,true-order"
    arguments = ["evaluate", "salads50", "--data", str(folder), "--methods", methods, "--json", str(written)]
    assert main(arguments) == 0
    rows = {row["method"]: row for row in json.loads(written.read_text())["rows"]}
    assert {row["videos"] for row in rows.values()} == {4}
    assert rows["linear"]["acc"] < rows["graph:mined"]["acc"]
    assert rows["true-order"]["acc"] > 50


def test_every_dataset_is_a_command() -> None:
    from graph2vid.cli.evaluate_command import DATASETS as COMMANDS
    from graph2vid.datasets import DATASETS

    assert set(COMMANDS) == set(DATASETS)


def test_old_names_still_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "results.json"
    arguments = ["evaluate", "synthetic", *SMALL, "--noise", "4", "--methods", "graph:expert", "--json", str(path)]
    assert main([*arguments, "--beyond", "skip", "--skip-steps", "constant:9"]) == 0
    document, told = json.loads(path.read_text()), capsys.readouterr().err
    assert "--beyond is called --extended now" in told and "--skip-steps is called --skip now" in told
    assert [row["method"] for row in document["rows"]] == ["graph:expert", "graph:expert+skip"]
    assert document["options"]["skip"] == "constant:9"
    assert main([*arguments, "--not-contiguous"]) == 0
    assert "--not-contiguous is called --no-contiguous now" in capsys.readouterr().err
    assert json.loads(path.read_text())["options"]["contiguous"] is False


def test_mined_graphs_are_compared_with_those_of_experts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, path = write_captaincook4d(tmp_path / "data"), tmp_path / "mining.json"
    arguments = ["evaluate", "mining", "--data", str(root), "--recordings", "plain", "--min-support", "1"]
    assert main([*arguments, "--json", str(path)]) == 0
    rows = {row["method"]: row for row in json.loads(path.read_text())["rows"]}
    mined = ["graph:mined", "graph:executions", "graph:executions+text"]
    small = ["graph:executions@small", "graph:groundings@small"]
    assert list(rows) == ["bag", "linear", *mined, "expert:unviolated", *(f"{name}@3" for name in mined), *small]
    assert {"precision", "recall", "f1", "recipes", "interval", "gain_interval"} <= set(rows["graph:mined"])
    # The expert: boil, pour, stir, pour again. Both pours count as one step: of the five edges between START, boil,
    # pour, stir and END the bag has two, START to boil and pour to END.
    assert rows["bag"]["recall"] == 0.4
    assert rows["graph:mined"]["f1"] == rows["expert:unviolated"]["f1"] == 1
    assert "Mined graphs" in capsys.readouterr().out
