"""A course of training on a dataset: who trains, who validates, who is tested, and with which graphs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from graph2vid.datasets.caption_folder import Narration
from graph2vid.datasets.dataset import Dataset, Embeddings, Recording, Split
from graph2vid.errors import InputError
from graph2vid.evaluate.engine import Options, in_folds
from graph2vid.evaluate.methods import Training
from graph2vid.evaluate.parsed import ParsedGraphs, with_parsed_graphs
from graph2vid.evidence.transcript_vectors import SaidSettings
from graph2vid.learn.features.checkpoint import State
from graph2vid.learn.features.data import Example, Planner, embeddings_of, graph_source, make_examples
from graph2vid.learn.features.feature_metrics import GroundingJudge
from graph2vid.learn.features.loop import Report, train
from graph2vid.learn.features.options import TrainingOptions
from graph2vid.learn.features.processes import Processes
from graph2vid.text.parsed_text import PARSERS

VALIDATION = 8
"""Of so many training videos one is kept for validation."""


def with_splits(dataset: Dataset, folds: int | None = None) -> Dataset:
    """Return the dataset with splits: its own where they are the custom, else folds; see ``evaluate``."""
    count = Options(folds=folds).folds_of(dataset)
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
class Course:
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
    judged : Options
        How videos are grounded when features are judged.
    found : dict of str to Embeddings
        Vectors of videos that are already there; the others are added.
    """

    dataset: Dataset
    split: Split
    source: str
    validate: bool = True
    judged: Options = field(default_factory=Options)
    found: dict[str, Embeddings] = field(default_factory=dict)

    @property
    def methods(self) -> tuple[str, ...]:
        """How the features are judged: by graph first."""
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
        """Who says by which graph a video is grounded."""
        linear = self.judged.linear_of(self.dataset)
        training = Training(self.dataset, linear, self.judged.min_support, self.judged.tolerance)
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

    def judge(self, part: str) -> GroundingJudge | None:
        """Return who judges features on the videos for validation, or for the test; None where there are none."""
        names = self.parts[1] if part == "validation" else self.split.test
        if not names:
            return None
        split = replace(self._training_split, test=tuple(names))
        return GroundingJudge(self.dataset, split, self._vectors(names), self.methods, self.judged)

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
                "linear": self.judged.linear_of(self.dataset),
                "min_support": self.judged.min_support,
                "tolerance": self.judged.tolerance,
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
        """Train features; see :func:`graph2vid.learn.features.loop.train`."""
        examples, _ = self.examples(options.objective)
        judge = self.judge("validation")
        return train(
            examples,
            options,
            self.comparison,
            about=self.about(),
            judge=None if judge is None else judge.by_video,
            folder=folder,
            resume=resume,
            group=group,
            report=report,
        )
