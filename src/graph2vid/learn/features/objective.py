"""What training minimises: the clustering loss, and the soft cost of grounding the procedure."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from graph2vid._training_options import TrainingOptions
from graph2vid.errors import InputError
from graph2vid.evidence import COSINE_TEMPERATURE, SCORE_TEMPERATURE
from graph2vid.learn.features.data import Example
from graph2vid.learn.features.options import check_drop
from graph2vid.learn.features.residual_mlp import ResidualMLP
from graph2vid.learn.losses import ClusteringLoss, GraphDropDTWLoss


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
        self.mlp = mlp
        self.weight = options.clustering
        self.clustering = ClusteringLoss(options.pool_temperature)
        usual = COSINE_TEMPERATURE if comparison == "cosine" else SCORE_TEMPERATURE
        self.grounding = GraphDropDTWLoss(
            options.gamma,
            options.smoothing,
            options.contiguous,
            match=options.match,
            drop=options.drop,
            temperature=options.temperature or usual,
            comparison=comparison,
        )

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
            return features.sum()
        _refuse_infinite(features, examples)
        padded = pad_sequence(list(torch.split(features, lengths)), batch_first=True)
        steps = [example.steps.to(place) for example in examples]
        loss = features.new_zeros(())
        if self.weight:
            loss = loss + self.weight * self.clustering(padded, steps, lengths)
        if examples[0].tsort is not None:
            loss = loss + self._grounding(examples, padded, steps, lengths)
        _refuse_infinite(loss, examples)
        return loss * len(examples)

    def _grounding(
        self, examples: Sequence[Example], padded: Tensor, steps: Sequence[Tensor], lengths: Sequence[int]
    ) -> Tensor:
        match, drop = self.grounding.costs(padded, steps, lengths)
        # [K, N] → [E, N]: the elements of the graph, of which several, or none, may stand for one step.
        of_elements = pad_sequence(
            [of_video[example.rows.to(match.device)] for of_video, example in zip(match, examples, strict=True)],
            batch_first=True,
        )
        tsorts = [example.tsort for example in examples if example.tsort is not None]
        found: Tensor = self.grounding.from_costs(of_elements, drop, tsorts, lengths)
        return found


def _refuse_infinite(values: Tensor, examples: Sequence[Example]) -> None:
    if not torch.isfinite(values.detach()).all():
        names = ", ".join(example.video for example in examples)
        raise InputError(f"training went astray (a lower learning rate may help): no finite numbers for videos {names}")
