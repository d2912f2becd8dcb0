"""What training minimises: the clustering loss, and the soft cost of grounding the procedure; settings by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from graph2vid._training_options import TrainingOptions
from graph2vid.errors import InputError
from graph2vid.evidence import COSINE_TEMPERATURE, SCORE_TEMPERATURE
from graph2vid.learn.features.data import Example
from graph2vid.learn.features.residual_mlp import ResidualMLP
from graph2vid.learn.losses import ClusteringLoss, GraphDropDTWLoss, read_drop

PRESETS: Mapping[str, TrainingOptions] = {
    "default": TrainingOptions(),
    "paper": TrainingOptions(
        epochs=10,
        rate=1e-4,
        gamma=0.1,
        smoothing="smoothmin",
        contiguous=False,
        match="likelihood",
        pool_temperature=0.1,
        patience=0,
    ),
}
"""The paper's differ from the default in these; weight decay and drop are the same."""


def preset(name: str, **changed: Any) -> TrainingOptions:
    """Return the settings of a preset, but for those that are given and not None."""
    if name not in PRESETS:
        raise InputError(f"unknown preset {name!r}; known: {', '.join(PRESETS)}")
    options = replace(PRESETS[name], **{key: value for key, value in changed.items() if value is not None})
    check_drop(options)
    return options


def check_drop(options: TrainingOptions) -> None:
    """Refuse a cost of background that training does not know."""
    kind, level = read_drop(options.drop)
    if kind == "prototype" and (options.objective == "bag" or math.isnan(level)):
        why = (
            "the bag of steps knows no background" if options.objective == "bag" else "background would take every clip"
        )
        raise InputError(f"drop {options.drop!r} teaches nothing: {why}; say prototype:30, with another objective")


class Learner(nn.Module):
    """The features and their loss as one module, as data-parallel training wants it.

    Parameters
    ----------
    mlp : ResidualMLP
    options : TrainingOptions
    comparison : {"cosine", "dot"}
    """

    def __init__(self, mlp: ResidualMLP, options: TrainingOptions, comparison: str) -> None:
        super().__init__()
        check_drop(options)
        self.mlp, self.weight = mlp, options.clustering
        self.clustering = ClusteringLoss(options.pool_temperature)
        usual = COSINE_TEMPERATURE if comparison == "cosine" else SCORE_TEMPERATURE
        names = ("gamma", "smoothing", "contiguous", "match", "drop")
        how: dict[str, Any] = {name: getattr(options, name) for name in names}
        how |= {"comparison": comparison, "temperature": options.temperature or usual, "dimension": mlp.dimension}
        self.grounding = GraphDropDTWLoss(**how)
        if mlp.prototype is not None:
            self.grounding.prototype = mlp.prototype

    def forward(self, examples: Sequence[Example], clips: Sequence[Tensor]) -> Tensor:
        """Return the sum of the losses of some videos.

        Parameters
        ----------
        examples : sequence of B Example
        clips : sequence of B Tensor [N, D]
            Their clips, or some of them.
        """
        place = next(self.mlp.parameters())
        lengths = [len(of_video) for of_video in clips]
        together = torch.cat([*clips, torch.empty(0, self.mlp.dimension)]).to(place)
        features: Tensor = self.mlp(together)
        if not examples:  # a process without a video in this batch still takes part in the mean of the gradients
            return features.sum() + (0.0 if self.mlp.prototype is None else 0.0 * self.mlp.prototype.sum())
        _refuse_infinite(features, examples)
        padded = pad_sequence(list(torch.split(features, lengths)), batch_first=True)
        steps = [example.steps.to(place) for example in examples]
        loss = features.new_zeros(())
        if self.weight:
            loss = loss + self.weight * self.clustering(padded, steps, lengths)
        if tsorts := [example.tsort for example in examples if example.tsort is not None]:
            match, drop = self.grounding.costs(padded, steps, lengths)
            # [K, N] → [E, N]: the elements of the graph, of which several, or none, may stand for one step.
            pairs = zip(match, examples, strict=True)
            elements = [of_video[example.rows.to(match.device)] for of_video, example in pairs]
            loss = loss + self.grounding.from_costs(pad_sequence(elements, batch_first=True), drop, tsorts, lengths)
        _refuse_infinite(loss, examples)
        return loss * len(examples)


def _refuse_infinite(values: Tensor, examples: Sequence[Example]) -> None:
    if not torch.isfinite(values.detach()).all():
        names = ", ".join(example.video for example in examples)
        raise InputError(f"training went astray (a lower learning rate may help): no finite numbers for videos {names}")
