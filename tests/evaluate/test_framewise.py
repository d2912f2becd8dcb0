"""Evaluation of frame-wise scores: metrics of action segmentation, bounded memory, activities, repeated actions."""

from __future__ import annotations

import json
import resource
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from graph2vid._evaluation_options import EvaluationOptions
from graph2vid.cli import main
from graph2vid.datasets import framewise, read_dataset
from graph2vid.errors import InputError
from graph2vid.evaluate import edit, evaluate_dataset, f1, f1_counts, mof
from graph2vid.evaluate.action_segmentation import pooled_rows
from graph2vid.grounding import Grounding
from layouts import framewise as folder
from layouts import real_data, write, write_array


def published_segments(labels: list[int], background: int | None) -> list[tuple[int, int, int]]:
    """Segments of one label, those of background left out (Lea et al. 2017, section 5)."""
    cuts = [0, *(at for at in range(1, len(labels)) if labels[at] != labels[at - 1]), len(labels)]
    found = [(labels[a], a, b) for a, b in pairwise(cuts)]
    return [segment for segment in found if segment[0] != background]


def published_f1(predicted: list[int], true: list[int], overlap: float, background: int | None = -1) -> list[int]:
    """Each predicted segment is matched to the true one of its class of highest IoU; true positive: IoU at least the
    threshold and not matched before; other predicted ones are false positives, true ones left false negatives."""
    there = published_segments(true, background)
    hit = [False] * len(there)
    positive = negative = 0
    for label, start, end in published_segments(predicted, background):
        ious = [
            len({*range(start, end)} & {*range(a, b)}) / len({*range(start, end)} | {*range(a, b)}) * (label == of)
            for of, a, b in there
        ]
        best = int(np.argmax(ious)) if ious else -1
        if best >= 0 and ious[best] >= overlap and not hit[best]:
            hit[best], positive = True, positive + 1
        else:
            negative += 1
    return [positive, negative, len(there) - sum(hit)]


def published_edit(predicted: list[int], true: list[int]) -> float:
    """One minus the Levenshtein distance of the orders of segments over the length of the longer."""
    left, right = ([label for label, _, _ in published_segments(one, -1)] for one in (predicted, true))
    table = np.zeros((len(left) + 1, len(right) + 1))
    table[:, 0], table[0] = np.arange(len(left) + 1), np.arange(len(right) + 1)
    for i, j in np.ndindex(len(left), len(right)):
        changed = table[i, j] + (left[i] != right[j])
        table[i + 1, j + 1] = min(changed, table[i, j + 1] + 1, table[i + 1, j] + 1)
    longer = max(len(left), len(right))
    return float(1 - table[-1, -1] / longer) if longer else float("nan")


def random_labels(random: np.random.Generator) -> list[int]:
    return np.repeat(random.integers(-1, 4, size=12), random.integers(1, 9, size=12)).tolist()[:50]


@pytest.mark.parametrize("seed", range(40))
def test_metrics_equal_the_published_definitions(seed: int) -> None:
    random = np.random.default_rng(seed)
    true, predicted = random_labels(random), random_labels(random)
    length = min(len(true), len(predicted))
    true, predicted = true[:length], predicted[:length]
    predicted = [t if random.random() < 0.7 else p for t, p in zip(true, predicted, strict=True)]
    assert mof(predicted, true) == np.mean(np.array(predicted) == np.array(true))
    assert edit(predicted, true) == pytest.approx(published_edit(predicted, true), nan_ok=True)
    for overlap in (0.1, 0.25, 0.5):
        right, wrong, missed = published_f1(predicted, true, overlap)
        assert f1_counts(predicted, true, overlap) == (right, wrong, missed)
        precision, recall = right / max(right + wrong, 1), right / max(right + missed, 1)
        expected = 2 * precision * recall / (precision + recall) if right else 0.0
        assert f1(predicted, true, overlap) == pytest.approx(expected)


def evaluated(root: Path, *methods: str, **options: object) -> dict[str, dict[str, float]]:
    chosen = EvaluationOptions(extended=("none",), min_support=1, **options)  # type: ignore[arg-type]
    results = evaluate_dataset(framewise.load(root), methods or None, chosen, workers=1)
    return {row["method"]: row for row in pooled_rows(results)} | {"results": results}  # type: ignore[dict-item]


