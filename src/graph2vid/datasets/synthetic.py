"""Synthetic recordings: random procedures, done in random legal orders; nothing is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graph2vid.datasets.dataset import Annotation, Dataset, Recording, Task
from graph2vid.datasets.reader_tools import LabelOptions, Trouble, clips_to_cover, reader, split
from graph2vid.datasets.simulate import SimulationOptions
from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph, random_sorts

VERBS = ("add", "cut", "fold", "heat", "mix", "peel", "pour", "press", "rinse", "sand", "shake", "stir", "trim", "wrap")
_THINGS = "apple batter beans board cloth cream dough frame herbs milk oil onion panel"
THINGS = tuple(_THINGS.split())


@dataclass(frozen=True)
class SyntheticOptions(SimulationOptions, LabelOptions):
    """How recordings are made: see :func:`load`."""

    told = ("seed", "noise", "persistence", "dimensions", "clip_seconds", "skip", "repeat", "background")

    tasks: int = 8
    recordings: int = 80
    steps: tuple[int, int] = (6, 10)
    threads: tuple[int, int] = (2, 4)
    skip: float = 0.0
    repeat: float = 0.0
    background: float = 0.3
    step_seconds: float = 8.0

    def __post_init__(self) -> None:
        for name in ("steps", "threads"):
            try:
                low, high = map(int, getattr(self, name))
            except (TypeError, ValueError):
                low, high = 0, 0
            if not 1 <= low <= high:
                wanted = "two whole numbers, the least first and at least 1"
                raise InputError(f"{name} must be {wanted}, not {getattr(self, name)!r}")
        tasks, recordings, lengths = self.tasks, self.recordings, (self.step_seconds, self.clip_seconds)
        if tasks < 1 or recordings < tasks:
            raise InputError(f"{recordings} recordings of {tasks} tasks: there must be at least one of each task")
        for name in ("skip", "repeat", "background"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name} must be from 0 to below 1, not {getattr(self, name)!r}")
        if not all(0 < length < math.inf for length in lengths):
            raise InputError("step_seconds and clip_seconds must be positive: {!r}, {!r}".format(*lengths))


@reader("synthetic", SyntheticOptions, needs_data=False)
def load(data: Path, options: SyntheticOptions, trouble: Trouble) -> Dataset:
    """Make recordings of random procedures; the same options give the same data.

    Parameters
    ----------
    data, skip_bad
        Not used: nothing is read.
    tasks, recordings : int
        How many procedures, and how many recordings of all of them together.
    steps, threads : (int, int)
        The least and the largest number of steps of a procedure, and of threads that run beside each other.
    skip, repeat : float
        The chance of each step to be left out, and to be shown once more later.
    background : float
        The share of the video that shows no step, from 0 to below 1, in the mean.
    step_seconds : float
        The mean length of a step.
    clip_seconds : float
        The length of a clip.
    noise, persistence, dimensions
        Of the clip embeddings, see :class:`graph2vid.datasets.simulate.Simulation`.
    seed : int

    Returns
    -------
    Dataset
        With one split into halves. A recording's order is drawn uniformly from the topological sorts of its
        procedure, which is ``flows["expert"]``; the text of the procedure is one of these sorts.
    """
    made: dict[str, Task] = {}
    videos: list[Recording] = []
    for number in range(options.tasks):
        random = np.random.default_rng([options.seed, number])
        n_steps = int(random.integers(options.steps[0], options.steps[1] + 1))
        n_threads = int(random.integers(options.threads[0], options.threads[1] + 1))
        flow = _random_procedure(n_steps, n_threads, f"procedure {number + 1}", random)
        name = f"task{number + 1}"
        count = options.recordings // options.tasks + (number < options.recordings % options.tasks)
        made[name] = Task.of_steps(name, flow.title, flow.texts, flows={"expert": flow})
        for video, order in enumerate(random_sorts(TSortGraph.compile(flow), count, random)):
            videos.append(_record(f"{name}_{video + 1}", name, order, options, random))
    names = [video.id for video in videos]
    return trouble.dataset(
        videos,
        data,
        tasks=made,
        splits=split("halves", names[::2], names[1::2]),
        evidence=options.simulation(made),
        simulated=True,
    )


def _random_procedure(n_steps: int, n_threads: int, title: str, random: np.random.Generator) -> FlowGraph:
    """Draw threads that run beside each other, wait for each other here and there, and meet in a last step."""
    pairs = random.choice(len(VERBS) * len(THINGS), size=n_steps, replace=n_steps > len(VERBS) * len(THINGS))
    texts = [f"{VERBS[pair // len(THINGS)]} the {THINGS[pair % len(THINGS)]}" for pair in pairs.tolist()]
    thread = random.integers(0, n_threads, size=n_steps).tolist()
    edges = set()
    for step in range(1, n_steps):
        earlier = [other for other in range(step) if thread[other] == thread[step]]
        if earlier:
            edges.add((earlier[-1], step))
        if random.random() < 0.15:
            edges.add((int(random.integers(0, step)), step))
    if random.random() < 0.5:
        edges |= {(step, n_steps - 1) for step in range(n_steps - 1)}
    return FlowGraph.from_edges(texts, sorted(edges), title).transitive_reduction()


def _record(
    name: str, task: str, order: tuple[int, ...], options: SyntheticOptions, random: np.random.Generator
) -> Recording:
    """Carry out the steps in this order."""
    kept = [step for step in order if random.random() >= options.skip] or [order[0]]
    shown = list(kept)
    for step in kept:
        if random.random() < options.repeat:
            first = shown.index(step)
            shown.insert(int(random.integers(first + 1, len(shown) + 1)), step)
    gap = options.step_seconds * options.background / (1.0 - options.background)
    annotations, now = [], random.exponential(gap)
    for step in shown:
        # Between a quarter of the mean and far beyond it; never less than a clip, so that it can be seen.
        length = max(options.clip_seconds, options.step_seconds * (0.25 + random.gamma(2.0, 0.375)))
        annotations.append(Annotation(step, now, now + length))
        now += length + random.exponential(gap)
    notes = {"skipped": tuple(sorted(set(order) - set(kept))), "repeated": len(shown) - len(kept)}
    n_clips = clips_to_cover(now, options.clip_seconds)
    return Recording(name, task, options.clip_seconds, 0.0, n_clips, tuple(annotations), notes)
