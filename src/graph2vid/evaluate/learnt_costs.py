"""What people do with a procedure, learnt from training videos: what they leave out, return to, and how long it takes.

Prices are log-odds of what the training videos show, times weights that are the same for all steps. Where the evidence
of a video has prices of its own for steps left out, both are added up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from graph2vid.alignment import Durations
from graph2vid.datasets.dataset import Dataset, Recording, Split, Task
from graph2vid.errors import InputError
from graph2vid.evaluate.methods import NO_TRAINING, Absent, Labels, Method, Plan, Training, Video, true_labels
from graph2vid.evaluate.metrics import runs
from graph2vid.flow import FlowGraph

Prices = NDArray[np.float64]

FEATURES = ("skip", "repeat", "durations", "precedence", "share")
TOGETHER = ("skip+repeat+durations", "skip+durations+precedence", "skip+repeat+durations+precedence+share")
LIKELIEST = "likeliest"
"""Not a feature of the alignment, but the likeliest label of each clip over all alignments with the others."""

_SEEN = 0.5  # added to every count, so that what was never seen has a finite price
_LEAST_SHARE = 0.001  # of the time of a video, for the same reason


GRID = {
    "skip": (1.0, 4.0, 16.0),
    "repeat": (4.0, 16.0, 64.0),
    "durations": (0.25, 1.0, 4.0),
    "precedence": (1.0, 4.0, 16.0),
    "share": (0.0625, 0.25, 1.0),
    LIKELIEST: (1.0,),
}
"""What log-odds may be multiplied by to be prices beside the costs of clips, a factor of 4 from one to the next.
Evidence differs in how much its nats are worth: clips that look alike repeat what they say, and scores need not be
calibrated. So which of these is used for a video is decided by the training videos (:mod:`graph2vid.evaluate.nested`).
"""


@dataclass(frozen=True)
class Habits:
    """What the training videos of a task show, in steps of the procedure (K).

    Attributes
    ----------
    videos : int
    shown : float64 [K]
        In how many of them each step is shown.
    returns : float64 [K]
        How often it is returned to in all.
    lengths : K lists
        The lengths of its runs, in seconds.
    share : float64 [K]
        The share of a video's time that it takes, on average.
    """

    videos: int
    shown: Prices
    returns: Prices
    lengths: tuple[tuple[float, ...], ...]
    share: Prices

    def skip(self, weight: float) -> Prices:
        """Return the price of not showing each step, [K]; below 0 for what most videos do not show."""
        odds = (self.shown + _SEEN) / (self.videos - self.shown + _SEEN)
        return np.asarray(weight * np.log(odds), dtype=np.float64)

    def repeat(self, weight: float) -> Prices:
        """Return the price of each return to each step, [K]: -log of the share of its runs that are returns."""
        share = (self.returns + _SEEN) / (self.shown + self.returns + 2 * _SEEN)
        return np.asarray(-weight * np.log(share), dtype=np.float64)

    def durations(self, weight: float, clip_seconds: float) -> Durations:
        """Return the log-normal prior of the lengths of runs, in clips."""
        return Durations.mine([[x / clip_seconds for x in seen] for seen in self.lengths], weight=weight)

    def clip(self, weight: float) -> Prices:
        """Return what each clip of a step costs besides its evidence, [K]: less where a step takes more time."""
        share = self.share + _LEAST_SHARE
        return np.asarray(-weight * np.log(share / share.mean()), dtype=np.float64)


@dataclass
class Beyond:
    """Methods with features, their prices learnt from the training split of each video."""

    dataset: Dataset
    training: Training
    _habits: dict[tuple[str, str], Habits | None] = field(default_factory=dict)
    _labels: dict[str, Labels] = field(default_factory=dict)
    _doubtful: dict[tuple[str, str, FlowGraph], FlowGraph] = field(default_factory=dict)

    def habits(self, task: Task, split: Split | None) -> Habits | None:
        """Return what the training videos of a task show; None where there are none."""
        if split is None:
            return None
        key = (task.id, split.name)
        if key not in self._habits:
            train = set(split.train) - set(split.test)
            n_steps = len(task.procedure)
            shown, returns, share = np.zeros(n_steps), np.zeros(n_steps), np.zeros(n_steps)
            lengths: list[list[float]] = [[] for _ in range(n_steps)]
            members = [one for one in self.dataset.recordings if one.task == task.id and one.id in train]
            for recording in members:
                count = np.zeros(n_steps)
                for label, start, stop in runs(self._truth(recording)):
                    for instruction in task.correspondence[label]:
                        count[instruction] += 1
                        lengths[instruction].append((stop - start) * recording.clip_seconds)
                        share[instruction] += (stop - start) / (recording.n_clips * len(members))
                shown += count > 0
                returns += np.maximum(count - 1, 0)
            seen = tuple(map(tuple, lengths))
            self._habits[key] = Habits(len(members), shown, returns, seen, share) if any(seen) else None
        return self._habits[key]

    def _truth(self, recording: Recording) -> Labels:
        if recording.id not in self._labels:
            self._labels[recording.id] = true_labels(self.dataset, recording)
        return self._labels[recording.id]

    def _with_doubtful(self, task: Task, split: Split | None, flow: FlowGraph) -> FlowGraph:
        key = (task.id, "" if split is None else split.name, flow)
        if key not in self._doubtful:
            self._doubtful[key] = self.training.doubtful(task, split, flow)
        return self._doubtful[key]

    def method(self, plain: Method, weights: Mapping[str, float]) -> Method:
        """Return a method that plans as ``plain`` does, with the features that have weights."""

        def with_features(video: Video) -> Plan | Labels | Absent:
            plan = plain(video)
            if not isinstance(plan, Plan):
                return plan
            habits = self.habits(video.task, video.split)
            if habits is None:
                return Absent(NO_TRAINING)
            if "precedence" in weights:
                plan = replace(
                    plan,
                    flow=self._with_doubtful(video.task, video.split, plan.flow),
                    breaking=weights["precedence"],
                )
            if "skip" in weights:
                said = 0.0 if video.evidence.skip is None else video.evidence.skip.astype(np.float64)
                plan = replace(plan, skip=(habits.skip(weights["skip"]) + said)[plan.rows])
            if "repeat" in weights:
                plan = replace(plan, repeat=habits.repeat(weights["repeat"])[plan.rows])
            if "share" in weights:
                plan = replace(plan, clip=habits.clip(weights["share"])[plan.rows])
            plan = replace(plan, likeliest=LIKELIEST in weights)
            if "durations" in weights:
                durations = habits.durations(weights["durations"], video.recording.clip_seconds)
                plan = replace(plan, durations=durations.rows(plan.rows))
            return plan

        return with_features


def check_features(text: str) -> tuple[str, ...]:
    """Read features with commas between them, several together joined by ``+``; ``all``: each, and then together."""
    named: list[str] = []
    for part in text.split(","):
        named += [*FEATURES, *TOGETHER] if part.strip() == "all" else [part.strip()]
    for name in named:
        for feature in name.split("+"):
            if feature not in (*FEATURES, LIKELIEST):
                raise InputError(
                    f"there is no feature {feature!r}; there are: {', '.join(FEATURES)}, all, and {LIKELIEST}"
                )
    return tuple(dict.fromkeys(named))
