"""Trained features at work, from a checkpoint, in Python and on the command line; events for TensorBoard."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

import graph2vid as g2v  # noqa: E402
from foreign import foreign, only_split  # noqa: E402
from graph2vid.cli import main  # noqa: E402
from graph2vid.datasets import Dataset, Embeddings  # noqa: E402
from graph2vid.errors import InputError, TooLargeError  # noqa: E402
from graph2vid.evidence.captions import Cue  # noqa: E402
from graph2vid.learn.features import checkpoint  # noqa: E402
from graph2vid.learn.features.events import EventFile  # noqa: E402
from graph2vid.learn.features.options import TrainingOptions  # noqa: E402
from graph2vid.learn.features.training_run import Course  # noqa: E402
from graph2vid.learn.features.use import load_features  # noqa: E402

OPTIONS = TrainingOptions(epochs=1, batch=4, rate=3e-3, gamma=0.3, smoothing="softmin", contiguous=True)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Dataset, Path]:
    dataset, folder = foreign(16), tmp_path_factory.mktemp("training")
    Course(dataset, only_split(dataset), "expert", validate=False).train(OPTIONS, folder=folder)
    return dataset, folder


def _embeddings(dataset: Dataset) -> Embeddings:
    found: Embeddings = dataset.evidence.embeddings(dataset.recordings[1])  # type: ignore[attr-defined]
    return found


def test_ground_model_grounds_with_the_trained_features(trained: tuple[Dataset, Path], tmp_path: Path) -> None:
    dataset, folder = trained
    flow = next(iter(dataset.tasks.values())).flows["expert"]
    vectors = _embeddings(dataset)
    flow.save(tmp_path / "flow.json")
    np.save(tmp_path / "clips.npy", vectors.clips)
    np.save(tmp_path / "steps.npy", vectors.steps)
    given = ["--clips", str(tmp_path / "clips.npy"), "--steps", str(tmp_path / "steps.npy")]
    command = ["ground", str(tmp_path / "flow.json"), *given, "--model", str(folder), "-o", str(tmp_path / "r.json")]
    assert main(command) == 0
    arrays = load_features(folder / checkpoint.NAME).arrays(vectors.steps, vectors.clips)
    wanted = g2v.ground(flow, **arrays)
    found = g2v.Grounding.load(tmp_path / "r.json")
    assert [(one.step, one.start, one.end) for one in found.segments] == [
        (one.step, one.start, one.end) for one in wanted.segments
    ]
    assert not np.allclose(arrays["clips"], vectors.clips)


def test_features_of_scores_give_scores(trained: tuple[Dataset, Path]) -> None:
    dataset, folder = trained
    vectors = _embeddings(dataset)
    features = load_features(folder)
    scored = replace(features, about=features.about | {"comparison": "dot"})
    assert scored.arrays(vectors.steps, vectors.clips)["scores"].shape == (7, len(vectors.clips))


def test_what_does_not_fit_is_refused(trained: tuple[Dataset, Path], capsys: Any, tmp_path: Path) -> None:
    dataset, folder = trained
    vectors, features = _embeddings(dataset), load_features(folder)
    with pytest.raises(InputError, match="trained on features of 24 dimensions"):
        features.arrays(vectors.steps, vectors.clips[:, :5])
    with pytest.raises(InputError, match="trained on 24 dimensions"):
        features.arrays(vectors.steps[:, :5], vectors.clips)
    with pytest.raises(InputError, match="NaN"):
        features.arrays(vectors.steps, vectors.clips * np.nan)
    with pytest.raises(InputError, match="was not trained on what is said"):
        features.said(["one", "two"], [Cue(0.0, 1.0, "one")], 10.0)
    np.save(tmp_path / "scores.npy", np.zeros((7, 20)))
    g2v.FlowGraph.chain([f"step {number}" for number in range(7)]).save(tmp_path / "seven.json")
    command = ["ground", str(tmp_path / "seven.json"), "--scores", str(tmp_path / "scores.npy")]
    assert main([*command, "--model", str(folder)]) == 2
    assert "--model works on embeddings" in capsys.readouterr().err
    assert main([*command, "--model", str(tmp_path)]) == 2


def test_features_of_what_is_said(trained: tuple[Dataset, Path]) -> None:
    pytest.importorskip("wordllama")
    features = load_features(trained[1])
    from graph2vid.learn.features.residual_mlp import ResidualMLP

    mlp = ResidualMLP(257)
    said = replace(
        features,
        mlp=mlp,
        about={
            "comparison": "cosine",
            "source": {"kind": "narration", "embedder": "wordllama", "spread": 2.0, "lag": 2.0, "silence": 1.0},
        },
    )
    arrays = said.said(
        ["crack the eggs", "toast the bread"],
        [Cue(5.0, 8.0, "now crack an egg"), Cue(20.0, 24.0, "toasting bread")],
        30.0,
    )
    with pytest.raises(TooLargeError, match=r"at most 0\.001"):
        said.said(["crack the eggs"], [Cue(5.0, 8.0, "now crack an egg")], 30.0, max_hours=0.001)
    grounding = g2v.ground(g2v.FlowGraph.bag(["crack the eggs", "toast the bread"]), **arrays, drop="percentile:30")
    first, second = grounding.segments
    assert (first.step, second.step) == (0, 1) and first.start < 10 < second.start
    for hours, allowed in ((1.0, 0.5), (30.0, 24.0)):
        with pytest.raises(TooLargeError, match=f"at most {allowed:g} "):
            said.said(["a", "b"], [Cue(5.0, 8.0, "egg")], 3600 * hours, max_hours=allowed)
    assert said.said(["a", "b"], [Cue(5.0, 8.0, "egg")], 30 * 3600, clip_seconds=3600, max_hours=40)


def test_events_are_records_with_checksums(tmp_path: Path) -> None:
    events = EventFile(tmp_path)
    events.scalar("loss", 1.25, 300)
    events.close()
    (path,) = tmp_path.iterdir()
    data, records = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        records.append(data[12 : 12 + length])
        data = data[16 + length :]
    assert b"brain.Event:2" in records[0]
    assert records[1][9:] == b"\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04loss\x15" + struct.pack("<f", 1.25)
    # The check value of CRC-32C, masked as the format asks.
    from graph2vid.learn.features.events import _masked_crc

    crc = 0xE3069283
    assert _masked_crc(b"123456789") == struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
