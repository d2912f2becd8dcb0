"""Why features collapse on narrated videos: ``python benchmarks/collapse_experiment.py DATA`` (DATA holds CrossTask).

Features are trained on the first of three folds of the narrated CrossTask videos with the paper's settings, then with
one setting at a time changed to the default, and with the defaults of this dataset, one setting at a time changed to
the paper's. Prints the tables of docs/appendix/training.md, "Collapse, setting by setting". *One step* is the share of
a test video's clips that resemble the same step most: 100% is collapse.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

from graph2vid.datasets import read_dataset
from graph2vid.evaluate import EvaluationOptions
from graph2vid.evidence import cosine_similarity
from graph2vid.learn.features import TrainingOptions, TrainingRun, preset, with_graphs, with_splits
from graph2vid.learn.features.objective_comparison import REGIMES
from graph2vid.learn.features.residual_mlp import ResidualMLP

REGIME = REGIMES["crosstask"]
PAPER = preset("paper", every=REGIME.options.every)
SETTINGS: dict[str, tuple[str, ...]] = {
    "match cost": ("match",),
    "soft minimum": ("smoothing", "gamma"),
    "contiguous": ("contiguous",),
    "drop level": ("drop",),
    "pool_temperature": ("pool_temperature",),
    "epochs": ("epochs",),
}
FURTHER: dict[str, dict[str, Any]] = {
    "match raw": {"match": "raw"},
    "match likelihood_bg": {"match": "likelihood_bg"},
    "drop percentile:10": {"drop": "percentile:10"},
    "drop percentile:70": {"drop": "percentile:70"},
    "no clustering loss": {"clustering": 0.0},
    "clustering loss × 10": {"clustering": 10.0},
    "clustering loss × 100": {"clustering": 100.0},
    "temperature 0.3": {"temperature": 0.3},
    "temperature 1": {"temperature": 1.0},
    "objective linear": {"objective": "linear"},
    "objective true-order": {"objective": "true-order"},
    "clustering loss alone": {"objective": "bag"},
    "learning rate 1e-5": {"rate": 1e-5},
}


def first_fold(data: Path) -> TrainingRun:
    """Return the first of three folds, with graphs mined from its training videos."""
    dataset, source = with_graphs(with_splits(read_dataset("crosstask", data), REGIME.folds), REGIME.graph)
    return TrainingRun(dataset, dataset.splits[0], source, False, EvaluationOptions(tolerance=REGIME.tolerance))


def one_step(run: TrainingRun, mlp: ResidualMLP | None) -> float:
    """Return the share of the clips whose nearest step is the most common one, mean over the test videos."""
    evaluation = run.evaluation("test")
    assert evaluation is not None
    shares = []
    for _, vectors in evaluation.found:
        clips = vectors.clips if mlp is None else mlp.transform(vectors.clips)
        nearest = cosine_similarity(vectors.steps, clips).argmax(axis=0)
        shares.append(np.bincount(nearest).max() / len(nearest))
    return fmean(shares)


def row(title: str, run: TrainingRun, options: TrainingOptions | None) -> str:
    """Train, unless without options, and return a line of the table."""
    evaluation = run.evaluation("test")
    assert evaluation is not None
    mlp = None if options is None else run.train(options).model()
    found = evaluation(mlp)
    cells = [100 * found["acc"], 100 * found["iou"], 100 * one_step(run, mlp)]
    return f"| {title} | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |"


def rows(start: TrainingOptions, end: TrainingOptions) -> Iterable[tuple[str, TrainingOptions]]:
    """Yield settings that are those of ``start`` but for one group of options, which are those of ``end``."""
    for title, names in SETTINGS.items():
        changed = {name: getattr(end, name) for name in names if getattr(start, name) != getattr(end, name)}
        if changed:
            yield f"{title}: {', '.join(map(str, changed.values()))}", replace(start, **changed)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("data", type=Path)
    torch.set_num_threads(1)
    run = first_fold(asked.parse_args(arguments).data)
    ours = replace(REGIME.options)
    tables: list[list[tuple[str, TrainingOptions | None]]] = [
        [("features as given", None), ("the paper's settings", PAPER), *rows(PAPER, ours)],
        [("the defaults", ours), *rows(ours, PAPER)],
        [(title, replace(PAPER, **changed)) for title, changed in FURTHER.items()],
    ]
    for table in tables:
        print("\n| settings | acc | iou | one step |\n| --- | ---: | ---: | ---: |")
        for title, options in table:
            print(row(title, run, options), flush=True)


if __name__ == "__main__":
    main()
