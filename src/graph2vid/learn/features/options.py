"""Settings of training by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graph2vid._training_options import TrainingOptions
from graph2vid.errors import InputError
from graph2vid.learn.losses import read_drop

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


def preset(name: str, **changed: Any) -> TrainingOptions:
    """Return the settings of a preset, but for those that are given and not None."""
    if name not in PRESETS:
        raise InputError(f"unknown preset {name!r}; known: {', '.join(PRESETS)}")
    options = replace(PRESETS[name], **{key: value for key, value in changed.items() if value is not None})
    check_drop(options)
    return options


def check_drop(options: TrainingOptions) -> None:
    """Refuse a cost of background that training does not know."""
    if read_drop(options.drop)[0] == "prototype":
        raise InputError("drop must be percentile:N or a number: features are trained, and no prototype beside them")
