"""How the policies ``auto`` of skips and repeats were chosen: ``python benchmarks/cost_experiment.py DATA``.

DATA holds ``salads50``, CrossTask with captions, ``captaincook4d`` and ``youcook2_narrated``. Costs are multiples of
what one segment of a middling step gains. A data set is left out in turn, and evaluated with the multiple that is best
on the others: that of the highest mean change of strict IoU among those that make none of them worse; the least cost,
where equal. Prints the table, or writes it into a page between its marks (``--page docs/appendix/extended-model.md``).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from graph2vid._files import read_text, write_text
from graph2vid.alignment import align_many
from graph2vid.datasets import read_dataset
from graph2vid.evaluate import EvaluationOptions, Plan, Video, evaluate_dataset, evaluate_video, shared_classes
from graph2vid.evidence.policies import AUTO_REPEAT, AUTO_SKIP, StepEvidence, run_gain

DATASETS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "salads50": ("salads50", "graph:mined", {}),
    "crosstask": (".", "graph:mined", {}),
    "captaincook4d": (".", "graph:expert", {"noise": 1.0}),
    "youcook2": (".", "linear", {}),
}
"""Folder, method and reader's options of each."""

MULTIPLES = {
    "skip": (0.0, 0.125, 0.25, 0.5, 1.0),
    "repeat": (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0),
}
NO_WORSE = -0.05  # points: far less than the intervals of these means
BEGIN, END = "<!-- costs: begin -->", "<!-- costs: end -->"


def strict_iou(videos: list[tuple[Video, Plan]], kind: str, multiple: float) -> float:
    """Return the mean strict IoU in percent with costs of one kind, multiples of each video's gain of a segment."""
    matches = [np.ascontiguousarray(video.costs.match[plan.rows]) for video, plan in videos]
    drops = [video.costs.drop for video, _ in videos]
    step_costs = [
        np.full(
            len(match),
            multiple * run_gain(StepEvidence(match.astype(np.float64), drop.astype(np.float64), np.arange(len(match))))
            if multiple < np.inf
            else np.inf,
        )
        for match, drop in zip(matches, drops, strict=True)
    ]
    skips = step_costs if kind == "skip" else None
    repeats = step_costs if kind == "repeat" else None
    found = align_many([plan.flow for _, plan in videos], matches, drops, skips, repeats=repeats)
    scores = []
    for (video, plan), alignment in zip(videos, found, strict=True):
        true, predicted = shared_classes(video.task.correspondence, len(video.task.procedure))
        labels = np.append(plan.rows, -1)[alignment.labels]
        metrics = evaluate_video(labels, video.truth, predicted_classes=predicted, true_classes=true)
        scores.append(metrics["iou_strict"])
    return 100 * float(np.nanmean(scores))


def best_multiple(changes: dict[str, dict[float, float]], left_out: str | None) -> float:
    """Return the multiple that is best on all data sets but one."""
    others = [of_dataset for name, of_dataset in changes.items() if name != left_out]
    multiples = list(others[0])
    harmless = [one for one in multiples if all(of_dataset[one] >= NO_WORSE for of_dataset in others)]
    return max(harmless or multiples, key=lambda one: (round(sum(of[one] for of in others), 2), -one))


def experiment(data: Path) -> str:
    """Return the tables of both costs."""
    videos: dict[str, list[tuple[Video, Plan]]] = {}
    for name, (folder, method, reader) in DATASETS.items():
        options = EvaluationOptions(skip="constant:inf")
        results = evaluate_dataset(read_dataset(name, data / folder, **reader), [method], options, skip_bad=True)
        videos[name] = [(results.videos[at], plan) for at, plan in results.methods[method].plans.items()]
    lines = []
    for kind, multiples in MULTIPLES.items():
        plain = {name: strict_iou(members, kind, np.inf) for name, members in videos.items()}
        changes = {
            name: {one: strict_iou(members, kind, one) - plain[name] for one in multiples}
            for name, members in videos.items()
        }
        lines += [
            f"**{kind}.** Change of strict IoU in points, by multiple of the gain of a segment; and of the multiple "
            "that the other data sets choose.",
            "",
            f"| data set | videos | none | {' | '.join(f'{one:g}' for one in multiples)} | others choose | change |",
            f"| :--- |{' ---: |' * (len(multiples) + 4)}",
        ]
        for name, of_dataset in changes.items():
            chosen = best_multiple(changes, name)
            row = [name, str(len(videos[name])), f"{plain[name]:.2f}"]
            row += [f"{of_dataset[one]:+.2f}" for one in multiples] + [f"{chosen:g}", f"{of_dataset[chosen]:+.2f}"]
            lines.append(f"| {' | '.join(row)} |")
        default = AUTO_SKIP if kind == "skip" else AUTO_REPEAT
        lines += ["", f"Chosen by all of them: {best_multiple(changes, None):g}; `auto` is {default:g}.", ""]
    return "\n".join(lines)


def main() -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--page", type=Path)
    asked = parser.parse_args()
    tables = experiment(asked.data)
    if asked.page is None:
        print(tables)
        return
    before, _, rest = read_text(asked.page).partition(BEGIN)
    _, _, after = rest.partition(END)
    write_text(asked.page, f"{before}{BEGIN}\n{tables}{END}{after}")


if __name__ == "__main__":
    main()
