"""How long a step lasts: what a segment costs beside its clips, by its length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid._memory import require_memory
from graph2vid.errors import InputError, TooLargeError

Costs64 = NDArray[np.float64]

LONGEST = 128
"""Clips up to which a prior is a table unless told otherwise; beyond, every clip costs as much as the last one."""

MOST_LENGTHS = 2**20
"""Clips up to which lengths can be told apart: far more than a day of video."""

_TRUSTED = 4.0  # segments of its own that a step must have to count as much as the others together
_LEAST_SPREAD = 0.25


@dataclass(frozen=True, eq=False)
class Durations:
    """What a segment of a step costs by its length, over K steps. All costs are at least 0 and may be +∞.

    Attributes
    ----------
    length : float64 [K, D]
        The cost of a segment of 1, 2, …, D clips.
    tail : float64 [K]
        The further cost of each clip beyond D; finite.
    """

    length: Costs64
    tail: Costs64

    def __repr__(self) -> str:
        return f"Durations({self.length.shape[0]} steps, lengths up to {self.length.shape[1]} clips)"

    def __post_init__(self) -> None:
        length, tail = np.array(self.length, np.float64), np.array(self.tail, np.float64)
        if length.ndim != 2 or length.shape[1] < 1 or tail.shape != length.shape[:1]:
            raise InputError(
                f"durations need costs [steps, lengths] and a tail per step, not {length.shape} and {tail.shape}"
            )
        if not ((length >= 0).all() and (tail >= 0).all() and np.isfinite(tail).all()):
            raise InputError("the costs of durations are at least 0 and no NaN, and those of the tail finite")
        if (endless := np.isinf(length[:, -1])).any():
            step = int(endless.argmax())
            raise InputError(f"durations: step {step} can have no length of {length.shape[1]} clips or more")
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "tail", tail)

    def __len__(self) -> int:
        return len(self.length)

    @property
    def at_least(self) -> NDArray[np.int64]:
        """The fewest clips of a segment of each step, [K]."""
        return np.asarray(np.isfinite(self.length).argmax(axis=1) + 1, dtype=np.int64)

    @classmethod
    def least(cls, clips: ArrayLike, n_steps: int) -> Durations:
        """Return what makes every segment of a step at least so many clips long: one number, or one per step."""
        given = np.asarray(clips)
        if given.dtype.kind not in "iu" or given.shape not in ((), (n_steps,)) or (given < 1).any():
            raise InputError(
                f"the least number of clips of a segment is a whole number of at least 1, one for all or one for each "
                f"of the {n_steps} steps, not {clips!r}"
            )
        fewest = np.broadcast_to(given, n_steps)
        _check_size(n_steps, int(fewest.max()))
        return cls(np.where(np.arange(1, fewest.max() + 1) < fewest[:, None], np.inf, 0.0), np.zeros(n_steps))

    @classmethod
    def log_normal(
        cls,
        median: ArrayLike,
        spread: ArrayLike,
        *,
        weight: float = 1.0,
        at_least: ArrayLike = 1,
        longest: int = LONGEST,
    ) -> Durations:
        """Return a log-normal prior; its most probable length costs nothing.

        Parameters
        ----------
        median : array [K]
            In clips.
        spread : array [K]
            The standard deviation of the logarithm.
        weight : float
            What -log p(length) is multiplied by.
        at_least : int or array [K]
            The fewest clips of a segment.
        longest : int
            Where the table ends at the latest; beyond, each clip costs as much as the last one.
        """
        middle, wide = np.asarray(median, np.float64), np.asarray(spread, np.float64)
        if middle.ndim != 1 or wide.shape != middle.shape or not ((middle > 0).all() and (wide > 0).all()):
            raise InputError("a log-normal duration needs a median and a spread above 0 for each step")
        normal = np.vectorize(NormalDist().cdf, otypes=[np.float64])
        if isinstance(longest, bool) or not isinstance(longest, int | np.integer) or longest < 2:
            raise InputError(f"longest must be a whole number of at least 2 clips, not {longest!r}")
        with np.errstate(over="ignore"):
            count = int(min(longest, max(2, np.ceil(middle * np.exp(2.0 * wide)).max())))
        _check_size(len(middle), count)
        with np.errstate(divide="ignore"):
            bounds = (np.log(np.arange(count + 1) + 0.5) - np.log(middle)[:, None]) / wide[:, None]
        bounds[:, 0] = -np.inf
        # The upper half by its complement: what is left there is small.
        share = np.where(bounds[:, :-1] > 0, np.diff(-normal(-bounds), axis=1), np.diff(normal(bounds), axis=1))
        return cls._of_shares(share, weight, at_least)

    @classmethod
    def histogram(
        cls, counts: Sequence[ArrayLike], *, weight: float = 1.0, at_least: ArrayLike = 1, smooth: float = 0.5
    ) -> Durations:
        """Return the prior that counts of lengths tell; the commonest length costs nothing.

        Parameters
        ----------
        counts : K arrays
            How often each step lasted 1, 2, … clips; not all of one size need be given.
        weight, at_least
            As for :meth:`log_normal`.
        smooth : float
            What is added to every count, above 0.
        """
        rows = [np.asarray(row, np.float64) for row in counts]
        if not rows or any(row.ndim != 1 or not (row >= 0).all() for row in rows) or not smooth > 0:
            raise InputError("a histogram of durations is a row of counts for each step, with smooth above 0")
        longest = max(2, *map(len, rows))
        _check_size(len(rows), longest)
        table = np.stack([np.pad(row, (0, longest - len(row))) for row in rows]) + smooth
        return cls._of_shares(table / table.sum(axis=1, keepdims=True), weight, at_least)

    @classmethod
    def _of_shares(cls, share: Costs64, weight: float, at_least: ArrayLike) -> Durations:
        if not 0 <= weight < np.inf:
            raise InputError(f"the weight of durations is a number of at least 0, not {weight!r}")
        cost = -np.log(np.maximum(share, np.finfo(np.float64).tiny))
        cost = weight * (cost - cost.min(axis=1, keepdims=True))
        tail = np.maximum(cost[:, -1] - cost[:, -2], 0.0)
        return cls(cost, tail).with_least(at_least)

    @classmethod
    def mine(
        cls, lengths: Sequence[Iterable[float]], *, weight: float = 1.0, at_least: ArrayLike = 1, longest: int = LONGEST
    ) -> Durations:
        """Return the log-normal prior of segments seen: ``lengths`` [K] lists those of each step, in clips.

        A step that was seen seldom leans on all steps together.
        """
        logs = [np.log(np.maximum(np.asarray(list(seen), np.float64), 0.5)) for seen in lengths]
        everything = np.concatenate(logs) if logs else np.zeros(0)
        if not len(everything):
            raise InputError("no segment of any step was seen: there are no durations to mine")
        centre, width = float(everything.mean()), max(float(everything.std()), _LEAST_SPREAD)
        median, spread = [], []
        for seen in logs:
            trust = len(seen) / (len(seen) + _TRUSTED)
            middle = trust * float(seen.mean()) + (1 - trust) * centre if len(seen) else centre
            own = float(np.square(seen - middle).mean()) if len(seen) else 0.0
            median.append(np.exp(middle))
            spread.append(max(float(np.sqrt(trust * own + (1 - trust) * width**2)), _LEAST_SPREAD))
        return cls.log_normal(median, spread, weight=weight, at_least=at_least, longest=longest)

    def with_least(self, clips: ArrayLike) -> Durations:
        """Return the same costs with segments of fewer clips forbidden."""
        bound = Durations.least(clips, len(self))
        count = max(self.length.shape[1], bound.length.shape[1])
        return Durations(self._long(count) + bound._long(count), self.tail)

    def rows(self, steps: Any) -> Durations:
        """Return the durations of some of the steps, by their indices."""
        return Durations(self.length[steps], self.tail[steps])

    def _long(self, count: int) -> Costs64:
        """Return the table drawn out to ``count`` lengths."""
        more = np.arange(1, count - self.length.shape[1] + 1)
        return np.hstack([self.length, self.length[:, -1:] + self.tail[:, None] * more])


def _check_size(n_steps: int, lengths: int) -> None:
    """Refuse a table of costs that nobody can mean, before it is made."""
    if lengths > MOST_LENGTHS:
        raise TooLargeError(
            f"durations of up to {lengths:,} clips are asked for, and {MOST_LENGTHS:,} are the most: "
            "give fewer clips as the least length of a segment, or a shorter table"
        )
    # The table, what it is made of, and what is computed from it.
    what = f"a table of durations of {n_steps:,} steps and {lengths:,} clips"
    require_memory(32 * n_steps * lengths, what, "give fewer clips")


def check_durations(durations: Any, n_steps: int) -> Durations | None:
    """Return what was handed in as durations: :class:`Durations`, or the least number of clips; None if all is free."""
    if durations is None or (type(durations) is int and durations == 1):  # said at once: most calls ask for nothing
        return None
    made = durations if isinstance(durations, Durations) else Durations.least(durations, n_steps)
    if len(made) != n_steps:
        raise InputError(f"durations are of {len(made)} steps, but the procedure has {n_steps}")
    return made if made.length.any() or made.tail.any() else None
