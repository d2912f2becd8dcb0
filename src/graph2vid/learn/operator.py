"""The soft cost of grounding as a torch operator: one call for a batch of videos of different graphs and lengths."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graph2vid.alignment import SMOOTHINGS, ClipCosts, check_gamma, soft_costs
from graph2vid.errors import Graph2VidError, InputError
from graph2vid.learn.padded import clips_of
from graph2vid.tsort import TSortGraph


def soft_cost(
    tsorts: Sequence[TSortGraph],
    match: Tensor,
    drop: Tensor,
    skip: Tensor | None = None,
    lengths: Sequence[int] | Tensor | None = None,
    *,
    gamma: float = 0.1,
    smoothing: str = "smoothmin",
    contiguous: bool = False,
) -> Tensor:
    """Return the soft cost of each video of a padded batch; differentiable once.

    Parameters
    ----------
    tsorts : sequence of B TSortGraph
        The compiled procedure of each video.
    match : Tensor [B, K, N]
        Match costs; K and N are those of the largest procedure and the longest video. What lies beyond a video's own
        steps and clips is never read.
    drop : Tensor [B, N]
    skip : Tensor [B, K], optional
        +inf: the step must appear; that is so for all steps by default.
    lengths : sequence of B int, optional
        The clips of each video; N by default.
    gamma : float
        How soft the minimum is, > 0.
    smoothing : {"smoothmin", "softmin"}
    contiguous : bool
        Whether each step is one unbroken run of clips.

    Returns
    -------
    Tensor [B]
        float32 or float64, as ``match`` (half precision is computed in float32); +inf where no alignment is possible.
        The gradient of such a video is zero. NaN and -inf among the costs are refused; on the GPU, where looking would
        make everything wait, the cost of such a video is NaN.
    """
    check_smoothing(smoothing)
    clips = check_costs(tsorts, match, drop, skip, lengths)
    dtype = match.dtype if match.dtype in (torch.float32, torch.float64) else torch.float32
    with torch.autocast(match.device.type, enabled=False):
        costs = (match.to(dtype), drop.to(dtype), None if skip is None else skip.to(dtype))
        wanted = torch.is_grad_enabled() and any(cost is not None and cost.requires_grad for cost in costs)
        how = (check_gamma(gamma), smoothing == "smoothmin", contiguous, wanted)
        if torch.compiler.is_compiling():
            opaque: Tensor = _soft_cost(*costs, [tsort.number for tsort in tsorts], clips, *how)[0]
            return opaque
        found: Tensor = _SoftCost.apply(*costs, tsorts, clips, *how)  # type: ignore[no-untyped-call]
    return found


def check_smoothing(smoothing: str) -> str:
    """Return the name of a smoothing that there is."""
    if smoothing not in SMOOTHINGS:
        raise InputError(f"unknown smoothing {smoothing!r}; known: {', '.join(SMOOTHINGS)}")
    return smoothing


def check_costs(
    tsorts: Sequence[TSortGraph],
    match: Tensor,
    drop: Tensor,
    skip: Tensor | None,
    lengths: Sequence[int] | Tensor | None,
) -> list[int]:
    """Return the clips of each video of a batch; name what does not fit."""
    if len(tsorts) == 0 or match.ndim != 3 or match.shape[0] != len(tsorts) or 0 in match.shape:
        raise InputError(f"match has shape {tuple(match.shape)}; it must be [{len(tsorts)} videos, steps, clips]")
    if drop.shape != (match.shape[0], match.shape[2]):
        raise InputError(f"drop has shape {tuple(drop.shape)}; beside match {tuple(match.shape)} it must be [B, N]")
    if skip is not None and skip.shape != match.shape[:2]:
        raise InputError(f"skip has shape {tuple(skip.shape)}; beside match {tuple(match.shape)} it must be [B, K]")
    for at, tsort in enumerate(tsorts):
        if not isinstance(tsort, TSortGraph):
            raise InputError(f"video {at}: its graph must be a TSortGraph (TSortGraph.compile(flow)), not {tsort!r}")
        if tsort.n_steps > match.shape[1]:
            raise InputError(f"video {at}: its graph has {tsort.n_steps} steps, match only {match.shape[1]} rows")
    return clips_of(lengths, len(tsorts), match.shape[2])


Found: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor]
Gradients: TypeAlias = tuple[Tensor | None, ...]


def _compute(
    match: Tensor,
    drop: Tensor,
    skip: Tensor | None,
    tsorts: Sequence[TSortGraph],
    lengths: Sequence[int],
    gamma: float,
    smooth: bool,
    contiguous: bool,
    gradient: bool,
) -> Found:
    """Return cost [B] and its gradients by match, drop and skip (empty where they are not wanted)."""
    smoothing = "smoothmin" if smooth else "softmin"
    refuse_features(tsorts)
    if match.is_cuda:
        if gpu_kernels():
            from graph2vid.learn.cuda import Kind, costs_on_gpu

            kind = Kind(smoothing, contiguous, gradient, skips=skip is not None)
            gpu = costs_on_gpu(tsorts, match, drop, lengths, skip, gamma=gamma, kind=kind)
            nothing = match.new_empty(0)
            if gpu.match is None or gpu.drop is None or gpu.skip is None:
                return gpu.cost, nothing, nothing.clone(), nothing.clone()
            return gpu.cost, gpu.match, gpu.drop, gpu.skip
        _warn_of_detour()
    videos = list(zip(tsorts, lengths, strict=True))
    found = soft_costs(
        own_costs(videos, match, drop, skip),
        gamma=gamma,
        smoothing=smoothing,
        contiguous=contiguous,
        gradient=gradient,
    )
    dtype = np.float64 if match.dtype == torch.float64 else np.float32
    cost = np.array([result.cost for result in found], dtype)
    shapes = (match.shape, drop.shape, (0,) if skip is None else skip.shape) if gradient else ((0,),) * 3
    match_grad, drop_grad, skip_grad = (np.zeros(shape, dtype) for shape in shapes)
    if gradient:
        for at, (result, (tsort, length)) in enumerate(zip(found, videos, strict=True)):
            match_grad[at, : tsort.n_steps, :length] = result.match
            drop_grad[at, :length] = result.drop
            if skip is not None:
                skip_grad[at, : tsort.n_steps] = result.skip
    arrays = (cost, match_grad, drop_grad, skip_grad)
    return tuple(torch.from_numpy(part).to(match.device) for part in arrays)  # type: ignore[return-value]


def refuse_features(tsorts: Sequence[TSortGraph]) -> None:
    """Refuse procedures that say more than a plain graph can."""
    for at, tsort in enumerate(tsorts):
        if not tsort.flow.is_plain:
            raise InputError(
                f"video {at}: its procedure has optional or alternative steps, or edges that are not certain; batches "
                "know plain graphs and skip costs alone (graph2vid.posterior knows the rest)"
            )


Videos: TypeAlias = Sequence[tuple[TSortGraph, int]]


def own_costs(videos: Videos, match: Tensor, drop: Tensor, skip: Tensor | None) -> list[tuple[TSortGraph, ClipCosts]]:
    """Return each video's graph and its costs without padding, on the CPU; NaN and -inf are refused."""
    matches, drops = (part.detach().cpu().numpy() for part in (match, drop))
    skips = None if skip is None else skip.detach().cpu().numpy()
    found = []
    for at, (tsort, length) in enumerate(videos):
        costs = ClipCosts(
            _checked(matches[at, : tsort.n_steps, :length], f"video {at}: its match costs"),
            _checked(drops[at, :length], f"video {at}: its drop costs"),
            None if skips is None else _checked(skips[at, : tsort.n_steps], f"video {at}: its skip costs"),
        )
        found.append((tsort, costs))
    return found


