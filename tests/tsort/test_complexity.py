"""``graph2vid complexity``: the numbers, the plot, and what it refuses."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

from dags import thread_flow
from graph2vid.cli import main
from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph
from graph2vid.tsort.complexity import Complexity


def rows_of(path: Path) -> list[dict[str, object]]:
    report = json.loads(path.read_text(encoding="utf-8"))
    assert (report["format"], report["version"]) == ("graph2vid-complexity", 1)
    return report["rows"]  # type: ignore[no-any-return]


def test_threads_by_formula_and_by_building_agree() -> None:
    lengths = (3, 3, 4)
    assert Complexity.of_threads(lengths) == Complexity.of_flow(thread_flow(lengths))


def test_table_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["complexity", "--json", str(tmp_path / "c.json")]) == 0
    rows = rows_of(tmp_path / "c.json")
    assert [row["threads"] for row in rows] == [t for t in range(2, 7) for _ in range(t, 31)]
    row = next(row for row in rows if row["threads"] == 4 and row["steps"] == 10)
    nodes = 1 + 2 * 3 * 4 * 3 * 3 + 2 * 2 * 4 * 4 * 3
    assert (row["sorts"], row["nodes"]) == (math.factorial(10) // (6 * 6 * 2 * 2), nodes)
    assert row["speed_up"] == pytest.approx(25200 * 11 / (4 * nodes))
    printed = capsys.readouterr().out
    assert "155,117,520" in printed
    assert "8.88e+19" in printed


def test_given_threads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["complexity", "--threads", "3,3,4"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["3", "10", "4,200", "80", "185", "83.2"]


def test_flow_file_within_and_beyond_the_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "flow.json"
    FlowGraph.bag([f"step {i}" for i in range(30)]).save(path)
    assert main(["complexity", str(path), "--json", str(tmp_path / "c.json")]) == 0
    assert "beyond --limit" in capsys.readouterr().out
    (row,) = rows_of(tmp_path / "c.json")
    assert row["sorts"] == math.factorial(30)
    assert row["ideals_bounds"] == [2**30, 2**30]
    assert row["nodes"] is None
    FlowGraph.chain(["a", "b", "c"]).save(path)
    assert main(["complexity", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["1", "3", "1", "4", "4", "1"]


def test_numbers_too_long_to_write(tmp_path: Path) -> None:
    lengths = ",".join(["1"] * 2000)
    assert main(["complexity", "--threads", lengths, "--json", str(tmp_path / "c.json")]) == 0
    (row,) = rows_of(tmp_path / "c.json")
    assert row["sorts"] is None
    assert row["speed_up"] is None
    assert row["log10_speed_up"] > 4000  # type: ignore[operator]


@pytest.mark.parametrize("suffix, start", [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_plot(tmp_path: Path, suffix: str, start: bytes) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"rho.{suffix}"
    assert main(["complexity", "--max-steps", "8", "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(start)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_plot_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["complexity", "--plot", str(tmp_path / "rho.png")]) == 2
    assert ".[plot]" in capfd.readouterr().err


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--threads", "3,x"], "commas"),
        (["--threads", "3,0"], "at least one step"),
        (["--threads", "3", "flow.json"], "not both"),
        (["--plot", "rho.bmp"], ".png"),
        (["--max-steps", "1"], "--max-steps"),
        (["missing.json"], "missing.json"),
    ],
)
def test_refusals(arguments: list[str], words: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["complexity", *arguments]) == 2
    error = capfd.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_no_threads() -> None:
    with pytest.raises(InputError, match="at least one step"):
        Complexity.of_threads(())
