"""The procedures of the gallery are read and parsed, and its page can be made."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from graph2vid.errors import MissingDependencyError
from graph2vid.flow import FlowGraph
from graph2vid.text import parse, read_procedure

ROOT = Path(__file__).parents[2]
PROCEDURES = ROOT / "examples" / "procedures"
FILES = sorted(path.name for path in PROCEDURES.iterdir() if path.name != "expected.json")


@pytest.fixture(scope="module")
def gallery() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gallery", ROOT / "examples" / "gallery.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def test_every_file_is_shown(gallery: ModuleType) -> None:
    assert sorted(exhibit.file for exhibit in gallery.EXHIBITS) == FILES


@pytest.mark.parametrize("file", FILES)
def test_read_as_meant(file: str, gallery: ModuleType) -> None:
    procedure = read_procedure(PROCEDURES / file)
    assert procedure.title
    assert bool(procedure.ingredients) == (file in ("salad.md", "cake.json", "shelf.html"))
    expected = gallery.expected_flow(file, procedure)  # says so where the number of instructions differs
    assert all(before < after for before, after in expected.edges)
    assert set(expected.transitive_reduction().edges) == set(expected.edges)


@pytest.mark.parametrize("parser", ["linear", "rules"])
@pytest.mark.parametrize("file", FILES)
def test_parsed(file: str, parser: str) -> None:
    procedure = read_procedure(PROCEDURES / file)
    try:
        found = parse(procedure, parser)
    except MissingDependencyError as error:
        pytest.skip(str(error))
    assert len(found.flow) == len(procedure)
    assert all(before < after for before, after in found.flow.edges)


def test_agreement(gallery: ModuleType) -> None:
    steps = ["a", "b", "c"]
    agreement = gallery.compare(FlowGraph.chain(steps), FlowGraph.from_edges(steps, [(0, 2), (1, 2)]))
    assert agreement.f1 == pytest.approx(0.8)
    assert (agreement.missing, agreement.extra) == ([], [(0, 1)])
    assert gallery.compare(FlowGraph.bag(steps), FlowGraph.bag(steps)).f1 == 1.0


def test_page(gallery: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery, "DRAWN", ("linear",))
    monkeypatch.setattr(gallery, "COMPARED", ("linear",))
    text, drawings = gallery.page()
    assert set(re.findall(r"/gallery/(.*?)\)", text)) == set(drawings)
    assert len(drawings) == len(FILES)
    assert all(drawing.startswith("<svg") for drawing in drawings.values())
    headings = {re.sub(r"[^a-z0-9]+", "-", title.lower()) for title in re.findall(r"^## (.*)$", text, re.MULTILINE)}
    assert set(re.findall(r"\(#(.*?)\)", text)) == headings
