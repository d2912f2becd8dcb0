"""Problems of the extended model on their automaton: repeats, alternatives, soft precedence, durations.

One formulation for all of them, and for the minimum and the sum over all alignments
(:mod:`graph2vid.tsort.automaton`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid._arrays import Floats
from graph2vid._memory import FREE_BYTES, in_units
from graph2vid._stopping import native_watch
from graph2vid.alignment import _automaton_reference
from graph2vid.alignment.alignment_result import Labels
from graph2vid.alignment.backends import Resources, choose_workers, memory_bound, native
from graph2vid.alignment.clip_costs import ClipCosts
from graph2vid.alignment.durations import Durations
from graph2vid.errors import TooLargeError
from graph2vid.flow import mask_of
from graph2vid.tsort import AUTOMATON_LIMIT, Automaton, Restrictions, order_costs

if TYPE_CHECKING:
    from graph2vid.alignment.problem import Problem

QUICK_NODES = 2**17
"""Nodes that an automaton has at most unless an exact answer is asked for: it is built in a second or two."""

QUICK_SECONDS = 40.0
"""What is worked out unless an exact answer is asked for: about so much time of one processor."""

_UPDATES = 200_000_000  # states × clips in a second, when the least cost is looked for

SOFT = 16
"""How much longer an update of the sum over all alignments takes than one of the minimum."""


class AutomatonProblem(NamedTuple):
    """A video on an automaton, every cost worked out; C-contiguous and all of one dtype, float32 or float64.

    Attributes
    ----------
    automaton : Automaton
    match : [K, N]
    drop : [N]
    arc, end : [A], [I]
        Costs of the automaton's arcs and of ending at its nodes.
    length, tail : [K, D], [K]
        Costs of segments by their length, as in :class:`Durations`.
    restriction : mapping
        What an answer says of orders that were left out, since otherwise the automaton would be too large.
    """

    automaton: Automaton
    match: Floats
    drop: Floats
    arc: Floats
    end: Floats
    length: Floats
    tail: Floats
    restriction: Mapping[str, Any] = {}

    @property
    def costs(self) -> tuple[Floats, ...]:
        """All costs, as the kernels take them."""
        return self[1:7]

    def scaled(self, factor: float) -> AutomatonProblem:
        """Return the problem with all costs multiplied."""
        return AutomatonProblem(self.automaton, *(cost * factor for cost in self.costs), self.restriction)  # type: ignore[call-arg, arg-type]

    def in_dtype_of(self, costs: ClipCosts) -> AutomatonProblem:
        """Return the problem with these costs of clips, and the others in their dtype."""
        if self.tail.dtype == costs.match.dtype:
            return self._replace(match=costs.match, drop=costs.drop)
        with np.errstate(over="ignore"):  # what is too large for the dtype is as good as impossible
            others = (cost.astype(costs.match.dtype, copy=False) for cost in self.costs[2:])
            return AutomatonProblem(self.automaton, costs.match, costs.drop, *others, self.restriction)  # type: ignore[call-arg, arg-type]


def automaton_problem(
    problem: Problem,
    costs: ClipCosts,
    memory_limit: int | None,
    *,
    tables: int = 1,
    work: int = 1,
    seconds: float | None = QUICK_SECONDS,
) -> AutomatonProblem:
    """Put a checked problem on its automaton.

    Parameters
    ----------
    costs : ClipCosts
        Those of the problem, in the dtype that is computed in.
    tables : int
        How many tables of nodes × clips are needed; they must fit into the memory.
    work : int
        How much longer an update takes than one of the minimum.
    seconds : float or None
        About how long it may take. As few of the orders as need be, the least expected ones, are left out.
        None: as long as it takes, up to :data:`AUTOMATON_LIMIT` nodes.

    Raises
    ------
    TooLargeError
        Where the automaton or its tables are too large.
    """
    flow = problem.model
    n_steps, n_clips = costs.match.shape
    never = _never(n_steps)
    skip = never if costs.skip is None else costs.skip.astype(np.float64)
    repeat = never if problem.repeat is None else problem.repeat
    may_skip, may_repeat = (
        mask_of(step for step, one in enumerate(cost.tolist()) if one < np.inf) for cost in (skip, repeat)
    )
    built = Automaton.built_before(flow, may_skip, may_repeat)
    durations = _any_length(n_steps) if problem.durations is None else problem.durations
    # What is worked out of one node, of at most all steps side by side, and tables of all nodes.
    longest = durations.length.shape[1]
    outlook = n_clips // 8 + 8 if longest > 1 and work == 1 else 0  # numbers of each node, beside the table
    of_node, each = _node_bytes(n_steps, n_clips, longest, work), 8 * (tables * (n_clips + 8) + outlook)
    most_nodes = built.n_nodes if built else 2 ** min(n_steps + sum(map(len, flow.alternatives)), 64)
    # Small ones are not worth asking for the memory.
    small = memory_limit is None and of_node + each * most_nodes <= FREE_BYTES
    bound = FREE_BYTES if small else memory_bound(memory_limit)
    fitting = most_nodes if small else max(0, bound - of_node) // each
    if fitting < 1:
        raise TooLargeError(
            f"{n_steps} steps, {n_clips:,} clips and lengths of up to {longest:,} clips need at least "
            f"{in_units(of_node)}; the bound is {in_units(bound)}: raise memory_limit, or use longer clips"
        )
    limit = AUTOMATON_LIMIT if seconds is None else QUICK_NODES
    if not small:  # rounded, so that a little more or less free memory finds the automaton that is kept
        limit = min(limit, 1 << fitting.bit_length() >> 1)
    most = None if seconds is None else int(seconds * _UPDATES / (work * n_clips * (1 + longest // 16)))
    try:
        restrictions, number = Restrictions(flow, problem.pinned), 0
        if seconds is not None and flow.confidences:
            number = restrictions.fitting(limit if most is None else min(limit, max(most, 1)), most)
        automaton = Automaton.compile(restrictions[number], may_skip, may_repeat, limit)
        if most is not None and automaton.n_states > most:
            raise TooLargeError(
                f"the procedure of {n_steps} steps, with what may be skipped, chosen and done in another order, has "
                f"{automaton.n_states:,} states, and {n_clips:,} clips take too long: give more order, or longer clips"
            )
    except TooLargeError as error:
        if seconds is None:
            raise
        raise TooLargeError(f"{error}; align with method='exact' goes further, and takes its time") from error
    order = problem.order if not number else order_costs(restrictions[number], problem.violation)
    arc, end = _costs(automaton, costs.match.dtype, skip, repeat, np.empty(0) if order is None else order)
    of_clips = costs.match, costs.drop
    asked = AutomatonProblem(
        automaton, *of_clips, arc, end, durations.length, durations.tail, restrictions.report(number)
    )
    return asked.in_dtype_of(costs)


def beside_clips(problem: Problem, costs: ClipCosts) -> Hashable:
    """Return all that a problem's automaton and its costs follow from, beside the number of clips.

    The automaton of a video, if no orders had to be left out, is also that of each shorter one.
    """
    skip, repeat = (None if cost is None else cost.tobytes() for cost in (costs.skip, problem.repeat))
    return problem.flow, problem.violation, problem.pinned, skip, repeat, problem.durations, costs.match.dtype


@cache
def _never(n_steps: int) -> NDArray[np.float64]:
    """Return the costs of what no step may do, read-only."""
    costs = np.full(n_steps, np.inf)
    costs.setflags(write=False)
    return costs


@cache
def _any_length(n_steps: int) -> Durations:
    """Return the durations of steps whose segments cost the same whatever their length."""
    return Durations.least(1, n_steps)


def _node_bytes(n_steps: int, n_clips: int, longest: int, work: int) -> int:
    """Return what is worked out of nodes side by side at most: for each step some vectors for every clip."""
    arrays = (4 if longest == 1 else 8) + (0 if work == 1 else 6)
    return 32 * (n_steps * (arrays * (n_clips + 10) + 3 * longest + 120) + 4 * (n_clips + 10))


def _costs(automaton: Automaton, dtype: np.dtype[Any], *given: NDArray[np.float64]) -> tuple[Floats, Floats]:
    """Return what arcs and ends cost, read-only; of each dtype, those asked for last are kept with the automaton."""
    kept = vars(automaton).setdefault("_costs", {})
    key = tuple(cost.tobytes() for cost in given)
    known, *found = kept.get(dtype, (None,))
    if known != key:
        with np.errstate(over="ignore"):  # what is too large for the dtype is as good as impossible
            found = [cost.astype(dtype, copy=False) for cost in automaton.costs(*given)]
        for cost in found:
            cost.setflags(write=False)
        kept[dtype] = key, *found
    arc, end = found
    return arc, end


def _native(automaton: Automaton) -> Any:
    """Return the automaton as the extension holds it, made once and kept with it."""
    compiled, module = vars(automaton).get("_native"), native()
    if compiled is None:
        assert module is not None
        arrays = (automaton.state_start, automaton.state_step, automaton.arc_start, automaton.arc_from)
        compiled = vars(automaton)["_native"] = module.Automaton(len(automaton.flow), *arrays)
    return compiled


def _workers(problems: Sequence[AutomatonProblem], resources: Resources, work: int) -> int:
    """Return how many workers there are for problems of one automaton."""
    (n_steps, n_clips), longest = problems[0].match.shape, problems[0].length.shape[1]
    updates = problems[0].automaton.n_states * sum(len(problem.drop) for problem in problems)
    workers = choose_workers(resources.workers, work * updates * (1 + longest // 16))
    if workers > 1 and len(problems) == 1:  # each works nodes out; no more of them than fit beside the tables
        bound = FREE_BYTES if resources.memory_limit is None else memory_bound(resources.memory_limit) // 4
        workers = min(workers, max(1, bound // _node_bytes(n_steps, n_clips, longest, work)))
    return workers


def lane_bytes(problem: AutomatonProblem, soft: bool) -> int:
    """Return what problems side by side need, of which this one has the most clips; for each worker."""
    (_, n_clips), longest = problem.match.shape, problem.length.shape[1]
    size: int = _native(problem.automaton).memory(problem.match.itemsize, n_clips, longest, True, soft)
    return size


def solve(
    problems: Sequence[AutomatonProblem], cost_only: bool, resources: Resources
) -> list[tuple[float, Labels | None]]:
    """Find the cheapest alignments of problems of one automaton, dtype and number of lengths.

    Several are computed side by side. Cost ∞ and no labels where there is no alignment.
    """
    if resources.backend == "native":
        workers, costs = _workers(problems, resources, 1), [problem.costs for problem in problems]
        return list(_native(problems[0].automaton).solve(costs, cost_only, workers, native_watch()))
    found = map(_automaton_reference.solve, problems)
    return [(cost, None if cost_only else labels) for cost, labels in found]


class SoftAnswer(NamedTuple):
    """The softmin over all alignments; the probabilities of labels [K+1, N], and of a segment beginning [K, N]."""

    cost: float
    probability: NDArray[np.float64]
    start: NDArray[Any] | None


def posterior(problems: Sequence[AutomatonProblem], gamma: float, resources: Resources) -> list[SoftAnswer]:
    """Sum over all alignments of each, weighted by exp(-cost / gamma), in float64; ∞ and zeros where there is none.

    The problems are as for :func:`solve`.
    """
    scaled = [problem.scaled(1.0 / gamma) for problem in problems]
    if resources.backend == "native":
        workers, costs = _workers(problems, resources, SOFT), [problem.costs for problem in scaled]
        found = _native(problems[0].automaton).posterior(costs, workers, native_watch())
    else:
        found = map(_automaton_reference.posterior, scaled)
    return [_soft_answer(problem, gamma, *one) for problem, one in zip(problems, found, strict=True)]


def _soft_answer(problem: AutomatonProblem, gamma: float, cost: float, probability: Any, start: Any) -> SoftAnswer:
    if probability is None:
        n_steps, n_clips = problem.match.shape
        return SoftAnswer(np.inf, np.zeros((n_steps + 1, n_clips)), np.zeros((n_steps, n_clips)))
    total = probability.sum(axis=0)
    return SoftAnswer(cost * gamma, probability / total, start / total)


def report(problem: AutomatonProblem) -> dict[str, Any]:
    """Return what the answer's options say of the automaton."""
    return dict(problem.restriction)
