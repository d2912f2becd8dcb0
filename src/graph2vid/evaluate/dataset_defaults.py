"""What holds for a dataset where the options of an evaluation leave it open."""

from __future__ import annotations

from graph2vid._evaluation_options import EvaluationOptions
from graph2vid.datasets import Dataset, Evidence
from graph2vid.errors import InputError
from graph2vid.evidence import PRESETS

TRAINED_ORDER = frozenset({"salads50", "framewise", "captaincook4d"})
"""Datasets that list their steps in no particular order: ``linear`` follows the training videos there."""

OWN_SPLITS = frozenset({"salads50", "framewise"})
"""Datasets whose own splits are the custom; of the others every video is tested, in folds."""

OPEN = frozenset({"framewise"})
"""Datasets whose tasks have classes in place of a procedure: those that training videos show are grounded."""

FOLDS = 5

_OFTEN_REPEATED = 0.2  # of the segments; where steps are repeated less, repeats are evaluated if asked for


def folds_of(options: EvaluationOptions, dataset: Dataset) -> int:
    """Return how many folds hold for a dataset; 0: its own splits."""
    if options.folds is not None:
        return options.folds
    return 0 if dataset.name in OWN_SPLITS and dataset.splits else FOLDS


def preset_of(options: EvaluationOptions, evidence: Evidence) -> str:
    """Return which preset holds for a video's evidence."""
    return options.preset or ("log_odds" if evidence.kind == "log_odds" else "paper")


def extended_of(options: EvaluationOptions, dataset: Dataset) -> tuple[str, ...]:
    """Return with which features of the extended model the graphs of a dataset are evaluated once more."""
    if options.extended is not None:
        return options.extended
    if dataset.name not in OPEN or not options.contiguous:
        return ()
    shown = sum(len(recording.annotations) for recording in dataset.recordings)
    repeated = shown - sum(len(recording.order) for recording in dataset.recordings)
    return ("durations", "durations+repeat") if repeated > _OFTEN_REPEATED * shown else ("durations",)


def tuned_for(options: EvaluationOptions, dataset: Dataset) -> tuple[str, ...]:
    """Return the metrics by which weights are chosen."""
    return options.tune_for or (("mof", "edit", "f1@50") if dataset.name in OPEN else ("acc", "iou_strict"))


def linear_of(options: EvaluationOptions, dataset: Dataset) -> str:
    """Return which linear order holds for a dataset."""
    if options.linear != "auto":
        return options.linear
    return "mean-position" if dataset.name in TRAINED_ORDER else "listed"


def check_preset(options: EvaluationOptions) -> None:
    """Refuse a preset that is not known."""
    if options.preset is not None and options.preset not in PRESETS:
        raise InputError(f"unknown preset {options.preset!r}; known: {', '.join(sorted(PRESETS))}")
