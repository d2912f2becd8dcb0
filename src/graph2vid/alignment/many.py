"""Many videos at once: `align_many`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from graph2vid._deprecated import renamed
from graph2vid._memory import FREE_BYTES
from graph2vid._processes import cpu_count
from graph2vid._stopping import Watch, native_watch, watched, within
from graph2vid.alignment import anytime, automata
from graph2vid.alignment.alignment_result import Alignment, Labels
from graph2vid.alignment.anytime import Answer
from graph2vid.alignment.automata import (
    QUICK_SECONDS,
    SOFT,
    AutomatonProblem,
    SoftAnswer,
    automaton_problem,
    beside_clips,
    lane_bytes,
)
from graph2vid.alignment.backends import Exact, Resources, choose_workers, memory_bound, procedure, solve_exactly
from graph2vid.alignment.clip_costs import LONG, ClipCosts, Constraint
from graph2vid.alignment.durations import Durations
from graph2vid.alignment.problem import Problem
from graph2vid.errors import InfeasibleError, InputError, TooLargeError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

_LANE_BYTES = 64 << 20  # tables larger than this are computed one video after the other, each by all workers
_CHUNK = 512  # videos between which progress is told


@renamed(breaking="violation", threads="workers")
def align_many(
    flow: FlowGraph | TSortGraph | Sequence[FlowGraph | TSortGraph],
    matches: Iterable[Any],
    drops: Iterable[Any] | float,
    skips: Iterable[Any] | float | None = None,
    contiguous: bool = True,
    *,
    repeats: Iterable[Any] | float | None = None,
    durations: Durations | ArrayLike | Sequence[Durations] | None = None,
    violation: float = 1.0,
    constraints: Sequence[Iterable[Constraint]] | None = None,
    cost_only: bool = False,
    progress: Callable[[int, int], None] | None = None,
    **resources: Any,
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
    contiguous, violation, cost_only
        As for :func:`align`.
    progress : callable, optional
        Called as ``progress(done, total)`` between batches.
    **resources
        ``backend``, ``workers``, ``memory_limit`` and ``time_limit`` as for :func:`align`; the time is for each video,
        and those that are computed together share theirs.

    Returns
    -------
    list of Alignment
        In the order of the videos.
    """
    checked = Resources.check(**resources)
    matches = list(matches)
    total = len(matches)
    given: dict[str, list[Any]] = {
        "flow": [flow] * total if isinstance(flow, FlowGraph | TSortGraph) else list(flow),
        "drops": _one_each(drops, total),
        "skips": _one_each(skips, total),
        "repeats": _one_each(repeats, total),
        "durations": list(durations) if isinstance(durations, list | tuple) else [durations] * total,
        "constraints": [()] * total if constraints is None else list(constraints),
    }
    for name, entries in given.items():
        if len(entries) != total:
            message = f"{name} has {len(entries)} entries, but matches has {total}: one for each video is needed"
            raise InputError(message)

    def checked_problem(match: Any, one: Any, drop: Any, skip: Any, repeat: Any, lengths: Any, rules: Any) -> Problem:
        return Problem(one, match, drop, skip, repeat, lengths, violation, rules, contiguous)

    problems = _for_each(checked_problem, zip(matches, *given.values(), strict=True), InputError)
    answers = solve_many(problems, cost_only, checked, progress)
    return _for_each(Problem.result, zip(problems, answers, strict=True), InfeasibleError)


def _for_each(work: Callable[..., Any], videos: Iterable[tuple[Any, ...]], error: type[Exception]) -> list[Any]:
    """Do something for each video; an error says for which."""
    done: list[Any] = []
    try:
        for video in videos:
            done.append(work(*video))
    except error as failed:
        raise error(f"video {len(done)}: {failed}") from failed
    return done


