"""The synthetic generator and simulated evidence."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from graph2vid.datasets import synthetic
from graph2vid.datasets.simulate import Simulation
from graph2vid.errors import InputError


def test_same_seed_same_data() -> None:
    one, two = synthetic.load(recordings=16, seed=4), synthetic.load(recordings=16, seed=4)
    other = synthetic.load(recordings=16, seed=5)
    assert one.recordings == two.recordings and one.tasks == two.tasks
    assert one.recordings != other.recordings
    again = pickle.loads(pickle.dumps(two))
    for recording in one.recordings[:3]:
        assert np.array_equal(one.evidence(recording).similarity, again.evidence(recording).similarity)


def test_orders_are_legal_and_all_steps_are_shown() -> None:
    dataset = synthetic.load(tasks=5, recordings=33)
    assert len(dataset.recordings) == 33 and len(dataset.tasks) == 5
    assert dataset.simulated and not dataset.problems
    for recording in dataset.recordings:
        order = recording.order
        flow = dataset.tasks[recording.task].flows["expert"]
        assert sorted(order) == list(range(len(flow)))
        assert all(order.index(a) < order.index(b) for a, b in flow.edges)
        assert recording.overlaps == 0
        assert recording.annotations[-1].end <= recording.n_clips * recording.clip_seconds


def test_skipped_and_repeated_steps() -> None:
    dataset = synthetic.load(skip=0.3, repeat=0.3, recordings=40)
    assert any(recording.notes["skipped"] for recording in dataset.recordings)
    assert any(recording.notes["repeated"] for recording in dataset.recordings)
    for recording in dataset.recordings:
        steps = set(range(len(dataset.tasks[recording.task].steps)))
        assert set(recording.notes["skipped"]) == steps - set(recording.order)
        assert len(recording.annotations) == len(recording.order) + recording.notes["repeated"]


def test_background_share() -> None:
    dataset = synthetic.load(background=0.5, recordings=80)
    shown = sum(row.end - row.start for recording in dataset.recordings for row in recording.annotations)
    length = sum(recording.n_clips * recording.clip_seconds for recording in dataset.recordings)
    assert 0.4 < shown / length < 0.6
    assert not any(
        after.start - before.end
        for recording in synthetic.load(background=0.0).recordings
        for before, after in zip(recording.annotations, recording.annotations[1:], strict=False)
    )


def test_noise_hides_the_steps() -> None:
    right = []
    for noise in (0.0, 3.0, 30.0):
        dataset = synthetic.load(tasks=3, recordings=9, noise=noise)
        hits = []
        for recording in dataset.recordings:
            guess = dataset.evidence(recording).similarity.argmax(axis=0)
            hits += [guess[round((row.start + row.end) / 2 - 0.5)] == row.step for row in recording.annotations]
        right.append(float(np.mean(hits)))
    assert right[0] == 1.0 and right[0] > right[1] > right[2]


def test_noise_has_the_stated_length_and_persistence() -> None:
    dataset = synthetic.load(tasks=1, recordings=1, step_seconds=300.0)
    (recording,) = dataset.recordings
    quiet, loud = (Simulation(dataset.tasks, noise=level, persistence=0.9) for level in (0.0, 2.0))
    noise = loud.embeddings(recording)[1] - quiet.embeddings(recording)[1]
    assert np.mean((noise**2).sum(axis=1)) == pytest.approx(4.0, rel=0.1)
    assert np.sum(noise[1:] * noise[:-1]) / np.sum(noise**2) == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": (5, 3)}, "steps must be two whole numbers"),
        ({"threads": 3}, "threads must be two whole numbers"),
        ({"recordings": 3}, "at least one of each task"),
        ({"skip": 1.0}, "skip must be from 0"),
        ({"background": -0.1}, "background must be"),
        ({"noise": -1.0}, "noise must be"),
        ({"persistence": 1.0}, "persistence must be"),
        ({"dimensions": 1}, "dimensions must be"),
        ({"clip_seconds": 0.0}, "must be positive"),
    ],
)
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        synthetic.load(**options)  # type: ignore[arg-type]
