"""One way in: `align`, `align_many`, `posterior`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from graph2vid.alignment import _brute, _reference
from graph2vid.alignment.backends import (
    choose_backend,
    choose_threads,
    choose_window,
    cpu_count,
    memory_bound,
    procedure,
    too_large,
)
from graph2vid.alignment.constraints import Constraint, constrain
from graph2vid.alignment.infeasible import why_infeasible
from graph2vid.alignment.problem import Problem, check_problem, may_overflow
from graph2vid.alignment.result import Alignment, Labels, Posterior
from graph2vid.alignment.soft import check_gamma, soft_costs
from graph2vid.errors import InfeasibleError, InputError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

METHODS = ("exact", "brute")

_LANE_BYTES = 64 << 20  # tables larger than this run one video after the other, each on all threads


def align(
    flow: FlowGraph | TSortGraph,
    match: Any,
    drop: Any,
    skip: Any = None,
    contiguous: bool = True,
    method: str | None = None,
    *,
    constraints: Iterable[Constraint] = (),
    cost_only: bool = False,
    backend: str | None = None,
    threads: int | None = None,
    memory_limit: int | None = None,
    brute_limit: int = 100_000,
) -> Alignment:
    """Find the cheapest alignment of a procedure with a video, over all orders that respect the procedure.

    Parameters
    ----------
    flow : FlowGraph or TSortGraph
        The procedure, of K steps. Compile it once (:meth:`TSortGraph.compile`) to align it with many videos.
    match : array [K, N]
        How badly each step explains each clip; +∞ is forbidden. float32 is computed in float32, all else in float64.
    drop : array [N] or float
        The price of calling a clip background; +∞: the clip must show a step.
    skip : array [K], float or None
        The price of not showing a step; None (and +∞): the step must be shown.
    contiguous : bool
        True: a step takes one unbroken run of clips. False (the paper's recursion): background may lie inside a step.
    method : {None, "exact", "brute"}
        "exact" works on the tSort graph; "brute" tries every topological sort, the oracle for small procedures.
        None chooses.
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
    problem = constrain(check_problem(graph, match, drop, skip), constraints)
    method, contiguous = _choose_method(method), bool(contiguous)
    options = {"method": method, "contiguous": contiguous, "dtype": problem.match.dtype.name}
    cost: float
    labels: Labels | None
    if method == "brute":
        cost, labels = _brute.solve(
            graph, problem.match, problem.drop, problem.skip, contiguous=contiguous, limit=brute_limit
        )
        labels = None if cost_only else labels
    else:
        tsort = flow if isinstance(flow, TSortGraph) else TSortGraph.compile(flow)
        options["backend"] = choose_backend(backend)
        solve = _solve_native if options["backend"] == "native" else _solve_reference
        cost, labels = solve(tsort, problem, contiguous, cost_only, threads, memory_limit)
    return _result(graph, problem, cost, labels, options)


def align_many(
    flow: FlowGraph | TSortGraph | Sequence[FlowGraph | TSortGraph],
    matches: Iterable[Any],
    drops: Iterable[Any] | float,
    skips: Iterable[Any] | float | None = None,
    contiguous: bool = True,
    *,
    constraints: Sequence[Iterable[Constraint]] | None = None,
    cost_only: bool = False,
    backend: str | None = None,
    threads: int | None = None,
    memory_limit: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Alignment]:
    """Align many videos, on all processors; the same results as :func:`align` for each.

    Parameters
    ----------
    flow : FlowGraph, TSortGraph, or a sequence of them
        One procedure for all videos, or one for each.
    matches, drops, skips, constraints : sequences
        For each video what :func:`align` takes. Lengths may differ. One number for ``drops`` or ``skips`` is for all.
    contiguous, cost_only, backend, threads, memory_limit
        As for :func:`align`.
    progress : callable, optional
        Called as ``progress(done, total)`` between batches.

    Returns
    -------
    list of Alignment
        In the order of the videos.
    """
    matches, contiguous = list(matches), bool(contiguous)
    total = len(matches)
    flows = [flow] * total if isinstance(flow, FlowGraph | TSortGraph) else list(flow)
    drops = [drops] * total if isinstance(drops, int | float) else list(drops)
    skips = [skips] * total if skips is None or isinstance(skips, int | float) else list(skips)
    constraints = [()] * total if constraints is None else list(constraints)
    for name, given in (("flow", flows), ("drops", drops), ("skips", skips), ("constraints", constraints)):
        if len(given) != total:
            raise InputError(f"{name} has {len(given)} entries, but matches has {total}: one for each video is needed")
    chosen = choose_backend(backend)
    compiled: dict[FlowGraph | TSortGraph, TSortGraph] = {}
    for graph in flows:
        if not isinstance(graph, FlowGraph | TSortGraph):
            raise InputError(f"the procedure must be a FlowGraph or a TSortGraph, not {type(graph).__name__}")
        if graph not in compiled:
            compiled[graph] = graph if isinstance(graph, TSortGraph) else TSortGraph.compile(graph)
    problems: list[Problem] = []
    batches: dict[tuple[TSortGraph, np.dtype[Any]], list[int]] = {}
    for i, graph in enumerate(flows):
        tsort = compiled[graph]
        try:
            problem = constrain(check_problem(tsort.flow, matches[i], drops[i], skips[i]), constraints[i])
        except InputError as error:
            raise InputError(f"video {i}: {error}") from error
        problems.append(problem)
        batches.setdefault((tsort, problem.match.dtype), []).append(i)

    solved: list[tuple[float, Labels | None]] = [(np.inf, None)] * total
    done = 0
    for (tsort, dtype), members in batches.items():
        for chunk in _chunks(tsort, dtype, members, problems, chosen, threads, memory_limit):
            of_chunk = [problems[i] for i in chunk]
            for i, answer in zip(
                chunk,
                _solve_chunk(tsort, of_chunk, contiguous, cost_only, chosen, threads, memory_limit),
                strict=True,
            ):
                solved[i] = answer
            done += len(chunk)
            if progress is not None:
                progress(done, total)

    options = {"method": "exact", "contiguous": contiguous, "backend": chosen}
    results = []
    for i, (problem, (cost, labels)) in enumerate(zip(problems, solved, strict=True)):
        try:
            of_video = options | {"dtype": problem.match.dtype.name}
            results.append(_result(compiled[flows[i]].flow, problem, cost, labels, of_video))
        except InfeasibleError as error:
            raise InfeasibleError(f"video {i}: {error}") from error
    return results


def posterior(
    flow: FlowGraph | TSortGraph,
    match: Any,
    drop: Any,
    skip: Any = None,
    contiguous: bool = True,
    *,
    gamma: float = 1.0,
    constraints: Iterable[Constraint] = (),
    backend: str | None = None,
    memory_limit: int | None = None,
) -> Posterior:
    """Weigh all alignments by exp(-cost / gamma) and say how probable each label of each clip is.

    Each label sequence counts once, whatever steps are skipped. The computation is in float64.

    Parameters
    ----------
    flow, match, drop, skip, contiguous, constraints, backend, memory_limit
        As for :func:`align`.
    gamma : float
        How soft the minimum is, > 0; towards 0 only the cheapest alignments count.

    Returns
    -------
    Posterior
    """
    gamma = check_gamma(gamma)
    graph = flow.flow if isinstance(flow, TSortGraph) else flow
    problem = constrain(check_problem(graph, match, drop, skip), constraints)
    tsort = flow if isinstance(flow, TSortGraph) else TSortGraph.compile(flow)
    backend = choose_backend(backend)
    clips = problem.match.shape[1]
    costs = Problem(
        problem.match.astype(np.float64),
        problem.drop.astype(np.float64),
        None if problem.skip is None else problem.skip.astype(np.float64),
    )
    if may_overflow(costs, gamma):
        raise InputError(f"the costs divided by gamma={gamma:g} overflow: scale the costs down or raise gamma")
    if backend == "native":
        (found,) = soft_costs(
            [tsort],
            [costs.match],
            [costs.drop],
            [costs.skip],
            gamma=gamma,
            smoothing="softmin",
            contiguous=contiguous,
            memory_limit=memory_limit,
        )
        assert found.match is not None and found.drop is not None
        cost, probability = found.cost, np.vstack([found.match, found.drop])
    else:
        needed = 16 * (tsort.n_ideals + tsort.n_states) * (clips + 1)
        if needed > (bound := memory_bound(memory_limit)):
            raise too_large(tsort, clips, needed, bound, "")
        cost, probability = _reference.forward_backward(
            tsort, costs.match, costs.drop, costs.skip, contiguous=contiguous, gamma=gamma
        )
    _check_cost(graph, problem, cost)
    options = {"gamma": float(gamma), "contiguous": contiguous, "backend": backend}
    return Posterior(graph, cost, probability, options)


def _choose_method(method: str | None) -> str:
    if method is None:
        return "exact"
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; known: {', '.join(METHODS)}")
    return method


def _result(
    flow: FlowGraph, problem: Problem, cost: float, labels: Labels | None, options: dict[str, Any]
) -> Alignment:
    _check_cost(flow, problem, cost)
    if labels is not None:
        labels.setflags(write=False)
    return Alignment(flow, cost, labels, options=options)


def _check_cost(flow: FlowGraph, problem: Problem, cost: float) -> None:
    """Raise where there is no finite answer: the costs are too large for their dtype, or no alignment is possible."""
    if np.isfinite(cost):
        return
    if may_overflow(problem):
        raise InputError(f"the costs are so large that their sums overflow {problem.match.dtype}: scale them down")
    raise InfeasibleError(f"no alignment is possible: {why_infeasible(flow, problem)}")


def _solve_native(
    tsort: TSortGraph,
    problem: Problem,
    contiguous: bool,
    cost_only: bool,
    threads: int | None,
    memory_limit: int | None,
) -> tuple[float, Labels | None]:
    clips = problem.match.shape[1]
    team = choose_threads(threads, tsort.n_states * clips)
    window = choose_window(tsort, problem.match.itemsize, clips, cost_only, team, memory_limit)
    cost, labels = procedure(tsort).solve(
        problem.match, problem.drop, problem.skip, contiguous, cost_only, 0, window, team
    )
    return cost, labels


def _solve_reference(
    tsort: TSortGraph,
    problem: Problem,
    contiguous: bool,
    cost_only: bool,
    threads: int | None,
    memory_limit: int | None,
) -> tuple[float, Labels | None]:
    choose_threads(threads, 0)
    clips = problem.match.shape[1]
    column = (tsort.n_ideals + tsort.n_states) * problem.match.itemsize
    bound = memory_bound(memory_limit)
    checkpoint = None
    needed = 2 * column if cost_only else (clips + 1) * column
    if not cost_only and needed > bound:
        checkpoint = max(1, int(np.sqrt(clips)))
        needed = (checkpoint + clips // checkpoint + 2) * column
    if needed > bound:
        raise too_large(tsort, clips, needed, bound, "" if cost_only else "use cost_only=True, ")
    return _reference.solve(
        tsort,
        problem.match,
        problem.drop,
        problem.skip,
        contiguous=contiguous,
        cost_only=cost_only,
        checkpoint=checkpoint,
    )


def _in_lanes(tsort: TSortGraph, clips: int, itemsize: int, threads: int | None, memory_limit: int | None) -> bool:
    """Whether several videos fit side by side into a table of moderate size, one for each thread."""
    needed: int = procedure(tsort).lane_memory(itemsize, clips)
    if memory_limit is not None and needed * (threads or cpu_count()) > memory_limit:
        return False
    return needed <= _LANE_BYTES


def _chunks(
    tsort: TSortGraph,
    dtype: np.dtype[Any],
    members: list[int],
    problems: list[Problem],
    backend: str,
    threads: int | None,
    memory_limit: int | None,
) -> Iterable[list[int]]:
    """Cut the videos of one procedure into pieces between which progress is told; like lengths lie together."""
    members = sorted(members, key=lambda i: -problems[i].match.shape[1])
    size = 1
    if backend == "native" and _in_lanes(
        tsort, problems[members[0]].match.shape[1], dtype.itemsize, threads, memory_limit
    ):
        size = 512
    return (members[i : i + size] for i in range(0, len(members), size))


def _solve_chunk(
    tsort: TSortGraph,
    problems: list[Problem],
    contiguous: bool,
    cost_only: bool,
    backend: str,
    threads: int | None,
    memory_limit: int | None,
) -> list[tuple[float, Labels | None]]:
    if backend == "native" and len(problems) > 1:
        updates = tsort.n_states * sum(problem.match.shape[1] for problem in problems)
        answers: list[tuple[float, Labels | None]] = procedure(tsort).solve_many(
            [problem.match for problem in problems],
            [problem.drop for problem in problems],
            [problem.skip for problem in problems],
            contiguous,
            cost_only,
            0,
            choose_threads(threads, updates),
        )
        return answers
    solve = _solve_native if backend == "native" else _solve_reference
    return [solve(tsort, problem, contiguous, cost_only, threads, memory_limit) for problem in problems]
