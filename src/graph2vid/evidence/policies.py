"""Match, drop, skip and repeat policies: how similarities become costs.

Policies of one kind have one signature and are found by name in a registry, to which other packages add
theirs by entry points (groups ``graph2vid.match_policies``, ``graph2vid.drop_policies``,
``graph2vid.skip_policies``, ``graph2vid.repeat_policies``).

All of them speak of *raw costs*, ``raw[i, j] = -similarity[i, j] / temperature``, over the U distinct
steps; +∞ is a step that is forbidden in a clip. Everything is float64 here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.evidence.arrays import as_vector
from graph2vid.registry import Registry

Costs64: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class ClipEvidence:
    """What a drop policy sees.

    Attributes
    ----------
    match : float64 [U, N]
        Match costs of the distinct steps.
    normaliser : float64 [N]
        What the match policy added to the raw costs: match = raw + normaliser.
    temperature : float
        What similarities are divided by.
    """

    match: Costs64
    normaliser: Costs64
    temperature: float


@dataclass(frozen=True)
class StepEvidence:
    """What a skip policy sees.

    Attributes
    ----------
    match : float64 [K, N]
        Match costs of all steps.
    drop : float64 [N]
        Drop costs.
    distinct : int64 [U]
        One step of each class of identical steps.
    """

    match: Costs64
    drop: Costs64
    distinct: NDArray[np.int64]


DropRule: TypeAlias = Callable[[ClipEvidence], Costs64]
"""A drop policy with its value filled in: evidence ↦ drop costs [N]."""

MatchPolicy: TypeAlias = Callable[[Costs64, float, DropRule], tuple[Costs64, Costs64]]
"""(raw costs [U, N], temperature, drop rule) ↦ (match costs [U, N], drop costs [N])."""

DropPolicy: TypeAlias = Callable[[ClipEvidence, Any], Costs64]
"""(evidence, value or None) ↦ drop costs [N]."""

SkipPolicy: TypeAlias = Callable[[StepEvidence, Any], Costs64]
"""(evidence, value or None) ↦ skip costs [K]."""

MATCH_POLICIES: Registry[MatchPolicy] = Registry("match policy", "graph2vid.match_policies")
DROP_POLICIES: Registry[DropPolicy] = Registry("drop policy", "graph2vid.drop_policies")
SKIP_POLICIES: Registry[SkipPolicy] = Registry("skip policy", "graph2vid.skip_policies")
REPEAT_POLICIES: Registry[SkipPolicy] = Registry("repeat policy", "graph2vid.repeat_policies")
"""Policies of the cost of repeating a step; they see what skip policies see."""

DEFAULT_DROP_PERCENTILE = 30.0
_ROUNDING = 1e-6  # clips whose costs differ by less are alike
DEFAULT_SKIP_PERCENTILE = 75.0
AUTO_SKIP, AUTO_REPEAT = 0.5, 1.25
"""In multiples of what one segment gains; chosen over four data sets together (docs, "Costs without training")."""
DEFAULT_REPEAT_PERCENTILE = 50.0


# -- match policies ------------------------------------------------------------------------------------------


@MATCH_POLICIES.register("likelihood")
def match_likelihood(raw: Costs64, temperature: float, drop: DropRule) -> tuple[Costs64, Costs64]:
    """Negative log of the softmax over the distinct steps; the drop rule sees these costs.

    With one distinct step every match cost is 0: use ``likelihood_bg`` there.
    """
    match, normaliser = normalise(raw)
    return match, drop(ClipEvidence(match, normaliser, temperature))


@MATCH_POLICIES.register("likelihood_bg")
def match_likelihood_with_background(raw: Costs64, temperature: float, drop: DropRule) -> tuple[Costs64, Costs64]:
    """Negative log of the softmax over the distinct steps *and* background.

    The drop rule sees raw costs and sets the raw cost of background, that is, minus its logit. Match and
    drop costs are then the negative log-likelihoods of the joint softmax: per clip, exp(-match) over the
    distinct steps and exp(-drop) sum to 1.
    """
    level = drop(ClipEvidence(raw, np.zeros(raw.shape[1]), temperature))
    joint, _ = normalise(np.vstack([raw, level]))
    return joint[:-1], joint[-1]


@MATCH_POLICIES.register("raw")
def match_raw(raw: Costs64, temperature: float, drop: DropRule) -> tuple[Costs64, Costs64]:
    """Minus the similarity, over the temperature; the drop rule sees these costs."""
    return raw, drop(ClipEvidence(raw, np.zeros(raw.shape[1]), temperature))


def normalise(raw: Costs64) -> tuple[Costs64, Costs64]:
    """Return the negative log-softmax of ``-raw`` over the rows, and what was added: log Σ exp(-raw).

    +∞ stays +∞; a column of +∞ alone stays as it is.

    Parameters
    ----------
    raw : float64 [R, N]

    Returns
    -------
    costs : float64 [R, N]
    normaliser : float64 [N]
    """
    least = raw.min(axis=0)
    least = np.where(np.isfinite(least), least, 0.0)
    above = raw - least
    total = np.exp(-above).sum(axis=0)
    log_total = np.log(np.where(total > 0, total, 1.0))
    return above + log_total, log_total - least


# -- drop policies -------------------------------------------------------------------------------------------


@DROP_POLICIES.register("auto")
def drop_auto(evidence: ClipEvidence, value: Any) -> Costs64:
    """One cost for all clips: ``percentile``, unless clear evidence says which clips show a step; the default.

    Evidence is clear where the clips, by their lowest match costs, fall into two groups farther apart than both are
    wide together. Background then costs what lies halfway between them. A clip of which no step is likelier than
    another (cost log U of U distinct steps) stands for the second group where every clip shows a step; background then
    costs at least halfway to it.
    """
    percentile = drop_percentile(evidence, value)
    best = evidence.match.min(axis=0)
    chance = np.array([chance_cost(evidence.match)])
    return np.full_like(percentile, level_between(best[np.newaxis, np.isfinite(best)], percentile[:1], chance)[0])


def chance_cost(match: Costs64) -> float:
    """Return log U if the match costs [U, N] are minus the logarithms of probabilities, else -∞."""
    if match.min() < -0.01 or np.exp(-match).sum(axis=0).max() > 1.01:  # rounded logarithms may sum to a little more
        return -np.inf
    return float(np.log(len(match)))


def level_between(best: Costs64, percentile: Costs64, chance: Costs64) -> Costs64:
    """Return the drop costs of V videos by policy ``auto``, [V].

    Parameters
    ----------
    best : float64 [V, N]
        The lowest match cost of each clip, finite.
    percentile : float64 [V]
        The drop costs by policy ``percentile``.
    chance : float64 [V]
        The cost of clips of which no step is likelier than another; -∞ where that has no meaning.
    """
    ordered = np.sort(best, axis=1)
    ordered = np.column_stack([ordered, np.maximum(ordered[:, -1], chance)])
    gaps = np.diff(ordered, axis=1)
    widest = gaps.argmax(axis=1)
    video = np.arange(len(best))
    middle = (ordered[video, widest] + ordered[video, widest + 1]) / 2
    # All clips show a step: a percentile above them is no worse.
    between = np.where(widest == best.shape[1] - 1, np.maximum(percentile, middle), middle)
    half = (ordered[:, -1] - ordered[:, 0]) / 2
    return np.where(gaps[video, widest] > np.maximum(half, _ROUNDING), between, percentile)


@DROP_POLICIES.register("percentile")
def drop_percentile(evidence: ClipEvidence, value: Any) -> Costs64:
    """One cost for all clips: the ``value``-th percentile (30 by default) of the finite match costs.

    Assumes that this share of all pairs of a (distinct) step and a clip match, whatever the video shows. Linear
    interpolation.
    """
    match = evidence.match
    finite = match[np.isfinite(match)]
    if finite.size == 0:
        raise InputError("drop policy 'percentile': every match cost is infinite, so there is no percentile of them")
    return np.full(match.shape[1], np.percentile(finite, _percent(value, DEFAULT_DROP_PERCENTILE, "drop")))


@DROP_POLICIES.register("top")
def drop_top(evidence: ClipEvidence, value: Any) -> Costs64:
    """One cost for all clips: the largest of the ``value`` percent (10 by default) of lowest finite match costs.

    Without interpolation, and of at least one cost: the level of the released code.
    """
    finite = np.sort(evidence.match[np.isfinite(evidence.match)])
    if finite.size == 0:
        raise InputError("drop policy 'top': every match cost is infinite, so there is no lowest of them")
    count = max(1, int(finite.size * _percent(value, 10.0, "drop") / 100))
    return np.full(evidence.match.shape[1], finite[count - 1])


@DROP_POLICIES.register("constant")
def drop_constant(evidence: ClipEvidence, value: Any) -> Costs64:
    """One given cost for all clips; +∞ means that there is no background.

    Assumes that costs of all videos are on one scale, as log-odds are.
    """
    return np.full(evidence.match.shape[1], _number(value, "drop policy 'constant'"))


@DROP_POLICIES.register("vector")
def drop_vector(evidence: ClipEvidence, value: Any) -> Costs64:
    """A given cost per clip [N]; +∞ means that the clip shows a step."""
    return _given(value, "drop policy 'vector'", evidence.match.shape[1], "clip")


@DROP_POLICIES.register("prototype")
def drop_prototype(evidence: ClipEvidence, value: Any) -> Costs64:
    """The cost of background as if it were a step: ``value`` [N] is its similarity to each clip.

    Assumes a class of background that was trained beside the steps. The same scale as the match costs:
    -similarity / temperature, plus what the match policy added to the steps'. The default for log-probabilities with a
    row of background.
    """
    similarity = _given(value, "drop policy 'prototype'", evidence.match.shape[1], "clip")
    return evidence.normaliser - similarity / evidence.temperature


@DROP_POLICIES.register("relative")
def drop_relative(evidence: ClipEvidence, value: Any) -> Costs64:
    """The 30th percentile of the match costs in the mean, less where a clip resembles background: ``value`` [N].

    The percentile says how much background there is, the similarity of background to each clip where: the cost is lower
    by how much that is above its mean over the clips, divided by the temperature.
    """
    similarity = _given(value, "drop policy 'relative'", evidence.match.shape[1], "clip")
    above: Costs64 = (similarity - similarity.mean()) / evidence.temperature
    return drop_percentile(evidence, None) - above


@DROP_POLICIES.register("entropy")
def drop_entropy(evidence: ClipEvidence, value: Any) -> Costs64:
    """A cost per clip: how much the clip says about the step, times ``value`` (1 by default).

    With p the softmax over the U distinct steps and H its entropy, the information is log U - H = (1 - H /
    log U) log U in nats: log U for a clip that points at one step (expensive to drop), 0 for one that points
    nowhere (cheaper to drop than to match, since then every match cost is log U). On the ``raw`` scale,
    minus log Σ exp(-raw).
    """
    scale = 1.0 if value is None else _number(value, "drop policy 'entropy'")
    costs, normaliser = normalise(evidence.match)
    finite = np.isfinite(costs)
    surprise = np.where(finite, costs, 0.0)
    entropy = (np.where(finite, np.exp(-surprise), 0.0) * surprise).sum(axis=0)
    information = np.where(finite.any(axis=0), np.log(len(costs)) - entropy, 0.0)
    return scale * np.maximum(information, 0.0) - normaliser


# -- skip policies -------------------------------------------------------------------------------------------


@SKIP_POLICIES.register("constant")
def skip_constant(evidence: StepEvidence, value: Any) -> Costs64:
    """One given cost for all steps."""
    return np.full(len(evidence.match), _number(value, "skip policy 'constant'"))


@SKIP_POLICIES.register("given")
def skip_given(evidence: StepEvidence, value: Any) -> Costs64:
    """A given cost per step [K]; +∞ means that the step must appear."""
    return _given(value, "skip policy 'given'", len(evidence.match), "step")


@SKIP_POLICIES.register("percentile")
def skip_percentile(evidence: StepEvidence, value: Any) -> Costs64:
    """One cost for all steps: the ``value``-th percentile (default 75) of their best evidence, at least 0.

    A step's best evidence is the least extra cost of showing it in one clip instead of calling that clip
    background, min over clips of match - drop; negative when the step explains some clip better than
    background does. A step is then skipped when showing it would cost more than it would cost for that
    share of the (distinct) steps.
    """
    percent = _percent(value, DEFAULT_SKIP_PERCENTILE, "skip")
    drop = np.where(np.isfinite(evidence.drop), evidence.drop, 0.0)
    best = (evidence.match[evidence.distinct] - drop).min(axis=1)
    best = best[np.isfinite(best)]
    level = max(float(np.percentile(best, percent)), 0.0) if best.size else 0.0
    return np.full(len(evidence.match), level)


@SKIP_POLICIES.register("auto")
def skip_auto(evidence: StepEvidence, value: Any) -> Costs64:
    """``value`` times (default 0.5) what one run of a middling step gains: a default that holds across data sets.

    A run gains what its clips cost less as the step than as background; of each (distinct) step its best run counts,
    and of these the median.
    """
    factor = AUTO_SKIP if value is None else _number(value, "skip policy 'auto'")
    return np.full(len(evidence.match), factor * run_gain(evidence))


# -- repeat policies -----------------------------------------------------------------------------------------


@REPEAT_POLICIES.register("constant")
def repeat_constant(evidence: StepEvidence, value: Any) -> Costs64:
    """One given cost for all steps."""
    return np.full(len(evidence.match), _number(value, "repeat policy 'constant'"))


@REPEAT_POLICIES.register("given")
def repeat_given(evidence: StepEvidence, value: Any) -> Costs64:
    """A given cost per step [K]; +∞ means that the step is not repeated."""
    return _given(value, "repeat policy 'given'", len(evidence.match), "step")


@REPEAT_POLICIES.register("percentile")
def repeat_percentile(evidence: StepEvidence, value: Any) -> Costs64:
    """One cost for all steps: the ``value``-th percentile (default 50) of what showing a step gains at the most.

    That is, summed over the clips that the step explains better than background does, drop - match. So a return must
    explain as much as that share of the (distinct) steps do in all clips together.
    """
    percent = _percent(value, DEFAULT_REPEAT_PERCENTILE, "repeat")
    gain = np.where(np.isfinite(evidence.drop), evidence.drop, 0.0) - evidence.match[evidence.distinct]
    return np.full(len(evidence.match), np.percentile(np.maximum(gain, 0.0).sum(axis=1), percent))


@REPEAT_POLICIES.register("auto")
def repeat_auto(evidence: StepEvidence, value: Any) -> Costs64:
    """``value`` times (default 1.25) what one run of a middling step gains: a default that holds across data sets.

    As the skip policy of this name: a return must explain a little more than the one run of most steps does.
    """
    factor = AUTO_REPEAT if value is None else _number(value, "repeat policy 'auto'")
    return np.full(len(evidence.match), factor * run_gain(evidence))


def run_gain(evidence: StepEvidence) -> float:
    """Return the median over the distinct steps of the most that one segment gains against background."""
    drop = np.where(np.isfinite(evidence.drop), evidence.drop, 0.0)
    gain = drop - evidence.match[evidence.distinct]
    finite = np.isfinite(gain)
    gain = np.where(finite, gain, -np.abs(gain, where=finite, out=np.zeros_like(gain)).sum() - 1.0)  # no run spans it
    total = np.pad(gain.cumsum(axis=1), ((0, 0), (1, 0)))
    return float(np.median((total - np.minimum.accumulate(total, axis=1)).max(axis=1)))


# -- values --------------------------------------------------------------------------------------------------


def _number(value: Any, name: str) -> float:
    if value is None:
        raise InputError(f"{name} needs a number, for example {name.split()[-1].strip(chr(39))}:1.5")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} needs a number, not {value!r}") from None


def _percent(value: Any, default: float, kind: str) -> float:
    percent = default if value is None else _number(value, f"{kind} policy 'percentile'")
    if not 0.0 <= percent <= 100.0:
        raise InputError(f"{kind} policy 'percentile': the percentile must lie in 0 … 100, not {percent:g}")
    return percent


def _given(value: Any, name: str, length: int, what: str) -> Costs64:
    if value is None:
        raise InputError(f"{name} needs an array with one number per {what} ({length} of them)")
    return as_vector(value, name, length, what).astype(np.float64)
