"""Right, predicted and true: the counts behind precision, recall and F1, and how sure one can be of them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SAMPLES = 10_000
LEVEL = 0.95
SEED = 0


@dataclass(frozen=True)
class Counts:
    """How many things were right, how many predicted, how many true.

    Attributes
    ----------
    right, predicted, gold : int
    """

    right: int = 0
    predicted: int = 0
    gold: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.right + other.right, self.predicted + other.predicted, self.gold + other.gold)

    @property
    def precision(self) -> float:
        """The share of the predicted that is right; NaN where nothing was predicted."""
        return self.right / self.predicted if self.predicted else math.nan

    @property
    def recall(self) -> float:
        """The share of the true that was found; NaN where there was nothing to find."""
        return self.right / self.gold if self.gold else math.nan

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall: 0 where nothing is right, NaN where there was nothing at all."""
        total = self.predicted + self.gold
        return 2 * self.right / total if total else math.nan

    def to_json(self) -> dict[str, Any]:
        """Return shares and counts."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1, **vars(self)}


def compare(predicted: Iterable[Hashable], gold: Iterable[Hashable]) -> Counts:
    """Count two sets of things; a thing named twice counts once."""
    one, other = set(predicted), set(gold)
    return Counts(len(one & other), len(one), len(other))


def total(counts: Iterable[Counts]) -> Counts:
    """Add up counts (a micro average is of their sum)."""
    return sum(counts, start=Counts())


def f1_interval(counts: Sequence[Counts], baseline: Sequence[Counts] | None = None) -> tuple[float, float]:
    """Return the percentile bootstrap interval, over texts, of the F1 of the summed counts.

    Parameters
    ----------
    counts : sequence of Counts
        One per text.
    baseline : sequence of Counts, optional
        Of the same texts: the interval is then that of F1 minus the baseline's F1, on the same draws.

    Returns
    -------
    (float, float)
        At :data:`LEVEL`, from :data:`SAMPLES` draws; NaN where there is nothing.
    """
    if not counts:
        return math.nan, math.nan
    random = np.random.default_rng(SEED)
    times = random.multinomial(len(counts), np.full(len(counts), 1 / len(counts)), size=SAMPLES)  # [samples, texts]
    values = _resampled(counts, times)
    if baseline is not None:
        values = values - _resampled(baseline, times)
    values = values[~np.isnan(values)]
    if not values.size:
        return math.nan, math.nan
    low, high = np.percentile(values, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return float(low), float(high)


def _resampled(counts: Sequence[Counts], times: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the F1 of each draw; ``times`` says how often each text is in it."""
    right = times @ np.array([one.right for one in counts])
    both = times @ np.array([one.predicted + one.gold for one in counts])
    found: NDArray[np.float64] = np.divide(2.0 * right, both, out=np.full(len(times), np.nan), where=both > 0)
    return found