def solve_many(
    problems: Sequence[Problem],
    cost_only: bool,
    resources: Resources,
    progress: Callable[[int, int], None] | None = None,
) -> list[Answer]:
    """Solve many problems: those of one procedure side by side in the kernels' lanes, the others one by one.

    Problems of one procedure (the same object) share its tSort graph. Costs are ∞ where there is no alignment.
    """
    answers: list[Any] = [None] * len(problems)
    done = 0

    def note(found: Iterable[tuple[int, Answer]]) -> None:
        nonlocal done
        for i, answer in found:
            answers[i] = answer
            done += 1
        if progress is not None:
            progress(done, len(problems))

    compiled: dict[Any, tuple[TSortGraph, Mapping[str, Any]]] = {}
    batches: dict[tuple[TSortGraph, Any], dict[int, ClipCosts]] = defaultdict(dict)
    one_by_one: list[int] = []
    too_large: dict[int, TooLargeError] = {}
    for i, problem in enumerate(problems):
        if problem.is_extended:
            one_by_one.append(i)
            continue
        try:
            if problem.compiled is None:
                with within(resources.time_limit):
                    same = problem.flow, problem.violation, problem.pinned, problem.most_states
                    if same not in compiled:
                        compiled[same] = problem.reachable()
                    problem.compiled, problem.restriction = compiled[same]
            costs = problem.exact_costs()
            anytime.refuse_long(problem.compiled, costs.match.shape[1])
            batches[problem.compiled, costs.match.dtype][i] = costs
        except TooLargeError as error:
            too_large[i] = error
    for (tsort, _), members in batches.items():
        for chunk in _chunks(tsort, members, resources):
            videos = [members[i] for i in chunk]
            try:
                found = _solve_chunk(tsort, videos, problems[chunk[0]].contiguous, cost_only, resources)
            except TooLargeError as error:
                too_large |= dict.fromkeys(chunk, error)
                continue
            note((i, problems[i].exact_answer(*one, resources)) for i, one in zip(chunk, found, strict=True))
    extended = {i: problems[i] for i in one_by_one}
    for solved in solve_side_by_side(extended, cost_only, resources):
        note((i, extended.pop(i).exact_answer(*one[:2], problems[i].costs, resources)) for i, one in solved.items())
    for i, answer in _extended(problems, list(extended), cost_only, resources):
        note([(i, answer)])
    half = None if resources.time_limit is None else resources.time_limit / 2
    for i, why in too_large.items():
        try:
            note([(i, problems[i].search(cost_only, resources._replace(time_limit=half), why))])
        except TooLargeError as failed:
            raise TooLargeError(f"video {i}: {failed}") from failed
    return answers


class Extended(NamedTuple):
    """The cheapest alignment of a problem of the extended model, and the sum over all of them if it was asked for."""

    cost: float
    labels: Labels | None
    soft: SoftAnswer | None


def solve_side_by_side(
    problems: Mapping[int, Problem], cost_only: bool, resources: Resources, gamma: float | None = None
) -> Iterator[dict[int, Extended]]:
    """Solve problems of the extended model, those of one automaton side by side in the kernels' lanes.

    Those that have no others beside them, are large, or need more than the precision or the edges that they have, are
    left out. Answers are those of :meth:`Problem.align` and :meth:`Problem.posterior`.

    Parameters
    ----------
    problems : mapping of int to Problem
    cost_only, resources
        As for :func:`solve_many`.
    gamma : float or None
        The temperature of the posterior; None: it is not asked for.
    """
    alike: dict[Any, dict[int, AutomatonProblem]] = defaultdict(dict)
    if resources.backend == "native" and (len(problems) > 1 or gamma is not None):
        for i, asked in _on_automata(problems, gamma is not None, resources):
            alike[asked.automaton, problems[i].costs.match.dtype, asked.length.shape[1]][i] = asked
    for (_, dtype, _), members in alike.items():
        order = sorted(members, key=lambda i: -len(members[i].drop))
        if (len(order) == 1 and gamma is None) or not _fits(
            lane_bytes(members[order[0]], gamma is not None), resources
        ):
            continue
        for chunk in (order[at : at + _CHUNK] for at in range(0, len(order), _CHUNK)):
            asked_of = [members[i] for i in chunk]
            narrow = [one.in_dtype_of(problems[i].costs) for i, one in zip(chunk, asked_of, strict=True)]
            limit = resources.time_limit
            with within(None if limit is None else limit * len(chunk)):
                hard = automata.solve(narrow, cost_only, resources)
                sums = [None] * len(chunk) if gamma is None else automata.posterior(asked_of, gamma, resources)
            found = {i: Extended(*one, other) for i, one, other in zip(chunk, hard, sums, strict=True)}
            wide = dtype == np.float64
            yield {i: one for i, one in found.items() if wide or not abs(one.cost) > LONG}


