"""The videos that features are trained on: their vectors, and the graph that each of them is grounded by."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from graph2vid.datasets import Dataset, Embedded, Embeddings, Recording, Split, Task
from graph2vid.errors import InputError
from graph2vid.evaluate import Training, instructions_in_order, segments, true_labels
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

GIVEN_FIRST = ("expert", "manual", "rules", "learned")
"""Sources of flow graphs, the first of which a dataset has for all its tasks is taken; else they are mined."""

MINED = "mined"


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
        if len(found.clips) != recording.n_clips:
            raise InputError(
                f"video {recording.id}: {len(found.clips)} features for {recording.n_clips} clips; they do not fit"
            )
        yield recording, found


def graph_source(dataset: Dataset, wanted: str | None) -> str:
    """Return which flow graphs to train and ground with: as wanted, or the best that all tasks have."""
    sources = {source for task in dataset.tasks.values() for source in task.flows}
    if wanted is None:
        shared = [name for name in GIVEN_FIRST if all(name in task.flows for task in dataset.tasks.values())]
        return shared[0] if shared else MINED
    if wanted != MINED and wanted not in sources:
        raise InputError(f"{dataset.name} has no graphs {wanted!r}; it has: {', '.join([*sorted(sources), MINED])}")
    return wanted


class Planner:
    """Says by which graph a video is grounded under an objective.

    Parameters
    ----------
    dataset : Dataset
    split : Split
        What is mined, or ordered by mean position, is so from its training videos.
    training : Training
    source : str
        Of the flow graphs, see :func:`graph_source`.
    """

    def __init__(self, dataset: Dataset, split: Split, training: Training, source: str) -> None:
        self._dataset, self._split, self._training, self._source = dataset, split, training, source
        self._compiled: dict[FlowGraph, TSortGraph] = {}
        self._plans: dict[str, Callable[[Recording, Task], tuple[FlowGraph | None, Sequence[int]]]] = {
            "bag": lambda recording, task: (None, range(len(task.procedure))),
            "linear": self._linear,
            "graph": self._graph,
            "true-order": self._true_order,
        }

    def __call__(self, objective: str, recording: Recording) -> tuple[TSortGraph | None, Tensor] | None:
        """Return the graph and the step behind each of its elements; None where the video shows none of them."""
        task = self._dataset.tasks[recording.task]
        flow, rows = self._plans[objective](recording, task)
        if not len(rows):
            return None
        if flow is not None and flow not in self._compiled:
            self._compiled[flow] = TSortGraph.compile(_plain(flow))
        return None if flow is None else self._compiled[flow], torch.tensor(list(rows), dtype=torch.int64)

    def _linear(self, recording: Recording, task: Task) -> tuple[FlowGraph, Sequence[int]]:
        order: list[int] = self._training.linear_order(task, self._split).tolist()
        return _chain(len(order)), order

    def _graph(self, recording: Recording, task: Task) -> tuple[FlowGraph, Sequence[int]]:
        flow = self._training.mined(task, self._split) if self._source == MINED else task.flows.get(self._source)
        if flow is None:
            raise InputError(f"task {task.id} has no graph {self._source!r} to train with")
        return flow, range(len(task.procedure))

    def _true_order(self, recording: Recording, task: Task) -> tuple[FlowGraph | None, Sequence[int]]:
        labels = true_labels(self._dataset, recording)
        rows = instructions_in_order(task, (label for label, _, _ in segments(labels)))
        return (_chain(len(rows)) if rows else None), rows


def _chain(length: int) -> FlowGraph:
    return FlowGraph.chain([str(place) for place in range(length)])


def make_examples(
    found: Iterable[tuple[Recording, Embeddings]], planner: Planner, objective: str
) -> tuple[list[Example], list[str]]:
    """Return the videos to train on, and those left out, with why: too few clips to show the procedure, or nothing."""
    examples, left_out = [], []
    for recording, embeddings in found:
        plan = planner(objective, recording)
        if plan is None:
            left_out.append(f"video {recording.id} shows no step of its procedure")
            continue
        tsort, rows = plan
        if len(embeddings.clips) < len(rows):
            left_out.append(f"video {recording.id} has {len(embeddings.clips)} clips for {len(rows)} steps")
            continue
        clips, steps = (
            torch.from_numpy(np.ascontiguousarray(part, dtype=np.float32))
            for part in (embeddings.clips, embeddings.steps)
        )
        examples.append(Example(recording.id, clips, steps, rows, tsort))
    if not examples:
        raise InputError(f"there are no videos to train on; {(left_out or ['the split has none'])[0]}")
    return examples, left_out


def fingerprint(examples: Sequence[Example]) -> str:
    """Return a hash of everything that is trained on: equal data, order included, has equal ones."""
    digest = hashlib.blake2b(digest_size=20)
    for example in examples:
        edges = () if example.tsort is None else example.tsort.flow.edges
        digest.update(f"{example.video} {tuple(example.clips.shape)} {tuple(example.steps.shape)} {edges}\n".encode())
        for part in (example.clips, example.steps, example.rows):
            digest.update(part.numpy().tobytes())
    return digest.hexdigest()


def _plain(flow: FlowGraph) -> FlowGraph:
    """Return the graph with every step to be done and every edge certain, as losses know it."""
    return flow if flow.is_plain else FlowGraph.from_edges([step.text for step in flow.steps], list(flow.edges))
