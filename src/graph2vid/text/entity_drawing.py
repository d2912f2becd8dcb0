"""The entities of a procedure as a picture: actions are hexagons, everything else is oval."""

from __future__ import annotations

import os
from functools import partial

from graph2vid.errors import InputError
from graph2vid.flow import Box, FlowGraph, Layout, counted, lay_out, svg
from graph2vid.text.parsed_text import Entity, EntityGraph

ACTIONS = frozenset({"Ac", "Ac2", "Af", "At"})
"""The tags of actions: by the cook, its second part, by the food, by the tool."""

_HUE_OF = dict.fromkeys(ACTIONS, svg.HUES[0]) | {"F": svg.HUES[1], "T": svg.HUES[2], "D": svg.HUES[3], "Q": svg.HUES[4]}
_HUE_OF |= dict.fromkeys(("Sf", "St"), svg.HUES[5])
_OTHER_HUE = svg.HUES[8]
_TEXT_SIZE, _NAME_SIZE, _LABEL_SIZE = 14.0, 11.0, 11.0
_LINE, _NAME_LINE = 18.0, 15.0
_TEXT_WIDTH = 150.0  # widest column of text in a shape
_MOST_LINES = 3
_POINT = 15.0  # how far the sides of a hexagon reach out
_STYLE = """
.g2v-flow .label { fill: #475569; stroke: #ffffff; stroke-width: 4; stroke-linejoin: round; paint-order: stroke; }
.g2v-flow .shape { fill-opacity: 0.14; stroke-width: 1.4; }
"""
_DARK_STYLE = "\n.g2v-flow .label { fill: #cbd5e1; stroke: #0f172a; }\n.g2v-flow .shape { fill-opacity: 0.24; }\n"


def name_of(entity: Entity) -> str:
    """Return "2.5": the step and the first token of an entity, both counted from 1."""
    return f"{entity.instruction + 1}.{entity.token + 1}"


def save(graph: EntityGraph, path: str | os.PathLike[str], title: str = "") -> None:
    """Draw the entities to a .svg or .png file, whole or not at all."""
    svg.save_picture(path, partial(_picture, graph, title))


def to_svg(graph: EntityGraph, title: str = "") -> str:
    """Draw the entities as one self-contained SVG document that follows the reader's light or dark scheme.

    Every entity bears its step and token (both from 1), its words and its tag; edges bear their labels.
    """
    return _picture(graph, title, True).svg


def _picture(graph: EntityGraph, title: str, dark: bool) -> svg.Picture:
    if not graph.entities:
        raise InputError("no entities were found in this procedure: there is nothing to draw")
    lines = [svg.wrapped(entity.text, _TEXT_SIZE, _TEXT_WIDTH, _MOST_LINES) for entity in graph.entities]
    sizes = [_size(entity, texts) for entity, texts in zip(graph.entities, lines, strict=True)]
    drawn_as = _downward_pairs(graph)
    plan = lay_out(FlowGraph.from_edges([""] * len(sizes), {pair for pair, _, _ in drawn_as}), sizes)
    arrows: list[tuple[bool, str]] = []
    labels: dict[tuple[int, int], list[str]] = {}
    for pair, upwards, label in drawn_as:
        both_actions = all(graph.entities[end].tag in ACTIONS for end in pair)
        arrows.append((both_actions, svg.arrow(plan, pair, svg.HUES[0] if both_actions else "", upwards=upwards)))
        labels.setdefault(pair, []).append(label)
    # Coloured edges lie above plain ones, labels above all edges.
    body = [drawn for _, drawn in sorted(arrows, key=lambda entry: entry[0])]
    body += [_label(plan, pair, ", ".join(filter(None, dict.fromkeys(texts)))) for pair, texts in labels.items()]
    body += [_shape(*shape) for shape in zip(graph.entities, plan.boxes, lines, strict=True)]
    steps = len({entity.instruction for entity in graph.entities})
    note = f"{counted(steps, 'step')} · {len(graph.entities)} entities · {counted(len(drawn_as), 'edge')}"
    return svg.document(plan, body, name="Entities", title=title, note=note, dark=dark, styles=(_STYLE, _DARK_STYLE))


