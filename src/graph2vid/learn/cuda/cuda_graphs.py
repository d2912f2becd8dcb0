"""Procedures as the kernels read them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray

from graph2vid.tsort import TSortGraph

Ints = NDArray[np.int32]
MOST_ALONE = 8  # arcs of a state that one thread takes alone
MOST_ARCS = 2**26  # ways to begin a step, of one procedure


SIZES = ("steps", "states", "ideals", "width", "empty", "full")
ARRAYS = ("place", "count", "origin", "step", "out_start", "out", "of_start", "of_step")
WAIVING_ARRAYS = ("start", "origin", "waived", "ends", "wide", "wide_at")


class GraphStruct(ctypes.Structure):
    """``Graph`` of in_memory.cu."""

    _fields_ = (*((name, ctypes.c_int32) for name in SIZES), *((name, ctypes.c_uint64) for name in ARRAYS))


class WaivingGraphStruct(GraphStruct):
    """The same where steps may be left out."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("arcs", "waivers", "words", "wides")),
        *((f"waiving_{name}", ctypes.c_uint64) for name in (*WAIVING_ARRAYS, "sets")),
    )


@dataclass(frozen=True, eq=False)
class Waivers:
    """What may be left out, and when.

    A state is entered from the ideal without its step, and from every smaller one that lacks nothing but ancestors of
    the step: they are waived as the step begins. What is never shown is waived at the end.

    Attributes
    ----------
    start : int32 [states + 1]
        Where the arcs of each state begin.
    origin, waived : int32 [arcs]
        The ideal that each comes from, and the set of steps that it waives.
    ends : int32 [ideals]
        The set of steps that is waived by ending with each ideal.
    sets : uint64 [n, words]
        The sets, a bit for each step.
    out_start, out : int32 [ideals + 1], [arcs]
        The arcs out of each ideal.
    ancestors : tuple of int
        Those of each step, a bit for each.
    """

    start: Ints
    origin: Ints
    waived: Ints
    ends: Ints
    sets: NDArray[np.uint64]
    out_start: Ints
    out: Ints
    ancestors: tuple[int, ...]

    @cached_property
    def roots(self) -> Ints:
        """The states that something can be waived for: those of several arcs."""
        return np.flatnonzero(self.counts > 1).astype(np.int32)

    @property
    def counts(self) -> Ints:
        """The arcs of each state: [states]."""
        return np.diff(self.start)

    @cached_property
    def wide(self) -> Ints:
        """The states of so many arcs that a warp takes them together."""
        return np.flatnonzero(np.diff(self.start) > MOST_ALONE).astype(np.int32)

    @property
    def wide_at(self) -> Ints:
        """The places of all states in `wide`; -1 where they are not: [states]."""
        places = np.full(len(self.start) - 1, -1, np.int32)
        places[self.wide] = np.arange(len(self.wide))
        return places


@dataclass(frozen=True, eq=False)
class Layout:
    """A tSort graph with its ideals sorted by their number of states, most first.

    The w-th states of all ideals that have more than w of them lie side by side, from ``place[w]`` on.

    Attributes
    ----------
    steps, states, ideals, width : int
        Numbers of steps, states and ideals, and the most states of an ideal.
    empty, full : int
        The ideals with nothing and with everything done.
    out_width : int
        The most states that are entered from an ideal.
    place : int32 [width + 1]
    count : int32 [ideals]
    origin, step : int32 [states]
        The ideal that each state is entered from, and its step.
    out_start, out : int32 [ideals + 1], [states]
        The states that are entered from each ideal, with all that comes before their steps done.
    of_start, of_step : int32 [steps + 1], [states]
        The states of each step.
    waivers : Waivers, optional
        Where steps may be left out.
    """

    steps: int
    states: int
    ideals: int
    width: int
    empty: int
    full: int
    out_width: int
    place: Ints
    count: Ints
    origin: Ints
    step: Ints
    out_start: Ints
    out: Ints
    of_start: Ints
    of_step: Ints
    waivers: Waivers | None = None

    @cached_property
    def label_starts(self) -> Ints:
        """Where the gradients of the states of each step begin, in pieces of four: [steps + 1]."""
        return np.append(0, np.cumsum((np.diff(self.of_start) + 3) // 4 * 4)).astype(np.int32)

    @property
    def gradients(self) -> int:
        """The gradients of all states, in pieces of four for each step."""
        return int(self.label_starts[-1])

    @property
    def arcs(self) -> int:
        """Ways to begin a step."""
        return self.states if self.waivers is None else len(self.waivers.out)

    @property
    def roots(self) -> int:
        """The states that something can be waived for."""
        return 0 if self.waivers is None else len(self.waivers.roots)

    @classmethod
    def of(cls, tsort: TSortGraph, skips: bool = False) -> Layout:
        """Return the layout of a tSort graph, whose steps may be left out."""
        counts = np.diff(tsort.state_start)
        # Among ideals of as many states, the order of their sets as numbers: threads that lie side by side then mostly
        # read ideals that lie side by side.
        order = np.lexsort((*tsort.masks.T, -counts))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        width = int(counts.max())
        place = np.concatenate([[0], np.cumsum([(counts > w).sum() for w in range(width)])])
        ideal = np.repeat(np.arange(len(counts)), counts)
        arcs = tsort.skip_arcs(np.ones(tsort.n_steps, bool), MOST_ARCS) if skips else None
        which = np.arange(tsort.n_states) - tsort.state_start[ideal]
        at = place[which] + rank[ideal]
        origin, step = np.empty(tsort.n_states, np.int32), np.empty(tsort.n_states, np.int32)
        origin[at] = rank[tsort.state_from]
        step[at] = tsort.state_step
        waivers = None if arcs is None else _waivers(tsort, arcs, at, rank)
        out, out_start = _grouped(origin, tsort.n_ideals)
        of_step, of_start = _grouped(step, tsort.n_steps)
        return cls(
            tsort.n_steps,
            tsort.n_states,
            tsort.n_ideals,
            width,
            int(rank[0]),
            int(rank[-1]),
            int(np.diff(out_start).max()),
            place.astype(np.int32),
            counts[order].astype(np.int32),
            origin,
            step,
            out_start,
            out,
            of_start,
            of_step,
            waivers,
        )


def _waivers(
    tsort: TSortGraph,
    arcs: tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.uint64]],
    state_at: NDArray[np.int64],
    rank: NDArray[np.int64],
) -> Waivers:
    """Return every arc of every state, and what it waives."""
    state, origin, missing = arcs
    ends = np.empty_like(tsort.masks)
    ends[rank] = tsort.masks[-1] & ~tsort.masks
    sets, which = np.unique(np.concatenate([missing, ends]), axis=0, return_inverse=True)
    which_set: Ints = which.reshape(-1).astype(np.int32)
    order, start = _grouped(state_at[state].astype(np.int32), tsort.n_states)
    from_ideal: Ints = rank[origin[order]].astype(np.int32)
    out, out_start = _grouped(from_ideal, tsort.n_ideals)
    waived, ends_ = which_set[: len(state)][order], which_set[len(state) :]
    return Waivers(start, from_ideal, waived, ends_, sets, out_start, out, tsort.flow.ancestors)


