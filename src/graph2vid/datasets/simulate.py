"""Simulated clip embeddings for recordings of which only the step times are known."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from graph2vid.datasets.dataset import Embeddings, Evidence, Recording, Task
from graph2vid.errors import InputError
from graph2vid.evidence import cosine_similarity

SIMULATED = ("noise", "persistence", "dimensions", "seed")
"""The options of a simulation."""
_WORD = re.compile(r"\w\w+")


@dataclass(frozen=True)
class SimulationOptions:
    """How clip embeddings are simulated; see :class:`Simulation`."""

    noise: float = 3.0
    persistence: float = 0.8
    dimensions: int = 64
    seed: int = 0

    def simulation(self, tasks: Mapping[str, Task]) -> Simulation:
        """Return the evidence that is simulated in this way."""
        return Simulation(tasks, **{name: getattr(self, name) for name in SIMULATED})


@dataclass(frozen=True)
class Simulation:
    """Evidence drawn with a seed: what a clip shows, under noise that changes slowly.

    Every word has a random direction. A step looks like the sum of its words and something of its own, so
    that steps that share words look alike. A clip looks like what its annotations say (a part of the clip
    that no annotation covers, like the background of that recording) plus noise, and is compared with the
    steps by cosine. The same seed gives the same noise at every noise level, only larger.

    Attributes
    ----------
    tasks : mapping of str to Task
    noise : float
        The length of the noise where what is shown has length 1.
    seed : int
    dimensions : int
        Size of the embeddings.
    persistence : float
        Correlation of the noise of one clip with that of the next, from 0 to below 1: neighbouring clips are
        wrong in the same way.
    """

    tasks: Mapping[str, Task]
    noise: float = 3.0
    seed: int = 0
    dimensions: int = 64
    persistence: float = 0.8

    def __post_init__(self) -> None:
        if not 0 <= self.noise < math.inf:
            raise InputError(f"noise must be a number from 0, not {self.noise!r}")
        if not 0 <= self.persistence < 1:
            raise InputError(f"persistence must be from 0 to below 1, not {self.persistence!r}")
        if self.dimensions < 2 or self.seed < 0:
            raise InputError(f"dimensions must be at least 2 and the seed at least 0: {self.dimensions}, {self.seed}")

    def embeddings(self, recording: Recording) -> Embeddings:
        """Return the embeddings of the procedure's steps and of the clips."""
        task = self.tasks[recording.task]
        steps = np.array([self._look(text) for text in task.procedure])
        # A dataset step looks like its first instruction: the two may be worded differently.
        rows = zip(task.steps, task.correspondence, strict=True)
        shown = np.array([steps[first[0]] if first else self._look(text) for text, first in rows])
        share = _shares(recording, len(task.steps))
        background = _direction(self.seed, self.dimensions, f"background of {recording.id}")
        clips = share @ shown + np.outer(1.0 - share.sum(axis=1), background)
        return Embeddings(steps, clips + self.noise * self._unit_noise(recording))

    def __call__(self, recording: Recording) -> Evidence:
        found = self.embeddings(recording)
        return Evidence(cosine_similarity(found.steps, found.clips), None, "cosine")

    def _look(self, text: str) -> NDArray[np.float64]:
        words = dict.fromkeys(_WORD.findall(text.lower()))
        parts = [_direction(self.seed, self.dimensions, part) for part in (*words, f"itself: {text}")]
        look = np.mean(parts, axis=0)
        unit: NDArray[np.float64] = look / np.linalg.norm(look)
        return unit

    def _unit_noise(self, recording: Recording) -> NDArray[np.float64]:
        """Return noise [N, D] whose rows have a squared length of 1 in the mean."""
        random = np.random.default_rng([self.seed, crc32(f"noise of {recording.id}".encode())])
        noise = random.normal(scale=self.dimensions**-0.5, size=(recording.n_clips, self.dimensions))
        fresh = math.sqrt(1.0 - self.persistence**2)
        for clip in range(1, recording.n_clips):
            noise[clip] = self.persistence * noise[clip - 1] + fresh * noise[clip]
        return noise


@lru_cache(maxsize=100_000)
def _direction(seed: int, dimensions: int, name: str) -> NDArray[np.float64]:
    """Return the random unit vector that belongs to a name."""
    vector = np.random.default_rng([seed, crc32(name.encode())]).normal(size=dimensions)
    unit: NDArray[np.float64] = vector / np.linalg.norm(vector)
    unit.setflags(write=False)
    return unit


def _shares(recording: Recording, n_steps: int) -> NDArray[np.float64]:
    """Return [N, dataset steps]: the share of each clip that shows each step; where steps overlap, both are seen."""
    begins = recording.offset + recording.clip_seconds * np.arange(recording.n_clips)
    share = np.zeros((recording.n_clips, n_steps))
    for row in recording.annotations:
        overlap = np.minimum(begins + recording.clip_seconds, row.end) - np.maximum(begins, row.start)
        share[:, row.step] += np.clip(overlap, 0.0, None) / recording.clip_seconds
    scaled: NDArray[np.float64] = share / np.maximum(share.sum(axis=1, keepdims=True), 1.0)
    return scaled
