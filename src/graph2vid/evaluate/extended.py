"""The extended model with costs learnt from training videos: what people skip and repeat, and how long steps take.

Costs are log-odds of what the training videos show, times weights that are the same for all steps. Where the evidence
of a video has skip costs of its own, both are added up. The weights that a split is tested with are chosen by nested
cross-validation on its training videos alone: these are split in turn, as the splits of the dataset say, and each part
is tested with what is learnt from the rest. So the videos of the split have a say neither in its weights nor in
anything that these are chosen by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from graph2vid._evaluation_options import MAX_MARGINAL
from graph2vid.datasets import Split
from graph2vid.evaluate.labels import Labels
from graph2vid.evaluate.methods import Absent, Method, MethodResult, Plan, Training, Video

Weights = dict[str, float]

GRID = {
    "skip": (1.0, 4.0, 16.0),
    "repeat": (4.0, 16.0, 64.0),
    "durations": (0.25, 1.0, 4.0),
    "precedence": (1.0, 4.0, 16.0),
    "share": (0.0625, 0.25, 1.0),
    "temperature": (0.5, 1.0, 2.0),
    MAX_MARGINAL: (1.0,),
}
"""What log-odds may be multiplied by to be costs beside those of clips, a factor of 4 from one to the next.
Evidence differs in how much its nats are worth: clips that look alike repeat what they say, and scores need not be
calibrated. The temperature is a factor of that of the costs. Which of these is used for a video is decided by the
training videos (:func:`nested_result`).
"""


@dataclass
class LearntCosts:
    """Methods of the extended model, their costs learnt from the training split of each video."""

    training: Training

    def method(self, plain: Method, weights: Mapping[str, float]) -> Method:
        """Return a method that plans as ``plain`` does, with the features that have weights."""

        def with_features(video: Video) -> Plan | Labels | Absent:
            plan = plain(video)
            if not isinstance(plan, Plan):
                return plan
            habits = self.training.habits(video.task, video.split)
            if habits is None:
                return Absent()
            changed: dict[str, Any] = {"max_marginal": MAX_MARGINAL in weights}
            if "temperature" in weights:
                changed["temperature"] = weights["temperature"]
            if "precedence" in weights:
                flow = self.training.soft_precedence(video.task, video.split, plan.flow)
                changed |= {"flow": flow, "violation": weights["precedence"]}
            if "skip" in weights:
                said = 0.0 if video.evidence.skip is None else video.evidence.skip.astype(np.float64)
                changed["skip"] = (habits.skip(weights["skip"]) + said)[plan.rows]
            if "repeat" in weights:
                changed["repeat"] = habits.repeat(weights["repeat"])[plan.rows]
            if "share" in weights:
                changed["clip"] = habits.clip(weights["share"])[plan.rows]
            if "durations" in weights:
                durations = habits.durations(weights["durations"], video.recording.clip_seconds)
                changed["durations"] = durations.rows(plan.rows)
            return replace(plan, **changed)

        return with_features


def inner_videos(videos: Sequence[Video], split: Split) -> list[Video]:
    """Return the training videos of a split, each to be tested with what the others of them say."""
    training = set(split.train) - set(split.test)
    found = []
    inner: dict[str, Split] = {}
    for video in videos:
        if (part := video.split) is None or part.name == split.name or video.recording.id not in training:
            continue
        if part.name not in inner:
            rest = training - set(part.test)
            parts = ([name for name in split.train if name in rest], [name for name in part.test if name in training])
            inner[part.name] = Split(f"{split.name} without {part.name}", *map(tuple, parts))
        found.append(replace(video, split=inner[part.name]))
    return found


def climb(grid: Mapping[str, Sequence[float]], score: Callable[[Weights], float]) -> Weights:
    """Return weights of a high score: from the middle of the grid on, one after the other is set to its best value."""
    best = {name: values[len(values) // 2] for name, values in grid.items()}
    tried = cache(lambda values: score(dict(zip(grid, values, strict=True))))
    for name, values in grid.items():
        if len(values) > 1:
            choices = (best, *(best | {name: value} for value in values))
            best = max(choices, key=lambda weights: tried(tuple(weights.values())))
    return best


def nested_result(
    name: str,
    grid: Mapping[str, Sequence[float]],
    run: Callable[[str, Weights, Sequence[Video]], MethodResult],
    videos: Sequence[Video],
    metrics: Sequence[str] = ("acc", "iou_strict"),
) -> MethodResult:
    """Run a method on all videos, for each split with the weights that are best on its training videos.

    Parameters
    ----------
    name : str
        Of the method.
    grid : mapping of str to sequence of float
        The values that each weight may have; of a dataset without splits the middle ones are used.
    run : callable
        Runs the method on videos: (name, weights, videos) → MethodResult.
    videos : sequence of Video
    metrics : sequence of str
        What is best: the highest mean of these.

    Returns
    -------
    MethodResult
        Its ``seconds`` are those with the chosen weights.
    """
    whole = MethodResult(name)
    splits = {"" if video.split is None else video.split.name: video.split for video in videos}
    for split_name, split in splits.items():
        inner = [] if split is None else inner_videos(videos, split)

        def score(weights: Weights, inner: list[Video] = inner) -> float:
            rows = run(name, weights, inner).metrics.values()
            found = np.array([[row[metric] for metric in metrics] for row in rows])
            return float(np.nan_to_num(found).mean()) if len(found) else 0.0

        weights = climb(grid, score)
        members = [at for at, video in enumerate(videos) if video.split is split]
        part = run(name, weights, [videos[at] for at in members])
        whole.place(part, dict(enumerate(members)))
        whole.seconds += part.seconds
        whole.weights[split_name] = weights
    return whole
