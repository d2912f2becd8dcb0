"""Every metric of segments in tables of pandas: predictions of any method against annotations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graph2vid._frames import data_frame, rows_of
from graph2vid._values import number_of
from graph2vid.errors import InputError
from graph2vid.evaluate.labels import labels_from_annotations
from graph2vid.evaluate.metrics import evaluate_video

if TYPE_CHECKING:
    from pandas import DataFrame


def evaluate_segments(
    predicted: DataFrame,
    true: DataFrame,
    *,
    clip_seconds: float = 1.0,
    durations: Mapping[str, float] | None = None,
) -> DataFrame:
    """Return every metric of each video.

    Parameters
    ----------
    predicted, true : pandas.DataFrame
        A row per segment: ``step`` (its name or number, the same in both), ``start`` and ``end`` in seconds, and
        ``video`` where there are several. Rows without times (a step that is not shown) are passed over.
    clip_seconds : float
        Metrics count clips of this length.
    durations : mapping of str to float, optional
        How long each video is, in seconds; by default up to its last segment in either table.

    Returns
    -------
    pandas.DataFrame
        A row per annotated video, its metrics as shares: see :func:`evaluate_video`. A video without predictions is
        all background.
    """
    if not 0 < clip_seconds < math.inf:
        raise InputError(f"clip_seconds must be a finite number above 0, not {clip_seconds!r}")
    steps: dict[Any, int] = {}
    guessed, there = _by_video(predicted, "the table of predictions", steps), _by_video(true, "the true table", steps)
    if unknown := [video for video in guessed if video not in there]:
        raise InputError(f"video {unknown[0]!r} has predictions and no annotations")
    rows = []
    for video, segments in there.items():
        found = guessed.get(video, [])
        last = max(end for _, _, end in (*segments, *found))
        clips = math.ceil((durations or {}).get(video, last) / clip_seconds - 1e-9)
        labels, truth = (labels_from_annotations(one, clips, clip_seconds) for one in (found, segments))
        rows.append({"video": video, **evaluate_video(labels, truth)})
    return data_frame(rows)


def _by_video(frame: DataFrame, what: str, steps: dict[Any, int]) -> dict[str, list[tuple[int, float, float]]]:
    found: dict[str, list[tuple[int, float, float]]] = {}
    for number, row in enumerate(rows_of(frame, ("step", "start", "end"), what)):
        if row["start"] is None and row["end"] is None:
            continue
        start, end = (number_of(row[name], f"{what}, row {number}, {name}") for name in ("start", "end"))
        step = steps.setdefault(row["step"], len(steps))
        found.setdefault(str(row.get("video", "")), []).append((step, start, end))
    if not found and what == "the true table":
        raise InputError("the true table has no segments: there is nothing to compare with")
    return found
