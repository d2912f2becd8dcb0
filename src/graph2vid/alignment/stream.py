"""Clip by clip, while the video is still running: `Stream`."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid._arrays import as_floats
from graph2vid.alignment import automata
from graph2vid.alignment.alignment_result import Alignment
from graph2vid.alignment.automata import MachineProblem, check_all, machine_problem
from graph2vid.alignment.backends import memory_bound
from graph2vid.alignment.facade import align
from graph2vid.alignment.problem import Problem
from graph2vid.alignment.soft import check_gamma
from graph2vid.alignment.solvers import check_cost
from graph2vid.alignment.stream_traceback import Column, Walk
from graph2vid.errors import InfeasibleError, InputError, TooLargeError
from graph2vid.flow import FlowGraph
from graph2vid.flow.order import bits
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
    skip, repeat, breaking, memory_limit
        As for :func:`align`.
    lag : int, optional
        After how many further clips a label is final, from 0; None: when the video ends. A column of the table is
        kept for each clip that is not final.
    gamma : float
        How soft the minimum is that probabilities come from, as for :func:`posterior`.
    """

    def __init__(
        self,
        flow: FlowGraph | TSortGraph,
        skip: Any = None,
        *,
        lag: int | None = None,
        repeat: Any = None,
        breaking: float = 1.0,
        gamma: float = 1.0,
        memory_limit: int | None = None,
    ) -> None:
        if lag is not None and (isinstance(lag, bool) or not isinstance(lag, int | np.integer) or lag < 0):
            raise InputError(f"lag must be a whole number of clips from 0, or None, not {lag!r}")
        graph = flow.flow if isinstance(flow, TSortGraph) else flow
        steps = len(graph) if isinstance(graph, FlowGraph) else 0
        nothing = np.zeros((steps, 1))  # a clip, for what checks prices beside costs
        problem, self._extras = check_all(graph, nothing, 0.0, skip, repeat, None, breaking, ())
        self._problem = machine_problem(graph, problem, self._extras, memory_limit, tables=2)
        self._options: dict[str, Any] = {"method": "stream", "lag": lag, "contiguous": True, "dtype": "float64"}
        self._options |= automata.report(self._problem)
        self._skip = problem.skip
        self.flow = graph
        self.lag = lag
        self._recursion = _Recursion(self._problem, check_gamma(gamma))
        start, self._summed = self._recursion.start()
        self._n_summed = 0
        self._walk = Walk(self._problem, start)
        self._final: list[int] = []
        self._costs: list[tuple[Costs64, float]] = []
        self._is_over = False
        column = 8 * (self._problem.machine.n_nodes + self._problem.machine.n_states + 2 * len(graph)) + 1024
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
            The price of calling it background; +∞: it shows a step.

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
            raise InputError(f"drop has shape {background.shape}; a clip has one price as background")
        dropped = float(background.reshape(()))
        if not (shown.min() > -np.inf and dropped > -np.inf):
            raise InputError(f"clip {len(self)}: costs are finite or +inf")
        column = self._recursion.advance(self._walk.last, shown, dropped)
        if not column.best.min() < np.inf:
            raise InfeasibleError(f"clip {len(self)}: no alignment is possible any more with this clip")
        self._walk.add(column, shown, dropped)
        self._costs.append((shown, dropped))
        if self.lag is None or len(self) - len(self._final) <= self.lag:
            return None
        label = int(self._walk.labels(np.zeros(len(column.best)))[0])
        self._walk.forget()
        self._final.append(label)
        return label

    @property
    def labels(self) -> NDArray[np.int64]:
        """int64 [clips so far]: the final labels, and for the clips since then those of the cheapest alignment."""
        since = self._walk.labels(np.zeros(len(self._problem.end))) if len(self) else []
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
        mass = np.bincount(self._problem.machine.state_step, state, len(self.flow) + 1)
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

        Steps that may follow alike are alike: only the skip prices of what would be passed over make a difference.
        """
        ways = self._recursion.first_runs
        mass = np.bincount(ways.step, self._sums().nodes()[ways.node] * ways.share, len(self.flow))
        return np.asarray(mass, np.float64)

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
        cost = float((self._walk.last.best + end).min())
        match, drop = np.column_stack([shown for shown, _ in self._costs]), np.array([drop for _, drop in self._costs])
        check_cost(self.flow, Problem(match, drop, self._skip), self._extras, cost)
        labels = None
        if not self._final:  # ties that rounding has broken are broken as `align` breaks them
            with suppress(TooLargeError):
                found = align(
                    self.flow,
                    match,
                    drop,
                    self._skip,
                    method="exact",
                    repeat=self._extras.repeat,
                    breaking=self._extras.breaking,
                )
                cost, labels = found.cost, found.labels
        if labels is None:
            labels = np.array([*self._final, *self._walk.labels(end)], np.int64)
            labels.setflags(write=False)
        self._is_over = True
        return Alignment(self.flow, cost, labels, options=self._options)


class _Soft(NamedTuple):
    """Log-weights of all beginnings of a video: ``state`` whose last clip shows a state's step, ``rest`` whose last
    clip is background, by node, ``best`` both, by node."""

    state: Costs64
    rest: Costs64
    best: Costs64

    def shares(self) -> tuple[Costs64, Costs64]:
        """Return the probabilities of states and of background by node."""
        peak = float(self.best.max())
        state, rest = (np.exp(np.maximum(part - peak, _NOTHING)) for part in (self.state, self.rest))
        total = state.sum() + rest.sum()
        return state / total, rest / total

    def nodes(self) -> Costs64:
        """Return the probabilities of nodes."""
        weight = np.exp(np.maximum(self.best - float(self.best.max()), _NOTHING))
        return np.asarray(weight / weight.sum(), np.float64)


class _FirstRuns(NamedTuple):
    """Ways to go on with a step that was not there yet, with the share that each has of those out of its node."""

    node: NDArray[np.int64]
    step: NDArray[np.int64]
    share: Costs64


class _Recursion:
    """From the columns after some clips to those after one more, the cheapest and the sum of all.

    What is as long as the states is computed in place: fresh memory takes longer than the arithmetic.
    """

    def __init__(self, problem: MachineProblem, gamma: float) -> None:
        machine = problem.machine
        self.problem = problem
        self.machine = machine
        self.gamma = gamma
        self.step = machine.state_step.astype(np.intp)
        self.origin = machine.entry_from.astype(np.intp)
        self.first_entries = machine.entry_start[:-1]
        self.first_states = machine.state_start[1:-1]  # of every node but the first, which has none
        self.node_of_state = np.repeat(np.arange(machine.n_nodes), np.diff(machine.state_start))
        self.shown_at = self.node_of_state - 1  # among the nodes that have states
        self.state_of_entry = np.repeat(np.arange(machine.n_states), np.diff(machine.entry_start))
        self.weight = np.maximum(-problem.entry / gamma, _NEVER)
        # Returns from a state's own node: what has just shown the step goes on, and does not return.
        stays = self.node_of_state[self.state_of_entry] == self.origin
        self.returns, self.onward = np.flatnonzero(stays), np.flatnonzero(~stays)
        self.spare = np.empty((2, machine.n_states))
        self.spare_entries = np.empty((2, len(self.origin)))

    def start(self) -> tuple[Column, _Soft]:
        nodes, states = self.machine.n_nodes, self.machine.n_states
        best, rest = np.full(nodes, np.inf), np.full(nodes, _NEVER)
        best[0] = rest[0] = 0.0
        return Column(best, np.full(states, np.inf)), _Soft(np.full(states, _NEVER), rest, rest)

    def advance(self, before: Column, match: Costs64, drop: float) -> Column:
        begun = _take(before.best, self.origin, self.spare_entries[0])
        begun += self.problem.entry
        if not self._is_single:
            begun = np.minimum.reduceat(begun, self.first_entries, out=self.spare[0])
        state = np.minimum(begun, before.state)
        state += _take(match, self.step, self.spare[1])
        best = before.best + drop
        np.minimum(best[1:], np.minimum.reduceat(state, self.first_states), out=best[1:])
        return Column(best, state)

    def advance_soft(self, before: _Soft, match: Costs64, drop: float) -> _Soft:
        """Go on from ``before``, which is lost: its memory is used again."""
        begun = _take(before.best, self.origin, self.spare_entries[0])
        begun += self.weight
        if len(self.returns):
            whole = before.best[self.origin[self.returns]]
            own = np.minimum(before.state[self.state_of_entry[self.returns]], whole)
            begun[self.returns] += np.log(np.maximum(-np.expm1(own - whole), 1e-300))
        if not self._is_single:
            begun = _log_sums(begun, self.first_entries, self.state_of_entry, self.spare_entries[1])
        state = _log_add(begun, before.state, self.spare[0])
        state += _take(np.maximum(-match / self.gamma, _NEVER), self.step, self.spare[1])
        rest = before.best + max(-drop / self.gamma, _NEVER)
        shown = _log_sums(state, self.first_states, self.shown_at, self.spare[1])
        best = rest.copy()
        best[1:] = _log_add(shown, rest[1:].copy(), np.empty_like(shown))
        return _Soft(state, rest, best)

    @cached_property
    def _is_single(self) -> bool:
        """Whether there is one way into each state."""
        return len(self.origin) == self.machine.n_states

    @cached_property
    def done(self) -> Costs64:
        """[I, K] 1 where a step has begun at a node, or can come no more."""
        ancestors = self.machine.flow.sure.ancestors
        done = np.zeros((self.machine.n_nodes, len(self.machine.flow)))
        nodes, first = np.unique(self.node_of_state[self.state_of_entry[self.onward]], return_index=True)
        for node, entry in zip(nodes.tolist(), self.onward[first].tolist(), strict=True):
            step = int(self.step[self.state_of_entry[entry]])
            done[node] = done[self.origin[entry]]
            done[node, [step, *bits(ancestors[step])]] = 1.0
        return done

    @cached_property
    def first_runs(self) -> _FirstRuns:
        node, weight = self.origin[self.onward], self.weight[self.onward]
        peak = np.full(self.machine.n_nodes, _NEVER)
        np.maximum.at(peak, node, weight)
        weight = np.where(weight > _NEVER, np.exp(np.maximum(weight - peak[node], _NOTHING)), 0.0)
        total = np.bincount(node, weight, self.machine.n_nodes)
        share = np.divide(weight, total[node], out=np.zeros_like(weight), where=total[node] > 0)
        return _FirstRuns(node, self.step[self.state_of_entry[self.onward]], share)


def _take(values: Costs64, at: NDArray[np.intp], into: Costs64) -> Costs64:
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
