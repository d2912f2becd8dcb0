"""Graph-Drop-DTW in readable NumPy: clip by clip, all states of a column at once.

Every other backend is compared with this file. The inputs have been validated by the caller: arrays are
C-contiguous, of one floating type (which is the type of the computation), free of NaN and -∞.

A *column* is what is known after the first ``j`` clips. It holds two vectors:

``best`` [I]
    the cheapest way to have exactly the steps of an ideal done;
``state`` [S]
    contiguous: the cheapest way whose last clip shows the state's step; otherwise: the cheapest way whose
    last shown step is the state's step, background since then allowed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid._arrays import Floats
from graph2vid._stopping import go_on
from graph2vid.flow import bits
from graph2vid.tsort import flags_of, sums_over

if TYPE_CHECKING:
    from graph2vid.alignment.clip_costs import ClipCosts
    from graph2vid.tsort import TSortGraph

Integers = NDArray[np.integer[Any]]


class Column(NamedTuple):
    """What is known after some clips."""

    best: Floats
    state: Floats


class _Recursion:
    """From the column after ``clip`` clips to the next one: the cheapest ways, or (see :class:`_Soft`) all of them."""

    never = np.inf
    plus: Any = np.minimum
    plus_all: Any = np.minimum.reduceat

    def __init__(self, tsort: TSortGraph, costs: ClipCosts, contiguous: bool) -> None:
        self.tsort, self.contiguous = tsort, contiguous
        self.match, self.drop, self.skip = costs
        begin = np.zeros(tsort.n_states) if tsort.state_cost is None else tsort.state_cost
        self.begin_cost = begin.astype(self.match.dtype)
        self.first_states = tsort.state_start[1:-1]  # of every ideal but the empty one, which has none

    def start(self) -> Column:
        best = np.full(self.tsort.n_ideals, self.never, self.match.dtype)
        best[0] = 0
        self._waive(best)
        return Column(best, np.full(self.tsort.n_states, self.never, self.match.dtype))

    def shown(self, before: Column, clip: int, states: Any = slice(None)) -> Floats:
        """Cost of each of ``states`` when ``clip`` shows its step."""
        step, came_from = self.tsort.state_step[states], self.tsort.state_from[states]
        begun = before.best[came_from] + self.begin_cost[states]
        cost: Floats = self.match[step, clip] + np.minimum(begun, before.state[states])
        return cost

    def advance(self, before: Column, clip: int) -> Column:
        state = self.shown(before, clip)
        best = before.best + self.drop[clip]  # background
        if self.contiguous:
            best[1:] = self.plus(self.plus_all(state, self.first_states), best[1:])
        else:
            state = self.plus(state, before.state + self.drop[clip])
            best[1:] = self.plus_all(state, self.first_states)
        self._waive(best)
        return Column(best, state)

    def _waive(self, best: Floats) -> None:
        """Let every ideal also be reached by waiving one of its last steps, small ideals first."""
        if self.skip is None:
            return
        tsort = self.tsort
        for start, stop in zip(tsort.level_start[1:-1], tsort.level_start[2:], strict=True):
            states = slice(tsort.state_start[start], tsort.state_start[stop])
            waived = best[tsort.state_from[states]] + self.skip[tsort.state_step[states]]
            cheapest = np.minimum.reduceat(waived, tsort.state_start[start:stop] - states.start)
            np.minimum(best[start:stop], cheapest, out=best[start:stop])


class _Columns:
    """The columns after 0, 1, …, N clips, of which every ``spacing``-th is kept.

    The others are recomputed a whole segment at a time, which suits a reader that walks backwards.
    """

    def __init__(self, recursion: _Recursion, spacing: int) -> None:
        self.recursion, self.spacing, self.segment_number = recursion, spacing, -1
        self.kept: list[Column] = []
        self.segment: list[Column] = []

    def __getitem__(self, clips: int) -> Column:
        number, offset = divmod(clips, self.spacing)
        if number != self.segment_number:
            self.segment, self.segment_number = [self.kept[number]], number
        while len(self.segment) <= offset:
            clip = number * self.spacing + len(self.segment) - 1
            self.segment.append(self.recursion.advance(self.segment[-1], clip))
        return self.segment[offset]


def solve(
    tsort: TSortGraph, costs: ClipCosts, contiguous: bool, cost_only: bool = False, checkpoint: int | None = None
) -> tuple[float, NDArray[np.int64] | None]:
    """Find the cheapest alignment.

    Parameters
    ----------
    tsort
        The compiled procedure: K steps, I ideals, S states.
    costs
        Of K steps and N clips.
    contiguous
        Whether a step's clips form one unbroken segment; otherwise background may lie inside a step.
    cost_only
        Keep two columns and return no labels.
    checkpoint
        Keep only every ``checkpoint``-th column, and recompute the others for the labels.

    Returns
    -------
    cost
        The smallest cost, ∞ where no finite alignment exists.
    labels : int64 [N] or None
        The step of each clip, -1 for background; among the cheapest the lexicographically smallest, read from
        the last clip backwards. None where there is no finite alignment, or with ``cost_only``.
    """
    recursion = _Recursion(tsort, costs, contiguous)
    columns = _Columns(recursion, checkpoint or 1)
    column, n_clips = recursion.start(), len(costs.drop)
    for clip in range(n_clips):
        go_on()
        if not cost_only and clip % columns.spacing == 0:
            columns.kept.append(column)
        column = recursion.advance(column, clip)
    cost = float(column.best[-1])
    if not math.isfinite(cost):
        return math.inf, None
    return cost, None if cost_only else _labels(recursion, columns, column, n_clips)


def _labels(recursion: _Recursion, columns: _Columns, after: Column, n_clips: int) -> NDArray[np.int64]:
    """Trace back from the last clip, and at each clip take the cheapest label, the smallest one first.

    Paths of equal labels and cost are followed side by side. A *place* is where a path passes after some clips: an
    ideal, or a state whose step the next clip shows; with it goes the cost of the rest of the path.
    """
    tsort, contiguous, zero = recursion.tsort, recursion.contiguous, recursion.match.dtype.type(0)
    labels = np.empty(n_clips, np.int64)
    places: dict[tuple[bool, int], Any] = {(False, tsort.n_ideals - 1): zero}
    for clip in range(n_clips - 1, -1, -1):
        go_on()
        before, drop = columns[clip], recursion.drop[clip]
        paths: list[tuple[Any, int, tuple[bool, int], Any]] = []  # cost, label, place, and cost of the rest from there
        for (in_state, number), rest in places.items():
            states: Iterable[tuple[int, Any]] = [(number, zero)] if in_state else ()
            if not in_state and (contiguous or number == 0):
                background = before.best[number] + drop
                paths.append((background + rest, -1, (False, number), rest + drop))
                if background != after.best[number]:
                    states = _behind(recursion, after, number)
            elif not in_state:
                states = _behind(recursion, after, number)
                if recursion.skip is not None:  # nothing was shown before
                    waived = recursion.skip[list(bits(tsort.mask(number)))].sum()
                    paths.append((before.best[0] + drop + waived + rest, -1, (False, 0), rest + waived + drop))
            for state, waived in states:
                shown = after.state[state] if contiguous else recursion.shown(before, clip, state)
                if not contiguous:
                    background = before.state[state] + drop + (rest + waived)
                    paths.append((background, -1, (True, state), rest + waived + drop))
                paths.append((shown + (rest + waived), int(tsort.state_step[state]), (True, state), rest + waived))
        cost, label = min(path[:2] for path in paths)
        labels[clip] = label
        chosen = {path[2]: path[3] for path in paths if path[:2] == (cost, label)}
        places = chosen if label < 0 else {}
        for (_, state), rest in chosen.items() if label >= 0 else ():
            origin, begin = int(tsort.state_from[state]), recursion.begin_cost[state]
            rest = rest + recursion.match[label, clip]
            begun, goes_on = before.best[origin] + begin, before.state[state]
            if begun <= goes_on:
                places[False, origin] = rest + begin
            if goes_on <= begun:
                places[True, state] = rest
        after = before
    return labels


def _behind(recursion: _Recursion, column: Column, ideal: int) -> Iterator[tuple[int, Any]]:
    """Yield the states that may be the last to show a step where an ideal is done, and what is waived after each.

    Sets of steps are waived in falling topological number, so that each comes once, as long as that is cheapest. Only
    those are waived after a state that must follow its step, or whose being done would raise its cost, and
    what must follow these: all others may as well be waived before.
    """
    tsort, skip = recursion.tsort, recursion.skip
    certain = tsort.flow.sure
    rank = {step: number for number, step in enumerate(certain.topological_order)}
    zero = recursion.match.dtype.type(0)
    size = abs(column.best[ideal]) + (0 if skip is None else np.abs(skip[np.isfinite(skip)]).sum())
    most = column.best[ideal] + 64 * tsort.n_steps * np.finfo(column.best.dtype).eps * size
    waiting: list[tuple[int, Any, tuple[int, ...]]] = [(ideal, zero, ())]
    while waiting:
        ideal, waived, steps = waiting.pop()
        for state in range(tsort.state_start[ideal], tsort.state_start[ideal + 1]):
            last, origin = int(tsort.state_step[state]), int(tsort.state_from[state])
            late = 0  # the steps that are waived after this state for a reason
            for step in steps:
                if certain.descendants[last] >> step & 1 or (tsort.order is not None and tsort.order[last, step] > 0):
                    late |= certain.descendants[step] | 1 << step
            if all(late >> step & 1 for step in steps):
                yield state, waived
            if skip is None or (steps and rank[last] > rank[steps[-1]]):
                continue
            if column.best[origin] + (waived + skip[last]) <= most:
                waiting.append((origin, waived + skip[last], (*steps, last)))


def _log_sum_exp(values: Floats, starts: Integers) -> Floats:
    """log Σ exp over consecutive groups, none of them empty, that begin at ``starts``; -∞ is left out."""
    peak = np.maximum.reduceat(values, starts)
    shift = np.where(np.isfinite(peak), peak, 0.0)
    sizes = np.diff(starts, append=len(values))
    with np.errstate(divide="ignore"):
        total: Floats = shift + np.log(np.add.reduceat(np.exp(values - np.repeat(shift, sizes)), starts))
    return total


class _Soft(_Recursion):
    """The recursion in the log domain, in float64, forwards and backwards; each label sequence is one path.

    In place of the free waiving of the hard form, missing ancestors are waived when a step begins, and what
    was never shown is waived after the last clip: a label sequence then says by itself when each step is
    waived.
    """

    never = -np.inf
    plus = np.logaddexp
    plus_all = staticmethod(_log_sum_exp)

    def __init__(self, tsort: TSortGraph, costs: ClipCosts, contiguous: bool, gamma: float) -> None:
        wide = costs.astype(np.float64)
        skip = np.full(tsort.n_steps, np.inf) if wide.skip is None else wide.skip
        super().__init__(
            tsort, wide._replace(match=-wide.match / gamma, drop=-wide.drop / gamma, skip=None), contiguous
        )
        self.arcs = tsort.skip_arcs(np.isfinite(skip))
        self.weight = -sums_over(flags_of(self.arcs.waived, tsort.n_steps), skip) / gamma
        self.weight -= self.begin_cost[self.arcs.state] / gamma
        self.first_arc_in = np.searchsorted(self.arcs.state, np.arange(tsort.n_states))
        self.by_origin = np.argsort(self.arcs.origin, kind="stable")
        # Every ideal but the full one has an arc out.
        self.first_arc_out = np.searchsorted(self.arcs.origin[self.by_origin], np.arange(tsort.n_ideals - 1))
        self.end = -sums_over(~flags_of(tsort.masks, tsort.n_steps), skip) / gamma

    def begun(self, before: Column) -> Floats:
        """[S] log weight of all beginnings after which the state's step begins."""
        return _log_sum_exp(before.best[self.arcs.origin] + self.weight, self.first_arc_in)

    def shown(self, before: Column, clip: int, states: Any = slice(None)) -> Floats:
        """[S] log weight of all beginnings whose ``clip`` shows the state's step."""
        weight: Floats = self.match[self.tsort.state_step, clip] + np.logaddexp(self.begun(before), before.state)
        return weight

    def finish(self) -> Column:
        return Column(self.end, self.end[self.tsort.ideal_of_state])

    def retreat(self, after: Column, clip: int) -> Column:
        """From the weights of all endings after ``clip`` to those that include it."""
        drop = self.drop[clip]
        stay = self.match[self.tsort.state_step, clip] + after.state
        best = np.full(self.tsort.n_ideals, -np.inf)
        begins = (self.weight + stay[self.arcs.state])[self.by_origin]
        best[:-1] = _log_sum_exp(begins, self.first_arc_out)
        if self.contiguous:
            best = np.logaddexp(best, after.best + drop)
        else:
            best[0] = np.logaddexp(best[0], after.best[0] + drop)
            stay = np.logaddexp(stay, after.state + drop)
        return Column(best, np.logaddexp(best[self.tsort.ideal_of_state], stay))

    def posterior(self, before: Column, after: Column, clip: int) -> tuple[Floats, Floats]:
        """[K+1] probability of each label at ``clip``, background last, and [K] of each step's beginning there."""
        n_steps = self.tsort.n_steps
        shown = self.shown(before, clip) + after.state
        if self.contiguous:
            background = before.best + self.drop[clip] + after.best
        else:
            background = np.append(before.state, before.best[0]) + self.drop[clip]
            background = background + np.append(after.state, after.best[0])
        peak = max(shown.max(), background.max())
        mass = np.bincount(self.tsort.state_step, np.exp(shown - peak), n_steps + 1)
        mass[n_steps] = np.exp(background - peak).sum()
        begun = self.begun(before) + self.match[self.tsort.state_step, clip] + after.state
        start = np.bincount(self.tsort.state_step, np.exp(begun - peak), n_steps)
        return mass / mass.sum(), start / mass.sum()


