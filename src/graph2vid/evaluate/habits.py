"""What training videos show: which steps are skipped and repeated, and how long they take; costs are log-odds of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph2vid.alignment import Durations
from graph2vid.datasets import Recording, Task
from graph2vid.evaluate.labels import Labels
from graph2vid.evaluate.metrics import segments

Values = NDArray[np.float64]

_SEEN = 0.5  # added to every count, so that what was never seen has a finite cost
_LEAST_SHARE = 0.001  # of the time of a video, for the same reason


@dataclass(frozen=True)
class Habits:
    """What the training videos of a task show, in steps of the procedure (K).

    Attributes
    ----------
    videos : int
    shown : float64 [K]
        In how many of them each step is shown.
    repeats : float64 [K]
        How often it is repeated in all.
    lengths : K lists
        The lengths of its segments, in seconds.
    share : float64 [K]
        The share of a video's time that it takes, on average.
    """

    videos: int
    shown: Values
    repeats: Values
    lengths: tuple[tuple[float, ...], ...]
    share: Values

    def skip(self, weight: float) -> Values:
        """Return the skip cost of each step, [K]; below 0 for what most videos do not show."""
        odds = (self.shown + _SEEN) / (self.videos - self.shown + _SEEN)
        return np.asarray(weight * np.log(odds))

    def repeat(self, weight: float) -> Values:
        """Return the repeat cost of each step, [K]: -log of the share of its segments that are repeats."""
        share = (self.repeats + _SEEN) / (self.shown + self.repeats + 2 * _SEEN)
        return np.asarray(-weight * np.log(share))

    def durations(self, weight: float, clip_seconds: float) -> Durations:
        """Return the log-normal prior of the lengths of segments, in clips."""
        return Durations.mine([[x / clip_seconds for x in seen] for seen in self.lengths], weight=weight)

    def clip(self, weight: float) -> Values:
        """Return what each clip of a step costs besides its evidence, [K]: less where a step takes more time."""
        share = self.share + _LEAST_SHARE
        return np.asarray(-weight * np.log(share / share.mean()))


def habits_of(task: Task, members: Sequence[tuple[Recording, Labels]]) -> Habits | None:
    """Return what videos of a task show, each given with its true labels; None where there is nothing."""
    n_steps = len(task.procedure)
    shown, repeats, share = np.zeros((3, n_steps))
    lengths: list[list[float]] = [[] for _ in range(n_steps)]
    for recording, truth in members:
        count = np.zeros(n_steps)
        for label, start, stop in segments(truth):
            for instruction in task.correspondence[label]:
                count[instruction] += 1
                lengths[instruction].append((stop - start) * recording.clip_seconds)
                share[instruction] += (stop - start) / (recording.n_clips * len(members))
        shown += count > 0
        repeats += np.maximum(count - 1, 0)
    seen = tuple(map(tuple, lengths))
    return Habits(len(members), shown, repeats, seen, share) if any(seen) else None
