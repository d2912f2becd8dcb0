"""What methods did, video by video."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from graph2vid.evaluate.methods import Labels, Plan

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

    def take(self, part: Run, members: Sequence[int]) -> None:
        """Take over what was done on some of the videos, whose places among all are ``members``."""
        for what in _BY_VIDEO:
            of_video = getattr(self, what) | {members[at]: found for at, found in getattr(part, what).items()}
            setattr(self, what, {at: of_video[at] for at in sorted(of_video)})
        self.seconds += part.seconds
