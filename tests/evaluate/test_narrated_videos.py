"""Transcripts of real videos, weighed against background, ground better than plain cosines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graph2vid.datasets import Dataset, crosstask, youcook2
from graph2vid.evaluate import EvaluationOptions, evaluate_dataset
from layouts import real_data

pytest.importorskip("wordllama", reason="needs graph2vid[text]")


def some(dataset: Dataset, every: int) -> Dataset:
    return replace(dataset, recordings=dataset.recordings[::every], splits=())


@pytest.mark.parametrize(
    ("load", "folder", "every", "methods", "gain"),
    [
        (crosstask.load, "crosstask_narrated", 9, ["linear", "graph:manual"], 2.0),
        (youcook2.load, "youcook2_narrated", 5, ["linear"], 4.0),
    ],
)
def test_weighed_beats_plain(load, folder, every, methods, gain) -> None:  # type: ignore[no-untyped-def]
    data = real_data(folder)
    found = {
        narration: evaluate_dataset(
            some(load(data, narration=narration), every), methods, EvaluationOptions(folds=0), workers=1
        )
        for narration in ("plain", "weighed")
    }
    for method in methods:
        for metric in ("iou", "iou_strict"):
            plain, weighed = (
                100 * np.nanmean([row[metric] for row in results.methods[method].metrics.values()])
                for results in found.values()
            )
            assert weighed > plain + gain, (method, metric, plain, weighed)
