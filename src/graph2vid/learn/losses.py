"""Losses that teach features to follow procedures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from graph2vid.errors import InfeasibleError, InputError
from graph2vid.flow import FlowGraph
from graph2vid.learn.operator import SoftOptions, refuse_unknown, soft_cost
from graph2vid.learn.padded import Lengths, Padded, Skip, check_batch, clips_of, unit
from graph2vid.tsort import TSortGraph

Tensors: TypeAlias = Sequence[Tensor]
Graphs: TypeAlias = Sequence[FlowGraph | TSortGraph]
MATCHES = ("likelihood", "likelihood_bg", "balanced", "raw")

compile_flow = lru_cache(maxsize=256)(TSortGraph.compile)


def _compiled(graphs: Graphs) -> list[TSortGraph]:
    return [graph if isinstance(graph, TSortGraph) else compile_flow(graph) for graph in graphs]


@dataclass(frozen=True)
class LossOptions(SoftOptions):
    """What `GraphDropDTWLoss` can be told, beside gamma, smoothing and contiguous (`SoftOptions`).

    Attributes
    ----------
    match : {"likelihood", "likelihood_bg", "balanced", "raw"}
        How similarities become match costs: minus the log of the softmax over the distinct steps, the same with
        background among them, or minus the similarity over the temperature. ``balanced`` is ``likelihood`` with the
        step's mean probability over the video's clips divided out: calling every clip the same step then gains nothing,
        which is how features collapse under ``likelihood``.
    drop : str or float
        The cost of background: ``"percentile:30"`` of the video's match costs (no gradient flows through it), a
        number, or ``"prototype"``, a learned embedding of background, compared with the clips like a step. Of
        ``"prototype:30"`` the percentile says how much background there is, and the prototype where: the cost is that
        percentile of the match costs, plus how much more than its mean over the clips the prototype's cost is.
    temperature : float
        Divides the similarities.
    comparison : {"cosine", "dot"}
        How clips and steps are compared; ``dot`` is for scores, whose steps are unit vectors of their classes.
    dimension : int, optional
        Of the embeddings; needed for the prototype.
    normalise : bool
        Divide each video's cost by its number of clips.
    on_impossible : {"error", "skip"}
        What to do with a video that cannot show all steps: name it, or leave it out of the mean.
    """

    match: str = "likelihood"
    drop: str | float = "percentile:30"
    temperature: float = 0.1
    comparison: str = "cosine"
    dimension: int | None = None
    normalise: bool = True
    on_impossible: str = "error"

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_unknown("match policy", self.match, MATCHES)
        refuse_unknown("comparison", self.comparison, ("cosine", "dot"))
        if self.on_impossible not in ("error", "skip"):
            raise InputError(f"on_impossible must be one of error, skip, not {self.on_impossible!r}")
        if not 0 < self.temperature < math.inf:
            raise InputError(f"temperature must be a finite number above 0, not {self.temperature!r}")
        if read_drop(self.drop)[0] == "prototype" and self.dimension is None:
            raise InputError("a learned prototype of background needs the dimension of the embeddings")


class GraphDropDTWLoss(nn.Module):
    """The soft cost of grounding a flow graph in a video, per clip, averaged over the videos of a batch.

    Parameters
    ----------
    gamma : float
        How soft the minimum is.
    smoothing : {"smoothmin", "softmin"}
    contiguous : bool
        Whether each step is one unbroken segment of clips; the paper lets background lie inside a step.
    **options
        Those of `LossOptions`: match, drop, temperature, comparison, dimension, normalise, on_impossible; and for the
        extended model, which needs ``smoothing="softmin", contiguous=True``: repeat, durations, violation.
    """

    def __init__(
        self, gamma: float = 0.1, smoothing: str = "smoothmin", contiguous: bool = False, **options: Any
    ) -> None:
        super().__init__()
        self.options = LossOptions(gamma, smoothing, contiguous, **options)
        self.drop, self.level = read_drop(self.options.drop)
        drawn = torch.randn(self.options.dimension or 0) if self.drop == "prototype" else None
        self.prototype = None if drawn is None else nn.Parameter(functional.normalize(drawn, dim=0))

    def forward(
        self, features: Tensor, steps: Tensors, graphs: Graphs, lengths: Lengths = None, skip: Skip = None
    ) -> Tensor:
        """Return the loss of a batch of videos.

        Parameters
        ----------
        features : Tensor [B, N, D]
            Embeddings of the clips, padded.
        steps : sequence of B Tensor [K, D]
            Embeddings of the steps of each video's procedure.
        graphs : sequence of B FlowGraph or TSortGraph
        lengths : sequence of B int, optional
            The clips of each video.
        skip : Tensor [B, K], optional
            Costs of leaving steps out; +inf, as all are by default: the step must appear.

        Returns
        -------
        Tensor []
        """
        tsorts = _compiled(graphs)
        clips = check_batch(features, steps, lengths, tsorts)
        match, drop = self.costs(features, steps, clips)
        return self.from_costs(match, drop, tsorts, clips, skip)

    def costs(self, features: Tensor, steps: Tensors, lengths: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return match costs [B, K, N] and drop costs [B, N], padded with zeros."""
        with torch.autocast(features.device.type, enabled=False):
            batch = Padded.of(features, steps, lengths, is_unit=self.options.comparison == "cosine")
            if self.prototype is not None and len(self.prototype) != features.shape[2]:
                raise InputError(f"a prototype of {len(self.prototype)} dimensions, but clips of {features.shape[2]}")
            match, drop = self._costs(batch)
            return torch.where(batch.cells, match, 0.0), torch.where(batch.is_clip, drop, 0.0)

    def _costs(self, batch: Padded) -> tuple[Tensor, Tensor]:
        """Return match [B, K, N] and drop [B, N]; what lies beyond a video's steps and clips is any finite number."""
        raw = -batch.products() / self.options.temperature
        known = raw.masked_fill(~batch.is_distinct[..., None], math.inf)  # steps that come twice count once
        if self.options.match == "likelihood_bg":
            level = self._level(known, batch)
            log_total = torch.logsumexp(torch.cat([-known, -level[:, None]], 1), 1)
            return raw + log_total[:, None], level + log_total
        if self.options.match == "raw":
            return raw, self._level(known, batch)
        log_total = torch.logsumexp(-known, 1)
        raw, known = raw + log_total[:, None], known + log_total[:, None]
        if self.options.match == "balanced":
            log_mean = _log_mean(-known, batch)
            raw = raw + log_mean.gather(1, batch.first)[..., None]
            known = known + log_mean[..., None]
        drop = self._level(known, batch)
        return raw, drop + log_total if self.drop == "prototype" and math.isnan(self.level) else drop

    def _level(self, match: Tensor, batch: Padded) -> Tensor:
        """Return the cost of background before it is made a likelihood, [B, N]."""
        if self.prototype is not None:
            prototype = self.prototype.to(batch.clips)
            prototype = unit(prototype) if self.options.comparison == "cosine" else prototype
            cost = -(batch.clips @ prototype) / self.options.temperature
            if math.isnan(self.level):
                return cost
            mean = torch.where(batch.is_clip, cost, 0.0).sum(1) / batch.lengths.to(cost)
            return _percentile(match.detach(), batch, self.level)[:, None] + cost - mean[:, None]
        if self.drop == "constant":
            return batch.clips.new_full(batch.is_clip.shape, self.level)
        return _percentile(match.detach(), batch, self.level)[:, None].expand(batch.is_clip.shape)

    def from_costs(
        self, match: Tensor, drop: Tensor, graphs: Graphs, lengths: Lengths = None, skip: Skip = None
    ) -> Tensor:
        """Return the loss from ready costs: match [B, K, N], drop [B, N], skip [B, K]."""
        tsorts = _compiled(graphs)
        clips = clips_of(lengths, len(tsorts), match.shape[-1])
        how = {name.name: getattr(self.options, name.name) for name in fields(SoftOptions)}
        cost = soft_cost(tsorts, match, drop, skip, clips, **how)
        if (strange := torch.isnan(cost.detach())).any():
            raise InputError(f"video {int(strange.nonzero()[0, 0])}: its costs hold NaN or -inf")
        possible = torch.isfinite(cost.detach())
        if self.options.on_impossible == "error" and not possible.all():
            raise InfeasibleError(_why_impossible(int((~possible).nonzero()[0, 0]), tsorts, clips))
        if self.options.normalise:
            cost = cost / torch.tensor(clips, dtype=cost.dtype, device=cost.device)
        return torch.where(possible, cost, 0.0).sum() / possible.sum().clamp(min=1)


