"""What a flow graph may leave open: optional steps, alternative branches, and edges that are not certain."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, TypeAlias

from graph2vid.errors import GraphError
from graph2vid.flow.messages import no_such_index, quoted
from graph2vid.flow.order import Edge, bits, mask_of

Branch: TypeAlias = tuple[int, ...]
Group: TypeAlias = tuple[Branch, ...]
"""Branches of which exactly one is done."""


def sort_edges(edges: Iterable[Edge], confidences: Sequence[float]) -> tuple[tuple[Edge, ...], tuple[float, ...]]:
    """Return the edges sorted, each once, and their confidences; none where all are certain.

    Of an edge that comes twice the surer one stays.
    """
    pairs = [(operator.index(a), operator.index(b)) for a, b in edges]
    if not confidences:
        return tuple(sorted(set(pairs))), ()
    if len(confidences) != len(pairs):
        raise GraphError(f"{len(confidences)} confidences for {len(pairs)} edges: one for each edge is needed")
    sure: dict[Edge, float] = {}
    for pair, confidence in zip(pairs, confidences, strict=True):
        if type(confidence) is not float or not 0.0 < confidence <= 1.0:
            confidence = check_confidence(confidence, f"edge {pair}")
        sure[pair] = max(sure.get(pair, 0.0), confidence)
    ordered = dict(sorted(sure.items()))
    return tuple(ordered), tuple(ordered.values()) if min(sure.values(), default=1.0) < 1.0 else ()


def check_confidence(value: Any, of: str) -> float:
    """Return a confidence as a float; it lies above 0 and is at most 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value <= 1.0:
        raise GraphError(f"{of}: a confidence is a number above 0 and at most 1, not {quoted(value)}")
    return float(value)


def sorted_steps(steps: Iterable[int], n_steps: int, where: str) -> tuple[int, ...]:
    """Return steps sorted, each once; ``where`` is what messages call them."""
    found = sorted({operator.index(step) for step in steps})
    for step in found:
        if not 0 <= step < n_steps:
            raise GraphError(f"{where}: {no_such_index(step, n_steps)}")
    return tuple(found)


def check_alternatives(alternatives: Iterable[Iterable[Iterable[int]]], ids: Sequence[str]) -> tuple[Group, ...]:
    """Return the groups of branches, each branch sorted; a step belongs to one branch at the most."""
    groups: list[Group] = []
    seen: dict[int, str] = {}
    for number, group in enumerate(alternatives, start=1):
        where = f"alternatives, group {number}"
        branches = tuple(sorted_steps(branch, len(ids), where) for branch in group)
        if len(branches) < 2:
            raise GraphError(f"{where}: two branches or more are needed, not {len(branches)}")
        if not all(branches):
            raise GraphError(f"{where}: a branch without steps; make the steps of the others optional instead")
        for step in chain.from_iterable(branches):
            if step in seen:
                raise GraphError(f"{where}: step {quoted(ids[step])} stands in two branches (first in {seen[step]})")
            seen[step] = f"group {number}"
        groups.append(tuple(sorted(branches)))
    return tuple(sorted(groups))


def refuse_contradictions(groups: Iterable[Group], descendants: Sequence[int], ids: Sequence[str]) -> None:
    """Refuse an order between the branches of one group: only one of them is done."""
    for group in groups:
        members = mask_of(chain.from_iterable(group))
        for branch in group:
            rivals = members & ~mask_of(branch)
            for step in branch:
                for rival in bits(descendants[step] & rivals):
                    raise GraphError(
                        f"step {quoted(ids[step])} must come before {quoted(ids[rival])}, but they are alternatives, "
                        "of which one only is done"
                    )
