"""Graphs with evidence that is adapted to the task by its training videos: what labels are worth, and none.

A video is tested with what the training part of its split teaches. All training videos of its task are there without
labels; of how many the labels are known is the question.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graph2vid._evaluation_options import EvaluationOptions
from graph2vid.datasets import Dataset, Narration, Recording, Task
from graph2vid.errors import InputError, TooLargeError
from graph2vid.evaluate.extended import LearntCosts, nested_result
from graph2vid.evaluate.intervals import defined_mean
from graph2vid.evaluate.labels import Labels
from graph2vid.evaluate.methods import Method, MethodResult, Plan, Training, Video, true_labels
from graph2vid.evidence import (
    Costs,
    Grid,
    clip_vectors,
    costs_from_arrays,
    fit_logistic,
    narration_evidence,
    read_captions,
    softmax,
    text_embedder,
)
from graph2vid.flow import FlowGraph
from graph2vid.grounding import TaskVideo, learn_task
from graph2vid.tsort import TSortGraph

DRAWS = 3
"""How often the labelled videos are drawn."""

_KEPT = 2048  # videos in a process

Adapted = tuple[NDArray[Any], NDArray[Any]]
"""Scores [K, N] and skip costs [K]."""


class Runner(Protocol):
    """What runs methods over videos: see the engine."""

    @property
    def options(self) -> EvaluationOptions:
        """How videos are evaluated."""

    @property
    def each(self) -> Any:
        """A ``map`` over processors."""

    @property
    def tell(self) -> Any:
        """Is told how far the work is."""

    def run(self, name: str, method: Method, videos: Sequence[Video]) -> MethodResult:
        """Run one method on videos."""


def adapted_results(
    name: str, method: Method, videos: Sequence[Video], costs: LearntCosts, runner: Runner
) -> Iterator[tuple[str, MethodResult]]:
    """Yield what a graph does with adapted evidence, for each amount of labels in turn."""
    amounts = [amount for amount in runner.options.adapt if amount != "none"]
    if not amounts:
        return
    training = costs.training
    evidence = training.dataset.evidence
    if not isinstance(evidence, Narration):
        yield from _context_results(name, method, videos, costs, runner)
        return
    if evidence.narration != "weighed":
        raise InputError(f"{training.dataset.name}: task models are learnt from captions that are weighed")
    lessons = _lessons(method, videos, training, amounts)
    found: dict[str, list[dict[str, Adapted]]] = {amount: [{} for _ in range(_draws(amount))] for amount in amounts}
    for done, learnt in enumerate(runner.each(_learn, lessons), start=1):
        runner.tell(f"{name}: task models", done, len(lessons))
        for amount, draws in learnt.items():
            for whole, part in zip(found[amount], draws, strict=True):
                whole |= part
    for amount, draws in found.items():
        title = f"{name}+adapt:{amount}"
        results = [runner.run(title, method, [_with_evidence(video, draw) for video in videos]) for draw in draws]
        yield title, _mean_result(results)


def _draws(amount: str) -> int:
    return DRAWS if amount.isdecimal() else 1


def _mean_result(results: Sequence[MethodResult]) -> MethodResult:
    """Return the first result with the means of all over the draws as its metrics."""
    first = results[0]
    for at, metrics in first.metrics.items():
        rows = [result.metrics[at] for result in results]
        first.metrics[at] = {name: defined_mean([row[name] for row in rows]) for name in metrics}
    first.seconds = sum(result.seconds for result in results) / len(results)
    return first


def _with_evidence(video: Video, adapted: Mapping[str, Adapted]) -> Video:
    if video.recording.id not in adapted:
        return video
    scores, skip = adapted[video.recording.id]
    costs: Costs = costs_from_arrays(scores=scores.astype(np.float32), preset="log_odds", skip=skip.astype(np.float32))
    evidence = video.evidence
    return replace(video, prepared=lambda _: (evidence, costs))


# -- scores --------------------------------------------------------------------------------------------------

_WIDTHS = (2.0, 8.0)  # seconds over which scores are smoothed
_MOST_ROWS = 1.0  # seconds between the clips that are learnt from
_RIDGE = 10.0
_SHARES = (0.15, 0.3, 0.0, 0.6, 1.0)  # of the context's log-probabilities beside the scores; tried from the middle on
_LENGTHS = (0.25, 1.0, 0.0, 4.0)  # the weight of durations, likewise


def _context_results(
    name: str, method: Method, videos: Sequence[Video], costs: LearntCosts, runner: Runner
) -> Iterator[tuple[str, MethodResult]]:
    """Yield what a graph does with given scores, their context and durations, each alone and both together.

    Context models and durations are learnt from the training videos of each split; how much they count is chosen by
    nested cross-validation.
    """
    if set(runner.options.adapt) - {"none", "all"} or any(
        video.evidence.kind != "scores" or video.split is None for video in videos
    ):
        raise InputError("with given scores a context model learns from all labels of the training split: --adapt all")
    known = {video.recording.id: video for video in videos}
    models: dict[str, NDArray[Any]] = {}

    def run(title: str, weights: Mapping[str, float], some: Sequence[Video]) -> MethodResult:
        mixed = []
        for video in some:
            assert video.split is not None
            if video.split.name not in models:
                train = set(video.split.train) - set(video.split.test)
                models[video.split.name] = _fit_context([known[one] for one in sorted(train & known.keys())])
            mixed.append(_mixed(video, models[video.split.name], weights["context"]))
        lasting = {"durations": weights["durations"]} if weights["durations"] else {}
        return runner.run(title, costs.method(method, lasting) if lasting else method, mixed)

    tuned = runner.options.tune_for or ("acc", "iou_strict")
    for title, lengths in ((f"{name}+adapt:context", (0.0,)), (f"{name}+adapt:all", _LENGTHS)):
        yield title, nested_result(title, {"context": _SHARES, "durations": lengths}, run, videos, tuned)


def _log_shares(video: Video) -> NDArray[Any]:
    """Return the log-probabilities of the steps, and of background last where it has scores [N, K or K + 1]."""
    evidence = video.evidence
    rows = [evidence.similarity, *([] if evidence.background is None else [evidence.background[np.newaxis]])]
    scores = np.concatenate(rows).T.astype(np.float64)
    scores -= scores.max(axis=1, keepdims=True)
    found: NDArray[Any] = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return found


def _context(video: Video) -> NDArray[Any]:
    """Return the context of each clip [N, F]: smoothed scores, their past and future maxima, the place in the video."""
    logs = _log_shares(video)
    inputs = [np.ones((len(logs), 1)), np.maximum(logs, -8.0) / 4.0]
    for seconds in _WIDTHS:
        half = max(1, round(3 * seconds / video.recording.clip_seconds))
        bell = np.exp(-0.5 * (np.arange(-half, half + 1) * video.recording.clip_seconds / seconds) ** 2)
        weight = np.convolve(np.ones(len(logs)), bell)[half : half + len(logs)]
        smooth = np.stack([np.convolve(row, bell)[half : half + len(logs)] / weight for row in np.exp(logs).T], axis=1)
        inputs.append(2.0 * smooth)
    past = np.maximum.accumulate(smooth, axis=0)
    future = np.maximum.accumulate(smooth[::-1], axis=0)[::-1]
    place = ((np.arange(len(logs)) + 0.5) / len(logs))[:, np.newaxis]
    return np.concatenate([*inputs, 2.0 * past, 2.0 * future, place, place**2], axis=1).astype(np.float32)


def _fit_context(videos: Sequence[Video]) -> NDArray[Any]:
    """Return the weights of a context model [F, K + 1]; the last column is background."""
    inputs, targets = [], []
    for video in videos:
        some = slice(0, None, max(1, round(_MOST_ROWS / video.recording.clip_seconds)))
        shown = procedure_truth(video.task, video.truth).T[some].astype(np.float32)
        shown /= np.maximum(shown.sum(axis=1, keepdims=True), 1.0)
        targets.append(np.concatenate([shown, 1.0 - shown.sum(axis=1, keepdims=True)], axis=1))
        inputs.append(_context(video)[some])
    rows = np.concatenate(inputs)
    ridge = np.full(rows.shape[1], _RIDGE)
    ridge[0] = 0.1
    return fit_logistic(rows, np.concatenate(targets), ridge)


def _mixed(video: Video, weights: NDArray[Any], share: float) -> Video:
    """Return a video to whose scores a share of the log-probabilities is added that its context gives."""
    if share == 0.0:
        return video
    evidence = video.evidence
    says = np.log(np.maximum(softmax(_context(video).astype(np.float64) @ weights), 1e-6))
    steps = len(evidence.similarity)
    mixed = evidence.similarity + share * says[:, :steps].T
    similarity = np.ascontiguousarray(mixed, dtype=evidence.similarity.dtype)
    costs = costs_from_arrays(scores=similarity, preset="paper")
    return replace(video, prepared=lambda _: (replace(evidence, similarity=similarity), costs))


# -- narration -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Lesson:
    """What one fold of one task is to learn, and the videos to apply it to."""

    dataset: Dataset
    task: Task
    flow: FlowGraph
    train: tuple[Recording, ...]
    test: tuple[Recording, ...]
    split: str
    amounts: tuple[str, ...]


def _lessons(method: Method, videos: Sequence[Video], training: Training, amounts: Iterable[str]) -> list[_Lesson]:
    members: dict[tuple[str, str], list[Video]] = {}
    for video in videos:
        members.setdefault((video.task.id, "" if video.split is None else video.split.name), []).append(video)
    found = []
    for (_, split), some in members.items():
        plan, train = method(some[0]), training.recordings(some[0].task, some[0].split)
        if isinstance(plan, Plan) and train and not plan.flow.has_choices:
            sides = tuple(train), tuple(video.recording for video in some)
            found.append(_Lesson(training.dataset, some[0].task, plan.flow, *sides, split, tuple(amounts)))
    return found


def _learn(lesson: _Lesson) -> dict[str, list[dict[str, Adapted]]]:
    """Return the adapted evidence of the test videos of a fold, by the amount of labels, draw by draw."""
    dataset = lesson.dataset
    assert isinstance(dataset.evidence, Narration)
    embedder = text_embedder(dataset.evidence.embedder)
    videos = [_task_video(recording.id, _Key(dataset)) for recording in lesson.train]
    tested = [_task_video(recording.id, _Key(dataset)) for recording in lesson.test]
    try:
        procedure = TSortGraph.compile(lesson.flow)
        plain = learn_task(procedure, [replace(video, truth=None) for video in videos], embedder)
    except TooLargeError:  # the method says so itself
        return {amount: [{} for _ in range(_draws(amount))] for amount in lesson.amounts}
    found: dict[str, list[dict[str, Adapted]]] = {}
    for amount in lesson.amounts:
        found[amount] = []
        for draw in range(_draws(amount)):
            model = plain
            if amount != "unlabelled":
                chosen = _drawn(lesson, len(videos) if amount == "all" else int(amount), draw)
                some = [v if v.name in chosen else replace(v, truth=None) for v in videos]
                model = learn_task(procedure, some, embedder, calibrate=False, start=plain)
            found[amount].append({one.name: model.apply(one.vectors, one.log_odds, one.skip) for one in tested})
    return found


def _drawn(lesson: _Lesson, count: int, draw: int) -> set[str]:
    """Return the ids of training videos whose labels are known; with one seed a larger number holds a smaller one."""
    seed = zlib.crc32(f"{lesson.task.id} {lesson.split} {draw}".encode())
    names = sorted(recording.id for recording in lesson.train)
    return {names[at] for at in np.random.default_rng(seed).permutation(len(names))[:count]}


class _Key:
    """A dataset as a key of what is kept in a process: by its name and options, since each task brings a copy."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self._key = (dataset.name, repr(sorted(dataset.options.items())), len(dataset.recordings))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other._key == self._key


