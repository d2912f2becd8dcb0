"""``graph2vid flow show|check|draw``."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from graph2vid.cli import main
from graph2vid.cli.flow_command import commands
from graph2vid.errors import Graph2VidError, GraphError
from graph2vid.flow import FlowGraph, order

pytest.importorskip("graph2vid.tsort")


def run(*arguments: object) -> str:
    app = typer.Typer()
    app.add_typer(commands, name="flow")
    app.command("other")(lambda: None)
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, ["flow", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0
    return result.output


@pytest.fixture
def salad(tmp_path: Path) -> Path:
    steps = [("tomato", "cut the tomato"), ("cucumber", "cut the cucumber"), ("mix", "mix"), ("eat", "eat")]
    path = tmp_path / "salad.flow"
    FlowGraph.from_edges(steps, [(0, 2), (1, 2), (2, 3), (0, 3)], title="Greek [salad]").save(path)
    return path


def test_show(salad: Path, tmp_path: Path) -> None:
    output = run("show", salad, "--json", tmp_path / "show.json")
    assert output.splitlines()[:3] == [
        "Greek [salad]",
        "4 steps, 4 edges, 2 threads; begins with tomato, cucumber; ends with eat",
        "2 legal orders",
    ]
    report = json.loads((tmp_path / "show.json").read_text())
    assert report["format"] == "graph2vid-flow-show"
    assert report["orders"] == {"exact": 2, "lower": 2, "upper": 2}
    assert report["threads"] == [["tomato", "mix", "eat"], ["cucumber"]]
    assert report["steps"][3] == {"id": "eat", "text": "eat", "stage": 3, "after": ["tomato", "mix"]}


def test_show_with_uncountable_orders(tmp_path: Path) -> None:
    FlowGraph.bag(["x"] * 1600).save(tmp_path / "bag.json")
    assert "legal orders" in run("show", tmp_path / "bag.json", "--json", tmp_path / "show.json")
    assert json.loads((tmp_path / "show.json").read_text())["orders"]["exact"] is None


def test_check(salad: Path, tmp_path: Path) -> None:
    output = run("check", salad, "--json", tmp_path / "check.json")
    assert "warning: edge 'tomato' → 'eat' says nothing new: 'mix' lies between" in output
    assert output.endswith("salad.flow: 4 steps, 4 edges, 1 warning\n")
    report = json.loads((tmp_path / "check.json").read_text())
    assert report["error"] is None
    assert report["warnings"][0]["kind"] == "redundant edge"
    FlowGraph.load(salad).transitive_reduction().save(salad)
    assert run("check", salad).endswith("no problems\n")


def test_check_shortens_long_lists(tmp_path: Path) -> None:
    FlowGraph.chain([f"do {i}" for i in range(12)]).transitive_closure().save(tmp_path / "all.json")
    output = run("check", tmp_path / "all.json")
    assert output.count("warning: edge") == 10
    assert "… and 45 more of the kind redundant edge" in output


def test_check_of_a_bad_file(tmp_path: Path) -> None:
    bad = tmp_path / "bad.flow"
    bad.write_text("a: x\nb: y\na -> b -> a\n")
    with pytest.raises(GraphError, match=r"bad.flow: the steps form a cycle: 'a' → 'b' → 'a'"):
        run("check", bad, "--json", tmp_path / "check.json")
    assert "cycle" in json.loads((tmp_path / "check.json").read_text())["error"]


def test_draw(salad: Path, tmp_path: Path) -> None:
    assert run("draw", salad) == f"wrote {tmp_path / 'salad.svg'}\n"
    assert (tmp_path / "salad.svg").read_text(encoding="utf-8").startswith("<svg")
    pytest.importorskip("resvg_py")
    run("draw", salad, "-o", tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(Graph2VidError, match=r"use \.svg or \.png"):
        run("draw", salad, "-o", tmp_path / "a.pdf")


def test_help() -> None:
    for command in ("show", "check", "draw"):
        assert "FILE" in run(command, "--help")


@pytest.mark.parametrize("edges", ["chain", "bag"])
@pytest.mark.parametrize("command", [["flow", "show"], ["flow", "draw"], ["complexity"]])
def test_twenty_thousand_steps_are_refused_at_once(
    command: list[str],
    edges: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def quadratic(*_: object) -> None:
        raise AssertionError("what comes before what is found out of a graph that is refused")

    monkeypatch.setattr(order, "reachable", quadratic)
    names = [f"s{number}" for number in range(20_000)]
    orders = [f"{a} -> {b}" for a, b in pairwise(names)] if edges == "chain" else []
    path = tmp_path / "long.flow"
    path.write_text("\n".join([*(f"{name}:" for name in names), *orders]))
    assert main([*command, str(path)]) == 2
    said = capfd.readouterr().err
    assert said.count("\n") == 1 and "20,000 steps" in said and "up to 2,000" in said
