"""Training on a split of a dataset: which videos train, validate and test, with which graphs, and what comes of it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
import torch

from graph2vid import evaluate
from graph2vid._training_options import TrainingOptions
from graph2vid.datasets import Dataset, Embeddings, Evidence, Narration, Recording, Split
from graph2vid.errors import InputError
from graph2vid.evaluate import EvaluationOptions
from graph2vid.evidence import SaidSettings, cosine_similarity
from graph2vid.flow import FlowGraph
from graph2vid.learn.features.checkpoint import State
from graph2vid.learn.features.data import Example, embeddings_of
from graph2vid.learn.features.loop import Report, Trainer
from graph2vid.learn.features.processes import Processes
from graph2vid.learn.features.residual_mlp import ResidualMLP
from graph2vid.learn.losses import chain_of, compile_flow
from graph2vid.text import PARSERS

GIVEN_FIRST = ("expert", "manual", "rules", "learned")
"""Sources of flow graphs, the first of which a dataset has for all its tasks is taken; else they are mined."""

MINED = "mined"
VALIDATION = 8
"""Of so many training videos one is kept for validation."""

_evaluating = Lock()
"""An evaluation is for one thread of a process at a time: what it evaluates is kept once for the process."""


def with_splits(dataset: Dataset, folds: int | None = None) -> Dataset:
    """Return the dataset with splits: its own where they are the custom, else folds; see ``evaluate``."""
    count = evaluate.folds_of(EvaluationOptions(folds=folds), dataset)
    dataset = replace(dataset, splits=evaluate.in_folds(dataset, count)) if count else dataset
    if not dataset.splits:
        raise InputError(f"{dataset.name} has no splits of its own; deal its videos into folds")
    return dataset


def with_graphs(dataset: Dataset, wanted: str | None) -> tuple[Dataset, str]:
    """Return the dataset with the graphs wanted, and their source: by default the best that all tasks have.

    A parser is asked for those that are not there.
    """
    tasks = dataset.tasks.values()
    if wanted is None:
        shared = [name for name in GIVEN_FIRST if all(name in task.flows for task in tasks)]
        return dataset, shared[0] if shared else MINED
    if wanted in PARSERS and not all(wanted in task.flows for task in tasks):
        graphs = evaluate.ParsedGraphs([wanted])
        dataset = evaluate.with_parsed_graphs(dataset, graphs, all_tasks=True)
        if wanted in graphs.unavailable:
            raise InputError(f"the graphs of parser {wanted!r} cannot be had: {graphs.unavailable[wanted]}")
    sources = sorted({source for task in dataset.tasks.values() for source in task.flows})
    if wanted not in (*sources, MINED):
        raise InputError(f"{dataset.name} has no graphs {wanted!r}; it has: {', '.join([*sources, MINED])}")
    return dataset, wanted


@dataclass
class FeatureEvaluation:
    """Grounds the test videos of a split with features, and computes the metrics as ``graph2vid evaluate`` does.

    Parameters
    ----------
    dataset : Dataset
    split : Split
        Its ``test`` videos are grounded; what is mined is mined from its ``train``.
    found : iterable of (Recording, Embeddings)
        Those of the test videos.
    methods : sequence of str
        Of :mod:`graph2vid.evaluate.methods`.
    options : EvaluationOptions
    """

    dataset: Dataset
    split: Split
    found: Iterable[tuple[Recording, Embeddings]]
    methods: Sequence[str]
    options: EvaluationOptions

    def __post_init__(self) -> None:
        # A video that cannot show its procedure has no metrics whatever its features.
        sizes = {name: len(task.procedure) for name, task in self.dataset.tasks.items()}
        self.found = [pair for pair in self.found if pair[0].n_clips >= sizes[pair[0].task]]
        if not self.found:
            raise InputError(f"no video of {', '.join(self.split.test)} has as many clips as its procedure has steps")

    def results(self, mlp: ResidualMLP | None = None) -> evaluate.Results:
        """Return everything about the test videos, grounded with features or, without, with the vectors as given."""
        made = {recording.id: _evidence(vectors, mlp) for recording, vectors in self.found}
        split = replace(self.split, test=tuple(made))
        dataset = replace(self.dataset, splits=(split,), evidence=lambda recording: made[recording.id])
        options = replace(self.options, folds=0)
        if mlp is not None and mlp.prototype is not None:
            options = replace(options, drop="relative")
        with _evaluating:
            return evaluate.evaluate_dataset(dataset, self.methods, options, workers=1)

    def by_video(self, mlp: ResidualMLP | None = None) -> dict[str, list[float]]:
        """Return acc and iou of the first method for each video with labels, shares."""
        result = self.results(mlp).methods[self.methods[0]]
        labelled = [row for row in result.metrics.values() if not math.isnan(row["acc"] + row["iou"])]
        if not labelled:
            names = ", ".join(recording.id for recording, _ in self.found)
            why = "features cannot be validated on videos without labels"
            raise InputError(f"{why} ({names}): train with --no-validate")
        return {name: [float(row[name]) for row in labelled] for name in ("acc", "iou")}

    def __call__(self, mlp: ResidualMLP | None = None) -> dict[str, float]:
        """Return acc and iou of the first method, means over the videos with labels, shares."""
        return {name: math.fsum(values) / len(values) for name, values in self.by_video(mlp).items()}


def _evidence(found: Embeddings, mlp: ResidualMLP | None) -> Evidence:
    """Return the evidence that vectors of clips give, as they are or as features make them."""
    clips = found.clips if mlp is None else mlp.transform(found.clips)
    steps, background = found.steps, None
    if mlp is not None and mlp.prototype is not None:  # compared with the clips as a step is
        steps = np.vstack([steps, mlp.prototype.detach().cpu().numpy()])
    is_cosine = found.comparison == "cosine"
    similarity = cosine_similarity(steps, clips) if is_cosine else steps @ clips.T
    if len(steps) > len(found.steps):
        similarity, background = similarity[:-1], similarity[-1]
    return Evidence(similarity, background, "cosine" if is_cosine else "scores")


@dataclass(frozen=True)
class TrainingRun:
    """A split of a dataset to train and test on.

    Parameters
    ----------
    dataset : Dataset
        With its graphs.
    split : Split
    source : str
        Of the graphs, see :func:`with_graphs`.
    validate : bool
        Whether one of eight training videos is kept to validate on.
    evaluated : EvaluationOptions
        How videos are grounded when features are evaluated.
    found : dict of str to Embeddings
        Vectors of videos that are already there; the others are added.
    """

    dataset: Dataset
    split: Split
    source: str
    validate: bool = True
    evaluated: EvaluationOptions = field(default_factory=EvaluationOptions)
    found: dict[str, Embeddings] = field(default_factory=dict)

    @property
    def methods(self) -> tuple[str, ...]:
        """How the features are evaluated: by graph first."""
        return f"graph:{self.source}", "true-order"

    @cached_property
    def parts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The ids of the videos to train and to validate on."""
        known = {recording.id for recording in self.dataset.recordings}
        train_ids = [name for name in self.split.train if name in known]
        if not self.validate:
            return tuple(train_ids), ()
        kept = sorted(train_ids)[VALIDATION // 2 :: VALIDATION]
        return tuple(name for name in train_ids if name not in set(kept)), tuple(kept)

    @cached_property
    def _training(self) -> evaluate.Training:
        linear = evaluate.linear_of(self.evaluated, self.dataset)
        return evaluate.Training(self.dataset, linear, self.evaluated.min_support, self.evaluated.tolerance)

    @cached_property
    def _training_split(self) -> Split:
        return Split(self.split.name, self.parts[0], self.split.test)

    def _vectors(self, names: Iterable[str]) -> list[tuple[Recording, Embeddings]]:
        wanted = [self.dataset.recording(name) for name in names]
        for recording, vectors in embeddings_of(self.dataset, [one for one in wanted if one.id not in self.found]):
            self.found[recording.id] = vectors
        return [(recording, self.found[recording.id]) for recording in wanted]

    def _plan(self, objective: str, recording: Recording) -> tuple[FlowGraph | None, Sequence[int]]:
        """Return the graph that a video is grounded by, and the step behind each of its elements."""
        task = self.dataset.tasks[recording.task]
        rows: Sequence[int] = range(len(task.procedure))
        if objective == "bag":
            return None, rows
        if objective == "graph":
            mined = self.source == MINED
            flow = self._training.mined(task, self._training_split) if mined else task.flows.get(self.source)
            if flow is None:
                raise InputError(f"task {task.id} has no graph {self.source!r} to train with")
            if flow.has_choices:  # losses know steps that must be done
                flow = replace(flow, optional=(), alternatives=())
            return flow, rows
        if objective == "linear":
            rows = self._training.linear_order(task, self._training_split).tolist()
        else:
            labels = evaluate.true_labels(self.dataset, recording)
            rows = evaluate.instructions_in_order(task, (label for label, _, _ in evaluate.segments(labels)))
        return chain_of(len(rows)) if rows else None, rows

    def examples(self, objective: str) -> tuple[list[Example], list[str]]:
        """Return the videos to train on, and why others were left out: too few clips to show the procedure, or none."""
        examples, left_out = [], []
        for recording, found in self._vectors(self.parts[0]):
            flow, rows = self._plan(objective, recording)
            if not len(rows):
                left_out.append(f"video {recording.id} shows no step of its procedure")
            elif len(found.clips) < len(rows):
                left_out.append(f"video {recording.id} has {len(found.clips)} clips for {len(rows)} steps")
            else:
                arrays = [np.ascontiguousarray(part, dtype=np.float32) for part in (found.clips, found.steps)]
                clips, steps = map(torch.from_numpy, arrays)
                tsort = None if flow is None else compile_flow(flow)
                examples.append(Example(recording.id, clips, steps, torch.tensor(rows), tsort))
        if not examples:
            raise InputError(f"there are no videos to train on; {(left_out or ['the split has none'])[0]}")
        return examples, left_out

    def evaluation(self, part: str) -> FeatureEvaluation | None:
        """Return the evaluation of features on the videos for validation, or for the test; None without videos."""
        names = self.parts[1] if part == "validation" else self.split.test
        if not names:
            return None
        split = replace(self._training_split, test=tuple(names))
        return FeatureEvaluation(self.dataset, split, self._vectors(names), self.methods, self.evaluated)

    @cached_property
    def comparison(self) -> str:
        """How clips and steps are compared."""
        return self._vectors(self.parts[0][:1])[0][1].comparison

    def about(self) -> dict[str, Any]:
        """Say what a user of the features must know."""
        evidence = self.dataset.evidence
        source: dict[str, Any] = {"kind": "arrays"}
        if isinstance(evidence, Narration):
            source = {"kind": "narration", "embedder": evidence.embedder, **asdict(SaidSettings())}
        return {
            "comparison": self.comparison,
            "source": source,
            "dataset": {"name": self.dataset.name, "options": dict(self.dataset.options), "split": self.split.name},
            "graph": self.source,
            "judged": {
                "linear": evaluate.linear_of(self.evaluated, self.dataset),
                "min_support": self.evaluated.min_support,
                "tolerance": self.evaluated.tolerance,
            },
        }

    def train(
        self,
        options: TrainingOptions,
        *,
        folder: str | os.PathLike[str] | None = None,
        resume: bool = False,
        group: Processes | None = None,
        report: Report | None = None,
    ) -> State:
        """Train features; see :meth:`graph2vid.learn.features.loop.Trainer.train`."""
        examples, _ = self.examples(options.objective)
        validation = self.evaluation("validation")
        by_video = None if validation is None else validation.by_video
        trainer = Trainer(examples, options, self.comparison, self.about(), by_video)
        return trainer.train(folder, resume=resume, group=group, report=report)
