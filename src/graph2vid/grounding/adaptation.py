"""``adapt``: a task model from the videos of one procedure, labelled or not.

Without labels the graph teaches the words (co-training): posteriors of the general evidence are the targets of a model
of words, what it finds is added to the evidence, and once more. With labels a second model starts from that evidence.
Whether it is used, and from which probability on a clip counts, is decided by cross-validation among the labelled
videos.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid import evidence as acquisition
from graph2vid._options import GroundOptions
from graph2vid.alignment import Problem, align_many
from graph2vid.errors import InputError
from graph2vid.evidence import (
    Cache,
    Embedder,
    Labelled,
    TaskModel,
    Transcript,
    VisualFeatures,
    fit_logistic,
    labelled_inputs,
    softmax,
    start_logits,
)
from graph2vid.flow import FlowGraph, unknown_step
from graph2vid.grounding.calibrator import Calibrator, Example, observe
from graph2vid.grounding.grounding_result import Grounding
from graph2vid.grounding.grounding_service import procedure_of
from graph2vid.tsort import TSortGraph

Floats = NDArray[np.floating[Any]]
Truth = NDArray[np.bool_]
Annotations: TypeAlias = "Mapping[str, Iterable[tuple[int | str, float, float]]] | Iterable[Grounding]"

EVIDENCE = "task model"
"""The kind of evidence of a labelled task model, for calibrators."""

LEAST_VIDEOS = 5
"""Fewer videos without labels teach nothing."""
LEAST_LABELLED = 3
"""Fewer labelled ones do harm, and cannot be checked against each other."""
THRESHOLDS = (0.06, 0.08, 0.1, 0.12, 0.15)
_THRESHOLD = 0.08  # unless another one is clearly better

_GAMMA = 4.0  # of the posteriors that teach: clips are not independent
_ROUNDS = 2
_WORDS_RIDGE = 3.0
_LEVEL_RIDGE, _PART_RIDGE = 30.0, 10.0  # of the labelled model: its constant, and the evidence
_EVERY = 4.0  # seconds between the clips that are learnt from, whose cues overlap
_FOLDS = 5
_LEAST_PRIOR = 1e-3
_MOST_WORDS, _LEAST_COUNT = 8, 3


@dataclass(frozen=True, eq=False)
class TaskVideo:
    """A video to learn from, or to apply what was learnt to.

    Attributes
    ----------
    name : str
    vectors : float32 [N, D]
        Of the transcript around each clip, and of its frames (:func:`graph2vid.evidence.clip_vectors`).
    length : float
        The mean length of the embeddings of its cues.
    log_odds : float64 [K, N]
        Of the general evidence.
    skip : float64 [K]
    clip_seconds : float
    truth : bool [K, N] or None
        Whether each clip shows each step; None: not annotated.
    """

    name: str
    vectors: Floats
    length: float
    log_odds: Floats
    skip: NDArray[np.float64]
    clip_seconds: float = 1.0
    truth: Truth | None = None

    @property
    def some(self) -> slice:
        """The clips that are learnt from."""
        every = max(1, round(_EVERY / self.clip_seconds))
        return slice(every // 2, None, every)


def learn_task(
    procedure: FlowGraph | TSortGraph,
    videos: Sequence[TaskVideo],
    embedder: Embedder,
    *,
    calibrate: bool = True,
    start: TaskModel | None = None,
    frames: Embedder | None = None,
) -> TaskModel:
    """Learn a task model.

    Parameters
    ----------
    procedure : FlowGraph or TSortGraph
    videos : sequence of TaskVideo
        All teach what the words mean; those with ``truth`` are the labelled ones.
    embedder : Embedder
        What the vectors of words are from.
    calibrate : bool
        Whether to fit a calibrator on the labelled videos.
    start : TaskModel, optional
        What was learnt from the same videos without labels, if that is known.
    frames : Embedder, optional
        What the visual features are from, if there are any.

    Returns
    -------
    TaskModel
        Where too little is known, one that leaves the general evidence as it is.
    """
    flow = procedure if isinstance(procedure, FlowGraph) else procedure.flow
    told = [video for video in videos if video.vectors.any()]
    scale = acquisition.LENGTH / float(np.mean([video.length for video in told])) if told else 1.0
    prior = np.ones(len(flow), dtype=np.float32)
    model = TaskModel(flow.title, flow.texts, embedder.name, embedder.version, scale, None, prior)
    if frames is not None:
        model = replace(model, frames=frames.name, frames_version=frames.version)
    about: dict[str, Any] = {"videos": len(told), "labelled": 0, "chosen": "general"}
    if len(told) >= LEAST_VIDEOS:
        model = start or _co_trained(procedure, told, model)
        about["chosen"] = "unlabelled"
    labelled = [video for video in told if video.truth is not None and video.truth.any()]
    about["labelled"] = len(labelled)
    if len(labelled) >= LEAST_LABELLED:
        model, found = _with_labels(procedure, labelled, model, calibrate)
        about |= found
    return replace(model, about=about)


def _co_trained(procedure: FlowGraph | TSortGraph, videos: Sequence[TaskVideo], model: TaskModel) -> TaskModel:
    """Return the model with words that posteriors taught."""
    rows = [np.pad(model.scale * video.vectors[video.some], ((0, 0), (1, 0)), constant_values=1.0) for video in videos]
    inputs = np.concatenate(rows)
    ridge = np.full(inputs.shape[1], _WORDS_RIDGE)
    ridge[0] = _LEAST_PRIOR
    for _ in range(_ROUNDS):
        targets = []
        for video in videos:
            odds, skip = model.apply(video.vectors, video.log_odds, video.skip)
            posterior = Problem(procedure, -odds, np.zeros(odds.shape[1]), skip).posterior(_GAMMA)
            targets.append(posterior.probability.T[video.some])
        target = np.concatenate(targets)
        words = fit_logistic(inputs, target, ridge)
        model = replace(model, words=words, prior=np.maximum(target.mean(axis=0)[:-1], _LEAST_PRIOR).astype(np.float32))
    return model


# -- labels --------------------------------------------------------------------------------------------------


def _with_labels(
    procedure: FlowGraph | TSortGraph, videos: Sequence[TaskVideo], model: TaskModel, calibrate: bool
) -> tuple[TaskModel, dict[str, Any]]:
    """Return the model with what labels teach, if that is no worse; and what cross-validation says."""
    rows = {video.name: _inputs(model, video) for video in videos}
    folds = min(_FOLDS, len(videos))
    probability = {}
    for fold in range(folds):
        part = _fit_labelled([video for at, video in enumerate(videos) if at % folds != fold], rows)
        for video in videos[fold::folds]:
            probability[video.name] = part.probabilities(model.scale * video.vectors, _evidence(model, video))
    whole = _fit_labelled(videos, rows)
    plain = replace(model, words=None)
    ways: dict[str, list[tuple[Floats, Floats]]] = {
        "general": [plain.apply(video.vectors, video.log_odds, video.skip) for video in videos],
        "unlabelled": [model.apply(video.vectors, video.log_odds, video.skip) for video in videos],
    }
    none = np.zeros(len(model.steps))
    for threshold in THRESHOLDS:
        cut = replace(whole, threshold=threshold)
        ways[f"{threshold:g}"] = [(cut.scores(probability[video.name]), none) for video in videos]
    scores = {name: _scores(procedure, videos, found) for name, found in ways.items()}
    chosen = f"{_THRESHOLD:g}"
    for name in sorted(scores, key=lambda name: -float(np.mean(scores[name]))):
        gain = scores[name] - scores[chosen]
        if gain.mean() > gain.std(ddof=1) / math.sqrt(len(gain)):  # by more than one standard error
            chosen = name
            break
    gained = 100 * (scores[chosen] - scores["general"])
    error = float(gained.std(ddof=1) / math.sqrt(len(gained)))
    means = {name: round(100 * float(np.mean(of_way)), 2) for name, of_way in scores.items()}
    told: dict[str, Any] = {
        "chosen": chosen if chosen in ("general", "unlabelled") else "labelled",
        "cross_validated_iou": means,
        "gain": [round(float(gained.mean()), 2), round(error, 2)],
    }
    if chosen == "general":
        return plain, told
    if chosen == "unlabelled":
        return model, told
    found = replace(model, labelled=replace(whole, threshold=float(chosen)))
    if calibrate:
        examples = [_example(procedure, video, *way) for video, way in zip(videos, ways[chosen], strict=True)]
        if sum(len(one.right) for one in examples) >= 2 * len(videos):
            fitted = Calibrator.fit(examples, EVIDENCE, about={"examples": {"labelled videos": len(videos)}})
            found = replace(found, calibration=fitted.to_json())
    return found, told


def _evidence(model: TaskModel, video: TaskVideo) -> Floats:
    """Return the log-odds that labels start from [K, N]."""
    return model.apply(video.vectors, video.log_odds, video.skip)[0]


def _inputs(model: TaskModel, video: TaskVideo) -> tuple[Floats, Floats, Floats]:
    """Return the inputs, the evidence and the targets of the clips to learn from."""
    assert video.truth is not None
    inputs, evidence = labelled_inputs(model.scale * video.vectors, _evidence(model, video))
    shown = video.truth.T[video.some].astype(np.float32)
    shown /= np.maximum(shown.sum(axis=1, keepdims=True), 1.0)  # an instruction among several
    target = np.concatenate([shown, 1.0 - shown.sum(axis=1, keepdims=True)], axis=1)
    return inputs[video.some], evidence[video.some], target


def _fit_labelled(videos: Sequence[TaskVideo], rows: Mapping[str, tuple[Floats, Floats, Floats]]) -> Labelled:
    inputs, evidence, target = (np.concatenate(part) for part in zip(*(rows[v.name] for v in videos), strict=True))
    level, slope = _fit_start(evidence, target)
    n_steps = evidence.shape[1]
    n_words = inputs.shape[1] - 1 - n_steps
    ridge = np.concatenate([[_LEVEL_RIDGE], np.full(n_words, _WORDS_RIDGE), np.full(n_steps, _PART_RIDGE)])
    weights = fit_logistic(inputs, target, ridge, start_logits(evidence, level, slope))
    return Labelled(level, slope, weights, _THRESHOLD)


def _fit_start(evidence: Floats, target: Floats) -> tuple[float, float]:
    """Return the level and the slope that make log-odds probabilities, the same for all steps, by Newton's method."""
    usual, hold = np.array([-3.0, 0.6]), np.array([0.01, 20.0])
    found = usual.copy()
    part = np.stack([np.ones(evidence.shape), evidence.astype(np.float64)])  # [2, M, K]
    for _ in range(20):
        chance = softmax(start_logits(evidence, *found).astype(np.float64))[:, :-1]
        slope = ((chance - target[:, :-1]) * part).sum(axis=(1, 2)) + hold * (found - usual)
        mean = (chance * part).sum(axis=2)
        curvature = np.einsum("mk,amk,bmk->ab", chance, part, part) - mean @ mean.T + np.diag(hold)
        step = np.linalg.solve(curvature, slope)
        found -= step
        if np.abs(step).max() < 1e-5:
            break
    return float(found[0]), float(found[1])


