"""Training: what it teaches, that it goes on exactly where it was stopped, and what it refuses."""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

import graph2vid as g2v  # noqa: E402
from foreign import foreign, only_split  # noqa: E402
from graph2vid._options import declared  # noqa: E402
from graph2vid._training_options import OBJECTIVES, TrainingOptions  # noqa: E402
from graph2vid.cli import main  # noqa: E402
from graph2vid.datasets import Embeddings, Recording  # noqa: E402
from graph2vid.errors import FormatError, InputError  # noqa: E402
from graph2vid.learn.features import (  # noqa: E402
    TrainedFeatures,
    TrainingRun,
    checkpoint,
    preset,
    with_graphs,
    with_splits,
)
from graph2vid.learn.features.data import embeddings_of  # noqa: E402
from graph2vid.learn.features.loop import is_better  # noqa: E402
from train_foreign import train as train_foreign  # noqa: E402

QUICK = TrainingOptions(
    epochs=4, batch=4, rate=3e-3, gamma=0.3, smoothing="softmin", contiguous=True, pool_temperature=0.5
)


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def training_run(validate: bool = False, recordings: int = 16) -> TrainingRun:
    dataset = foreign(recordings)
    return TrainingRun(dataset, only_split(dataset), "expert", validate)


def test_the_graph_teaches_what_helps_on_held_out_videos() -> None:
    whole = training_run(recordings=40)
    evaluation = whole.evaluation("test")
    assert evaluation is not None
    before = evaluation()
    options = replace(QUICK, epochs=6, rate=6e-3)
    after = {
        name: evaluation(whole.train(replace(options, objective=name)).model()) for name in ("bag", "linear", "graph")
    }
    assert after["graph"]["acc"] > before["acc"] + 0.2
    assert after["graph"]["iou"] > before["iou"] + 0.15
    assert after["graph"]["acc"] > after["linear"]["acc"] > after["bag"]["acc"]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_lowers_its_loss_and_repeats(objective: str) -> None:
    options = replace(QUICK, objective=objective, epochs=2, every=2)
    first, second = training_run().train(options), training_run().train(options)
    losses = [row["loss"] for row in first.history]
    assert losses[0] is None and losses[2] < losses[1]
    assert first.history == second.history
    assert all(torch.equal(first.weights[name], second.weights[name]) for name in first.weights)


def test_another_seed_gives_other_features() -> None:
    found = [training_run().train(replace(QUICK, epochs=1, seed=seed)).weights["inner.weight"] for seed in (0, 1)]
    assert not torch.equal(*found)


def test_the_best_epoch_is_kept_and_training_ends_early() -> None:
    whole = training_run(validate=True, recordings=24)
    state = whole.train(replace(QUICK, epochs=12, patience=2, rate=0.03))
    losses = [row["loss"] for row in state.history[1:]]
    assert state.best > 0
    assert state.epoch == min(max(state.best, 1 + int(np.argmin(losses))) + 2, 12)
    evaluation = whole.evaluation("validation")
    assert evaluation is not None
    kept = evaluation.by_video(state.model())
    assert state.best_scores == [(acc + iou) / 2 for acc, iou in zip(kept["acc"], kept["iou"], strict=True)]
    assert evaluation(state.model()) == {name: state.history[state.best][name] for name in ("acc", "iou")}


def test_an_epoch_is_better_when_it_is_so_beyond_chance() -> None:
    assert is_better([0.4, 0.5], [])
    assert is_better([0.5, 0.6, 0.7], [0.4, 0.5, 0.6])
    assert not is_better([0.5, 0.6], [0.5, 0.6])
    assert not is_better([0.9, 0.1, 0.5], [0.3, 0.4, 0.5])  # one video gains 0.6, another loses 0.3
    assert is_better([0.6], [0.5])  # of one video nothing is known of chance


def test_training_goes_on_while_the_loss_falls() -> None:
    # So slow that no epoch is better on the validation videos; the loss falls all the same.
    slow = training_run(validate=True).train(replace(QUICK, epochs=6, patience=1, rate=1e-6, batch=16))
    losses = [row["loss"] for row in slow.history[1:]]
    assert slow.best == 0 and losses == sorted(losses, reverse=True)
    assert slow.epoch == 6
    # Without a validation it is the loss alone that ends it.
    wild = training_run().train(replace(QUICK, epochs=40, patience=1, rate=3.0))
    losses = [row["loss"] for row in wild.history[1:]]
    assert wild.epoch == 1 + int(np.argmin(losses)) + 1 < 40
    assert wild.best == wild.epoch


