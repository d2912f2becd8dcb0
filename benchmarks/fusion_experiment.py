"""What weights of sources are worth: ``python -m benchmarks.fusion_experiment DATA [--videos FOLDER]``.

DATA holds ``crosstask_narrated`` and ``youcook2_narrated`` (and what their readers ask for). Prints

- level and slope of narration on these videos, and of the large tasks alone; those of on-screen text on the rendered
  videos 100 to 103 of ``benchmarks/screen_text.py``, with ``--videos`` (where that keeps them);
- what a second source adds to narration, by how its weight is chosen. There are no annotated videos with frames here:
  the source is made up, and steps stand out by so many standard deviations of a noise that lasts five seconds. The
  slope found in a video is compared with the true one. The prior of weights was chosen on the videos with even
  numbers; the table is of the others.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.alignment import align_many
from graph2vid.datasets import crosstask, youcook2
from graph2vid.evaluate import true_labels
from graph2vid.evidence import (
    Cache,
    Source,
    fuse,
    log_likelihood,
    log_odds,
    narration_evidence,
    read_captions,
    source_weights,
    text_embedder,
)
from graph2vid.evidence.embed import Grid
from graph2vid.evidence.narration import CALIBRATION
from graph2vid.flow import FlowGraph
from graph2vid.grounding.calibrator import Logistic
from graph2vid.tsort import TSortGraph

GAPS = (0.0, 0.3, 0.6, 1.0, 2.0, 4.0)
LASTS = 5.0  # seconds of noise
RENDERED = (100, 101, 102, 103)

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Case:
    """A narrated video: its evidence, and what is true."""

    dataset: str
    task: str
    nats: Matrix
    skip: Matrix
    truth: NDArray[np.int64]

    @property
    def shown(self) -> NDArray[np.bool_]:
        """Whether each clip shows each step [K, N]."""
        return np.equal(self.truth, np.arange(len(self.nats))[:, np.newaxis])


def read_cases(data: Path) -> list[Case]:
    """Read the narrated videos."""
    embed, found = text_embedder("wordllama"), []
    for name, read in (("CrossTask", crosstask.load), ("YouCook2", youcook2.load)):
        dataset = read(data)
        for recording in dataset.recordings:
            task = dataset.tasks[recording.task]
            cues = read_captions(dataset.evidence.files[recording.notes["video"]])  # type: ignore[attr-defined]
            evidence = narration_evidence(task.procedure, cues, recording.n_clips, embed)
            truth = true_labels(dataset, recording)
            found.append(Case(name, task.title, evidence.log_likelihood, evidence.skip, truth))
    return found


def calibration(odds: Sequence[Matrix], shown: Sequence[NDArray[np.bool_]]) -> str:
    """Return level and slope; every video has the same weight."""
    weight = [np.full(one.size, 1e6 / one.size / len(odds)) for one in odds]
    pairs = (np.concatenate([part.ravel() for part in parts]) for parts in (odds, shown, weight))
    stated, true, weights = (one.astype(np.float64) for one in pairs)
    fitted = Logistic.fit(stated[:, np.newaxis], true, 0.0, weights)
    return f"level {fitted.bias:.2f}, slope {fitted.weights[0]:.2f} ({len(odds)} videos)"


def rendered(folder: Path) -> str:
    """Return level and slope of on-screen text."""
    from benchmarks.screen_text import render, script
    from graph2vid.evidence.ocr import read_screen, screen_cues, screen_evidence

    odds, shown = [], []
    for seed in RENDERED:
        video, path = script(seed), folder / f"screen-{seed}.mp4"
        if not path.exists():
            render(path, video, seed)
        cues = screen_cues(read_screen(path, video.duration, cache=Cache(folder / "cache")), video.duration)
        grid = Grid(1.0, int(np.ceil(video.duration)), 0.0)
        evidence = screen_evidence(video.flow.texts, cues, text_embedder(), grid, title=video.flow.title)
        middle = np.arange(evidence.log_odds.shape[1]) + 0.5
        spans = [video.truth[step] for step in range(len(video.flow))]
        odds.append(evidence.log_odds)
        shown.append(np.array([(middle >= start) & (middle < end) for start, end in spans]))
    return calibration(odds, shown)


@cache
def chain(n_steps: int) -> TSortGraph:
    """Return the written order."""
    return TSortGraph.compile(FlowGraph.chain([str(step) for step in range(n_steps)]))


def made_up(case: Case, gap: float, random: np.random.Generator) -> Matrix:
    """Return the nats of a source in which steps stand out by a gap."""
    keep = np.exp(-1.0 / LASTS)
    noise = random.normal(size=case.nats.shape)
    for clip in range(1, noise.shape[1]):
        noise[:, clip] = keep * noise[:, clip - 1] + np.sqrt(1.0 - keep**2) * noise[:, clip]
    return log_likelihood(gap * case.shown + noise)


def iou(cases: Sequence[Case], second: Sequence[Matrix], weights: Sequence[float]) -> float:
    """Return the mean IoU of the written order, in percent."""
    made = [
        fuse([Source("narration", case.nats, skip=case.skip), Source("frames", nats, weight)])
        for case, nats, weight in zip(cases, second, weights, strict=True)
    ]
    flows = [chain(len(case.nats)) for case in cases]
    zeros, skips = [np.zeros(odds.shape[1]) for odds, _ in made], [skip for _, skip in made]
    shares = []
    for case, found in zip(cases, align_many(flows, [-odds for odds, _ in made], zeros, skips), strict=True):
        there = np.unique(case.truth[case.truth >= 0])
        if len(there):
            both = ((found.labels == case.truth) & (case.truth >= 0)).sum()
            shares.append(both / ((case.truth >= 0) | np.isin(found.labels, there)).sum())
    return 100.0 * float(np.mean(shares))


def true_slope(cases: Sequence[Case], second: Sequence[Matrix]) -> float:
    """Return the slope of a source by the truth, in units of narration's: the median over the videos."""
    slopes = []
    for case, nats in zip(cases, second, strict=True):
        apart, shown = nats - nats.mean(axis=1, keepdims=True), case.shown
        if shown.any():
            slopes.append((apart[shown].mean() - apart[~shown].mean()) / apart.var())
    return float(np.median(slopes)) / CALIBRATION[1]


