"""The preset ``released`` against a transcription of what the code released with the paper does with embeddings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from graph2vid.datasets import crosstask
from graph2vid.evaluate import EvaluationOptions, evaluate_dataset
from layouts import crosstask as write_crosstask
from layouts import write_array, write_json

Floats = NDArray[np.float64]
GAMMA, KEPT = 10.0, 0.1


def level_of(sim: Floats) -> float:
    """The lowest of the top tenth of similarities; of at least one."""
    count = max(1, int(sim.size * KEPT))
    return float(np.sort(sim.ravel())[::-1][count - 1])


def costs_of_graph(steps: Floats, clips: Floats) -> tuple[Floats, Floats]:
    sim = steps @ clips.T / GAMMA
    return -sim, np.full(len(clips), -level_of(sim))


def costs_of_order(steps: Floats, clips: Floats) -> tuple[Floats, Floats]:
    """Background joins the softmax; a small number keeps the logarithm finite."""
    sim = steps @ clips.T
    logits = np.vstack([sim, np.full(len(clips), level_of(sim))]) / GAMMA
    exponentials = np.exp(logits - logits.max(axis=0))
    share = exponentials / exponentials.sum(axis=0)
    return -np.log(share[:-1] + 1e-5), -np.log(share[-1] + 1e-5)


def states_of(before: list[set[int]]) -> list[tuple[int, frozenset[int]]]:
    """Pairs of a last step and the set of steps done by then, smaller sets first."""
    everything = range(len(before))
    done: set[frozenset[int]] = {frozenset()}
    states = []
    for _ in everything:
        larger = {of | {step} for of in done for step in everything if step not in of and before[step] <= of}
        states += [(last, of) for of in larger for last in of if not any(last in before[other] for other in of)]
        done = {frozenset(of) for of in larger}
    return [(last, frozenset(of)) for last, of in states]


def release(match: Floats, drop: Floats, before: list[set[int]], *, one_sink: bool = True) -> tuple[float, list[int]]:
    """Align as the release does: a matched and a dropped value per state and clip, read at one last state."""
    states = [(-1, frozenset()), *sorted(states_of(before), key=lambda state: (len(state[1]), state[0]))]
    index = {state: at for at, state in enumerate(states)}
    n_clips = match.shape[1]
    table = np.full((len(states), n_clips + 1, 2), np.inf)
    table[0, 0], table[0, 1:, 1] = 0.0, np.cumsum(drop)
    back: dict[tuple[int, int, int], tuple[int, int, int]] = {(0, j, 1): (0, j - 1, 1) for j in range(1, n_clips + 1)}
    for at, (last, done) in enumerate(states[1:], start=1):
        rest = done - {last}
        previous = [index[state] for state in states if state[1] == rest]
        for j in range(1, n_clips + 1):
            came = min(((p, j - 1, kind) for p in previous for kind in (0, 1)), key=lambda place: table[place])
            stay = (at, j - 1, 0)
            best = stay if table[stay] < table[came] else came
            table[at, j, 0], back[at, j, 0] = table[best] + match[last, j - 1], best
            dropped = min(((at, j - 1, kind) for kind in (0, 1)), key=lambda place: table[place])
            table[at, j, 1], back[at, j, 1] = table[dropped] + drop[j - 1], dropped
    ends = [at for at, (_, done) in enumerate(states) if len(done) == len(before)]
    ends = ends[-1:] if one_sink else ends
    place = min(((at, n_clips, kind) for at in ends for kind in (0, 1)), key=lambda place: table[place])
    cost, labels = float(table[place]), [-1] * n_clips
    while place[1] > 0:
        at, j, kind = place
        labels[j - 1] = states[at][0] if kind == 0 else -1
        place = back[place]
    return cost, labels


def evaluated(root: Path, steps: Floats, clips: Floats, edges: list[tuple[int, int]]) -> dict[str, list[int]]:
    """Ground one video by its features with the preset, as the command does."""
    write_crosstask(root)
    count = len(steps)
    recipe = {"instructions": [f"step {n}" for n in range(count)], "edges": edges, "recipe_2_caption": [[0, 0], [1, 2]]}
    write_json(root / "crosstask_procedures" / "rule_parser.json", [{"recipe_type": "101", "recipe": recipe}])
    narrated = root / "crosstask_narrated"
    write_array(narrated / "features" / "a_1.npy", clips)
    write_array(narrated / "step_features" / "101.npy", steps)
    (narrated / "annotations" / "101_-b.csv").unlink()
    procedures = root / "crosstask_procedures" / "procedures.json"
    (task,) = json.loads(procedures.read_text())
    write_json(procedures, [task | {"video_duration": {"a_1": 3.2 * len(clips), "-b": 9.0}}])
    flows = root / "crosstask_procedures" / "rule_parser.json"
    dataset = crosstask.load(
        root, descriptions="instructions", flows=flows, comparison="dot", axis=("clips", "dims"), evidence="features"
    )
    options = EvaluationOptions(preset="released", folds=0)
    results = evaluate_dataset(dataset, ["linear", "graph:rule_parser"], options, workers=1)
    return {name: method.labels[0].tolist() for name, method in results.methods.items()}


@pytest.mark.parametrize("seed", range(12))
def test_labels_equal_the_release_on_graphs_with_one_sink(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    count, n_clips = int(random.integers(3, 6)), 12
    steps, clips = random.normal(size=(count, 12)) * 3, random.normal(size=(n_clips, 12)) * 3
    edges = [(a, b) for a in range(count - 1) for b in range(a + 1, count - 1) if random.random() < 0.4]
    edges += [(a, count - 1) for a in range(count - 1)]  # one sink
    before = [{a for a, b in edges if b == step} for step in range(count)]
    found = evaluated(tmp_path, steps, clips, edges)
    assert found["graph:rule_parser"] == release(*costs_of_graph(steps, clips), before)[1]
    chain = [set(range(step)) for step in range(count)]
    assert found["linear"] == release(*costs_of_order(steps, clips), chain)[1]


def test_with_several_sinks_the_release_reads_one_of_them(tmp_path: Path) -> None:
    """It may then miss the best alignment; here every last state counts."""
    missed = 0
    for seed in range(6):
        random = np.random.default_rng(100 + seed)
        steps, clips = random.normal(size=(3, 12)) * 3, random.normal(size=(8, 12)) * 3
        match, drop = costs_of_graph(steps, clips)
        bag: list[set[int]] = [set(), set(), set()]
        one, every = release(match, drop, bag), release(match, drop, bag, one_sink=False)
        assert every[0] <= one[0] + 1e-9
        missed += every[0] < one[0] - 1e-9
        assert evaluated(tmp_path / str(seed), steps, clips, [])["graph:rule_parser"] == every[1]
    assert missed >= 2
