"""Soft costs of grounding as a torch operator, and posteriors: one call for a batch of different procedures."""

from __future__ import annotations

import atexit
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from graph2vid.alignment import (
    SMOOTHINGS,
    AutomatonProblem,
    ClipCosts,
    Durations,
    Problem,
    SoftCost,
    check_gamma,
    soft_costs,
)
from graph2vid.errors import Graph2VidError, InfeasibleError, InputError
from graph2vid.flow import FlowGraph
from graph2vid.learn.cuda import CudaError, Kind, automata_on_gpu, begun_on_gpu, costs_on_gpu
from graph2vid.learn.cuda.compiler import nvrtc
from graph2vid.learn.padded import Lengths, Skip, clips_of, refuse_complex, scaled
from graph2vid.tsort import TSortGraph

TSorts: TypeAlias = Sequence[TSortGraph]
Shape: TypeAlias = tuple[int, ...]
Found: TypeAlias = tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]
"""Cost [B] and its gradients by match, drop and skip; None where they are not wanted."""


@dataclass(frozen=True)
class SoftOptions:
    """How soft costs are computed.

    Attributes
    ----------
    gamma : float
        How soft the minimum is, > 0.
    smoothing : {"smoothmin", "softmin"}
    contiguous : bool
        Whether each step is one unbroken segment of clips.
    repeat : float or callable, optional
        The cost of each repeat of a step; by default none is repeated. A function is called with the flow graph of each
        video, and returns a cost or one for each step.
    durations : int, Durations or callable, optional
        The fewest clips of a segment, or what segments cost by their length (:class:`graph2vid.Durations`), or a
        function of the flow graph that returns either.
    violation : float
        What the log-odds of an edge's confidence are multiplied by to give the cost of violating it.
    """

    gamma: float = 0.1
    smoothing: str = "smoothmin"
    contiguous: bool = False
    repeat: float | Callable[[FlowGraph], Any] | None = None
    durations: int | Durations | Callable[[FlowGraph], Any] | None = None
    violation: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", check_gamma(self.gamma))
        refuse_unknown("smoothing", self.smoothing, SMOOTHINGS)
        if (self.repeat is not None or self.durations is not None) and not self.knows_extended:
            raise InputError("repeats and durations need smoothing='softmin' and contiguous=True")

    @property
    def knows_extended(self) -> bool:
        """Whether the extended model can be computed: the sum over its alignments is known for softmin alone."""
        return self.smoothing == "softmin" and self.contiguous

    def extended(self, tsorts: Iterable[TSortGraph]) -> bool:
        """Whether a batch needs the extended model; one that is not known with these options is refused."""
        if self.repeat is not None or self.durations is not None:
            return True
        if self.knows_extended:
            return any(tsort.flow.has_choices for tsort in tsorts)
        refuse_extended(tsorts, "smoothing='softmin' with contiguous=True knows them")
        return False

    def problem(self, tsort: TSortGraph, costs: ClipCosts) -> Problem:
        """Return a video as a problem of the extended model."""
        repeat, durations = (one(tsort.flow) if callable(one) else one for one in (self.repeat, self.durations))
        return Problem(tsort, costs.match, costs.drop, costs.skip, repeat, durations, self.violation)

    def posterior(self, tsort: TSortGraph, costs: ClipCosts) -> SoftCost:
        """Return the soft cost of a video in the extended model; its gradients are the probabilities of labels."""
        try:
            found = self.problem(tsort, costs).posterior(self.gamma)
        except InfeasibleError:
            return SoftCost(np.inf, None, None, None)
        return SoftCost(found.cost, found.probability[:-1], found.probability[-1], None)


def refuse_unknown(what: str, name: str, known: Sequence[str]) -> None:
    """Refuse a name that is none of those known."""
    if name not in known:
        raise InputError(f"unknown {what} {name!r}; known: {', '.join(known)}")