def read_drop(drop: str | float) -> tuple[str, float]:
    """Return the kind of cost that background has (percentile, constant, prototype), and its number, NaN if none."""
    if drop == "prototype":
        return "prototype", math.nan
    name, _, value = drop.partition(":") if isinstance(drop, str) and ":" in drop else ("constant", "", drop)
    try:
        level = float(value)
    except (TypeError, ValueError):
        level = math.nan
    if (name in ("percentile", "prototype") and 0 <= level <= 100) or (name == "constant" and math.isfinite(level)):
        return name, level
    wanted = "percentile:N with N from 0 to 100, a number, prototype or prototype:N"
    raise InputError(f"drop must be {wanted}, not {drop!r}")


def _log_mean(values: Tensor, batch: Padded) -> Tensor:
    """Return log of the mean of exp over a video's clips, of each step: [B, K]; 0 for steps that are not distinct."""
    rows = batch.is_distinct[..., None]
    over_clips = torch.where(batch.is_clip[:, None], values, -math.inf)
    found = torch.logsumexp(torch.where(rows, over_clips, 0.0), 2) - batch.lengths.to(values).log()[:, None]
    return torch.where(batch.is_distinct, found, 0.0)


def _percentile(match: Tensor, batch: Padded, percent: float) -> Tensor:
    """Return a percentile of each video's costs, between neighbours on a straight line: [B]."""
    counted = batch.is_distinct[..., None] & batch.is_clip[:, None]
    values, _ = torch.where(counted, match, math.inf).flatten(1).sort(1)
    place = (counted.flatten(1).sum(1) - 1).to(torch.float64) * (percent / 100)
    low, high = (values.gather(1, at.long()[:, None])[:, 0] for at in (place.floor(), place.ceil()))
    return torch.lerp(low, high, (place - place.floor()).to(values))


