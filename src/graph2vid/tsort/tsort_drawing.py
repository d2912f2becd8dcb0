"""tSort graphs drawn: each state in the colour of its last step, from nothing done (above) to all done (below)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from graph2vid.errors import TooLargeError
from graph2vid.flow import FlowGraph, Layout, bits, colour_of, ink_on, lay_out
from graph2vid.flow.svg import arrow, document, escaped, text_width, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from graph2vid.tsort.tsort_graph import TSortGraph

MOST_STATES = 250
"""A drawing of more states shows nothing."""

_SIZE = 12.0
_HEIGHT = 26.0


@dataclass(frozen=True)
class _Plan:
    """The states with a root before and a sink after them, as a graph that is laid out.

    ``steps`` holds the last step of each node, None for root and sink.
    """

    steps: tuple[int | None, ...]
    names: tuple[str, ...]
    titles: tuple[str, ...]
    edges: tuple[tuple[int, int], ...]
    layout: Layout


def _plan(graph: TSortGraph) -> _Plan:
    if graph.n_states > MOST_STATES:
        raise TooLargeError(
            f"this tSort graph has {graph.n_states:,} states; a drawing of more than {MOST_STATES} shows nothing: draw "
            "the flow graph instead, or a part of the procedure"
        )
    flow = graph.flow
    last = graph.state_step.tolist()
    sink = len(last) + 1
    # The nodes at which each ideal is left: the root, and then its states.
    members = [[0], *(range(start + 1, stop + 1) for start, stop in pairwise(graph.state_start[1:].tolist()))]
    edges = [(0, state) for state in range(1, sink) if graph.state_from[state - 1] == 0]
    for state, origin in enumerate(graph.state_from.tolist(), start=1):
        edges += [(before, state) for before in members[origin] if before]
    edges += [(state, sink) for state in members[-1]]
    short = [wrapped(step_id, _SIZE, 78.0, 1)[0] for step_id in flow.ids]
    names = ("root", *(short[step] for step in last), "sink")
    done = [", ".join(flow.ids[step] for step in bits(graph.mask(ideal))) for ideal in graph.ideal_of_state.tolist()]
    lasts = (f"{flow.ids[step]}, last of {steps}" for step, steps in zip(last, done, strict=True))
    titles = ("nothing done", *lasts, "all done")
    width = max(text_width(name, _SIZE) for name in names) + 18.0
    states = FlowGraph.from_edges([str(node) for node in range(sink + 1)], edges)
    layout = lay_out(states, [(width, _HEIGHT)] * len(states))
    return _Plan((None, *last, None), names, titles, tuple(edges), layout)


def to_svg(graph: TSortGraph) -> str:
    """Draw a tSort graph as one self-contained SVG document that follows the reader's light or dark scheme."""
    plan = _plan(graph)
    body = [arrow(plan.layout, edge) for edge in plan.edges]
    for box, step, name, title in zip(plan.layout.boxes, plan.steps, plan.names, plan.titles, strict=True):
        fill = "" if step is None else f' style="fill:{colour_of(step)};stroke:none"'
        ink = "" if step is None else f' style="fill:{ink_on(colour_of(step))}"'
        body.append(
            f'<g><title>{escaped(title)}</title><rect class="box"{fill} x="{box.x:.1f}" y="{box.y:.1f}" '
            f'width="{box.width:.1f}" height="{box.height:.1f}" rx="{_HEIGHT / 2:g}"/>'
            f'<text class="text"{ink} x="{box.x + box.width / 2:.1f}" y="{box.y + 17.5:.1f}" font-size="{_SIZE:g}" '
            f'text-anchor="middle">{escaped(name)}</text></g>'
        )
    note = f"{graph.n_states:,} states · {graph.n_ideals:,} ideals · {graph.n_sorts:,} orders"
    title = graph.flow.title or "All legal orders"
    return document(plan.layout, body, name="tSort graph", title=title, note=note, dark=True).svg


def plot(graph: TSortGraph, ax: Axes | None = None) -> Axes:
    """Draw a tSort graph in a figure: see :meth:`TSortGraph.plot`."""
    from graph2vid.flow.flow_plot import INK, draw_edges, layout_axes, rounded_box, shown, words

    plan = _plan(graph)
    axes, points = layout_axes(plan.layout, ax, margin=10.0)
    draw_edges(axes, plan.layout, plan.edges, points, colour="#b4bcc8")
    for box, step, name in zip(plan.layout.boxes, plan.steps, plan.names, strict=True):
        face = "#f1f5f9" if step is None else colour_of(step)
        rounded_box(axes, box, face=face, edge="#94a3b8" if step is None else "none", corner=_HEIGHT / 2)
        style = {"color": INK if step is None else ink_on(face), "ha": "center", "va": "center_baseline"}
        words(axes, box.x + box.width / 2, box.y + box.height / 2, name, _SIZE, **style)
    if graph.flow.title:
        axes.set_title(shown(graph.flow.title), color=INK, fontweight="bold", fontsize=min(17 * points, 13))
    return axes