def soft_cost(
    tsorts: TSorts, match: Tensor, drop: Tensor, skip: Skip = None, lengths: Lengths = None, **options: Any
) -> Tensor:
    """Return the soft cost of each video of a padded batch; differentiable once.

    Parameters
    ----------
    tsorts : sequence of B TSortGraph
        The compiled procedure of each video. Optional and alternative steps need ``smoothing="softmin",
        contiguous=True``.
    match : Tensor [B, K, N]
        Match costs; K and N are those of the largest procedure and the longest video. What lies beyond a video's own
        steps and clips is never read.
    drop : Tensor [B, N]
    skip : Tensor [B, K], optional
        +inf: the step must appear; that is so for all steps by default.
    lengths : sequence of B int, optional
        The clips of each video; N by default.
    **options
        Those of `SoftOptions`: gamma, smoothing, contiguous, repeat, durations, violation. In the extended model no
        gradient flows into ``skip``; on the GPU it is computed in float64.

    Returns
    -------
    Tensor [B]
        float32 or float64, as ``match`` (half precision is computed in float32); +inf where no alignment is possible.
        The gradient of such a video is zero. NaN and -inf among the costs are refused; on the GPU, where looking would
        make everything wait, the cost of such a video is NaN.
    """
    if torch.compiler.is_compiling():
        return _opaque_cost(tsorts, match, drop, skip, lengths, SoftOptions(**options))
    _refuse_transforms()
    clips = None
    if lengths is not None:
        clips = tuple(lengths.tolist() if isinstance(lengths, Tensor) else np.asarray(lengths).tolist())
    given = (tuple(tsorts), match.shape, drop.shape, None if skip is None else skip.shape, clips)
    try:
        asked = _asked(*given, **options)
    except TypeError:  # something among them has no hash
        asked = _asked.__wrapped__(*given, **options)
    match, drop, skip = _in_one_dtype(match, drop, skip)
    if not (torch.is_grad_enabled() and _varies(match, drop, skip)):
        return _compute(match, drop, skip, asked, gradient=False)[0]
    found: Tensor = _SoftCost.apply(match, drop, skip, asked)  # type: ignore[no-untyped-call]
    return found


def _refuse_transforms() -> None:
    """Refuse derivatives that do not come from a backward pass: forward mode would silently be without them."""
    if torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        raise InputError("the soft cost knows neither torch.func nor forward mode: use torch.autograd.grad")


class _Asked(NamedTuple):
    """What is asked of a batch, checked."""

    tsorts: tuple[TSortGraph, ...]
    clips: tuple[int, ...]
    how: SoftOptions
    extended: bool
    kinds: tuple[Kind, Kind]  # of the GPU's kernels, without and with a gradient

    @classmethod
    def of(cls, tsorts: tuple[TSortGraph, ...], clips: Iterable[int], how: SoftOptions, skips: bool) -> _Asked:
        kinds = [Kind(how.smoothing, how.contiguous, gradient, skips=skips) for gradient in (False, True)]
        extended = how.extended(tsorts)
        if not extended and how.violation != 1.0:
            tsorts = tuple(tsort.with_violation(how.violation) for tsort in tsorts)
        return cls(tsorts, tuple(clips), how, extended, (kinds[0], kinds[1]))


@lru_cache(maxsize=16, typed=True)
def _asked(
    tsorts: tuple[TSortGraph, ...], match: Shape, drop: Shape, skip: Shape | None, clips: Lengths, **options: Any
) -> _Asked:
    """Check a batch, given the shapes of its costs; one that was seen before is not looked at again."""
    how = SoftOptions(**options)
    return _Asked.of(tsorts, check_shapes(tsorts, match, drop, skip, clips), how, skip is not None)


atexit.register(_asked.cache_clear)  # graphs hold what is compiled, which nanobind wants to be gone by then