def _why_impossible(at: int, tsorts: Sequence[TSortGraph], lengths: Sequence[int]) -> str:
    steps, clips = tsorts[at].n_steps, lengths[at]
    why = f"it has {clips} clips for {steps} steps" if clips < steps else "its costs leave no finite alignment"
    return f"video {at} cannot show its procedure: {why}; on_impossible='skip' leaves such videos out"


class DropDTWLoss(GraphDropDTWLoss):
    """The same for steps in one fixed order: the graph is a chain."""

    def forward(  # type: ignore[override]
        self, features: Tensor, steps: Tensors, lengths: Lengths = None, skip: Skip = None
    ) -> Tensor:
        """Return the loss of a batch.

        Parameters
        ----------
        features : Tensor [B, N, D]
        steps : sequence of B Tensor [K, D]
            Step embeddings in the order in which they must appear; the same step may come several times.
        lengths : sequence of B int, optional
        skip : Tensor [B, K], optional
        """
        return super().forward(features, steps, _chains(steps), lengths, skip)


@lru_cache(maxsize=256)
def chain_of(length: int) -> FlowGraph:
    """Return the chain of so many steps; one graph for all that ask."""
    return FlowGraph.chain([str(place) for place in range(length)])


def _chains(steps: Tensors) -> list[FlowGraph]:
    return [chain_of(len(of_video)) for of_video in steps]