def _grouped(values: Ints, count: int) -> tuple[Ints, Ints]:
    """Return the places of each of the values 0 … count - 1, one group after the other, and where groups begin."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(values, minlength=count))])
    return np.argsort(values, kind="stable").astype(np.int32), starts.astype(np.int32)


@dataclass(frozen=True, eq=False)
class DeviceGraph:
    """A layout in the memory of a device, and packs of videos that were laid out there."""

    layout: Layout
    device: torch.device
    packs: dict[tuple[object, ...], tuple[torch.Tensor, bytes]] = field(default_factory=dict)

    @cached_property
    def _numbers(self) -> tuple[torch.Tensor, list[int]]:
        layout = self.layout
        parts = [getattr(layout, name) for name in ARRAYS]
        if (waivers := layout.waivers) is not None:
            parts[ARRAYS.index("out_start")], parts[ARRAYS.index("out")] = waivers.out_start, waivers.out
            sets = waivers.sets.view(np.int32).reshape(-1)
            parts += [getattr(waivers, name) for name in WAIVING_ARRAYS]
            parts += [np.zeros(sum(map(len, parts)) % 2, np.int32), sets]  # the sets lie at whole 64-bit words
        starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])])[:-1]
        return torch.from_numpy(np.concatenate(parts)).to(self.device), starts.tolist()

    @cached_property
    def numbers_and_struct(self) -> tuple[torch.Tensor, bytes]:
        """The numbers, and ``Graph`` of in_memory.cu over them."""
        layout, (numbers, starts) = self.layout, self._numbers
        sizes = [getattr(layout, name) for name in SIZES]
        at = [numbers.data_ptr() + 4 * start for start in starts]
        if layout.waivers is None:
            return numbers, bytes(GraphStruct(*sizes, *at))
        *arcs, _, sets = at[len(ARRAYS) :]
        counts = (layout.arcs, *layout.waivers.sets.shape, len(layout.waivers.wide))
        return numbers, bytes(WaivingGraphStruct(*sizes, *at[: len(ARRAYS)], *counts, *arcs, sets))


_layouts: WeakKeyDictionary[TSortGraph, dict[bool, Layout]] = WeakKeyDictionary()
_on_device: WeakKeyDictionary[TSortGraph, dict[tuple[bool, torch.device], DeviceGraph]] = WeakKeyDictionary()


def layout_of(tsort: TSortGraph, skips: bool = False) -> Layout:
    """Return the layout of a tSort graph, whose steps may be left out; made once."""
    known = _layouts.setdefault(tsort, {})
    if skips not in known:
        known[skips] = Layout.of(tsort, skips)
    return known[skips]


def graph_on(tsort: TSortGraph, skips: bool, device: torch.device) -> DeviceGraph:
    """Return a tSort graph in the memory of a device; copied once."""
    known = _on_device.setdefault(tsort, {})
    if (skips, device) not in known:
        known[skips, device] = DeviceGraph(layout_of(tsort, skips), device)
    return known[skips, device]