def _scores(procedure: Any, videos: Sequence[TaskVideo], ways: Sequence[tuple[Floats, Floats]]) -> Floats:
    """Return the IoU of each video, aligned with these log-odds and skip costs."""
    match = [np.ascontiguousarray(-odds, dtype=np.float64) for odds, _ in ways]
    drop = [np.zeros(one.shape[1]) for one in match]
    skip = [np.asarray(skip, dtype=np.float64) for _, skip in ways]
    found = align_many([procedure] * len(videos), match, drop, skip, True, workers=1)
    return np.array([_iou(one.labels, video.truth) for one, video in zip(found, videos, strict=True)])


def _iou(labels: NDArray[np.int64], truth: Truth | None) -> float:
    """Return Σ intersections / Σ unions over the steps that the video shows."""
    assert truth is not None
    stated = np.append(truth.any(axis=1), False)[labels]
    right = stated & truth[labels, np.arange(len(labels))]
    union = stated.sum() + truth.any(axis=0).sum() - right.sum()
    return float(right.sum() / union)


def _example(procedure: Any, video: TaskVideo, odds: Floats, skip: Floats) -> Example:
    """Return a labelled video as a calibrator sees it."""
    assert video.truth is not None
    problem = Problem(procedure, -np.asarray(odds, np.float64), np.zeros(odds.shape[1]), np.asarray(skip, np.float64))
    found = problem.align()
    observed = observe(problem, found, clip_seconds=video.clip_seconds)
    right = [video.truth[part.step, part.start : part.stop].mean() for part in found.segments]
    absent = np.array([not shown.any() for shown in video.truth], dtype=np.float64)
    return Example(observed, np.array(right, np.float64), absent, video.truth)


