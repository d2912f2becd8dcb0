"""Task models: what words and frames of one task's own videos say about its steps, beside the general evidence.

A multinomial logistic regression on embeddings of the transcript around a clip and, where they were asked for, on the
visual features of the clip, background included. Without labels its
targets are posteriors of the general evidence; what it finds is added to that evidence. With labels, a second one
starts from the log-odds of both and says how probable each step is in each clip. Training is in
:mod:`graph2vid.grounding`, which knows alignments.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid import __version__
from graph2vid._files import parse_json
from graph2vid._safetensors import read_safetensors, write_safetensors
from graph2vid.errors import FormatError, InputError
from graph2vid.evidence.captions import Cue
from graph2vid.evidence.embed import Embedder, Grid
from graph2vid.evidence.embed.interface import TextFunction, Vectors
from graph2vid.evidence.narration import SaidSettings, cue_weights
from graph2vid.evidence.ocr import CAPTION

Floats = NDArray[np.floating[Any]]
Matrix = NDArray[np.float64]

KIND = "graph2vid-task-model"
VERSION = 1

WEIGHT = 0.5
"""Of what the words say beside the general evidence, where there are no labels."""

LENGTH = 2.5
"""The mean length that embeddings of cues are scaled to: the strength of the regularisation is in its units."""

_AROUND = SaidSettings(spread=3.0, lag=1.5, silence=0.3)
_MOST_ODDS = 10.0  # nats of evidence that the labelled model looks at
_SHARPNESS = 10.0  # of what is aligned with labels: nats for a probability of 1
_PART = 0.3  # the scale of log-odds among its inputs
_STEPS = 30  # of the optimisation


def clip_vectors(
    cues: Sequence[Cue], embed: TextFunction, grid: Grid, visual: Vectors | None = None
) -> tuple[Floats, float]:
    """Return the mean embedding of the cues around each clip [N, D], and the mean length of the cues' embeddings.

    A clip around which nothing is said has a vector of zeros, one around which little is said a short one. Where there
    are visual features of the clips [N, V], their directions stand behind it [N, D + V], as long as a cue's embedding.
    """
    said = [cue for cue in cues if cue.text.strip() and cue.kind in ("", CAPTION)]
    vectors = np.asarray(embed([cue.text for cue in said] or ["silence"]), dtype=np.float32)
    weights = cue_weights(said, grid.n_clips or 0, grid.clip_seconds, grid.offset, _AROUND)
    mean = weights @ vectors[: len(said)] / (weights.sum(axis=1, keepdims=True) + _AROUND.silence)
    length = float(np.linalg.norm(vectors, axis=1).mean())
    if visual is not None:
        lengths = np.linalg.norm(visual, axis=1, keepdims=True)
        mean = np.concatenate([mean, length * visual / np.maximum(lengths, 1e-9)], axis=1)
    return mean.astype(np.float32), length


def fit_logistic(inputs: Floats, target: Floats, ridge: Floats, offset: Floats | float = 0.0) -> Floats:
    """Fit a multinomial logistic regression: the probabilities are softmax(offset + inputs @ weights).

    Parameters
    ----------
    inputs : array [M, F]
    target : array [M, C]
        Probabilities; each row sums to 1.
    ridge : array [F]
        Holds the weights of each input down, in units of rows.
    offset : array [M, C]
        Log-odds to start from.

    Returns
    -------
    float32 array [F, C]
        By accelerated steps under a bound of the curvature that holds everywhere (Böhning 1992), so that there is
        nothing to search for.
    """
    x, goal, hold = (np.asarray(one, dtype=np.float32) for one in (inputs, target, ridge[:, np.newaxis]))
    curvature = 0.5 * (x.T @ x).astype(np.float64) + np.diag(np.asarray(ridge, dtype=np.float64))
    inverse = np.linalg.inv(curvature).astype(np.float32)
    weights = ahead = np.zeros((x.shape[1], goal.shape[1]), dtype=np.float32)
    pace = 1.0
    for _ in range(_STEPS):
        error = softmax(x @ ahead + offset) - goal
        now = ahead - inverse @ (x.T @ error + hold * ahead)
        after = (1.0 + math.sqrt(1.0 + 4.0 * pace * pace)) / 2.0
        ahead, weights, pace = now + (pace - 1.0) / after * (now - weights), now, after
    return weights


def softmax(logits: Floats) -> Floats:
    """Return probabilities along the last axis."""
    found = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(found / found.sum(axis=-1, keepdims=True), dtype=logits.dtype)


@dataclass(frozen=True, eq=False)
class Labelled:
    """The part of a task model that was learnt from annotated videos.

    Attributes
    ----------
    level, slope : float
        The log-odds of a step that it starts from: ``level + slope`` times the evidence.
    weights : float32 [1 + D + K, K + 1]
        Of a constant, of the clip's vector and of the evidence; the last column is background.
    threshold : float
        The probability from which on a clip counts for a step.
    """

    level: float
    slope: float
    weights: Floats
    threshold: float

    def probabilities(self, vectors: Floats, log_odds: Floats) -> Floats:
        """Return the probability of each step in each clip [K, N], given vectors [N, D] and log-odds [K, N]."""
        inputs, evidence = labelled_inputs(vectors, log_odds)
        logits = inputs @ self.weights + start_logits(evidence, self.level, self.slope)
        return np.ascontiguousarray(softmax(logits)[:, :-1].T)

    def scores(self, probabilities: Floats) -> Floats:
        """Return what is aligned: how far probabilities lie beyond the threshold."""
        return _SHARPNESS * (probabilities - self.threshold)


def labelled_inputs(vectors: Floats, log_odds: Floats) -> tuple[Floats, Floats]:
    """Return the inputs [N, 1 + D + K] of the labelled part, and the evidence in bounds [N, K]."""
    evidence = np.clip(np.asarray(log_odds, dtype=np.float32).T, -_MOST_ODDS, _MOST_ODDS)
    one = np.ones((len(vectors), 1), dtype=np.float32)
    return np.concatenate([one, np.asarray(vectors, np.float32), _PART * evidence], axis=1), evidence


def start_logits(evidence: Floats, level: float, slope: float) -> Floats:
    """Return logits [N, K + 1] from evidence [N, K]; those of background are 0."""
    return np.pad((level + slope * evidence).astype(np.float32), ((0, 0), (0, 1)))


@dataclass(frozen=True, eq=False)
class TaskModel:
    """What was learnt about one task from its videos.

    Attributes
    ----------
    title : str
        What the procedure makes.
    steps : tuple of str
        The K texts that it is about.
    embedder, embedder_version : str
        What made the vectors of words.
    frames, frames_version : str
        What made the visual features behind them; empty: there are none.
    scale : float
        What vectors are multiplied by.
    words : float32 [1 + D, K + 1] or None
        Weights of a constant and of a clip's vector for each step and background; None: the general evidence stays.
    prior : float32 [K]
        How often each step is there, in the eyes of ``words``.
    labelled : Labelled or None
    calibration : dict or None
        The calibrator that was fitted beside it, as JSON.
    about : dict
        For people: what it was trained on, the words that speak for each step, the cross-validated gain.
    """

    title: str
    steps: tuple[str, ...]
    embedder: str
    embedder_version: str
    scale: float
    words: Floats | None
    prior: Floats
    labelled: Labelled | None = None
    calibration: dict[str, Any] | None = None
    about: dict[str, Any] = field(default_factory=dict)
    frames: str = ""
    frames_version: str = ""

    def __repr__(self) -> str:
        told = {name: self.about.get(name) for name in ("videos", "labelled", "chosen")}
        return f"TaskModel({self.title!r}, {len(self.steps)} steps, {told})"

    def view(self, vectors: Floats) -> Floats:
        """Return how much more probable words and frames of each clip make each step [K, N], in nats.

        ``vectors`` [N, D] are scaled already.
        """
        if self.words is None:
            return np.zeros((len(self.steps), len(vectors)))
        logits = self.words[0] + np.asarray(vectors, np.float32) @ self.words[1:]
        shares = softmax(logits.astype(np.float64))[:, :-1]
        return np.ascontiguousarray((np.log(np.maximum(shares, 1e-12)) - np.log(self.prior)).T)

    def apply(self, vectors: Floats, log_odds: Floats, skip: Matrix) -> tuple[Floats, Matrix]:
        """Return the log-odds [K, N] and skip costs [K] to align with, from those of the general evidence.

        ``vectors`` [N, D] are those of :func:`clip_vectors`. Of a labelled model the first are no log-odds but how far
        the probability of a step lies beyond the threshold, and a step costs nothing that is not shown.
        """
        scaled = self.scale * vectors
        found = log_odds + WEIGHT * self.view(scaled)
        if self.labelled is None:
            return found, skip
        return self.labelled.scores(self.labelled.probabilities(scaled, found)), np.zeros(len(skip))

    def check(
        self, steps: Sequence[str], embedder: Embedder, frames: Embedder | None = None, source: str = "the task model"
    ) -> None:
        """Refuse another procedure, or other embedders of texts and frames, than those that it was trained with."""
        if tuple(steps) != self.steps:
            other = next(
                (
                    f": step {at + 1} is {b!r} there"
                    for at, (a, b) in enumerate(zip(steps, self.steps, strict=False))
                    if a != b
                ),
                "",
            )
            own = f"{self.title!r}, {len(self.steps)} steps" if self.title else f"{len(self.steps)} steps"
            raise InputError(f"{source} is of another procedure ({own}){other}; make one with graph2vid adapt")
        if (embedder.name, embedder.version) != (self.embedder, self.embedder_version):
            known, now = f"{self.embedder} {self.embedder_version}", f"{embedder.name} {embedder.version}"
            raise InputError(f"{source} was trained with the embedder {known}, not {now}: choose that, or adapt anew")
        known = f"with frames by {self.frames} {self.frames_version}" if self.frames else "without frames"
        now = "without frames" if frames is None else f"with frames by {frames.name} {frames.version}"
        if known != now:
            raise InputError(f"{source} was trained {known}, not {now}: choose that, or adapt anew")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as a safetensors file, with all that it says of itself."""
        arrays = {"prior": self.prior}
        head: dict[str, Any] = {"format": KIND, "version": VERSION, "graph2vid": __version__, "scale": self.scale}
        head |= {name: getattr(self, name) for name in ("title", "steps", "embedder", "embedder_version", "about")}
        if self.words is not None:
            arrays["words"] = self.words
        if self.labelled is not None:
            arrays["labelled"] = self.labelled.weights
            head["labelled"] = {name: getattr(self.labelled, name) for name in ("level", "slope", "threshold")}
        head |= {name: getattr(self, name) for name in ("calibration", "frames", "frames_version")}
        tensors = {name: np.ascontiguousarray(array, dtype="<f4") for name, array in arrays.items()}
        write_safetensors(path, tensors, {"task_model": json.dumps(head, ensure_ascii=False)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TaskModel:
        """Read what :meth:`save` wrote.

        Raises
        ------
        FormatError
            The file is damaged, or holds something else.
        """
        arrays, told = read_safetensors(path)
        if "task_model" not in told:
            raise FormatError(f"{path} holds no task model; graph2vid adapt makes one")
        head = parse_json(told["task_model"], str(path))
        try:
            if head["format"] != KIND or head["version"] > VERSION:
                raise FormatError(f"{path} is of version {head['version']}; this graph2vid reads up to {VERSION}")
            steps, prior, words = tuple(map(str, head["steps"])), arrays["prior"], arrays.get("words")
            labelled, count = head.get("labelled"), len(steps)
            size = 0 if words is None else len(words) - 1
            part = None
            if labelled is not None:
                part = Labelled(weights=arrays["labelled"], **{name: float(value) for name, value in labelled.items()})
                size = len(part.weights) - 1 - count
            shapes = [(prior, (count,)), (words, (size + 1, count + 1))]
            shapes += [] if part is None else [(part.weights, (size + 1 + count, count + 1))]
            for array, shape in shapes:
                if array is not None and (array.shape != shape or not np.isfinite(array).all()):
                    raise ValueError(f"an array of shape {array.shape} in the place of {shape}, or not finite")
            title, *by = (str(head[name]) for name in ("title", "embedder", "embedder_version"))
            seen = (str(head.get(name, "")) for name in ("frames", "frames_version"))
            rest = head.get("calibration"), dict(head["about"]), *seen
            return cls(title, steps, by[0], by[1], float(head["scale"]), words, prior, part, *rest)
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{path} is a damaged task model ({error}): adapt anew") from error