def _checked(costs: NDArray[Any], name: str) -> NDArray[Any]:
    if not costs.min() > -np.inf:
        raise InputError(f"{name} hold NaN or -inf")
    return np.ascontiguousarray(costs)


@torch.library.custom_op("graph2vid::soft_cost", mutates_args=())
def _soft_cost(
    match: Tensor,
    drop: Tensor,
    skip: Tensor | None,
    graphs: list[int],
    lengths: list[int],
    gamma: float,
    smooth: bool,
    contiguous: bool,
    gradient: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Do the same where torch compiles: an operator it does not look into, which takes numbers and tensors alone."""
    tsorts = [TSortGraph.numbered(number) for number in graphs]
    return _compute(match, drop, skip, tsorts, lengths, gamma, smooth, contiguous, gradient)


@_soft_cost.register_fake
def _(
    match: Tensor,
    drop: Tensor,
    skip: Tensor | None,
    graphs: list[int],
    lengths: list[int],
    gamma: float,
    smooth: bool,
    contiguous: bool,
    gradient: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    cost = match.new_empty(match.shape[0])
    if not gradient:
        return cost, match.new_empty(0), match.new_empty(0), match.new_empty(0)
    like_skip = match.new_empty(0) if skip is None else torch.empty_like(skip)
    return cost, torch.empty_like(match), torch.empty_like(drop), like_skip


class _SoftCost(torch.autograd.Function):
    """The same for plain calls: the operator's way through torch takes longer than a short video."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        output = _compute(*inputs)
        _keep_gradients(ctx, inputs, output)
        return output[0]

    @staticmethod
    def backward(ctx: Any, cost_grad: Tensor) -> Gradients:
        return _backward(ctx, cost_grad)


def _keep_gradients(ctx: Any, inputs: tuple[Any, ...], output: Found) -> None:
    ctx.save_for_backward(*output)
    ctx.skips = inputs[2] is not None


def _backward(ctx: Any, cost_grad: Tensor, *_: Tensor) -> Gradients:
    if torch.is_grad_enabled():
        raise Graph2VidError(
            "the soft cost of grounding can be differentiated once; there is no second derivative (create_graph=True)"
        )
    cost, match_grad, drop_grad, skip_grad = ctx.saved_tensors
    # What is impossible passes no gradient, whatever arrives from above.
    scale = torch.where(torch.isfinite(cost), cost_grad, 0.0)
    return (
        scale[:, None, None] * match_grad,
        scale[:, None] * drop_grad,
        scale[:, None] * skip_grad if ctx.skips else None,
        *[None] * 6,
    )


_soft_cost.register_autograd(_backward, setup_context=_keep_gradients)


@cache
def gpu_kernels() -> bool:
    """Whether CUDA kernels can be compiled here."""
    from graph2vid.learn.cuda import CudaError
    from graph2vid.learn.cuda.compiler import nvrtc

    try:
        nvrtc()
    except CudaError:
        return False
    return True


@cache
def _warn_of_detour() -> None:
    """Say once that the GPU waits for the CPU."""
    warnings.warn(
        "the recursion runs on the CPU, and tensors on the GPU are copied there and back: NVRTC is not installed",
        RuntimeWarning,
        stacklevel=2,
    )
