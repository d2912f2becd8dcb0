"""``graph2vid evaluate parser`` from the outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graph2vid.cli import main
from graph2vid.datasets.recipe_flowgraph import read_recipes
from graph2vid.errors import MissingDependencyError
from graph2vid.evaluate.parser import parser_experiment
from graph2vid.text.coarsen import coarsen
from graph2vid.text.parsed_text import PARSERS, Parse, Procedure, Reason
from layouts import captaincook4d, crosstask, write
from recipes import corpus


class Oracle:
    """Knows the corpus by heart."""

    def __init__(self, root: Path) -> None:
        self.known = {recipe.tokens: recipe for recipe in read_recipes(root, "dev")}

    def tag(self, recipes: list[list[str]]) -> list[list[str]]:
        return [list(self.known[tuple(tokens)].tags) for tokens in recipes]

    def edges(self, tokens: list[str], tags: list[str]) -> list[tuple[int, int, str]]:
        return list(self.known[tuple(tokens)].edges)


def last(procedure: Procedure) -> Parse:
    """Let the last instruction wait for all others."""
    after = len(procedure) - 1
    return coarsen(procedure, (Reason(before, after, "last") for before in range(after)), "last")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = corpus(tmp_path / "recipes")
    monkeypatch.setitem(PARSERS._parts, "last", last)
    monkeypatch.setitem(PARSERS._parts, "learned", lambda procedure, **_: last(procedure))
    monkeypatch.setattr(parser_experiment, "load_entity_model", lambda weights: Oracle(folder))
    return folder


def how_tos(folder: Path) -> None:
    """Write two articles of three and two steps, and a task with one precedence against the written order."""
    for domain, words, flows in (
        ("Cars", ("Wait .", "Open it .", "Close it ."), [["1-0-1", "2-0-1", "T-eq"]]),
        ("Home-and-Garden", ("Dig .", "Sow ."), [["0-0-0", "1-0-0", "Agent"], ["1-0-0", "0-0-0", "Agent"]]),
    ):
        steps = [[{"token": token} for token in text.split()] for text in words]
        write(folder / "wikihow_fg" / domain / "1_do-it.json", json.dumps({"steps": steps, "flows": flows}))
    task = {"id": "a", "title": "T", "steps": ["Go.", "Come.", "Stay."], "before": [[2, 1], [0, 2]]}
    write(folder / "asynchow" / "tasks.jsonl", json.dumps(task) + "\n\n")


def run(root: Path, *arguments: str) -> dict[str, Any]:
    path = root / "figures.json"
    assert main(["evaluate", "parser", "--data", str(root), "--json", str(path), *arguments]) == 0
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_from_end_to_end(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crosstask(root.parent)
    write(root.parent / "crosstask_release" / "annotations" / "101_v.csv", "3,1,2\n1,3,4\n")
    captaincook4d(root.parent / "captaincook4d")
    how_tos(root.parent)
    page = write(
        root.parent / "results.md", "# Results\n\n<!-- evaluate other: begin -->\nold\n<!-- evaluate other: end -->\n"
    )
    document = run(root, "--parsers", "learned,last,linear,bag", "--markdown", str(page))
    assert {"precision", "recall", "f1"} <= set(document["tagger"])
    assert document["unit"] == "share"
    assert document["tagger"]["f1"] == 1
    assert document["edges"]["gold_tags"]["f1"] == document["edges"]["predicted_tags"]["f1"] == 1
    assert document["edges"]["gold_tags"]["uas"] == 1
    assert list(document["graphs"]) == ["learned", "last", "linear", "bag"]
    # recipe 1: 0→2 and 1→2, both found; recipe 2 has none, "last" says 0→1
    assert document["graphs"]["last"]["edge_f1"] == pytest.approx(2 * 2 / (3 + 2))
    assert document["graphs"]["last"]["precedence_f1"] == pytest.approx(2 * 2 / (3 + 2))
    assert document["graphs"]["bag"]["edge_f1"] == 0
    assert document["graphs"]["bag"]["edge_precision"] is None
    assert document["captaincook4d"]["graphs"]["linear"]["edge_f1"] == 1
    # the video shows step 3 (instructions 1 and 2) before step 1 (instruction 0)
    admitted = {source: row["admitted"] for source, row in document["crosstask"]["sources"].items()}
    assert admitted == {"learned": 1, "last": 1, "linear": 0, "bag": 1}
    precedence = document["precedence"]
    assert list(precedence["wikihow_fg"]) == ["Cars", "Home-and-Garden", "all"]
    assert precedence["wikihow_fg"]["Cars"]["linear"] == {"p": pytest.approx(1 / 3), "r": 1, "f1": 0.5}
    assert precedence["wikihow_fg"]["all"]["last"] == {"p": pytest.approx(2 / 3), "r": 1, "f1": pytest.approx(0.8)}
    # of the task 0→2→1, so that three precedences hold
    found = precedence["asynchow"]["all"]
    assert found["last"] == {"p": 0.5, "r": pytest.approx(1 / 3), "f1": pytest.approx(0.4)}
    assert found["linear"] == dict.fromkeys(("p", "r", "f1"), pytest.approx(2 / 3))
    assert found["bag"] == {"p": None, "r": 0, "f1": 0}
    assert document["not_available"] == {}
    assert document["command"] == f"graph2vid evaluate parser --data {root} --parsers learned,last,linear,bag"
    text = page.read_text()
    assert "old" in text
    assert "<!-- evaluate parser: begin -->\n## parser" in text
    assert "| linear |" in text
    printed = capsys.readouterr().out
    assert "Graphs over sentences" in printed
    assert "Real executions" in printed
    assert "Precedence (wikihow_fg)" in printed and "Home-and-Garden" in printed


def test_what_is_missing_is_said(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(*_: Any, **__: Any) -> Any:
        raise MissingDependencyError("the weights are not here")

    monkeypatch.setitem(PARSERS._parts, "learned", absent)
    monkeypatch.setattr(parser_experiment, "load_entity_model", absent)
    document = run(root, "--parsers", "learned,linear")
    assert document["tagger"] is document["edges"] is document["crosstask"] is document["captaincook4d"] is None
    assert list(document["graphs"]) == ["linear"]
    assert set(document["not_available"]) == {
        "learned",
        "entity model",
        "crosstask",
        "captaincook4d",
        "wikihow_fg",
        "asynchow",
    }
    assert "learned not available: the weights are not here" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "linear"], "No such option: --methods"),
        (["--skip-bad"], "No such option: --skip-bad"),
        (["--parsers", "magic"], "unknown parser 'magic'"),
        (["--parsers", "none"], "--parsers names no parser"),
        (["--split", "test"], "test.conllu is not there; splits in that folder: dev"),
        (["--crosstask", "nowhere", "--parsers", "bag"], "nowhere is not a folder"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    root: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "parser", "--data", str(root), *arguments]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


def test_options_that_belong_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "parser"]) == 2
    assert "say which with --data DIR" in capsys.readouterr().err
    assert main(["evaluate", "synthetic", "--split", "dev"]) == 2
    assert "No such option: --split" in capsys.readouterr().err


def test_options_as_in_the_release_before(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for given, message in (("colour=red", "unknown option 'colour'"), ("crosstask=nowhere", "nowhere is not a folder")):
        assert main(["evaluate", "parser", "--data", str(root), "--parsers", "bag", "-o", given]) == 2
        warning, error = capsys.readouterr().err.splitlines()
        assert "-o NAME=VALUE is called --NAME VALUE now" in warning and message in error
