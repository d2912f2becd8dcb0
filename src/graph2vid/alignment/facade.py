"""One way in: `align`, `posterior`, and in :mod:`graph2vid.alignment.many` `align_many`."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from graph2vid._stopping import within
from graph2vid.alignment import _brute, _reference, anytime, automata, extended
from graph2vid.alignment.alignment_result import Alignment, Labels, Posterior
from graph2vid.alignment.automata import QUICK_SECONDS, SOFT, check_all, machine_problem
from graph2vid.alignment.backends import choose_backend, choose_threads, memory_bound, too_large
from graph2vid.alignment.constraints import Constraint
from graph2vid.alignment.durations import Durations
from graph2vid.alignment.problem import LONG, Problem, may_overflow, refuse_gamma, widened
from graph2vid.alignment.soft import check_gamma, soft_costs
from graph2vid.alignment.solvers import check_cost, make_result, solve_native, solve_reference
from graph2vid.errors import InputError, TooLargeError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

METHODS = ("exact", "anytime", "brute")


def align(
    flow: FlowGraph | TSortGraph,
    match: Any,
    drop: Any,
    skip: Any = None,
    contiguous: bool = True,
    method: str | None = None,
    *,
    repeat: Any = None,
    durations: Durations | ArrayLike | None = None,
    breaking: float = 1.0,
    constraints: Iterable[Constraint] = (),
    cost_only: bool = False,
    backend: str | None = None,
    threads: int | None = None,
    memory_limit: int | None = None,
    time_limit: float | None = None,
    brute_limit: int = 100_000,
) -> Alignment:
    """Find the cheapest alignment of a procedure with a video, over all orders that respect the procedure.

    Parameters
    ----------
    flow : FlowGraph or TSortGraph
        The procedure, of K steps. Compile it once (:meth:`TSortGraph.compile`) to align it with many videos.
    match : array [K, N]
        How badly each step explains each clip; +∞ is forbidden. float32 is computed in float32, all else in float64;
        so is float32 where its sums would round away what tells labels apart (``options["dtype"]`` says it).
    drop : array [N] or float
        The price of calling a clip background; +∞: the clip must show a step.
    skip : array [K], float or None
        The price of not showing a step; None (and +∞): the step must be shown.
    contiguous : bool
        True: a step takes one unbroken run of clips. False (the paper's recursion): background may lie inside a step.
    method : {None, "exact", "anytime", "brute"}
        "exact" works on the tSort graph; "anytime" searches for as long as it may and says how far from the optimum
        its answer can be (``gap``); "brute" tries every topological sort, the oracle for small procedures. None is
        exact, and searches where that would take too much memory or states × clips.
    repeat : array [K], float or None
        The price of each return to a step that is done already: one that was shown, or one that was skipped since
        something that must follow it was shown (which costs its skip price, too). None (and +∞): a step has one run.
    durations : Durations, int, array [K] or None
        What a run costs by its length, or the fewest clips of a run (for all steps, or for each).
    breaking : float
        Edges that are not certain may be broken: for their log-odds, log(confidence / (1 - confidence)), times this
        number. +∞: all edges are certain.
    constraints : iterable of Constraint
        Pins and forbidden spans, in clips.
    cost_only : bool
        Compute the cost without labels, in little memory.
    backend : {None, "native", "reference"}
        The compiled kernels or the NumPy reference; None chooses.
    threads : int, optional
        Threads for this call; by default all processors where the work is worth it.
    memory_limit : int, optional
        Bytes; by default half of the memory available. Where the table does not fit, less of it is kept and parts
        are computed twice.
    time_limit : float, optional
        Seconds for the whole call. Where the exact answer takes longer than half of them, a search takes the rest and
        gives the best it has found; ``method="exact"`` refuses instead. By default an exact answer takes as long as it
        takes, and a search 30 s; it ends sooner where the optimum is proven.
    brute_limit : int
        The largest number of topological sorts for ``method="brute"``.

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
    graph = flow.flow if isinstance(flow, TSortGraph) else flow
    problem, extras = check_all(graph, match, drop, skip, repeat, durations, breaking, tuple(constraints))
    _check_method(method)
    choose_threads(threads, 0)
    began, seconds = time.monotonic(), anytime.check_time_limit(time_limit)
    limit = None if time_limit is None else seconds
    contiguous = bool(contiguous)
    options: dict[str, Any] = {
        "method": method or "exact",
        "contiguous": contiguous,
        "dtype": problem.match.dtype.name,
    }
    cost: float
    labels: Labels | None
    gap, searched = 0.0, None
    if extras.wanted_for(graph):
        extras.refuse_beside(contiguous, method)
        searched = extended.solve(
            graph,
            problem,
            extras,
            method=method,
            backend=choose_backend(backend),
            cost_only=cost_only,
            memory_limit=memory_limit,
            limit=limit,
        )
    elif method == "brute":
        with within(limit, "raise time_limit, or use method='exact'"):
            cost, labels = _brute.solve(
                graph, problem.match, problem.drop, problem.skip, contiguous=contiguous, limit=brute_limit
            )
        labels = None if cost_only else labels
    elif method == "anytime":
        searched = anytime.solve(graph, problem, contiguous, time_limit, memory_limit)
    else:
        if problem.match.shape[1] > LONG:
            problem = widened(problem)
        chosen = choose_backend(backend)
        solve = solve_native if chosen == "native" else solve_reference
        try:
            # Half of the time, where the rest is for a search.
            exact = limit if limit is None or method is not None else limit / 2
            with within(exact, "raise time_limit, or use method='anytime'"):
                tsort = flow if isinstance(flow, TSortGraph) else TSortGraph.compile(flow)
                if method is None:
                    anytime.refuse_long(tsort, problem.match.shape[1])
                cost, labels = solve(tsort, problem, contiguous, cost_only, threads, memory_limit)
                if abs(cost) > LONG and (wide := widened(problem)) is not problem:
                    problem = wide
                    cost, labels = solve(tsort, problem, contiguous, cost_only, threads, memory_limit)
            options |= {"backend": chosen, "dtype": problem.match.dtype.name}
        except TooLargeError as error:
            if method is not None:
                raise
            left = None if limit is None else max(began + limit - time.monotonic(), 1e-3)
            searched = anytime.solve(graph, problem, contiguous, left, memory_limit, instead_of=error)
    if searched is not None:
        cost, labels, gap = searched.cost, None if cost_only else searched.labels, searched.gap
        options |= searched.options
    return make_result(graph, problem, extras, cost, labels, options, gap)


def posterior(
    flow: FlowGraph | TSortGraph,
    match: Any,
    drop: Any,
    skip: Any = None,
    contiguous: bool = True,
    *,
    gamma: float = 1.0,
    repeat: Any = None,
    durations: Durations | ArrayLike | None = None,
    breaking: float = 1.0,
    constraints: Iterable[Constraint] = (),
    backend: str | None = None,
    memory_limit: int | None = None,
    time_limit: float | None = None,
) -> Posterior:
    """Weigh all alignments by exp(-cost / gamma) and say how probable each label of each clip is.

    Each label sequence counts once, whatever steps are skipped. The computation is in float64.

    Parameters
    ----------
    flow, match, drop, skip, contiguous, repeat, durations, breaking, constraints, backend, memory_limit
        As for :func:`align`.
    gamma : float
        How soft the minimum is, > 0; towards 0 only the cheapest alignments count.
    time_limit : float, optional
        Seconds after which the call is given up; by default it takes as long as it takes.

    Returns
    -------
    Posterior
    """
    gamma = check_gamma(gamma)
    limit = None if time_limit is None else anytime.check_time_limit(time_limit)
    graph = flow.flow if isinstance(flow, TSortGraph) else flow
    problem, extras = check_all(graph, match, drop, skip, repeat, durations, breaking, tuple(constraints))
    backend = choose_backend(backend)
    costs = Problem(
        problem.match.astype(np.float64),
        problem.drop.astype(np.float64),
        None if problem.skip is None else problem.skip.astype(np.float64),
    )
    refuse_gamma(costs, gamma)
    if may_overflow(costs, gamma):
        raise InputError(f"the costs divided by gamma={gamma:g} overflow: scale the costs down or raise gamma")
    options: dict[str, Any] = {"gamma": float(gamma), "contiguous": contiguous, "backend": backend}
    if extras.wanted_for(graph):
        extras.refuse_beside(contiguous, None)
        with within(limit):
            seconds = QUICK_SECONDS if limit is None else limit
            on_machine = machine_problem(graph, costs, extras, memory_limit, tables=2, work=SOFT, seconds=seconds)
            cost, probability = automata.posterior(on_machine, gamma, backend)
        check_cost(graph, problem, extras, cost)
        return Posterior(graph, cost, probability, options | automata.report(on_machine))
    with within(limit):
        tsort = flow if isinstance(flow, TSortGraph) else TSortGraph.compile(flow)
        if backend == "native":
            (found,) = soft_costs(
                [tsort],
                [costs.match],
                [costs.drop],
                [costs.skip],
                gamma=gamma,
                smoothing="softmin",
                contiguous=contiguous,
                starts=contiguous,
                memory_limit=memory_limit,
            )
            assert found.match is not None and found.drop is not None
            cost, probability = found.cost, np.vstack([found.match, found.drop])
            start = None if found.start is None else found.start.astype(np.float64)
        else:
            needed = 16 * (tsort.n_ideals + tsort.n_states) * (len(costs.drop) + 1)
            if needed > (bound := memory_bound(memory_limit)):
                raise too_large(tsort, len(costs.drop), needed, bound, "")
            cost, probability, start = _reference.forward_backward(
                tsort, costs.match, costs.drop, costs.skip, contiguous=contiguous, gamma=gamma
            )
    check_cost(graph, problem, extras, cost)
    return Posterior(graph, cost, probability, options, start if contiguous else None)


def _check_method(method: str | None) -> None:
    if method is not None and method not in METHODS:
        raise InputError(f"unknown method {method!r}; known: {', '.join(METHODS)}")