def _on_automata(
    problems: Mapping[int, Problem], soft: bool, resources: Resources
) -> Iterator[tuple[int, AutomatonProblem]]:
    """Put problems on their automata, those alike on one; those that are large, or need certain edges, are left out."""
    seconds, work = resources.time_limit or QUICK_SECONDS, {"tables": 2, "work": SOFT} if soft else {}
    longest: dict[Any, AutomatonProblem] = {}  # so far: what suits it suits the shorter ones
    for i, problem in problems.items():
        costs = problem.costs.astype(np.float64) if soft else problem.costs
        same, n_clips = beside_clips(problem, costs), len(costs.drop)
        if same not in longest or len(longest[same].drop) < n_clips:
            with suppress(TooLargeError), within(resources.time_limit):
                asked = automaton_problem(problem, costs, resources.memory_limit, seconds=seconds, **work)
                if not asked.restriction and n_clips <= LONG:
                    longest[same] = asked
        if same in longest and len(longest[same].drop) >= n_clips:
            yield i, longest[same].in_dtype_of(costs)


def _extended(
    problems: Sequence[Problem], members: Sequence[int], cost_only: bool, resources: Resources
) -> Iterator[tuple[int, Answer]]:
    """Solve problems on their automata, several at a time, which share the memory."""
    if not members:
        return
    team = min(choose_workers(resources.workers or cpu_count(), 0), len(members))
    shared = resources._replace(memory_limit=memory_bound(resources.memory_limit) // team)
    watch = Watch()

    def solve(i: int) -> tuple[int, Answer]:
        try:
            with watched(watch):
                return i, problems[i].solve(None, cost_only, shared)
        except TooLargeError as failed:
            raise TooLargeError(f"video {i}: {failed}") from failed

    with ThreadPoolExecutor(team) as pool:
        try:
            yield from pool.map(solve, members)
        except BaseException:  # a signal reaches this thread alone
            watch.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _one_each(costs: Any, total: int) -> list[Any]:
    """Return what each video is given: nothing and one number are for all."""
    is_one = costs is None or isinstance(costs, int | float | np.number)
    if is_one or (isinstance(costs, np.ndarray) and costs.ndim == 0):
        return [costs] * total
    return list(costs)


def _chunks(tsort: TSortGraph, members: dict[int, ClipCosts], resources: Resources) -> Iterable[list[int]]:
    """Cut the videos of one procedure into pieces between which progress is told; like lengths lie together."""
    order = sorted(members, key=lambda i: -members[i].match.shape[1])
    size = _CHUNK if _in_lanes(tsort, members[order[0]], resources) else 1
    return (order[i : i + size] for i in range(0, len(order), size))


def _in_lanes(tsort: TSortGraph, longest: ClipCosts, resources: Resources) -> bool:
    """Whether several videos fit side by side into a table of moderate size, one for each worker."""
    if resources.backend != "native":
        return False
    needed = procedure(tsort).lane_memory(longest.match.itemsize, longest.match.shape[1], native_watch())
    return _fits(needed, resources)


def _fits(needed: int, resources: Resources) -> bool:
    """Whether so many bytes fit for each worker."""
    together = needed * (resources.workers or cpu_count())
    if resources.memory_limit is None and together <= FREE_BYTES:
        return True
    return needed <= _LANE_BYTES and together <= memory_bound(resources.memory_limit)


def _solve_chunk(
    tsort: TSortGraph, videos: Sequence[ClipCosts], contiguous: bool, cost_only: bool, resources: Resources
) -> list[Exact]:
    """Solve videos of one procedure and dtype exactly."""
    limit = resources.time_limit
    with within(None if limit is None else limit * len(videos) / 2):  # the rest is for a search
        if resources.backend != "native" or len(videos) == 1:
            return [solve_exactly(tsort, costs, contiguous, cost_only, resources) for costs in videos]
        updates = tsort.n_states * sum(costs.match.shape[1] for costs in videos)
        arrays, workers = map(list, zip(*videos, strict=True)), choose_workers(resources.workers, updates)
        found = procedure(tsort).solve_many(*arrays, contiguous, cost_only, 0, workers, native_watch())
        each = zip(videos, found, strict=True)
        return [solve_exactly(tsort, costs, contiguous, cost_only, resources, one) for costs, one in each]
