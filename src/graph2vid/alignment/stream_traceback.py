"""The way back from the last clip of a stream: labels of the cheapest alignment, of which most are known already."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid.alignment.alignment_result import BACKGROUND
from graph2vid.alignment.automata import MachineProblem

Costs64 = NDArray[np.float64]


class Column(NamedTuple):
    """What is known after some clips: the least cost of being at each node, ``best`` [I], and of having shown each
    state's step in the last clip, ``state`` [S]."""

    best: Costs64
    state: Costs64


class _Place(NamedTuple):
    """Where a cheapest way passes after some clips: at a node, or in a run of a state; and what it pays from there."""

    paid: float
    is_state: bool
    at: int


class Walk:
    """The columns of the clips that are not final, and the last way back through them.

    Two ways that pass the same place are the same before it: so a new way is followed only until it meets the last.
    Among the cheapest alignments the labels are the smallest, read from the last clip backwards, as those of
    :func:`graph2vid.align`; ways of the same labels and cost are followed side by side.
    """

    def __init__(self, problem: MachineProblem, start: Column) -> None:
        self.machine = problem.machine
        self.entry = problem.entry
        self.columns = [start]
        self.costs: list[tuple[Costs64, float]] = []
        self.known: list[int] = []  # the labels of the last way
        self.places: list[tuple[bool, int] | None] = [None]  # where it passed, if in one place, after each clip

    @property
    def last(self) -> Column:
        """The column after all clips."""
        return self.columns[-1]

    def add(self, column: Column, match: Costs64, drop: float) -> None:
        """Take the column after one more clip."""
        self.columns.append(column)
        self.costs.append((match, drop))
        self.known.append(BACKGROUND)
        self.places.append(None)

    def forget(self) -> None:
        """Let the first clip go: its label is final."""
        for rows in (self.columns, self.costs, self.known, self.places):
            del rows[0]

    def labels(self, end: Costs64) -> list[int]:
        """Return the labels of all clips here, from the prices of ending at each node, [I]."""
        total = self.last.best + end
        nodes = np.flatnonzero(total == total.min())
        places = [_Place(float(end[node]), False, int(node)) for node in nodes]
        for clip in range(len(self.costs) - 1, -1, -1):
            place = (places[0].is_state, places[0].at) if len(places) == 1 else None
            if place is not None and place == self.places[clip + 1]:
                break
            self.places[clip + 1] = place
            self.known[clip], places = self._back(clip, places)
        return list(self.known)

    def _back(self, clip: int, places: list[_Place]) -> tuple[int, list[_Place]]:
        """Return the label of a clip, and where the ways with that label pass before it."""
        before, after = self.columns[clip], self.columns[clip + 1]
        match, drop = self.costs[clip]
        ways: list[tuple[float, int, _Place]] = []  # cost, label, and where it passed, or the state it is in
        for place in places:
            if place.is_state:
                states = [place.at]
            else:
                states = list(range(*self.machine.state_start[place.at : place.at + 2].tolist()))
                rest = _Place(place.paid + drop, False, place.at)
                ways.append((float(before.best[place.at] + drop + place.paid), BACKGROUND, rest))
            for state in states:
                step = int(self.machine.state_step[state])
                run = _Place(place.paid + float(match[step]), True, state)
                ways.append((float(after.state[state] + place.paid), step, run))
        cost, label = min(way[:2] for way in ways)
        chosen = dict.fromkeys(way[2] for way in ways if way[:2] == (cost, label))
        if label == BACKGROUND:
            return label, list(chosen)
        return label, list(dict.fromkeys(origin for run in chosen for origin in self._origins(before, run)))

    def _origins(self, before: Column, run: _Place) -> list[_Place]:
        """Return where the cheapest ways into a run, or on in it, pass before its clip."""
        entries = slice(*self.machine.entry_start[run.at : run.at + 2].tolist())
        nodes, prices = self.machine.entry_from[entries], self.entry[entries]
        costs = before.best[nodes] + prices
        least = min(float(before.state[run.at]), float(costs.min()))
        found = [run] if before.state[run.at] == least else []
        for at in np.flatnonzero(costs == least).tolist():
            found.append(_Place(run.paid + float(prices[at]), False, int(nodes[at])))
        return found
