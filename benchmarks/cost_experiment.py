"""How the policies ``auto`` of skips and repeats were chosen: ``python benchmarks/cost_experiment.py DATA``.

DATA holds ``salads50``, CrossTask with captions, ``captaincook4d`` and ``youcook2_narrated``. Costs are multiples of
what one segment of a middling step gains. A data set is left out in turn, and evaluated with the multiple that is best
on the others: that of the highest mean change of strict IoU among those that make none of them worse; the least cost,
where equal. Prints the table, or writes it into a page between its marks (``--page docs/appendix/extended-model.md``).

``--repeat`` asks instead whether ``--repeat auto`` could be a default: with the costs that hold otherwise, on
all score sets of 50 Salads and both descriptions of CrossTask, against none and against the multiple that the other
folds (tasks; of 50 Salads, splits) choose, with 95% intervals (bootstrap over tasks; of 50 Salads, videos).
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
from graph2vid.evaluate.method_runner import skip_costs
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
_NETWORKS = ("edtcn", "dilatedtcn", "tcnn")
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
    scores = [_strict_iou(video, plan, one.labels) for (video, plan), one in zip(videos, found, strict=True)]
    return float(np.nanmean(scores))


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


REPEAT_DATASETS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    **{name: ("salads50", name, "graph:mined", {}) for name in ("salads50", *(f"salads50_{one}" for one in _NETWORKS))},
    "captaincook4d": ("captaincook4d", ".", "graph:expert", {"noise": 1.0}),
    "crosstask": ("crosstask", ".", "linear", {}),
    "crosstask:instructions": ("crosstask", ".", "linear", {"descriptions": "instructions"}),
    "youcook2": ("youcook2", ".", "linear", {}),
}
"""Reader, folder, method and reader's options of each."""


def repeat_experiment(data: Path) -> str:
    """Return the table of ``--repeat auto`` against no repeats."""
    lines = [
        "| data set | videos | none | auto | nested | chosen |",
        "| :--- | ---: | ---: | ---: | ---: | :--- |",
    ]
    for name, (reader, folder, method, options) in REPEAT_DATASETS.items():
        results = evaluate_dataset(read_dataset(reader, data / folder, **options), [method], skip_bad=True)
        videos = [(results.videos[at], plan) for at, plan in results.methods[method].plans.items()]
        multiples = (np.inf, *MULTIPLES["repeat"][1:])
        scores = np.array([_with_repeats(videos, one) for one in multiples])
        of_split = reader == "salads50"
        groups = [
            str(v.split and v.split.name if of_split else v.recording.notes.get("recipe_type") or v.task.id)
            for v, _ in videos
        ]
        fold = np.unique(groups, return_inverse=True)[1] % 5
        nested, chosen = np.empty(len(videos)), []
        for one in np.unique(fold):
            best = int(np.nanmean(scores[:, fold != one], axis=1).round(3).argmax())
            nested[fold == one] = scores[best, fold == one]
            chosen.append("none" if best == 0 else f"{multiples[best]:g}")
        members = np.arange(len(videos)) if of_split else np.unique(groups, return_inverse=True)[1]
        auto = scores[multiples.index(AUTO_REPEAT)]
        told = [_interval(one - scores[0], members) for one in (auto, nested)]
        lines.append(
            f"| {name} | {len(videos)} | {np.nanmean(scores[0]):.2f} | {' | '.join(told)} | {', '.join(chosen)} |"
        )
    return "\n".join(lines)


def _with_repeats(videos: list[tuple[Video, Plan]], multiple: float) -> list[float]:
    """Return the strict IoU of each video in percent, all costs but those of repeats as they are by default."""
    matches = [np.ascontiguousarray(video.costs.match[plan.rows]) for video, plan in videos]
    drops = [video.costs.drop for video, _ in videos]
    skips = [skip_costs(plan, video.costs) for video, plan in videos]
    repeats = (
        None
        if multiple == np.inf
        else [
            np.full(
                len(match),
                multiple * run_gain(StepEvidence(match.astype(float), drop.astype(float), np.arange(len(match)))),
            )
            for match, drop in zip(matches, drops, strict=True)
        ]
    )
    flows = [plan.flow for _, plan in videos]
    found = align_many(flows, matches, drops, None if skips[0] is None else skips, repeats=repeats)
    return [_strict_iou(video, plan, one.labels) for (video, plan), one in zip(videos, found, strict=True)]


def _strict_iou(video: Video, plan: Plan, labels: Any) -> float:
    true, predicted = shared_classes(video.task.correspondence, len(video.task.procedure))
    shown = np.append(plan.rows, -1)[labels]
    return 100 * evaluate_video(shown, video.truth, predicted_classes=predicted, true_classes=true)["iou_strict"]


def _interval(change: Any, members: Any) -> str:
    """Return the mean change and its 95% interval, whole groups drawn anew."""
    random, known = np.random.default_rng(0), ~np.isnan(change)
    change, members = change[known], members[known]
    sums, counts = np.bincount(members, change), np.bincount(members)
    sums, counts = sums[counts > 0], counts[counts > 0]
    drawn = random.integers(len(counts), size=(2000, len(counts)))
    low, high = np.percentile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), [2.5, 97.5])
    return f"{change.mean():+.2f} [{low:+.2f}, {high:+.2f}]"


def main() -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--repeat", action="store_true")
    asked = parser.parse_args()
    if asked.repeat:
        print(repeat_experiment(asked.data))
        return
    tables = experiment(asked.data)
    if asked.page is None:
        print(tables)
        return
    before, _, rest = read_text(asked.page).partition(BEGIN)
    _, _, after = rest.partition(END)
    write_text(asked.page, f"{before}{BEGIN}\n{tables}{END}{after}")


if __name__ == "__main__":
    main()
