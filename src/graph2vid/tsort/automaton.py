"""The automaton of the extended model: every legal sequence of segments of a procedure, as one graph of costs.

A label sequence is read segment by segment. A *node* says what has been done: the steps of which no first segment can
come any more (those shown, and all that must come before them), and the branch taken in each group of alternatives. A
segment of step v leads from a node to exactly one other:

- v is not done: its first segment. Steps that must come before it and were not shown are waived, at their skip costs.
  What is done already, though v was expected before it, costs what such inverted pairs cost.
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
from functools import cached_property, lru_cache
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from graph2vid._stopping import go_on
from graph2vid.errors import TooLargeError
from graph2vid.flow import FlowGraph, mask_of
from graph2vid.tsort.lattice import Masks, flags_of, sums_over, words_of

Costs = NDArray[np.float64]
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
        The procedure, with its certain edges alone.
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
    charged : bool [R, K]
        Sets of steps waived.
    done : bool [I, K]
        The steps that are done at each node, but for those of branches that are not taken there.
    """

    flow: FlowGraph
    state_start: NDArray[np.int64]
    state_step: NDArray[np.int32]
    arc_start: NDArray[np.int64]
    arc_from: NDArray[np.int32]
    arc_charged: NDArray[np.int32]
    arc_repeats: Flags
    end_charged: NDArray[np.int32]
    end_open: Flags
    charged: Flags
    done: Flags

    def __repr__(self) -> str:
        return f"Automaton({self.flow!r}, {self.n_nodes:,} nodes, {self.n_states:,} states)"

    @property
    def n_nodes(self) -> int:
        """Number of nodes, I."""
        return len(self.state_start) - 1

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
            The procedure; of its edges the certain ones count.
        may_skip, may_repeat : int
            Bit masks of the steps whose costs are finite.
        limit : int
            The largest number of nodes.

        Raises
        ------
        TooLargeError
            Beyond ``limit`` nodes.
        """
        return _compile(flow.sure, may_skip, may_repeat, limit)

    @classmethod
    def built_before(cls, flow: FlowGraph, may_skip: int, may_repeat: int) -> Automaton | None:
        """Return the automaton that :meth:`compile` built last of these, as long as somebody holds it; else None."""
        return _built.get((flow.sure, may_skip, may_repeat))

    def costs(self, skip: Costs, repeat: Costs, order: Costs) -> tuple[Costs, Costs]:
        """Return what each arc costs, [E], and ending at each node, [I].

        They follow from the costs of skips [K], of repeats [K] and of inverted pairs of steps [K, K], or none.
        """
        charged = sums_over(self.charged, skip)
        end = charged[self.end_charged]
        for group, untouched in zip(self.flow.alternatives, self.end_open.T, strict=True):
            end[untouched] += min(float(skip[list(branch)].sum()) for branch in group)
        arcs = charged[self.arc_charged] + np.append(repeat, 0.0)[self._repeated]
        if order.size:
            begun = self.done.astype(np.float64) @ order.T
            begins = ~self.arc_repeats
            arcs[begins] += begun[self.arc_from[begins], self.state_step[self.state_of_arc[begins]]]
        return arcs, end

    @cached_property
    def _repeated(self) -> NDArray[np.int32]:
        """int32 [E]: the step that each arc repeats, K where there is none."""
        return np.where(self.arc_repeats, self.state_step[self.state_of_arc], np.int32(len(self.flow)))

    @cached_property
    def node_of_state(self) -> NDArray[np.int64]:
        """int64 [S]: the node of each state."""
        return np.repeat(np.arange(self.n_nodes), np.diff(self.state_start))

    @cached_property
    def state_of_arc(self) -> NDArray[np.int64]:
        """int64 [E]: the state that each arc leads into."""
        return np.repeat(np.arange(self.n_states), np.diff(self.arc_start))


class _Layout:
    """Bit positions of steps, and then of branches, in the masks of nodes."""

    def __init__(self, flow: FlowGraph) -> None:
        self.flow, self.n_steps, self.ancestors = flow, len(flow), flow.ancestors
        # Group and steps of each branch.
        self.branches = [(at, mask_of(branch)) for at, group in enumerate(flow.alternatives) for branch in group]
        branches = (branch for group in flow.alternatives for branch in group)
        self.branch_of = {step: at for at, branch in enumerate(branches) for step in branch}
        self.n_bits = self.n_steps + len(self.branches)

    def words(self, mask: int) -> Masks:
        """Return a set of steps and branches as those of nodes are held, [W]."""
        return words_of([mask], self.n_bits).reshape(-1)

    def charges(self, nodes: Masks, lacking: Masks) -> Masks:
        """Return which of the steps that are lacking at nodes are charged for: those outside of groups, and in branches
        that have been taken."""
        charged = lacking & self.words(mask_of(set(range(self.n_steps)) - set(self.branch_of)))
        for at, (_, steps) in enumerate(self.branches):
            taken = _has(nodes, self.n_steps + at)
            charged |= np.where(taken[:, None], lacking & self.words(steps), np.uint64(0))
        return charged

    def charged_sets(self, steps: Masks) -> Masks:
        """Return sets of steps that are held as nodes are, without the words of branches alone."""
        return steps[:, : (self.n_steps + 63) // 64]


class _Segments(NamedTuple):
    """Segments out of nodes, side by side."""

    target: Masks  # [n, W] the node that is led to
    node: NDArray[np.int64]  # [n] its index; -1 as long as it is not known
    origin: NDArray[np.int64]  # [n] the index of the node left
    step: NDArray[np.int64]  # [n]
    charged: Masks  # [n, X] what is waived
    repeats: Flags  # [n]

    @classmethod
    def together(cls, parts: list[_Segments]) -> _Segments:
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def where(self, rows: Any) -> _Segments:
        columns: Any = (column[rows] for column in self)
        return _Segments(*columns)


_built: WeakValueDictionary[tuple[FlowGraph, int, int], Automaton] = WeakValueDictionary()


@lru_cache(maxsize=16)
def _compile(flow: FlowGraph, may_skip: int, may_repeat: int, limit: int) -> Automaton:
    layout = _Layout(flow)
    empty, nowhere = layout.words(0)[None], np.zeros(1, np.int64)
    start = _Segments(empty, nowhere, nowhere, nowhere, layout.charged_sets(empty), np.zeros(1, bool))
    # Segments that lead to nodes of as many bits, until these are reached in turn: fewer bits come first.
    pending: dict[int, list[_Segments]] = {0: [start]}
    nodes: list[Masks] = []
    found: list[_Segments] = []
    total = 0
    for size in range(layout.n_bits + 1):
        if size not in pending:
            continue
        segments = _Segments.together(pending.pop(size))
        level, place = _distinct(segments.target)
        found.append(segments._replace(node=place + total))
        for step in range(len(flow)):
            go_on()
            leaving = _segments_of(layout, level, step, may_skip, may_repeat, total)
            leads_on = leaving.node < 0
            found.append(leaving.where(~leads_on))
            sizes = np.bitwise_count(leaving.target).sum(axis=1)
            for reached in np.unique(sizes[leads_on]).tolist():
                pending.setdefault(reached, []).append(leaving.where(leads_on & (sizes == reached)))
        nodes.append(level)
        total += len(level)
        if total > limit:
            raise TooLargeError(
                f"the procedure of {len(flow)} steps, with what may be skipped, chosen and done in another order, has "
                f"more than {limit:,} nodes: give more order, or certain edges"
            )
    segments = _Segments.together(found).where(slice(1, None))  # without the start
    built = _built[flow, may_skip, may_repeat] = _assemble(layout, np.concatenate(nodes), segments)
    return built


def _segments_of(layout: _Layout, level: Masks, step: int, may_skip: int, may_repeat: int, first: int) -> _Segments:
    """Return the segments of one step out of nodes, the first of them number ``first``; repeats stay where they are."""
    branch, done, here = layout.branch_of.get(step), _has(level, step), np.arange(len(level)) + first
    possible: Any = np.ones(len(level), bool)
    is_new_choice = np.zeros(len(level), bool)
    target = level | layout.words(layout.ancestors[step] | 1 << step)
    # What is charged now: steps passed over outside of groups, and in branches that have been taken.
    passed = layout.words(layout.ancestors[step]) & ~level
    passed[done] = 0
    waived = layout.charges(level, passed)
    if branch is not None:
        group, steps = layout.branches[branch]
        rivals = (at for at, (other, _) in enumerate(layout.branches) if other == group and at != branch)
        possible = ~(level & layout.words(mask_of(layout.n_steps + at for at in rivals))).any(axis=1)
        is_new_choice = possible & ~_has(level, layout.n_steps + branch)
        target |= layout.words(1 << layout.n_steps + branch)
        # All of the branch that was passed over, now that it is taken; the step itself if it was.
        own = target & layout.words(steps & ~(1 << step)) | level & layout.words(1 << step)
        waived |= np.where(is_new_choice[:, None], own, np.uint64(0))
    possible &= ~(waived & ~layout.words(may_skip)).any(axis=1)
    if not may_repeat >> step & 1:
        possible &= ~done
    charged = layout.charged_sets(waived)
    node = np.where(done & ~is_new_choice, here, -1)
    return _Segments(target, node, here, np.full(len(level), step), charged, done).where(possible)


def _assemble(layout: _Layout, nodes: Masks, segments: _Segments) -> Automaton:
    # The states in order, and the arcs into each together.
    key = segments.node * layout.n_steps + segments.step
    states = np.unique(key)
    order = np.lexsort((segments.origin, key))
    untouched = np.ones((len(nodes), len(layout.flow.alternatives)), bool)
    for at, (group, _) in enumerate(layout.branches):
        untouched[:, group] &= ~_has(nodes, layout.n_steps + at)
    done = flags_of(nodes, layout.n_bits)
    for step, branch in layout.branch_of.items():
        done[:, step] &= done[:, layout.n_steps + branch]
    end = layout.charged_sets(layout.charges(nodes, ~nodes))
    sets, place = _distinct(np.concatenate([segments.charged[order], end]))
    arrays: dict[str, Any] = {
        "state_start": np.searchsorted(states // layout.n_steps, np.arange(len(nodes) + 1)).astype(np.int64),
        "state_step": (states % layout.n_steps).astype(np.int32),
        "arc_start": np.append(np.searchsorted(key[order], states), len(key)).astype(np.int64),
        "arc_from": segments.origin[order].astype(np.int32),
        "arc_charged": place[: len(key)].astype(np.int32),
        "arc_repeats": segments.repeats[order],
        "end_charged": place[len(key) :].astype(np.int32),
        "end_open": untouched,
        "charged": flags_of(sets, layout.n_steps),
        "done": np.ascontiguousarray(done[:, : layout.n_steps]),
    }
    for array in arrays.values():
        array.setflags(write=False)
    return Automaton(layout.flow, **arrays)


def _has(sets: Masks, bit: int) -> Flags:
    found: Flags = (sets[:, bit // 64] >> np.uint64(bit % 64) & np.uint64(1)).astype(bool)
    return found


def _distinct(sets: Masks) -> tuple[Masks, NDArray[np.int64]]:
    """Return the different rows, sorted, and the index of each row among them."""
    if sets.shape[1] == 1:
        rows, place = np.unique(sets[:, 0], return_inverse=True)
        return rows[:, None], place
    rows, place = np.unique(sets, axis=0, return_inverse=True)
    return rows, place.reshape(-1)
