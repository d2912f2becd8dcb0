"""Order theory on plain adjacency: topological order, cycles, closure, reduction, minimum chain cover.

A graph is given by the successors of its steps ``0 … K-1``; a set of steps is a Python integer used as a bit
mask (bit *i* = step *i*), so that any number of steps works and set operations run on machine words.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

Adjacency: TypeAlias = Sequence[Sequence[int]]
Edge: TypeAlias = tuple[int, int]


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the set bits of ``mask``, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def mask_of(steps: Iterable[int]) -> int:
    """Return the bit mask of a collection of steps."""
    mask = 0
    for step in steps:
        mask |= 1 << step
    return mask


def adjacency(edges: Iterable[Edge], count: int) -> tuple[tuple[int, ...], ...]:
    """Return for each of ``count`` steps those that its edges lead to, in the order of the edges."""
    following: list[list[int]] = [[] for _ in range(count)]
    for step, later in edges:
        following[step].append(later)
    return tuple(map(tuple, following))


def topological_order(successors: Adjacency) -> tuple[int, ...]:
    """Return the topological order that always takes the smallest step that is ready.

    Steps on a cycle, or behind one, never become ready: the order is then shorter than the graph.
    """
    waiting_for = [0] * len(successors)
    for following in successors:
        for step in following:
            waiting_for[step] += 1
    ready = [step for step, count in enumerate(waiting_for) if count == 0]
    order: list[int] = []
    while ready:
        step = heapq.heappop(ready)
        order.append(step)
        for later in successors[step]:
            waiting_for[later] -= 1
            if waiting_for[later] == 0:
                heapq.heappush(ready, later)
    return tuple(order)


def find_cycle(successors: Adjacency) -> tuple[int, ...]:
    """Return the steps of one cycle in order; there must be one."""
    stuck = set(range(len(successors))).difference(topological_order(successors))
    stuck_before = {later: step for step in stuck for later in successors[step] if later in stuck}
    # Every stuck step has a stuck predecessor, so a walk backwards must meet itself, and does so on a cycle.
    walked = [min(stuck)]
    seen = set[int]()
    while walked[-1] not in seen:
        seen.add(walked[-1])
        walked.append(stuck_before[walked[-1]])
    return _shortest_cycle_through(min(walked[walked.index(walked[-1]) :]), successors)


def _shortest_cycle_through(start: int, successors: Adjacency) -> tuple[int, ...]:
    """Return the shortest cycle through ``start`` (a short one makes a readable message)."""
    came_from: dict[int, int] = {}
    queue = deque([start])
    while queue:
        step = queue.popleft()
        for following in successors[step]:
            if following == start:
                path = [step]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return tuple(reversed(path))
            if following not in came_from:
                came_from[following] = step
                queue.append(following)
    raise ValueError(f"there is no cycle through {start}")


def reachable(successors: Adjacency, order: Sequence[int]) -> tuple[int, ...]:
    """Return, per step, the mask of the steps that can be reached from it (the step itself excluded).

    ``order`` is a topological order of ``successors``. Handed predecessors and the reversed order, the
    result is the mask of everything that comes before.
    """
    masks = [0] * len(successors)
    for step in reversed(order):
        mask = 0
        for following in successors[step]:
            mask |= masks[following] | (1 << following)
        masks[step] = mask
    return tuple(masks)


def closure_edges(descendants: Sequence[int]) -> tuple[Edge, ...]:
    """Return every pair (a, b) with a before b."""
    return tuple((step, later) for step, mask in enumerate(descendants) for later in bits(mask))


def reduction_edges(successors: Adjacency, descendants: Sequence[int]) -> tuple[Edge, ...]:
    """Return the edges that no longer path implies."""
    kept: list[Edge] = []
    for step, following in enumerate(successors):
        implied = 0
        for later in following:
            implied |= descendants[later]
        kept.extend((step, later) for later in following if not implied >> later & 1)
    return tuple(kept)


def minimum_chain_cover(descendants: Sequence[int], reduction: Iterable[Edge]) -> list[tuple[int, ...]]:
    """Split the steps into as few chains as possible (as many as the widest antichain: Dilworth).

    A maximum matching of steps to a later step each, found by augmenting paths; every matched pair joins two
    chains. Consecutive members of a chain are ordered, and mostly joined by an edge of the reduction: these
    edges are matched first, and augmenting seldom parts what is matched.
    """
    count = len(descendants)
    next_of = [-1] * count
    previous_of = [-1] * count
    direct = [0] * count
    for step, later in reduction:
        direct[step] |= 1 << later
    unmatched = (1 << count) - 1  # steps that follow none
    for candidates in (direct, descendants):
        for start in range(count):
            if next_of[start] < 0:
                unmatched &= ~_augment(start, candidates, unmatched, next_of, previous_of)
    chains = [[start] for start in range(count) if previous_of[start] < 0]
    for chain in chains:
        while next_of[chain[-1]] >= 0:
            chain.append(next_of[chain[-1]])
    return [tuple(chain) for chain in chains]


def _augment(start: int, candidates: Sequence[int], unmatched: int, next_of: list[int], previous_of: list[int]) -> int:
    """Match ``start`` to one of its candidates if the others can be rearranged for it (breadth first).

    ``unmatched`` is the mask of the steps that follow none; that of the one among them that now does is returned.
    """
    unseen = (1 << len(candidates)) - 1
    reached_from: dict[int, int] = {}
    queue = deque([start])
    while queue:
        step = queue.popleft()
        fresh = candidates[step] & unseen
        unseen &= ~fresh
        for later in bits(fresh & unmatched or fresh):
            reached_from[later] = step
            if previous_of[later] >= 0:
                queue.append(previous_of[later])
                continue
            end = later
            while end >= 0:
                step = reached_from[end]
                next_of[step], previous_of[end], end = end, step, next_of[step]
            return 1 << later
    return 0