class ClusteringLoss(nn.Module):
    """Each step, pooled over the clips that are like it, is like itself and unlike the others.

    ``‖I − X̂ Vᵀ‖_F`` with ``X̂_i = Σ_j x_j softmax_j(x_j · v_i / pool_temperature)`` on embeddings of length 1, over the
    distinct steps; averaged over the videos.

    Parameters
    ----------
    pool_temperature : float
    contrastive : bool
        Take the cross-entropy of ``X̂ Vᵀ / pool_temperature`` in place of the norm.
    """

    def __init__(self, pool_temperature: float = 0.1, contrastive: bool = False) -> None:
        super().__init__()
        if not 0 < pool_temperature < math.inf:
            raise InputError(f"pool_temperature must be a finite number above 0, not {pool_temperature!r}")
        self.pool_temperature, self.contrastive = pool_temperature, contrastive

    def forward(self, features: Tensor, steps: Tensors, lengths: Lengths = None) -> Tensor:
        """Return the loss of a batch: features [B, N, D], steps B x [K, D], lengths [B]."""
        clips = check_batch(features, steps, lengths)
        with torch.autocast(features.device.type, enabled=False):
            batch = Padded.of(features, steps, clips, is_unit=True)
            weights = (batch.products() / self.pool_temperature).masked_fill(~batch.is_clip[:, None], -math.inf)
            pooled = torch.softmax(weights, 2) @ batch.clips
            likeness = pooled @ batch.steps.mT  # [B, K, K]
            pairs = batch.is_distinct[:, :, None] & batch.is_distinct[:, None]
            if self.contrastive:
                logits = (likeness / self.pool_temperature).masked_fill(~pairs, -math.inf)
                wrong = torch.logsumexp(torch.where(pairs.any(2, keepdim=True), logits, 0.0), 2)
                wrong = wrong - likeness.diagonal(dim1=1, dim2=2) / self.pool_temperature
                return (torch.where(batch.is_distinct, wrong, 0.0).sum(1) / batch.is_distinct.sum(1)).mean()
            far = torch.eye(likeness.shape[1]).to(likeness) - likeness
            loss: Tensor = torch.linalg.vector_norm(torch.where(pairs, far, 0.0), dim=(1, 2)).mean()
            return loss


class ProcedureLoss(nn.Module):
    """Grounding and clustering added up: what Graph2Vid trains features with.

    Parameters
    ----------
    grounding : GraphDropDTWLoss, optional
        With its own settings.
    clustering : ClusteringLoss, optional
    weight : float
        Of the clustering loss.
    """

    def __init__(
        self, grounding: GraphDropDTWLoss | None = None, clustering: ClusteringLoss | None = None, weight: float = 1.0
    ) -> None:
        super().__init__()
        if not 0 <= weight < math.inf:
            raise InputError(f"weight must be a number from 0 on, not {weight!r}")
        self.grounding, self.clustering = grounding or GraphDropDTWLoss(), clustering or ClusteringLoss()
        self.weight = weight

    def forward(
        self, features: Tensor, steps: Tensors, graphs: Graphs | None = None, lengths: Lengths = None, skip: Skip = None
    ) -> Tensor:
        """Return the loss of a batch.

        Parameters
        ----------
        features, steps, lengths, skip
            As for `GraphDropDTWLoss`.
        graphs : sequence of B FlowGraph or TSortGraph, optional
            By default the steps come in the order given: Drop-DTW.
        """
        orders = _chains(steps) if graphs is None else graphs
        grounded: Tensor = self.grounding(features, steps, orders, lengths, skip)
        clustered: Tensor = self.clustering(features, steps, lengths)
        return grounded + self.weight * clustered
