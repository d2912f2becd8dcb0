"""The automaton of the extended model: every legal sequence of segments of a procedure, as one graph of costs.

A label sequence is read segment by segment. A *node* says what has been done: the steps of which no first segment can
come any more (those shown, and all that must come before them), and the branch taken in each group of alternatives. A
segment of step v leads from a node to exactly one other:

- v is not done: its first segment. Steps that must come before it and were not shown are waived, at their skip costs.
  Every soft edge v → x with x done already is violated, at its cost.
- v is done: a repeat, at its repeat cost. (Of a step that was waived, the skip cost was charged then.)
- v lies in a branch of a group of which another branch was taken: impossible.

A step that was passed over in a group of which no branch is taken yet costs nothing as yet; once its branch is
taken it does. After the last clip everything of the chosen branches that is not done is waived, and in a group of
which nothing was shown the cheapest branch.

So each label sequence is one path and has one cost, which is why one automaton serves the minimum and the sum over
all sequences alike. A *state* is a node with the step whose segment led to it, an *arc* one way into a state.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid._stopping import go_on
from graph2vid.errors import TooLargeError
from graph2vid.flow import FlowGraph, mask_of

Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]

AUTOMATON_LIMIT = 2**20
"""Nodes that an automaton may have unless told otherwise."""


@dataclass(frozen=True, eq=False, repr=False)
class Automaton:
    """A procedure of K steps with what it leaves open, compiled; made by :meth:`compile`.

    Nodes lie in topological order; node 0 is the start. All arrays are C-contiguous and read-only.

    Attributes
    ----------
    flow : FlowGraph
        The procedure.
    edges : tuple of (int, int)
        Its Z soft edges, whose confidence is below 1.
    state_start : int64 [I+1]
        States of node i are ``state_start[i]:state_start[i+1]``.
    state_step : int32 [S]
        The step of each state, ascending within a node.
    arc_start : int64 [S+1]
        Arcs into state s are ``arc_start[s]:arc_start[s+1]``.
    arc_from : int32 [E]
        The node each arc comes from; the state's own where a step is repeated.
    arc_charged : int32 [E]
        The row of ``charged`` that lists what the arc is charged for.
    arc_repeats : bool [E]
        Whether the arc repeats a step that is done.
    end_charged : int32 [I]
        The same for ending at each node.
    end_open : bool [I, G]
        The groups of which nothing was shown, of which the cheapest branch is waived in the end.
    charged : bool [R, K+Z]
        Sets of steps waived and edges violated.
    """

    flow: FlowGraph
    edges: tuple[tuple[int, int], ...]
    state_start: NDArray[np.int64]
    state_step: NDArray[np.int32]
    arc_start: NDArray[np.int64]
    arc_from: NDArray[np.int32]
    arc_charged: NDArray[np.int32]
    arc_repeats: Flags
    end_charged: NDArray[np.int32]
    end_open: Flags
    charged: Flags

    def __repr__(self) -> str:
        return f"Automaton({self.flow!r}, {self.n_nodes:,} nodes, {self.n_states:,} states)"

    @property
    def n_nodes(self) -> int:
        """Number of nodes, I."""
        return len(self.end_charged)

    @property
    def n_states(self) -> int:
        """Number of states, S."""
        return len(self.state_step)

    @classmethod
    def compile(cls, flow: FlowGraph, may_skip: int, may_repeat: int, limit: int = AUTOMATON_LIMIT) -> Automaton:
        """Build the automaton of a procedure, or hand out the one built before.

        Parameters
        ----------
        flow : FlowGraph
            The procedure; its soft edges may be violated.
        may_skip, may_repeat : int
            Bit masks of the steps whose costs are finite.
        limit : int
            The largest number of nodes.

        Raises
        ------
        TooLargeError
            Beyond ``limit`` nodes.
        """
        return _compile(flow, may_skip, may_repeat, limit)

    def arc_costs(
        self, skip: NDArray[np.float64], repeat: NDArray[np.float64], violation: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return what each arc costs, [A], from the costs of skips [K], of repeats [K] and of violated edges [Z]."""
        step = np.repeat(self.state_step, np.diff(self.arc_start))
        repeated = np.where(self.arc_repeats, repeat[step], 0.0)
        costs: NDArray[np.float64] = self._sums(skip, violation)[self.arc_charged] + repeated
        return costs

    def end_costs(self, skip: NDArray[np.float64], violation: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what ending at each node costs, [I]."""
        costs: NDArray[np.float64] = self._sums(skip, violation)[self.end_charged]
        for group, untouched in zip(self.flow.alternatives, self.end_open.T, strict=True):
            costs[untouched] += min(float(skip[list(branch)].sum()) for branch in group)
        return costs

    def _sums(self, skip: NDArray[np.float64], violation: NDArray[np.float64]) -> NDArray[np.float64]:
        cost = np.concatenate([skip, violation])
        finite = np.where(np.isfinite(cost), cost, 0.0)
        sums = np.asarray(self.charged @ finite, np.float64)
        sums[(self.charged & np.isinf(cost)).any(axis=1)] = np.inf
        return sums


class _Layout(NamedTuple):
    """Where each thing has its bit: of nodes, steps and then branches; of charged sets, steps and then edges."""

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
def _compile(flow: FlowGraph, may_skip: int, may_repeat: int, limit: int) -> Automaton:
    layout = _Layout.of(flow)
    n_steps = len(flow)
    node_words = (n_steps + len(layout.branches) + 63) // 64
    # Segments that lead to nodes of as many bits, until these are reached in turn: fewer bits come first.
    pending: dict[int, list[_Segments]] = {0: [_Segments.start(node_words, _set_words(layout))]}
    nodes: list[Words] = []
    found: list[_Segments] = []
    total = 0
    for size in range(n_steps + len(layout.branches) + 1):
        arrived = pending.pop(size, None)
        if arrived is None:
            continue
        segments = _Segments.together(arrived)
        level, place = _distinct(segments.target)
        found.append(segments._replace(node=place + total))
        for step in range(n_steps):
            go_on()
            for leaving in _segments_of(layout, level, step, may_skip, may_repeat, total):
                if len(leaving.node) == 0:
                    continue
                if leaving.node[0] >= 0:  # repeats, which lead nowhere else
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
    segments = _Segments.together(found)
    return _assemble(layout, np.concatenate(nodes), segments.where(slice(1, None)))  # the first is the start


class _Segments(NamedTuple):
    """Segments out of nodes, side by side."""

    target: Words  # [n, W] the node that is led to
    node: NDArray[np.int64]  # [n] its index; -1 as long as it is not known
    origin: NDArray[np.int64]  # [n] the index of the node left
    step: NDArray[np.int64]  # [n]
    charged: Words  # [n, X] what is waived and violated
    repeats: Flags  # [n]

    @classmethod
    def start(cls, node_words: int, set_words: int) -> _Segments:
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
    def together(cls, parts: list[_Segments]) -> _Segments:
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def where(self, rows: Any) -> _Segments:
        columns: Any = (column[rows] for column in self)
        return _Segments(*columns)


def _set_words(layout: _Layout) -> int:
    return (len(layout.flow) + len(layout.edges) + 63) // 64


def _segments_of(
    layout: _Layout, level: Words, step: int, may_skip: int, may_repeat: int, first: int
) -> tuple[_Segments, _Segments]:
    """Return the segments of one step out of nodes: those that lead on, and repeats, which stay."""
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

    # What is charged now: steps passed over outside of groups, and in branches that have been taken.
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
    charged = np.zeros((len(level), _set_words(layout)), np.uint64)
    shared = (n_steps + 63) // 64
    charged[:, :shared] = waived[:, :shared] & _mask(mask_of(range(n_steps)), shared)
    for number, (before_step, after) in enumerate(layout.edges):
        if before_step != step:
            continue
        violated = _has(level, after) & ~done
        if after in layout.branch_of:
            violated &= _has(level, layout.node_bit(layout.branch_of[after]))
        word, bit = divmod(n_steps + number, 64)
        charged[:, word] |= violated.astype(np.uint64) << np.uint64(bit)

    def some(which: Flags, node: NDArray[np.int64]) -> _Segments:
        at = np.flatnonzero(which)
        steps = np.full(len(at), step, np.int64)
        return _Segments(target[at], node[at], at + first, steps, charged[at], done[at])

    here = np.arange(len(level)) + first
    stays = possible & done & ~is_new_choice
    return some(possible & ~stays, np.full(len(level), -1, np.int64)), some(stays, here)


def _assemble(layout: _Layout, nodes: Words, segments: _Segments) -> Automaton:
    n_steps, words = len(layout.flow), nodes.shape[1]
    # The states in order, and the arcs into each together.
    key = segments.node * n_steps + segments.step
    states = np.unique(key)
    order = np.lexsort((segments.origin, key))
    arc_start = np.concatenate([np.searchsorted(key[order], states), [len(key)]])
    state_start = np.searchsorted(states // n_steps, np.arange(len(nodes) + 1))

    left = _mask(mask_of(range(n_steps)) & ~mask_of(layout.branch_of), words) & ~nodes
    for at, (_, steps) in enumerate(layout.branches):
        taken = _has(nodes, layout.node_bit(at))
        left |= np.where(taken[:, None], _mask(mask_of(steps), words) & ~nodes, np.uint64(0))
    end = np.zeros((len(nodes), segments.charged.shape[1]), np.uint64)
    shared = (n_steps + 63) // 64
    end[:, :shared] = left[:, :shared] & _mask(mask_of(range(n_steps)), shared)
    untouched = np.ones((len(nodes), len(layout.flow.alternatives)), bool)
    for at, (group, _) in enumerate(layout.branches):
        untouched[:, group] &= ~_has(nodes, layout.node_bit(at))

    sets, place = _distinct(np.concatenate([segments.charged[order], end]))
    charged = np.stack([_has(sets, item) for item in range(n_steps + len(layout.edges))], axis=1)
    arrays: dict[str, Any] = {
        "state_start": state_start.astype(np.int64),
        "state_step": (states % n_steps).astype(np.int32),
        "arc_start": arc_start.astype(np.int64),
        "arc_from": segments.origin[order].astype(np.int32),
        "arc_charged": place[: len(key)].astype(np.int32),
        "arc_repeats": segments.repeats[order],
        "end_charged": place[len(key) :].astype(np.int32),
        "end_open": untouched,
        "charged": charged,
    }
    for array in arrays.values():
        array.setflags(write=False)
    return Automaton(layout.flow, layout.edges, **arrays)


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
