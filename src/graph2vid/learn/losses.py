"""Losses that teach features to follow procedures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from graph2vid.errors import InfeasibleError, InputError
from graph2vid.flow import FlowGraph
from graph2vid.learn.operator import soft_cost
from graph2vid.tsort import TSortGraph

Graph: TypeAlias = FlowGraph | TSortGraph
ON_IMPOSSIBLE = ("error", "skip")
MATCHES = ("likelihood", "likelihood_bg", "balanced", "raw")
COMPARISONS = ("cosine", "dot")
DEFAULT_DROP = "percentile:30"

_compile_flow = lru_cache(maxsize=4096)(TSortGraph.compile)


def _compile(graph: Graph) -> TSortGraph:
    return graph if isinstance(graph, TSortGraph) else _compile_flow(graph)


class GraphDropDTWLoss(nn.Module):
    """The soft cost of grounding a flow graph in a video, per clip, averaged over the videos of a batch.

    Parameters
    ----------
    gamma : float
        How soft the minimum is.
    smoothing : {"smoothmin", "softmin"}
    contiguous : bool
        Whether each step is one unbroken run of clips; the paper lets background lie inside a step.
    match : {"likelihood", "likelihood_bg", "balanced", "raw"}
        How similarities become match costs: minus the log of the softmax over the distinct steps, the same with
        background among them, or minus the similarity over the temperature. ``balanced`` is ``likelihood`` with the
        step's mean probability over the video's clips divided out: calling every clip the same step then gains nothing,
        which is how features collapse under ``likelihood``.
    drop : str or float
        The price of background: ``"percentile:30"`` of the video's match costs (no gradient flows through it), a
        number, or ``"prototype"``, a learned embedding of background, compared with the clips like a step.
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

    def __init__(
        self,
        gamma: float = 0.1,
        smoothing: str = "smoothmin",
        contiguous: bool = False,
        *,
        match: str = "likelihood",
        drop: str | float = DEFAULT_DROP,
        temperature: float = 0.1,
        comparison: str = "cosine",
        dimension: int | None = None,
        normalise: bool = True,
        on_impossible: str = "error",
    ) -> None:
        super().__init__()
        if match not in MATCHES:
            raise InputError(f"unknown match policy {match!r}; known: {', '.join(MATCHES)}")
        if comparison not in COMPARISONS:
            raise InputError(f"unknown comparison {comparison!r}; known: {', '.join(COMPARISONS)}")
        if on_impossible not in ON_IMPOSSIBLE:
            raise InputError(f"on_impossible must be one of {', '.join(ON_IMPOSSIBLE)}, not {on_impossible!r}")
        if not 0 < temperature < math.inf:
            raise InputError(f"temperature must be a finite number above 0, not {temperature!r}")
        self.gamma, self.smoothing, self.contiguous = gamma, smoothing, contiguous
        self.match, self.temperature, self.normalise = match, temperature, normalise
        self.comparison = comparison
        self.on_impossible = on_impossible
        self.drop, self.percentile = self._read_drop(drop)
        self.prototype: nn.Parameter | None = None
        if self.drop == "prototype":
            if dimension is None:
                raise InputError("a learned prototype of background needs the dimension of the embeddings")
            self.prototype = nn.Parameter(functional.normalize(torch.randn(dimension), dim=0))

    @staticmethod
    def _read_drop(drop: str | float) -> tuple[str, float]:
        name, _, value = str(drop).partition(":") if isinstance(drop, str) else ("constant", "", str(drop))
        if name == "prototype":
            return name, 0.0
        if name in ("percentile", "constant"):
            try:
                return name, float(value or 30.0)
            except ValueError:
                pass
        raise InputError(f"drop must be percentile:N, a number or prototype, not {drop!r}")

    def forward(
        self,
        features: Tensor,
        steps: Sequence[Tensor],
        graphs: Sequence[Graph],
        lengths: Sequence[int] | Tensor | None = None,
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

        Returns
        -------
        Tensor []
        """
        tsorts = [_compile(graph) for graph in graphs]
        clips = check_batch(features, steps, tsorts, lengths)
        match, drop = self.costs(features, steps, clips)
        return self.from_costs(match, drop, tsorts, clips)

    def costs(self, features: Tensor, steps: Sequence[Tensor], lengths: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return match costs [B, K, N] and drop costs [B, N], padded with zeros."""
        longest = max(step.shape[0] for step in steps)
        with torch.autocast(features.device.type, enabled=False):
            clips = self._comparable(_at_least_float32(features))
            matches, drops = [], []
            for at, (of_video, length) in enumerate(zip(steps, lengths, strict=True)):
                match, drop = self._costs_of(clips[at, :length], self._comparable(of_video.to(clips)))
                padding = (0, features.shape[1] - length, 0, longest - of_video.shape[0])
                matches.append(functional.pad(match, padding))
                drops.append(functional.pad(drop, padding[:2]))
        return torch.stack(matches), torch.stack(drops)

    def _comparable(self, vectors: Tensor) -> Tensor:
        return functional.normalize(vectors, dim=-1) if self.comparison == "cosine" else vectors

    def _costs_of(self, clips: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
        """Return match [K, N] and drop [N] costs of one video from vectors whose products are similarities."""
        distinct, classes = torch.unique(steps.detach(), dim=0, return_inverse=True)
        first = torch.stack([(classes == place).nonzero()[0, 0] for place in range(len(distinct))])
        raw = -(steps @ clips.T) / self.temperature
        known = raw[first]
        if self.match == "likelihood_bg":
            joint = torch.cat([known, self._level(known, clips)[None]])
            log_total = torch.logsumexp(-joint, 0)
            return raw + log_total, joint[-1] + log_total
        if self.match == "raw":
            return raw, self._level(known, clips)
        log_total = torch.logsumexp(-known, 0)
        raw, known = raw + log_total, known + log_total
        if self.match == "balanced":
            log_mean = torch.logsumexp(-known, 1, keepdim=True) - math.log(known.shape[1])
            raw, known = raw + log_mean[classes], known + log_mean
        drop = self._level(known, clips)
        return raw, drop + log_total if self.drop == "prototype" else drop

    def _level(self, match: Tensor, clips: Tensor) -> Tensor:
        if self.prototype is not None:
            return -(clips @ self._comparable(self.prototype.to(clips))) / self.temperature
        if self.drop == "constant":
            return match.new_full((match.shape[1],), self.percentile)
        return torch.quantile(match.detach().flatten(), self.percentile / 100).expand(match.shape[1])

    def from_costs(
        self,
        match: Tensor,
        drop: Tensor,
        graphs: Sequence[Graph],
        lengths: Sequence[int] | Tensor | None = None,
        skip: Tensor | None = None,
    ) -> Tensor:
        """Return the loss from ready costs: match [B, K, N], drop [B, N], skip [B, K]."""
        tsorts = [_compile(graph) for graph in graphs]
        clips = [match.shape[2]] * len(tsorts) if lengths is None else [int(length) for length in lengths]
        cost = soft_cost(
            tsorts,
            match,
            drop,
            skip,
            clips,
            gamma=self.gamma,
            smoothing=self.smoothing,
            contiguous=self.contiguous,
        )
        possible = torch.isfinite(cost.detach())
        if self.on_impossible == "error" and not possible.all():
            raise InfeasibleError(_why_impossible(int((~possible).nonzero()[0, 0]), tsorts, clips))
        if self.normalise:
            cost = cost / torch.tensor(clips, dtype=cost.dtype, device=cost.device)
        return torch.where(possible, cost, 0.0).sum() / possible.sum().clamp(min=1)


def _at_least_float32(values: Tensor) -> Tensor:
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


def check_batch(
    features: Tensor, steps: Sequence[Tensor], tsorts: Sequence[TSortGraph], lengths: Sequence[int] | Tensor | None
) -> list[int]:
    """Return the clips of each video; name what does not fit."""
    if features.ndim != 3:
        raise InputError(f"features have shape {tuple(features.shape)}; they must be [videos, clips, dimensions]")
    batch, longest, dimension = features.shape
    clips = [longest] * batch if lengths is None else [int(length) for length in lengths]
    for name, count in (("sets of steps", len(steps)), ("graphs", len(tsorts)), ("lengths", len(clips))):
        if count != batch:
            raise InputError(f"{batch} videos, but {count} {name}")
    for at, (of_video, tsort, length) in enumerate(zip(steps, tsorts, clips, strict=True)):
        if not 1 <= length <= longest:
            raise InputError(f"video {at}: {length} clips; the features have room for 1 to {longest}")
        if of_video.ndim != 2 or of_video.shape[1] != dimension:
            raise InputError(
                f"video {at}: step embeddings {tuple(of_video.shape)} beside clips of {dimension} dimensions"
            )
        if of_video.shape[0] != tsort.n_steps:
            raise InputError(f"video {at}: {of_video.shape[0]} step embeddings for a graph of {tsort.n_steps} steps")
        if not torch.isfinite(features[at, :length]).all():
            raise InputError(f"video {at}: its features hold NaN or infinite numbers")
    return clips


def _why_impossible(at: int, tsorts: Sequence[TSortGraph], lengths: Sequence[int]) -> str:
    steps, clips = tsorts[at].n_steps, lengths[at]
    why = f"it has {clips} clips for {steps} steps" if clips < steps else "its costs leave no finite alignment"
    return f"video {at} cannot show its procedure: {why}; on_impossible='skip' leaves such videos out"


class DropDTWLoss(GraphDropDTWLoss):
    """The same for steps in one fixed order: the graph is a chain."""

    def forward(  # type: ignore[override]
        self, features: Tensor, steps: Sequence[Tensor], lengths: Sequence[int] | Tensor | None = None
    ) -> Tensor:
        """Return the loss of a batch.

        Parameters
        ----------
        features : Tensor [B, N, D]
        steps : sequence of B Tensor [K, D]
            Step embeddings in the order in which they must appear; the same step may come several times.
        lengths : sequence of B int, optional
        """
        return super().forward(features, steps, [_chain(len(of_video)) for of_video in steps], lengths)


def _chain(length: int) -> FlowGraph:
    return FlowGraph.chain([str(place) for place in range(length)])


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

    def forward(
        self, features: Tensor, steps: Sequence[Tensor], lengths: Sequence[int] | Tensor | None = None
    ) -> Tensor:
        """Return the loss of a batch: features [B, N, D], steps B x [K, D], lengths [B]."""
        clips = [features.shape[1]] * len(steps) if lengths is None else [int(length) for length in lengths]
        with torch.autocast(features.device.type, enabled=False):
            unit = functional.normalize(_at_least_float32(features), dim=-1)
            losses = [
                self._loss_of(unit[at, :length], functional.normalize(torch.unique(of_video, dim=0).to(unit), dim=-1))
                for at, (of_video, length) in enumerate(zip(steps, clips, strict=True))
            ]
        return torch.stack(losses).mean()

    def _loss_of(self, clips: Tensor, steps: Tensor) -> Tensor:
        weights = torch.softmax(steps @ clips.T / self.pool_temperature, dim=1)
        similarity = (weights @ clips) @ steps.T
        if self.contrastive:
            each = torch.arange(len(steps), device=clips.device)
            return functional.cross_entropy(similarity / self.pool_temperature, each)
        distance: Tensor = torch.linalg.norm(torch.eye(len(steps)).to(similarity) - similarity)
        return distance
