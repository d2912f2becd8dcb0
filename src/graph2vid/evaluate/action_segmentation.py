"""Metrics as papers on action segmentation print them: pooled over the videos of a split, then the mean of the splits.

Acc (also called MoF) is the share of all frames that are right, F1@k of the segments of all videos of a split together;
edit is a mean over videos. Segments of the class "background" are left out; background of another name (SIL) counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graph2vid.evaluate import report as cells
from graph2vid.evaluate.engine import Results
from graph2vid.evaluate.intervals import defined_mean
from graph2vid.evaluate.methods import MethodResult
from graph2vid.evaluate.metrics import OVERLAPS, f1_of_counts
from graph2vid.evaluate.report import Table

PRINTED = ("acc", "edit", *(f"f1@{round(100 * overlap)}" for overlap in OVERLAPS))
NOTE = (
    "Acc is over all frames, F1 over all segments of a split together, edit a mean over videos; then the mean of the "
    "splits, as papers on action segmentation print them. In percent."
)


def pooled_rows(results: Results) -> list[dict[str, Any]]:
    """Return one row per method, in percent: ``method`` and :data:`PRINTED`."""
    splits: dict[str, list[int]] = {}
    for at, video in enumerate(results.videos):
        splits.setdefault("" if video.split is None else video.split.name, []).append(at)
    rows = []
    for method in results.methods.values():
        of_splits = [_of_split(method, [at for at in videos if at in method.metrics]) for videos in splits.values()]
        means = {name: 100 * defined_mean([found[name] for found in of_splits if found]) for name in PRINTED}
        rows.append({"method": method.name, **means})
    return rows


def _of_split(method: MethodResult, videos: list[int]) -> Mapping[str, float]:
    found = [method.metrics[at] for at in videos]
    if not found:
        return {}
    frames = np.array([one["frames"] for one in found])
    counts = {
        name: [int(sum(one[f"{kind} {name}"] for one in found)) for kind in ("right", "wrong", "missed")]
        for name in PRINTED[2:]
    }
    return {
        "acc": float(np.dot(frames, [one["mof"] for one in found]) / frames.sum()),
        "edit": defined_mean([one["edit"] for one in found]),
        **{name: f1_of_counts(*three) for name, three in counts.items()},
    }


def pooled_table(rows: list[dict[str, Any]]) -> Table:
    """Return the rows of :func:`pooled_rows` as a table."""
    found = [(row["method"], *(cells.percent(row[name]) for name in PRINTED)) for row in rows]
    return Table("As papers on action segmentation print them", NOTE, ("method", *PRINTED), found)
