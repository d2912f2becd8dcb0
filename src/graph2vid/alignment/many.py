"""Many videos at once: `align_many`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from graph2vid._memory import FREE_BYTES
from graph2vid._stopping import Watch, native_watch, watched, within
from graph2vid.alignment import anytime, extended
from graph2vid.alignment.alignment_result import Alignment, Labels
from graph2vid.alignment.automata import Extras, check_all
from graph2vid.alignment.backends import (
    choose_backend,
    choose_threads,
    cpu_count,
    memory_bound,
    procedure,
)
from graph2vid.alignment.constraints import Constraint
from graph2vid.alignment.durations import Durations
from graph2vid.alignment.problem import LONG, Problem, widened
from graph2vid.alignment.solvers import make_result, solve_native, solve_reference
from graph2vid.errors import InfeasibleError, InputError, TooLargeError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

_LANE_BYTES = 64 << 20  # tables larger than this run one video after the other, each on all threads


def align_many(
    flow: FlowGraph | TSortGraph | Sequence[FlowGraph | TSortGraph],
    matches: Iterable[Any],
    drops: Iterable[Any] | float,
    skips: Iterable[Any] | float | None = None,
    contiguous: bool = True,
    *,
    repeats: Iterable[Any] | float | None = None,
    durations: Durations | ArrayLike | Sequence[Durations] | None = None,
    breaking: float = 1.0,
    constraints: Sequence[Iterable[Constraint]] | None = None,
    cost_only: bool = False,
    backend: str | None = None,
    threads: int | None = None,
    memory_limit: int | None = None,
    time_limit: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Alignment]:
    """Align many videos, on all processors; the same results as :func:`align` for each.

    Parameters
    ----------
    flow : FlowGraph, TSortGraph, or a sequence of them
        One procedure for all videos, or one for each.
    matches, drops, skips, constraints : sequences
        For each video what :func:`align` takes. Lengths may differ. One number for ``drops`` or ``skips`` is for all.
    repeats, durations
        As ``repeat`` and ``durations`` of :func:`align`: one for all videos, or a list with one for each.
    contiguous, breaking, cost_only, backend, threads, memory_limit, time_limit
        As for :func:`align`; the time is for each video, and those that are computed together share theirs.
    progress : callable, optional
        Called as ``progress(done, total)`` between batches.

    Returns
    -------
    list of Alignment
        In the order of the videos.
    """
    seconds = anytime.check_time_limit(time_limit)
    limit = None if time_limit is None else seconds
    choose_threads(threads, 0)
    matches, contiguous = list(matches), bool(contiguous)
    total = len(matches)
    flows = [flow] * total if isinstance(flow, FlowGraph | TSortGraph) else list(flow)
    drops, skips, repeats = (_one_each(prices, total) for prices in (drops, skips, repeats))
    lengths = list(durations) if isinstance(durations, list | tuple) else [durations] * total
    constraints = [()] * total if constraints is None else list(constraints)
    for name, entries in (
        ("flow", flows),
        ("drops", drops),
        ("skips", skips),
        ("repeats", repeats),
        ("durations", lengths),
        ("constraints", constraints),
    ):
        if len(entries) != total:
            raise InputError(
                f"{name} has {len(entries)} entries, but matches has {total}: one for each video is needed"
            )
    chosen = choose_backend(backend)
    procedures: list[FlowGraph] = []
    compiled: dict[FlowGraph | TSortGraph, TSortGraph] = {}
    problems: list[Problem] = []
    beyond: list[Extras] = []
    batches: dict[tuple[TSortGraph, np.dtype[Any]], list[int]] = {}
    on_machines: list[int] = []
    too_large: dict[int, TooLargeError] = {}
    for i, given in enumerate(flows):
        if not isinstance(given, FlowGraph | TSortGraph):
            raise InputError(f"the procedure must be a FlowGraph or a TSortGraph, not {type(given).__name__}")
        graph = given.flow if isinstance(given, TSortGraph) else given
        try:
            problem, extras = check_all(
                graph, matches[i], drops[i], skips[i], repeats[i], lengths[i], breaking, tuple(constraints[i])
            )
            if extras.wanted_for(graph):
                extras.refuse_beside(contiguous, None)
        except InputError as error:
            raise InputError(f"video {i}: {error}") from error
        if problem.match.shape[1] > LONG:
            problem = widened(problem)
        procedures.append(graph)
        problems.append(problem)
        beyond.append(extras)
        if extras.wanted_for(graph):
            on_machines.append(i)
            continue
        try:
            if given not in compiled:
                with within(limit):
                    compiled[given] = given if isinstance(given, TSortGraph) else TSortGraph.compile(given)
            anytime.refuse_long(compiled[given], problem.match.shape[1])
        except TooLargeError as error:
            too_large[i] = error
            continue
        batches.setdefault((compiled[given], problem.match.dtype), []).append(i)

    solved: list[tuple[float, Labels | None]] = [(np.inf, None)] * total
    done = 0
    for (tsort, dtype), members in batches.items():
        for chunk in _chunks(tsort, dtype, members, problems, chosen, threads, memory_limit):
            of_chunk = [problems[i] for i in chunk]
            try:
                with within(None if limit is None else limit * len(chunk) / 2):  # the rest is for a search
                    answers = _solve_chunk(tsort, of_chunk, contiguous, cost_only, chosen, threads, memory_limit)
            except TooLargeError as error:
                too_large |= dict.fromkeys(chunk, error)
                continue
            for i, answer in zip(chunk, answers, strict=True):
                solved[i] = answer
                if abs(answer[0]) > LONG and (wide := widened(problems[i])) is not problems[i]:
                    problems[i] = wide
                    again = _solve_chunk(tsort, [wide], contiguous, cost_only, chosen, threads, memory_limit)
                    solved[i] = again[0]
            done += len(chunk)
            if progress is not None:
                progress(done, total)
    reports: dict[int, dict[str, Any]] = {}
    gaps = dict.fromkeys(range(total), 0.0)

    def on_machine(i: int) -> tuple[int, tuple[float, Labels | None]]:
        # Several at a time share the memory.
        shared = memory_bound(memory_limit) // team
        try:
            with watched(watch):
                found = extended.solve(
                    procedures[i],
                    problems[i],
                    beyond[i],
                    method=None,
                    backend=chosen,
                    cost_only=cost_only,
                    memory_limit=shared,
                    limit=limit,
                )
        except TooLargeError as failed:
            raise TooLargeError(f"video {i}: {failed}") from failed
        reports[i], gaps[i] = found.options, found.gap
        return i, (found.cost, found.labels)

    team = min(choose_threads(threads or cpu_count(), 0), max(len(on_machines), 1))
    watch = Watch()
    with ThreadPoolExecutor(team) as pool:
        try:
            for i, answer in pool.map(on_machine, on_machines):
                solved[i] = answer
                done += 1
                if progress is not None:
                    progress(done, total)
        except BaseException:  # a signal reaches this thread alone
            watch.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise

    for i, why in too_large.items():
        try:
            left = None if limit is None else limit / 2
            found = anytime.solve(procedures[i], problems[i], contiguous, left, memory_limit, instead_of=why)
        except TooLargeError as failed:
            raise TooLargeError(f"video {i}: {failed}") from failed
        solved[i], gaps[i] = (found.cost, None if cost_only else found.labels), found.gap
        reports[i] = found.options
        done += 1
        if progress is not None:
            progress(done, total)

    options = {"method": "exact", "contiguous": contiguous}
    results = []
    for i, (problem, (cost, labels)) in enumerate(zip(problems, solved, strict=True)):
        try:
            of_video = options | {"dtype": problem.match.dtype.name} | reports.get(i, {"backend": chosen})
            results.append(make_result(procedures[i], problem, beyond[i], cost, labels, of_video, gaps[i]))
        except InfeasibleError as error:
            raise InfeasibleError(f"video {i}: {error}") from error
    return results


def _one_each(prices: Any, total: int) -> list[Any]:
    """Return what each video is given: nothing and one number are for all."""
    is_one = prices is None or isinstance(prices, int | float | np.number)
    if is_one or (isinstance(prices, np.ndarray) and prices.ndim == 0):
        return [prices] * total
    return list(prices)


def _in_lanes(tsort: TSortGraph, clips: int, itemsize: int, threads: int | None, memory_limit: int | None) -> bool:
    """Whether several videos fit side by side into a table of moderate size, one for each thread."""
    needed: int = procedure(tsort).lane_memory(itemsize, clips, native_watch())
    together = needed * (threads or cpu_count())
    if memory_limit is None and together <= FREE_BYTES:
        return True
    return needed <= _LANE_BYTES and together <= memory_bound(memory_limit)


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
            native_watch(),
        )
        return answers
    solve = solve_native if backend == "native" else solve_reference
    return [solve(tsort, problem, contiguous, cost_only, threads, memory_limit) for problem in problems]
