"""Evaluation: true labels, measures, and how sure one can be of them."""

from __future__ import annotations

from graph2vid.evaluate.intervals import Interval, bootstrap_interval, mean_over_videos, paired_interval
from graph2vid.evaluate.labels import labels_from_annotations, shared_classes, to_classes
from graph2vid.evaluate.metrics import (
    acc,
    acc_paper,
    crosstask_recall,
    edit,
    evaluate_video,
    f1,
    f1_counts,
    f1_of_counts,
    iou,
    iou_strict,
    mof,
    runs,
    step_times,
)

__all__ = [
    "Interval",
    "acc",
    "acc_paper",
    "bootstrap_interval",
    "crosstask_recall",
    "edit",
    "evaluate_video",
    "f1",
    "f1_counts",
    "f1_of_counts",
    "iou",
    "iou_strict",
    "labels_from_annotations",
    "mean_over_videos",
    "mof",
    "paired_interval",
    "runs",
    "shared_classes",
    "step_times",
    "to_classes",
]
