"""Pictures of entities."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from entity_graphs import entity_graphs
from graph2vid.errors import InputError
from graph2vid.text import Entity, EntityEdge, EntityGraph
from graph2vid.text import entity_drawing as pictures

SVG = "{http://www.w3.org/2000/svg}"

MIX, FLOUR, DOUGH, KNEAD = (
    Entity(0, 0, 3, 0, "Mix", "Ac"),
    Entity(0, 4, 9, 1, "<flour>", "F"),
    Entity(1, 6, 11, 4, "dough", "F"),
    Entity(1, 0, 5, 0, "Knead", "Ac"),
)
GRAPH = EntityGraph(
    (MIX, FLOUR, DOUGH, KNEAD),
    (EntityEdge(1, 0, "t"), EntityEdge(0, 2, "f-eq"), EntityEdge(2, 3, "t"), EntityEdge(0, 3, "t")),
)


def texts(svg: str, kind: str) -> list[str | None]:
    return [found.text for found in ElementTree.fromstring(svg).iter(f"{SVG}text") if found.get("class") == kind]


def test_actions_are_hexagons_and_the_rest_is_oval() -> None:
    svg = pictures.to_svg(GRAPH, "Bread & butter")
    root = ElementTree.fromstring(svg)
    assert len(list(root.iter(f"{SVG}polygon"))) == 2
    assert len(list(root.iter(f"{SVG}ellipse"))) == 2
    assert [found.text for found in root.iter(f"{SVG}title")][1:] == [
        "1.1 Mix Ac",
        "1.2 <flour> F",
        "2.5 dough F",
        "2.1 Knead Ac",
    ]
    assert texts(svg, "id") == ["1.1 Ac", "1.2 F", "2.5 F", "2.1 Ac"]
    assert texts(svg, "text") == ["Mix", "<flour>", "dough", "Knead"]
    assert sorted(map(str, texts(svg, "label"))) == ["f-eq", "t", "t", "t"]
    assert texts(svg, "note") == ["2 steps · 4 entities · 4 edges"]
    assert "prefers-color-scheme: dark" in svg
    assert "href" not in svg and "url(" not in svg


def test_cycles_and_parallel_edges_are_drawn() -> None:
    edges = (EntityEdge(0, 3, "t"), EntityEdge(3, 0, "f-eq"), EntityEdge(0, 3, "d"), EntityEdge(2, 2, "self"))
    svg = pictures.to_svg(EntityGraph(GRAPH.entities, edges))
    assert svg.count('class="edge"') == 3
    assert texts(svg, "label") == ["t, f-eq, d"]


@settings(max_examples=40)
@given(entity_graphs())
def test_any_graph_is_drawn(graph: EntityGraph) -> None:
    svg = pictures.to_svg(graph, "Any")
    root = ElementTree.fromstring(svg)
    shapes = [*root.iter(f"{SVG}polygon"), *root.iter(f"{SVG}ellipse")]
    assert len(shapes) == len(graph.entities)
    assert svg.count('class="edge"') == sum(edge.source != edge.target for edge in graph.edges)


def test_save(tmp_path: Path) -> None:
    pictures.save(GRAPH, tmp_path / "a.svg", "Bread")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == pictures.to_svg(GRAPH, "Bread")
    with pytest.raises(InputError, match=r"names no picture format; use \.svg or \.png"):
        pictures.save(GRAPH, tmp_path / "a.pdf")
    with pytest.raises(InputError, match="no entities were found"):
        pictures.save(EntityGraph((), ()), tmp_path / "b.svg")
    pytest.importorskip("resvg_py")
    pictures.save(GRAPH, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
