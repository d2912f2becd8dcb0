"""Every label sequence of a small case with its cost, by definition: what searches are compared with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from graph2vid.selfcheck import Case
from graph2vid.selfcheck.cases import make_feature_case
from graph2vid.selfcheck.enumerate import all_sequences, allowed, is_legal, segments_cost


def double_case(seed: int, index: int) -> Case:
    """Return a case in double precision, so that costs can be compared closely."""
    case = make_feature_case(seed, index)
    return replace(case, costs=case.costs.astype(np.float64))


def sequences_with_costs(case: Case) -> list[tuple[float, tuple[int, ...]]]:
    """Return the legal label sequences of a case and what each of them costs."""
    match, drop, skip = case.costs
    n_steps, n_clips = match.shape
    pinned = [step for kind, step, _, _ in case.rules if step is not None and kind in ("within", "show")]
    skips = np.full(n_steps, np.inf) if skip is None else skip.astype(np.float64)
    skips[list(case.flow.optional)] = np.minimum(skips[list(case.flow.optional)], 0.0)
    skips[pinned] = np.inf
    repeats = np.full(n_steps, np.inf) if case.repeat is None else case.repeat
    table = np.vstack([match, drop])
    found = []
    for labels, runs in all_sequences(n_steps, n_clips):
        if case.rules and not allowed(np.array([labels]), case.rules)[0]:
            continue
        cost = float(table[list(labels), range(n_clips)].sum())
        if cost < np.inf:
            cost += segments_cost(case.flow, runs, skips, repeats, case.durations, case.violation)
        if cost < np.inf:
            found.append((cost, labels))
    return found


def order_of(labels: tuple[int, ...]) -> tuple[int, ...]:
    """Return the steps shown, by their first appearance."""
    return tuple(dict.fromkeys(label for label in labels if label >= 0))


def legal_sequences(case: Case, contiguous: bool, n_clips: int | None = None) -> list[tuple[int, ...]]:
    """Return the label sequences of a plain case, or of its first clips, in which all that is shown is in order."""
    clips = len(case.costs.drop) if n_clips is None else n_clips
    return [
        labels
        for labels, _ in all_sequences(len(case.flow), clips)
        if is_legal(case.flow, np.array(labels), contiguous)
    ]
