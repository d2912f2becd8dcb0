"""Figures and notebook pictures of flow graphs, tSort graphs, alignments and groundings."""

from __future__ import annotations

import builtins
import io
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from found import AWKWARD, make_grounding
from graph2vid import Alignment, FlowGraph, Grounding, TSortGraph, align
from graph2vid.errors import InputError, MissingDependencyError, TooLargeError
from graph2vid.flow.colours import colour_of
from graph2vid.sample import load
from graph2vid.sample.outcome import ground_sample

SALAD = FlowGraph.from_edges(
    [("1", "cut $tomato$"), ("2", "place"), ("3", "cut <b>"), ("4", "peel"), ("5", "mix")],
    [(0, 1), (1, 4), (2, 3), (3, 4)],
    "Salad & $",
)


@pytest.fixture(autouse=True)
def pyplot() -> Iterator[Any]:
    """Figures are drawn without a screen, and closed after each test."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


@pytest.fixture(scope="module")
def outcomes() -> tuple[Grounding, Grounding, dict[int, tuple[float, float]]]:
    sample = load()
    graph, linear = ground_sample(sample)
    return graph.grounding, linear.grounding, sample.truth


def texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def drawn(ax: Any) -> None:
    """Render the figure, and see that nothing lies outside of it."""
    picture = io.BytesIO()
    ax.figure.savefig(picture, format="png")
    assert picture.getvalue().startswith(b"\x89PNG")
    inside = ax.figure.bbox
    around = ax.figure.get_tightbbox().transformed(ax.figure.dpi_scale_trans)
    assert around.x1 <= inside.x1 + 2 and around.x0 >= inside.x0 - 2 and around.y0 >= inside.y0 - 2


def test_flow_graphs_are_drawn_with_the_order_numbered(outcomes: tuple[Grounding, Any, Any]) -> None:
    ax = outcomes[0].plot_flow()
    drawn(ax)
    ordinals = ["1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th"]
    assert [text for text in texts(ax) if text in ordinals] == ordinals
    assert not [text for text in texts(ax) if text.isdecimal()]  # which would look like numbers of steps
    assert ax.get_title() == "Pancakes with berries"
    drawn(SALAD.plot())
    dashed = FlowGraph.from_edges(["a", "b"], [(0, 1, 0.5)], optional=[1]).plot()
    assert sum(patch.get_linestyle() == "--" or patch.get_linestyle()[0] == 0 for patch in dashed.patches) == 2


def test_tsort_graphs_are_drawn_in_the_colours_of_their_steps() -> None:
    from matplotlib.colors import to_hex

    graph = TSortGraph.compile(SALAD)
    ax = graph.plot()
    drawn(ax)
    assert sorted(texts(ax)) == sorted([*(str(step + 1) for step in graph.state_step), "root", "sink"])
    boxes = [patch for patch in ax.patches if type(patch).__name__ == "FancyBboxPatch"]
    assert [to_hex(box.get_facecolor()) for box in boxes[1:-1]] == [
        colour_of(step).lower() for step in graph.state_step.tolist()
    ]
    arrows = [patch for patch in ax.patches if type(patch).__name__ == "FancyArrowPatch"]
    assert len(arrows) == graph.to_networkx().number_of_edges()
    big = TSortGraph.compile(FlowGraph.bag([str(step) for step in range(8)]))
    with pytest.raises(TooLargeError, match="1,024 states; a drawing of more than 250 shows nothing"):
        big.plot()
    assert big._repr_svg_() is None


def test_alignments_are_drawn() -> None:
    rng = np.random.default_rng(1)
    match = rng.normal(size=(5, 30))
    match[0, :3] = np.inf
    found = align(SALAD, match, 0.5)
    other = align(FlowGraph.chain(SALAD.steps), match, 0.5)
    drawn(found.plot())
    for ax in (found.plot_costs(match, 0.5), found.plot_costs(match)):
        drawn(ax)
        assert ax.figure.axes[1].get_ylabel() == "cost"
    ax = found.plot_bars({"linear": other, "truth": rng.integers(-1, 5, 30)}, name="graph")
    drawn(ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["graph", "linear", "truth"]
    with pytest.raises(InputError, match="5 steps × 30 clips"):
        found.plot_costs(match[:, 1:])
    with pytest.raises(InputError, match="row 'x' must be an alignment"):
        found.plot_bars({"x": [0.5]})
    with pytest.raises(InputError, match="row 'x': there is no step 7"):
        found.plot_bars({"x": [7]})


def test_groundings_are_drawn(outcomes: tuple[Grounding, Grounding, dict[int, tuple[float, float]]]) -> None:
    graph, linear, truth = outcomes
    ax = graph.plot()
    drawn(ax)
    assert "not shown" in texts(ax)
    truth_spans = [(graph.flow.ids[step], *span) for step, span in truth.items()]
    ax = graph.plot_bars({"linear": linear, "truth": truth_spans}, name="graph")
    drawn(ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["graph", "linear", "truth"]
    assert "0:30" in [label.get_text() for label in ax.get_xticklabels()]
    drawn(graph.plot_evidence())
    with pytest.raises(InputError, match="holds no evidence"):
        make_grounding([0]).plot_evidence()
    with pytest.raises(InputError, match="row 'truth' must be a grounding"):
        graph.plot_bars({"truth": [("no such step", 1.0, 2.0)]})


def test_plots_go_into_given_axes(pyplot: Any, outcomes: tuple[Grounding, Any, Any]) -> None:
    figure, places = pyplot.subplots(2, 3, figsize=(15, 9))
    graph = outcomes[0]
    ways = (graph.plot, graph.plot_bars, graph.plot_evidence, graph.plot_flow, graph.plot_tsort, SALAD.plot)
    for place, way in zip(places.flat, ways, strict=True):
        assert way(ax=place) is place
    figure.savefig(io.BytesIO(), format="svg")


@pytest.mark.filterwarnings("ignore:Glyph .* missing")
def test_awkward_texts_are_drawn_as_they_are() -> None:
    grounding = make_grounding([*range(len(AWKWARD)), -1], AWKWARD, title="$a_b$ <b>")
    drawn(grounding.plot())
    assert grounding.plot_flow().get_title() == r"\$a_b\$ <b>"


@pytest.mark.parametrize(
    "what",
    [
        SALAD,
        TSortGraph.compile(SALAD),
        Alignment(SALAD, 1.0, np.array([0, 1, -1, 4])),
        make_grounding([0, 1, -1, 2, 1], AWKWARD, offset=3600.0),
        make_grounding(list(range(100)), ["x"] * 100, clip_seconds=100.0),
        make_grounding([0], ["x"], clip_seconds=0.01, offset=-0.004),
    ],
    ids=lambda what: type(what).__name__,
)
def test_notebooks_show_pictures(what: Any) -> None:
    svg = what._repr_svg_()
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg") and "prefers-color-scheme: dark" in svg


def test_notebooks_show_text_where_there_is_nothing_to_draw() -> None:
    assert Alignment(SALAD, 1.0, None)._repr_svg_() is None


def test_matplotlib_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **keywords: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **keywords)

    monkeypatch.setattr(builtins, "__import__", refuse)
    for way in (SALAD.plot, TSortGraph.compile(SALAD).plot, make_grounding([0]).plot, make_grounding([0]).plot_bars):
        with pytest.raises(MissingDependencyError, match=r"\.\[plot\]"):
            way()
