"""Clip by clip, while the video is still running: `Stream`."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid._arrays import Floats, as_floats
from graph2vid._deprecated import renamed
from graph2vid.alignment import automata
from graph2vid.alignment._reference import Column
from graph2vid.alignment.alignment_result import BACKGROUND, Alignment
from graph2vid.alignment.anytime import Answer
from graph2vid.alignment.automata import AutomatonProblem, automaton_problem
from graph2vid.alignment.backends import Resources, memory_bound
from graph2vid.alignment.clip_costs import ClipCosts, check_gamma
from graph2vid.alignment.problem import Problem
from graph2vid.errors import InfeasibleError, InputError, TooLargeError
from graph2vid.flow import FlowGraph, bits
from graph2vid.tsort import TSortGraph

Costs64 = NDArray[np.float64]

_NEVER = -1e30
"""The log-weight of what is impossible: a number, since -∞ - -∞ is none."""

_NOTHING = -700.0
"""Beside 1 the exponential of this is nothing; of less it is below what numbers hold, and takes three times as long."""


class Stream:
    """A video that is aligned while it runs.

    Clips are pushed one by one. At any time it can be asked what is going on, which steps are done and which are
    likely to come next; the sums over all alignments that this needs are brought up to date then. The label of a clip
    becomes final ``lag`` clips later: it is that of the cheapest alignment of the clips until then. Where the lag
    covers the video, :meth:`finish` returns the same as :func:`align` of all of it.

    Parameters
    ----------
    flow : FlowGraph or TSortGraph
        The procedure, of K steps.
    skip, repeat, violation, contiguous, memory_limit
        As for :func:`align`.
    lag : int, optional
        After how many further clips a label is final, from 0; None: when the video ends. A column of the table is
        kept for each clip that is not final.
    gamma : float
        Temperature of the posterior, as for :func:`posterior`.
    """

    @renamed(breaking="violation")
    def __init__(
        self,
        flow: FlowGraph | TSortGraph,
        skip: Any = None,
        *,
        lag: int | None = None,
        repeat: Any = None,
        violation: float = 1.0,
        contiguous: bool = True,
        gamma: float = 1.0,
        memory_limit: int | None = None,
    ) -> None:
        if lag is not None and (isinstance(lag, bool) or not isinstance(lag, int | np.integer) or lag < 0):
            raise InputError(f"lag must be a whole number of clips from 0, or None, not {lag!r}")
        graph = flow.flow if isinstance(flow, TSortGraph) else flow
        # A clip stands for those to come; what is checked beside it is checked for all of them.
        one_clip = np.zeros((len(graph) if isinstance(graph, FlowGraph) else 0, 1))
        self._asked = Problem(graph, one_clip, 0.0, skip, repeat, None, violation, (), contiguous)
        self._problem = automaton_problem(self._asked, self._asked.costs, memory_limit, tables=2)
        self._options: dict[str, Any] = {"method": "stream", "lag": lag, "contiguous": self._asked.contiguous}
        self._options |= {"dtype": "float64"} | automata.report(self._problem)
        self.flow, self.lag = graph, lag
        self._recursion = _Recursion(self._problem, check_gamma(gamma), self._asked.contiguous)
        start, self._summed = self._recursion.start()
        self._n_summed, self._is_over = 0, False
        self._traceback = _Traceback(self._problem, start, self._asked.contiguous)
        self._final: list[int] = []
        self._costs: list[tuple[Costs64, float]] = []
        automaton = self._problem.automaton
        column = 8 * (automaton.n_nodes + automaton.n_states + 2 * len(graph)) + 1024
        self._most_clips = memory_bound(memory_limit) // column

    def __len__(self) -> int:
        """Return the number of clips so far."""
        return len(self._costs)

    def __repr__(self) -> str:
        return f"Stream({self.flow!r}, {len(self)} clips, {len(self._final)} of them final)"

    def push(self, match: ArrayLike, drop: float) -> int | None:
        """Add a clip.

        Parameters
        ----------
        match : array [K]
            How badly each step explains the clip; +∞ is forbidden.
        drop : float
            The cost of calling it background; +∞: it shows a step.

        Returns
        -------
        int or None
            The label of the clip ``lag`` clips ago, which is final now (a step, or -1); None while there is none.

        Raises
        ------
        InputError
            For a wrong shape, NaN or -∞; after :meth:`finish`.
        InfeasibleError
            When no alignment is possible any more; the clip is not added.
        TooLargeError
            When the clips that are not final fill the memory; the clip is not added.
        """
        if self._is_over:
            raise InputError("the stream is finished: begin another one")
        if len(self) - len(self._final) >= self._most_clips:
            raise TooLargeError(
                f"{self._most_clips:,} clips that are not final fill the memory of this stream: "
                "begin it with a lag, or a higher memory_limit"
            )
        shown = as_floats(match, "match").astype(np.float64)
        background = as_floats(drop, "drop").astype(np.float64)
        if shown.shape != (len(self.flow),):
            raise InputError(f"match has shape {shown.shape}; a clip has a cost for each of the {len(self.flow)} steps")
        if background.size != 1:
            raise InputError(f"drop has shape {background.shape}; a clip has one cost as background")
        dropped = float(background.reshape(()))
        if not (shown.min() > -np.inf and dropped > -np.inf):
            raise InputError(f"clip {len(self)}: costs are finite or +inf")
        column = self._recursion.advance(self._traceback.last, shown, dropped)
        if not column.best.min() < np.inf:
            raise InfeasibleError(f"clip {len(self)}: no alignment is possible any more with this clip")
        self._traceback.add(column, shown, dropped)
        self._costs.append((shown, dropped))
        if self.lag is None or len(self) - len(self._final) <= self.lag:
            return None
        label = int(self._traceback.labels(np.zeros(len(column.best)))[0])
        self._traceback.forget()
        self._final.append(label)
        return label

    @property
    def labels(self) -> NDArray[np.int64]:
        """int64 [clips so far]: the final labels, and for the clips since then those of the cheapest alignment."""
        since = self._traceback.labels(np.zeros(len(self._problem.end))) if len(self) else []
        return np.array([*self._final, *since], np.int64)

    def _sums(self) -> _Soft:
        """Return the weights of all beginnings, for which the clips since the last time are added."""
        for shown, dropped in self._costs[self._n_summed :]:
            self._summed = self._recursion.advance_soft(self._summed, shown, dropped)
        self._n_summed = len(self)
        return self._summed

    @property
    def posterior(self) -> Costs64:
        """[K+1] how probable each label of the last clip is, from the clips so far; background last."""
        state, rest = self._sums().shares()
        mass = np.bincount(self._problem.automaton.state_step, state, len(self.flow) + 1)
        mass[-1] = rest.sum() if len(self) else 1.0
        return np.asarray(mass, np.float64)

    @property
    def done(self) -> Costs64:
        """[K] how probable it is that each step is over: it was shown, or its time has passed."""
        over = self._sums().nodes() @ self._recursion.done - self.posterior[:-1]
        return np.clip(over, 0.0, 1.0)

    @property
    def next(self) -> Costs64:
        """[K] how probable each step is as the next new one; the sum is less than 1 where all may be done.

        Steps that may follow alike are alike: only the skip costs of what would be passed over make a difference.
        """
        node, step, share = self._recursion.first_segments
        return np.asarray(np.bincount(step, self._sums().nodes()[node] * share, len(self.flow)), np.float64)

    def finish(self) -> Alignment:
        """End the video; the clips that are not final get the labels of the cheapest alignment of all clips.

        Returns
        -------
        Alignment
            Its ``cost`` is that of the cheapest alignment, from which labels that were final before may differ.

        Raises
        ------
        InfeasibleError
            Where what must be shown was not.
        """
        if self._is_over or not self._costs:
            raise InputError("the stream is finished already" if self._is_over else "the video has no clips")
        end = self._problem.end
        match, drop = (np.ascontiguousarray(np.stack(rows, axis=-1)) for rows in zip(*self._costs, strict=True))
        whole = self._asked.of_clips(ClipCosts(match, drop, self._asked.costs.skip))
        found = Answer(float((self._traceback.last.best + end).min()), None, 0.0, {})
        if not self._final:  # ties that rounding has broken are broken as `align` breaks them
            with suppress(TooLargeError):
                found = whole.solve("exact", False, Resources.check())
        if found.labels is None and found.cost < np.inf:
            found = found._replace(labels=np.array([*self._final, *self._traceback.labels(end)], np.int64))
        result = whole.result(found._replace(options=self._options))
        self._is_over = True
        return result


# -- the traceback: labels of the cheapest alignment so far, of which most are known already ------------------------


class _Place(NamedTuple):
    """Where a cheapest path passes after some clips: at a node, or in a segment of a state; and its cost from there."""

    rest: float
    is_state: bool
    at: int


class _Traceback:
    """The columns of the clips that are not final, and the last path back through them.

    Two paths that pass the same place are the same before it: so a new path is followed only until it meets the last.
    Among the cheapest alignments the labels are the smallest, read from the last clip backwards, as those of
    :func:`graph2vid.align`; paths of the same labels and cost are followed side by side.
    """

    def __init__(self, problem: AutomatonProblem, start: Column, contiguous: bool) -> None:
        self.automaton, self.arc, self.contiguous = problem.automaton, problem.arc, contiguous
        self.columns = [start]  # by node, and by state
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


# -- the recursion ----------------------------------------------------------------------------------------------


class _Soft(NamedTuple):
    """Log-weights of all beginnings of a video: ``state`` that are in a segment of a state, ``shown`` whose last clip
    shows its step (the same if contiguous), ``rest`` whose last clip is background, by node, ``best`` all, by node."""

    state: Costs64
    shown: Costs64
    rest: Costs64
    best: Costs64

    def shares(self) -> tuple[Costs64, Costs64]:
        """Return the probabilities of states and of background by node."""
        peak = float(self.best.max())
        state, rest = (np.exp(np.maximum(part - peak, _NOTHING)) for part in (self.shown, self.rest))
        total = state.sum() + rest.sum()
        return state / total, rest / total

    def nodes(self) -> Costs64:
        """Return the probabilities of nodes."""
        weight = np.exp(np.maximum(self.best - float(self.best.max()), _NOTHING))
        return np.asarray(weight / weight.sum(), np.float64)


class _Recursion:
    """From the columns after some clips to those after one more, the cheapest and the sum of all.

    What is as long as the states is computed in place: fresh memory takes longer than the arithmetic.
    """

    def __init__(self, problem: AutomatonProblem, gamma: float, contiguous: bool) -> None:
        automaton = problem.automaton
        self.problem, self.automaton, self.gamma, self.contiguous = problem, automaton, gamma, contiguous
        self.step, self.origin = automaton.state_step.astype(np.intp), automaton.arc_from.astype(np.intp)
        self.first_arcs = automaton.arc_start[:-1]
        self.first_states = automaton.state_start[1:-1]  # of every node but the first, which has none
        self.shown_at = automaton.node_of_state - 1  # among the nodes that have states
        self.is_single = len(self.origin) == automaton.n_states  # one way into each state
        self.weight = np.maximum(-problem.arc / gamma, _NEVER)
        # Repeats from a state's own node: what has just shown the step goes on, and does not repeat it.
        stays = automaton.node_of_state[automaton.state_of_arc] == self.origin
        self.repeats, self.onward = np.flatnonzero(stays), np.flatnonzero(~stays)
        self.spare, self.spare_arcs = np.empty((2, automaton.n_states)), np.empty((2, len(self.origin)))

    def start(self) -> tuple[Column, _Soft]:
        nodes, states = self.automaton.n_nodes, self.automaton.n_states
        best, rest = np.full(nodes, np.inf), np.full(nodes, _NEVER)
        best[0] = rest[0] = 0.0
        never = np.full(states, _NEVER)
        return Column(best, np.full(states, np.inf)), _Soft(never, never, rest, rest)

    def advance(self, before: Column, match: Costs64, drop: float) -> Column:
        begun = _take(before.best, self.origin, self.spare_arcs[0])
        begun += self.problem.arc
        if not self.is_single:
            begun = np.minimum.reduceat(begun, self.first_arcs, out=self.spare[0])
        state = np.minimum(begun, before.state)
        state += _take(match, self.step, self.spare[1])
        best = before.best + drop
        if self.contiguous:
            np.minimum(best[1:], np.minimum.reduceat(state, self.first_states), out=best[1:])
        else:
            np.minimum(state, before.state + drop, out=state)
            np.minimum.reduceat(state, self.first_states, out=best[1:])
        return Column(best, state)

    def advance_soft(self, before: _Soft, match: Costs64, drop: float) -> _Soft:
        """Go on from ``before``, which is lost: its memory is used again."""
        begun = _take(before.best, self.origin, self.spare_arcs[0])
        begun += self.weight
        if len(self.repeats):
            whole = before.best[self.origin[self.repeats]]
            own = np.minimum(before.state[self.automaton.state_of_arc[self.repeats]], whole)
            begun[self.repeats] += np.log(np.maximum(-np.expm1(own - whole), 1e-300))
        if not self.is_single:
            begun = _log_sums(begun, self.first_arcs, self.automaton.state_of_arc, self.spare_arcs[1])
        dropped = max(-drop / self.gamma, _NEVER)
        kept = None if self.contiguous else before.state + dropped
        shown = _log_add(begun, before.state, self.spare[0])
        shown += _take(np.maximum(-match / self.gamma, _NEVER), self.step, self.spare[1])
        rest = before.best + dropped  # what is at a node stays there
        best = rest.copy()
        sums = _log_sums(shown, self.first_states, self.shown_at, self.spare[1])
        best[1:] = _log_add(sums, rest[1:].copy(), np.empty_like(sums))
        state = shown if kept is None else _log_add(shown, kept, self.spare[0])
        return _Soft(state, shown, rest, best)

    @cached_property
    def done(self) -> Costs64:
        """[I, K] 1 where a step has begun at a node, or can come no more."""
        ancestors = self.automaton.flow.sure.ancestors
        done = np.zeros((self.automaton.n_nodes, len(self.automaton.flow)))
        nodes, first = np.unique(
            self.automaton.node_of_state[self.automaton.state_of_arc[self.onward]], return_index=True
        )
        for node, arc in zip(nodes.tolist(), self.onward[first].tolist(), strict=True):
            step = int(self.step[self.automaton.state_of_arc[arc]])
            done[node] = done[self.origin[arc]]
            done[node, [step, *bits(ancestors[step])]] = 1.0
        return done

    @cached_property
    def first_segments(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Costs64]:
        """Ways to go on with a step that was not there yet: node, step, and the share of those out of the node."""
        node, weight = self.origin[self.onward], self.weight[self.onward]
        peak = np.full(self.automaton.n_nodes, _NEVER)
        np.maximum.at(peak, node, weight)
        weight = np.where(weight > _NEVER, np.exp(np.maximum(weight - peak[node], _NOTHING)), 0.0)
        total = np.bincount(node, weight, self.automaton.n_nodes)
        share = np.divide(weight, total[node], out=np.zeros_like(weight), where=total[node] > 0)
        return (node, self.step[self.automaton.state_of_arc[self.onward]], share)


def _take(values: Floats, at: NDArray[np.intp], into: Costs64) -> Costs64:
    return np.take(values, at, out=into, mode="clip")  # the indices are good: with "raise" it would be copied


def _log_add(a: Costs64, b: Costs64, spare: Costs64) -> Costs64:
    """Return log(exp a + exp b) in the memory of b, that of ``spare`` being used."""
    high = np.maximum(a, b, out=spare)
    low = np.minimum(a, b, out=b)
    low -= high
    np.maximum(low, _NOTHING, out=low)
    np.exp(low, out=low)
    low += 1.0
    np.log(low, out=low)
    low += high
    return low


def _log_sums(values: Costs64, starts: NDArray[np.int64], group: NDArray[np.int64], spare: Costs64) -> Costs64:
    """Return log Σ exp over consecutive groups, none of them empty."""
    peak = np.maximum.reduceat(values, starts)
    above = np.subtract(values, _take(peak, group, spare), out=spare)
    np.maximum(above, _NOTHING, out=above)
    total: Costs64 = peak + np.log(np.add.reduceat(np.exp(above, out=above), starts))
    return total
