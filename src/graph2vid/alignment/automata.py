"""Problems beyond the plain recursion, on machines: returns, alternatives, doubtful edges, durations.

One formulation for all of them, and for the minimum and the sum over all alignments
(:mod:`graph2vid.tsort.automaton`); everything is computed in float64.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from graph2vid._memory import in_units
from graph2vid._stopping import native_watch
from graph2vid.alignment import _automaton_reference
from graph2vid.alignment.alignment_result import Labels
from graph2vid.alignment.backends import memory_bound, native
from graph2vid.alignment.constraints import Constraint, constrain
from graph2vid.alignment.durations import Durations, check_durations
from graph2vid.alignment.problem import Problem, check_problem
from graph2vid.errors import InputError, TooLargeError
from graph2vid.flow import FlowGraph
from graph2vid.flow.order import mask_of
from graph2vid.tsort import TSortGraph
from graph2vid.tsort.automaton import MACHINE_LIMIT, Machine

Costs64 = NDArray[np.float64]

QUICK_NODES = 2**17
"""Nodes that a machine has at most unless an exact answer is asked for: it is built in a second or two."""

QUICK_SECONDS = 40.0
"""What is worked out unless an exact answer is asked for: about so much time of one processor."""

_UPDATES = 200_000_000  # states × clips in a second, when the least cost is looked for

SOFT = 16
"""How much longer an update of the sum over all alignments takes than one of the minimum."""


@dataclass(frozen=True, eq=False)
class Extras:
    """What an alignment may do beyond the plain one.

    Attributes
    ----------
    repeat : float64 [K] or None
        The price of each return to a step; None (and +∞): none is returned to.
    durations : Durations or None
        What runs cost by their length; None: nothing.
    breaking : float
        What the log-odds of a doubtful edge are multiplied by to give the price of breaking it; +∞: it is certain.
    """

    repeat: Costs64 | None = None
    durations: Durations | None = None
    breaking: float = 1.0

    def wanted_for(self, flow: FlowGraph) -> bool:
        """Whether a machine is needed; optional steps alone are but skip prices of 0."""
        doubtful = bool(flow.confidences) and self.breaking < np.inf
        return bool(flow.alternatives) or doubtful or self.repeat is not None or self.durations is not None

    def refuse_beside(self, contiguous: bool, method: str | None) -> None:
        """Refuse options that machines do not know."""
        what = "returns, durations, alternatives and doubtful edges"
        if not contiguous:
            raise InputError(f"{what} need contiguous=True: they are about unbroken runs of clips")
        if method == "brute":
            raise InputError(f"method='brute' knows no {what}; 'graph2vid selfcheck --features' compares them")
        if method == "anytime":
            raise InputError(f"method='anytime' knows no {what}: leave them out, or use method='exact'")


def check_all(
    flow: FlowGraph,
    match: Any,
    drop: Any,
    skip: Any,
    repeat: Any,
    durations: Any,
    breaking: Any,
    constraints: tuple[Constraint, ...],
) -> tuple[Problem, Extras]:
    """Check everything that was handed in and write the constraints into the costs."""
    problem = constrain(check_problem(flow, match, drop, skip), constraints)
    return take_pinned_branches(flow, problem, constraints), check_extras(flow, repeat, durations, breaking)


def check_extras(flow: FlowGraph, repeat: Any, durations: Any, breaking: Any) -> Extras:
    """Check what was handed in beside the costs.

    Raises
    ------
    InputError
        For a wrong shape, a negative price or NaN, naming it.
    """
    if isinstance(breaking, bool) or not isinstance(breaking, int | float | np.number) or not breaking >= 0:
        raise InputError(f"breaking must be a number of at least 0, not {breaking!r}")
    checked = check_durations(durations, len(flow))
    if repeat is None or (isinstance(repeat, float) and repeat == np.inf):
        return Extras(None, checked, float(breaking))
    try:
        given = np.asarray(repeat, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"repeat must be a price or one for each of the {len(flow)} steps, not {repeat!r}") from None
    if given.shape not in ((), (len(flow),)):
        raise InputError(
            f"repeat has shape {given.shape}: one price, or one for each of the {len(flow)} steps, is needed"
        )
    prices = np.broadcast_to(given, len(flow)).copy()
    bad = np.flatnonzero(~(prices >= 0))
    if len(bad):
        step = int(bad[0])
        raise InputError(
            f"repeat[{step}] is {prices[step]:g} (step {flow.steps[step].id!r}): the price of a return is at least 0"
        )
    return Extras(prices if np.isfinite(prices).any() else None, checked, float(breaking))


@dataclass(frozen=True, eq=False)
class MachineProblem:
    """A video on a machine, every price worked out; float64 and C-contiguous.

    Attributes
    ----------
    machine : Machine
    match : [K, N]
    drop : [N]
    entry, end : [E], [I]
        Prices of the machine's entries and of ending at its nodes.
    durations : Durations
    hardened : tuple of (int, int)
        Doubtful edges that were taken as certain, since otherwise the machine would be too large.
    """

    machine: Machine
    match: Costs64
    drop: Costs64
    entry: Costs64
    end: Costs64
    durations: Durations
    hardened: tuple[tuple[int, int], ...] = ()

    def scaled(self, factor: float) -> MachineProblem:
        """Return the problem with all costs multiplied."""
        durations = Durations(self.durations.length * factor, self.durations.tail * factor)
        match, drop, entry, end = (cost * factor for cost in (self.match, self.drop, self.entry, self.end))
        return MachineProblem(self.machine, match, drop, entry, end, durations, self.hardened)


def take_pinned_branches(flow: FlowGraph, problem: Problem, constraints: Iterable[Constraint]) -> Problem:
    """Forbid the branches beside those of which a step is pinned."""
    if not flow.alternatives:
        return problem
    pinned = {constraint.step for constraint in constraints if constraint.kind in ("within", "show")}
    gone = [
        step
        for group in flow.alternatives
        if any(pinned.intersection(branch) for branch in group)
        for branch in group
        if not pinned.intersection(branch)
        for step in branch
    ]
    if not gone:
        return problem
    match, skip = problem.match.copy(), None if problem.skip is None else problem.skip.copy()
    match[gone] = np.inf
    if skip is not None:
        skip[gone] = np.inf
    return Problem(match, problem.drop, skip)


def machine_problem(
    flow: FlowGraph,
    problem: Problem,
    extras: Extras,
    memory_limit: int | None,
    tables: int,
    *,
    work: int = 1,
    seconds: float | None = QUICK_SECONDS,
) -> MachineProblem:
    """Put a checked problem on its machine.

    Parameters
    ----------
    tables : int
        How many tables of nodes × clips are needed; they must fit into the memory.
    work : int
        How much longer an update takes than one of the minimum.
    seconds : float or None
        About how long it may take. As few of the doubtful edges as need be, the surest first, are taken as certain.
        None: as long as it takes, up to :data:`MACHINE_LIMIT` nodes.

    Raises
    ------
    TooLargeError
        Where the machine or its tables are too large.
    """
    n_steps, n_clips = problem.match.shape
    skip = np.full(n_steps, np.inf) if problem.skip is None else problem.skip.astype(np.float64)
    repeat = np.full(n_steps, np.inf) if extras.repeat is None else extras.repeat
    # What is worked out of one node, of at most all steps side by side, and tables of all nodes.
    longest = extras.durations.length.shape[1] if extras.durations else 1
    widest = n_steps + 4
    bound = memory_bound(memory_limit)
    of_node = 8 * widest * (8 * (n_clips + 1) + longest)
    fitting = max(0, bound - of_node) // (8 * tables * (n_clips + 1))
    if fitting < 1:
        raise TooLargeError(
            f"{n_steps} steps, {n_clips:,} clips and lengths of up to {longest:,} clips need at least "
            f"{in_units(of_node)}; the bound is {in_units(bound)}: raise memory_limit, or use longer clips"
        )
    # Rounded, so that a little more or less free memory finds the machine that is kept.
    limit = min(MACHINE_LIMIT if seconds is None else QUICK_NODES, 1 << fitting.bit_length() >> 1)
    most = None if seconds is None else int(seconds * _UPDATES / (work * n_clips * (1 + longest // 16)))
    if np.isinf(extras.breaking):
        flow = flow.with_confidence(dict.fromkeys(flow.edges, 1.0))
    may_skip, may_repeat = (mask_of(np.flatnonzero(np.isfinite(price)).tolist()) for price in (skip, repeat))
    try:
        machine, hardened = _fitting(flow, may_skip, may_repeat, limit, most)
        if most is not None and machine.n_states > most:
            raise TooLargeError(
                f"the procedure of {n_steps} steps, with what may be skipped, chosen and done in another order, has "
                f"{machine.n_states:,} states, and {n_clips:,} clips take too long: give more order, or longer clips"
            )
    except TooLargeError as error:
        if seconds is None:
            raise
        raise TooLargeError(f"{error}; align with method='exact' goes further, and takes its time") from error
    sure = np.array([flow.confidence[edge] for edge in machine.edges])
    breaking = extras.breaking * np.maximum(np.log(sure / (1.0 - sure)), 0.0) if len(sure) else sure
    return MachineProblem(
        machine,
        problem.match.astype(np.float64),
        problem.drop.astype(np.float64),
        machine.entry_prices(skip, repeat, breaking),
        machine.end_prices(skip, breaking),
        extras.durations or Durations.least(1, n_steps),
        hardened,
    )


def _fitting(
    flow: FlowGraph, may_skip: int, may_repeat: int, limit: int, most_states: int | None
) -> tuple[Machine, tuple[tuple[int, int], ...]]:
    """Compile the machine; where it would be too large, take the surest doubtful edges, as few as need be, as sure."""
    if most_states is not None:
        limit = min(limit, max(most_states, 1))  # there are at least as many states as nodes, but for the first
    doubtful = sorted((e for e, c in flow.confidence.items() if c < 1.0), key=lambda e: (-flow.confidence[e], e))

    def hardened(number: int) -> FlowGraph:
        return flow.with_confidence(dict.fromkeys(doubtful[:number], 1.0))

    def fits(number: int) -> bool:
        try:
            tsort = TSortGraph.compile(hardened(number).sure, limit)
        except TooLargeError:
            return False
        return most_states is None or tsort.n_states <= most_states

    number = bisect_left(range(len(doubtful)), True, key=fits) if doubtful else 0
    return Machine.compile(hardened(number), may_skip, may_repeat, limit), tuple(doubtful[:number])


_natives: WeakKeyDictionary[Machine, Any] = WeakKeyDictionary()


def _native_machine(machine: Machine) -> Any:
    found = _natives.get(machine)
    if found is None:
        module = native()
        assert module is not None
        found = module.Machine(
            len(machine.flow), machine.state_start, machine.state_step, machine.entry_start, machine.entry_from
        )
        _natives[machine] = found
    return found


def _solve_native(problem: MachineProblem, soft: bool, cost_only: bool) -> tuple[float, Any]:
    answer: tuple[float, Any] = _native_machine(problem.machine).solve(
        np.ascontiguousarray(problem.match.T),
        problem.drop,
        problem.entry,
        problem.end,
        np.ascontiguousarray(problem.durations.length.T),
        problem.durations.tail,
        soft,
        cost_only,
        native_watch(),
    )
    return answer


def solve(problem: MachineProblem, backend: str, cost_only: bool) -> tuple[float, Labels | None]:
    """Find the cheapest alignment; cost ∞ and no labels where there is none."""
    if backend == "native":
        return _solve_native(problem, False, cost_only)
    cost, labels = _automaton_reference.solve(problem)
    return cost, None if cost_only else labels


def posterior(problem: MachineProblem, gamma: float, backend: str) -> tuple[float, Costs64]:
    """Return the softmin over all alignments and the probabilities of labels, [K+1, N]; ∞ and zeros where none is."""
    scaled = problem.scaled(1.0 / gamma)
    if backend == "native":
        cost, probability = _solve_native(scaled, True, False)
    else:
        cost, probability = _automaton_reference.posterior(scaled)
    if probability is None:
        return np.inf, np.zeros((len(problem.match) + 1, len(problem.drop)))
    return cost * gamma, probability / probability.sum(axis=0)


def report(problem: MachineProblem) -> dict[str, Any]:
    """Return what the answer's options say of the machine, and warn of edges that could not be left doubtful."""
    if not problem.hardened:
        return {}
    flow = problem.machine.flow
    names = ", ".join(f"{flow.ids[a]!r} → {flow.ids[b]!r}" for a, b in problem.hardened[:4])
    more = f" and {len(problem.hardened) - 4} more" if len(problem.hardened) > 4 else ""
    warnings.warn(
        f"with all doubtful edges left open the procedure would have too many nodes: taken as certain: {names}{more}",
        RuntimeWarning,
        stacklevel=3,
    )
    return {"hardened": [list(edge) for edge in problem.hardened]}
