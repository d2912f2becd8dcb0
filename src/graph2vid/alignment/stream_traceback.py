"""The traceback of a stream: labels of the cheapest alignment so far, of which most are known already."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid._arrays import Floats
from graph2vid.alignment.alignment_result import BACKGROUND
from graph2vid.alignment.automata import AutomatonProblem

Costs64 = NDArray[np.float64]


class Column(NamedTuple):
    """What is known after some clips: the least cost of being at each node, ``best`` [I], and of being in a segment of
    each state, ``state`` [S]: its step was shown in the last clip, or (unless contiguous) is the last one shown."""

    best: Costs64
    state: Costs64


class _Place(NamedTuple):
    """Where a cheapest path passes after some clips: at a node, or in a segment of a state; and its cost from there."""

    rest: float
    is_state: bool
    at: int


class Traceback:
    """The columns of the clips that are not final, and the last path back through them.

    Two paths that pass the same place are the same before it: so a new path is followed only until it meets the last.
    Among the cheapest alignments the labels are the smallest, read from the last clip backwards, as those of
    :func:`graph2vid.align`; paths of the same labels and cost are followed side by side.
    """

    def __init__(self, problem: AutomatonProblem, start: Column, contiguous: bool) -> None:
        self.automaton = problem.automaton
        self.arc = problem.arc
        self.contiguous = contiguous
        self.columns = [start]
        self.costs: list[tuple[Costs64, float]] = []
        self.known: list[int] = []  # the labels of the last path
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

    def labels(self, end: Floats) -> list[int]:
        """Return the labels of all clips here, from the costs of ending at each node, [I]."""
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
        """Return the label of a clip, and where the paths with that label pass before it."""
        before, after = self.columns[clip], self.columns[clip + 1]
        match, drop = self.costs[clip]
        paths: list[tuple[float, int, _Place]] = []  # cost, label, and where it passed, or the state it is in
        for place in places:
            states = [place.at]
            if not place.is_state:
                states = list(range(*self.automaton.state_start[place.at : place.at + 2].tolist()))
                if self.contiguous or not states:
                    rest = place._replace(rest=place.rest + drop)
                    paths.append((float(before.best[place.at] + drop + place.rest), BACKGROUND, rest))
            for state in states:
                step = int(self.automaton.state_step[state])
                shown = float(after.state[state])
                if not self.contiguous:
                    rest = _Place(place.rest + drop, True, state)
                    paths.append((float(before.state[state] + drop + place.rest), BACKGROUND, rest))
                    shown = self._into(before, state)[0] + float(match[step])
                paths.append((shown + place.rest, step, _Place(place.rest + float(match[step]), True, state)))
        cost, label = min(path[:2] for path in paths)
        chosen = dict.fromkeys(path[2] for path in paths if path[:2] == (cost, label))
        if label == BACKGROUND:
            return label, list(chosen)
        return label, list(dict.fromkeys(origin for segment in chosen for origin in self._origins(before, segment)))

    def _into(self, before: Column, state: int) -> tuple[float, Costs64, slice]:
        """Return the least cost before a clip that shows a state's step; the costs of its arcs, and which they are."""
        into = slice(*self.automaton.arc_start[state : state + 2].tolist())
        costs = before.best[self.automaton.arc_from[into]] + self.arc[into]
        return min(float(before.state[state]), float(costs.min())), costs, into

    def _origins(self, before: Column, segment: _Place) -> list[_Place]:
        """Return where the cheapest paths into a segment, or on in it, pass before its clip."""
        least, costs, into = self._into(before, segment.at)
        found = [segment] if before.state[segment.at] == least else []
        for at in (np.flatnonzero(costs == least) + into.start).tolist():
            found.append(_Place(segment.rest + float(self.arc[at]), False, int(self.automaton.arc_from[at])))
        return found
