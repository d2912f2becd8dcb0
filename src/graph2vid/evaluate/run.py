"""What methods did, video by video, and the best of several ways of one method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from graph2vid.evaluate.methods import Labels, Plan, Video

_BY_VIDEO = ("labels", "measures", "absent", "plans")


@dataclass
class Run:
    """What one method did.

    Attributes
    ----------
    name : str
    labels : dict of int to int64 [N]
        By video: a step of the procedure per clip, -1 = background.
    measures : dict of int to dict
        By video: the measures, shares.
    absent : dict of int to str
        By video: why there is nothing.
    plans : dict of int to Plan
        By video: what was aligned; empty for the argmaxes.
    seconds : float
        Time of labelling all videos, compiling the procedures included.
    weights : dict of str to dict
        By split: the weights of its features, where they were chosen.
    """

    name: str
    labels: dict[int, Labels] = field(default_factory=dict)
    measures: dict[int, dict[str, float]] = field(default_factory=dict)
    absent: dict[int, str] = field(default_factory=dict)
    plans: dict[int, Plan] = field(default_factory=dict)
    seconds: float = 0.0
    weights: dict[str, dict[str, float]] = field(default_factory=dict)


def best_of_splits(runs: Sequence[Run], videos: Sequence[Video]) -> Run:
    """Return, of runs of one method with different weights, for each split the one that is best on the other splits.

    So a video has no say in the weights that it is judged with. Best is the highest mean ``iou_strict``.
    """
    if len(runs) == 1:
        return runs[0]
    split_of = ["" if video.split is None else video.split.name for video in videos]
    best = Run(runs[0].name, seconds=sum(run.seconds for run in runs) / len(runs))
    for split in dict.fromkeys(split_of):
        here = {at for at, name in enumerate(split_of) if name == split}
        others = [[row["iou_strict"] for at, row in run.measures.items() if at not in here] for run in runs]
        means = [float(np.mean(values)) if values else 0.0 for values in others]
        chosen = runs[int(np.argmax(means))]
        best.weights[split] = chosen.weights[""]
        for what in _BY_VIDEO:
            of_video = getattr(chosen, what)
            getattr(best, what).update({at: of_video[at] for at in here if at in of_video})
    for what in _BY_VIDEO:
        of_video = getattr(best, what)
        setattr(best, what, {at: of_video[at] for at in sorted(of_video)})
    return best
