"""Deviations from the procedure found in recordings whose deviations are known, under more and more noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from graph2vid._evaluation_options import CheckOptions
from graph2vid.datasets import Dataset, Recording, captaincook4d
from graph2vid.errors import InputError
from graph2vid.evaluate import report as cells
from graph2vid.evaluate.counts import Counts, compare
from graph2vid.evaluate.method_runner import Progress
from graph2vid.evaluate.report import Report, Table
from graph2vid.grounding import find_deviations, smallest_cover

KINDS = ("skipped", "out of order")

_DISCOUNT = 1.25  # of the log-likelihoods of clips, since neighbours are alike
_LEAST_SHARE = 0.5  # of a step's time in which nothing else goes on, for it to be seen in a label per clip


@dataclass(frozen=True)
class Known:
    """What a recording is known to do.

    Attributes
    ----------
    steps : frozenset of int
        Steps of the procedure of which it is known whether and when they are done.
    deviations : dict of str to frozenset of int
        For each kind the steps concerned.
    is_clean : bool
        Whether it follows the procedure, and does nothing twice.
    """

    steps: frozenset[int]
    deviations: dict[str, frozenset[int]]
    is_clean: bool


@dataclass
class CheckLevel:
    """What was found at one level of noise.

    Attributes
    ----------
    noise : float
    counts : dict of str to Counts
        For each kind the steps that deviate.
    false_alarms, alarmed : int
        Deviations of any kind in clean recordings, and clean recordings with any.
    """

    noise: float
    counts: dict[str, Counts] = field(default_factory=lambda: dict.fromkeys(KINDS, Counts()))
    false_alarms: int = 0
    alarmed: int = 0

    def add(self, found: Mapping[str, set[int]], known: Known) -> None:
        """Compare what was found in a recording with what is known of it."""
        for kind in KINDS:
            self.counts[kind] += compare(found.get(kind, set()) & known.steps, known.deviations[kind])
        if known.is_clean:
            number = sum(len(steps & known.steps) for steps in found.values())
            self.false_alarms += number
            self.alarmed += number > 0

    def to_json(self) -> dict[str, Any]:
        """Return counts and F1 scores, shares."""
        of_kind = {
            kind: {"right": one.right, "wrong": one.predicted - one.right, "missed": one.gold - one.right, "f1": one.f1}
            for kind, one in self.counts.items()
        }
        return {"noise": self.noise, **of_kind, "false_alarms": self.false_alarms, "alarmed": self.alarmed}

    def cells(self, clean: int) -> tuple[str, ...]:
        """Return a row of the table; precision and recall are 0 where there is nothing."""
        scores: list[float] = []
        for one in self.counts.values():
            scores += [one.right / max(one.predicted, 1), one.right / max(one.gold, 1), one.f1]
        alarms = f"{self.false_alarms / max(clean, 1):.2f}"
        shares = (cells.percent(100 * share) for share in (*scores, self.alarmed / max(clean, 1)))
        *shown, alarmed = shares
        return f"{self.noise:g}", *shown, alarms, alarmed


def evaluate_check(
    data: str | Path, options: CheckOptions | None = None, progress: Progress | None = None
) -> Iterator[Report]:
    """Look for deviations in the recordings of CaptainCook4D; yield the report after each level of noise.

    Parameters
    ----------
    data : path
        As for :func:`graph2vid.datasets.captaincook4d.load`.
    options : CheckOptions, optional
        As for :func:`graph2vid.grounding.check_order`; the seed is that of the simulation.
    progress : callable, optional
        Called as (what is done, done, total).
    """
    options = options or CheckOptions()
    if not options.noise:
        raise InputError("there is no level of noise to evaluate")
    chosen = {name: getattr(options, name) for name in ("skip", "repeat", "certainty")}
    report = Report("check", format="graph2vid-check-evaluation")
    levels: list[CheckLevel] = []
    for noise in options.noise:
        dataset = captaincook4d.load(data, noise=noise, seed=options.seed)
        known = [known_deviations(dataset, recording) for recording in dataset.recordings]
        levels.append(CheckLevel(noise))
        for done, (recording, truth) in enumerate(zip(dataset.recordings, known, strict=True), start=1):
            levels[-1].add(_found(dataset, recording, chosen), truth)
            if progress is not None:
                progress(f"noise {noise:g}", done, len(known))
        clean = sum(truth.is_clean for truth in known)
        steps = {kind: sum(len(truth.deviations[kind]) for truth in known) for kind in KINDS}
        report.headline = (
            f"Deviations from the procedure in {len(known)} recordings of captaincook4d, simulated evidence: "
            f"{steps['skipped']} steps are skipped and {steps['out of order']} done out of order; "
            f"{clean} recordings follow the expert graph"
        )
        report.is_complete = len(levels) == len(options.noise)
        costs = ", ".join(f"{name} {value:g}" for name, value in chosen.items())
        scores = [f"{kind} {name}" for kind in KINDS for name in ("p", "r", "F1")]
        report.tables = [
            Table(
                "Deviations found",
                f"Noise: its length where what is shown has length 1. p, r: precision and recall, in percent, over "
                f"steps. False alarms: deviations of any kind reported in the {clean} clean recordings, per recording, "
                f"and the share of them with any. Evidence: the log-likelihood ratio of cosines of a step shown and of "
                f"others, as the recording itself tells them, over {_DISCOUNT:g}; {costs}.",
                ("noise", *scores, "false alarms", "with any"),
                [level.cells(clean) for level in levels],
                is_growing=not report.is_complete,
            )
        ]
        report.document = {"recordings": len(known), "clean": clean, "known": steps, "options": chosen}
        report.document["noise"] = [level.to_json() for level in levels]
        yield report


def known_deviations(dataset: Dataset, recording: Recording) -> Known:
    """Say from the annotations how a recording deviates from the expert graph of its task.

    Of the steps that began in another order than expected, as few as possible are out of order. Not known are steps
    that stand beside others for one step of the dataset, and steps that are done at the same time as others for most
    of their time, of which a label per clip cannot tell.
    """
    task = dataset.tasks[recording.task]
    flow = task.flows["expert"]
    begins: dict[int, float] = {}
    for row in recording.annotations:
        begins[row.step] = min(begins.get(row.step, row.start), row.start)
    node_of = {step: nodes[0] for step, nodes in enumerate(task.correspondence) if len(nodes) == 1}
    first = {node: begins[step] for step, node in node_of.items() if step in begins}
    order = sorted(first, key=lambda node: first[node])
    pairs = [(a, b) for a, b in combinations(order, 2) if flow.ancestors[a] >> b & 1 and first[a] < first[b]]
    moved = {*smallest_cover(pairs, order)}
    skipped = set(node_of.values()) - first.keys()
    known = {node for step, node in node_of.items() if step not in begins or _is_seen(recording, step)}
    shown = {node for step in begins for node in task.correspondence[step]}
    has_repeats = len(recording.annotations) > len(begins)
    return Known(
        frozenset(known),
        {"skipped": frozenset(skipped & known), "out of order": frozenset(moved & known)},
        not (moved or has_repeats) and len(shown) == len(flow),
    )


def _is_seen(recording: Recording, step: int) -> bool:
    """Say whether no other step goes on for most of the time of a step that is done."""
    cuts = sorted({time for row in recording.annotations for time in (row.start, row.end)})
    whole = alone = 0.0
    for start, end in pairwise(cuts):
        shown = {row.step for row in recording.annotations if row.start <= start and end <= row.end}
        if step in shown:
            whole += end - start
            alone += (end - start) * (len(shown) == 1)
    return alone >= _LEAST_SHARE * whole


def _found(dataset: Dataset, recording: Recording, options: Mapping[str, Any]) -> dict[str, set[int]]:
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
