"""A small dataset whose clips speak a foreign language: what they show, turned by a rotation that can be learnt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.datasets import Dataset, Embeddings, Evidence, Recording, Split
from graph2vid.datasets.synthetic import load
from graph2vid.evidence.arrays import cosine_similarity


@dataclass(frozen=True)
class Turned:
    """Embeddings of another source with the clips' turned."""

    source: Any
    rotation: NDArray[np.float64]

    def embeddings(self, recording: Recording) -> Embeddings:
        found = self.source.embeddings(recording)
        return Embeddings(found.steps, found.clips @ self.rotation)

    def __call__(self, recording: Recording) -> Evidence:
        found = self.embeddings(recording)
        return Evidence(cosine_similarity(found.steps, found.clips), None, "cosine")


def foreign(recordings: int = 40, dimensions: int = 24, turn: float = 2.0) -> Dataset:
    """Return recordings of one procedure of seven steps in three threads, half of them to train on."""
    made = load(
        tasks=1,
        recordings=recordings,
        steps=(7, 7),
        threads=(3, 3),
        noise=1.0,
        dimensions=dimensions,
        step_seconds=5.0,
    )
    drawn = np.random.default_rng(0).normal(size=(dimensions, dimensions))
    rotation, triangle = np.linalg.qr(np.eye(dimensions) + turn * (drawn - drawn.T) / np.sqrt(dimensions))
    return replace(made, evidence=Turned(made.evidence, rotation * np.sign(np.diag(triangle))))


def only_split(dataset: Dataset) -> Split:
    """Return the split into halves."""
    (split,) = dataset.splits
    return split
