"""What :class:`~graph2vid.Problem` answers, in one call each: `align`, `posterior`, `k_best`, `margins`."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import Parameter, signature
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid._deprecated import renamed
from graph2vid.alignment.alignment_result import Alignment, Posterior
from graph2vid.alignment.backends import ResourceOptions, Resources
from graph2vid.alignment.clip_costs import Constraint
from graph2vid.alignment.durations import Durations
from graph2vid.alignment.problem import Problem
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph


class Options(ResourceOptions, total=False):
    """What callers may say beside the costs: the options of :class:`Problem`, and of :class:`Resources`."""

    repeat: Any
    durations: Durations | ArrayLike | None
    violation: float
    constraints: Iterable[Constraint]


def _asked(
    flow: FlowGraph | TSortGraph, match: Any, drop: Any, skip: Any, contiguous: bool, options: Any
) -> tuple[Problem, Any]:
    """Return the problem of a call, and the resources among its options."""
    if not options:  # said at once: most calls ask for nothing
        return Problem(flow, match, drop, skip, None, None, 1.0, (), contiguous), options
    resources = {name: options.pop(name) for name in Resources._fields if name in options}
    return Problem(flow, match, drop, skip, contiguous=contiguous, **options), resources


@renamed(breaking="violation", threads="workers")
def align(
    flow: FlowGraph | TSortGraph,
    match: Any,
    drop: Any,
    skip: Any = None,
    contiguous: bool = True,
    method: str | None = None,
    *,
    cost_only: bool = False,
    brute_limit: int = 100_000,
    **options: Unpack[Options],
) -> Alignment:
    """Find the cheapest alignment of a procedure with a video, over all orders that respect the procedure.

    Parameters
    ----------
    flow, match, drop, skip, contiguous
        The question, as for :class:`Problem`.
    method : {None, "exact", "anytime", "brute"}
        "exact" works on the tSort graph; "anytime" searches for as long as it may and says how far from the optimum
        its answer can be (``gap``); "brute" tries every topological sort, the oracle for small procedures. None is
        exact, and searches where that would take too much memory or states × clips.
    cost_only : bool
        Compute the cost without labels, in little memory.
    brute_limit : int
        The largest number of topological sorts for ``method="brute"``.
    repeat, durations, violation, constraints
        The rest of the question, as for :class:`Problem`.
    backend : {None, "native", "reference"}
        The compiled kernels or the NumPy reference; None chooses.
    workers : int, optional
        Threads of the processor for this call; by default all processors where the work is worth it.
    memory_limit : int, optional
        Bytes; by default half of the memory available. Where the table does not fit, less of it is kept and parts
        are computed twice.
    time_limit : float, optional
        Seconds for the whole call. Where the exact answer takes longer than half of them, a search takes the rest and
        gives the best it has found; ``method="exact"`` refuses instead. By default an exact answer takes as long as it
        takes, and a search 30 s; it ends sooner where the optimum is proven.

    Returns
    -------
    Alignment

    Raises
    ------
    InputError
        For wrong shapes, NaN, -∞ or unknown options.
    InfeasibleError
        When no finite alignment exists, saying why.
    TooLargeError
        When the procedure or the table is beyond its limit.
    """
    problem, resources = _asked(flow, match, drop, skip, contiguous, options)
    return problem.align(method, cost_only=cost_only, brute_limit=brute_limit, **resources)


@renamed(breaking="violation")
def posterior(
    flow: FlowGraph | TSortGraph,
    match: Any,
    drop: Any,
    skip: Any = None,
    contiguous: bool = True,
    *,
    gamma: float = 1.0,
    **options: Unpack[Options],
) -> Posterior:
    """Weigh all alignments by exp(-cost / gamma) and say how probable each label of each clip is.

    Each label sequence counts once, whatever steps are skipped. The computation is in float64.

    Parameters
    ----------
    flow, match, drop, skip, contiguous
        The question, as for :class:`Problem`.
    gamma : float
        Temperature of the posterior, > 0; towards 0 only the cheapest alignments count.
    **options
        The further options of :class:`Problem`; ``backend``, ``workers`` and ``memory_limit`` as for :func:`align`;
        ``time_limit``: seconds after which the call is given up, by default it takes as long as it takes.

    Returns
    -------
    Posterior
    """
    problem, resources = _asked(flow, match, drop, skip, contiguous, options)
    return problem.posterior(gamma, **resources)


@renamed(breaking="violation")
def k_best(
    flow: FlowGraph | TSortGraph,
    match: Any,
    drop: Any,
    skip: Any = None,
    contiguous: bool = True,
    *,
    k: int = 5,
    **options: Unpack[Options],
) -> tuple[Alignment, ...]:
    """Find the k cheapest orders, and for each of them its cheapest alignment.

    An order is that in which the shown steps first appear; two orders differ also where one of them shows more steps.

    Parameters
    ----------
    flow, match, drop, skip, contiguous
        The question, as for :class:`Problem`.
    k : int
        How many orders, at least 1.
    **options
        The further options of :class:`Problem`; ``backend``, ``workers`` and ``memory_limit`` as for :func:`align`;
        ``time_limit``: seconds after which the orders found until then are returned, with a warning, by default it
        takes as long as it takes.

    Returns
    -------
    tuple of Alignment
        The cheapest first; fewer than k where there are no more orders of finite cost. The difference of the first
        two costs says how sure the order is.

    Raises
    ------
    InputError, InfeasibleError, TooLargeError
        As for :func:`align`.
    """
    problem, resources = _asked(flow, match, drop, skip, contiguous, options)
    return problem.k_best(k, **resources)


@renamed(breaking="violation", threads="workers")
def margins(
    flow: FlowGraph | TSortGraph,
    match: Any,
    drop: Any,
    skip: Any = None,
    contiguous: bool = True,
    *,
    found: Alignment | None = None,
    **options: Unpack[Options],
) -> NDArray[np.float64]:
    """Return for each segment of an alignment how much more its best alternative costs.

    The alternative to a segment is any alignment in which none of its clips shows its step: the step is elsewhere, or
    not shown. All of them are aligned anew, side by side.

    Parameters
    ----------
    flow, match, drop, skip, contiguous
        As for :func:`align`.
    found : Alignment, optional
        The cheapest alignment; by default it is found first.
    **options
        The further options of :class:`Problem`; ``backend``, ``workers`` and ``memory_limit`` as for :func:`align`;
        ``time_limit``: seconds after which the call is given up, by default it takes as long as it takes.

    Returns
    -------
    float64 [number of segments]
        In units of cost, at least 0; +∞ where there is no alternative.
    """
    problem, resources = _asked(flow, match, drop, skip, contiguous, options)
    return problem.margins(found, **resources)


_DEFAULTS: dict[str, Any] = {"violation": 1.0, "constraints": ()}
_function: Any
for _function in (align, posterior, k_best, margins):  # help() names every option
    _shown = signature(_function)
    _own = [parameter for parameter in _shown.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
    _own += [
        Parameter(name, Parameter.KEYWORD_ONLY, default=_DEFAULTS.get(name), annotation=kind.__forward_arg__)
        for name, kind in Options.__annotations__.items()
    ]
    _function.__signature__ = _shown.replace(parameters=_own)
