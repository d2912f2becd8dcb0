"""The options of training features: of ``graph2vid train features`` and of :mod:`graph2vid.learn.features`."""

from __future__ import annotations

from dataclasses import dataclass

from graph2vid._options import Options, basic_option, option
from graph2vid.errors import InputError

OBJECTIVES = ("bag", "linear", "graph", "true-order")
"""What is learnt from: the steps alone, in one order, in the orders of a flow graph, or in that of each video."""

MATCHES = ("balanced", "likelihood", "likelihood_bg", "raw")

_LOSS = "Loss"


@dataclass(frozen=True)
class TrainingOptions(Options, panel="Training"):
    """How to train; the defaults were chosen on several datasets (docs, "Learning")."""

    objective: str = basic_option(
        "graph",
        "What is learnt from: bag, linear, graph or true-order; each with the clustering loss, all but bag with the "
        "soft cost of grounding.",
        choices=OBJECTIVES,
    )
    epochs: int = basic_option(30, "How often every video is seen at most.", least=0)
    batch: int = basic_option(16, "Videos at once, of all processes together.", least=1)
    rate: float = basic_option(3e-3, "The learning rate of Adam.", above=0.0, short="--lr")
    weight_decay: float = option(1e-4, "Of Adam.", least=0.0)
    gamma: float = option(0.3, "Temperature of the soft minimum over alignments.", above=0.0, panel=_LOSS)
    smoothing: str = option("softmin", "softmin or smoothmin.", choices=("softmin", "smoothmin"), panel=_LOSS)
    contiguous: bool = option(
        True,
        "While training, each step is one unbroken segment.",
        off="While training, let background lie inside a step; by default a step is one unbroken segment.",
        panel=_LOSS,
    )
    match: str = option(
        "balanced",
        "Match costs: balanced, likelihood (the paper's; features may collapse onto one step), likelihood_bg or raw.",
        choices=MATCHES,
        panel=_LOSS,
    )
    drop: str = option(
        "percentile:30",
        "Cost of background: percentile:N of the match costs, a number, or prototype:N: an embedding of background "
        "is learnt beside the features, and used with them.",
        metavar="COST",
        panel=_LOSS,
    )
    temperature: float | None = option(
        None, "Divides similarities; by default 0.1 for cosines and 1 for scores.", above=0.0, panel=_LOSS
    )
    pool_temperature: float = option(1.0, "Of the clustering loss.", above=0.0, panel=_LOSS)
    clustering: float = option(1.0, "The weight of the clustering loss.", least=0.0, panel=_LOSS)
    hidden: int | None = option(None, "Width of the hidden layer; by default that of the features.", least=1)
    every: int = option(1, "Train on every N-th clip, each time with another one first.", least=1)
    patience: int = option(
        3,
        "Stop after so many epochs in which neither the training loss fell nor the validation was better; 0: never.",
        least=0,
    )
    seed: int = basic_option(0, "Another seed gives other features, the same seed the same.", least=0, most=2**53)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.objective == "bag" and not self.clustering:
            raise InputError("the bag of steps has the clustering loss alone: its weight cannot be 0")


@dataclass(frozen=True)
class TrainingDataOptions(Options, panel="Data"):
    """What features are trained and tested on."""

    split: str | None = basic_option(None, "Whose training videos train and test videos test; by default the first.")
    folds: int | None = option(None, "Deal the videos into so many folds for splits; 0: the dataset's own.", least=0)
    graph: str | None = basic_option(
        None, "Flow graphs: expert, manual, mined, rules, …; by default the best known.", metavar="SOURCE"
    )
    tolerance: float = option(
        0.0, "Mined graphs: the share of the videos that may violate an edge.", least=0.0, most=0.5
    )
    validate: bool = basic_option(
        True,
        "Keep one of eight training videos, and choose the best epoch by their labels.",
        off="Keep no videos to choose the best epoch by their labels: the last epoch counts. By default one of eight "
        "training videos is kept.",
    )
    skip_bad: bool = basic_option(False, "Pass over what cannot be used.")
    option: tuple[str, ...] = basic_option((), "An option of the dataset's reader (repeatable).", metavar="NAME=VALUE")