def _opaque_cost(tsorts: TSorts, match: Tensor, drop: Tensor, skip: Skip, lengths: Lengths, how: SoftOptions) -> Tensor:
    """Return the same where torch compiles."""
    clips = check_shapes(tsorts, match.shape, drop.shape, None if skip is None else skip.shape, lengths)
    if (how.repeat, how.durations, how.violation) != (None, None, 1.0):
        raise InputError("repeat, durations and violation cannot be compiled: use torch.compiler.disable")
    costs = _in_one_dtype(match, drop, skip)
    flags = [how.smoothing == "smoothmin", how.contiguous, torch.is_grad_enabled() and _varies(*costs)]
    found: Tensor = _soft_cost(*costs, [tsort.number for tsort in tsorts], clips, how.gamma, flags)[0]
    return found


def _varies(match: Tensor, drop: Tensor, skip: Skip) -> bool:
    return match.requires_grad or drop.requires_grad or (skip is not None and skip.requires_grad)


def _in_one_dtype(match: Tensor, drop: Tensor, skip: Skip) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return costs in the dtype of the match costs, half precision in float32."""
    dtype = torch.float64 if match.dtype == torch.float64 else torch.float32
    if skip is None and match.dtype == dtype and drop.dtype == dtype:
        return match, drop, None
    refuse_complex(match=match, drop=drop, skip=skip)
    return match.to(dtype), drop.to(dtype), None if skip is None else skip.to(dtype)


def check_shapes(tsorts: TSorts, match: Shape, drop: Shape, skip: Shape | None, lengths: Lengths) -> list[int]:
    """Return the clips of each video of a batch; name what does not fit."""
    shape = tuple(match)
    if len(tsorts) == 0 or len(shape) != 3 or shape[0] != len(tsorts) or 0 in shape:
        raise InputError(f"match has shape {shape}; it must be [{len(tsorts)} videos, steps, clips]")
    for name, part, wanted, axes in (("drop", drop, shape[::2], "[B, N]"), ("skip", skip, shape[:2], "[B, K]")):
        if part is not None and part != wanted:
            raise InputError(f"{name} has shape {tuple(part)}; beside match {shape} it must be {axes}")
    for at, tsort in enumerate(tsorts):
        if not isinstance(tsort, TSortGraph):
            raise InputError(f"video {at}: its graph must be a TSortGraph (TSortGraph.compile(flow)), not {tsort!r}")
        if tsort.n_steps > shape[1]:
            raise InputError(f"video {at}: its graph has {tsort.n_steps} steps, match only {shape[1]} rows")
    return clips_of(lengths, len(tsorts), shape[2])


def _compute(match: Tensor, drop: Tensor, skip: Skip, asked: _Asked, gradient: bool) -> Found:
    tsorts, clips, how, extended, kinds = asked
    if extended and gradient and skip is not None and skip.requires_grad:
        raise InputError("the extended model knows no gradient of skip costs: detach them (skip.detach())")
    if _runs_on_gpu(match, () if extended else tsorts):
        if extended:
            problems = _on_automata(tsorts, clips, skip, how)
            return automata_on_gpu(problems, match, drop, clips, gamma=how.gamma, gradient=gradient)
        return costs_on_gpu(tsorts, match, drop, clips, skip, gamma=how.gamma, kind=kinds[gradient])
    own = own_costs(tsorts, clips, match, drop, skip)
    if extended:
        found = [how.posterior(*video) for video in own]
    else:
        found = soft_costs(own, gamma=how.gamma, smoothing=how.smoothing, contiguous=how.contiguous, gradient=gradient)
    wanted = () if not gradient else ("match", "drop") if skip is None else ("match", "drop", "skip")
    cost, *gradients = padded_results(found, match, wanted)
    return cost, *gradients, *[None] * (3 - len(gradients))  # type: ignore[return-value]


def _on_automata(tsorts: TSorts, lengths: Sequence[int], skip: Skip, how: SoftOptions) -> list[AutomatonProblem]:
    """Return of each video its automaton and all costs but those of its clips, which stay on the GPU."""
    skips = None if skip is None else skip.detach().double().cpu().numpy()
    known: dict[tuple[TSortGraph, int, bytes], AutomatonProblem] = {}
    found = []
    for at, (tsort, length) in enumerate(zip(tsorts, lengths, strict=True)):
        own = None if skips is None else np.ascontiguousarray(skips[at, : tsort.n_steps])
        key = (tsort, length, b"" if own is None else own.tobytes())
        if key not in known:
            costs = ClipCosts(np.zeros((tsort.n_steps, length)), np.zeros(length), own)
            known[key] = how.problem(tsort, costs).on_automaton(costs)
        found.append(known[key])
    return found


def padded_results(found: Sequence[SoftCost], match: Tensor, names: Iterable[str]) -> list[Tensor]:
    """Return the cost of each video, and the named gradients padded with zeros to the shapes of the batch."""
    dtype = np.float64 if match.dtype == torch.float64 else np.float32
    shapes = {"match": match.shape, "start": match.shape, "drop": match.shape[::2], "skip": match.shape[:2]}
    wholes = [np.array([video.cost for video in found], dtype)]
    for name in names:
        whole = np.zeros(shapes[name], dtype)
        for at, video in enumerate(found):
            if (own := getattr(video, name)) is not None:
                whole[at][tuple(map(slice, own.shape))] = own
        wholes.append(whole)
    return [torch.from_numpy(whole).to(match.device) for whole in wholes]


def refuse_extended(tsorts: Iterable[TSortGraph], advice: str) -> None:
    """Refuse procedures with optional or alternative steps."""
    for at, tsort in enumerate(tsorts):
        if tsort.flow.has_choices:
            what = "its procedure has optional or alternative steps"
            raise InputError(f"video {at}: {what}; {advice}")


def own_costs(
    tsorts: TSorts, lengths: Sequence[int], match: Tensor, drop: Tensor, skip: Skip
) -> list[tuple[TSortGraph, ClipCosts]]:
    """Return each video's graph and its costs without padding, on the CPU; NaN and -inf are refused."""
    matches, drops = (part.detach().cpu().numpy() for part in (match, drop))
    skips = None if skip is None else skip.detach().cpu().numpy()
    found = []
    for at, (tsort, length) in enumerate(zip(tsorts, lengths, strict=True)):
        parts = {"match": matches[at, : tsort.n_steps, :length], "drop": drops[at, :length]}
        if skips is not None:
            parts["skip"] = skips[at, : tsort.n_steps]
        for name, part in parts.items():
            if not part.min() > -np.inf:
                raise InputError(f"video {at}: its {name} costs hold NaN or -inf")
            parts[name] = np.ascontiguousarray(part)
        found.append((tsort, ClipCosts(parts["match"], parts["drop"], parts.get("skip"))))
    return found


