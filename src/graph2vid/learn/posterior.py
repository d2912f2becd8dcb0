"""Posteriors of a batch of videos of different procedures and lengths, on CPU or GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graph2vid.alignment import check_gamma, soft_costs
from graph2vid.errors import InputError
from graph2vid.learn.operator import check_costs, gpu_kernels, own_costs, padded_results, refuse_extended
from graph2vid.tsort import TSortGraph


@dataclass(frozen=True)
class Posteriors:
    """How probable labels, beginnings and ends are, over all alignments weighted by exp(-cost / gamma).

    Zero beyond a video's own steps and clips, and where no alignment is possible.

    Attributes
    ----------
    cost : Tensor [B]
        The softmin over all alignments.
    match : Tensor [B, K, N]
        That a clip shows a step.
    drop : Tensor [B, N]
        That a clip shows none.
    start : Tensor [B, K, N], or None
        That a step begins at a clip; None where background may lie inside a step.
    """

    cost: Tensor
    match: Tensor
    drop: Tensor
    start: Tensor | None

    @property
    def end(self) -> Tensor:
        """That a clip is the last of a step: [B, K, N]."""
        goes_on = torch.zeros_like(self.match)
        goes_on[..., :-1] = self.match[..., 1:] - self._start[..., 1:]
        return self.match - goes_on

    @property
    def expected(self) -> Tensor:
        """Where each step begins and ends on the average, in clips: [B, K, 2]; NaN where it is not shown at all.

        A step that shows clips 3 and 4 begins at 3 and ends at 5.
        """
        clips = torch.arange(self.match.shape[2]).to(self.match)
        begin = (self._start @ clips) / self._start.sum(-1)
        end = (self.end @ (clips + 1)) / self.end.sum(-1)
        return torch.stack([begin, end], -1)

    @property
    def _start(self) -> Tensor:
        if self.start is None:
            raise InputError("only steps that are one unbroken segment of clips have one beginning and one end")
        return self.start


@torch.no_grad()
def posteriors(
    tsorts: Sequence[TSortGraph],
    match: Tensor,
    drop: Tensor,
    skip: Tensor | None = None,
    lengths: Sequence[int] | Tensor | None = None,
    *,
    gamma: float = 1.0,
    contiguous: bool = True,
) -> Posteriors:
    """Return the posteriors of a padded batch.

    Parameters
    ----------
    tsorts : sequence of B TSortGraph
    match, drop : Tensor [B, K, N], [B, N]
        Costs, on CPU or GPU; computed there, in float64 if they are, else in float32.
    skip : Tensor [B, K], optional
        Costs of leaving a step out; +inf, as all are by default: it must appear.
    lengths : sequence of B int, optional
        The clips of each video.
    gamma : float
        How soft the minimum is.
    contiguous : bool
        Whether each step is one unbroken segment of clips.
    """
    gamma = check_gamma(gamma)
    clips = check_costs(tsorts, match, drop, skip, lengths)
    refuse_extended(tsorts, "graph2vid.posterior knows them")
    dtype = match.dtype if match.dtype == torch.float64 else torch.float32
    match, drop, skip = match.to(dtype), drop.to(dtype), None if skip is None else skip.to(dtype)
    if match.is_cuda and gpu_kernels():
        from graph2vid.learn.cuda import Kind, costs_on_gpu

        kind = Kind("softmin", contiguous, gradient=True, skips=skip is not None)
        shown = costs_on_gpu(tsorts, match, drop, clips, skip, gamma=gamma, kind=kind)
        assert shown.match is not None and shown.drop is not None
        begun = None
        if contiguous:
            begun = costs_on_gpu(tsorts, match, drop, clips, skip, gamma=gamma, kind=replace(kind, starts=True)).match
        return Posteriors(shown.cost, shown.match, shown.drop, begun)
    found = soft_costs(
        own_costs(tsorts, clips, match, drop, skip),
        gamma=gamma,
        smoothing="softmin",
        contiguous=contiguous,
        starts=contiguous,
    )
    cost, shown_by, dropped, start = padded_results(found, match, ("match", "drop", "start"))
    return Posteriors(cost, shown_by, dropped, start if contiguous else None)
