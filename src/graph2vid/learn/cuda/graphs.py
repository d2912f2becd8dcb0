"""Procedures as the kernels read them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray

from graph2vid.tsort import TSortGraph

Ints = NDArray[np.int32]


class GraphStruct(ctypes.Structure):
    """``Graph`` of kernels.cu."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("steps", "states", "ideals", "width", "empty", "full")),
        *(
            (name, ctypes.c_uint64)
            for name in ("place", "count", "from_", "step", "out_start", "out", "of_start", "of_step")
        ),
    )


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
        The states that are entered from each ideal.
    of_start, of_step : int32 [steps + 1], [states]
        The states of each step.
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

    @classmethod
    def of(cls, tsort: TSortGraph) -> Layout:
        """Return the layout of a tSort graph."""
        counts = np.diff(tsort.state_start)
        # Among ideals of as many states, the order of their sets as numbers: threads that lie side by side then mostly
        # read ideals that lie side by side.
        order = np.lexsort((*tsort.masks.T, -counts))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        width = int(counts.max())
        place = np.concatenate([[0], np.cumsum([(counts > w).sum() for w in range(width)])])
        ideal = np.repeat(np.arange(len(counts)), counts)
        which = np.arange(tsort.n_states) - tsort.state_start[ideal]
        at = place[which] + rank[ideal]
        origin, step = np.empty(tsort.n_states, np.int32), np.empty(tsort.n_states, np.int32)
        origin[at] = rank[tsort.state_from]
        step[at] = tsort.state_step
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
        )


def _grouped(values: Ints, count: int) -> tuple[Ints, Ints]:
    """Return the places of each of the values 0 … count - 1, one group after the other, and where groups begin."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(values, minlength=count))])
    return np.argsort(values, kind="stable").astype(np.int32), starts.astype(np.int32)


@dataclass(frozen=True, eq=False)
class DeviceGraph:
    """A layout in the memory of a device."""

    layout: Layout
    device: torch.device

    @cached_property
    def _numbers(self) -> tuple[torch.Tensor, list[int]]:
        layout = self.layout
        parts = [
            layout.place,
            layout.count,
            layout.origin,
            layout.step,
            layout.out_start,
            layout.out,
            layout.of_start,
            layout.of_step,
        ]
        starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])])[:-1]
        return torch.from_numpy(np.concatenate(parts)).to(self.device), starts.tolist()

    @cached_property
    def struct(self) -> bytes:
        """``Graph`` of kernels.cu."""
        layout, (numbers, starts) = self.layout, self._numbers
        sizes = (layout.steps, layout.states, layout.ideals, layout.width, layout.empty, layout.full)
        return bytes(GraphStruct(*sizes, *(numbers.data_ptr() + 4 * start for start in starts)))


_layouts: WeakKeyDictionary[TSortGraph, Layout] = WeakKeyDictionary()
_on_device: WeakKeyDictionary[TSortGraph, dict[torch.device, DeviceGraph]] = WeakKeyDictionary()


def layout_of(tsort: TSortGraph) -> Layout:
    """Return the layout of a tSort graph; made once."""
    if tsort not in _layouts:
        _layouts[tsort] = Layout.of(tsort)
    return _layouts[tsort]


def graph_on(tsort: TSortGraph, device: torch.device) -> DeviceGraph:
    """Return a tSort graph in the memory of a device; copied once."""
    known = _on_device.setdefault(tsort, {})
    if device not in known:
        known[device] = DeviceGraph(layout_of(tsort), device)
    return known[device]