@torch.library.custom_op("graph2vid::soft_cost", mutates_args=())
def _soft_cost(
    match: Tensor, drop: Tensor, skip: Skip, graphs: list[int], lengths: list[int], gamma: float, flags: list[bool]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Do the same where torch compiles: an operator it does not look into, which takes numbers and tensors alone.

    ``flags`` are smoothmin, contiguous, gradient.
    """
    smooth, contiguous, gradient = flags
    how = SoftOptions(gamma, "smoothmin" if smooth else "softmin", contiguous)
    tsorts = tuple(TSortGraph.numbered(number) for number in graphs)
    cost, *gradients = _compute(match, drop, skip, _Asked.of(tsorts, lengths, how, skip is not None), gradient)
    return cost, *(match.new_empty(0) if part is None else part for part in gradients)  # type: ignore[return-value]


@_soft_cost.register_fake
def _(match: Tensor, drop: Tensor, skip: Skip, *rest: Any) -> Found:
    cost = match.new_empty(match.shape[0])
    *_, (*_, gradient) = rest  # the last of the flags
    parts = (match, drop, skip) if gradient else (None, None, None)
    like = [match.new_empty(0) if part is None else torch.empty_like(part) for part in parts]
    return cost, *like  # type: ignore[return-value]


def _keep_gradients(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*output)


def _refuse_second_derivative() -> None:
    if torch.is_grad_enabled():
        raise Graph2VidError(
            "the soft cost of grounding can be differentiated once; there is no second derivative (create_graph=True)"
        )


def _backward(ctx: Any, above: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    _refuse_second_derivative()
    cost, *gradients = ctx.saved_tensors
    needed = [part if needed else None for part, needed in zip(gradients, ctx.needs_input_grad, strict=False)]
    return *scaled(cost, needed, above), *[None] * 4


_soft_cost.register_autograd(_backward, setup_context=_keep_gradients)
_graph_is_kept: Callable[[], bool] = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", lambda: True)


class _SoftCost(torch.autograd.Function):
    """The same for plain calls: the operator's way through torch takes longer than a short video.

    So does that of saved tensors: what the backward pass needs is kept here, and let go of there.
    """

    @staticmethod
    def forward(ctx: Any, match: Tensor, drop: Tensor, skip: Skip, asked: _Asked) -> Tensor:
        if not asked.extended and _runs_on_gpu(match, asked.tsorts):
            tsorts, clips, how, _, (_, kind) = asked
            cost, ctx.pass_back = begun_on_gpu(tsorts, match, drop, clips, skip, gamma=how.gamma, kind=kind)
            return cost
        cost, *gradients = _compute(match, drop, skip, asked, gradient=True)
        ctx.pass_back = partial(scaled, cost.clone(), gradients)
        return cost

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        _refuse_second_derivative()
        if (pass_back := ctx.pass_back) is None:
            raise RuntimeError("backward through the soft cost a second time; specify retain_graph=True the first time")
        # Where the graph is not kept, no other pass reads what forward left.
        if not (kept := _graph_is_kept()):
            ctx.pass_back = None
        return *pass_back(above, in_place=not kept), None


@cache
def gpu_kernels() -> bool:
    """Whether CUDA kernels can be compiled here."""
    with suppress(CudaError):
        nvrtc()
        return True
    return False


def _runs_on_gpu(match: Tensor, tsorts: TSorts) -> bool:
    """Return True if the recursion runs where the costs are; warn once of a detour by the CPU."""
    if not match.is_cuda:
        return False
    if not gpu_kernels():
        _warn_of_detour("NVRTC is not installed")
    elif any(tsort.order is not None for tsort in tsorts):
        _warn_of_detour("the kernels of the GPU know no costs of inverted steps (soft edges, a written order)")
    else:
        return True
    return False


@cache
def _warn_of_detour(why: str) -> None:
    """Say once that the GPU waits for the CPU."""
    message = f"the recursion runs on the CPU, and tensors on the GPU are copied there and back: {why}"
    warnings.warn(message, RuntimeWarning, stacklevel=2)


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
    tsorts: TSorts,
    match: Tensor,
    drop: Tensor,
    skip: Skip = None,
    lengths: Lengths = None,
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
    _refuse_transforms()
    gamma = check_gamma(gamma)
    clips = check_shapes(tsorts, match.shape, drop.shape, None if skip is None else skip.shape, lengths)
    refuse_extended(tsorts, "graph2vid.posterior knows them")
    match, drop, skip = _in_one_dtype(match, drop, skip)
    if _runs_on_gpu(match, tsorts):
        kind = Kind("softmin", contiguous, gradient=True, skips=skip is not None)
        shown = costs_on_gpu(tsorts, match, drop, clips, skip, gamma=gamma, kind=kind)
        assert shown.match is not None and shown.drop is not None
        begun = None
        if contiguous:
            begun = costs_on_gpu(tsorts, match, drop, clips, skip, gamma=gamma, kind=kind._replace(starts=True)).match
        return Posteriors(shown.cost, shown.match, shown.drop, begun)
    own = own_costs(tsorts, clips, match, drop, skip)
    found = soft_costs(own, gamma=gamma, smoothing="softmin", contiguous=contiguous, starts=contiguous)
    cost, shown_by, dropped, start = padded_results(found, match, ("match", "drop", "start"))
    return Posteriors(cost, shown_by, dropped, start if contiguous else None)