def forward_backward(
    tsort: TSortGraph, costs: ClipCosts, contiguous: bool, gamma: float
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Sum over all alignments, each label sequence once, with weight exp(-cost / gamma); in float64.

    Parameters
    ----------
    tsort, costs, contiguous
        As for :func:`solve`.
    gamma
        Temperature of the soft minimum, in units of cost; > 0.

    Returns
    -------
    cost
        -gamma · log of the sum; ∞ where no finite alignment exists.
    probability : float64 [K+1, N]
        The probability of each label at each clip, background last; each column sums to 1 (zeros where there
        is no finite alignment).
    start : float64 [K, N]
        The probability that each step begins at each clip.
    """
    n_steps, n_clips = costs.match.shape
    soft = _Soft(tsort, costs, contiguous, gamma)
    columns = [soft.start()]
    for clip in range(n_clips):
        go_on()
        columns.append(soft.advance(columns[-1], clip))
    after = soft.finish()
    total = float(_log_sum_exp(columns[-1].best + after.best, np.zeros(1, np.intp))[0])
    probability, start = np.zeros((n_steps + 1, n_clips)), np.zeros((n_steps, n_clips))
    if not math.isfinite(total):
        return math.inf, probability, start
    for clip in range(n_clips - 1, -1, -1):
        go_on()
        probability[:, clip], start[:, clip] = soft.posterior(columns[clip], after, clip)
        after = soft.retreat(after, clip)
    return -gamma * total, probability, start
