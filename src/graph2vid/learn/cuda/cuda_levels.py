"""Procedures whose steps may be left out, as the kernels read them that go level by level."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray

from graph2vid.tsort import TSortGraph

Ints = NDArray[np.int32]
SIZES = ("steps", "ideals", "empty", "column", "told", "passes", "items", "shown")
ARRAYS = (
    *("mask", "enter", "label", "slot", "stay", "place", "child", "base", "skip", "share", "extra_start", "extra"),
    *("target", "out_slot", "sum", "pass", "parents", "step", "plain_parents", "item"),
)


class LevelsStruct(ctypes.Structure):
    """``Levels`` of in_levels.cu."""

    _fields_ = (*((name, ctypes.c_int32) for name in SIZES), *((name, ctypes.c_uint64) for name in ARRAYS))


MOST_IDEALS, MOST_STEPS = 1024, 31  # a thread for each, and of two chunks of clips all are in one at a time


def fits_levels(tsort: TSortGraph) -> bool:
    """Whether a block can take a video of a procedure."""
    return tsort.n_ideals <= MOST_IDEALS and tsort.n_steps <= MOST_STEPS


@dataclass(eq=False)
class Node:
    """The minimum over an ideal and those that lack some of what can be waived of it.

    Attributes
    ----------
    ideal, waivable : int
        Sets of steps.
    step : int
        What its child lacks.
    base : Node, optional
        Where that step is not waived; None: the ideal itself.
    child : tuple of int
        The ideal and what can be waived where it is.
    number : int
        Its place among all nodes.
    parents : list of Node
        Whose child it is.
    """

    ideal: int
    waivable: int
    step: int
    base: Node | None
    child: tuple[int, int]
    number: int = -1
    parents: list[Node] = field(default_factory=list)


class Levels:
    """The nodes of a tSort graph: the roots of its states, and extra ones.

    Parameters
    ----------
    tsort : TSortGraph
    order : int64 [ideals]
        Its ideals in the order of lanes.
    """

    def __init__(self, tsort: TSortGraph, order: NDArray[np.int64]) -> None:
        self.tsort, self.order = tsort, order
        self.steps, self.ideals = tsort.n_steps, tsort.n_ideals
        self.rank = np.empty(len(order), np.int64)
        self.rank[order] = np.arange(len(order))
        masks = tsort.masks[order]
        self.masks = [sum(int(word) << 64 * n for n, word in enumerate(mask)) for mask in masks]
        self.lane = {mask: at for at, mask in enumerate(self.masks)}
        ancestors = [int(before) for before in tsort.flow.ancestors]
        self._down = [before | 1 << step for step, before in enumerate(ancestors)]
        self._after = [sum(1 << k for k, before in enumerate(ancestors) if before >> s & 1) for s in range(self.steps)]
        self._number = {step: at for at, step in enumerate(tsort.flow.topological_order)}
        lanes = range(self.ideals)
        self.ending: list[list[int]] = [[] for _ in lanes]
        self.entered: list[list[int]] = [[] for _ in lanes]
        ends_in = np.repeat(np.arange(self.ideals), np.diff(tsort.state_start))
        for state in range(tsort.n_states):
            self.ending[self.rank[ends_in[state]]].append(state)
            self.entered[self.rank[tsort.state_from[state]]].append(state)
        self.ends_in = self.rank[ends_in]
        self.roots: dict[int, Node] = {}
        self.extras: list[list[Node]] = [[] for _ in lanes]
        self._connect(ancestors)

    def _steps_of(self, mask: int) -> Iterator[int]:
        return (step for step in range(self.steps) if mask >> step & 1)

    def _waivable(self, ideal: int, among: int) -> int:
        """Return what of a set of steps can be waived of an ideal: what nothing else comes after."""
        return sum(1 << s for s in self._steps_of(among & ideal) if not self._after[s] & ideal & ~among)

    def _connect(self, ancestors: list[int]) -> None:
        """Make the nodes, from the largest ideal to the smallest: all that is asked of one is known then."""
        asked: dict[int, dict[int, list[Node]]] = {}
        for lane in sorted(range(self.ideals), key=lambda lane: -self.masks[lane].bit_count()):
            ideal, known = self.masks[lane], dict[int, Node]()
            made: list[Node] = []

            def extra(waivable: int, at: int = lane, known: dict[int, Node] = known) -> Node | None:
                """Return the extra node of what can be waived; None: nothing."""
                if not waivable or waivable in known:
                    return known.get(waivable)
                node = self._node(self.masks[at], waivable)
                node.base = extra(self._waivable(self.masks[at], waivable & ~self._down[node.step]))
                self.extras[at].append(node)
                known[waivable] = node
                return node

            for state in self.entered[lane]:
                waivable = self._waivable(ideal, ancestors[self.tsort.state_step[state]])
                if waivable:
                    root = self._node(ideal, waivable)
                    root.base = extra(self._waivable(ideal, waivable & ~self._down[root.step]))
                    self.roots[state] = root
                    made.append(root)
            roots = {root.waivable: root for root in made}
            for waivable, parents in asked.get(ideal, {}).items():
                child = roots.get(waivable) or extra(waivable)
                if child is not None:
                    child.parents += parents
            for node in (*made, *self.extras[lane]):
                asked.setdefault(node.child[0], {}).setdefault(node.child[1], []).append(node)
        self.plain_parents = [asked.get(mask, {}).get(0, []) for mask in self.masks]
        nodes = [*self.roots.values(), *(node for lane in self.extras for node in lane)]
        for number, node in enumerate(nodes):
            node.number = number
        self.nodes = nodes

    def _node(self, ideal: int, waivable: int) -> Node:
        last = (step for step in self._steps_of(waivable) if not self._after[step] & ideal)
        step = max(last, key=self._number.__getitem__)
        return Node(ideal, waivable, step, None, (ideal & ~(1 << step), waivable & ~(1 << step)))

    @property
    def told(self) -> int:
        """The numbers that ideals and nodes tell."""
        return self.ideals + len(self.nodes)

    @property
    def column(self) -> int:
        """The numbers of a column; the last four belong to no one."""
        return -(-(self.tsort.n_states + self.ideals + len(self.nodes)) // 4) * 4 + 4

    @property
    def width(self) -> int:
        """The most states that end in an ideal, or are entered from it."""
        return max(map(len, (*self.ending, *self.entered)))

    @cached_property
    def items(self) -> list[tuple[int, int, int, int]]:
        """The gradients of each label on each level: from, to, label, level."""
        return self._summed[0]

    @property
    def shown(self) -> int:
        """The gradients of all states, in pieces of four for each label on each level."""
        return self.items[-1][1]

    @cached_property
    def _summed(self) -> tuple[list[tuple[int, int, int, int]], dict[int, int]]:
        levels = {state: self.masks[lane].bit_count() for lane, states in enumerate(self.entered) for state in states}
        label = self.tsort.state_step

        def key(state: int) -> tuple[int, int]:
            return int(label[state]), levels[state]

        items, places, at = [], dict[int, int](), 0
        for (step, level), group in groupby(sorted(levels, key=key), key):
            states = list(group)
            places |= {state: at + n for n, state in enumerate(states)}
            end = at + -(-len(states) // 4) * 4
            items.append((at, end, step, level))
            at = end
        return items, places

    def shared(self, kernel: str, gradient: bool) -> int:
        """Return the bytes of shared memory of a block."""
        up = 4 * (-(-(self.steps + 1) // 4))
        fixed = 144 + 4 * (max(up, self.steps + 4 & ~3) + 64 * (self.steps + 1 | 1))
        if kernel == "forward":
            return fixed + 4 * ((3 * (self.told + 2) + 3 & ~3) + (4 * self.column if gradient else 0))
        numbers = 3 * (self.ideals + 2) + 2 * (len(self.nodes) + 1) + 2 * self.told
        return fixed + 4 * (numbers + 4 + self.shown + 4 + 4 * self.column)

    def arrays(self, width: int) -> dict[str, NDArray[np.generic]]:
        """Return what the kernels read, by its name in ``Levels``; places in bytes."""
        told, trash, states = self.told, 4 * (self.column - 4), self.tsort.n_states
        step_of, origin = self.tsort.state_step, self.rank[self.tsort.state_from]
        _, sum_at = self._summed
        slots = {state: 4 * at for at, state in enumerate(s for lane in self.entered for s in lane)}
        share = {id(node): 4 * (states + self.ideals + node.number) for node in self.nodes}
        place = {id(node): 4 * (self.ideals + node.number) for node in self.nodes}
        # The parents of each lie side by side.
        pass_at: dict[int, int] = {}

        def listed(parents: list[Node]) -> int:
            start = len(pass_at)
            pass_at.update((id(node), start + n) for n, node in enumerate(parents))
            return start | len(parents) << 16

        plain = [listed(parents) for parents in self.plain_parents]
        parents = {id(node): listed(node.parents) for node in self.nodes}
        child_at: dict[int, int] = {}
        for lane, of in enumerate(self.plain_parents):
            child_at |= {id(node): 4 * lane for node in of}
        for node in self.nodes:
            child_at |= {id(parent): place[id(node)] for parent in node.parents}

        def rows(none: int) -> Ints:
            return np.full((width, self.ideals), none, np.int32)

        found = {name: rows(0) for name in ("label", "parents")}
        found |= {"enter": rows(4 * told), "slot": rows(trash), "out_slot": rows(trash), "share": rows(trash)}
        found |= {"place": rows(4 * told + 4), "child": rows(4 * told), "skip": rows(4 * self.steps), "step": rows(-1)}
        found |= {"target": rows(4 * self.ideals), "sum": rows(4 * self.shown), "pass": rows(4 * len(self.nodes))}
        found["base"] = rows(0) + 4 * np.arange(self.ideals, dtype=np.int32)
        for lane in range(self.ideals):
            for w, state in enumerate(self.ending[lane]):
                root = self.roots.get(state)
                found["enter"][w, lane] = 4 * origin[state] if root is None else place[id(root)]
                found["label"][w, lane], found["slot"][w, lane] = 4 * step_of[state], slots[state]
            for w, state in enumerate(self.entered[lane]):
                found["out_slot"][w, lane], found["target"][w, lane] = slots[state], 4 * self.ends_in[state]
                found["sum"][w, lane] = 4 * sum_at[state]
                if (root := self.roots.get(state)) is None:
                    continue
                found["place"][w, lane], found["child"][w, lane] = place[id(root)], child_at[id(root)]
                found["skip"][w, lane], found["step"][w, lane] = 4 * root.step, root.step
                found["share"][w, lane], found["pass"][w, lane] = share[id(root)], 4 * pass_at[id(root)]
                found["parents"][w, lane] = parents[id(root)]
                if root.base is not None:
                    found["base"][w, lane] = place[id(root.base)]
        extras = [
            (
                *(place[id(node)], child_at[id(node)], 4 * node.step, share[id(node)]),
                *(4 * lane if node.base is None else place[id(node.base)], 4 * pass_at[id(node)]),
                *(parents[id(node)], node.step),
            )
            for lane, nodes in enumerate(self.extras)
            for node in nodes
        ]
        return {
            "mask": np.array(self.masks, np.uint64).view(np.int32),
            **found,
            "item": np.array(self.items, np.int32),
            "extra": np.array(extras, np.int32).reshape(-1, 8),
            "extra_start": np.cumsum([0, *map(len, self.extras)]).astype(np.int32),
            "stay": 4 * (states + np.arange(self.ideals, dtype=np.int32)),
            "plain_parents": np.array(plain, np.int32),
        }

    def on(self, device: torch.device, width: int) -> tuple[torch.Tensor, bytes]:
        """Return the numbers in the memory of a device, and ``Levels`` of in_levels.cu over them."""
        parts = {name: part.reshape(-1) for name, part in self.arrays(width).items()}
        padded = {name: np.append(part, np.zeros(-part.size % 4, np.int32)) for name, part in parts.items()}
        numbers = torch.from_numpy(np.concatenate(list(padded.values())).astype(np.int32)).to(device)
        starts = np.cumsum([0, *(part.size for part in padded.values())])
        at = {name: numbers.data_ptr() + 4 * int(start) for name, start in zip(padded, starts[:-1], strict=True)}
        sizes = (self.steps, self.ideals, int(self.rank[0]), self.column, self.told, len(self.nodes))
        given = (*sizes, len(self.items), self.shown)
        return numbers, bytes(LevelsStruct(*given, *(at[name] for name in ARRAYS)))
