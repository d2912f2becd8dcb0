"""The network S3D-G with a text branch, as it was trained with MIL-NCE on HowTo100M.

The names of the modules are those of the released checkpoint, so that its weights load. The network is described in
arXiv:1712.04851 (S3D-G) and arXiv:1912.06430 (MIL-NCE).
"""

from __future__ import annotations

from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

Size: TypeAlias = tuple[int, int, int]

JOINT_DIMENSION = 512
VIDEO_DIMENSION = 1024
WORDS = 66250
WORD_DIMENSION = 300
TEXT_DIMENSION = 2048

# Channels of the blocks: of branch 0; of branches 1 and 2, before and after their 3×3×3 convolution; of branch 3.
_BLOCKS = {
    "mixed_3b": (192, 64, (96, 128), (16, 32), 32),
    "mixed_3c": (256, 128, (128, 192), (32, 96), 64),
    "mixed_4b": (480, 192, (96, 208), (16, 48), 64),
    "mixed_4c": (512, 160, (112, 224), (24, 64), 64),
    "mixed_4d": (512, 128, (128, 256), (24, 64), 64),
    "mixed_4e": (512, 112, (144, 288), (32, 64), 64),
    "mixed_4f": (528, 256, (160, 320), (32, 128), 128),
    "mixed_5b": (832, 256, (160, 320), (32, 128), 128),
    "mixed_5c": (832, 384, (192, 384), (48, 128), 128),
}
_POOL_BEFORE = {"mixed_4b": (3, 2), "mixed_5b": (2, 2)}  # in time and space: size of the window, stride


class Convolution(nn.Module):
    """A 3D convolution, normalised and rectified."""

    def __init__(self, channels: int, out: int, kernel: int | Size = 1, padding: int | Size = 0) -> None:
        super().__init__()
        self.conv1 = nn.Conv3d(channels, out, kernel, padding=padding, bias=False)
        self.bn1 = nn.BatchNorm3d(out)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.bn1(self.conv1(x)))


class SeparableConvolution(nn.Module):
    """A 3×3×3 convolution, first over space and then over time, each normalised and rectified."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv3d(channels, out, (1, 3, 3), padding=(0, 1, 1), bias=False)
        self.bn1 = nn.BatchNorm3d(out)
        self.conv2 = nn.Conv3d(out, out, (3, 1, 1), padding=(1, 0, 0), bias=False)
        self.bn2 = nn.BatchNorm3d(out)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(x)))


class SelfGating(nn.Module):
    """Weighs channels by what the whole clip shows."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc = nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        weight = torch.sigmoid(self.fc(x.mean(dim=(2, 3, 4))))
        return x * weight[:, :, None, None, None]


class InceptionBlock(nn.Module):
    """Four branches side by side, each gated."""

    def __init__(self, channels: int, b0: int, b1: tuple[int, int], b2: tuple[int, int], b3: int) -> None:
        super().__init__()
        self.conv_b0 = Convolution(channels, b0)
        self.conv_b1_a = Convolution(channels, b1[0])
        self.conv_b1_b = SeparableConvolution(*b1)
        self.conv_b2_a = Convolution(channels, b2[0])
        self.conv_b2_b = SeparableConvolution(*b2)
        self.conv_b3_b = Convolution(channels, b3)
        self.gating_b0 = SelfGating(b0)
        self.gating_b1 = SelfGating(b1[1])
        self.gating_b2 = SelfGating(b2[1])
        self.gating_b3 = SelfGating(b3)

    def forward(self, x: Tensor) -> Tensor:
        branches = (
            self.gating_b0(self.conv_b0(x)),
            self.gating_b1(self.conv_b1_b(self.conv_b1_a(x))),
            self.gating_b2(self.conv_b2_b(self.conv_b2_a(x))),
            self.gating_b3(self.conv_b3_b(functional.max_pool3d(x, 3, stride=1, padding=1))),
        )
        return torch.cat(branches, dim=1)


class TextModule(nn.Module):
    """A bag of words: each goes through one layer, the largest value of each channel through a second one."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.word_embd = nn.Embedding(words, WORD_DIMENSION)
        self.fc1 = nn.Linear(WORD_DIMENSION, TEXT_DIMENSION)
        self.fc2 = nn.Linear(TEXT_DIMENSION, JOINT_DIMENSION)

    def forward(self, words: Tensor) -> Tensor:
        """Embed texts [B, 512] of numbered words [B, L]; 0 fills up, and counts as a word."""
        each = functional.relu(self.fc1(self.word_embd(words)))
        largest = each.max(dim=1).values
        embedded: Tensor = self.fc2(largest)
        return embedded


class S3D(nn.Module):
    """Video [B, 3, T, H, W], values in 0…1, sides even, to vectors [B, 512]; its ``text_module`` does texts."""

    def __init__(self, words: int = WORDS) -> None:
        super().__init__()
        self.conv1 = Convolution(24, 64, (2, 4, 4), padding=(1, 2, 2))
        self.conv_2b = Convolution(64, 64)
        self.conv_2c = SeparableConvolution(64, 192)
        self.gating = SelfGating(192)
        for name, channels in _BLOCKS.items():
            self.add_module(name, InceptionBlock(*channels))
        self.fc = nn.Linear(VIDEO_DIMENSION, JOINT_DIMENSION)
        self.text_module = TextModule(words)

    def forward(self, video: Tensor) -> Tensor:
        # The even kernel is padded on both sides; what that adds in front is cut off again.
        x = self.conv1(space_to_depth(video))[:, :, 1:, 1:, 1:]
        x = _halve_space(x)
        x = self.gating(self.conv_2c(self.conv_2b(x)))
        x = _halve_space(x)
        for name in _BLOCKS:
            if name in _POOL_BEFORE:
                x = _pool(x, *_POOL_BEFORE[name])
            x = self.get_submodule(name)(x)
        embedded: Tensor = self.fc(x.mean(dim=(2, 3, 4)))
        return embedded


def space_to_depth(video: Tensor) -> Tensor:
    """Turn each 2×2×2 cube of [B, C, T, H, W] into channels: [B, 8·C, T/2, H/2, W/2].

    Channel ``c`` of the cube's corner (t, h, w) becomes channel ``((2·t + h)·2 + w)·C + c``.
    """
    corners = [video[:, :, t::2, h::2, w::2] for t in (0, 1) for h in (0, 1) for w in (0, 1)]
    return torch.cat(corners, dim=1)


def _halve_space(x: Tensor) -> Tensor:
    """Keep the largest of 3×3 places, at every second place; values are not negative, so 0 fills up the far edges."""
    return functional.max_pool3d(functional.pad(x, (0, 1, 0, 1)), (1, 3, 3), stride=(1, 2, 2), ceil_mode=True)


def _pool(x: Tensor, size: int, stride: int) -> Tensor:
    """Keep the largest value of cubes, the far edges filled up with 0 where cubes overlap."""
    fill = size - stride
    return functional.max_pool3d(functional.pad(x, (0, fill) * 3), size, stride=stride, ceil_mode=True)