def test_clear_scores_are_read_back_in_every_activity(tmp_path: Path) -> None:
    rows = evaluated(folder(tmp_path))
    for method, least in {"argmax+background": 100, "graph:mined": 80, "bag": 100}.items():
        assert rows[method]["acc"] >= 80 and rows[method]["edit"] >= least, method


def test_pooled_metrics_are_of_all_frames_and_segments_of_a_split(tmp_path: Path) -> None:
    root = folder(tmp_path)
    rng = np.random.default_rng(0)
    for path in (root / "scores").glob("*.npy"):
        scores = np.load(path) + rng.random(np.load(path).shape)
        write_array(path, scores / scores.sum(axis=1, keepdims=True))
    found = evaluated(root, "argmax+background")
    results, row = found["results"], found["argmax+background"]
    names = ["background", "cut_tomato", "cut_cheese", "mix", "boil", "pour"]
    acc, f1_50 = [], []
    for split in results.dataset.splits:  # type: ignore[attr-defined]
        right, counts, frames = 0, np.zeros(3), 0
        for video in split.test:
            true = [names.index(line) - 1 for line in (root / "groundTruth" / f"{video}.txt").read_text().split()]
            predicted = (np.load(root / "scores" / f"{video}.npy").argmax(axis=1) - 1).tolist()
            right, frames = right + sum(a == b for a, b in zip(true, predicted, strict=True)), frames + len(true)
            counts += published_f1(predicted, true, 0.5)
        acc.append(100 * right / frames)
        f1_50.append(100 * 2 * counts[0] / (2 * counts[0] + counts[1] + counts[2]))
    assert row["acc"] == pytest.approx(np.mean(acc)) and row["f1@50"] == pytest.approx(np.mean(f1_50))


def test_background_of_another_name_counts_as_segments(tmp_path: Path) -> None:
    root = folder(tmp_path)
    before = evaluated(root, "argmax")["results"].methods["argmax"].metrics  # type: ignore[attr-defined]
    for path in (root / "mapping.txt", *(root / "groundTruth").iterdir()):
        write(path, path.read_text().replace("background", "SIL"))
    after = evaluated(root, "argmax")["results"].methods["argmax"].metrics  # type: ignore[attr-defined]
    assert all(after[at]["mof"] == before[at]["mof"] for at in before)
    assert all(after[at]["missed f1@50"] > before[at]["missed f1@50"] for at in before)


def test_metrics_are_of_frames_where_clips_are_made_of_several(tmp_path: Path) -> None:
    root = folder(tmp_path, {f"v{n}": "0" * 30 + "1" * 60 + "2" * 45 + "3" * 65 for n in range(6)})
    whole = evaluate_dataset(framewise.load(root), ["argmax+background", "graph:mined"], workers=1)
    pooled = evaluate_dataset(framewise.load(root, most_clips=40), ["argmax+background", "graph:mined"], workers=1)
    assert pooled.methods["argmax+background"].metrics == whole.methods["argmax+background"].metrics
    for at, found in pooled.methods["graph:mined"].metrics.items():
        assert found["frames"] == 200 and found["mof"] > 0.8
        assert len(pooled.methods["argmax+background"].labels[at]) == pooled.videos[at].recording.n_clips == 40


def test_repeated_actions_are_found_with_repeats(tmp_path: Path) -> None:
    videos = {f"v{n}": "111222111333222" if n % 2 else "222111222333111" for n in range(9)}
    dataset = framewise.load(folder(tmp_path, videos))
    results = evaluate_dataset(dataset, ["graph:mined"], EvaluationOptions(min_support=2), workers=1)
    assert list(results.methods) == ["graph:mined", "graph:mined+durations", "graph:mined+durations+repeat"]
    plain, _, repeated = (
        np.mean([row["edit"] for row in found.metrics.values()]) for found in results.methods.values()
    )
    assert plain < 0.7 and repeated == 1.0


def test_a_given_graph_beside_the_mined_one(tmp_path: Path) -> None:
    root = folder(tmp_path)
    write(root / "tea.flow", "boil: boil\npour: pour\nboil -> pour\n")
    rows = evaluated(root)
    assert rows["graph:manual"]["edit"] == 100 and "graph:mined" in rows


