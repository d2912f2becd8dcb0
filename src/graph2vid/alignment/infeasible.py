"""Why no finite alignment exists, in words."""

from __future__ import annotations

import numpy as np

from graph2vid.alignment.clip_costs import ClipCosts
from graph2vid.alignment.durations import Durations
from graph2vid.flow import FlowGraph, bits


def why_infeasible(flow: FlowGraph, costs: ClipCosts, durations: Durations | None = None) -> str:
    """Say why a problem has no finite alignment, naming numbers and steps.

    The reasons are tried from the plainest to the most involved; the last one is general.
    """
    match, drop, skip = costs
    clips = match.shape[1]
    needed = np.ones(len(flow), bool) if skip is None else np.isinf(skip)
    needed[[step for group in flow.alternatives for branch in group for step in branch]] = False
    flow = flow.sure
    required = [int(k) for k in np.flatnonzero(needed)]
    possible = np.isfinite(match)

    if durations is not None and required:
        longest = max(required, key=lambda k: int(durations.at_least[k]))
        if durations.at_least[longest] > clips:
            return (
                f"{_named(flow, [longest])} takes at least {durations.at_least[longest]} clips, but the video has "
                f"{clips}: give a smaller number, shorter clips, or skip costs"
            )
        if (together := int(durations.at_least[required].sum())) > clips:
            return (
                f"the {len(required)} steps that must be shown take at least {together} clips together, but the video "
                f"has {clips}: give smaller numbers, shorter clips, or skip costs"
            )
    if len(required) > clips:
        return (
            f"the video has {clips} clips, but {len(required)} steps must each be shown for at least one clip: "
            "give a longer video, shorter clips, or skip costs"
        )
    nowhere = [k for k in required if not possible[k].any()]
    if nowhere:
        return f"{_named(flow, nowhere)} must be shown, but no clip is allowed there (match is +inf in all {clips})"
    dead = np.flatnonzero(np.isinf(drop) & ~possible.any(axis=0))
    if len(dead):
        return (
            f"clip {int(dead[0])} can be neither dropped nor explained by any step (drop and match are all +inf there)"
        )

    earliest = _earliest(flow, possible, needed)
    for step in required:
        allowed = np.flatnonzero(possible[step])
        if allowed[-1] < earliest[step]:
            before = [k for k in bits(flow.ancestors[step]) if needed[k]]
            return (
                f"{_named(flow, [step])} is allowed only up to clip {int(allowed[-1])}, but {_named(flow, before)} "
                f"must come before it, which takes until clip {int(earliest[step])} at the earliest"
            )
    crowded = _crowded(possible, required)
    if crowded:
        shared = int(possible[crowded].any(axis=0).sum())
        return f"{_named(flow, crowded)} need a clip each, but are allowed in only {shared} of them altogether"
    tight = [k for k in required if not possible[k].all()]
    forced = int(np.isinf(drop).sum())
    about = f" Restricted to some clips: {_named(flow, tight)}." if tight else ""
    about += f" {forced} clips must show a step." if forced else ""
    return f"the allowed clips of the steps contradict the order of the procedure or one another.{about}"


def _earliest(flow: FlowGraph, possible: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], needed: object) -> list[int]:
    """For each step the first clip at which it can begin, by its ancestors alone."""
    must = np.asarray(needed)
    earliest = [0] * len(flow)
    for step in flow.topological_order:
        before = [k for k in bits(flow.ancestors[step]) if must[k]]
        first = max([len(before), *(earliest[k] + 1 for k in before)])
        allowed = np.flatnonzero(possible[step, first:])
        earliest[step] = first + int(allowed[0]) if len(allowed) else first
    return earliest


def _crowded(possible: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], required: list[int]) -> list[int]:
    """Return steps that have fewer clips between them than they are, if any: where a matching gets stuck."""
    taken: dict[int, int] = {}  # clip → step

    def place(step: int, seen: set[int]) -> bool:
        for clip in np.flatnonzero(possible[step]).tolist():
            if clip not in seen:
                seen.add(clip)
                if clip not in taken or place(taken[clip], seen):
                    taken[clip] = step
                    return True
        return False

    for step in required:
        seen: set[int] = set()
        if not place(step, seen):
            return sorted({step, *(taken[clip] for clip in seen)})
    return []


def _named(flow: FlowGraph, steps: list[int]) -> str:
    shown = ", ".join(f"{flow.steps[k].id!r} ({flow.steps[k].text})" for k in steps[:4])
    more = f" and {len(steps) - 4} more" if len(steps) > 4 else ""
    return f"step {shown}{more}" if len(steps) == 1 else f"steps {shown}{more}"
