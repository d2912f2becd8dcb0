"""Where to draw the steps: a layered layout from top to bottom.

Each connected part of the graph is laid out alone: longest-path layers, a dummy node wherever an edge passes
a layer, barycentre sweeps against crossings, then horizontal places that keep edges straight. The parts are
packed in rows.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, pairwise
from typing import NamedTuple, TypeAlias

from graph2vid.flow.flow_graph import FlowGraph
from graph2vid.flow.messages import refuse_large
from graph2vid.flow.order import Edge

BOX_GAP = 32.0
"""Free space between two boxes of a layer."""
LANE_GAP = 18.0
"""Free space beside an edge that passes a layer."""
LAYER_GAP = 46.0
"""Free space between two layers."""
PART_GAP = 56.0
"""Free space between two unconnected parts."""
_SWEEPS = 24

Lanes: TypeAlias = dict[Edge, tuple[tuple[float, float, float], ...]]
Links: TypeAlias = list[list[int]]


class Box(NamedTuple):
    """The rectangle of a step: left, top, width, height."""

    x: float
    y: float
    width: float
    height: float


class Layout(NamedTuple):
    """Where everything is, from (0, 0) to (width, height), y downwards.

    Attributes
    ----------
    boxes : tuple of Box
        One per step.
    lanes : dict of (int, int) to tuple of (float, float, float)
        For each edge, the layers it passes on its way: (x, top, bottom) each, downwards.
    """

    width: float
    height: float
    boxes: tuple[Box, ...]
    lanes: Lanes


def stages(flow: FlowGraph) -> tuple[int, ...]:
    """Return for each step the length of the longest path to it: 0 for what waits for nothing."""
    return tuple(_longest_paths(flow.topological_order, flow.predecessors))


def _longest_paths(order: Sequence[int], before: Sequence[Sequence[int]]) -> list[int]:
    length = [0] * len(order)
    for node in order:
        length[node] = max((length[earlier] + 1 for earlier in before[node]), default=0)
    return length


def lay_out(flow: FlowGraph, sizes: Sequence[tuple[float, float]]) -> Layout:
    """Lay out a flow graph.

    Parameters
    ----------
    flow : FlowGraph
        All its edges are routed: hand in the transitive reduction for a clear picture.
    sizes : sequence of (float, float)
        Width and height of the box of each step.
    """
    refuse_large(len(flow), "drawing it")
    parts = [_Part(flow, members, sizes) for members in _connected(flow)]
    # Tall parts first, so that each row holds parts of about one height; single steps come last, as numbered.
    parts.sort(key=lambda part: -part.height if part.has_edges else 0.0)
    area = sum((part.width + PART_GAP) * (part.height + PART_GAP) for part in parts)
    row_limit = max(max(part.width for part in parts), (1.6 * area) ** 0.5)
    boxes: dict[int, Box] = {}
    lanes: Lanes = {}
    x = y = width = row_height = 0.0
    row_has_edges = False
    for part in parts:
        if x > 0 and (x + part.width > row_limit or part.has_edges != row_has_edges):
            x, y, row_height = 0.0, y + row_height + (PART_GAP if row_has_edges else BOX_GAP), 0.0
        row_has_edges = part.has_edges
        part.emit(x, y, boxes, lanes)
        x += part.width
        width, row_height = max(width, x), max(row_height, part.height)
        x += PART_GAP if part.has_edges else BOX_GAP
    return Layout(width, y + row_height, tuple(boxes[step] for step in range(len(flow))), lanes)


def _connected(flow: FlowGraph) -> list[list[int]]:
    """Return the steps of each weakly connected part, ascending."""
    parts: list[list[int]] = []
    left = set(range(len(flow)))
    while left:
        members, todo = set[int](), {min(left)}
        while todo:
            members |= todo
            todo = {other for step in todo for other in flow.successors[step] + flow.predecessors[step]} - members
        parts.append(sorted(members))
        left -= members
    return parts


def _layers(order: list[int], before: Links, after: Links) -> list[int]:
    """Return a layer for each node: as early or as late as possible, whichever makes shorter edges."""
    early = _early_layers(order, before, after)
    late = [-layer for layer in _early_layers(order[::-1], after, before)]

    def length(layer: list[int]) -> int:
        return sum(layer[later] - layer[node] for node in order for later in after[node])

    best = min(early, late, key=length)
    return [layer - min(best) for layer in best]


def _early_layers(order: list[int], before: Links, after: Links) -> list[int]:
    layers = _longest_paths(order, before)
    for node in reversed(order):
        # Nearer to its successors such a node shortens more edges than it lengthens.
        if len(after[node]) > len(before[node]):
            layers[node] = min(layers[later] for later in after[node]) - 1
    return layers


class _Part:
    """One connected part. Nodes are its steps (0 … n-1, as in ``members``) and, after them, the dummies."""

    def __init__(self, flow: FlowGraph, members: list[int], sizes: Sequence[tuple[float, float]]) -> None:
        self.members = members
        self.sizes = [sizes[step] for step in members]
        self.has_edges = len(members) > 1
        self.path_of: dict[Edge, range] = {}  # edge → its dummies, downwards
        self._make_nodes(flow)
        starts = (self._rows_by_search(self.down, self.up), self._rows_by_search(self.up, self.down))
        self.rows = min((self._untangled(rows) for rows in starts), key=self._crossings)
        self._place()

    # -- layers and dummies --------------------------------------------------------------------------------

    def _make_nodes(self, flow: FlowGraph) -> None:
        local = {step: node for node, step in enumerate(self.members)}
        after = [[local[later] for later in flow.successors[step]] for step in self.members]
        before = [[local[earlier] for earlier in flow.predecessors[step]] for step in self.members]
        order = [local[step] for step in flow.topological_order if step in local]
        self.layer = _layers(order, before, after)

        self.down: Links = [[] for _ in self.members]
        self.up: Links = [[] for _ in self.members]
        for node, following in enumerate(after):
            for later in following:
                passed = range(self.layer[node] + 1, self.layer[later])
                path = range(len(self.layer), len(self.layer) + len(passed))
                self.layer.extend(passed)
                self.sizes.extend((0.0, 0.0) for _ in path)
                self.down.extend([] for _ in path)
                self.up.extend([] for _ in path)
                for upper, lower in pairwise((node, *path, later)):
                    self.down[upper].append(lower)
                    self.up[lower].append(upper)
                self.path_of[self.members[node], self.members[later]] = path

    # -- the order within each layer -----------------------------------------------------------------------

    def _rows_by_search(self, links: Links, opposite: Links) -> Links:
        """Return rows in the order of a depth-first search, in which a tree has no crossings."""
        rows: Links = [[] for _ in range(max(self.layer) + 1)]
        found: dict[int, None] = {}
        todo = [node for node in range(len(self.layer)) if not opposite[node]][::-1]
        while todo:
            node = todo.pop()
            if node not in found:
                found[node] = None
                rows[self.layer[node]].append(node)
                todo.extend(reversed(links[node]))
        return rows

    def _untangled(self, rows: Links) -> Links:
        """Sort each row by the mean place of its neighbours, down and up in turn; keep the best seen."""
        best, fewest, since = rows, self._crossings(rows), 0
        for sweep in range(_SWEEPS):
            if fewest == 0 or since >= 6:
                break
            downwards = sweep % 2 == 0
            links = self.up if downwards else self.down
            rows = [list(row) for row in rows]
            for reference, row in pairwise(rows if downwards else rows[::-1]):
                place = {node: index for index, node in enumerate(reference)}
                key: dict[int, float] = {}
                for index, node in enumerate(row):
                    near = [place[other] for other in links[node]]
                    key[node] = sum(near) / len(near) if near else index
                row.sort(key=key.__getitem__)
            crossings = self._crossings(rows)
            since += 1
            if crossings < fewest:
                best, fewest, since = rows, crossings, 0
        return best

    def _crossings(self, rows: Links) -> int:
        total = 0
        for above, below in pairwise(rows):
            place = {node: index for index, node in enumerate(below)}
            ends: list[int] = []
            for node in above:
                mine = sorted(place[other] for other in self.down[node])
                total += sum(len(ends) - bisect_right(ends, end) for end in mine)
                for end in mine:
                    insort(ends, end)
        return total

    # -- coordinates ---------------------------------------------------------------------------------------

    def _is_dummy(self, node: int) -> bool:
        return node >= len(self.members)

    def _place(self) -> None:
        self.centre = [0.0] * len(self.layer)
        # Distance of each node of a row from the first one when they stand as close as they may.
        offsets = []
        for row in self.rows:
            offset = list(accumulate(pairwise(row), self._next_offset, initial=0.0))
            offsets.append(offset)
            for node, place in zip(row, offset, strict=True):
                self.centre[node] = place - offset[-1] / 2
        sweeps = max(6, min(60, 30_000 // len(self.layer)))
        for sweep in range(sweeps):
            # One-sided sweeps carry places through the graph quickly; two-sided ones then settle it.
            links = [self.up, self.down] if sweep >= sweeps // 2 else [self.down if sweep % 2 else self.up]
            for row, offset in list(zip(self.rows, offsets, strict=True))[:: -1 if sweep % 2 else 1]:
                self._settle(row, offset, links)
        leftmost = min(centre - width / 2 for centre, (width, _) in zip(self.centre, self.sizes, strict=True))
        self.centre = [centre - leftmost for centre in self.centre]
        self.width = max(centre + width / 2 for centre, (width, _) in zip(self.centre, self.sizes, strict=True))
        self.row_top: list[float] = []
        self.row_height = [max(self.sizes[n][1] for n in row) for row in self.rows]
        self.height = 0.0
        for row, height in zip(self.rows, self.row_height, strict=True):
            self.row_top.append(self.height)
            reach = max((abs(self.centre[n] - self.centre[m]) for n in row for m in self.down[n]), default=0.0)
            # Edges that lead far aside get more height, so that they do not lie flat.
            gap = min(LAYER_GAP + 0.08 * reach, 2.2 * LAYER_GAP) if row is not self.rows[-1] else 0.0
            self.height += height + gap

    def _next_offset(self, offset: float, pair: tuple[int, int]) -> float:
        gap = LANE_GAP if any(map(self._is_dummy, pair)) else BOX_GAP
        return offset + sum(self.sizes[node][0] for node in pair) / 2 + gap

    def _settle(self, row: list[int], offset: list[float], links: Iterable[Links]) -> None:
        """Move a row to the mean of its neighbours, as near as its order and distances allow."""
        wishes, weights = [], []
        for node in row:
            total = weight = 0.0
            for other in chain.from_iterable(link[node] for link in links):
                pull = self._pull(node, other)
                total += pull * self.centre[other]
                weight += pull
            wishes.append(total / weight if weight else self.centre[node])
            weights.append(weight or 0.1)
        free = _isotonic([w - o for w, o in zip(wishes, offset, strict=True)], weights)
        for node, place, distance in zip(row, free, offset, strict=True):
            self.centre[node] = place + distance

    def _pull(self, node: int, other: int) -> float:
        """Return how much a bend between two linked nodes hurts: most where nothing joins or parts there."""
        above, below = (node, other) if self.layer[node] < self.layer[other] else (other, node)
        if len(self.down[above]) == 1 == len(self.up[below]):
            return 30.0
        return 2.0 if self._is_dummy(node) or self._is_dummy(other) else 1.0

    def emit(self, x: float, y: float, boxes: dict[int, Box], lanes: Lanes) -> None:
        """Enter boxes and lanes with the upper left corner of the part at (x, y)."""
        for node, step in enumerate(self.members):
            width, height = self.sizes[node]
            layer = self.layer[node]
            top = self.row_top[layer] + (self.row_height[layer] - height) / 2
            boxes[step] = Box(x + self.centre[node] - width / 2, y + top, width, height)
        for edge, path in self.path_of.items():
            tops = [y + self.row_top[self.layer[node]] for node in path]
            bottoms = [top + self.row_height[self.layer[node]] for node, top in zip(path, tops, strict=True)]
            lanes[edge] = tuple(zip((x + self.centre[node] for node in path), tops, bottoms, strict=True))


def _isotonic(values: list[float], weights: list[float]) -> list[float]:
    """Return the non-decreasing sequence nearest to ``values`` in weighted least squares.

    Neighbours in the wrong order are pooled into their mean (pool adjacent violators).
    """
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many values
    for value, weight in zip(values, weights, strict=True):
        mean, total, count = value, weight, 1
        while pools and pools[-1][0] > mean:
            other_mean, other_total, other_count = pools.pop()
            mean = (mean * total + other_mean * other_total) / (total + other_total)
            total += other_total
            count += other_count
        pools.append((mean, total, count))
    return [mean for mean, _, count in pools for _ in range(count)]
