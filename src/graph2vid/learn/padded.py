"""Batches of videos and procedures of different sizes, as padded tensors whose padding is never looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor
from torch._C import _functorch
from torch.nn.utils.rnn import pad_sequence

from graph2vid.errors import InputError
from graph2vid.tsort import TSortGraph

Skip: TypeAlias = Tensor | None
"""Costs of leaving steps out; None: every step must appear."""

Lengths: TypeAlias = Sequence[int] | Tensor | None
"""The clips of each video of a batch; None: all that there are."""


def usable_device(name: str) -> torch.device:
    """Return a device by its name, after torch has made something on it."""
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"cannot compute on {name!r}: {str(error).splitlines()[0]}") from error
    return device


def refuse_complex(**parts: Tensor | None) -> None:
    """Refuse complex numbers, of which torch would take the real part."""
    for name, part in parts.items():
        if part is not None and part.is_complex():
            raise InputError(f"{name} must hold real numbers, not {str(part.dtype).removeprefix('torch.')}")


def unit(vectors: Tensor) -> Tensor:
    """Return vectors of length 1; what has no direction stays 0, and its gradient stays finite."""
    length = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    return vectors / torch.where(length > 1e-12, length, 1.0)


def scaled(
    cost: Tensor, gradients: Sequence[Tensor | None], above: Tensor, *, in_place: bool = False
) -> list[Tensor | None]:
    """Return the gradients of each video times what arrives from above; where nothing is possible, that is zero."""
    scale = torch.where(cost < torch.inf, above, 0.0)

    def times(part: Tensor) -> Tensor:
        by = scale.view(-1, *[1] * (part.ndim - 1))
        return part.mul_(by) if in_place else part * by

    return [None if part is None else times(part) for part in gradients]


@dataclass(frozen=True)
class Padded:
    """Clips and steps of a batch; padding is 0.

    Attributes
    ----------
    clips : Tensor [B, N, D]
    steps : Tensor [B, K, D]
    lengths : Tensor [B]
        The clips of each video.
    is_clip : Tensor [B, N]
    is_step : Tensor [B, K]
    first : Tensor [B, K]
        The first step with the same vector.
    """

    clips: Tensor
    steps: Tensor
    lengths: Tensor
    is_clip: Tensor
    is_step: Tensor
    first: Tensor

    @classmethod
    def of(cls, features: Tensor, steps: Sequence[Tensor], lengths: Sequence[int], is_unit: bool) -> Padded:
        """Lay a batch out.

        Parameters
        ----------
        features : Tensor [B, N, D]
        steps : sequence of B Tensor [K, D]
        lengths : sequence of B int
        is_unit : bool
            Whether all vectors are made as long as 1.
        """
        steps = list(steps)  # of one tensor [B, K, D] each turn would give new ones
        features = features if features.dtype in (torch.float32, torch.float64) else features.float()
        counts = torch.tensor(lengths, device=features.device)
        is_clip = torch.arange(features.shape[1], device=features.device) < counts[:, None]
        # What is not selected passes no gradient back; multiplying by 0 would pass NaN.
        clips = torch.where(is_clip[..., None], features, 0.0)
        together = pad_sequence([of_video.to(features) for of_video in steps], batch_first=True)
        if is_unit:
            clips, together = unit(clips), unit(together)
        sizes = torch.tensor([len(of_video) for of_video in steps], device=features.device)
        is_step = torch.arange(together.shape[1], device=features.device) < sizes[:, None]
        return cls(clips, together, counts, is_clip, is_step, _first(together.detach(), steps))

    @property
    def is_distinct(self) -> Tensor:
        """The steps that no earlier one equals: [B, K]."""
        return self.is_step & (self.first == torch.arange(self.first.shape[1], device=self.first.device))

    @property
    def cells(self) -> Tensor:
        """What lies within a video's steps and clips: [B, K, N]."""
        return self.is_step[:, :, None] & self.is_clip[:, None]

    def products(self) -> Tensor:
        """Return every step times every clip: [B, K, N]."""
        return self.steps @ self.clips.mT


def _first(together: Tensor, steps: Sequence[Tensor]) -> Tensor:
    """Return for each step the first one with the same vector; videos often share one procedure."""
    known: dict[int, Tensor] = {}
    for at, of_video in enumerate(steps):
        if id(of_video) not in known:
            own = together[at]
            known[id(of_video)] = (own[:, None] == own).all(-1).int().argmax(1)
    return torch.stack([known[id(of_video)] for of_video in steps])


def clips_of(lengths: Lengths, videos: int, longest: int) -> list[int]:
    """Return the clips of each video of a batch."""
    if lengths is None:
        return [longest] * videos
    given = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    if len(given) != videos:
        raise InputError(f"{videos} videos, but {len(given)} lengths")
    for at, length in enumerate(given):
        if not math.isfinite(length) or length != int(length) or not 1 <= length <= longest:
            raise InputError(f"video {at}: {length} clips; lengths must be whole numbers from 1 to {longest}")
    return [int(length) for length in given]


def _is_vmapped(tensor: Tensor) -> bool:
    while _functorch.is_functorch_wrapped_tensor(tensor):
        if _functorch.is_batchedtensor(tensor):
            return True
        tensor = _functorch.get_unwrapped(tensor)
    return False


def check_batch(
    features: Tensor, steps: Sequence[Tensor], lengths: Lengths, tsorts: Sequence[TSortGraph] | None = None
) -> list[int]:
    """Return the clips of each video; name what does not fit."""
    if not torch.compiler.is_compiling() and any(map(_is_vmapped, (features, *steps))):
        raise InputError("torch.func.vmap is not for losses of graph2vid: they take batches, and look at their values")
    refuse_complex(features=features)
    if features.ndim != 3 or 0 in features.shape:
        raise InputError(f"features have shape {tuple(features.shape)}; they must be [videos, clips, dimensions]")
    batch, longest, dimension = features.shape
    for name, given in (("sets of steps", steps), ("graphs", tsorts)):
        if given is not None and len(given) != batch:
            raise InputError(f"{batch} videos, but {len(given)} {name}")
    clips = clips_of(lengths, batch, longest)
    for at, of_video in enumerate(steps):
        shape = tuple(of_video.shape)
        if len(shape) != 2 or shape[1] != dimension or not shape[0]:
            raise InputError(f"video {at}: step embeddings {shape} beside clips of {dimension} dimensions")
        refuse_complex(steps=of_video)
        if tsorts is not None and len(of_video) != tsorts[at].n_steps:
            raise InputError(f"video {at}: {len(of_video)} step embeddings for a graph of {tsorts[at].n_steps} steps")
        if not torch.isfinite(of_video.detach()).all():
            raise InputError(f"video {at}: its step embeddings hold NaN or infinite numbers")
    outside = torch.arange(longest, device=features.device) >= torch.tensor(clips, device=features.device)[:, None]
    whole = (torch.isfinite(features.detach()).all(2) | outside).all(1)
    if not whole.all():
        raise InputError(f"video {int((~whole).nonzero()[0, 0])}: its features hold NaN or infinite numbers")
    return clips
