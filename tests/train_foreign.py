"""Train on the small foreign dataset, as a process of its own: ``python train_foreign.py FOLDER [--resume] [--apart]``.

With ``--apart`` every process has a folder of its own, as on machines without a common disk.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

from foreign import foreign, only_split
from graph2vid.learn.features import TrainingOptions, TrainingRun
from graph2vid.learn.features.checkpoint import State
from graph2vid.learn.features.processes import processes

OPTIONS = TrainingOptions(
    epochs=3, batch=3, rate=3e-3, gamma=0.3, smoothing="softmin", contiguous=True, pool_temperature=0.5, every=2
)


def train(folder: str, resume: bool = False) -> State:
    """Train, in this process or with those that torchrun started beside it."""
    torch.set_num_threads(1)
    dataset = foreign(16)
    with processes("cpu") as group:
        run = TrainingRun(dataset, only_split(dataset), "expert")
        return run.train(OPTIONS, folder=folder, resume=resume, group=group)


def threads() -> list[str]:
    """Return the names of this process's threads, where the system tells."""
    return [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]


if __name__ == "__main__":
    train(sys.argv[1] + (os.environ["RANK"] if "--apart" in sys.argv else ""), "--resume" in sys.argv)
    # A thread of torch's that outlives the group may abort the process at its end.
    assert not any("gloo" in name for name in threads()), threads()
