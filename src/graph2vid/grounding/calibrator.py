"""Calibrated confidence: the probability that what a grounding says is right.

A posterior takes clips for independent, which they are not, and is far too sure of itself. A calibrator looks at it
at two temperatures, and at how much the evidence says, how long the segment is, how strong the words of the step are
and how well the video follows the written order. It is a logistic regression: small enough for a JSON file, and
applied with NumPy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid._files import check_format, read_json, write_json
from graph2vid.alignment import Alignment, ClipCosts, Posterior, Problem, order_margin
from graph2vid.errors import FormatError, InputError

Floats = NDArray[np.float64]

KIND = "graph2vid-calibrator"
VERSION = 1

GAMMAS = (1.0, 8.0)
"""The temperatures of the posteriors that a calibrator looks at."""

VIDEO = ("order", "likeness", "closest", "said")
STEP = ("posterior", "soft_posterior", "peak", "strength", "agreement", "mean_strength")
SEGMENT = ("posterior", "soft_posterior", "peak", "mean", "elsewhere", "length", *STEP[3:])
CLIP = ("posterior", "soft_posterior", "log_odds", *STEP[2:])
_PARTS = {"segment": SEGMENT, "absent": STEP, "clip": CLIP, "other": CLIP}

NARRATION = "narration"
"""The kind of evidence for which a calibrator comes with graph2vid."""

_LEAST = 1e-3  # of a posterior: beyond it, more says nothing more
_MOST_ODDS = 50.0  # nats
_SHARPNESS = 3.0  # of the weights by which the place of a step is averaged
_OWN = 1 / 3  # the share of procedures that tell what the very video shows
_GATE_L2 = 1.0  # in units of videos
_EVERY = 10  # which clips are fitted on
_OUTLIERS = 1.0  # percent at either end: beyond them a feature says what it says there


@dataclass(frozen=True, eq=False)
class Observed:
    """What a calibrator looks at in one video.

    Attributes
    ----------
    segments : float64 [S, 9]
        The features :data:`SEGMENT` of each segment.
    steps : float64 [K, 6]
        The features :data:`STEP` of each step; ``posterior`` is that of being shown at all.
    video : float64 [4]
        The features :data:`VIDEO`.
    stated : bool [K, N]
        Which step is stated in each clip.
    """

    segments: Floats
    steps: Floats
    video: Floats
    stated: NDArray[np.bool_]
    _parts: tuple[Floats, ...]

    @property
    def sharp(self) -> Floats:
        """The posterior of each step in each clip at the first of :data:`GAMMAS`, [K, N]."""
        return self._parts[0]

    @property
    def shown(self) -> Floats:
        """The posterior of each step being shown at all [K], likewise."""
        return np.asarray(1.0 / (1.0 + np.exp(-self.steps[:, 0])))

    def clips(self, some: slice | NDArray[np.int64] = slice(None)) -> Floats:
        """Return the features :data:`CLIP` of each step in some of the clips, [K, clips, 7]; all by default."""
        sharp, soft, odds = (part[:, some] for part in self._parts)
        of_step = np.broadcast_to(self.steps[:, 2:, np.newaxis], (*self.steps[:, 2:].shape, odds.shape[1]))
        return np.stack([_logit(sharp), _logit(soft), odds, *np.moveaxis(of_step, 1, 0)], axis=2)


def observe(
    problem: Problem,
    found: Alignment,
    *,
    clip_seconds: float = 1.0,
    strength: NDArray[Any] | None = None,
    likeness: Mapping[str, float] | None = None,
    posteriors: Mapping[float, Posterior] | None = None,
    time_limit: float | None = None,
) -> Observed:
    """Return what a calibrator looks at.

    Parameters
    ----------
    problem : Problem
    found : Alignment
        Its answer.
    clip_seconds : float
    strength : float array [K], optional
        How strong the evidence for each step is anywhere in the video: for narration, what not showing it costs by
        default. By default the log-odds of its best clip.
    likeness : mapping of str to float, optional
        Of the transcript and the steps (:func:`graph2vid.evidence.likeness`), where there is one.
    posteriors : mapping of float to Posterior, optional
        Those that are known, by gamma.
    time_limit : float, optional
        Seconds for each posterior.
    """
    known = posteriors or {}
    sharp, soft = (known.get(gamma) or problem.posterior(gamma, time_limit=time_limit) for gamma in GAMMAS)
    odds = _log_odds(problem)
    strong = odds.max(axis=1) if strength is None else np.clip(strength, -_MOST_ODDS, _MOST_ODDS).astype(np.float64)
    agreement, alike = _agreement(odds), likeness or {}
    video = np.array([_written_order(problem, odds), *(alike.get(name, 0.0) for name in ("mean", "closest", "said"))])
    segments = [
        (
            *(_logit(one.probability[part.step, part.start : part.stop].mean()) for one in (sharp, soft)),
            *_inside_and_out(odds[part.step], part.start, part.stop),
            np.log((part.stop - part.start) * clip_seconds),
            strong[part.step],
            agreement,
            strong.mean(),
        )
        for part in found.segments
    ]
    shown = [one.probability[:-1].max(axis=1) if one.start is None else one.start.sum(axis=1) for one in (sharp, soft)]
    same = (np.full(len(odds), value) for value in (agreement, strong.mean()))
    steps = np.stack([*map(_logit, shown), odds.max(axis=1), strong, *same], axis=1)
    stated = found.labels == np.arange(len(odds))[:, np.newaxis]
    parts = (sharp.probability[:-1], soft.probability[:-1], odds)
    return Observed(np.array(segments, np.float64).reshape(-1, len(SEGMENT)), steps, video, stated, parts)


def _log_odds(problem: Problem) -> Floats:
    """Return by how much each step explains each clip better than background does, [K, N], bounded."""
    with np.errstate(invalid="ignore"):  # forbidden both ways: ∞ - ∞
        odds = problem.costs.drop.astype(np.float64) - problem.costs.match.astype(np.float64)
    return np.clip(np.nan_to_num(odds, nan=-_MOST_ODDS), -_MOST_ODDS, _MOST_ODDS)


def _inside_and_out(odds: Floats, start: int, stop: int) -> tuple[float, float, float]:
    """Return the largest and the mean log-odds of a segment, and by how much the largest is above those elsewhere."""
    here, most = odds[start:stop], odds[start:stop].max()
    elsewhere = max(odds[:start].max(initial=-_MOST_ODDS), odds[stop:].max(initial=-_MOST_ODDS))
    return float(most), float(here.mean()), float(most - elsewhere)


def _logit(share: Any) -> Any:
    bounded = np.clip(share, _LEAST, 1.0 - _LEAST)
    return np.log(bounded / (1.0 - bounded))


def _agreement(odds: Floats) -> float:
    """Return how clearly the best places of the steps follow each other as the steps are written (atanh of -1 … 1)."""
    if len(odds) < 2:
        return 0.0
    place = np.exp(_SHARPNESS * (odds - odds.max(axis=1, keepdims=True)))
    place /= place.sum(axis=1, keepdims=True)
    before = np.cumsum(place, axis=1) - place / 2
    first = (place[1:] * before[:-1]).sum(axis=1)  # that a step comes before the next
    return float(np.arctanh(np.clip(2.0 * first.mean() - 1.0, -0.97, 0.97)))


def _written_order(problem: Problem, odds: Floats) -> float:
    """Return by how much the written order is cheaper than its reverse, per step; it grows like its logarithm."""
    skip = None if problem.costs.skip is None else problem.costs.skip.astype(np.float64)
    margin = order_margin(ClipCosts(-odds, np.zeros(odds.shape[1]), skip), list(range(len(odds))))
    return 0.0 if np.isnan(margin) else float(np.arcsinh(margin / 3.0))


# -- models ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Logistic:
    """A logistic regression; beyond the values it was fitted on, a feature says no more than at their end.

    Attributes
    ----------
    bias : float
    weights, low, high : float64 [F]
    """

    bias: float
    weights: Floats
    low: Floats
    high: Floats

    def __call__(self, features: Floats) -> Floats:
        """Return the probability for each row of features [..., F]."""
        score = self.bias + np.clip(features, self.low, self.high) @ self.weights
        return np.asarray(1.0 / (1.0 + np.exp(-score)))

    @classmethod
    def fit(cls, features: Floats, target: Floats, l2: float, weight: Floats | None = None) -> Logistic:
        """Fit by Newton's method.

        Parameters
        ----------
        features : float64 [M, F]
        target : float64 [M]
            Shares in 0 … 1.
        l2 : float
            Holds the weights of standardised features down; in units of rows.
        weight : float64 [M], optional
            Of the rows; 1 by default.
        """
        weight = np.ones(len(target)) if weight is None else weight
        target = np.clip(target, 1.0 / (len(target) + 2.0), 1.0 - 1.0 / (len(target) + 2.0))  # where all are one
        low, high = np.percentile(features, (_OUTLIERS, 100.0 - _OUTLIERS), axis=0)
        bounded = np.clip(features, low, high)
        mean, scale = bounded.mean(axis=0), bounded.std(axis=0)
        scale[scale < 1e-9] = np.inf  # what is the same everywhere says nothing
        design = np.column_stack([np.ones(len(bounded)), (bounded - mean) / scale])
        ridge = np.diag([1e-6, *[l2] * len(mean)])
        beta = np.zeros(len(ridge))
        for _ in range(50):
            chance = 1.0 / (1.0 + np.exp(-np.clip(design @ beta, -30.0, 30.0)))
            hessian = (design * (weight * chance * (1.0 - chance))[:, np.newaxis]).T @ design + ridge
            step = np.linalg.solve(hessian, design.T @ (weight * (chance - target)) + ridge @ beta)
            beta -= step
            if np.abs(step).max() < 1e-8:
                break
        weights = beta[1:] / scale
        return cls(float(beta[0] - weights @ mean), weights, low, high)

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the numbers by the names of the features."""
        columns = zip(self.weights.tolist(), self.low.tolist(), self.high.tolist(), strict=True)
        return {"bias": round(self.bias, 6)} | {
            name: [round(value, 6) for value in column] for name, column in zip(names, columns, strict=True)
        }

    @classmethod
    def from_json(cls, value: Any, names: Sequence[str], where: str) -> Logistic:
        """Read what :meth:`to_json` wrote."""
        try:
            numbers = np.array([value[name] for name in names], np.float64).reshape(len(names), 3)
            found = cls(float(value["bias"]), *numbers.T)
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{where} must have a bias, and three numbers for each of {', '.join(names)}") from error
        if not (np.isfinite(numbers).all() and np.isfinite(found.bias)):
            raise FormatError(f"{where}: all numbers must be finite")
        return found


