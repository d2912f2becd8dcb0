"""Evaluation: true labels, metrics, how sure one can be of them, and experiments that report them."""

from __future__ import annotations

from graph2vid._deprecated import renamed_attributes
from graph2vid._evaluation_options import EvaluationOptions, ExperimentOptions
from graph2vid.evaluate.calibration import evaluate_calibration, fit_calibrator
from graph2vid.evaluate.check_experiment import evaluate_check
from graph2vid.evaluate.dataset_defaults import folds_of, linear_of
from graph2vid.evaluate.engine import Results, evaluate_dataset, in_folds
from graph2vid.evaluate.experiment import DatasetExperiment
from graph2vid.evaluate.intervals import Interval, bootstrap_interval, mean_over_videos, paired_interval
from graph2vid.evaluate.labels import labels_from_annotations, shared_classes, to_classes
from graph2vid.evaluate.method_runner import Progress
from graph2vid.evaluate.methods import MethodResult, Plan, Training, Video, instructions_in_order, true_labels
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
    segments,
    step_times,
)
from graph2vid.evaluate.mining_experiment import evaluate_mining
from graph2vid.evaluate.parsed import ParsedGraphs, with_parsed_graphs
from graph2vid.evaluate.parser import evaluate_parsers, score_entities
from graph2vid.evaluate.plots import check_plots
from graph2vid.evaluate.report import CUT_SHORT, Report, Table
from graph2vid.evaluate.segment_metrics import evaluate_segments

# Experiments and what they report.
__all__ = ["DatasetExperiment", "EvaluationOptions", "ExperimentOptions", "Progress", "Results", "evaluate_calibration"]
__all__ += ["evaluate_check", "evaluate_dataset", "evaluate_mining", "evaluate_parsers", "fit_calibrator"]
__all__ += ["score_entities"]
__all__ += ["CUT_SHORT", "Report", "Table", "check_plots"]
# What stands side by side: videos, methods, and what they learn from.
__all__ += ["MethodResult", "ParsedGraphs", "Plan", "Training", "Video", "folds_of", "in_folds"]
__all__ += ["instructions_in_order", "linear_of", "with_parsed_graphs"]
# Labels, metrics and intervals.
__all__ += ["labels_from_annotations", "segments", "shared_classes", "step_times", "to_classes", "true_labels"]
__all__ += [
    "acc",
    "acc_paper",
    "crosstask_recall",
    "edit",
    "evaluate_segments",
    "evaluate_video",
    "f1",
    "f1_counts",
    "f1_of_counts",
    "iou",
]
__all__ += ["iou_strict", "mof"]
__all__ += ["Interval", "bootstrap_interval", "mean_over_videos", "paired_interval"]

__getattr__ = renamed_attributes(__name__, runs="segments")
