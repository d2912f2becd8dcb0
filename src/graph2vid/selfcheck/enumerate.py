"""The last word on tiny cases: write down every label sequence, keep the legal ones, add up their costs.

No recursion, no ideals: only the definition of an alignment (one label per clip, -1 for background), and, with
everything a procedure may leave open, the segments of a sequence and what was shown before each of them.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid._arrays import Floats
from graph2vid.alignment import Durations, Kind
from graph2vid.flow import FlowGraph, bits

if TYPE_CHECKING:
    from graph2vid.selfcheck.cases import Case

Rule = tuple[Kind, int | None, int, int]
"""A constraint as plain values: kind, step, start, stop (half-open clips)."""

Segments = list[tuple[int, int, int]]
"""Step, first clip, and the clip after the last; background is no segment."""


class Enumeration(NamedTuple):
    """What enumeration says: cost ∞ and no labels where no finite alignment exists."""

    cost: float
    labels: NDArray[np.int64] | None
    soft_cost: float
    probability: NDArray[np.float64]
    start: NDArray[np.float64]  # [K, N] the probability of a segment of each step beginning at each clip

    @classmethod
    def of(cls, labels: NDArray[np.int64], cost: Floats, n_steps: int, gamma: float) -> Enumeration:
        """Sum up label sequences [T, N] of finite cost [T], the smallest one first when read backwards."""
        n_clips = labels.shape[1]
        probability, start = np.zeros((n_steps + 1, n_clips)), np.zeros((n_steps + 1, n_clips))
        if not len(cost):
            return cls(math.inf, None, math.inf, probability, start[:-1])
        best = int(cost.argmin())
        weight = np.exp((cost[best] - cost) / gamma)
        for clip in range(n_clips):
            row = labels[:, clip] % (n_steps + 1)  # -1 becomes K, the last row
            begins = labels[:, clip] != labels[:, clip - 1] if clip else True
            probability[:, clip] = np.bincount(row, weight, n_steps + 1) / weight.sum()
            start[:, clip] = np.bincount(row, weight * begins, n_steps + 1) / weight.sum()
        soft_cost = float(cost[best] - gamma * np.log(weight.sum()))
        return cls(float(cost[best]), labels[best].astype(np.int64), soft_cost, probability, start[:-1])


class _Sequences(NamedTuple):
    labels: NDArray[np.int64]  # [T, N], smallest first when read from the last clip backwards, -1 first
    first: NDArray[np.int64]  # [T, K] first clip of each step, N where it is not shown


def count_sequences(n_steps: int, n_clips: int) -> int:
    """Return how many label sequences there are, legal or not."""
    return int((n_steps + 1) ** n_clips)


@functools.lru_cache(maxsize=64)
def _sequences(n_steps: int, n_clips: int, contiguous: bool) -> _Sequences:
    """Return the label sequences in which each step has one run (or one group, only background inside)."""
    number = np.arange(count_sequences(n_steps, n_clips))
    clips = np.arange(n_clips)
    labels = number[:, None] // (n_steps + 1) ** clips % (n_steps + 1) - 1  # the last clip is the highest digit
    keep = np.ones(len(labels), bool)
    first = np.full((len(labels), n_steps), n_clips)
    last = np.full((len(labels), n_steps), -1)
    for step in range(n_steps):
        here = labels == step
        shown = here.any(axis=1)
        first[shown, step] = here[shown].argmax(axis=1)
        last[shown, step] = n_clips - 1 - here[shown, ::-1].argmax(axis=1)
        inside = (first[:, [step]] <= clips) & (clips <= last[:, [step]])
        keep &= (here | ~inside | ((labels == -1) & (not contiguous))).all(axis=1)
    return _Sequences(labels[keep], first[keep])


def _legal(flow: FlowGraph, first: NDArray[np.int64], n_clips: int) -> NDArray[np.bool_]:
    """Tell in which sequences the shown steps stand in a legal order, across steps that are not shown too."""
    legal = np.ones(len(first), bool)
    for step, followers in enumerate(flow.sure.descendants):
        for follower in range(len(flow)):
            if followers >> follower & 1:
                legal &= (first[:, step] < first[:, follower]) | (first[:, [step, follower]] == n_clips).any(axis=1)
    return legal


def allowed(labels: NDArray[np.int64], rules: Iterable[Rule]) -> NDArray[np.bool_]:
    """Tell which sequences obey the constraints."""
    found = np.ones(len(labels), bool)
    for kind, step, start, stop in rules:
        span = np.zeros(labels.shape[1], bool)
        span[start:stop] = True
        wanted = labels == (-1 if step is None else step)
        if kind == "within":
            found &= wanted.any(axis=1) & ~wanted[:, ~span].any(axis=1)
        elif kind == "forbid":
            found &= ~wanted[:, span].any(axis=1)
        elif kind in ("background", "show"):
            found &= wanted[:, span].all(axis=1)
        else:
            raise ValueError(f"unknown constraint {kind!r}")
    return found


def labels_cost(labels: NDArray[np.int64], match: Floats, drop: Floats, skip: Floats | None) -> Floats:
    """Add up the cost of label sequences, in float64.

    Parameters
    ----------
    labels : [T, N]
        Label sequences, -1 for background.
    match, drop, skip : [K, N], [N], [K] or None
        The costs; without ``skip`` a step that is not shown costs ∞.

    Returns
    -------
    [T]
    """
    n_steps, n_clips = match.shape
    table = np.vstack([match, drop]).astype(np.float64)  # label -1 picks the last row
    cost = table[labels, np.arange(n_clips)].sum(axis=1)
    shown = (labels[:, :, None] == np.arange(n_steps)).any(axis=1)
    waived = np.full(n_steps, np.inf) if skip is None else skip.astype(np.float64)
    total: Floats = cost + np.where(shown, 0.0, waived).sum(axis=1)
    return total


def is_legal(flow: FlowGraph, labels: NDArray[np.int64], contiguous: bool, rules: Iterable[Rule] = ()) -> bool:
    """Tell whether one label sequence [N], of any length, is an alignment that obeys the constraints."""
    labels = np.asarray(labels)
    if labels.size and not (labels.min() >= -1 and labels.max() < len(flow)):
        return False
    groups = labels if contiguous else labels[labels >= 0]
    begins = groups[np.flatnonzero(np.diff(groups, prepend=-2))] if groups.size else groups
    order = begins[begins >= 0]
    if len(set(order.tolist())) < len(order):
        return False
    first = np.full((1, len(flow)), len(labels))
    for step in order.tolist():
        first[0, step] = int((labels == step).argmax())
    return bool(_legal(flow, first, len(labels))[0] and allowed(labels[None], rules)[0])


def inversion_cost(flow: FlowGraph, first: int, second: int, violation: float) -> float:
    """Return what it costs to begin a step when another one, which is expected later, is done."""
    certain = flow.sure.descendants
    if certain[first] >> second & 1 or certain[second] >> first & 1:
        return 0.0
    sure = flow.confidence.get((first, second), 1.0)
    return 0.0 if sure == 1.0 else violation * max(math.log(sure / (1.0 - sure)), 0.0)


def _order_cost(flow: FlowGraph, first: NDArray[np.int64], n_clips: int, violation: float) -> Floats:
    """Add up what the order costs in which steps are shown first, [T]; what must come before a shown step is done."""
    total, ancestors = np.zeros(len(first)), flow.sure.ancestors
    for row, begins in enumerate(first.tolist() if flow.confidences and violation else ()):
        done: set[int] = set()
        for step in sorted((one for one in range(len(flow)) if begins[one] < n_clips), key=lambda one: begins[one]):
            total[row] += sum(inversion_cost(flow, step, other, violation) for other in done)
            done |= {step, *bits(ancestors[step])}
    return total


def enumerate_alignments(
    flow: FlowGraph,
    match: Floats,
    drop: Floats,
    skip: Floats | None,
    *,
    contiguous: bool,
    gamma: float = 1.0,
    rules: Iterable[Rule] = (),
    violation: float = 1.0,
) -> Enumeration:
    """Find the best alignment and the posterior by trying every label sequence, (K+1)^N of them.

    Parameters
    ----------
    flow, match, drop, skip, contiguous
        As for :func:`graph2vid.align`.
    gamma
        Temperature of the soft minimum.
    rules
        Constraints, as plain values.
    violation
        Factor of what inverted pairs of steps cost; finite.
    """
    n_steps, n_clips = match.shape
    labels, first = _sequences(n_steps, n_clips, contiguous)
    keep = _legal(flow, first, n_clips) & allowed(labels, rules)
    labels = labels[keep]
    cost = labels_cost(labels, match, drop, skip) + _order_cost(flow, first[keep], n_clips, violation)
    finite = np.isfinite(cost)
    return Enumeration.of(labels[finite], cost[finite], n_steps, gamma)


# -- with everything a procedure may leave open ------------------------------------------------------------------


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
        if step in branch_of and branch_of[step][0] in {group for group, _ in taken - {branch_of[step]}}:
            return math.inf
        if step in done:
            waived |= {step} - shown
            cost += float(repeat[step])
        else:
            counted = (other for other in done if other not in branch_of or branch_of[other] in taken)
            cost += sum(inversion_cost(flow, step, other, violation) for other in counted)
        shown.add(step)
        done |= ancestors[step] | {step}
        if durations is not None:
            within = min(stop - start, durations.length.shape[1])
            cost += float(durations.length[step, within - 1])
            cost += (stop - start - within) * float(durations.tail[step])
    missing = (set(range(len(flow))) - shown) | waived
    cost += sum(float(skip[step]) for step in missing if step not in branch_of)
    for branches in flow.alternatives:
        options = [branch for branch in branches if shown.intersection(branch)] or branches
        cost += min(sum(float(skip[step]) for step in branch if step in missing) for branch in options)
    return cost


def enumerate_segments(case: Case) -> Enumeration:
    """Find the best alignment and the posterior by trying every label sequence, (K+1)^N of them.

    A step that a constraint pins is not waived.
    """
    flow, rules, (match, drop, skip) = case.flow, case.rules, case.costs
    n_steps, n_clips = match.shape
    skips = np.full(n_steps, np.inf) if skip is None else skip.astype(np.float64)
    skips[list(flow.optional)] = np.minimum(skips[list(flow.optional)], 0.0)
    skips[[step for kind, step, _, _ in rules if step is not None and kind in ("within", "show")]] = np.inf
    repeats = np.full(n_steps, np.inf) if case.repeat is None else case.repeat
    table = np.vstack([match, drop]).astype(np.float64).T.tolist()  # label -1 reads the last entry
    kept, totals = [], []
    for labels, segments in all_sequences(n_steps, n_clips):
        clips = sum(row[label] for row, label in zip(table, labels, strict=True))
        if clips == math.inf or (rules and not allowed(np.array([labels]), rules)[0]):
            continue
        cost = clips + segments_cost(flow, segments, skips, repeats, case.durations, case.violation)
        if cost < math.inf:
            kept.append(labels)
            totals.append(cost)
    return Enumeration.of(np.array(kept, np.int64).reshape(-1, n_clips), np.array(totals), n_steps, case.gamma)