@dataclass(frozen=True, eq=False)
class Mixture:
    """One regression, or two: for procedures in general, and for those that tell what this very video shows.

    Attributes
    ----------
    experts : tuple of Logistic
    gate : Logistic or None
        From the features of a video, the probability that the second one holds.
    """

    experts: tuple[Logistic, ...]
    gate: Logistic | None = None

    def __call__(self, features: Floats, video: Floats) -> Floats:
        """Return the probability for each row of features, in a video with these features [4] (or one row each)."""
        if self.gate is None:
            return self.experts[0](features)
        own = self.gate(video)
        return (1.0 - own) * self.experts[0](features) + own * self.experts[1](features)

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the numbers of all regressions."""
        gate = {} if self.gate is None else {"gate": self.gate.to_json(VIDEO)}
        return {"experts": [expert.to_json(names) for expert in self.experts]} | gate

    @classmethod
    def from_json(cls, value: Any, names: Sequence[str], where: str) -> Mixture:
        """Read what :meth:`to_json` wrote."""
        experts = value.get("experts") if isinstance(value, dict) else None
        if not isinstance(experts, list) or len(experts) != (2 if "gate" in value else 1):
            raise FormatError(f"{where} must have one list of experts, two with a gate")
        gate = Logistic.from_json(value["gate"], VIDEO, f"{where}, gate") if "gate" in value else None
        return cls(tuple(Logistic.from_json(one, names, where) for one in experts), gate)


# -- the calibrator --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Example:
    """An annotated video to fit on: what is observed, and what is true.

    Attributes
    ----------
    observed : Observed
    right : float64 [S]
        The share of each segment's clips whose true label is its step.
    absent : float64 [K]
        1 for a step that the video does not show, 0 for one that it shows; NaN where that is not known.
    truth : bool [K, N]
        Whether each clip shows each step.
    own : bool
        Whether the procedure tells what this very video shows, and not how the task is done in general.
    """

    observed: Observed
    right: Floats
    absent: Floats
    truth: NDArray[np.bool_]
    own: bool = False


@dataclass(frozen=True, eq=False)
class Calibrator:
    """From what is observed in a video to probabilities.

    Attributes
    ----------
    evidence : str
        The kind of evidence it was fitted on: ``narration``, ``scores``, ``log_probabilities`` or ``embeddings``.
    segment, absent, clip, other : Mixture
        That a segment is right, that a step is not shown, that a clip shows the step that is stated, or another.
    about : dict
        What it was fitted on, for people.
    """

    evidence: str
    segment: Mixture
    absent: Mixture
    clip: Mixture
    other: Mixture
    about: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Calibrator({self.evidence!r}, {self.about})"

    def confidences(self, observed: Observed) -> Floats:
        """Return the probability that each segment is right: the expected share of its clips that show its step."""
        return self.segment(observed.segments, observed.video)

    def absences(self, observed: Observed) -> Floats:
        """Return the probability that each step is not shown in the video [K]."""
        return self.absent(observed.steps, observed.video)

    def probabilities(self, observed: Observed) -> Floats:
        """Return the probability of each label in each clip [K+1, N]; the last row is background."""
        features, stated = observed.clips(), observed.stated
        steps = np.where(stated, *(part(features, observed.video) for part in (self.clip, self.other)))
        sure = (steps * stated).sum(axis=0)
        others = steps.sum(axis=0) - sure
        steps = np.where(stated, steps, steps * np.minimum(1.0, (1.0 - sure) / np.maximum(others, 1e-9)))
        return np.concatenate([steps, np.maximum(1.0 - steps.sum(axis=0, keepdims=True), 0.0)])

    @classmethod
    def fit(
        cls, examples: Sequence[Example], evidence: str, l2: float = 10.0, about: Mapping[str, Any] | None = None
    ) -> Calibrator:
        """Fit on annotated videos.

        Parameters
        ----------
        examples : sequence of Example
        evidence : str
            Their kind of evidence.
        l2 : float
            See :meth:`Logistic.fit`.
        about : mapping, optional
            What they are, for people.
        """
        examples = [one for one in examples if len(one.right)]
        if not examples:
            raise InputError("there is no segment to fit a calibrator on")
        own = np.array([one.own for one in examples])
        gate = None
        if own.any() and not own.all():
            videos = np.stack([one.observed.video for one in examples])
            weight = np.where(own, _OWN * len(own) / own.sum(), (1.0 - _OWN) * len(own) / (~own).sum())
            gate = Logistic.fit(videos, own.astype(np.float64), _GATE_L2, weight)
        known = [~np.isnan(one.absent) for one in examples]
        rows = {
            "segment": [(one.observed.segments, one.right) for one in examples],
            "absent": [(e.observed.steps[k], e.absent[k]) for e, k in zip(examples, known, strict=True)],
            "clip": [_some_clips(one, one.observed.stated) for one in examples],
            "other": [_some_clips(one, ~one.observed.stated) for one in examples],
        }
        mixtures = {}
        for part, of_video in rows.items():
            sides = [np.ones(len(own), bool)] if gate is None else [~own, own]
            experts = []
            for side in sides:
                chosen = [pair for pair, there in zip(of_video, side, strict=True) if there]
                features, target = (np.concatenate(column) for column in zip(*chosen, strict=True))
                experts.append(Logistic.fit(features, target, l2))
            mixtures[part] = Mixture(tuple(experts), gate)
        return cls(evidence, about=dict(about or {}), **mixtures)

    def to_json(self) -> dict[str, Any]:
        """Return the calibrator as a JSON document."""
        return {
            "format": KIND,
            "version": VERSION,
            "evidence": self.evidence,
            "gammas": list(GAMMAS),
            "about": self.about,
            **{part: getattr(self, part).to_json(names) for part, names in _PARTS.items()},
        }

    @classmethod
    def from_json(cls, value: Any, source: str = "calibrator") -> Calibrator:
        """Read what :meth:`to_json` wrote; ``source`` is what messages call it."""
        document = check_format(value, kind=KIND, version=VERSION, source=source)
        evidence, about = document.get("evidence"), document.get("about", {})
        if not isinstance(evidence, str) or not isinstance(about, dict) or document.get("gammas") != list(GAMMAS):
            raise FormatError(f"{source}: 'evidence' must be a name, 'about' an object, and 'gammas' {list(GAMMAS)}")
        parts = {
            part: Mixture.from_json(document.get(part), names, f"{source}, {part}") for part, names in _PARTS.items()
        }
        return cls(evidence, about=about, **parts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibrator as JSON."""
        write_json(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Calibrator:
        """Read a calibrator that :meth:`save` wrote."""
        return cls.from_json(read_json(path), source=str(path))

    @classmethod
    @cache
    def shipped(cls) -> Calibrator:
        """Return the calibrator for narration that comes with graph2vid."""
        return cls.load(str(files("graph2vid.grounding") / "narration_calibrator.json"))


def _some_clips(one: Example, member: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return the features and the truth of the members of [K, N] in every tenth clip."""
    chosen = np.arange(member.shape[1] % _EVERY // 2, member.shape[1], _EVERY)
    there = member[:, chosen]
    return one.observed.clips(chosen)[there], one.truth[:, chosen][there].astype(np.float64)
