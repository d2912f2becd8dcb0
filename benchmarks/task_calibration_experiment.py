"""Confidences of videos grounded with a labelled task model: ``python benchmarks/task_calibration_experiment.py DATA``.

DATA holds ``crosstask_narrated``. Of each task with at least ten videos a fifth is left out in turn; on the others, or
some of them, a task model is learnt with its calibrator, and what it states of the videos left out is compared with
the truth. Prints the table of ``docs/guides/adapt.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from graph2vid.datasets import crosstask
from graph2vid.evaluate.adapted import _Key, _task_video
from graph2vid.evaluate.calibration import Reliability
from graph2vid.evidence import text_embedder
from graph2vid.grounding import Calibrator, learn_task
from graph2vid.grounding.adaptation import _example
from graph2vid.grounding.calibrator import SEGMENT
from graph2vid.tsort import TSortGraph

FOLDS = 5
LEAST_VIDEOS = 10


def examples(data: Path, labelled: int | None) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield of each video left out the posteriors and the confidences of its segments, and which share is right."""
    dataset = crosstask.load(data / "crosstask_narrated")
    key, embedder = _Key(dataset), text_embedder("wordllama")
    random = np.random.default_rng(0)
    for name, task in dataset.tasks.items():
        recordings = [one.id for one in dataset.recordings if one.task == name]
        if len(recordings) < LEAST_VIDEOS:
            continue
        procedure = TSortGraph.compile(task.flows["manual"])
        videos = [_task_video(one, key) for one in random.permutation(recordings)]
        for fold in range(FOLDS):
            train = [video for at, video in enumerate(videos) if at % FOLDS != fold]
            rest = [] if labelled is None else [replace(video, truth=None) for video in train[labelled:]]
            model = learn_task(procedure, [*train[:labelled], *rest], embedder)
            if model.calibration is None:  # the general evidence is no worse: it has a calibrator of its own
                continue
            calibrator = Calibrator.from_json(model.calibration)
            for video in videos[fold::FOLDS]:
                one = _example(procedure, video, *model.apply(video.vectors, video.log_odds, video.skip))
                posterior = 1 / (1 + np.exp(-one.observed.segments[:, SEGMENT.index("posterior")]))
                yield posterior, calibrator.confidences(one.observed), one.right


def main() -> None:
    """Print the table."""
    data = Path(sys.argv[1])
    print("| labelled videos | segments | confidence | stated | right | ECE | AUC |\n| --- " + "| ---: " * 6 + "|")
    for labelled in (10, 20, None):
        found = [np.concatenate(part) for part in zip(*examples(data, labelled), strict=True)]
        for name, stated in zip(("posterior", "calibrated"), found[:2], strict=True):
            numbers = Reliability.of(np.clip(stated, 0, 1), found[2]).to_json()
            cells = (f"{numbers[key]:.1f}" for key in ("stated", "right", "ece", "auc"))
            print(f"| {labelled or 'all'} | {numbers['count']} | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
