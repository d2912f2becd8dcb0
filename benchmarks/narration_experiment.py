"""How good evidence from narration is: ``python benchmarks/narration_experiment.py DATA``.

DATA holds ``crosstask_release``, ``crosstask_procedures``, ``crosstask_narrated`` and ``youcook2_narrated``. Settings
are chosen on some folds and evaluated on the one that is left out: on CrossTask the three large tasks and the rest, on
YouCook2 four groups of recipe types. The product's defaults, which were set by hand, stand beside. Prints the tables,
or writes them into a page between its marks (``--page docs/appendix/narration.md``).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import process_time
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid._files import read_text, write_text
from graph2vid.alignment import BACKGROUND, align_many
from graph2vid.datasets import Dataset, crosstask, read_executions, youcook2
from graph2vid.errors import InputError
from graph2vid.evaluate import ParsedGraphs, paired_interval, true_labels, with_parsed_graphs
from graph2vid.evidence import (
    Cue,
    costs_from_arrays,
    narration_similarity,
    plausibilities,
    read_captions,
    text_embedder,
)
from graph2vid.evidence.embed import Grid
from graph2vid.evidence.narration import Compared, NarrationSettings, compare_narration, weigh
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

LARGE = {"Make French Toast": "French toast", "Make Irish Coffee": "Irish coffee"} | {
    "Build Simple Floating Shelves": "Floating shelves"
}
RECIPE_FOLDS = 4
BEGIN, END = "<!-- experiment: begin -->", "<!-- experiment: end -->"

START = NarrationSettings(
    spread=3.0, lag=0.0, later=0.0, words=0.0, silence=0.3, rivalry=0.0, edges=0.0, order=0.0, level=0.0, skip_gain=0.0
)
"""Where each search begins: smoothing alone. What :data:`SPACE` does not name (the shapes of the later words, of the
edges and of the order) and the gain to begin with keep the defaults, which were found on all of these videos."""

SPACE: dict[str, tuple[float, ...]] = {
    "level": (-1.5, -1.0, -0.5, 0.0),
    "spread": (1.5, 2.0, 3.0, 4.0),
    "lag": (0.0, 1.0, 2.0),
    "rivalry": (0.0, 0.15, 0.3, 0.45),
    "words": (0.0, 0.25, 0.5, 1.0),
    "gain": (0.5, 0.75, 1.0),
    "edges": (0.0, 1.5, 3.0, 4.5),
    "order": (0.0, 0.25, 0.5, 1.0),
    "later": (0.0, 0.2, 0.4),
    "silence": (0.3, 1.0, 3.0),
    "skip_gain": (0.0, 5.0, 10.0),
}
ROUNDS = 2

Metrics: TypeAlias = dict[tuple[str, str], NDArray[np.float64]]
"""By dataset and method: IoU and strict IoU per video [videos, 2], in percent."""


@dataclass(frozen=True, eq=False)
class Case:
    """A captioned video with its truth."""

    dataset: str
    fold: str
    task: str
    title: str
    steps: tuple[str, ...]
    cues: tuple[Cue, ...]
    n_clips: int
    truth: NDArray[np.int64]
    flows: Mapping[str, TSortGraph]
    compared: Compared


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("data", type=Path)
    asked.add_argument("--page", type=Path, help="Write the tables into this page, between its marks.")
    asked.add_argument("--embedder", default="wordllama")
    asked.add_argument("--workers", type=int, default=1)
    given = asked.parse_args(arguments)
    cases = read_cases(given.data, given.embedder)
    say(f"{len(cases)} videos, {process_time():.0f} s")
    experiment = Experiment(cases, given.embedder, given.workers)
    parts = [
        experiment.left_out(),
        experiment.alternatives(),
        experiment.chosen(),
        experiment.skips(),
        experiment.fit_to_procedure(given.data),
    ]
    seconds = process_time()
    parts.append(
        f"{len(experiment.known)} settings tried in {seconds:.0f} s of one processor, embedder {given.embedder}."
    )
    text = "\n\n".join(parts)
    if given.page is None:
        print(text)
        return
    page = read_text(given.page)
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    write_text(given.page, f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def say(text: str) -> None:
    """Tell how far the experiment is."""
    print(text, file=sys.stderr, flush=True)


def read_cases(data: Path, embedder: str) -> list[Case]:
    """Read the videos of both datasets and compare the transcript in them with their steps, once."""
    embed, graphs = text_embedder(embedder), ParsedGraphs(["rules"])
    compiled: dict[FlowGraph, TSortGraph] = {}

    def tsort(flow: FlowGraph) -> TSortGraph:
        if flow not in compiled:
            compiled[flow] = TSortGraph.compile(flow)
        return compiled[flow]

    cases = []
    for name, read in (("CrossTask", crosstask.load), ("YouCook2", youcook2.load)):
        dataset: Dataset = with_parsed_graphs(read(data), graphs, all_tasks=True)
        types = sorted({str(recording.notes.get("recipe_type")) for recording in dataset.recordings})
        for recording in dataset.recordings:
            task = dataset.tasks[recording.task]
            group = types.index(str(recording.notes.get("recipe_type"))) % RECIPE_FOLDS
            cues = read_captions(dataset.evidence.files[recording.notes["video"]])  # type: ignore[attr-defined]
            chain = FlowGraph.chain([str(place) for place in range(len(task.procedure))])
            cases.append(
                Case(
                    name,
                    LARGE.get(task.title, "the rest") if name == "CrossTask" else f"recipes {group + 1}",
                    task.id,
                    task.title,
                    task.procedure,
                    cues,
                    recording.n_clips,
                    true_labels(dataset, recording),
                    {"linear": tsort(chain)} | {source: tsort(flow) for source, flow in task.flows.items()},
                    compare_narration(task.procedure, cues, embed, Grid(1.0, recording.n_clips)),
                )
            )
    return cases


class Truths:
    """The true labels of many videos, one after the other, so that all of them are measured in one go."""

    def __init__(self, truths: Sequence[NDArray[np.int64]]) -> None:
        lengths = [len(truth) for truth in truths]
        self.truth = np.concatenate(truths)
        self.first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        self.video = np.repeat(np.arange(len(truths)), lengths)
        self.is_there = np.zeros((len(truths), self.truth.max() + 2), dtype=bool)
        self.is_there[self.video, self.truth] = True
        self.is_there[:, BACKGROUND] = False

    def metrics(self, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return IoU and strict IoU of each video [videos, 2], in percent; NaN where no step is there."""
        steps = np.where(labels < self.is_there.shape[1] - 1, labels, BACKGROUND)  # others are in no video

        def count(where: NDArray[np.bool_]) -> NDArray[np.int64]:
            return np.add.reduceat(where.astype(np.int64), self.first)

        hits = count((labels == self.truth) & (self.truth >= 0))
        there = count(self.truth >= 0) - hits
        unions = [there + count(self.is_there[self.video, steps]), there + count(labels >= 0)]
        return np.stack([100 * hits / np.where(union > 0, union, np.nan) for union in unions], axis=1)