def row(cases: Sequence[Case], gap: float) -> str:
    """Return a line of the table."""
    random = np.random.default_rng(int(10 * gap))
    second = [made_up(case, gap, random) for case in cases]
    found = [
        source_weights([Source("narration", case.nats, calibration=CALIBRATION), Source("frames", nats, None)])[1]
        for case, nats in zip(cases, second, strict=True)
    ]
    true = max(true_slope(cases, second), 0.0)
    ways: dict[str, Any] = {"0": [0.0] * len(cases), "1": [1.0] * len(cases), "found": found}
    cells = [f"{iou(cases, second, weights):.1f}" for weights in (*ways.values(), [true] * len(cases))]
    low, middle, high = np.percentile(found, (10, 50, 90))
    return f"| {gap:g} | {true:.2f} | {middle:.2f} ({low:.2f} to {high:.2f}) | {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the calibrations and the table."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("data", type=Path)
    asked.add_argument("--videos", type=Path, help="Where the rendered videos are kept.")
    given = asked.parse_args(arguments)
    cases = read_cases(given.data)
    odds = [log_odds(case.nats) for case in cases]
    large = ("Make French Toast", "Make Irish Coffee", "Build Simple Floating Shelves")
    for name in ("all", "CrossTask", "YouCook2", *large):
        some = [at for at, case in enumerate(cases) if name in ("all", case.dataset, case.task)]
        print(f"narration, {name}: {calibration([odds[at] for at in some], [cases[at].shown for at in some])}")
    if given.videos is not None:
        print(f"on-screen text, rendered: {rendered(given.videos)}")
    print("\n| gap | true weight | weight found (10% to 90%) | IoU at 0 | at 1 | at that found | at the true one |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for gap in GAPS:
        print(row(cases[1::2], gap), flush=True)


if __name__ == "__main__":
    main()
