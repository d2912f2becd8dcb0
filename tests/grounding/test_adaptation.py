"""Task models: learnt from a small made-up corpus whose videos never say the words of the steps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import films
import graph2vid as g2v
from graph2vid.cli import main
from graph2vid.errors import FormatError, InputError
from graph2vid.evidence import Cue, TaskModel, Transcript, fit_logistic, softmax
from graph2vid.evidence.embed import EMBEDDERS, Embedder, Frames, Grid
from graph2vid.evidence.embed.frames import clips_by_frame
from graph2vid.flow import FlowGraph
from task_corpus import STEPS, made_up


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, list[tuple[int, float, float]]]:
    return made_up(tmp_path_factory.mktemp("corpus"), 18)


@pytest.fixture(scope="module")
def flow() -> FlowGraph:
    return FlowGraph.bag(STEPS)


def right(flow: FlowGraph, corpus: dict[Path, list[tuple[int, float, float]]], **options: object) -> float:
    """Return the mean share of the steps' seconds that are found, over the corpus."""
    shares = []
    for video, truth in corpus.items():
        found = g2v.ground(flow, video, cache=False, **options)
        for step, start, end in truth:
            parts = [part for part in found.segments if part.step == step]
            shares.append(sum(max(0.0, min(p.end, end) - max(p.start, start)) for p in parts) / (end - start))
    return float(np.mean(shares))


@pytest.mark.filterwarnings("ignore:the transcript hardly")
def test_labels_teach_words_that_the_procedure_does_not_have(flow: FlowGraph, corpus: dict, tmp_path: Path) -> None:
    train, test = dict(list(corpus.items())[:12]), dict(list(corpus.items())[12:])
    labels = {path.name: truth for path, truth in train.items()}
    model = g2v.adapt(flow, list(train), annotations=labels, cache=False)
    assert model.about["videos"] == model.about["labelled"] == 12
    assert model.about["chosen"] == "labelled" and model.about["gain"][0] > 0
    assert {"slot", "pops", "lever", "slices", "push", "golden"} & set(model.about["words"][1])
    model.save(tmp_path / "task.safetensors")
    again = TaskModel.load(tmp_path / "task.safetensors")
    assert again.about == model.about and again.steps == tuple(STEPS)
    before, after = right(flow, test), right(flow, test, adapted=tmp_path / "task.safetensors")
    assert after > before + 0.05
    found = g2v.ground(flow, next(iter(test)), cache=False, adapted=again)
    assert found.options["narration"]["adapted"]["chosen"] == "labelled"
    assert found.options["calibration"]["evidence"] == "task model"
    assert all(0 <= (part.confidence or 0) <= 1 for part in found.segments)


@pytest.mark.filterwarnings("ignore:the transcript hardly")
def test_without_labels_the_graph_teaches(flow: FlowGraph, corpus: dict) -> None:
    model = g2v.adapt(flow, list(corpus), cache=False)
    assert model.about["chosen"] == "unlabelled" and model.labelled is None
    assert right(flow, corpus, adapted=model) >= right(flow, corpus) - 0.02
    found = g2v.ground(flow, next(iter(corpus)), cache=False, adapted=model)
    assert found.options["calibration"] is None  # what comes with graph2vid was fitted on other evidence


@pytest.mark.filterwarnings("ignore:the transcript hardly")
def test_too_little_to_learn_from_leaves_the_general_evidence(flow: FlowGraph, corpus: dict) -> None:
    few = dict(list(corpus.items())[:3])
    model = g2v.adapt(
        flow, list(few), annotations={path.stem: truth for path, truth in list(few.items())[:2]}, cache=False
    )
    assert model.about["chosen"] == "general" and model.about["labelled"] == 2
    video = next(iter(few))
    labels = [g2v.ground(flow, video, cache=False, adapted=one).labels for one in (None, model)]
    assert np.array_equal(*labels)


COLOURS = [(200, 60, 60), (60, 200, 60), (60, 60, 200), (120, 120, 120)]  # of the three steps, and of background


def colours(_: str) -> Embedder:
    """An embedder to which the texts of all steps are alike: nothing but examples tells their colours."""

    def of_texts(texts: Sequence[str]) -> Any:
        return np.full((len(texts), 3), 1.0)

    def of_clips(frames: Frames, grid: Grid) -> Any:
        def prepare(image: Any) -> Any:
            return image.mean(axis=(0, 1)) - 100.0

        return clips_by_frame(frames, grid, prepare, np.array, rate=2.0, dimension=3)

    return Embedder("colours", "1", 3, text_function=of_texts, clip_function=of_clips, joint=True)


