"""What people do with a procedure, learnt from training videos: what they leave out, return to, and how long it takes.

Prices are log-odds of what the training videos show, times weights that are the same for all steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from graph2vid.alignment import Durations
from graph2vid.datasets.model import Dataset, Split, Task
from graph2vid.errors import InputError
from graph2vid.evaluate.methods import NO_TRAINING, Absent, Labels, Method, Plan, Training, Video, true_labels
from graph2vid.evaluate.metrics import runs

Prices = NDArray[np.float64]

FEATURES = ("skip", "repeat", "durations", "precedence")
TOGETHER = ("skip+repeat+durations", "skip+durations+precedence")
LIKELIEST = "likeliest"
"""Not a feature of the alignment, but the likeliest label of each clip over all alignments with the others."""

_SEEN = 0.5  # added to every count, so that what was never seen has a finite price


WEIGHTS = (
    {"skip": 1.0, "repeat": 30.0, "durations": 0.3, "precedence": 8.0},
    {"skip": 2.0, "repeat": 20.0, "durations": 1.0, "precedence": 4.0},
    {"skip": 10.0, "repeat": 10.0, "durations": 2.0, "precedence": 1.0},
)
"""What log-odds may be multiplied by to be prices beside the costs of clips. Evidence differs in how much its nats are
worth: clips that look alike repeat what they say, and scores need not be calibrated. So which of these is used for a
video is decided by the videos of the other splits."""


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
    """

    videos: int
    shown: Prices
    returns: Prices
    lengths: tuple[tuple[float, ...], ...]

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


@dataclass
class Beyond:
    """Methods with features, their prices learnt from the training split of each video."""

    dataset: Dataset
    training: Training
    _habits: dict[tuple[str, str], Habits | None] = field(default_factory=dict)

    def habits(self, task: Task, split: Split | None) -> Habits | None:
        """Return what the training videos of a task show; None where there are none."""
        if split is None:
            return None
        key = (task.id, split.name)
        if key not in self._habits:
            train = set(split.train) - set(split.test)
            n_steps = len(task.procedure)
            shown, returns = np.zeros(n_steps), np.zeros(n_steps)
            lengths: list[list[float]] = [[] for _ in range(n_steps)]
            members = [one for one in self.dataset.recordings if one.task == task.id and one.id in train]
            for recording in members:
                count = np.zeros(n_steps)
                for label, start, stop in runs(true_labels(self.dataset, recording)):
                    for instruction in task.correspondence[label]:
                        count[instruction] += 1
                        lengths[instruction].append((stop - start) * recording.clip_seconds)
                shown += count > 0
                returns += np.maximum(count - 1, 0)
            any_seen = any(lengths)
            self._habits[key] = Habits(len(members), shown, returns, tuple(map(tuple, lengths))) if any_seen else None
        return self._habits[key]

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
                    flow=self.training.doubtful(video.task, video.split, plan.flow),
                    breaking=weights["precedence"],
                )
            if "skip" in weights:
                plan = replace(plan, skip=habits.skip(weights["skip"])[plan.rows])
            if "repeat" in weights:
                plan = replace(plan, repeat=habits.repeat(weights["repeat"])[plan.rows])
            plan = replace(plan, likeliest=LIKELIEST in weights)
            if "durations" in weights:
                durations = habits.durations(weights["durations"], video.recording.clip_seconds)
                plan = replace(plan, durations=durations.rows(plan.rows))
            return plan

        return with_features

    def methods(
        self, plain: Mapping[str, Method], wanted: tuple[str, ...]
    ) -> dict[str, list[tuple[Method, dict[str, float]]]]:
        """Return for each method the ways to run it: those of graphs once more with features, in several weights."""
        made: dict[str, list[tuple[Method, dict[str, float]]]] = {}
        for name, method in plain.items():
            made[name] = [(method, {})]
            for features in wanted if name.startswith("graph:") else ():
                ways = [{name: weights.get(name, 1.0) for name in features.split("+")} for weights in WEIGHTS]
                made[f"{name}+{features}"] = [(self.method(method, weights), weights) for weights in ways]
        return made


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
