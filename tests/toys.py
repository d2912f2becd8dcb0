"""Small datasets in memory, for the tests of the evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graph2vid.datasets import Annotation, Dataset, Evidence, Recording, Split, Task
from graph2vid.evaluate.metrics import segments
from graph2vid.flow import FlowGraph

STEPS = ("wash", "cut", "mix", "serve")


@dataclass(frozen=True)
class Clear:
    """Evidence that points at given steps of the procedure: a score of ``height`` there, else 0, plus noise."""

    shown: Mapping[str, Sequence[int]]
    n_steps: Mapping[str, int]
    height: float = 6.0
    noise: float = 0.0
    background: bool = False

    def __call__(self, recording: Recording) -> Evidence:
        labels = np.array(self.shown[recording.id])
        scores = np.zeros((self.n_steps[recording.task] + 1, len(labels)))
        scores[labels, np.arange(len(labels))] = self.height  # background, -1, is the last row
        random = np.random.default_rng(sum(map(ord, recording.id)))
        scores += self.noise * random.normal(size=scores.shape)
        return Evidence(scores[:-1], scores[-1] if self.background else None, "scores")


def make_task(
    name: str = "salad",
    steps: Sequence[str] = STEPS,
    procedure: Sequence[str] | None = None,
    correspondence: Sequence[tuple[int, ...]] | None = None,
    **flows: Sequence[tuple[int, int]],
) -> Task:
    """Return a task whose procedure is by default its steps, with graphs given by their edges."""
    texts = tuple(procedure or steps)
    rows = tuple(correspondence or ((step,) for step in range(len(steps))))
    graphs = {source: FlowGraph.from_edges(texts, edges) for source, edges in flows.items()}
    return Task(name, name.title(), tuple(steps), texts, rows, graphs)


def make_recording(name: str, labels: Sequence[int], task: str = "salad", **notes: object) -> Recording:
    """Return a recording of clips of one second whose truth is ``labels``, dataset steps."""
    rows = tuple(Annotation(step, float(start), float(stop)) for step, start, stop in segments(np.array(labels)))
    return Recording(name, task, 1.0, 0.0, len(labels), rows, notes)


def make_dataset(
    videos: Mapping[str, Sequence[int]],
    task: Task | None = None,
    *,
    name: str = "toy",
    splits: Sequence[Split] = (),
    height: float = 6.0,
    noise: float = 0.0,
    background: bool = False,
) -> Dataset:
    """Return a dataset of one task; clips look like the first instruction of their step."""
    task = task or make_task()
    first = [row[0] if row else -1 for row in task.correspondence] + [-1]
    shown = {video: [first[label] for label in labels] for video, labels in videos.items()}
    return Dataset(
        name,
        {task.id: task},
        tuple(make_recording(video, labels, task.id) for video, labels in videos.items()),
        tuple(splits),
        Clear(shown, {task.id: len(task.procedure)}, height, noise, background),
    )


def spread(order: Sequence[int], clips: int = 4) -> list[int]:
    """Return labels in which each step of the order takes so many clips."""
    return [step for step in order for _ in range(clips)]