# -- from files ----------------------------------------------------------------------------------------------


def adapt(
    procedure: Any,
    videos: Sequence[str | os.PathLike[str] | Transcript],
    *,
    annotations: Annotations = (),
    cache: Cache | bool = True,
    progress: Callable[..., None] | None = None,
    **options: Any,
) -> TaskModel:
    """Learn a task model from videos of one procedure, for ``ground(…, adapted=…)``.

    Parameters
    ----------
    procedure : path, str, Procedure, FlowGraph or TSortGraph
        As for :func:`graph2vid.ground`.
    videos : sequence of path or Transcript
        Media files, captions or transcripts; none of them needs labels.
    annotations : mapping, or iterable of Grounding
        What some of them show: by the name of the video (its path, file name, or file name without suffix) triples of a
        step (its index, id or text), its start and its end in seconds. Or groundings that were corrected, with
        ``video`` set. A step that is not mentioned is not shown.
    cache : Cache or bool
        As for :func:`graph2vid.ground`.
    progress : callable, optional
        Called as (stage, done, total).
    **options
        Fields of ``ProcedureOptions`` and ``EvidenceOptions``.

    Returns
    -------
    TaskModel
        ``about`` says what it was trained on, which words speak for which step, and what it gains.

    Examples
    --------
    >>> import graph2vid as g2v
    >>> model = g2v.adapt("recipe.txt", ["a.vtt", "b.vtt", "c.vtt"])  # doctest: +SKIP
    >>> model.save("task.safetensors")  # doctest: +SKIP
    >>> found = g2v.ground("recipe.txt", "d.vtt", adapted=model)  # doctest: +SKIP
    """
    chosen = GroundOptions.from_mapping(options, text=False)
    asked = chosen.evidence
    if asked.narration_weight != 1 or asked.extra_scores is not None:
        raise InputError("a task model is learnt from words and frames: leave out narration_weight and extra_scores")
    found = procedure_of(procedure, chosen.procedure.parser)
    flow = found if isinstance(found, FlowGraph) else found.flow
    kept = (Cache() if cache else None) if isinstance(cache, bool) else cache
    embedder = acquisition.text_embedder(asked.embedder)
    tell = progress or (lambda *_: None)
    labels = _labels_of(flow, annotations)
    read: list[TaskVideo] = []
    frames: Embedder | None = None
    vocabulary: Counter[str] = Counter()
    used: set[str] = set()
    for done, video in enumerate(videos, start=1):
        tell("reading the videos", done, len(videos))
        name = f"video {done}" if isinstance(video, Transcript) else os.fspath(video)
        if isinstance(video, Transcript):
            if asked.frames is not None:
                raise InputError(f"{name} is a transcript, which has no frames: give the video itself")
            given, visual = video, None
        else:
            given, visual = acquisition.acquire(video, None, asked, cache=kept)
        frames = visual.embedder if visual is not None else None
        key = next((one for one in (name, Path(name).name, Path(name).stem) if one in labels), None)
        used |= set() if key is None else {key}
        rows = None if key is None else labels[key]
        read.append(_task_video(name, flow, (given, visual), embedder, asked, rows, kept))
        vocabulary.update(word for cue in given.cues for word in set(acquisition.content_words(cue.text)))
    if missing := sorted(set(labels) - used):
        raise InputError(f"there are annotations of {missing[0]!r}, which is none of the {len(read)} videos")
    tell("learning", 0, 1)
    model = learn_task(found, read, embedder, frames=frames)
    return replace(model, about=model.about | {"words": speaking_words(model, vocabulary, embedder)})


