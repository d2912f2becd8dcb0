"""The metrics, as pure functions of a predicted and a true label per clip (-1 = background).

All are shares in 0 … 1. Where nothing is to be measured (0 / 0: say, the accuracy on a video that shows no
step) they are NaN, and means over videos leave them out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from graph2vid.errors import InputError
from graph2vid.evaluate.labels import Labels, as_labels, to_classes

BACKGROUND = -1
OVERLAPS = (0.10, 0.25, 0.50)
"""The thresholds of F1@{10,25,50}."""

Annotation: TypeAlias = tuple[int, float, float]
"""(step, start, end)"""


def acc(predicted: ArrayLike, true: ArrayLike) -> float:
    """Return the share of clips that truly show a step and are given that step."""
    guess, truth = _pair(predicted, true)
    return _share(_hits(guess, truth), int((truth >= 0).sum()))


def acc_paper(predicted: ArrayLike, true: ArrayLike) -> float:
    """Return the number of right step clips over the number of all clips (as the paper words it)."""
    guess, truth = _pair(predicted, true)
    return _share(_hits(guess, truth), len(truth))


def mof(predicted: ArrayLike, true: ArrayLike) -> float:
    """Return the share of all clips with the right label, background being a label ("mean over frames")."""
    guess, truth = _pair(predicted, true)
    return _share(int((guess == truth).sum()), len(truth))


def iou(predicted: ArrayLike, true: ArrayLike) -> float:
    """Return Σ intersections / Σ unions over the steps that are truly there."""
    guess, truth = _pair(predicted, true)
    shown = truth[truth >= 0]
    hits = _hits(guess, truth)
    return _share(hits, len(shown) + int(np.isin(guess, shown).sum()) - hits)


def iou_strict(predicted: ArrayLike, true: ArrayLike) -> float:
    """Return :func:`iou` with predicted steps that are not there counted in the union."""
    guess, truth = _pair(predicted, true)
    hits = _hits(guess, truth)
    return _share(hits, int((truth >= 0).sum()) + int((guess >= 0).sum()) - hits)


def segments(labels: ArrayLike) -> tuple[tuple[int, int, int], ...]:
    """Return the segments of equal labels as (label, start, stop), half-open in clips, background left out.

    Two segments of one step with background between them are two.
    """
    found = as_labels(labels, "labels")
    edges = [0, *(np.flatnonzero(np.diff(found)) + 1).tolist(), len(found)]
    pieces = [(int(found[start]), start, stop) for start, stop in pairwise(edges) if start < stop]
    return tuple(piece for piece in pieces if piece[0] != BACKGROUND)


def edit(predicted: ArrayLike, true: ArrayLike) -> float:
    """Return 1 - (edit distance of the sequences of segments) / (length of the longer), background excluded."""
    guess, truth = _pair(predicted, true)
    left, right = ([label for label, _, _ in segments(labels)] for labels in (guess, truth))
    longer = max(len(left), len(right))
    return _share(longer - _edit_distance(left, right), longer)


def f1(predicted: ArrayLike, true: ArrayLike, overlap: float) -> float:
    """Return the F1 score of the predicted segments at an overlap in 0 … 1, background excluded."""
    return f1_of_counts(*f1_counts(predicted, true, overlap))


def f1_counts(predicted: ArrayLike, true: ArrayLike, overlap: float) -> tuple[int, int, int]:
    """Return how many segments are right, wrong and missed; sums over videos give the pooled F1.

    A predicted segment is right if, of the true segments of its step, the one with the largest IoU reaches
    ``overlap`` and no earlier predicted segment was right by it.

    Returns
    -------
    right, wrong, missed : int
    """
    guess, truth = _pair(predicted, true)
    guessed, there = segments(guess), segments(truth)
    of_label: dict[int, list[tuple[int, int, int]]] = {}
    for index, (label, start, stop) in enumerate(there):
        of_label.setdefault(label, []).append((index, start, stop))
    taken: set[int] = set()
    for label, start, stop in guessed:
        best, best_iou = -1, 0.0
        for index, true_start, true_stop in of_label.get(label, ()):
            inside = min(stop, true_stop) - max(start, true_start)
            found = inside / (max(stop, true_stop) - min(start, true_start))
            if found > best_iou:
                best, best_iou = index, found
        if best_iou >= overlap and best >= 0:
            taken.add(best)
    return len(taken), len(guessed) - len(taken), len(there) - len(taken)


def f1_of_counts(right: int, wrong: int, missed: int) -> float:
    """Return 2 right / (2 right + wrong + missed)."""
    return _share(2 * right, 2 * right + wrong + missed)


def step_times(labels: ArrayLike) -> dict[int, float]:
    """Return one time per step that appears, in clips: the middle of its (first) longest run."""
    longest: dict[int, tuple[int, float]] = {}
    for label, start, stop in segments(labels):
        if stop - start > longest.get(label, (0, 0.0))[0]:
            longest[label] = (stop - start, (start + stop) / 2)
    return {label: middle for label, (_, middle) in longest.items()}


def crosstask_recall(times: Mapping[int, float], annotations: Iterable[Annotation]) -> float:
    """Return the share of annotated steps whose one predicted time lies inside one of their annotations.

    Parameters
    ----------
    times : mapping of int to float
        One time per predicted step.
    annotations : iterable of (step, start, end)
        In the same unit; ends included.
    """
    spans: dict[int, list[tuple[float, float]]] = {}
    for step, start, end in annotations:
        spans.setdefault(step, []).append((start, end))
    found = sum(
        step in times and any(start <= times[step] <= end for start, end in of_step) for step, of_step in spans.items()
    )
    return _share(found, len(spans))


def evaluate_video(
    predicted: ArrayLike,
    true: ArrayLike,
    *,
    predicted_classes: Sequence[int] | Labels | None = None,
    true_classes: Sequence[int] | Labels | None = None,
    times: Mapping[int, float] | None = None,
) -> dict[str, float]:
    """Return every metric for one video.

    Parameters
    ----------
    predicted, true : int arrays [N]
        A label per clip, -1 = background.
    predicted_classes, true_classes : int arrays, optional
        The class of each predicted label and of each true label, from
        :func:`~graph2vid.evaluate.labels.shared_classes`, where predictions speak of instructions and the
        truth of dataset steps.
    times : mapping of int to float, optional
        One time per predicted class, in clips, for the recall; by default :func:`step_times`.

    Returns
    -------
    dict
        ``acc``, ``iou``, ``iou_strict``, ``acc_paper``, ``mof``, ``edit``, ``f1@10``, ``f1@25``, ``f1@50``,
        ``recall``.
    """
    guess, truth = _pair(predicted, true)
    if predicted_classes is not None:
        guess = to_classes(guess, predicted_classes)
    if true_classes is not None:
        truth = to_classes(truth, true_classes)
    return {
        **{metric.__name__: metric(guess, truth) for metric in (acc, iou, iou_strict, acc_paper, mof, edit)},
        **{f"f1@{round(100 * overlap)}": f1(guess, truth, overlap) for overlap in OVERLAPS},
        "recall": crosstask_recall(step_times(guess) if times is None else times, segments(truth)),
    }


def _pair(predicted: ArrayLike, true: ArrayLike) -> tuple[Labels, Labels]:
    guess, truth = as_labels(predicted, "predicted labels"), as_labels(true, "true labels")
    if guess.shape != truth.shape:
        raise InputError(f"predicted labels {guess.shape} and true labels {truth.shape} must agree on axis 0 (clips)")
    return guess, truth


def _hits(guess: Labels, truth: Labels) -> int:
    return int(((guess == truth) & (truth >= 0)).sum())


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _edit_distance(left: Sequence[int], right: Sequence[int]) -> int:
    """Return how many insertions, deletions and replacements turn one sequence into the other."""
    short, long = sorted((np.asarray(left), np.asarray(right)), key=len)
    places = np.arange(len(long) + 1)
    row = places
    for number, label in enumerate(short, start=1):
        best = np.minimum(row[:-1] + (long != label), row[1:] + 1)
        # Then insertions: the least over all places before, plus how far they are.
        row = places + np.minimum.accumulate(np.concatenate([[number], best]) - places)
    return int(row[-1])
