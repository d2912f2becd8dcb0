"""Deviations from the procedure found in recordings whose deviations are known, under more and more noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from graph2vid import __version__
from graph2vid.datasets.captaincook4d import load
from graph2vid.datasets.dataset import Dataset, Recording
from graph2vid.errors import InputError
from graph2vid.evaluate import cells
from graph2vid.evaluate.metric_rows import without_nan
from graph2vid.evaluate.metrics import f1_of_counts
from graph2vid.evaluate.tables import Table, section_into_page
from graph2vid.grounding.order_check import LEAST_CERTAINTY, REPEAT, SKIP, find_deviations

NAME = "check"
NOISES = (0.5, 1.0, 1.5, 2.0, 3.0)
KINDS = ("skipped", "out of order")

_DISCOUNT = 1.25  # of the log-likelihoods of clips, since neighbours are alike
_LEAST_SHARE = 0.5  # of a step's time in which nothing else goes on, for it to be seen in a label per clip


@dataclass(frozen=True)
class Known:
    """What a recording is known to do.

    Attributes
    ----------
    judged : frozenset of int
        Steps of the procedure of which it is known whether and when they are done.
    deviations : dict of str to frozenset of int
        For each kind the steps concerned.
    is_clean : bool
        Whether it follows the procedure, and does nothing twice.
    """

    judged: frozenset[int]
    deviations: dict[str, frozenset[int]]
    is_clean: bool


@dataclass(frozen=True)
class CheckLevel:
    """What was found at one level of noise.

    Attributes
    ----------
    noise : float
    counts : dict of str to (int, int, int)
        For each kind how many steps are right, wrong and missed.
    false_alarms, alarmed : int
        Deviations of any kind in clean recordings, and clean recordings with any.
    """

    noise: float
    counts: dict[str, tuple[int, int, int]]
    false_alarms: int
    alarmed: int

    def f1(self, kind: str) -> float:
        """Return the F1 score of a kind, a share."""
        return f1_of_counts(*self.counts[kind])


@dataclass(frozen=True)
class CheckReport:
    """The figures.

    Attributes
    ----------
    levels : list of CheckLevel
    recordings, clean : int
        How many there are.
    known : dict of str to int
        How many steps deviate in each way.
    options : dict
        The prices.
    command : str
        What repeats this.
    seconds : float
    """

    levels: list[CheckLevel]
    recordings: int
    clean: int
    known: dict[str, int]
    options: dict[str, float]
    command: str
    seconds: float

    def headline(self) -> str:
        """Say what was judged."""
        return (
            f"Deviations from the procedure in {self.recordings} recordings of captaincook4d, simulated evidence: "
            f"{self.known['skipped']} steps are left out and {self.known['out of order']} done too late; "
            f"{self.clean} recordings follow the expert graph"
        )

    def missing(self) -> list[str]:
        """Return what could not be judged."""
        return []

    def tables(self) -> list[Table]:
        """Return the table of all levels of noise."""
        prices = ", ".join(f"{name} {value:g}" for name, value in self.options.items())
        return [
            Table(
                "Deviations found",
                f"Noise: its length where what is shown has length 1. p, r: precision and recall, in percent, over "
                f"steps. False alarms: deviations of any kind reported in the {self.clean} clean recordings, per "
                f"recording, and the share of them with any. Evidence: the log-likelihood ratio of cosines of a step "
                f"shown and of others, as the recording itself tells them, over {_DISCOUNT:g}; {prices}.",
                (
                    "noise",
                    *(f"{kind} {name}" for kind in KINDS for name in ("p", "r", "F1")),
                    "false alarms",
                    "with any",
                ),
                tuple(
                    (
                        f"{level.noise:g}",
                        *(cell for kind in KINDS for cell in _cells(level.counts[kind])),
                        f"{level.false_alarms / max(self.clean, 1):.2f}",
                        cells.percent(100 * level.alarmed / max(self.clean, 1)),
                    )
                    for level in self.levels
                ),
            )
        ]

    def to_json(self) -> dict[str, Any]:
        """Return everything as a JSON document; measures are shares, what is not defined is null."""
        document: dict[str, Any] = {
            "format": "graph2vid-check-evaluation",
            "version": 1,
            "graph2vid": __version__,
            "dataset": NAME,
            "command": self.command,
            "seconds": self.seconds,
            "recordings": self.recordings,
            "clean": self.clean,
            "known": self.known,
            "options": self.options,
            "noise": [
                {
                    "noise": level.noise,
                    **{
                        kind: dict(zip(("right", "wrong", "missed"), level.counts[kind], strict=True))
                        | {"f1": level.f1(kind)}
                        for kind in KINDS
                    },
                    "false_alarms": level.false_alarms,
                    "alarmed": level.alarmed,
                }
                for level in self.levels
            ],
        }
        plain: dict[str, Any] = without_nan(document)
        return plain

    def into_page(self, page: str) -> str:
        """Return a page of results with this section put in or replaced."""
        lines = [f"## {NAME}", "", f"    {self.command}", "", f"{self.headline()}.", ""]
        lines += [table.to_markdown() for table in self.tables()]
        return section_into_page(page, NAME, "\n".join(lines))


def judge_checks(
    data: str | Path,
    *,
    noises: Sequence[float] = NOISES,
    skip: float = SKIP,
    repeat: float = REPEAT,
    certainty: float = LEAST_CERTAINTY,
    seed: int = 0,
    command: str = "",
    progress: Callable[[str, int, int], None] | None = None,
) -> CheckReport:
    """Look for deviations in the recordings of CaptainCook4D at several levels of noise.

    Parameters
    ----------
    data : path
        As for :func:`graph2vid.datasets.captaincook4d.load`.
    noises : sequence of float
    skip, repeat, certainty
        As for :func:`graph2vid.grounding.check_order`.
    seed : int
        Of the simulation.
    command : str
    progress : callable, optional
        Called as (what is done, done, total).
    """
    if not noises:
        raise InputError("there is no level of noise to judge")
    started = perf_counter()
    options: dict[str, Any] = {"skip": float(skip), "repeat": float(repeat), "certainty": float(certainty)}
    levels: list[CheckLevel] = []
    known: list[Known] = []
    for noise in noises:
        dataset = load(data, noise=float(noise), seed=seed)
        known = [known_deviations(dataset, recording) for recording in dataset.recordings]
        counts = dict.fromkeys(KINDS, (0, 0, 0))
        false_alarms = alarmed = 0
        for done, (recording, truth) in enumerate(zip(dataset.recordings, known, strict=True), start=1):
            found = _found(dataset, recording, options)
            for kind in KINDS:
                guess, true = found.get(kind, set()) & truth.judged, truth.deviations[kind]
                new = (len(guess & true), len(guess - true), len(true - guess))
                counts[kind] = tuple(map(sum, zip(counts[kind], new, strict=True)))  # type: ignore[assignment]
            if truth.is_clean:
                number = sum(len(steps & truth.judged) for steps in found.values())
                false_alarms += number
                alarmed += number > 0
            if progress is not None:
                progress(f"noise {noise:g}", done, len(known))
        levels.append(CheckLevel(float(noise), counts, false_alarms, alarmed))
    return CheckReport(
        levels,
        len(known),
        sum(truth.is_clean for truth in known),
        {kind: sum(len(truth.deviations[kind]) for truth in known) for kind in KINDS},
        options,
        command,
        perf_counter() - started,
    )


def known_deviations(dataset: Dataset, recording: Recording) -> Known:
    """Say from the annotations how a recording deviates from the expert graph of its task.

    A step is done too late where one that must follow it began before. Not judged are steps that stand beside others
    for one step of the dataset, and steps that are done at the same time as others for most of their time, of which a
    label per clip cannot tell.
    """
    task = dataset.tasks[recording.task]
    flow = task.flows["expert"]
    begins: dict[int, float] = {}
    for row in recording.annotations:
        begins[row.step] = min(begins.get(row.step, row.start), row.start)
    node_of = {step: nodes[0] for step, nodes in enumerate(task.correspondence) if len(nodes) == 1}
    first = {node: begins[step] for step, node in node_of.items() if step in begins}
    late = {
        node
        for node, began in first.items()
        if any(flow.ancestors[other] >> node & 1 and first[other] < began for other in first)
    }
    skipped = set(node_of.values()) - first.keys()
    judged = {node for step, node in node_of.items() if step not in begins or _is_seen(recording, step)}
    shown = {node for step in begins for node in task.correspondence[step]}
    has_returns = len(recording.annotations) > len(begins)
    return Known(
        frozenset(judged),
        {"skipped": frozenset(skipped & judged), "out of order": frozenset(late & judged)},
        not (late or has_returns) and len(shown) == len(flow),
    )


def _is_seen(recording: Recording, step: int) -> bool:
    """Say whether no other step goes on for most of the time of a step that is done."""
    own = [(row.start, row.end) for row in recording.annotations if row.step == step]
    others = [(row.start, row.end) for row in recording.annotations if row.step != step]
    cuts = sorted({time for span in (*own, *others) for time in span})
    whole = alone = 0.0
    for start, end in pairwise(cuts):
        if any(first <= start and end <= last for first, last in own):
            whole += end - start
            alone += (end - start) * (not any(first <= start and end <= last for first, last in others))
    return alone >= _LEAST_SHARE * whole


def _found(dataset: Dataset, recording: Recording, options: dict[str, Any]) -> dict[str, set[int]]:
    """Return the steps that deviate in each way, as far as the evidence tells."""
    similarity = dataset.evidence(recording).similarity
    # Most clips show a step, and none of the others: two kinds of cosines, told apart by their log-likelihood ratio.
    low, high = np.median(similarity), np.median(similarity.max(axis=0))
    spread = np.sort(similarity, axis=0)[:-1].std()
    evidence = (similarity - (low + high) / 2) * (high - low) / (_DISCOUNT * spread**2)
    flow = dataset.tasks[recording.task].flows["expert"]
    found: dict[str, set[int]] = {}
    for one in find_deviations(flow, evidence, recording.clip_seconds, **options).deviations:
        found.setdefault(one.kind, set()).add(one.step)
    return found


def _cells(counts: tuple[int, int, int]) -> tuple[str, str, str]:
    right, wrong, missed = counts
    precision, recall = right / max(right + wrong, 1), right / max(right + missed, 1)
    return cells.percent(100 * precision), cells.percent(100 * recall), cells.percent(100 * f1_of_counts(*counts))
