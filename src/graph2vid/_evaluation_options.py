"""The options of experiments: of ``graph2vid evaluate`` and of :mod:`graph2vid.evaluate`.

They stand apart from the package that they belong to, so that the command line knows them without importing it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph2vid._deprecated import warn_renamed
from graph2vid._options import Options, basic_option, option
from graph2vid.errors import InputError

METRICS = ("acc", "iou", "iou_strict", "acc_paper", "mof", "edit", "f1@10", "f1@25", "f1@50", "recall")
METHODS = ("argmax", "argmax+background", "bag", "linear", "written", "graph", "true-order", "true-order-repeats")
FEATURES = ("skip", "repeat", "durations", "precedence", "share", "temperature")
"""Of the extended model, with costs learnt from training videos."""

TOGETHER = ("skip+repeat+durations", "skip+durations+precedence", "skip+repeat+durations+precedence+share")
MAX_MARGINAL = "max-marginal"
"""Not a feature of the alignment, but max-marginal decoding: the most probable label of each clip."""

PROTOCOLS: dict[str, dict[str, Any]] = {
    "paper": {"preset": "paper", "contiguous": False, "parsers": ("auto", "rules", "learned")},
    "released": {"preset": "released", "contiguous": True},
}
"""Options of an evaluation that a protocol sets, where nothing else is said."""

PROTOCOL_READING = {"descriptions": "instructions", "narration": "plain"}
"""Options of readers that both set, of those readers that have them."""

DEFAULT_LIMIT = 2**18
"""Ideals up to which a procedure is grounded exactly: those of a bag of 18 steps."""

CHECK_NOISES = (0.5, 1.0, 1.5, 2.0, 3.0)
PARSERS_BY_DEFAULT = ("auto", "rules", "learned", "linear", "bag")

_MINED = "Mined graphs"
_EXTENDED = "Extended model"


@dataclass(frozen=True)
class EvaluationOptions(Options, panel="Costs and alignment"):
    """How videos are evaluated; the same for every method."""

    preset: str | None = option(
        None, "Match and drop policies: paper, released or log_odds; by default log_odds for narration, else paper."
    )
    temperature: float | None = option(
        None, "Divides similarities; by default the preset's, else 1 for scores and 0.1 for cosines.", above=0.0
    )
    drop: str | None = option(
        None,
        "A drop policy in place of the preset's; prototype and relative take scores of background, if there are any.",
        metavar="POLICY[:N]",
    )
    skip: str | None = option(
        None,
        "Let steps be skipped at this cost (percentile, constant:3, …; constant:inf: none). By default as narration "
        "says, else every step must appear.",
        metavar="POLICY[:N]",
    )
    contiguous: bool = option(
        True,
        "Each step is one unbroken segment.",
        off="Let background lie inside a step; by default a step is one unbroken segment.",
    )
    linear: str = option(
        "auto",
        "The order of the linear procedure: listed, mean-position (in the training split), or auto: mean-position for "
        "the datasets that list their steps in no particular order.",
        metavar="ORDER",
    )
    min_support: int = option(5, "Videos that must show both steps of an edge.", panel=_MINED, least=1)
    tolerance: float = option(0.0, "The share of them that may violate it.", panel=_MINED, least=0.0, most=0.5)
    folds: int | None = option(
        None,
        "Deal each task's videos into so many folds for what is learnt; 0: its own splits. By default the own splits "
        "of salads50 and framewise, else 5.",
        panel="Data",
        basic=True,
        least=0,
    )
    limit: int = option(
        DEFAULT_LIMIT,
        "Legal sets of done steps up to which a procedure is grounded exactly; others are left out.",
        least=1,
    )
    drop_unmapped: bool = option(
        False, "Remove steps of a procedure that no step of the dataset stands for.", panel="Data"
    )
    extended: tuple[str, ...] | None = option(
        None,
        "Evaluate the graphs once more with each of these, their costs learnt from the training videos: skip, repeat, "
        "durations, precedence, share (of the time), temperature, several joined by +, or all; +max-marginal: the most "
        "probable label of each clip. By default durations for framewise, and durations+repeat where steps are often "
        "repeated; else none.",
        panel=_EXTENDED,
        metavar="FEATURE,…",
    )
    adapt: tuple[str, ...] = basic_option(
        (),
        "Evaluate the graphs once more with task models: none, unlabelled (learnt from the training videos without "
        "labels), N (with the labels of N of them, the mean of three draws), all (with all labels); several with "
        "commas between them.",
        panel="Methods",
        metavar="none|unlabelled|N|all,…",
    )
    tune_for: tuple[str, ...] | None = option(
        None,
        "The metrics by whose mean the weights of these costs are chosen, on training videos alone; by default "
        "mof,edit,f1@50 for framewise, else acc,iou_strict.",
        panel=_EXTENDED,
        metavar="METRIC,…",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.folds == 1:
            raise InputError("the number of folds is 0 (the dataset's own splits) or at least 2, not 1")
        if self.linear not in ("auto", "listed", "mean-position"):
            raise InputError(f"the linear order is auto, listed or mean-position, not {self.linear!r}")
        if self.extended is not None:
            object.__setattr__(self, "extended", _features(self.extended))
        object.__setattr__(self, "adapt", _amounts(self.adapt))
        if self.tune_for is not None:
            _refuse_unknown(self.tune_for, "metric", METRICS)
        if not self.contiguous and (asked := [one for one in self.extended or () if MAX_MARGINAL in one.split("+")]):
            raise InputError(f"max-marginal decoding ({asked[0]}) is of contiguous alignments: leave one of them out")


@dataclass(frozen=True)
class ExperimentOptions(EvaluationOptions, panel="Costs and alignment"):
    """What is evaluated on a dataset, and how."""

    protocol: str | None = basic_option(
        None,
        "paper: the setting of the paper's tables (how-to instructions as steps, plain similarities, preset paper, "
        "every step required, background allowed inside a step, graphs of all parsers); released: that of its code "
        "(preset released). What is stated beside it holds in its place.",
        panel="Methods",
        metavar="NAME",
    )
    methods: tuple[str, ...] | None = basic_option(
        None,
        "argmax, argmax+background, bag, linear, written, graph (all of them) or graph:SOURCE, true-order, "
        "true-order-repeats; all that the dataset has something for by default.",
        panel="Methods",
        metavar="NAME,…",
    )
    parsers: tuple[str, ...] | None = basic_option(
        None,
        "Parsers whose graphs are grounded beside the given ones: of the text of a task, or else of its steps. By "
        "default auto,rules,learned where tasks come with a text; none: no parser's.",
        panel="Methods",
        metavar="NAME,…",
    )
    noise: Any = basic_option(
        None,
        "Levels of noise of simulated evidence; the tables are about the middle one, the curve about all.",
        panel="Data",
        metavar="N,…",
    )
    skip_bad: bool = basic_option(
        False, "Pass over videos and files that cannot be used; list them at the end.", panel="Data"
    )
    compare_graphs: str | None = basic_option(
        None, "Compare the graphs of this task, edge by edge.", panel="Methods", metavar="TASK"
    )
    video: tuple[str, ...] = option(
        (), "Draw this video (repeatable); by default a typical one.", panel="Output", metavar="ID"
    )
    workers: int | None = basic_option(
        None, "Processes and threads; all processors by default.", panel="Options", least=1
    )
    option: tuple[str, ...] = basic_option(
        (), "An option of the dataset's reader (repeatable).", panel="Data", metavar="NAME=VALUE", short="-o"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.protocol not in (None, *PROTOCOLS):
            raise InputError(f"the protocol is {' or '.join(PROTOCOLS)}, not {self.protocol!r}")
        for name in self.methods or ():
            if name not in METHODS and not name.startswith("graph:"):
                raise InputError(f"there is no method {name!r}; there are: {', '.join(METHODS)}, graph:SOURCE")
        object.__setattr__(self, "parsers", None if self.parsers is None else _parsers(self.parsers))
        object.__setattr__(self, "noise", _numbers(self.noise, "--noise"))


@dataclass(frozen=True)
class ParserOptions(Options, panel="Data"):
    """What parsers are evaluated on."""

    split: str = basic_option("dev", "The split of the corpus.")
    parsers: tuple[str, ...] = basic_option(
        PARSERS_BY_DEFAULT,
        "The parsers; auto,rules,learned,linear,bag by default. What cannot work here is listed with the reason.",
        metavar="NAME,…",
    )
    crosstask: Path | None = basic_option(
        None,
        "CrossTask with its procedures; by default crosstask_release beside the corpus, if it is there.",
        metavar="DIR",
    )
    captaincook4d: Path | None = basic_option(
        None, "CaptainCook4D; by default the folder of that name beside the corpus, if it is there.", metavar="DIR"
    )
    wikihow_fg: Path | None = basic_option(
        None, "wikiHow articles with flow graphs; by default wikihow_fg beside the corpus, if there.", metavar="DIR"
    )
    asynchow: Path | None = basic_option(
        None, "Tasks with partial orders; by default asynchow beside the corpus, if it is there.", metavar="DIR"
    )
    weights: Path | None = basic_option(None, "Of the learned parser; by default those that come with graph2vid.")
    model: str | None = basic_option(None, "The spaCy model of the rules.")
    cross_validate: int | None = basic_option(
        None,
        "Instead of this: train the learned parser in K folds over all annotated recipes, and evaluate it on the rest. "
        "Takes a GPU, or hours.",
        least=2,
        metavar="K",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "parsers", _parsers(self.parsers))
        if not self.parsers:
            raise InputError("--parsers names no parser to evaluate")


@dataclass(frozen=True)
class MiningOptions(Options, panel="Mining"):
    """How graphs are mined."""

    recordings: str = basic_option(
        "error-free",
        "error-free, plain (without skipped steps and order errors) or all.",
        choices=("error-free", "plain", "all"),
    )
    min_support: int = basic_option(2, "graph:mined: recordings that must show both steps of an edge.", least=1)
    tolerance: float = basic_option(0.0, "graph:mined: the share of them that may violate it.", least=0.0, most=0.5)


@dataclass(frozen=True)
class CalibrationOptions(Options, panel="Calibration"):
    """What confidences are evaluated on."""

    datasets: tuple[str, ...] = option(
        (), "By the names of their folders; by default those that are in the folder.", metavar="NAME,…", basic=True
    )
    cross_validate: bool = option(
        False, "Fit calibrators on the other tasks (or splits) for each, and evaluate those.", basic=True
    )
    calibration: Path | None = option(
        None, "A calibrator, in place of the one that comes with graph2vid.", metavar="FILE", basic=True
    )
    method: str | None = option(
        None, "linear, bag or a graph; by default linear, and graph:mined with given scores.", basic=True
    )
    gammas: Any = option(None, "Of the release before; no longer used.", metavar="N,…")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "gammas", _numbers(self.gammas, "--gammas"))


@dataclass(frozen=True)
class CalibrationTrainingOptions(Options, panel="Calibration"):
    """What a calibrator is fitted on."""

    datasets: tuple[str, ...] = option(
        (), "By the names of their folders; by default those that are in the folder.", metavar="NAME,…", basic=True
    )
    methods: tuple[str, ...] = option(
        ("linear", "graph:auto"),
        "What captioned videos are grounded with; videos with given scores are with graph:mined.",
        metavar="NAME,…",
        basic=True,
    )
    l2: float = option(10.0, "Holds the weights down, in units of segments.", above=0.0)


@dataclass(frozen=True)
class CheckOptions(Options, panel="Check"):
    """How deviations from the procedure are looked for; see ``graph2vid check``."""

    noise: Any = basic_option(
        None, "Levels of noise of the simulated evidence; 0.5,1,1.5,2,3 by default.", metavar="N,…"
    )
    skip: float = basic_option(0.0, "Cost of skipping a step.")
    repeat: float = basic_option(6.0, "Cost of repeating a step.")
    certainty: float = basic_option(0.9, "How certain a deviation must be to be reported.", least=0.0, most=1.0)
    seed: int = basic_option(0, "Of the simulation.", least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "noise", _numbers(self.noise, "--noise", CHECK_NOISES))


@dataclass(frozen=True)
class ComparisonOptions(Options, panel="Training"):
    """How objectives of training are compared."""

    datasets: tuple[str, ...] = basic_option(
        (), "crosstask, salads50; by default those that are in the folder.", metavar="NAME,…"
    )
    seeds: int = basic_option(3, "How often features are trained with each objective.", least=1)
    epochs: int | None = option(None, "In place of the usual number of epochs.", basic=True, least=0)
    graphs: tuple[str, ...] = basic_option(
        (),
        "Where the flow graphs come from: mined, manual, or a parser (auto, rules, learned); one comparison for each. "
        "By default mined.",
        metavar="SOURCE,…",
    )


@dataclass(frozen=True)
class ReportOptions(Options, panel="Output"):
    """Where results go, as soon as they are ready."""

    json: Path | None = basic_option(None, "Write everything as JSON.")
    markdown: Path | None = basic_option(None, "Write the tables into this page; sections of other experiments stay.")


@dataclass(frozen=True)
class PlotOptions(ReportOptions, panel="Output"):
    """Where results and pictures go."""

    plots: Path | None = basic_option(None, "Draw pictures into this folder (PNG).", metavar="DIR")


def _refuse_unknown(names: Iterable[str], what: str, known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"there is no {what} {name!r}; there are: {', '.join(known)}")


def _features(given: Iterable[str]) -> tuple[str, ...]:
    """Return features of the extended model, several together joined by ``+``; ``all``: each, and then together."""
    named: list[str] = []
    for part in given:
        if "likeliest" in part:
            warn_renamed("the feature 'likeliest'", repr(MAX_MARGINAL))
            part = part.replace("likeliest", MAX_MARGINAL)
        named += [*FEATURES, *TOGETHER] if part == "all" else [part] if part != "none" else []
    for name in named:
        _refuse_unknown(name.split("+"), "feature", (*FEATURES, MAX_MARGINAL))
    return tuple(dict.fromkeys(named))


def _amounts(given: Iterable[str]) -> tuple[str, ...]:
    """Return how much task models learn from: none, unlabelled, numbers of labelled videos, all."""
    names = [name.strip() for part in given for name in part.split(",")]
    for name in names:
        if name not in ("none", "unlabelled", "all") and not (name.isdecimal() and 0 < int(name) < 10**6):
            raise InputError(f"--adapt is none, unlabelled, a number of labelled videos, or all, not {name!r}")
    return tuple(dict.fromkeys(names))


def _parsers(given: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in given if name != "none")


def _numbers(given: Any, flag: str, default: tuple[float, ...] = ()) -> tuple[float, ...]:
    """Return numbers from 0 on that may have commas between them."""
    with suppress(ValueError, TypeError):
        parts = default if given is None else given.split(",") if isinstance(given, str) else given
        found = tuple(float(part) for part in parts)
        if all(0 <= number < math.inf for number in found):
            return found
    raise InputError(f"{flag} must be numbers from 0 with commas between them (0.5,1,2), not {given!r}")
