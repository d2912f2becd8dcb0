"""The metrics of features: videos are grounded with them, as ``graph2vid evaluate`` does with evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock

from graph2vid.datasets import Dataset, Embeddings, Evidence, Recording, Split
from graph2vid.errors import InputError
from graph2vid.evaluate import EvaluationOptions, Results, evaluate_dataset
from graph2vid.learn.features.residual_mlp import ResidualMLP, similarity

_evaluating = Lock()
"""An evaluation is for one thread of a process at a time: what it evaluates is kept once for the process."""


@dataclass(frozen=True)
class _Ready:
    """Evidence that is already there, by recording."""

    found: Mapping[str, Evidence]

    def __call__(self, recording: Recording) -> Evidence:
        return self.found[recording.id]


def evidence_of(embeddings: Embeddings, mlp: ResidualMLP | None = None) -> Evidence:
    """Return the evidence that vectors of clips give, as they are or as features make them."""
    clips = embeddings.clips if mlp is None else mlp.transform(embeddings.clips)
    found = similarity(embeddings.steps, clips, embeddings.comparison)
    return Evidence(found, None, "cosine" if embeddings.comparison == "cosine" else "scores")


class FeatureEvaluation:
    """Grounds the test videos of a split with features, and computes the metrics.

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

    def __init__(
        self,
        dataset: Dataset,
        split: Split,
        found: Iterable[tuple[Recording, Embeddings]],
        methods: Sequence[str],
        options: EvaluationOptions,
    ) -> None:
        self._dataset, self._split, self._methods = dataset, split, list(methods)
        self._options = replace(options, folds=0)
        # A video that cannot show its procedure has no metrics whatever its features.
        self._found = [
            (recording, vectors)
            for recording, vectors in found
            if recording.n_clips >= len(dataset.tasks[recording.task].procedure)
        ]
        if not self._found:
            raise InputError(f"no video of {', '.join(split.test)} has as many clips as its procedure has steps")

    def results(self, mlp: ResidualMLP | None = None) -> Results:
        """Return everything about the test videos, grounded with features or, without, with the vectors as given."""
        made = {recording.id: evidence_of(vectors, mlp) for recording, vectors in self._found}
        split = replace(self._split, test=tuple(made))
        dataset = replace(self._dataset, splits=(split,), evidence=_Ready(made))
        with _evaluating:
            return evaluate_dataset(dataset, self._methods, self._options, workers=1)

    def by_video(self, mlp: ResidualMLP | None = None) -> dict[str, list[float]]:
        """Return acc and iou of the first method for each video with labels, shares."""
        result = self.results(mlp).methods[self._methods[0]]
        labelled = [row for row in result.metrics.values() if not math.isnan(row["acc"] + row["iou"])]
        if not labelled:
            names = ", ".join(recording.id for recording, _ in self._found)
            raise InputError(
                f"features cannot be validated on videos without labels ({names}): train with --no-validate"
            )
        return {name: [float(row[name]) for row in labelled] for name in ("acc", "iou")}

    def __call__(self, mlp: ResidualMLP | None = None) -> dict[str, float]:
        """Return acc and iou of the first method, means over the videos with labels, shares."""
        return {name: math.fsum(values) / len(values) for name, values in self.by_video(mlp).items()}
