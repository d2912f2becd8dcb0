"""The machine: every legal sequence of runs of a procedure, with all that it may leave open, as one graph of prices.

A label sequence is read run by run. A *node* says what has been done: the steps of which no first run can come any
more (those shown, and all that must come before them), and the branch taken in each group of alternatives. A run of
step v leads from a node to exactly one other:

- v is not done: its first run. Steps that must come before it and were not shown are waived, at their skip prices.
  Every doubtful edge v → x with x done already is broken, at its price.
- v is done: a return to it, at its repeat price. (Of a step that was waived, the skip price has been paid then.)
- v lies in a branch of a group of which another branch was taken: impossible.

A step that was passed over in a group of which no branch is taken yet costs nothing as yet; once its branch is
taken it does. After the last clip everything of the chosen branches that is not done is waived, and in a group of
which nothing was shown the cheapest branch.

So each label sequence is one path and has one price, which is why one machine serves the minimum and the sum over
all sequences alike. A *state* is a node with the step whose run led to it, an *entry* one way into a state.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid._stopping import go_on
from graph2vid.errors import TooLargeError
from graph2vid.flow import FlowGraph
from graph2vid.flow.order import mask_of

Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]

MACHINE_LIMIT = 2**20
"""Nodes that a machine may have unless told otherwise."""


@dataclass(frozen=True, eq=False, repr=False)
class Machine:
    """A procedure of K steps with what it leaves open, compiled; made by :meth:`compile`.

    Nodes lie in topological order; node 0 is the start. All arrays are C-contiguous and read-only.

    Attributes
    ----------
    flow : FlowGraph
        The procedure.
    edges : tuple of (int, int)
        Its Z doubtful edges.
    state_start : int64 [I+1]
        States of node i are ``state_start[i]:state_start[i+1]``.
    state_step : int32 [S]
        The step of each state, ascending within a node.
    entry_start : int64 [S+1]
        Entries of state s are ``entry_start[s]:entry_start[s+1]``.
    entry_from : int32 [E]
        The node each entry comes from; the state's own where a step is returned to.
    entry_priced : int32 [E]
        The row of ``priced`` that lists what the entry costs.
    entry_returns : bool [E]
        Whether the entry returns to a step done.
    end_priced : int32 [I]
        The same for ending at each node.
    end_open : bool [I, G]
        The groups of which nothing was shown, of which the cheapest branch is waived in the end.
    priced : bool [R, K+Z]
        Sets of steps waived and edges broken.
    """

    flow: FlowGraph
    edges: tuple[tuple[int, int], ...]
    state_start: NDArray[np.int64]
    state_step: NDArray[np.int32]
    entry_start: NDArray[np.int64]
    entry_from: NDArray[np.int32]
    entry_priced: NDArray[np.int32]
    entry_returns: Flags
    end_priced: NDArray[np.int32]
    end_open: Flags
    priced: Flags

    def __repr__(self) -> str:
        return f"Machine({self.flow!r}, {self.n_nodes:,} nodes, {self.n_states:,} states)"

    @property
    def n_nodes(self) -> int:
        """Number of nodes, I."""
        return len(self.end_priced)

    @property
    def n_states(self) -> int:
        """Number of states, S."""
        return len(self.state_step)

    @classmethod
    def compile(cls, flow: FlowGraph, may_skip: int, may_repeat: int, limit: int = MACHINE_LIMIT) -> Machine:
        """Build the machine of a procedure, or hand out the one built before.

        Parameters
        ----------
        flow : FlowGraph
            The procedure; its doubtful edges may be broken.
        may_skip, may_repeat : int
            Bit masks of the steps whose prices are finite.
        limit : int
            The largest number of nodes.

        Raises
        ------
        TooLargeError
            Beyond ``limit`` nodes.
        """
        return _compile(flow, may_skip, may_repeat, limit)

    def entry_prices(
        self, skip: NDArray[np.float64], repeat: NDArray[np.float64], breaking: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return what each entry costs, [E], from the prices of skips [K], of returns [K] and of broken edges [Z]."""
        step = np.repeat(self.state_step, np.diff(self.entry_start))
        returned = np.where(self.entry_returns, repeat[step], 0.0)
        prices: NDArray[np.float64] = self._sums(skip, breaking)[self.entry_priced] + returned
        return prices

    def end_prices(self, skip: NDArray[np.float64], breaking: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what ending at each node costs, [I]."""
        prices: NDArray[np.float64] = self._sums(skip, breaking)[self.end_priced]
        for group, untouched in zip(self.flow.alternatives, self.end_open.T, strict=True):
            prices[untouched] += min(float(skip[list(branch)].sum()) for branch in group)
        return prices

    def _sums(self, skip: NDArray[np.float64], breaking: NDArray[np.float64]) -> NDArray[np.float64]:
        price = np.concatenate([skip, breaking])
        finite = np.where(np.isfinite(price), price, 0.0)
        sums = np.asarray(self.priced @ finite, np.float64)
        sums[(self.priced & np.isinf(price)).any(axis=1)] = np.inf
        return sums


class _Layout(NamedTuple):
    """Where each thing has its bit: of nodes, steps and then branches; of sets of prices, steps and then edges."""

    flow: FlowGraph
    ancestors: tuple[int, ...]  # by certain edges
    edges: tuple[tuple[int, int], ...]
    branches: tuple[tuple[int, tuple[int, ...]], ...]  # group and steps of each branch
    branch_of: dict[int, int]

    @classmethod
    def of(cls, flow: FlowGraph) -> _Layout:
        edges = tuple(edge for edge, confidence in flow.confidence.items() if confidence < 1.0)
        branches = tuple((number, branch) for number, group in enumerate(flow.alternatives) for branch in group)
        branch_of = {step: at for at, (_, branch) in enumerate(branches) for step in branch}
        return cls(flow, flow.sure.ancestors, edges, branches, branch_of)

    def node_bit(self, branch: int) -> int:
        return len(self.flow) + branch

    def rivals(self, branch: int) -> int:
        """The node bits of the other branches of the same group."""
        group = self.branches[branch][0]
        return mask_of(
            self.node_bit(at) for at, (other, _) in enumerate(self.branches) if other == group and at != branch
        )


@lru_cache(maxsize=16)
def _compile(flow: FlowGraph, may_skip: int, may_repeat: int, limit: int) -> Machine:
    layout = _Layout.of(flow)
    n_steps = len(flow)
    node_words = (n_steps + len(layout.branches) + 63) // 64
    # Runs that lead to nodes of as many bits, until these are reached in turn: fewer bits come first.
    pending: dict[int, list[_Runs]] = {0: [_Runs.start(node_words, _set_words(layout))]}
    nodes: list[Words] = []
    found: list[_Runs] = []
    total = 0
    for size in range(n_steps + len(layout.branches) + 1):
        arrived = pending.pop(size, None)
        if arrived is None:
            continue
        runs = _Runs.together(arrived)
        level, place = _distinct(runs.target)
        found.append(runs._replace(node=place + total))
        for step in range(n_steps):
            go_on()
            for leaving in _runs_of(layout, level, step, may_skip, may_repeat, total):
                if len(leaving.node) == 0:
                    continue
                if leaving.node[0] >= 0:  # returns, which lead nowhere else
                    found.append(leaving)
                    continue
                sizes = np.bitwise_count(leaving.target).sum(axis=1)
                for reached in np.unique(sizes).tolist():
                    here = sizes == reached
                    pending.setdefault(reached, []).append(leaving.where(here))
        nodes.append(level)
        total += len(level)
        if total > limit:
            raise TooLargeError(
                f"the procedure of {n_steps} steps, with what may be skipped, chosen and done in another order, has "
                f"more than {limit:,} nodes: give more order, or certain edges"
            )
    runs = _Runs.together(found)
    return _machine(layout, np.concatenate(nodes), runs.where(slice(1, None)))  # the first is the start


class _Runs(NamedTuple):
    """Runs out of nodes, side by side."""

    target: Words  # [n, W] the node that is led to
    node: NDArray[np.int64]  # [n] its index; -1 as long as it is not known
    origin: NDArray[np.int64]  # [n] the index of the node left
    step: NDArray[np.int64]  # [n]
    priced: Words  # [n, X] what is waived and broken
    returns: Flags  # [n]

    @classmethod
    def start(cls, node_words: int, set_words: int) -> _Runs:
        nowhere = np.zeros(1, np.int64)
        return cls(
            np.zeros((1, node_words), np.uint64),
            nowhere,
            nowhere,
            nowhere,
            np.zeros((1, set_words), np.uint64),
            np.zeros(1, bool),
        )

    @classmethod
    def together(cls, parts: list[_Runs]) -> _Runs:
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def where(self, rows: Any) -> _Runs:
        columns: Any = (column[rows] for column in self)
        return _Runs(*columns)


def _set_words(layout: _Layout) -> int:
    return (len(layout.flow) + len(layout.edges) + 63) // 64


def _runs_of(
    layout: _Layout, level: Words, step: int, may_skip: int, may_repeat: int, first: int
) -> tuple[_Runs, _Runs]:
    """Return the runs of one step out of nodes: those that lead on, and returns, which stay."""
    n_steps, words = len(layout.flow), level.shape[1]
    branch = layout.branch_of.get(step)
    possible = np.ones(len(level), bool)
    is_new_choice = np.zeros(len(level), bool)
    chosen = 0
    if branch is not None:
        chosen = 1 << layout.node_bit(branch)
        possible = ~_any(level & _mask(layout.rivals(branch), words))
        is_new_choice = possible & ~_has(level, layout.node_bit(branch))
    done = _has(level, step)
    target = level | _mask(layout.ancestors[step] | 1 << step | chosen, words)

    # What must be paid for now: steps passed over outside of groups, and in branches that have been taken.
    passed = _mask(layout.ancestors[step], words) & ~level
    passed[done] = 0
    waived = passed & _mask(mask_of(range(n_steps)) & ~mask_of(layout.branch_of), words)
    for at, (_, steps) in enumerate(layout.branches):
        taken = _has(level, layout.node_bit(at))
        waived |= np.where(taken[:, None], passed & _mask(mask_of(steps), words), np.uint64(0))
    if branch is not None:  # all of the branch that was passed over, now that it is taken; the step itself if it was
        before = mask_of(layout.branches[branch][1])
        own = target & _mask(before & ~(1 << step), words) | level & _mask(before & 1 << step, words)
        waived |= np.where(is_new_choice[:, None], own, np.uint64(0))

    possible &= ~_any(waived & ~_mask(may_skip, words))
    if not may_repeat >> step & 1:
        possible &= ~done
    priced = np.zeros((len(level), _set_words(layout)), np.uint64)
    shared = (n_steps + 63) // 64
    priced[:, :shared] = waived[:, :shared] & _mask(mask_of(range(n_steps)), shared)
    for number, (before_step, after) in enumerate(layout.edges):
        if before_step != step:
            continue
        broken = _has(level, after) & ~done
        if after in layout.branch_of:
            broken &= _has(level, layout.node_bit(layout.branch_of[after]))
        word, bit = divmod(n_steps + number, 64)
        priced[:, word] |= broken.astype(np.uint64) << np.uint64(bit)

    def some(which: Flags, node: NDArray[np.int64]) -> _Runs:
        at = np.flatnonzero(which)
        steps = np.full(len(at), step, np.int64)
        return _Runs(target[at], node[at], at + first, steps, priced[at], done[at])

    here = np.arange(len(level)) + first
    stays = possible & done & ~is_new_choice
    return some(possible & ~stays, np.full(len(level), -1, np.int64)), some(stays, here)


def _machine(layout: _Layout, nodes: Words, runs: _Runs) -> Machine:
    n_steps, words = len(layout.flow), nodes.shape[1]
    # The states in order, and the entries of each together.
    key = runs.node * n_steps + runs.step
    states = np.unique(key)
    order = np.lexsort((runs.origin, key))
    entry_start = np.concatenate([np.searchsorted(key[order], states), [len(key)]])
    state_start = np.searchsorted(states // n_steps, np.arange(len(nodes) + 1))

    left = _mask(mask_of(range(n_steps)) & ~mask_of(layout.branch_of), words) & ~nodes
    for at, (_, steps) in enumerate(layout.branches):
        taken = _has(nodes, layout.node_bit(at))
        left |= np.where(taken[:, None], _mask(mask_of(steps), words) & ~nodes, np.uint64(0))
    end = np.zeros((len(nodes), runs.priced.shape[1]), np.uint64)
    shared = (n_steps + 63) // 64
    end[:, :shared] = left[:, :shared] & _mask(mask_of(range(n_steps)), shared)
    untouched = np.ones((len(nodes), len(layout.flow.alternatives)), bool)
    for at, (group, _) in enumerate(layout.branches):
        untouched[:, group] &= ~_has(nodes, layout.node_bit(at))

    sets, place = _distinct(np.concatenate([runs.priced[order], end]))
    priced = np.stack([_has(sets, item) for item in range(n_steps + len(layout.edges))], axis=1)
    arrays: dict[str, Any] = {
        "state_start": state_start.astype(np.int64),
        "state_step": (states % n_steps).astype(np.int32),
        "entry_start": entry_start.astype(np.int64),
        "entry_from": runs.origin[order].astype(np.int32),
        "entry_priced": place[: len(key)].astype(np.int32),
        "entry_returns": runs.returns[order],
        "end_priced": place[len(key) :].astype(np.int32),
        "end_open": untouched,
        "priced": priced,
    }
    for array in arrays.values():
        array.setflags(write=False)
    return Machine(layout.flow, layout.edges, **arrays)


# -- bit sets of several words ----------------------------------------------------------------------------------


def _mask(mask: int, words: int) -> Words:
    return np.frombuffer(mask.to_bytes(8 * words, "little"), dtype="<u8").astype(np.uint64)


def _has(sets: Words, bit: int) -> Flags:
    found: Flags = (sets[:, bit // 64] >> np.uint64(bit % 64) & np.uint64(1)).astype(bool)
    return found


def _any(sets: Words) -> Flags:
    found: Flags = (sets != 0).any(axis=1)
    return found


def _distinct(sets: Words) -> tuple[Words, NDArray[np.int64]]:
    """Return the different rows, sorted, and the index of each row among them."""
    if sets.shape[1] == 1:
        rows, place = np.unique(sets[:, 0], return_inverse=True)
        return rows[:, None], place.astype(np.int64)
    rows, place = np.unique(sets, axis=0, return_inverse=True)
    return rows, place.reshape(-1).astype(np.int64)