def test_the_defaults_learn(tmp_path: Path) -> None:
    whole = training_run(validate=True, recordings=40)
    evaluation = whole.evaluation("test")
    assert evaluation is not None
    before, after = evaluation(), evaluation(whole.train(TrainingOptions()).model())
    assert after["acc"] > before["acc"] + 0.15
    assert after["iou"] > before["iou"] + 0.1


def test_the_paper_is_a_preset() -> None:
    paper = preset("paper")
    assert (paper.rate, paper.weight_decay, paper.epochs, paper.patience) == (1e-4, 1e-4, 10, 0)
    assert (paper.smoothing, paper.gamma, paper.contiguous, paper.match) == ("smoothmin", 0.1, False, "likelihood")
    assert preset("paper", rate=1e-3, seed=None) == replace(paper, rate=1e-3)
    assert preset("default") == TrainingOptions()
    with pytest.raises(InputError, match="unknown preset 'book'; known: default, paper"):
        preset("book")


def test_help_tells_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "features", "--help-all"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for one in declared(TrainingOptions):
        said = one.about.off or one.about.help
        default = "" if one.default is None or one.kind is bool else f" [{one.default}]"
        assert one.flag[2:] in shown and f"{said}{default}" in shown


def test_a_given_option_changes_a_preset(tmp_path: Path) -> None:
    arguments = [*COMMAND[3:], "--preset", "paper", "--epochs", "1", "--gamma", "0.3", "--out", str(tmp_path / "out")]
    assert main(arguments) == 0
    options = checkpoint.load(tmp_path / "out").options
    assert options == preset("paper", epochs=1, batch=2, rate=1e-3, gamma=0.3)


class Stopped(Exception):
    pass


def test_an_interrupted_training_ends_like_an_uninterrupted_one(tmp_path: Path) -> None:
    plain = training_run(validate=True).train(QUICK, folder=tmp_path / "plain")

    def stop(epoch: int, videos: int, loss: float) -> None:
        if epoch == 3:
            raise Stopped

    with pytest.raises(Stopped):
        training_run(validate=True).train(QUICK, folder=tmp_path / "stopped", report=stop)
    assert checkpoint.load(tmp_path / "stopped").epoch == 2
    again = training_run(validate=True).train(QUICK, folder=tmp_path / "stopped", resume=True)
    _same(plain, again)
    for name in ("log.csv", "epoch-4.safetensors"):
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "stopped" / name).read_bytes()
    with (tmp_path / "plain" / "log.csv").open() as file:
        assert [row["epoch"] for row in csv.DictReader(file)] == list("01234")


def _same(one: checkpoint.State, other: checkpoint.State) -> None:
    assert one.history == other.history and one.best == other.best and one.best_scores == other.best_scores
    for part in ("weights", "optimiser", "best_weights"):
        left, right = getattr(one, part), getattr(other, part)
        assert left.keys() == right.keys()
        assert all(torch.equal(left[name], right[name]) for name in left)


COMMAND = [
    *(sys.executable, "-m", "graph2vid", "train", "features", "--dataset", "synthetic", "--device", "cpu"),
    *("--option", "tasks=2", "--option", "recordings=24", "--option", "dimensions=16", "--option", "noise=1"),
    *("--epochs", "6", "--batch", "2", "--lr", "1e-3", "--patience", "0"),
]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
SCRIPT = Path(__file__).parents[2] / "train_foreign.py"


def _run(folder: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "--out", str(folder), *more],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish(process: subprocess.Popen[str]) -> str:
    output, errors = process.communicate(timeout=900)
    assert process.returncode == 0, errors
    return output


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_killed_at_random_moments_it_ends_with_the_same_figures(tmp_path: Path, seed: int) -> None:
    plain = _finish(_run(tmp_path / "plain", "--json", str(tmp_path / "plain.json")))
    chance = random.Random(seed)
    folder = tmp_path / "killed"
    for _ in range(3):
        process = _run(folder, "--resume")
        _wait_for_epoch(process, folder, _epochs_done(folder) + 1)
        time.sleep(chance.uniform(0, 0.3))
        process.kill()
        process.communicate()
    again = _finish(_run(folder, "--resume", "--json", str(tmp_path / "killed.json")))
    assert json.loads((tmp_path / "plain.json").read_text()) == json.loads((tmp_path / "killed.json").read_text())
    assert again.replace(str(folder), "") == plain.replace(str(tmp_path / "plain"), "")
    _same(checkpoint.load(tmp_path / "plain"), checkpoint.load(folder))


def _wait_for_epoch(process: subprocess.Popen[Any], folder: Path, epoch: int) -> None:
    """Return when the training has done so many epochs, or is over."""
    deadline = time.monotonic() + 300
    while _epochs_done(folder) < epoch and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)


