"""True labels per clip from annotations in seconds, and classes of steps that share an instruction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid.errors import InputError

Labels: TypeAlias = NDArray[np.int64]
"""A label per clip, -1 = background; or a class per label."""

RULES = ("cover", "touch")
OVERLAPPING = ("start", "row")


def as_labels(values: ArrayLike, name: str) -> Labels:
    """Return ``values`` as a vector of labels: whole numbers from -1 (background)."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{name} must be a vector [clips], not shape {array.shape}")
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"{name} must be whole numbers, not {array.dtype}")
    labels = array.astype(np.int64)
    if labels.size and labels.min() < -1:
        clip = int(np.argmax(labels < -1))
        raise InputError(f"{name}: {labels[clip]} at clip {clip}; a label is a step's index or -1 (background)")
    return labels


def labels_from_annotations(
    annotations: Iterable[tuple[int, float, float]],
    n_clips: int,
    clip_seconds: float = 1.0,
    offset: float = 0.0,
    *,
    rule: str = "cover",
    overlapping: str = "start",
) -> Labels:
    """Lay annotations in seconds on clips.

    Parameters
    ----------
    annotations : iterable of (step, start, end)
        Step indices and seconds. What lies outside the clips is ignored.
    n_clips : int
        Clip j covers ``offset + j * clip_seconds`` to ``offset + (j + 1) * clip_seconds``.
    clip_seconds, offset : float
        Seconds.
    rule : {"cover", "touch"}
        ``cover``: the label that covers most of the clip, background being one (a step wins over background
        when equal, and of equal steps the one whose annotation wins overlaps). ``touch``: every clip that
        an annotation touches, from the one that holds its start to the one that holds its end, both
        included.
    overlapping : {"start", "row"}
        Where annotations overlap, the one that starts later wins (of equals, the later row), or the later
        row wins.

    Returns
    -------
    int64 array [N]
        A step index per clip, -1 = background.
    """
    if rule not in RULES or overlapping not in OVERLAPPING:
        raise InputError(f"the rule is one of {RULES} and overlapping one of {OVERLAPPING}")
    if n_clips < 0 or not 0 < clip_seconds < math.inf or not math.isfinite(offset):
        raise InputError(f"impossible clips: {n_clips} of {clip_seconds} s from {offset} s")
    rows = [(int(step), float(start), float(end)) for step, start, end in annotations]
    for step, start, end in rows:
        if step < 0 or not (math.isfinite(start) and math.isfinite(end) and start <= end):
            raise InputError(f"annotation of step {step} from {start} s to {end} s: impossible step or span")
    if overlapping == "start":
        rows.sort(key=lambda row: row[1])  # stable: of equals, the later row comes last and wins
    labels = np.full(n_clips, -1, dtype=np.int64)
    if rule == "touch":
        for step, start, end in rows:
            first, last = (math.floor((time - offset) / clip_seconds) for time in (start, end))
            labels[max(first, 0) : max(last + 1, 0)] = step
    elif rows and n_clips:
        labels[:] = _cover(rows, offset + np.arange(n_clips + 1) * clip_seconds, clip_seconds)
    return labels


def _cover(rows: list[tuple[int, float, float]], edges: NDArray[np.floating[Any]], clip_seconds: float) -> list[int]:
    """Cut time at every edge of a clip or annotation: each piece has one label, each clip its longest one."""
    ends = np.array([(start, end) for _, start, end in rows]).ravel()
    cuts = np.unique(np.concatenate([edges, np.clip(ends, edges[0], edges[-1])]))
    winner = np.full(len(cuts) - 1, -1, dtype=np.int64)  # the row that wins each piece
    for index, (_, start, end) in enumerate(rows):
        winner[np.searchsorted(cuts, start) : np.searchsorted(cuts, end)] = index
    clip = np.searchsorted(edges, cuts[:-1], side="right") - 1
    shares: list[dict[int, tuple[float, int]]] = [{} for _ in edges[1:]]  # step: seconds, its last row
    for at, row, seconds in zip(clip.tolist(), winner.tolist(), np.diff(cuts).tolist(), strict=True):
        step = rows[row][0] if row >= 0 else -1
        before, last = shares[at].get(step, (0.0, -1))
        shares[at][step] = (before + seconds, max(last, row))
    slack = 1e-9 * clip_seconds  # equal shares must not be told apart by rounding
    labels = []
    for of_clip in shares:
        most = max(seconds for seconds, _ in of_clip.values()) - slack
        equal = {last: step for step, (seconds, last) in of_clip.items() if seconds >= most}
        labels.append(equal[max(equal)])
    return labels


def to_classes(labels: ArrayLike, classes: Sequence[int] | Labels) -> Labels:
    """Replace each label by its class; background stays.

    Parameters
    ----------
    labels : int array [N]
    classes : int array
        The class of label 0, 1, ….
    """
    found = as_labels(labels, "labels")
    table = np.asarray(classes, dtype=np.int64)
    if found.size and found.max() >= len(table):
        clip = int(found.argmax())
        raise InputError(f"label {found[clip]} at clip {clip} has no class: there are {len(table)} of them")
    return np.append(table, -1)[found]  # label -1 reads the last entry


def shared_classes(instructions_of_step: Sequence[Iterable[int]], n_instructions: int) -> tuple[Labels, Labels]:
    """Form classes of dataset steps and instructions that correspond to each other.

    Dataset steps that share an instruction are one class, with all their instructions. A dataset step
    without an instruction is a class that no prediction has, so it counts as missed; an instruction without
    a dataset step is a class that is never there.

    Parameters
    ----------
    instructions_of_step : sequence of iterables of int
        Per dataset step, the indices of its instructions (possibly none, possibly several).
    n_instructions : int

    Returns
    -------
    step_class : int64 array [dataset steps]
        Use as ``true_classes``.
    instruction_class : int64 array [n_instructions]
        Use as ``predicted_classes``.
    """
    n_steps = len(instructions_of_step)
    first = list(range(n_steps + n_instructions))  # of the same class
    for step, instructions in enumerate(instructions_of_step):
        for instruction in instructions:
            if not 0 <= instruction < n_instructions:
                raise InputError(f"dataset step {step} names instruction {instruction}, but there are {n_instructions}")
            low, high = sorted((first[step], first[n_steps + instruction]))
            first = [low if one == high else one for one in first]
    number = np.unique(first, return_inverse=True)[1].astype(np.int64)
    return number[:n_steps], number[n_steps:]
