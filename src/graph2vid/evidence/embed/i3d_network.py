"""The network I3D (Carreira and Zisserman 2017), for red, green and blue, in torch.

Convolutions and poolings are padded as TensorFlow's "SAME" does, which puts the odd pixel at the end: the weights were
trained so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

CLASSES = 400
WIDTH = 1024
"""Numbers of a feature."""

Triple: TypeAlias = tuple[int, int, int]

# Channels of each block: branch 0; branch 1, narrow and wide; branch 2, narrow and wide; branch 3.
_MIXED = {
    "Mixed_3b": (192, (64, 96, 128, 16, 32, 32)),
    "Mixed_3c": (256, (128, 128, 192, 32, 96, 64)),
    "Mixed_4b": (480, (192, 96, 208, 16, 48, 64)),
    "Mixed_4c": (512, (160, 112, 224, 24, 64, 64)),
    "Mixed_4d": (512, (128, 128, 256, 24, 64, 64)),
    "Mixed_4e": (512, (112, 144, 288, 32, 64, 64)),
    "Mixed_4f": (528, (256, 160, 320, 32, 128, 128)),
    "Mixed_5b": (832, (256, 160, 320, 32, 128, 128)),
    "Mixed_5c": (832, (384, 192, 384, 48, 128, 128)),
}


def _padded(video: Tensor, kernel: Triple, stride: Triple, value: float = 0.0) -> Tensor:
    """Pad the last three axes as "SAME" does."""
    pads: list[int] = []
    for size, length, step in zip(video.shape[:1:-1], kernel[::-1], stride[::-1], strict=True):
        total = max((-(-size // step) - 1) * step + length - size, 0)
        pads += [total // 2, total - total // 2]
    return functional.pad(video, pads, value=value) if any(pads) else video


class Unit(nn.Module):
    """A convolution, batch normalisation without scale, and a rectifier."""

    def __init__(self, inputs: int, outputs: int, kernel: Triple = (1, 1, 1), stride: Triple = (1, 1, 1)) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride
        self.conv = nn.Conv3d(inputs, outputs, kernel, stride, bias=False)
        self.norm = nn.BatchNorm3d(outputs, eps=1e-3)

    def forward(self, video: Tensor) -> Tensor:
        """Return what the unit makes of [B, C, T, H, W]."""
        found: Tensor = functional.relu(self.norm(self.conv(_padded(video, self.kernel, self.stride))))
        return found


class Pool(nn.Module):
    """The largest of some neighbours."""

    def __init__(self, kernel: Triple, stride: Triple) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride

    def forward(self, video: Tensor) -> Tensor:
        """Return the pooled video."""
        return functional.max_pool3d(_padded(video, self.kernel, self.stride, -torch.inf), self.kernel, self.stride)


class Mixed(nn.Module):
    """Four branches side by side."""

    def __init__(self, inputs: int, channels: Sequence[int]) -> None:
        super().__init__()
        first, narrow, wide, thin, thick, last = channels
        three = (3, 3, 3)
        self.branch_0 = Unit(inputs, first)
        self.branch_1a, self.branch_1b = Unit(inputs, narrow), Unit(narrow, wide, three)
        self.branch_2a, self.branch_2b = Unit(inputs, thin), Unit(thin, thick, three)
        self.pool, self.branch_3 = Pool(three, (1, 1, 1)), Unit(inputs, last)

    def forward(self, video: Tensor) -> Tensor:
        """Return the four branches, one after the other along the channels."""
        parts = (
            self.branch_0(video),
            self.branch_1b(self.branch_1a(video)),
            self.branch_2b(self.branch_2a(video)),
            self.branch_3(self.pool(video)),
        )
        return torch.cat(parts, dim=1)


class I3D(nn.Module):
    """Features and class scores of short videos [B, 3, T, 224, 224], values in -1 … 1, T of 9 or more."""

    def __init__(self) -> None:
        super().__init__()
        layers: dict[str, nn.Module] = {
            "Conv3d_1a_7x7": Unit(3, 64, (7, 7, 7), (2, 2, 2)),
            "MaxPool3d_2a_3x3": Pool((1, 3, 3), (1, 2, 2)),
            "Conv3d_2b_1x1": Unit(64, 64),
            "Conv3d_2c_3x3": Unit(64, 192, (3, 3, 3)),
            "MaxPool3d_3a_3x3": Pool((1, 3, 3), (1, 2, 2)),
        }
        for name, (inputs, channels) in _MIXED.items():
            if name == "Mixed_4b":
                layers["MaxPool3d_4a_3x3"] = Pool((3, 3, 3), (2, 2, 2))
            if name == "Mixed_5b":
                layers["MaxPool3d_5a_2x2"] = Pool((2, 2, 2), (2, 2, 2))
            layers[name] = Mixed(inputs, channels)
        self.layers = nn.ModuleDict(layers)
        self.classes = nn.Linear(WIDTH, CLASSES)

    def features(self, video: Tensor) -> Tensor:
        """Return the features of videos, [B, 1024]: what the last block makes, averaged over time and place."""
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):  # a GPU would round inputs to 11 bits
            for layer in self.layers.values():
                video = layer(video)
        pooled = functional.avg_pool3d(video, (2, 7, 7), stride=1)
        return pooled.mean(dim=(2, 3, 4))

    def forward(self, video: Tensor) -> Tensor:
        """Return the scores of the 400 classes, before softmax [B, 400]."""
        scores: Tensor = self.classes(self.features(video))
        return scores
