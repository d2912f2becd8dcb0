"""How features are trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from graph2vid.alignment import SMOOTHINGS, check_gamma
from graph2vid.errors import InputError
from graph2vid.learn.losses import read_drop

OBJECTIVES = ("bag", "linear", "graph", "true-order")
"""What is learnt from: the steps alone, in one order, in the orders of a flow graph, or in that of each video."""

MATCHES = ("balanced", "likelihood", "likelihood_bg", "raw")


@dataclass(frozen=True)
class TrainingOptions:
    """How to train. The defaults were chosen on several datasets (docs, "Learning"); :data:`PRESETS` has the paper's.

    Attributes
    ----------
    objective : str
        One of :data:`OBJECTIVES`. Every one has the clustering loss; all but ``bag`` add the soft cost of grounding.
    epochs, batch : int
        How often every video is seen, and how many at once.
    rate, weight_decay : float
        Of Adam.
    gamma, smoothing, contiguous
        Of the soft cost.
    match : {"balanced", "likelihood", "likelihood_bg", "raw"}
        See :class:`graph2vid.learn.GraphDropDTWLoss`. The paper's ``likelihood`` lets features collapse onto one step.
    drop : str
        The price of background while training: ``percentile:N`` of the video's match costs, or a number.
    temperature : float or None
        Divides similarities; None: 0.1 for cosines and 1 for scores.
    pool_temperature, clustering : float
        Of the clustering loss, and its weight.
    hidden : int or None
        Width of the hidden layer; None: that of the features.
    every : int
        N: train on every N-th clip, each time with another one first.
    patience : int
        Epochs after which training ends if neither the training loss fell below all before it nor the validation, where
        there is one, was better; 0: never early.
    seed : int
    """

    objective: str = "graph"
    epochs: int = 30
    batch: int = 16
    rate: float = 3e-3
    weight_decay: float = 1e-4
    gamma: float = 0.3
    smoothing: str = "softmin"
    contiguous: bool = True
    match: str = "balanced"
    drop: str = "percentile:30"
    temperature: float | None = None
    pool_temperature: float = 1.0
    clustering: float = 1.0
    hidden: int | None = None
    every: int = 1
    patience: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        for name, known in (("objective", OBJECTIVES), ("smoothing", SMOOTHINGS), ("match", MATCHES)):
            if getattr(self, name) not in known:
                raise InputError(f"unknown {name} {getattr(self, name)!r}; known: {', '.join(known)}")
        check_gamma(self.gamma)
        if read_drop(self.drop)[0] == "prototype":
            raise InputError(
                "drop must be percentile:N or a number: features are trained, and no prototype beside them"
            )
        for name in ("rate", "pool_temperature", "temperature"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"{name} must be a positive number, not {value!r}")
        for name in ("weight_decay", "clustering"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} must be a number from 0 on, not {getattr(self, name)!r}")
        for name, least in (("epochs", 0), ("batch", 1), ("every", 1), ("patience", 0), ("seed", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be at least {least}, not {getattr(self, name)}")
        if self.seed >= 2**63:
            raise InputError(f"seed must be below 2**63, not {self.seed}")
        if self.hidden is not None and self.hidden < 1:
            raise InputError(f"hidden must be at least 1, not {self.hidden}")
        if self.objective == "bag" and not self.clustering:
            raise InputError("the bag of steps has the clustering loss alone: its weight cannot be 0")


PRESETS: Mapping[str, TrainingOptions] = {
    "default": TrainingOptions(),
    "paper": TrainingOptions(
        epochs=10,
        rate=1e-4,
        weight_decay=1e-4,
        gamma=0.1,
        smoothing="smoothmin",
        contiguous=False,
        match="likelihood",
        drop="percentile:30",
        pool_temperature=0.1,
        patience=0,
    ),
}
"""Settings by name."""


def preset(name: str, **changed: Any) -> TrainingOptions:
    """Return the settings of a preset, but for those that are given and not None."""
    if name not in PRESETS:
        raise InputError(f"unknown preset {name!r}; known: {', '.join(PRESETS)}")
    return replace(PRESETS[name], **{key: value for key, value in changed.items() if value is not None})
