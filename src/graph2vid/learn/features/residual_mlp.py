"""The features that are trained: a residual two-layer MLP on those of the clips."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from graph2vid.errors import InputError


class ResidualMLP(nn.Module):
    """``x + W₂ relu(W₁ x + b₁) + b₂`` for each clip; W₂ and b₂ begin at 0: training begins at the features given.

    Parameters
    ----------
    dimension : int
        Of the features.
    hidden : int, optional
        As wide as the features by default.
    generator : torch.Generator, optional
        Where the first layer's weights are drawn from, evenly between ±1/√dimension.
    background : bool
        Whether there is an embedding of background beside the features, the ``prototype``; at first 0.
    """

    def __init__(
        self,
        dimension: int,
        hidden: int | None = None,
        generator: torch.Generator | None = None,
        *,
        background: bool = False,
    ) -> None:
        super().__init__()
        self.prototype = nn.Parameter(torch.zeros(dimension)) if background else None
        self.inner = nn.Linear(dimension, hidden or dimension)
        self.outer = nn.Linear(hidden or dimension, dimension)
        with torch.no_grad():
            for part in self.inner.parameters():
                part.uniform_(-(dimension**-0.5), dimension**-0.5, generator=generator)
            for part in self.outer.parameters():
                part.zero_()

    @property
    def dimension(self) -> int:
        """Of the features."""
        return self.inner.in_features

    @property
    def hidden(self) -> int:
        """Width of the hidden layer."""
        return self.inner.out_features

    def forward(self, clips: Tensor) -> Tensor:
        """Return new features [..., D]."""
        change: Tensor = self.outer(torch.relu(self.inner(clips)))
        return clips + change

    @torch.no_grad()
    def transform(self, clips: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """Return new features [N, D] of the clips [N, D] of a video."""
        if clips.ndim != 2 or clips.shape[1] != self.dimension:
            wanted = f"the model was trained on features of {self.dimension} dimensions"
            raise InputError(f"the clips have shape {clips.shape}; {wanted}")
        place = next(self.parameters())
        found: NDArray[np.float32] = self(torch.from_numpy(clips.astype(np.float32)).to(place)).cpu().numpy()
        return found
