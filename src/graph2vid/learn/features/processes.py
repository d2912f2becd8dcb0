"""Training in several processes (torchrun): who am I, and how many are we."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

# Before there is a group: its functions take the group of the moment as a default, and would keep it for ever.
import torch.distributed.nn
from torch import distributed, nn

from graph2vid.learn.padded import usable_device


@dataclass(frozen=True)
class Processes:
    """The processes that train together.

    Attributes
    ----------
    rank, count : int
        The number of this one, from 0, and how many there are. Only number 0 writes and prints.
    device : torch.device
        Where this one computes.
    """

    rank: int
    count: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this is the one that writes."""
        return self.rank == 0

    def wrap(self, module: nn.Module) -> nn.Module:
        """Return a module whose gradients are the mean over the processes."""
        return nn.parallel.DistributedDataParallel(module) if self.count > 1 else module

    def sum(self, value: float) -> float:
        """Return the sum of a number over the processes."""
        if self.count == 1:
            return value
        total = torch.tensor([value], dtype=torch.float64, device=self.device)
        distributed.all_reduce(total)
        return float(total)

    def from_first(self, value: Any) -> Any:
        """Return what the first process has."""
        if self.count == 1:
            return value
        box = [value]
        distributed.broadcast_object_list(box, src=0, device=self.device)
        return box[0]


@contextmanager
def processes(device: str | None = None) -> Iterator[Processes]:
    """Join the others where torchrun started this process; alone otherwise.

    Parameters
    ----------
    device : str, optional
        "cpu", "cuda", "cuda:1", …; by default a GPU where there is one, and of several that of this process.
    """
    count, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    if device is None:
        device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if torch.cuda.is_available() else "cpu"
    place = usable_device(device)
    if count == 1:
        yield Processes(0, 1, place)
        return
    if place.type == "cuda":
        torch.cuda.set_device(place)
    distributed.init_process_group("nccl" if place.type == "cuda" else "gloo")
    try:
        yield Processes(rank, count, place)
    finally:
        gc.collect()  # wrapped modules, which refer to the group
        distributed.destroy_process_group()  # joins its threads: one at work while Python shuts down aborts the process