def test_killed_once_it_ends_with_the_same_weights(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, str(SCRIPT), str(tmp_path / "killed")], env=ENVIRONMENT)
    _wait_for_epoch(process, tmp_path / "killed", 1)
    process.kill()
    process.wait()
    again = train_foreign(str(tmp_path / "killed"), resume=True)
    _same(train_foreign(str(tmp_path / "plain")), again)


def _epochs_done(folder: Path) -> int:
    try:
        return int(json.loads((folder / checkpoint.NAME).read_text())["epoch"])
    except FileNotFoundError:
        return -1


def test_two_processes_train_like_one(tmp_path: Path) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    for resume in ([], ["--resume"]):  # the second time the first process alone has a checkpoint
        done = subprocess.run(
            [*launch, str(SCRIPT), str(tmp_path / "two"), "--apart", *resume],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
    assert not (tmp_path / "two1").exists()
    one, two = train_foreign(str(tmp_path / "one")), checkpoint.load(tmp_path / "two0")
    assert len(two.history) == 4
    for left, right in zip(one.history[1:], two.history[1:], strict=True):
        assert right["loss"] == pytest.approx(left["loss"], rel=1e-4)
    for name, value in one.weights.items():
        assert torch.allclose(value, two.weights[name], atol=2e-4)


# -- what is refused -----------------------------------------------------------------------------------------


def test_a_prototype_of_background_is_learnt_and_used_beside_the_features(tmp_path: Path) -> None:
    run, options = training_run(validate=True, recordings=24), replace(QUICK, epochs=3, drop="prototype:30")
    whole = run.train(options)
    run.train(replace(options, epochs=1), folder=tmp_path)
    _same(run.train(options, folder=tmp_path, resume=True), whole)
    assert not torch.equal(whole.weights["prototype"], run.train(replace(options, epochs=0)).weights["prototype"])
    mlp, evaluation = whole.module(whole.weights), run.evaluation("test")
    assert evaluation is not None
    plain = whole.module({name: value for name, value in whole.weights.items() if name != "prototype"})
    costs = [evaluation.results(one).videos[0].costs for one in (mlp, plain)]
    np.testing.assert_allclose(costs[0].match, costs[1].match, rtol=1e-4, atol=1e-5)  # products of other shapes
    assert len(np.unique(costs[0].drop)) > 1 and len(np.unique(costs[1].drop)) == 1
    (recording, vectors), *_ = evaluation.found
    features = TrainedFeatures(tmp_path, mlp, {"comparison": "cosine"})
    arrays = features.arrays(vectors.steps, vectors.clips)
    flow = run.dataset.tasks[recording.task].flows["expert"]
    found = g2v.ground(flow, clips=vectors.clips, steps=vectors.steps, features=features)
    assert found.segments == g2v.ground(flow, **arrays).segments and found.options["drop"].startswith("relative")
    shown = found.labels >= 0  # slivers that only the order forces are not shown
    labels = evaluation.results(mlp).methods["graph:expert"].labels[0]
    assert shown.any() and found.labels[shown].tolist() == labels[shown].tolist()
    other = g2v.ground(flow, **{**arrays, "drop": "percentile:30"})
    assert other.options["drop"] != found.options["drop"]


def test_a_training_is_not_overwritten(tmp_path: Path) -> None:
    training_run().train(replace(QUICK, epochs=1), folder=tmp_path)
    with pytest.raises(InputError, match="holds a training: --resume"):
        training_run().train(replace(QUICK, epochs=1), folder=tmp_path)


def test_going_on_otherwise_is_refused(tmp_path: Path) -> None:
    training_run().train(replace(QUICK, epochs=1), folder=tmp_path)
    with pytest.raises(InputError, match=r"has gamma 0\.3, not 0\.5"):
        training_run().train(replace(QUICK, gamma=0.5), folder=tmp_path, resume=True)
    with pytest.raises(InputError, match="other videos, features or graphs"):
        training_run(recordings=20).train(QUICK, folder=tmp_path, resume=True)
    with pytest.raises(InputError, match="that training has graph expert, not mined"):
        replace(training_run(), source="mined").train(replace(QUICK), folder=tmp_path, resume=True)
    assert training_run().train(replace(QUICK, epochs=2), folder=tmp_path, resume=True).epoch == 2


def test_a_row_that_is_missing_in_the_log_is_written_again(tmp_path: Path) -> None:
    training_run().train(replace(QUICK, epochs=2), folder=tmp_path)
    whole = (tmp_path / "log.csv").read_text()
    (tmp_path / "log.csv").write_text("".join(whole.splitlines(keepends=True)[:-1]))
    training_run().train(replace(QUICK, epochs=2), folder=tmp_path, resume=True)
    assert (tmp_path / "log.csv").read_text() == whole


def test_validation_needs_labels() -> None:
    dataset = foreign(16)
    bare = replace(dataset, recordings=tuple(replace(one, annotations=()) for one in dataset.recordings))
    with pytest.raises(InputError, match="cannot be validated on videos without labels"):
        TrainingRun(bare, only_split(bare), "expert", True).train(QUICK)


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    training_run().train(replace(QUICK, epochs=1), folder=tmp_path)
    (weights,) = tmp_path.glob("best-*.safetensors")
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1])
    with pytest.raises(FormatError, match=r"best-1\.safetensors is damaged"):
        checkpoint.load(tmp_path)
    weights.write_bytes(whole)
    text = (tmp_path / checkpoint.NAME).read_text()
    (tmp_path / checkpoint.NAME).write_text(text.replace('"hidden": 24', '"hidden": 23'))
    with pytest.raises(FormatError, match="is damaged, or was made by another version"):
        checkpoint.load(tmp_path / checkpoint.NAME)
    (tmp_path / checkpoint.NAME).write_text(text.replace("graph2vid-features", "graph2vid-grounding"))
    with pytest.raises(FormatError, match="is not a graph2vid-features file"):
        checkpoint.load(tmp_path)


