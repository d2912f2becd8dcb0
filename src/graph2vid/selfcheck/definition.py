"""What one label sequence costs, by definition, with everything a procedure may leave open.

No recursion, no nodes: the segments of the sequence, and what was shown before each of them.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.flow import bits
from graph2vid.selfcheck.enumerate import Enumeration, Rule, allowed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graph2vid.alignment import ClipCosts, Durations
    from graph2vid.flow import FlowGraph

Floats = NDArray[np.floating[Any]]
Segments = list[tuple[int, int, int]]
"""Step, first clip, and the clip after the last; background is no segment."""


@functools.lru_cache(maxsize=32)
def all_sequences(n_steps: int, n_clips: int) -> list[tuple[tuple[int, ...], Segments]]:
    """Return every label sequence with its segments, the smallest first when read from the last clip backwards."""
    found = []
    for backwards in itertools.product(range(-1, n_steps), repeat=n_clips):
        labels = backwards[::-1]
        ends = [0, *(j for j in range(1, n_clips) if labels[j] != labels[j - 1]), n_clips]
        segments = [(labels[start], start, stop) for start, stop in itertools.pairwise(ends) if labels[start] >= 0]
        found.append((labels, segments))
    return found


def segments_cost(
    flow: FlowGraph,
    segments: Segments,
    skip: Floats,
    repeat: Floats,
    durations: Durations | None,
    violation: float,
) -> float:
    """Return what the segments of a label sequence cost beside their clips; ∞ where they are not legal."""
    ancestors = [set(bits(mask)) for mask in flow.sure.ancestors]
    branch_of = {
        step: (group, number)
        for group, branches in enumerate(flow.alternatives)
        for number, branch in enumerate(branches)
        for step in branch
    }
    cost = 0.0
    done: set[int] = set()  # what was shown, and all that must come before it
    shown: set[int] = set()
    waived: set[int] = set()  # shown too late to be in order
    for step, start, stop in segments:
        taken = {branch_of[other] for other in shown if other in branch_of}
        if step in branch_of and any(
            group == branch_of[step][0] and number != branch_of[step][1] for group, number in taken
        ):
            return math.inf
        if step in shown:
            cost += float(repeat[step])
        elif step in done:
            waived.add(step)
            cost += float(repeat[step])
        else:
            for (before, after), confidence in flow.confidence.items():
                counts = after not in branch_of or branch_of[after] in taken
                if before == step and confidence < 1.0 and after in done and counts:
                    cost += violation * max(math.log(confidence / (1.0 - confidence)), 0.0)
        shown.add(step)
        done |= ancestors[step] | {step}
        if durations is not None:
            within = min(stop - start, durations.length.shape[1])
            cost += float(durations.length[step, within - 1])
            cost += (stop - start - within) * float(durations.tail[step])
    missing = (set(range(len(flow))) - shown) | waived
    cost += sum(float(skip[step]) for step in missing if step not in branch_of)
    for group, branches in enumerate(flow.alternatives):
        chosen = {
            number for other, number in (branch_of[step] for step in shown if step in branch_of) if other == group
        }
        options = [branches[number] for number in chosen] or branches
        cost += min(sum(float(skip[step]) for step in branch if step in missing) for branch in options)
    return cost


def enumerate_segments(
    flow: FlowGraph,
    costs: ClipCosts,
    *,
    repeat: Floats | None,
    durations: Durations | None,
    violation: float,
    gamma: float,
    rules: Iterable[Rule] = (),
) -> Enumeration:
    """Find the best alignment and the posterior by trying every label sequence, (K+1)^N of them.

    A step that a constraint pins is not waived.
    """
    match, drop, skip = costs
    n_steps, n_clips = match.shape
    rules = tuple(rules)
    skips = np.full(n_steps, np.inf) if skip is None else skip.astype(np.float64)
    skips[list(flow.optional)] = np.minimum(skips[list(flow.optional)], 0.0)
    skips[[step for kind, step, _, _ in rules if step is not None and kind in ("within", "show")]] = np.inf
    repeats = np.full(n_steps, np.inf) if repeat is None else repeat
    table = np.vstack([match, drop]).astype(np.float64).T.tolist()  # label -1 reads the last entry
    kept, totals = [], []
    for labels, segments in all_sequences(n_steps, n_clips):
        clips = sum(row[label] for row, label in zip(table, labels, strict=True))
        if clips == math.inf or (rules and not allowed(np.array([labels]), rules)[0]):
            continue
        cost = clips + segments_cost(flow, segments, skips, repeats, durations, violation)
        if cost < math.inf:
            kept.append(labels)
            totals.append(cost)
    return Enumeration.of(np.array(kept, np.int64).reshape(-1, n_clips), np.array(totals), n_steps, gamma)
