"""Videos of one procedure side by side in a block, as the kernels in registers read them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graph2vid.learn.cuda.cuda_graphs import Ints, Layout
from graph2vid.learn.cuda.cuda_nodes import Woven, nodes_of
from graph2vid.learn.cuda.cuda_numbers import Numbers
from graph2vid.learn.cuda.cuda_waiving import waiving_of

# The pointers of ``Pack`` of packs.cuh, in their order; with SKIPS some more.
ARRAYS = (
    *("lane", "own", "enter", "label", "slot"),
    *("back_lane", "back_own", "back_target", "back_label", "back_slot", "back_sum", "sum_start"),
)
ROWS = ("place", "own", "value_slot", "link", "back_place", "back_own", "back_lane", "back_link", "sum_start")
NODES = (
    *("missing", "level", "back_level", "tied", "loose", "loose_rows"),
    *("back_to", "back_node", "gather", "gather_rows", "adder", "back_end"),
)
WAIVING = (
    *("missing", "wide_waived", "back_waived", "job", "job_start", "wide_arc"),
    *("back_arc", "back_rows", "back_root", "back_end"),
)
BANKS = 32  # of shared memory, a word wide each


@dataclass(frozen=True, eq=False)
class Pack:
    """As many videos of one procedure as a block takes.

    Their ideals are numbered one video after the other, and sorted twice: by the states that end in them, and by the
    states that are entered from them. A column holds the u-th states that are entered from each ideal side by side,
    in the second order, then, from a multiple of four on, what is kept of the ideals, and of roots.

    Attributes
    ----------
    layout : Layout
    videos : int
    width, back_width : int
        States that the kernels are compiled for, of an ideal that they end in, and that they are entered from.
    numbers : Numbers
        What they compute with.
    column : int
        Numbers of a column; the last four belong to no one.
    in_registers : bool
        Whether states are there, or in shared memory.
    """

    layout: Layout
    videos: int
    width: int
    back_width: int
    numbers: Numbers
    column: int
    in_registers: bool = True

    @cached_property
    def arrays(self) -> dict[str, Any]:
        """What the kernels read, by its name in ``Pack``."""
        layout, videos = self.layout, self.videos
        ideals, steps, states = layout.ideals, layout.steps, layout.states
        out_count = np.diff(layout.out_start)
        nodes = nodes_of(layout) if layout.waivers is not None and self.in_registers else None
        arcs = waiving_of(layout) if layout.waivers is not None and not self.in_registers else None
        lane = np.argsort(-np.tile(layout.count, videos), kind="stable") if nodes is None else nodes.lane(videos)
        # Of each state: the ideal it ends in, and its place among those that are entered from the same one.
        ends_in = np.concatenate([np.arange(size) for size in np.diff(layout.place)])
        among = np.empty(states, np.int64)
        among[layout.out] = np.arange(states) - np.repeat(layout.out_start[:-1], out_count)
        rows = [videos * int((out_count > u).sum()) for u in range(layout.out_width)]
        place = np.concatenate([[0], np.cumsum(rows)])
        video = np.arange(videos)[:, None]
        each = self.numbers.each
        values = -(-each * videos * states // 4) * 4  # where the ideals begin in a column
        label = video * (steps + 1) + layout.step
        sum_of, sum_sizes = (video * steps + layout.step).reshape(-1), np.tile(np.diff(layout.label_starts), videos)
        if nodes is not None:  # side by side those of a level, too: they are of one clip
            sum_of = sum_of * steps + np.tile(nodes.level[layout.origin], videos)
            by_level = np.bincount(sum_of, minlength=videos * steps * steps).reshape(-1, steps)
            sum_sizes = ((by_level + 3) // 4 * 4).reshape(-1)

        def rowed(
            lanes: NDArray[np.int64], width: int, back: bool, *values: tuple[NDArray[np.int64], int]
        ) -> list[Ints]:
            """Return each state's value, [width, lanes], for the lanes in this order; the number for no state."""
            found = [np.full((width, len(lanes)), none, np.int32) for _, none in values]
            of, ideal = np.divmod(lanes, ideals)
            counts = np.where(lanes < 0, 0, out_count[ideal] if back else layout.count[ideal])
            for w in range(width):
                there = np.flatnonzero(counts > w)
                which = ideal[there]
                state = layout.out[layout.out_start[which] + w] if back else layout.place[w] + which
                for array, (value, _) in zip(found, values, strict=True):
                    array[w, there] = value[of[there], state]
            return found

        # First what is read or written, by ideal or state, -1: none; then where it lies, so that few share a bank.
        origin, enter_row, entered_label = rowed(
            lane, self.width, False, (video * ideals + layout.origin, -1), (place[among] + 0 * video, 0), (label, 0)
        )
        words = self.numbers.bytes // 4
        of_video = np.arange(videos * ideals) // ideals
        told = spread(of_video, np.bincount(of_video), np.concatenate([lane[None], origin]), words)
        # Backward lanes are sorted by their number of states; the value of an ideal follows those of all states.
        by_count = out_count.max() - np.tile(out_count, videos)
        rows_of_values = np.concatenate([np.full((1, len(lane)), values), enter_row])
        if arcs is not None:
            by_count = arcs.back_region
        if nodes is not None:
            by_count = nodes.back_region(videos)
        reads = np.concatenate([lane[None], origin])
        rank = spread(by_count, np.bincount(by_count), reads, each * words, rows_of_values)
        back_lane = np.argsort(rank)
        # The position of each ideal among those with more than so many states.
        has = np.tile(out_count, videos)[back_lane] > np.arange(layout.out_width)[:, None]
        position = np.empty((layout.out_width, videos * ideals), np.int64)
        position[:, back_lane] = np.cumsum(has, axis=1) - 1
        slot = each * (place[among] + position[among, video * ideals + layout.origin])  # [videos, states]
        (slots,) = rowed(lane, self.width, False, (slot, self.column - 4))
        numbered = np.arange(videos * states).reshape(videos, states)
        ends = (video * ideals + ends_in, -1)
        target, back_label, back_slot, back_state = rowed(
            back_lane, self.back_width, True, ends, (label, 0), (slot, self.column - 4), (numbered, -1)
        )
        back_told = spread(
            of_video, np.bincount(of_video), np.concatenate([back_lane[None], target]), self.numbers.told * words
        )
        summed = spread(sum_of, sum_sizes, back_state, words)
        value_slot, sum_start = values + rank, np.append(0, np.cumsum(sum_sizes))
        entered = np.append(told, videos * ideals)[origin]
        waiving: dict[str, Any] = {}
        if layout.waivers is not None:
            missing = np.tile(layout.waivers.sets[layout.waivers.ends, 0], videos)
            waiving = {"missing": missing[lane], "back_end": told[back_lane]}
        if nodes is not None:
            keeps = (self.numbers.shares, self.numbers.passes)
            woven = Woven(nodes, videos, self.width, self.back_width, lane, back_lane, told, *keeps)
            to, back_node = woven.leave()
            of_node, tied = rowed(lane, self.width, False, (woven.enter(), -1), (woven.tied_slot, woven.count + 2))
            entered = np.where(of_node < 0, entered, of_node)
            back = rowed(back_lane, self.back_width, True, (to, woven.places[1]), (back_node, woven.count))
            level = np.tile(nodes.level, videos)
            waiving |= {"tied": tied, "back_to": back[0], "back_node": back[1], "sizes": woven.sizes}
            waiving |= {"level": level[lane], "back_level": level[back_lane] + 1}
            waiving |= {"loose": woven.loose, "loose_rows": nodes.loose_rows(videos)}
            passed = self.numbers.parts * self.numbers.bytes
            waiving |= {
                "gather": woven.gather(passed, self.numbers.node_bytes),
                "gather_rows": nodes.gather_rows(videos),
            }
            waiving |= {"adder": self._adders(by_level, sum_start)}
        if arcs is not None:
            (root,) = rowed(lane, self.width, False, (arcs.number[None], -1))
            entered = np.where(root < 0, entered, videos * ideals + 1 + root)
            (back_root,) = rowed(back_lane, self.back_width, True, (arcs.number[None], -1))
            waiving |= arcs.forward(told) | arcs.backward(back_lane)
            waiving["back_root"] = np.where(back_root < 0, arcs.roots, back_root).astype(np.int32)
        return {
            "lane": lane.astype(np.int32),
            "own": np.append(told, videos * ideals)[lane],
            "enter": entered.astype(np.int32),
            "label": entered_label,
            "slot": np.concatenate([slots, np.append(value_slot, 0)[lane][None].astype(np.int32)]),
            "back_lane": back_lane.astype(np.int32),
            "back_own": back_told[back_lane],
            "back_target": np.append(back_told, videos * ideals)[target].astype(np.int32),
            "back_label": back_label,
            "back_slot": np.concatenate([back_slot, value_slot[back_lane][None].astype(np.int32)]),
            "back_sum": np.append(summed, sum_start[-1])[back_state].astype(np.int32),
            "sum_start": (sum_start if nodes is None else sum_start[::steps]).astype(np.int32),
            **waiving,
        }

    def _adders(self, counts: NDArray[np.int64], starts: NDArray[np.int64]) -> Ints:
        """Return what adds up gradients, of each label and level that has some: ``Adder`` of packs.cuh; most first.

        Lanes come to a clip one after the other, those of the highest level first. Of adders of as many pieces, those
        lie side by side whose pieces are in different banks.
        """
        steps = self.layout.steps
        label, level = np.nonzero(counts)
        opens = level == (steps - 1 - (counts > 0)[:, ::-1].argmax(axis=1))[label]
        pieces = (counts[label, level] + 3) // 4
        first = starts[label * steps + level]
        fields = (first, pieces, (label + label // steps) | opens.astype(int) << 15, level + 1)
        bank = first % BANKS
        alike = np.sort(pieces * BANKS + bank)
        turn = np.empty_like(bank)  # among those of as many pieces that begin in the same bank
        turn[np.lexsort((bank, pieces))] = np.arange(len(alike)) - np.searchsorted(alike, alike)
        return np.stack(fields, axis=1)[np.lexsort((bank, turn, -pieces))].astype(np.int32)

    @property
    def places(self) -> dict[str, Any]:
        """The same with places in bytes."""
        bytes_ = self.numbers.bytes
        told = dict.fromkeys(("back_own", "back_target"), self.numbers.told * bytes_)
        own = dict.fromkeys(
            ("own", "enter", "label", "slot", "back_label", "back_slot", "back_sum", "back_end"), bytes_
        )
        nodes = dict.fromkeys(("tied", "back_node"), self.numbers.node_bytes) | {"back_to": self.numbers.parts * bytes_}
        sizes = told | own | nodes
        return {name: array * sizes.get(name, 1) for name, array in self.arrays.items()}

    @property
    def rows(self) -> dict[str, Any]:
        """The same for the kernels in shared memory, of one video: the states that there are, and places in 16 bits."""
        arrays, layout = self.arrays, self.layout
        counts = [(layout.count > w).sum() for w in range(self.width)]
        back_counts = [(np.diff(layout.out_start) > w).sum() for w in range(self.back_width)]

        def compact(name: str, sizes: list[np.int64]) -> Ints:
            return np.concatenate([arrays[name][w, :size] for w, size in enumerate(sizes)])

        size = self.numbers.bytes
        enter = compact("enter", counts) * size | compact("label", counts) * size << 16
        target = compact("back_target", back_counts) * size | compact("back_sum", back_counts) << 16
        waiving: dict[str, Any] = {}
        if layout.waivers is not None:
            waiving = {name: arrays[name] for name in WAIVING}
            waiving |= {name: arrays[name] * size for name in ("wide_arc", "back_end")}
            root = compact("back_root", back_counts)
            waiving |= {"back_arc": arrays["back_arc"] * 2 * size, "back_root": root * 2 * size}  # two numbers each
            target |= root < layout.roots  # places are whole words: the last bit is free
        return {
            "link": np.stack([enter, compact("slot", counts) * size], axis=1).reshape(-1),
            "place": np.cumsum([0, *counts]).astype(np.int32),
            "own": arrays["own"] * size,
            "value_slot": arrays["slot"][-1] * size,
            "back_place": np.cumsum([0, *back_counts]).astype(np.int32),
            "back_own": arrays["back_own"] * size,
            "back_lane": arrays["back_lane"],
            "back_link": target,
            "sum_start": arrays["sum_start"],
            **waiving,
        }

    def on(self, device: torch.device) -> tuple[torch.Tensor, bytes]:
        """Return the numbers in the memory of a device, and ``Pack`` of packs.cuh over them."""
        names: tuple[str, ...] = ARRAYS if self.in_registers else ROWS
        if self.layout.waivers is not None:
            names = (*names, *(NODES if self.in_registers else WAIVING))
        given = self.places if self.in_registers else self.rows
        parts = [given[name] for name in names]
        parts = [
            (part if part.dtype == np.uint64 else part.astype(np.int32)).reshape(-1).view(np.int32) for part in parts
        ]
        # Each begins at 16 bytes.
        padded = [np.append(part, np.zeros(-part.size % 4, np.int32)) for part in parts]
        numbers = torch.from_numpy(np.concatenate(padded)).to(device)
        starts = np.cumsum([0, *(part.size for part in padded)])[:-1]
        layout, videos = self.layout, self.videos
        sizes = [layout.steps, layout.ideals, videos, len(self.arrays["lane"]), layout.full, layout.empty]
        sizes += [videos * layout.steps, self.column]
        if layout.waivers is not None:
            sizes += self.arrays["sizes"].tolist()
        pointers = numbers.data_ptr() + 4 * starts.astype(np.uint64)
        return numbers, np.array([*sizes, *[0] * (len(sizes) % 2)], np.int32).tobytes() + pointers.tobytes()


def spread(
    region: NDArray[np.integer],
    sizes: NDArray[np.integer],
    read: NDArray[np.integer],
    words: int,
    offset: NDArray[np.integer] | None = None,
) -> Ints:
    """Return where things lie, those of a region side by side, so that few that are read together share a bank.

    Parameters
    ----------
    region : int64 [n]
        Of each thing.
    sizes : int64 [regions]
        Their places; regions follow one another.
    read : int64 [m, lanes]
        What each lane reads (or writes) in each of its accesses; -1: nothing.
    words : int
        Of each thing.
    offset : int64 [m, lanes], optional
        How much further on than the place of the thing it does.
    """
    banks = max(BANKS // words, 8)  # as many lanes are served at a time
    access = np.arange(read.shape[0])[:, None] * -(-read.shape[1] // banks) + np.arange(read.shape[1]) // banks
    there = read >= 0
    further = 0 * read if offset is None else offset % banks
    count = int(access.max()) + 1
    keys = np.unique((read[there].astype(np.int64) * count + access[there]) * banks + further[there])
    thing, of, by = keys // (count * banks), keys // banks % count, keys % banks
    starts = np.searchsorted(thing, np.arange(len(region) + 1)).tolist()
    ends = np.cumsum(sizes)
    first = (ends - sizes)[:, None]
    free = first + (np.arange(banks) - first) % banks  # the next place of each region in each bank
    taken = np.zeros((count, banks), np.int32)
    found = np.empty(len(region), np.int32)
    for at, where in enumerate(region.tolist()):
        mine = slice(starts[at], starts[at + 1])
        in_bank = (by[mine, None] + np.arange(banks)) % banks
        costs = taken[of[mine, None], in_bank].sum(axis=0)
        costs[free[where] >= ends[where]] = len(thing) + 1
        bank = int(costs.argmin())
        found[at] = free[where, bank]
        free[where, bank] += banks
        taken[of[mine], in_bank[:, bank]] += 1
    return found
