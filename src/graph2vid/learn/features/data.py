"""The videos that features are trained on, and their vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from graph2vid.datasets import Dataset, Embedded, Embeddings, Recording
from graph2vid.errors import InputError
from graph2vid.tsort import TSortGraph


@dataclass(frozen=True, eq=False)
class Example:
    """A video to train on.

    Attributes
    ----------
    video : str
    clips : float32 Tensor [N, D]
    steps : float32 Tensor [K, D]
    rows : int64 Tensor [E]
        The step behind each element of the graph.
    tsort : TSortGraph or None
        What the video is grounded by; None for the bag of steps.
    """

    video: str
    clips: Tensor
    steps: Tensor
    rows: Tensor
    tsort: TSortGraph | None


def embeddings_of(dataset: Dataset, recordings: Iterable[Recording]) -> Iterator[tuple[Recording, Embeddings]]:
    """Yield the vectors of recordings; numbers that are not finite are an error that names the video."""
    source = dataset.evidence
    if not isinstance(source, Embedded):
        raise InputError(f"{dataset.name} has no features to train: its reader hands over scores of steps alone")
    for recording in recordings:
        found = source.embeddings(recording)
        for name, vectors in (("clips", found.clips), ("steps", found.steps)):
            if not np.isfinite(vectors).all():
                raise InputError(f"video {recording.id}: the features of its {name} hold NaN or infinite numbers")
        made, wanted = len(found.clips), recording.n_clips
        if made != wanted:
            raise InputError(f"video {recording.id}: {made} features for {wanted} clips; they do not fit")
        yield recording, found


def fingerprint(examples: Sequence[Example]) -> str:
    """Return a hash of everything that is trained on: equal data, order included, has equal ones."""
    digest = hashlib.blake2b(digest_size=20)
    for example in examples:
        edges = () if example.tsort is None else example.tsort.flow.edges
        digest.update(f"{example.video} {tuple(example.clips.shape)} {tuple(example.steps.shape)} {edges}\n".encode())
        for part in (example.clips, example.steps, example.rows):
            digest.update(part.numpy().tobytes())
    return digest.hexdigest()