def test_background_of_the_network_as_drop_cost(tmp_path: Path) -> None:
    root = folder(tmp_path)
    costs = {}
    for drop in (None, "prototype", "relative"):
        video = evaluated(root, "graph:mined", drop=drop)["results"].videos[0]  # type: ignore[attr-defined]
        costs[drop], background = video.costs.drop, video.evidence.background
    assert len(np.unique(costs[None])) == 1 and np.mean(costs["relative"]) == pytest.approx(costs[None][0])
    for drop in ("prototype", "relative"):  # cheaper where the network sees background
        assert costs[drop][background.argmax()] < costs[drop][background.argmin()]
    options = EvaluationOptions(drop="prototype")
    with pytest.raises(InputError, match="drop 'prototype' needs scores of background, which this evidence has not"):
        evaluate_dataset(read_dataset("synthetic", recordings=6, tasks=1), ["bag"], options, workers=1)


def test_the_command_tells_what_the_scores_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, saved = folder(tmp_path / "net"), tmp_path / "r.json"
    assert main(["evaluate", "framewise", "--data", str(root), "--workers", "1", "--json", str(saved)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "scores probabilities (told from the data)" in printed
    assert "As papers on action segmentation print them" in printed
    found = json.loads(saved.read_text())
    names = [row["method"] for row in found["rows"]]
    assert {"argmax+background", "bag", "linear", "graph:mined", "graph:mined+durations"} <= set(names)
    assert "graph:mined+durations+repeat" not in names  # hardly anything is repeated
    assert found["pooled"][0]["method"] == "argmax" and "intervals" in found["rows"][0]
    pairs = {(row["first"], row["second"]) for row in found["differences"]}
    assert ("graph:mined", "argmax+background") in pairs


@pytest.mark.parametrize("name", ["salads50", "salads50_edtcn", "salads50_dilatedtcn", "salads50_tcnn"])
def test_the_mined_graph_beats_argmax_on_real_scores(name: str) -> None:
    dataset = framewise.load(real_data(name) / name)
    chosen = ["argmax", "argmax+background", "graph:mined"]
    results = evaluate_dataset(dataset, chosen, EvaluationOptions(extended=("none",)), workers=1)
    means = {
        method: {
            metric: np.mean([row[metric] for row in found.metrics.values()]) for metric in ("mof", "edit", "f1@50")
        }
        for method, found in results.methods.items()
    }
    for metric, value in means["graph:mined"].items():
        assert value > max(means["argmax"][metric], means["argmax+background"][metric]), metric


@pytest.mark.slow
def test_a_large_folder_takes_bounded_memory(tmp_path: Path) -> None:
    """500 videos of 6,000 frames and 50 classes: 600 MB of scores."""
    rng = np.random.default_rng(0)
    names = ["background", *(f"step_{number}" for number in range(49))]
    write(tmp_path / "mapping.txt", "".join(f"{at} {name}\n" for at, name in enumerate(names)))
    for video in range(500):
        order = rng.permutation(np.arange(1, 9)) + 8 * (video % 6)
        labels = np.repeat(order, 750)
        write(tmp_path / "groundTruth" / f"{'abcdef'[video % 6] * 3}_{video}.txt", "\n".join(names[i] for i in labels))
        scores = rng.normal(size=(6000, 50)).astype(np.float32)
        scores[np.arange(6000), labels] += 2
        write_array(tmp_path / "scores" / f"{'abcdef'[video % 6] * 3}_{video}.npy", scores)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    options = EvaluationOptions(extended=("none",))
    results = evaluate_dataset(framewise.load(tmp_path), ["argmax", "linear", "graph:mined"], options, workers=1)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert len(results.dataset.tasks) == 6 and len(results.videos) == 500
    assert grown < 900, f"{grown:.0f} MB"


def test_one_video_in_one_line(tmp_path: Path) -> None:
    """The command of the guide: log-probabilities of frames, without the class of background."""
    root = folder(tmp_path / "net", kind="log-probabilities")
    flow = write(tmp_path / "salad.flow", "tomato: cut tomato\ncheese: cut cheese\nmix: mix\ntomato, cheese -> mix\n")
    video = write_array(tmp_path / "video.npy", np.load(root / "scores" / "P2_salad.npy")[:, 1:4])
    asked = ["--log-probabilities", str(video), "--transpose", "--match", "likelihood", "--clip-seconds", "1"]
    saved = tmp_path / "result.json"
    assert main(["ground", str(flow), *asked, "--skip", "auto", "-o", str(saved)]) == 0
    found = Grounding.load(saved)
    assert [found.flow.ids[step] for step in found.order] == ["cheese", "tomato", "mix"]
