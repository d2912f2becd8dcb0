"""Training on a split of a dataset: which videos train, validate and test, and with which graphs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from graph2vid._training_options import TrainingOptions
from graph2vid.datasets import Dataset, Embeddings, Narration, Recording, Split
from graph2vid.errors import InputError
from graph2vid.evaluate import (
    EvaluationOptions,
    ParsedGraphs,
    Training,
    folds_of,
    in_folds,
    linear_of,
    with_parsed_graphs,
)
from graph2vid.evidence import SaidSettings
from graph2vid.learn.features.checkpoint import State
from graph2vid.learn.features.data import Example, Planner, embeddings_of, graph_source, make_examples
from graph2vid.learn.features.feature_metrics import FeatureEvaluation
from graph2vid.learn.features.loop import Report, Trainer
from graph2vid.learn.features.processes import Processes
from graph2vid.text import PARSERS

VALIDATION = 8
"""Of so many training videos one is kept for validation."""


def with_splits(dataset: Dataset, folds: int | None = None) -> Dataset:
    """Return the dataset with splits: its own where they are the custom, else folds; see ``evaluate``."""
    count = folds_of(EvaluationOptions(folds=folds), dataset)
    dataset = replace(dataset, splits=in_folds(dataset, count)) if count else dataset
    if not dataset.splits:
        raise InputError(f"{dataset.name} has no splits of its own; deal its videos into folds")
    return dataset


def with_graphs(dataset: Dataset, wanted: str | None) -> tuple[Dataset, str]:
    """Return the dataset with the graphs wanted, and their source; a parser is asked for those that are not there."""
    if wanted is not None and wanted in PARSERS and not all(wanted in task.flows for task in dataset.tasks.values()):
        graphs = ParsedGraphs([wanted])
        dataset = with_parsed_graphs(dataset, graphs, all_tasks=True)
        if wanted in graphs.unavailable:
            raise InputError(f"the graphs of parser {wanted!r} cannot be had: {graphs.unavailable[wanted]}")
    return dataset, graph_source(dataset, wanted)


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
    def planner(self) -> Planner:
        """Says by which graph a video is grounded."""
        linear = linear_of(self.evaluated, self.dataset)
        training = Training(self.dataset, linear, self.evaluated.min_support, self.evaluated.tolerance)
        return Planner(self.dataset, self._training_split, training, self.source)

    @cached_property
    def _training_split(self) -> Split:
        return Split(self.split.name, self.parts[0], self.split.test)

    def _vectors(self, names: Iterable[str]) -> list[tuple[Recording, Embeddings]]:
        wanted = [self.dataset.recording(name) for name in names]
        for recording, vectors in embeddings_of(self.dataset, [one for one in wanted if one.id not in self.found]):
            self.found[recording.id] = vectors
        return [(recording, self.found[recording.id]) for recording in wanted]

    def examples(self, objective: str) -> tuple[list[Example], list[str]]:
        """Return the videos to train on, and why others were left out."""
        return make_examples(self._vectors(self.parts[0]), self.planner, objective)

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
                "linear": linear_of(self.evaluated, self.dataset),
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
        """Train features; see :class:`graph2vid.learn.features.loop.Trainer`."""
        examples, _ = self.examples(options.objective)
        validation = self.evaluation("validation")
        by_video = None if validation is None else validation.by_video
        trainer = Trainer(examples, options, self.comparison, self.about(), by_video)
        return trainer.train(folder, resume=resume, group=group, report=report)
