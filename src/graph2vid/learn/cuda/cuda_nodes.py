"""How steps are left out, one after the other, as the kernels with states in registers read it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid.flow import bits
from graph2vid.learn.cuda.cuda_graphs import Ints, Layout

Int64s = NDArray[np.int64]
LANES = 32  # of a warp
INNER = 1  # beside the place of what is added: the lane itself has told it at this clip
OPEN = 2  # beside the same: more is to be added first
PULL = 1  # beside the place of a first part: the ideal itself
CARRIED = 2  # beside the same: what is added is the first part that the row before left
ALSO = 2  # beside the place of what else is added: there is such a thing
REACH = 1 << 16  # bytes that places are among


class Gathered(NamedTuple):
    """A row of what goes back to an ideal and its nodes.

    Attributes
    ----------
    adds : sequence of (str, int)
        What is added, one thing or two: the beginning of a state ("state"), the first part of a node of the ideal
        ("first"), the second part of a node of another ("second"), or the first part that the row before leaves
        ("carried"); and the number of the state or node.
    node : int, optional
        The node that all this goes back to, which splits it in two; -1: the ideal. None: more is to be added first.
    then : int, optional
        The node that its first part goes back to, where nothing else does.
    """

    adds: Sequence[tuple[str, int]]
    node: int | None
    then: int | None = None

    @property
    def last(self) -> int | None:
        """The node whose first part is left."""
        return self.node if self.then is None else self.then


@dataclass(frozen=True, eq=False)
class Nodes:
    """The minima over all ways to reach an ideal by leaving out some of its steps.

    A node is an ideal and a set of steps that may be left out, such that with a step every later one of the ideal is in
    it: the minimum over all ideals that lack none but these, with what they lack waived. Take its last step: either it
    is not left out, nor is any that comes before it; or it is, from the same set without it. So a node is the minimum
    of two others, the first of the same ideal, the second of the ideal without the step; where nothing may be left out,
    of the ideal itself. A state is entered from the node of all ancestors of its step.

    Attributes
    ----------
    layout : Layout
    ideal, step : int32 [nodes]
        The ideal of each, and the step that is left out, or not.
    first, second : int32 [nodes]
        The nodes that each is the minimum of; -1: the ideal itself. The first has a lower number.
    entry : int32 [states]
        The node that each state is entered from; -1: the ideal itself.
    level : int32 [ideals]
        The number of steps of each ideal.
    """

    layout: Layout
    ideal: Ints
    step: Ints
    first: Ints
    second: Ints
    entry: Ints
    level: Ints

    def __len__(self) -> int:
        return len(self.ideal)

    @classmethod
    def of(cls, layout: Layout) -> Nodes:
        """Return the nodes that the states of a layout need, and those that these need."""
        assert layout.waivers is not None
        waivers, ancestors = layout.waivers, layout.waivers.ancestors
        everything = (1 << layout.steps) - 1
        masks = [everything & ~missing for missing in _whole(waivers.sets[waivers.ends])]
        place = {mask: ideal for ideal, mask in enumerate(masks)}
        position = _threads_in_order(ancestors)
        # All that may be left out as a step begins is the largest of the sets that are.
        sets = _whole(waivers.sets)
        most = [
            max((sets[at] for at in waivers.waived[begin:end]), key=int.bit_count)
            for begin, end in zip(waivers.start[:-1], waivers.start[1:], strict=True)
        ]
        entered = [(masks[origin], waived) for origin, waived in zip(layout.origin, most, strict=True)]
        found: dict[tuple[int, int], tuple[int, tuple[int, int], tuple[int, int]]] = {}
        wanted = list(dict.fromkeys(entered))
        while wanted:
            node = wanted.pop()
            ideal, waived = node
            if not waived or node in found:
                continue
            step = max(bits(waived), key=position.__getitem__)
            own = 1 << step
            first, second = (ideal, waived & ~(ancestors[step] | own)), (ideal & ~own, waived & ~own)
            found[node] = (step, first, second)
            wanted += [first, second]
        nodes = sorted(found, key=lambda node: (place[node[0]], node[1].bit_count(), node[1]))
        number = {node: at for at, node in enumerate(nodes)}
        rows = [(place[node[0]], found[node][0], *(number.get(part, -1) for part in found[node][1:])) for node in nodes]
        ideal_, step_, first_, second_ = np.array(rows, np.int32).reshape(-1, 4).T
        entry = np.array([number.get(node, -1) for node in entered], np.int32)
        level = np.array([mask.bit_count() for mask in masks], np.int32)
        return cls(layout, ideal_, step_, first_, second_, entry, level)

    @cached_property
    def beside(self) -> Ints:
        """The state that ends in a node's ideal with its step, and is entered from its second part; -1: none.

        What goes back to the second part of the node then takes the way of what goes back to the state's beginning.
        """
        return np.where(self.entry[self.state] == self.second, self.state, -1).astype(np.int32)

    @cached_property
    def state(self) -> NDArray[np.int64]:
        """The state that ends in a node's ideal with its step: [nodes]."""
        layout = self.layout
        key = np.concatenate([np.arange(size) for size in np.diff(layout.place)]) * layout.steps + layout.step
        order = np.argsort(key)
        return order[np.searchsorted(key[order], self.ideal.astype(np.int64) * layout.steps + self.step)]

    @cached_property
    def tied(self) -> Ints:
        """The node that is made of a state's ideal and of what the state is entered from; -1: none: [states]."""
        found = np.full(self.layout.states, -1, np.int32)
        there = np.flatnonzero((self.first < 0) & (self.beside >= 0))
        found[self.beside[there]] = there
        return found

    @cached_property
    def loose(self) -> dict[int, list[int]]:
        """The other nodes of each ideal, each after its first part."""
        found = defaultdict(list)
        for node in np.setdiff1d(np.arange(len(self)), self.tied):
            found[int(self.ideal[node])].append(int(node))
        return dict(found)

    @cached_property
    def simple(self) -> NDArray[np.bool_]:
        """Whether nothing goes back to a node but by the beginning of one state, and from it to its ideal: [nodes]."""
        counts = np.bincount(self.entry[self.entry >= 0], minlength=len(self))
        others = np.bincount(self.first[self.first >= 0], minlength=len(self))
        apart = self.second[(self.beside < 0) & (self.second >= 0)]
        others += np.bincount(apart, minlength=len(self))
        found: NDArray[np.bool_] = (counts == 1) & (others == 0) & (self.first < 0)
        return found

    @cached_property
    def gathered(self) -> dict[int, list[Gathered]]:
        """What goes back to each ideal and its nodes that are not simple, those that pass on to others first."""
        adds: dict[tuple[int, int], list[tuple[str, int]]] = defaultdict(list)
        for state, node in enumerate(self.entry.tolist()):
            if node >= 0 and not self.simple[node]:
                adds[int(self.ideal[node]), node].append(("state", state))
        for node in range(len(self)):
            if self.first[node] >= 0:
                adds[int(self.ideal[node]), int(self.first[node])].append(("first", node))
            if self.beside[node] < 0:
                origin = int(self.layout.origin[self.state[node]])
                adds[origin, int(self.second[node])].append(("second", node))
        found: dict[int, list[Gathered]] = defaultdict(list)
        for ideal, node in sorted(adds, key=lambda key: -key[1]):
            rows, own = found[ideal], adds[ideal, node]
            left = ("first", rows[-1].last if rows else None)
            if own == [left] and rows[-1].then is None:
                rows[-1] = rows[-1]._replace(then=node)
                continue
            own = [("carried", of) if (kind, of) == left else (kind, of) for kind, of in sorted(own, key=left.__ne__)]
            rows += [Gathered(own[at : at + 2], None) for at in range(0, len(own), 2)]
            rows[-1] = rows[-1]._replace(node=node)
        return dict(found)

    @cached_property
    def loose_counts(self) -> NDArray[np.int64]:
        """Nodes of each ideal that are tied to no state: [ideals]."""
        return np.array([len(self.loose.get(ideal, ())) for ideal in range(self.layout.ideals)], np.int64)

    @cached_property
    def gathered_counts(self) -> NDArray[np.int64]:
        """The rows of each ideal: [ideals]."""
        return np.array([len(self.gathered.get(ideal, ())) for ideal in range(self.layout.ideals)], np.int64)

    def lane(self, videos: int) -> Int64s:
        """Return the ideals of so many videos in the order of lanes forward: the busiest first, then by level."""
        return np.lexsort([np.tile(key, videos) for key in (self.level, -self.layout.count, -self.loose_counts)])

    def back_region(self, videos: int) -> Int64s:
        """Return a number for each ideal by which lanes are sorted backward, in the same way."""
        states, steps = np.diff(self.layout.out_start), self.layout.steps + 1
        key = (self.gathered_counts * (states.max() + 1) + states) * steps - self.level
        found: Int64s = np.unique(-np.tile(key, videos), return_inverse=True)[1].reshape(-1)
        return found

    @cached_property
    def _by_level(self) -> Int64s:
        """States of each step and level of lanes backward."""
        key = self.layout.step.astype(np.int64) * self.layout.steps + self.level[self.layout.origin]
        counts: Int64s = np.unique(key, return_counts=True)[1]
        return counts

    @property
    def adders(self) -> int:
        """What adds up gradients of a video: one for each step and level."""
        return len(self._by_level)

    @property
    def gradients(self) -> int:
        """The gradients of all states, in pieces of four for each step and level."""
        return int(((self._by_level + 3) // 4 * 4).sum())

    def loose_rows(self, videos: int) -> Ints:
        """Return where the rows of each warp begin: [warps + 1]."""
        return rows_of(np.tile(self.loose_counts, videos)[self.lane(videos)])

    def gather_rows(self, videos: int) -> Ints:
        """Return the same backward."""
        return rows_of(np.tile(self.gathered_counts, videos)[np.argsort(self.back_region(videos), kind="stable")])

    def told(self, videos: int, width: int) -> int:
        """Return the places of nodes of so many videos: those tied to the lanes' w-th states, and then the others."""
        return videos * (self.layout.ideals * -(-width // 2) * 2 + int(self.loose_counts.sum()))

    def kept(self, videos: int, width: int, shares: bool) -> int:
        """Return the places of nodes in a column: shares are written as they are told, all else without gaps."""
        return self.told(videos, width) if shares else videos * len(self)

    def places(self, videos: int, width: int) -> tuple[int, int]:
        """Return where inner places begin backward, and where they end; lanes have so many states."""
        inner = videos * (width * self.layout.ideals + int((self.beside < 0).sum()))
        begun = int((~np.append(self.simple, True)[self.entry]).sum())
        return inner, inner + videos * (begun + int((self.first >= 0).sum()))


@dataclass(frozen=True, eq=False)
class Woven:
    """The nodes of a pack of videos, by the lanes of their ideals in both directions.

    Forward, the nodes that are tied to a state are computed with it, and the others in rows, one of each lane. They are
    told behind the ideals and what nobody tells: first those of the lanes' first states, then of their second ones, …
    Backward, the second part of a node goes to the place of the state beside it, that of the w-th state of a lane being
    w lanes' worth further on than the lane's, or to a place of its own; inner places, those of what a lane tells
    itself, follow. The last one is nobody's.

    Attributes
    ----------
    nodes : Nodes
    videos : int
    width, back_width : int
        States of a lane that the kernels are compiled for.
    lane, back_lane : int64 [videos * ideals]
        The ideals in the order of lanes.
    told : int32 [videos * ideals]
        Where ideals are told forward.
    shares, passes : bool
        Whether a column keeps the share of a node's second part in a half, and whether it keeps no values.
    """

    nodes: Nodes
    videos: int
    width: int
    back_width: int
    lane: Int64s
    back_lane: Int64s
    told: Ints
    shares: bool
    passes: bool

    @property
    def count(self) -> int:
        """Places of nodes in a column. They are followed by those of a share of 0 and of 1, and by nobody's."""
        return self.nodes.kept(self.videos, self.width, self.shares)

    @property
    def begin(self) -> int:
        """Where nodes begin among what is told."""
        return -(-(len(self.told) + 2) // 4) * 4

    def _of_videos(self, of_nodes: NDArray[np.integer]) -> Int64s:
        """Return the number of a node in the pack, of each video: [videos, n]; -1 stays."""
        own = np.arange(self.videos)[:, None] * len(self.nodes)
        return np.where(of_nodes < 0, -1, own + of_nodes)

    def _each_loose(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield row, lane of a warp, video, node and number of each node that is tied to no state."""
        starts = self.nodes.loose_rows(self.videos)
        for at, which in enumerate(self.lane.tolist()):
            video, ideal = divmod(which, self.nodes.layout.ideals)
            for n, node in enumerate(self.nodes.loose.get(ideal, ())):
                yield int(starts[at // LANES]) + n, at % LANES, video, node, video * len(self.nodes) + node

    @cached_property
    def _places(self) -> tuple[Int64s, Int64s]:
        """The place of each node among those that are told, and in a column: [videos * nodes].

        In a column shares in halves lie in pairs, and all else has no gaps.
        """
        layout, lanes = self.nodes.layout, len(self.lane)
        tied = self._of_videos(self.nodes.tied)
        told, slot = np.full((2, self.videos * len(self.nodes)), -1)
        video, ideal = np.divmod(self.lane, layout.ideals)
        for w in range(layout.width):
            lane = np.flatnonzero(layout.count[ideal] > w)
            node = tied[video[lane], layout.place[w] + ideal[lane]]
            told[node[node >= 0]] = (w * lanes + lane)[node >= 0]
            slot[node[node >= 0]] = ((w // 2 * lanes + lane) * 2 + w % 2)[node >= 0]
        rest = [number for *_, number in sorted(self._each_loose())]
        told[rest] = slot[rest] = -(-self.width // 2) * 2 * lanes + np.arange(len(rest))
        return told, slot if self.shares else np.argsort(np.argsort(told))

    @property
    def _place(self) -> Int64s:
        return self._places[0]

    @property
    def _slot(self) -> Int64s:
        return self._places[1]

    @property
    def tied_slot(self) -> Int64s:
        """Where the node is in a column that is tied to a state: [videos, states]."""
        return np.append(self._slot, self.count + 2)[self._of_videos(self.nodes.tied)]

    @property
    def _enters_simple(self) -> NDArray[np.bool_]:
        """Whether each state is entered from a node that is simple: [states]."""
        found: NDArray[np.bool_] = np.append(self.nodes.simple, False)[self.nodes.entry]
        return found

    def enter(self) -> Int64s:
        """Return of each state where the node is told that it is entered from, or -1: [videos, states]."""
        entry = self._of_videos(self.nodes.entry)
        return np.where(entry < 0, -1, self.begin + np.append(self._place, 0)[entry])

    @cached_property
    def loose(self) -> Ints:
        """Of each node in rows: the skip cost (-1: none), the places of its parts, its own, and that in a column."""
        none, nodes, steps = len(self.told), self.nodes, self.nodes.layout.steps
        rows = int(self.nodes.loose_rows(self.videos)[-1])
        nobody = self.begin + nodes.told(self.videos, self.width)
        found = np.full((rows, LANES, 4), (-1, none | none << 16, nobody, self.count + 2), np.int32)
        for row, lane, video, node, number in self._each_loose():
            ideal, step = int(nodes.ideal[node]), int(nodes.step[node])
            without = int(nodes.layout.origin[nodes.state[node]])
            parts = [
                self.begin + self._place[video * len(nodes) + part]
                if part >= 0
                else self.told[video * nodes.layout.ideals + of]
                for part, of in ((int(nodes.first[node]), ideal), (int(nodes.second[node]), without))
            ]
            own = self.begin + self._place[number]
            found[row, lane] = video * steps + step, parts[0] | parts[1] << 16, own, self._slot[number]
        return found

    @property
    def places(self) -> tuple[int, int]:
        """Where inner places begin backward, and where they end: the last place is nobody's."""
        return self.nodes.places(self.videos, self.back_width)

    @cached_property
    def _places_back(self) -> tuple[Int64s, Int64s, Int64s]:
        """Where parts go backward: second parts, what states pass on to nodes that are not simple, and first parts."""
        nodes, layout, lanes = self.nodes, self.nodes.layout, len(self.back_lane)
        among = np.empty(layout.states, np.int64)
        among[layout.out] = np.arange(layout.states) - np.repeat(layout.out_start[:-1], np.diff(layout.out_start))
        at = np.empty(lanes, np.int64)
        at[self.back_lane] = np.arange(lanes)
        read = among * lanes + at[np.arange(self.videos)[:, None] * layout.ideals + layout.origin]
        end = self.back_width * lanes
        second = np.where(nodes.beside < 0, -1, read[:, nodes.beside])
        begun = np.where((nodes.entry < 0) | self._enters_simple, 0, np.full_like(read, -1))
        first = np.where(nodes.first < 0, 0, np.full_like(second, -1))
        for places in (second, begun, first):
            count = int((places < 0).sum())
            places[places < 0] = end + np.arange(count)
            end += count
        return second, begun, first

    @property
    def sizes(self) -> NDArray[np.int32]:
        """The numbers of ``Pack``: nodes, told and in a column; where inner places begin and end; rows; adders."""
        told, adders = self.nodes.told(self.videos, self.width), self.videos * self.nodes.adders
        rows = [int(of(self.videos)[-1]) for of in (self.nodes.loose_rows, self.nodes.gather_rows)]
        return np.array([told, self.count, *self.places, *rows, adders], np.int32)

    def leave(self) -> tuple[Int64s, Int64s]:
        """Return of each state where its node passes on to, and where the node is in a column: [videos, states].

        A node that is not simple gets all of it.
        """
        (second, begun, _), (_, end) = self._places_back, self.places
        entry, simple = self.nodes.entry, self._enters_simple
        passed = np.pad(second, ((0, 0), (0, 1)), constant_values=end)[:, entry]
        slot = np.append(self._slot, self.count)[self._of_videos(entry)]
        to = np.where((entry < 0) | simple, passed, begun)
        return to, np.where((entry < 0) | simple | (not self.passes), slot, self.count + 1)

    def gather(self, passed: int, kept: int) -> Ints:
        """Return of each row the places of what is added, of second parts and of the first part that is left.

        Beside them, where the two nodes and that first part are in a column, and what else is added. What there is
        not, or what is carried on, has a place that is nobody's. ``passed``, ``kept``: bytes of what is passed on, and
        of what a column keeps.
        """
        (second, begun, first), (_, end) = self._places_back, self.places
        nodes, starts = self.nodes, self.nodes.gather_rows(self.videos)
        places = {"state": begun, "first": first, "second": second}
        nobody, none = end * passed, self.count * kept
        empty = (nobody | nobody << 16 | OPEN, nobody | none << 16, nobody | none << 16, none)
        found = np.full((int(starts[-1]), LANES, 4), empty, np.int64)
        for at, which in enumerate(self.back_lane.tolist()):
            video, ideal = divmod(which, nodes.layout.ideals)
            rows = nodes.gathered.get(ideal, [])

            def of_second(node: int | None, video: int = video) -> int:
                """Return where the second part of a node goes and, above 16 bits, where the node is in a column."""
                if node is None or node < 0:
                    return nobody | none << 16
                return int(second[video, node]) * passed | int(self._slot[video * len(nodes) + node]) * kept << 16

            def added(kind: str, of: int, video: int = video) -> int:
                """Return the place of what is added."""
                return int(places[kind][video, of]) * passed | INNER * (kind != "second")

            for n, row in enumerate(rows):
                carried = row.adds[0][0] == "carried"
                given = (nobody if carried else added(*row.adds[0])) | OPEN * (row.node is None)
                also = added(*row.adds[1]) | ALSO if len(row.adds) > 1 else 0
                other, of_first = nobody, none
                rest = -1 if row.last is None or row.last < 0 else int(nodes.first[row.last])
                if rest >= 0:
                    of_first = int(self._slot[video * len(nodes) + rest]) * kept
                    if n + 1 == len(rows) or rows[n + 1].adds[0][0] != "carried":
                        other = int(first[video, row.last]) * passed
                flags = PULL * (row.node is not None and rest < 0) | CARRIED * carried
                one, two = of_second(row.node), of_second(row.then)
                parts = given | (one & 0xFFFF) << 16, other | flags | one >> 16 << 16, two, of_first | also << 16
                found[int(starts[at // LANES]) + n, at % LANES] = parts
        return found.astype(np.uint32).view(np.int32)


def rows_of(counts: Int64s) -> Ints:
    """Return where the rows of each warp begin, with so many things for each lane: [warps + 1]."""
    padded = np.append(counts, np.zeros(-len(counts) % LANES, np.int64)).reshape(-1, LANES)
    return np.cumsum([0, *padded.max(axis=1)]).astype(np.int32)


def _whole(sets: NDArray[np.uint64]) -> list[int]:
    """Return sets of steps as whole numbers."""
    return [int.from_bytes(own.astype("<u8").tobytes(), "little") for own in sets]


def _threads_in_order(ancestors: tuple[int, ...]) -> list[int]:
    """Return the place of each step in an order in which threads follow one another as a whole."""
    after: list[list[int]] = [[] for _ in ancestors]
    for step, before in enumerate(ancestors):
        for other in bits(before):
            after[other].append(step)
    # A step is placed, from the end on, when all that comes after it is.
    place, left = [-1] * len(ancestors), len(ancestors)

    def put(step: int) -> None:
        nonlocal left
        for other in after[step]:
            if place[other] < 0:
                put(other)
        left -= 1
        place[step] = left

    for step, before in enumerate(ancestors):
        if not before:
            put(step)
    return place


@lru_cache(maxsize=256)
def nodes_of(layout: Layout) -> Nodes:
    """Return the nodes of a procedure; made once."""
    return Nodes.of(layout)