def _downward_pairs(graph: EntityGraph) -> list[tuple[tuple[int, int], bool, str]]:
    """Return for each edge the pair it is laid out as, whether its head is at the upper end, and its label.

    An edge that closes a cycle, found by a depth-first search in the order of the text, is laid out reversed.
    """
    after: list[list[int]] = [[] for _ in graph.entities]
    for edge in graph.edges:
        after[edge.source].append(edge.target)
    state = [0] * len(after)  # 0: not seen, 1: on the path, 2: done
    closing = set()
    todo = [
        (node, node) for node in reversed(range(len(after)))
    ]  # where from, and the node, or its complement to leave
    while todo:
        before, node = todo.pop()
        if node < 0:
            state[before] = 2
        elif state[node] == 1:
            closing.add((before, node))
        elif state[node] == 0:
            state[node] = 1
            todo += [(node, ~node), *((node, later) for later in reversed(after[node]))]
    edges = [(edge.source, edge.target, edge.label) for edge in graph.edges if edge.source != edge.target]
    return [((b, a), True, label) if (a, b) in closing else ((a, b), False, label) for a, b, label in edges]


def _size(entity: Entity, lines: list[str]) -> tuple[float, float]:
    """Return width and height of the shape around the words."""
    widest = max(
        24.0, svg.text_width(_caption(entity), _NAME_SIZE), *(svg.text_width(line, _TEXT_SIZE) for line in lines)
    )
    height = _NAME_LINE + _LINE * len(lines) + 14
    if entity.tag in ACTIONS:
        return widest + 2 * _POINT + 8, height
    return 1.2 * widest + 26, height + 6


def _caption(entity: Entity) -> str:
    return f"{name_of(entity)} {entity.tag}"


def _shape(entity: Entity, box: Box, lines: list[str]) -> str:
    hue = _HUE_OF.get(entity.tag, _OTHER_HUE)
    paint = f'class="shape" fill="{hue}" stroke="{hue}"'
    x, y = box.x + box.width / 2, box.y + box.height / 2
    if entity.tag in ACTIONS:
        left, right = box.x + _POINT, box.x + box.width - _POINT
        top, bottom = box.y, box.y + box.height
        corners = ((box.x, y), (left, top), (right, top), (box.x + box.width, y), (right, bottom), (left, bottom))
        points = " ".join(f"{at_x:.1f},{at_y:.1f}" for at_x, at_y in corners)
        outline = f'<polygon {paint} points="{points}"/>'
    else:
        outline = f'<ellipse {paint} cx="{x:.1f}" cy="{y:.1f}" rx="{box.width / 2:.1f}" ry="{box.height / 2:.1f}"/>'
    baseline = y - (_NAME_LINE + _LINE * len(lines)) / 2 + _NAME_SIZE
    drawn = f"<g><title>{svg.escaped(f'{name_of(entity)} {entity.text} {entity.tag}')}</title>{outline}"
    drawn += svg.words("id", x, baseline, _NAME_SIZE, _caption(entity), 'text-anchor="middle" font-weight="600"')
    for row, line in enumerate(lines, start=1):
        drawn += svg.words("text", x, baseline + _LINE * row - 1, _TEXT_SIZE, line, 'text-anchor="middle"')
    return f"{drawn}</g>"


def _label(plan: Layout, pair: tuple[int, int], label: str) -> str:
    """Return the drawn label of an edge: where it passes its first layer, or a little above its middle."""
    start, end = plan.boxes[pair[0]], plan.boxes[pair[1]]
    if lanes := plan.lanes.get(pair):
        x, top, bottom = lanes[0]
        y = (top + bottom) / 2
    else:
        # A point of the curve that `arrow` draws, nearer to the start: edges that meet are apart there.
        part = 0.42
        eased = part * part * (3 - 2 * part)
        x = start.x + start.width / 2 + eased * (end.x + end.width / 2 - start.x - start.width / 2)
        y = start.y + start.height + part * (end.y - start.y - start.height)
    return svg.words("label", x, y + _LABEL_SIZE / 3, _LABEL_SIZE, label, 'text-anchor="middle"') if label else ""
