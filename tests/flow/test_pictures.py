"""Layout, SVG, PNG and the terminal."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from dags import dags
from graph2vid.errors import Graph2VidError, InputError, MissingDependencyError
from graph2vid.flow import FlowGraph, flow_drawing, terminal
from graph2vid.flow.layout import lay_out, stages
from graph2vid.flow.svg import text_width, wrapped

SVG = "{http://www.w3.org/2000/svg}"


@given(dags(max_steps=12))
def test_boxes_stand_apart_and_edges_lead_down(flow: FlowGraph) -> None:
    sizes = [(80.0 + 10 * (step % 3), 30.0 + 15 * (step % 4)) for step in range(len(flow))]
    plan = lay_out(flow.transitive_reduction(), sizes)
    assert len(plan.boxes) == len(flow)
    for number, box in enumerate(plan.boxes):
        assert (box.width, box.height) == sizes[number]
        assert box.x >= -0.01 and box.x + box.width <= plan.width + 0.01
        assert box.y >= -0.01 and box.y + box.height <= plan.height + 0.01
        for other in plan.boxes[:number]:
            aside = box.x + box.width < other.x + 1e-6 or other.x + other.width < box.x + 1e-6
            assert aside or box.y + box.height < other.y + 1e-6 or other.y + other.height < box.y + 1e-6
    for (a, b), lanes in plan.lanes.items():
        heights = [
            plan.boxes[a].y + plan.boxes[a].height,
            *(y for lane in lanes for y in lane[1:]),
            plan.boxes[b].y,
        ]
        assert heights == sorted(heights)
        for x, top, bottom in lanes:  # an edge on its way does not run through a box
            for box in plan.boxes:
                if box.y >= top - 1e-6 and box.y + box.height <= bottom + 1e-6:
                    assert x <= box.x or x >= box.x + box.width


@given(dags(max_steps=10))
def test_stages_are_longest_paths(flow: FlowGraph) -> None:
    stage = stages(flow)
    for step, before in enumerate(flow.predecessors):
        assert stage[step] == max((stage[earlier] + 1 for earlier in before), default=0)


def test_a_tree_and_its_reverse_have_no_crossings() -> None:
    edges = [(i, 2 * i + j) for i in range(7) for j in (1, 2)]
    for chosen in (edges, [(b, a) for a, b in edges]):
        plan = lay_out(FlowGraph.from_edges(["x"] * 15, chosen), [(40.0, 20.0)] * 15)
        centre = [box.x + box.width / 2 for box in plan.boxes]
        for a, b in edges:
            for c, d in edges:
                if plan.boxes[a].y == plan.boxes[c].y and centre[a] < centre[c]:
                    assert centre[b] < centre[d]


def test_wide_bags_are_folded() -> None:
    plan = lay_out(FlowGraph.bag(["x"] * 40), [(100.0, 40.0)] * 40)
    assert plan.width < 1500


def test_wrapping() -> None:
    text = "slice the red onion into thin rings and soak them in cold water"
    lines = wrapped(text, 14, 150, 6)
    assert " ".join(lines) == text
    assert all(text_width(line, 14) <= 150 for line in lines)
    assert wrapped("", 14, 150, 6) == [""]
    assert wrapped("x" * 100, 14, 100, 3)[-1].endswith("…")
    assert len(wrapped("word " * 100, 14, 100, 3)) == 3
    assert text_width("e\u0301", 10) == text_width("e", 10)
    assert text_width("長", 10) > text_width("l", 10)


def test_svg_is_self_contained_and_escaped() -> None:
    steps = [('<a "1">', "cut & <dice>"), ("b\x00", "bell \x07"), ("same", "same"), ("empty", "")]
    flow = FlowGraph.from_edges(steps, [(0, 1), (1, 2), (0, 2)], title="A & B")
    svg = flow_drawing.to_svg(flow)
    root = ElementTree.fromstring(svg)
    words = [element.text for element in root.iter(f"{SVG}text")]
    assert {"A & B", '<a "1">', "cut & <dice>", "same", "empty", "4 steps · 2 threads"} <= set(words)
    assert words.count("same") == 1  # an id that is the text is written once
    assert len(list(root.iter(f"{SVG}rect"))) == 1 + 4
    assert svg.count('class="edge"') == 2  # what others imply is left out
    assert "prefers-color-scheme: dark" in svg
    assert "href" not in svg and "url(" not in svg
    assert flow.to_svg() == flow._repr_svg_() == svg


@settings(max_examples=20)
@given(dags(max_steps=14))
def test_any_graph_is_drawn(flow: FlowGraph) -> None:
    root = ElementTree.fromstring(flow_drawing.to_svg(flow))
    assert len(list(root.iter(f"{SVG}rect"))) == 1 + len(flow)


def test_hundreds_of_steps_are_drawn() -> None:
    flow = FlowGraph.from_edges(["step"] * 300, [(i, i + d) for i in range(280) for d in (3, 7, 20)])
    assert flow_drawing.to_svg(flow).count('class="box"') == 300


def test_save(tmp_path: Path) -> None:
    flow = FlowGraph.chain(["a", "b"])
    flow_drawing.save(flow, tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == flow_drawing.to_svg(flow)
    with pytest.raises(InputError, match=r"a.pdf: the suffix '.pdf' names no picture format; use .svg or .png"):
        flow_drawing.save(flow, tmp_path / "a.pdf")
    with pytest.raises(Graph2VidError, match="cannot write"):
        flow_drawing.save(flow, tmp_path / "nowhere" / "a.svg")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.svg"]


def test_png(tmp_path: Path) -> None:
    pytest.importorskip("resvg_py")
    flow_drawing.save(FlowGraph.chain(["a", "b"], title="T"), tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert int.from_bytes(data[16:20], "big") > 200


def test_png_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(MissingDependencyError, match=r"\.\[plot\]"):
        flow_drawing.save(FlowGraph.bag(["a"]), tmp_path / "a.png")
    assert not list(tmp_path.iterdir())


def printed(flow: FlowGraph) -> str:
    from rich.console import Console

    console = Console(file=io.StringIO(), width=100)
    console.print(terminal.table(flow))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_terminal() -> None:
    steps = [("tomato", "cut [bold]it[/bold]\x1b[31m"), ("cucumber", "slice"), ("mix", "toss")]
    flow = FlowGraph.from_edges(steps, [(0, 2), (1, 2)])
    lines = printed(flow).splitlines()
    assert "cut [bold]it[/bold]\ufffd[31m" in lines[1]
    assert lines[1].split()[:3] == ["1", "●", "tomato"]
    assert lines[2].split()[:3] == ["│●", "cucumber", "slice"]
    assert lines[3].split()[-2:] == ["tomato,", "cucumber"]
    assert terminal.summary(flow) == "3 steps, 2 edges, 2 threads; begins with tomato, cucumber; ends with mix"
    assert "and 24 more" in terminal.summary(FlowGraph.bag(["x"] * 30))
    assert printed(FlowGraph.bag(["x"] * 30)).count("●") == 30
