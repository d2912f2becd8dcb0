"""Training clip features from procedures: a residual MLP under the losses of :mod:`graph2vid.learn.losses`."""

from __future__ import annotations

from graph2vid._training_options import TrainingOptions
from graph2vid.learn.features.checkpoint import State
from graph2vid.learn.features.loop import Report
from graph2vid.learn.features.objective import preset
from graph2vid.learn.features.objective_comparison import evaluate_training
from graph2vid.learn.features.processes import Processes, processes
from graph2vid.learn.features.training_run import FeatureEvaluation, TrainingRun, with_graphs, with_splits
from graph2vid.learn.features.use import TrainedFeatures, load_features

__all__ = ["FeatureEvaluation", "Processes", "Report", "State", "TrainedFeatures", "TrainingOptions", "TrainingRun"]
__all__ += ["evaluate_training", "load_features", "preset", "processes", "with_graphs", "with_splits"]
