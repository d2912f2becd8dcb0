"""What the defaults of ``train features`` learn on small data sets: ``python benchmarks/features_experiment.py DATA``.

DATA holds ``salads50`` and ``salads50_edtcn``; without, the synthetic data alone are tried. Prints the table of
docs/appendix/training.md, "How the defaults were chosen".
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graph2vid.datasets import Embeddings, Evidence, Recording, read_dataset
from graph2vid.datasets.synthetic import load
from graph2vid.evidence.arrays import cosine_similarity
from graph2vid.learn.features import TrainingRun, preset, with_graphs, with_splits

SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Turned:
    """Embeddings of another source with those of the clips turned: what there is to learn."""

    source: Any
    rotation: NDArray[np.float64]

    def embeddings(self, recording: Recording) -> Embeddings:
        """Return the vectors of a recording."""
        found = self.source.embeddings(recording)
        return Embeddings(found.steps, found.clips @ self.rotation)

    def __call__(self, recording: Recording) -> Evidence:
        """Return their cosines."""
        found = self.embeddings(recording)
        return Evidence(cosine_similarity(found.steps, found.clips), None, "cosine")


def turned(turn: float, dimensions: int = 24) -> TrainingRun:
    """Return recordings of one procedure of seven steps in three threads, half of them to train on."""
    made = load(
        tasks=1, recordings=40, steps=(7, 7), threads=(3, 3), noise=1.0, dimensions=dimensions, step_seconds=5.0
    )
    drawn = np.random.default_rng(0).normal(size=(dimensions, dimensions))
    rotation, triangle = np.linalg.qr(np.eye(dimensions) + turn * (drawn - drawn.T) / np.sqrt(dimensions))
    dataset = replace(made, evidence=Turned(made.evidence, rotation * np.sign(np.diag(triangle))))
    return TrainingRun(dataset, dataset.splits[0], "expert", True)


def first_split(name: str, data: Path | None = None, **options: Any) -> TrainingRun:
    """Return the first split of a dataset."""
    dataset, source = with_graphs(with_splits(read_dataset(name, data, **options)), None)
    return TrainingRun(dataset, dataset.splits[0], source, True)


def row(title: str, run: TrainingRun, every: int, seeds: Sequence[int]) -> str:
    """Train with the paper's settings and with the defaults, and return a line of the table."""
    evaluation = run.evaluation("test")
    assert evaluation is not None

    def trained(name: str, seed: int) -> dict[str, float]:
        return evaluation(run.train(preset(name, every=every, seed=seed)).model())

    found = [[evaluation()], [trained("paper", seeds[0])], [trained("default", seed) for seed in seeds]]
    cells = [" / ".join(f"{100 * fmean(one[name] for one in some):.1f}" for name in ("acc", "iou")) for some in found]
    counts = ", ".join(str(len(part)) for part in (*run.parts, run.split.test))
    return f"| {title} | {counts} | " + " | ".join(cells) + " |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("data", type=Path, nargs="?")
    data: Path | None = asked.parse_args(arguments).data
    torch.set_num_threads(1)
    tried: list[tuple[str, Callable[[], TrainingRun], int, Sequence[int]]] = [
        ("synthetic, turned by a rotation", lambda: turned(2.0), 1, SEEDS),
        ("the same, turned less", lambda: turned(1.0), 1, SEEDS),
        (
            "synthetic, not turned, noise 2, one task",
            lambda: first_split("synthetic", tasks=1, recordings=24, dimensions=16, noise=2.0),
            1,
            SEEDS,
        ),
        ("synthetic, not turned, noise 3", lambda: first_split("synthetic"), 1, SEEDS),
        ("synthetic, not turned, noise 6", lambda: first_split("synthetic", noise=6.0), 1, SEEDS),
    ]
    if data is not None:
        for name, what in (("salads50", "SVM scores"), ("salads50_edtcn", "ED-TCN")):
            title = f"50 Salads, {what}, split 1 (`--every 3`, one seed)"
            tried.append((title, lambda folder=data / name: first_split("salads50", folder), 3, SEEDS[:1]))  # type: ignore[misc]
    print("| data | videos (train, validation, test) | features as given | paper | defaults |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for title, make, every, seeds in tried:
        print(row(title, make(), every, seeds), flush=True)


if __name__ == "__main__":
    main()