@dataclass(frozen=True)
class Spoilt:
    source: Any
    video: str
    value: float

    def embeddings(self, recording: Recording) -> Embeddings:
        found = self.source.embeddings(recording)
        if recording.id == self.video:
            found.clips[3, 2] = self.value
        return found


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_no_numbers_name_the_video(value: float) -> None:
    dataset = foreign(16)
    spoilt = replace(dataset, evidence=Spoilt(dataset.evidence, dataset.recordings[4].id, value))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=f"video {dataset.recordings[4].id}: the features of its clips hold NaN"):
        TrainingRun(spoilt, only_split(spoilt), "expert", False).train(QUICK)


def test_a_training_that_goes_astray_names_the_videos() -> None:
    whole = training_run()
    with pytest.raises(InputError, match=r"went astray .* videos task1_"):
        whole.train(replace(QUICK, rate=1e30))


def test_evidence_without_vectors_is_refused() -> None:
    dataset = replace(foreign(16), evidence=lambda recording: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(InputError, match="has no features to train"):
        list(embeddings_of(dataset, dataset.recordings))


def test_videos_too_short_for_their_steps_are_left_out() -> None:
    dataset = foreign(16)
    short = replace(dataset.recordings[0], n_clips=3)

    @dataclass(frozen=True)
    class Cut:
        def embeddings(self, recording: Recording) -> Embeddings:
            found = dataset.evidence.embeddings(dataset.recording(recording.id))  # type: ignore[attr-defined]
            return Embeddings(found.steps, found.clips[: recording.n_clips])

    cut = replace(dataset, recordings=(short, *dataset.recordings[1:]), evidence=Cut())  # type: ignore[arg-type]
    examples, left_out = TrainingRun(cut, only_split(cut), "expert", False).examples("graph")
    assert left_out == [f"video {short.id} has 3 clips for 7 steps"]
    assert len(examples) == len(only_split(cut).train) - 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"objective": "none"}, "objective must be one of bag, graph, linear, true-order, not 'none'"),
        ({"gamma": 0.0}, "gamma must be"),
        ({"rate": -1.0}, "rate must be a number above 0"),
        ({"match": "entropy"}, "match must be one of"),
        ({"objective": "bag", "clustering": 0.0}, "the clustering loss alone"),
        ({"every": 0}, "every must be a whole number of at least 1"),
        ({"drop": "prototype"}, "drop 'prototype' teaches nothing: background would take every clip; say prototype:30"),
        ({"drop": "prototype:30", "objective": "bag"}, "the bag of steps knows no background"),
        ({"drop": "percentile:150"}, "drop must be percentile:N with N from 0 to 100"),
        ({"seed": 2**70}, "seed must be a whole number"),
    ],
)
def test_impossible_options_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        preset("default", **changed)


def test_graphs_are_found_by_their_source() -> None:
    dataset = with_splits(foreign(16))
    assert len(dataset.splits) == 5
    assert with_graphs(dataset, None)[1] == "expert"
    assert with_graphs(dataset, "mined")[1] == "mined"
    with pytest.raises(InputError, match="has no graphs 'manual'; it has: expert, mined"):
        with_graphs(dataset, "manual")