def test_labels_teach_what_frames_show(flow: FlowGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("av", reason="needs graph2vid[media]")
    monkeypatch.setitem(EMBEDDERS._parts, "colours", colours)
    random, videos = np.random.default_rng(3), {}
    for number in range(8):
        seconds: list[int] = []
        truth = []
        for step in map(int, random.permutation(3)):
            seconds += [3] * int(random.integers(4, 12))
            lasts = int(random.integers(8, 16))
            truth.append((step, float(len(seconds)), float(len(seconds) + lasts)))
            seconds += [step] * lasts
        images = [np.full((32, 48, 3), COLOURS[shown], dtype=np.uint8) for shown in seconds]
        videos[films.film(tmp_path / f"v{number}.mp4", [float(at) for at in range(len(images))], images=images)] = truth
    train, test = list(videos)[:6], {path: videos[path] for path in list(videos)[6:]}
    asked = {"frames": "colours", "on_screen": "off"}
    labels = {path.name: videos[path] for path in train}
    model = g2v.adapt(flow, train, annotations=labels, cache=False, **asked)
    assert model.about["chosen"] == "labelled" and model.about["words"] == [[], [], []]
    model.save(tmp_path / "task.safetensors")
    again = TaskModel.load(tmp_path / "task.safetensors")
    assert (again.frames, again.frames_version) == ("colours", "1")
    assert right(flow, test, adapted=again, **asked) > 0.9 > right(flow, test, **asked) + 0.2
    with pytest.raises(InputError, match="trained with frames by colours 1, not without frames"):
        g2v.ground(flow, Transcript((Cue(0, 3, "eggs"),), 30.0, "captions"), cache=False, adapted=again)
    with pytest.raises(InputError, match="video 1 is a transcript, which has no frames"):
        g2v.adapt(flow, [Transcript((Cue(0, 3, "eggs"),), 30.0, "captions")], cache=False, **asked)


def test_wrong_use_is_refused(flow: FlowGraph, corpus: dict, tmp_path: Path) -> None:
    videos = list(corpus)[:5]
    model = g2v.adapt(flow, videos, cache=False)
    path = tmp_path / "task.safetensors"
    model.save(path)
    with pytest.raises(InputError, match=r"another procedure.*step 1 is 'crack the eggs' there"):
        g2v.ground(FlowGraph.bag(["something else", *STEPS[1:]]), videos[0], cache=False, adapted=path)
    other = TaskModel(**(vars(model) | {"embedder": "st:other"}))
    with pytest.raises(InputError, match="trained with the embedder st:other"):
        g2v.ground(flow, videos[0], cache=False, adapted=other)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(FormatError, match="not a whole safetensors file"):
        g2v.ground(flow, videos[0], cache=False, adapted=path)
    with pytest.raises(InputError, match="leave out narration_weight, or adapted"):
        g2v.ground(flow, videos[0], cache=False, adapted=model, narration_weight=0.5)
    with pytest.raises(InputError, match=r"'nobody', which is none of the 5 videos"):
        g2v.adapt(flow, videos, annotations={"nobody": [(0, 0, 5)]}, cache=False)
    with pytest.raises(InputError, match="there is no step 7"):
        g2v.adapt(flow, videos, annotations={videos[0].name: [(7, 0, 5)]}, cache=False)


def test_the_command_reads_tables_of_annotations(flow: FlowGraph, corpus: dict, tmp_path: Path, capsys) -> None:
    flow.save(tmp_path / "flow.json")
    rows = [f"{path.name},{STEPS[step]},{start},{end}" for path, truth in corpus.items() for step, start, end in truth]
    (tmp_path / "labels.csv").write_text("\n".join(["video,step,start,end", *rows]))
    out, told = tmp_path / "task.safetensors", tmp_path / "told.json"
    command = ["adapt", str(tmp_path / "flow.json"), *map(str, corpus), "--annotations", str(tmp_path / "labels.csv")]
    assert main([*command, "-o", str(out), "--json", str(told)]) == 0
    assert json.loads(told.read_text())["labelled"] == 18
    assert "18 videos, 18 of them labelled: learnt from labels" in capsys.readouterr().out
    video = str(next(iter(corpus)))
    assert (
        main(["ground", str(tmp_path / "flow.json"), video, "--adapted", str(out), "-o", str(tmp_path / "r.json")]) == 0
    )


def test_the_regression_agrees_with_gradient_descent() -> None:
    random = np.random.default_rng(0)
    inputs = np.concatenate([np.ones((200, 1)), random.normal(size=(200, 4))], axis=1)
    target = softmax(inputs @ random.normal(size=(5, 3)))
    ridge = np.array([0.1, 2.0, 2.0, 2.0, 2.0])
    weights = fit_logistic(inputs, target, ridge)
    gradient = inputs.T @ (softmax(inputs @ weights) - target) + ridge[:, None] * weights
    assert np.abs(gradient).max() < 0.05
