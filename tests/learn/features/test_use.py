"""Trained features at work, from a checkpoint, in Python and on the command line; the logs of a training."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import ModuleType
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
from graph2vid.learn.features import TrainingOptions, TrainingRun, checkpoint  # noqa: E402
from graph2vid.learn.features.loop import Logs  # noqa: E402
from graph2vid.learn.features.use import load_features  # noqa: E402

OPTIONS = TrainingOptions(epochs=1, batch=4, rate=3e-3, gamma=0.3, smoothing="softmin", contiguous=True)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Dataset, Path]:
    dataset, folder = foreign(16), tmp_path_factory.mktemp("training")
    TrainingRun(dataset, only_split(dataset), "expert", validate=False).train(OPTIONS, folder=folder)
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
    with pytest.raises(InputError, match="was not trained on transcripts"):
        features.said(["one", "two"], [Cue(0.0, 1.0, "one")], 10.0)
    np.save(tmp_path / "scores.npy", np.zeros((7, 20)))
    g2v.FlowGraph.chain([f"step {number}" for number in range(7)]).save(tmp_path / "seven.json")
    command = ["ground", str(tmp_path / "seven.json"), "--scores", str(tmp_path / "scores.npy")]
    assert main([*command, "--model", str(folder)]) == 2
    assert "--model works on embeddings" in capsys.readouterr().err
    assert main([*command, "--model", str(tmp_path)]) == 2


def test_features_of_a_transcript(trained: tuple[Dataset, Path]) -> None:
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


HISTORY = [{"epoch": 0, "loss": None, "acc": 0.25}, {"epoch": 1, "loss": 1.5, "acc": 0.5}]


def test_new_rows_become_events_where_tensorboard_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[Any, ...]] = []

    class Writer:
        def __init__(self, folder: str) -> None:
            written.append((folder,))

        def add_scalar(self, *event: Any) -> None:
            written.append(event)

        def flush(self) -> None:
            written.append(("flushed",))

        def close(self) -> None:
            written.append(("closed",))

    module = ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with closing(Logs(tmp_path, written=1)) as logs:  # the first row was written before an interrupt
        logs.write(HISTORY)
    folder = str(tmp_path / "tensorboard")
    assert written == [(folder,), ("loss", 1.5, 1), ("acc", 0.5, 1), ("flushed",), ("closed",)]


def test_the_log_is_written_without_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with closing(Logs(tmp_path)) as logs:
        logs.write(HISTORY)
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]
    assert (tmp_path / "log.csv").read_text() == "epoch,loss,acc\n0,,0.25\n1,1.5,0.5\n"