@lru_cache(maxsize=_KEPT)
def _task_video(name: str, key: _Key) -> TaskVideo:
    dataset = key.dataset
    recording, captions = dataset.recording(name), dataset.evidence
    assert isinstance(captions, Narration)
    task = dataset.tasks[recording.task]
    cues = read_captions(captions.files[recording.notes["video"]])
    embed = text_embedder(captions.embedder)
    seconds, n_clips, offset = recording.clip_seconds, recording.n_clips, recording.offset
    general = narration_evidence(task.procedure, cues, n_clips, embed, clip_seconds=seconds, offset=offset)
    vectors, length = clip_vectors(cues, embed, Grid(seconds, n_clips, offset))
    truth = procedure_truth(task, true_labels(dataset, recording))
    return TaskVideo(name, vectors, length, general.log_odds, general.skip, recording.clip_seconds, truth)


def procedure_truth(task: Task, labels: Labels) -> NDArray[np.bool_]:
    """Return whether each clip shows each step of the procedure [K, N]."""
    stands = np.zeros((len(task.steps) + 1, len(task.procedure)), dtype=np.bool_)
    for step, instructions in enumerate(task.correspondence):
        stands[step, list(instructions)] = True
    return np.ascontiguousarray(stands[labels].T)  # label -1 reads the last row