class Experiment:
    """Settings tried on the videos, each once."""

    def __init__(self, cases: Sequence[Case], embedder: str, workers: int) -> None:
        self.cases = cases
        self.embedder = embedder
        self.workers = workers
        self.known: dict[NarrationSettings, Metrics] = {}
        self.members = {
            name: [case for case in cases if case.dataset == name] for name in dict.fromkeys(c.dataset for c in cases)
        }
        self.truths = {name: Truths([case.truth for case in members]) for name, members in self.members.items()}
        self.folds = list(dict.fromkeys(case.fold for case in cases))
        self.plain = self._measures(self._plain_costs)

    def _plain_costs(self, case: Case) -> tuple[Any, Any, Any]:
        similarity = narration_similarity(case.steps, case.cues, case.n_clips, text_embedder(self.embedder))
        costs = costs_from_arrays(scores=similarity, preset="paper", temperature=0.1)
        return costs.match, costs.drop, None

    def _measures(self, costs: Callable[[Case], tuple[Any, Any, Any]]) -> Metrics:
        found: Metrics = {}
        for name, cases in self.members.items():
            made = [costs(case) for case in cases]
            match, drop, skip = zip(*made, strict=True)
            for method in dict.fromkeys(method for case in cases for method in case.flows):
                aligned = align_many(
                    [case.flows[method] for case in cases],
                    match,
                    drop,
                    None if skip[0] is None else skip,
                    workers=self.workers,
                )
                labels = np.concatenate([alignment.labels for alignment in aligned if alignment.labels is not None])
                found[name, method] = self.truths[name].metrics(labels)
        return found

    def metrics(self, settings: NarrationSettings) -> Metrics:
        """Return the metrics of all videos with these settings."""
        if settings not in self.known:

            def costs(case: Case) -> tuple[Any, Any, Any]:
                found = weigh(case.compared, settings)
                match = (-found.log_odds).astype(np.float32)
                return match, np.zeros(case.n_clips, dtype=np.float32), found.skip.astype(np.float32)

            self.known[settings] = self._measures(costs)
        return self.known[settings]

    def objective(self, settings: NarrationSettings, without: str) -> float:
        """Return what a search maximises: IoU and strict IoU of all methods on the videos outside a fold.

        A point on YouCook2, where figures are larger, counts as a quarter of a point on CrossTask.
        """
        total = {"CrossTask": [0.0], "YouCook2": [0.0]}
        for (name, _), values in self.metrics(settings).items():
            kept = [at for at, case in enumerate(self.members[name]) if case.fold != without]
            total[name].append(float(np.nanmean(values[kept])))
        return float(np.mean(total["CrossTask"][1:]) + 0.25 * np.mean(total["YouCook2"][1:]))

    def search(self, without: str) -> NarrationSettings:
        """Choose settings one after the other on the videos outside a fold."""
        best = START
        reached = self.objective(best, without)
        for _ in range(ROUNDS):
            for name, values in SPACE.items():
                for value in values:
                    tried = replace(best, **{name: value})
                    found = self.objective(tried, without)
                    if found > reached:
                        best, reached = tried, found
        return best

    def with_level(self, without: str, settings: NarrationSettings) -> NarrationSettings:
        """Choose the level of background alone."""
        tried = [replace(settings, level=value) for value in SPACE["level"]]
        return max(tried, key=lambda one: self.objective(one, without))

    def evaluated(self, chosen: Mapping[str, NarrationSettings]) -> Metrics:
        """Return for each video the metrics with the settings that were chosen without its fold."""
        found: Metrics = {}
        for key in self.plain:
            cases = self.members[key[0]]
            found[key] = np.stack([self.metrics(chosen[case.fold])[key][at] for at, case in enumerate(cases)])
        return found

    # -- the tables ------------------------------------------------------------------------------------------

    def left_out(self) -> str:
        """Compare the plain recipe with settings chosen on the other folds."""
        self.best = {}
        for fold in self.folds:
            self.best[fold] = self.search(fold)
            say(f"without {fold}: {len(self.known)} settings tried")
        self.left = self.evaluated(self.best)
        lines = [
            "| | plain | left out | gain, IoU | gain, strict IoU |",
            "| --- | ---: | ---: | ---: | ---: |",
        ]
        for key, after in self.left.items():
            lines.append(self._row(f"{key[0]}, {key[1]}", self.plain[key], after))
        lines += ["", "By fold, IoU / strict IoU:", ""]
        lines += ["| left out | videos | " + " | ".join(f"{m} plain | {m}" for m in ("linear", "rules")) + " |"]
        lines += ["| --- | ---: |" + " ---: |" * 4]
        for fold in self.folds:
            name = next(case.dataset for case in self.cases if case.fold == fold)
            at = [i for i, case in enumerate(self.members[name]) if case.fold == fold]
            cells = []
            for method in ("linear", "rules"):
                for metrics in (self.plain, self.left):
                    cells.append(_pair(metrics[name, method][at]))
            lines.append(f"| {fold} | {len(at)} | " + " | ".join(cells) + " |")
        lines += ["", "Chosen without that fold:", ""]
        lines += ["| left out | " + " | ".join(SPACE) + " |", "| --- |" + " ---: |" * len(SPACE)]
        for fold, settings in self.best.items():
            lines.append(f"| {fold} | " + " | ".join(f"{asdict(settings)[name]:g}" for name in SPACE) + " |")
        return "### Left out\n\n" + "\n".join(lines)

    def alternatives(self) -> str:
        """Try doing without each part, and other ways; the level of background is then chosen anew, fold by fold."""
        tried: dict[str, dict[str, float]] = {
            "no lag": {"lag": 0.0, "later": 0.0},
            "no later words": {"later": 0.0},
            "whole cues alone": {"words": 0.0},
            "words hold through silence": {"silence": 0.0},
            "steps without rivalry": {"rivalry": 0.0},
            "no edges": {"edges": 0.0},
            "no order": {"order": 0.0},
            "every step required": {"skip_gain": 1000.0, "skip_strength": 1e-9},
            "one skip cost": {"skip_gain": 0.0},
            "wide smoothing": {"spread": 6.0},
        }
        keys = list(self.left)
        lines = ["| | " + " | ".join(f"{name}, {method}" for name, method in keys) + " |"]
        lines += ["| --- |" + " ---: |" * len(keys)]
        lines += ["| plain | " + " | ".join(_pair(self.plain[key]) for key in keys) + " |"]
        lines += ["| **all parts** | " + " | ".join(_pair(self.left[key]) for key in keys) + " |"]
        for name, fixed in tried.items():
            chosen = {fold: self.with_level(fold, replace(self.best[fold], **fixed)) for fold in self.folds}
            found = self.evaluated(chosen)
            lines.append(f"| {name} | " + " | ".join(_pair(found[key]) for key in keys) + " |")
            say(f"{name}: {len(self.known)} settings tried")
        return "### Alternatives\n\nIoU / strict IoU on the left-out folds.\n\n" + "\n".join(lines)

    def chosen(self) -> str:
        """Show the product's settings, and what a search on all videos finds."""
        found = self.search("")
        say(f"search on all videos: {found}")
        now = self.metrics(NarrationSettings())
        lines = ["| | plain | defaults | gain, IoU | gain, strict IoU |", "| --- | ---: | ---: | ---: | ---: |"]
        lines += [self._row(f"{key[0]}, {key[1]}", self.plain[key], now[key]) for key in self.plain]
        best = ", ".join(f"{name} {asdict(found)[name]:g}" for name in SPACE)
        lines += ["", f"A search on all videos ends at: {best}."]
        return "### Defaults\n\nSet by hand, and evaluated on the videos they were set on.\n\n" + "\n".join(lines)

    def skips(self) -> str:
        """Say how often steps that are there, and steps that are not, are called not shown."""
        cases = self.members["CrossTask"]
        made = [weigh(case.compared) for case in cases]
        aligned = align_many(
            [case.flows["rules"] for case in cases],
            [-found.log_odds for found in made],
            0.0,
            [found.skip for found in made],
            workers=self.workers,
        )
        there, gone, strength = [], [], []
        for case, alignment, found in zip(cases, aligned, made, strict=True):
            for step in range(len(case.steps)):
                there.append(bool((case.truth == step).any()))
                gone.append(step in alignment.skipped)
                strength.append(found.strength[step])
        shown, skipped = np.array(there), np.array(gone)
        return (
            f"### Not shown\n\nOf the steps that a CrossTask video shows, {100 * skipped[shown].mean():.0f}% are "
            f"called not shown, of those that it does not, {100 * skipped[~shown].mean():.0f}% (graph of the rules). "
            f"How like the words are to a step in its best place tells the two apart with AUC "
            f"{area(strength, there):.2f}."
        )

    def fit_to_procedure(self, data: Path) -> str:
        """Match each CrossTask video with the procedures of all primary tasks."""
        primary = [done.task for done in read_executions(data)]
        asked = [(task.title, task.steps) for task in primary]
        embed = text_embedder(self.embedder)
        rows = []
        for case in self.members["CrossTask"]:
            for task, found in zip(primary, plausibilities(asked, case.cues, embed), strict=True):
                rows.append((case.fold, task.id == case.task, found.score))
        folds = np.array([row[0] for row in rows])
        own = np.array([row[1] for row in rows])
        score = np.array([row[2] for row in rows])
        left = np.zeros(len(rows))
        for fold in dict.fromkeys(folds.tolist()):
            slope, middle = fit_plausibility(score[folds != fold], own[folds != fold])
            left[folds == fold] = 1 / (1 + np.exp(-slope * (score[folds == fold] - middle)))
        slope, middle = fit_plausibility(score, own)
        table = score.reshape(-1, len(primary))
        right = own.reshape(table.shape)[np.arange(len(table)), table.argmax(axis=1)].mean()
        unlikely = left < 0.5
        return (
            f"### Does the video show this procedure?\n\nOwn procedure against the {len(primary) - 1} others: AUC "
            f"{area(score, own):.3f}; the right one of {len(primary)} is ranked first in {100 * right:.0f}% of the "
            f"videos. Calibrated on the other folds, the warning (below one half) is raised for "
            f"{100 * unlikely[own].mean():.0f}% of the videos with their own procedure and "
            f"{100 * unlikely[~own].mean():.0f}% with another's. Slope {slope:.1f}, middle {middle:.3f}."
        )

    def _row(self, name: str, before: NDArray[np.float64], after: NDArray[np.float64]) -> str:
        gains = []
        for measure in (0, 1):
            gain = paired_interval(after[:, measure], before[:, measure])
            gains.append(f"{gain.mean:+.1f} [{gain.low:+.1f}, {gain.high:+.1f}]")
        return f"| {name} | {_pair(before)} | {_pair(after)} | " + " | ".join(gains) + " |"