def _task_video(
    name: str,
    flow: FlowGraph,
    acquired: tuple[Transcript, VisualFeatures | None],
    embedder: Embedder,
    asked: Any,
    rows: Any,
    cache: Cache | None,
) -> TaskVideo:
    transcript, visual = acquired
    general = acquisition.media_evidence(flow, transcript, visual, replace(asked, adapted=None), cache=cache)
    odds = general.arrays["scores"]
    n_clips = odds.shape[1]
    grid = acquisition.Grid(asked.clip_seconds, n_clips, 0.0)
    clips = None if visual is None else visual.clips
    vectors, length = acquisition.clip_vectors(general.cues, embedder, grid, clips)
    truth = None
    if rows is not None:
        truth = np.zeros(odds.shape, dtype=np.bool_)
        middles = asked.clip_seconds * (np.arange(n_clips) + 0.5)
        for step, start, end in rows:
            truth[step] |= (middles >= start) & (middles < end)
    assert general.skip is not None
    return TaskVideo(name, vectors, length, odds, general.skip, asked.clip_seconds, truth)


def _labels_of(flow: FlowGraph, annotations: Annotations) -> dict[str, list[tuple[int, float, float]]]:
    """Return annotations by the name of their video, steps as indices."""
    if not isinstance(annotations, Mapping):
        given: dict[str, list[tuple[int | str, float, float]]] = {}
        for one in annotations:
            if one.video is None:
                raise InputError("a grounding that says no video cannot be an annotation: set its video")
            if one.flow.texts != flow.texts:
                raise InputError(f"the grounding of {one.video} is of another procedure ({one.flow.title!r})")
            given[one.video] = [(part.step, part.start, part.end) for part in one.segments]
        annotations = given
    place = {name: at for at, step in enumerate(flow.steps) for name in (step.text, step.id)}
    found: dict[str, list[tuple[int, float, float]]] = {}
    for video, rows in annotations.items():
        found[str(video)] = []
        for step, start, end in rows:
            at = place.get(step, -1) if isinstance(step, str) else step
            if not 0 <= at < len(flow):
                no_step = f"there is no step {step}; there are {len(flow)}, counted from 0"
                why = unknown_step(step, flow.texts) if isinstance(step, str) else no_step
                raise InputError(f"annotation of {video}: {why}")
            if not start <= end:
                raise InputError(f"annotation of {video}: step {step} ends ({end} s) before it starts ({start} s)")
            found[str(video)].append((at, float(start), float(end)))
    return found


def speaking_words(model: TaskModel, vocabulary: Mapping[str, int], embedder: Embedder) -> list[list[str]]:
    """Return the words that speak most for each step, among those that several cues have."""
    known = sorted(word for word, count in vocabulary.items() if count >= _LEAST_COUNT)
    if not known or (model.words is None and model.labelled is None):
        return [[] for _ in model.steps]
    vectors = model.scale * np.asarray(embedder(known), dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors *= acquisition.LENGTH / np.maximum(lengths, 1e-6)
    frames = 0 if model.words is None else len(model.words) - 1 - vectors.shape[1]
    says = model.view(np.pad(vectors, ((0, 0), (0, frames))))
    if model.labelled is not None:
        weights = model.labelled.weights[1 : 1 + vectors.shape[1]]
        says = says + (vectors @ (weights[:, :-1] - weights[:, -1:])).T
    return [[known[at] for at in np.argsort(-row, kind="stable")[:_MOST_WORDS]] for row in says]
