"""Nested cross-validation: the weights that a split is judged with are chosen on its training videos alone.

Its training videos are split in turn, as the splits of the dataset say: each part is judged with what is learnt from
the rest. So the videos of the split have a say neither in its weights nor in anything that these are chosen by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from graph2vid.datasets.dataset import Split
from graph2vid.evaluate.method_runs import Run
from graph2vid.evaluate.methods import Video

Weights = dict[str, float]


def inner_videos(videos: Sequence[Video], split: Split) -> list[Video]:
    """Return the training videos of a split, each to be judged with what the others of them say."""
    training = set(split.train) - set(split.test)
    found = []
    inner: dict[str, Split] = {}
    for video in videos:
        if video.split is None or video.split.name == split.name or video.recording.id not in training:
            continue
        part = video.split.name
        if part not in inner:
            left_out = set(video.split.test)
            inner[part] = Split(
                f"{split.name} without {part}",
                tuple(name for name in split.train if name in training and name not in left_out),
                tuple(name for name in video.split.test if name in training),
            )
        found.append(replace(video, split=inner[part]))
    return found


def climb(grid: Mapping[str, Sequence[float]], score: Callable[[Weights], float]) -> Weights:
    """Return weights of a high score: from the middle of the grid on, one after the other is set to its best value."""
    best = {name: values[len(values) // 2] for name, values in grid.items()}
    tried: dict[tuple[float, ...], float] = {}

    def of(weights: Weights) -> float:
        key = tuple(weights.values())
        if key not in tried:
            tried[key] = score(weights)
        return tried[key]

    for name, values in grid.items():
        if len(values) > 1:
            best = max((best, *(best | {name: value} for value in values)), key=of)
    return best


def nested_run(
    name: str,
    grid: Mapping[str, Sequence[float]],
    run: Callable[[str, Weights, Sequence[Video]], Run],
    videos: Sequence[Video],
    measures: Sequence[str] = ("acc", "iou_strict"),
) -> Run:
    """Run a method on all videos, for each split with the weights that are best on its training videos.

    Parameters
    ----------
    name : str
        Of the method.
    grid : mapping of str to sequence of float
        The values that each weight may have; of a dataset without splits the middle ones are used.
    run : callable
        Runs the method on videos: (name, weights, videos) → Run.
    videos : sequence of Video
    measures : sequence of str
        What is best: the highest mean of these.

    Returns
    -------
    Run
        Its ``seconds`` are those with the chosen weights.
    """
    whole = Run(name)
    splits = {"" if video.split is None else video.split.name: video.split for video in videos}
    for split_name, split in splits.items():
        inner = [] if split is None else inner_videos(videos, split)

        def score(weights: Weights, inner: Sequence[Video] = inner) -> float:
            rows = run(name, weights, inner).measures.values()
            found = np.array([[row[measure] for measure in measures] for row in rows])
            return float(np.nan_to_num(found).mean()) if len(found) else 0.0

        weights = climb(grid, score)
        members = [at for at, video in enumerate(videos) if video.split is split]
        whole.take(run(name, weights, [videos[at] for at in members]), members)
        whole.weights[split_name] = weights
    return whole