def fit_plausibility(scores: ArrayLike, is_own: ArrayLike) -> tuple[float, float]:
    """Calibrate: fit P(own) = 1 / (1 + exp(-slope (score - middle))), both kinds weighing the same.

    Parameters
    ----------
    scores : array [M]
    is_own : bool array [M]
        Whether the procedure is the video's own.

    Returns
    -------
    slope, middle : float
    """
    x, own = np.asarray(scores, dtype=np.float64), np.asarray(is_own, dtype=bool)
    if x.shape != own.shape or x.ndim != 1 or own.all() or not own.any():
        raise InputError("scores of videos with their own and with other procedures are needed")
    centre, scale = x.mean(), x.std() or 1.0
    design = np.stack([(x - centre) / scale, np.ones(len(x))], axis=1)
    weight = np.where(own, 0.5 / own.sum(), 0.5 / (~own).sum())
    beta = np.zeros(2)
    for _ in range(50):  # Newton's steps; a little ridge keeps scores that do not overlap from running away
        chance = 1 / (1 + np.exp(-design @ beta))
        gradient = design.T @ (weight * (chance - own)) + 1e-4 * beta * [1, 0]
        hessian = (design * (weight * chance * (1 - chance))[:, np.newaxis]).T @ design + 1e-6 * np.eye(2)
        hessian[0, 0] += 1e-4
        beta -= np.linalg.solve(hessian, gradient)
    slope = float(beta[0] / scale)
    return slope, float(centre - beta[1] / slope) if slope else float(centre)


def area(values: Iterable[float], is_one: Iterable[bool]) -> float:
    """Return the area under the ROC curve: how often one of the ones lies above one of the others."""
    order = np.argsort(np.argsort(np.array(list(values)), kind="stable")) + 1.0
    ones = np.array(list(is_one))
    return float((order[ones].sum() - ones.sum() * (ones.sum() + 1) / 2) / (ones.sum() * (~ones).sum()))


def _pair(values: NDArray[np.float64]) -> str:
    return " / ".join(f"{mean:.1f}" for mean in np.nanmean(values, axis=0))


if __name__ == "__main__":
    main()
