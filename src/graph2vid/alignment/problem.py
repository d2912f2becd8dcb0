"""What is asked, and every answer to it: `Problem`, and `align`, `posterior`, `k_best`, `margins` in one line each."""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid._deprecated import renamed
from graph2vid._stopping import within
from graph2vid.alignment import _brute, _reference, anytime, automata, branches, orders
from graph2vid.alignment.alignment_result import Alignment, Labels, Posterior
from graph2vid.alignment.anytime import Answer
from graph2vid.alignment.automata import QUICK_SECONDS, SOFT, SoftAnswer, automaton_problem
from graph2vid.alignment.backends import Resources, memory_bound, soft_costs, solve_exactly, too_large
from graph2vid.alignment.clip_costs import (
    LONG,
    ClipCosts,
    Constraint,
    check_costs,
    check_gamma,
    constrain,
    may_overflow,
    refuse_gamma,
    widened,
)
from graph2vid.alignment.durations import Durations, check_durations
from graph2vid.alignment.infeasible import why_infeasible
from graph2vid.errors import InfeasibleError, InputError, TooLargeError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

METHODS = ("exact", "anytime", "brute")

_EXTENDED = "repeats, durations, alternatives and soft precedence"


class Problem:
    """A procedure, the costs of a video, and what an alignment may do: checked once, and then asked as often as needed.

    The solver is chosen once, too: the plain kernels on the tSort graph, or, for repeats, durations, alternatives and
    soft precedence, the automaton of the extended model. Where neither is within reach, :meth:`align` searches.

    Parameters
    ----------
    flow : FlowGraph or TSortGraph
        The procedure, of K steps. Compile it once (:meth:`TSortGraph.compile`) to align it with many videos.
    match : array [K, N]
        How badly each step explains each clip; +∞ is forbidden. float32 is computed in float32, all else in float64;
        so is float32 where its sums would round away what tells labels apart (``options["dtype"]`` says it).
    drop : array [N] or float
        The cost of calling a clip background; +∞: the clip must show a step.
    skip : array [K], float or None
        The cost of not showing a step; None (and +∞): the step must be shown.
    repeat : array [K], float or None
        The cost of each repeat of a step that is done already: one that was shown, or one that was skipped since
        something that must follow it was shown (which costs its skip cost, too). None (and +∞): one segment a step.
    durations : Durations, int, array [K] or None
        What a segment costs by its length, or the fewest clips of a segment (for all steps, or for each).
    violation : float
        Edges of a confidence below 1 may be violated: for their log-odds, log(confidence / (1 - confidence)), times
        this number. +∞: all edges are certain.
    constraints : iterable of Constraint
        Pins and forbidden spans, in clips.
    contiguous : bool
        True: a segment is an unbroken sequence of clips. False (the paper's recursion): background may lie inside it.

    Attributes
    ----------
    flow : FlowGraph
    costs : ClipCosts
        Match, drop and skip costs as they are computed with, constraints written into them as +∞.
    repeat, durations, violation, contiguous
        As given, checked.

    Raises
    ------
    InputError
        For wrong shapes, NaN, -∞ or options that do not go together.
    """

    __slots__ = ("compiled", "contiguous", "costs", "durations", "flow", "is_extended", "repeat", "violation")

    def __init__(
        self,
        flow: FlowGraph | TSortGraph,
        match: Any,
        drop: Any,
        skip: Any = None,
        repeat: Any = None,
        durations: Durations | ArrayLike | None = None,
        violation: float = 1.0,
        constraints: Iterable[Constraint] = (),
        contiguous: bool = True,
    ) -> None:
        self.compiled: TSortGraph | None = flow if isinstance(flow, TSortGraph) else None
        self.flow = flow.flow if isinstance(flow, TSortGraph) else flow
        self.costs = check_costs(self.flow, match, drop, skip)
        if rules := tuple(constraints):
            self.costs = _take_pinned_branches(self.flow, constrain(self.costs, rules), rules)
        if isinstance(violation, bool) or not isinstance(violation, int | float | np.number) or not violation >= 0:
            raise InputError(f"violation must be a number of at least 0, not {violation!r}")
        self.repeat = None if repeat is None else _check_repeat(self.flow, repeat)
        self.durations = None if durations is None else check_durations(durations, len(self.flow))
        self.violation, self.contiguous = float(violation), bool(contiguous)
        # Optional steps alone are but skip costs of 0.
        self.is_extended = bool(
            self.flow.alternatives
            or self.repeat is not None
            or self.durations is not None
            or (self.flow.confidences and violation < np.inf)
        )
        if self.is_extended and not self.contiguous:
            raise InputError(f"{_EXTENDED} need contiguous=True: they are about unbroken segments of clips")

    @property
    def tsort(self) -> TSortGraph:
        """The compiled procedure; compiled when it is first needed."""
        if self.compiled is None:
            self.compiled = TSortGraph.compile(self.flow)
        return self.compiled

    def __repr__(self) -> str:
        steps, clips = self.costs.match.shape
        extras = [name for name in ("repeat", "durations") if getattr(self, name) is not None]
        extras += [] if self.contiguous else ["contiguous=False"]
        return f"Problem({', '.join([f'{steps} steps', f'{clips} clips', *extras])})"

    # -- answers ------------------------------------------------------------------------------------------------

    def align(
        self,
        method: str | None = None,
        *,
        cost_only: bool = False,
        backend: str | None = None,
        workers: int | None = None,
        memory_limit: int | None = None,
        time_limit: float | None = None,
        brute_limit: int = 100_000,
    ) -> Alignment:
        """Find the cheapest alignment, over all orders that respect the procedure; options as for :func:`align`."""
        if method is not None and method not in METHODS:
            raise InputError(f"unknown method {method!r}; known: {', '.join(METHODS)}")
        resources = Resources.check(backend, workers, memory_limit, time_limit)
        return self.result(self.solve(method, cost_only, resources, brute_limit))

    def posterior(
        self,
        gamma: float = 1.0,
        *,
        backend: str | None = None,
        workers: int | None = None,
        memory_limit: int | None = None,
        time_limit: float | None = None,
    ) -> Posterior:
        """Weigh all alignments by exp(-cost / gamma); options as for :func:`posterior`."""
        gamma = check_gamma(gamma)
        resources = Resources.check(backend, workers, memory_limit, time_limit)
        costs = self.costs.astype(np.float64)
        refuse_gamma(costs, gamma)
        options: dict[str, Any] = {"gamma": gamma, "contiguous": self.contiguous, "backend": resources.backend}
        with within(resources.time_limit):
            if self.is_extended:
                seconds = resources.time_limit or QUICK_SECONDS
                asked = automaton_problem(self, costs, memory_limit, tables=2, work=SOFT, seconds=seconds)
                found = automata.posterior(asked, gamma, resources)
                options |= automata.report(asked)
            else:
                found = self._plain_posterior(costs, gamma, resources)
        self._require_finite(found.cost)
        has_start = self.contiguous and self.repeat is None
        return Posterior(self.flow, found.cost, found.probability, options, found.start if has_start else None)

    def k_best(
        self,
        k: int = 5,
        *,
        backend: str | None = None,
        workers: int | None = None,
        memory_limit: int | None = None,
        time_limit: float | None = None,
    ) -> tuple[Alignment, ...]:
        """Find the k cheapest orders, and for each its cheapest alignment; options as for :func:`k_best`."""
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise InputError(f"k must be a whole number of orders, at least 1, not {k!r}")
        resources = Resources.check(backend, workers, memory_limit, time_limit)
        found: list[Alignment] = []
        with within(resources.time_limit):
            try:
                for answer in orders.best_orders(self, int(k), resources):
                    found.append(self.result(answer))
            except TimeoutError:
                if not found:
                    raise
                warnings.warn(f"the {len(found)} best orders were found in {time_limit:g} s, not {k}", stacklevel=2)
        if not found:
            self._require_finite(np.inf)
        return tuple(sorted(found, key=lambda one: one.cost))

    def margins(
        self,
        found: Alignment | None = None,
        *,
        backend: str | None = None,
        workers: int | None = None,
        memory_limit: int | None = None,
        time_limit: float | None = None,
    ) -> NDArray[np.float64]:
        """Return for each segment of an alignment how much more its best alternative costs; see :func:`margins`."""
        from graph2vid.alignment.many import solve_many

        resources = Resources.check(backend, workers, memory_limit, time_limit)
        with within(resources.time_limit):
            within_it = resources._replace(time_limit=None)
            if found is None:
                found = self.result(self.solve(None, False, within_it))
            alternatives = [
                self.of_clips(constrain(self.costs, [Constraint("forbid", segment.step, segment.start, segment.stop)]))
                for segment in found.segments
            ]
            others = solve_many(alternatives, cost_only=True, resources=within_it)
        # Rounding may carry an equally good alternative a hair below the optimum.
        return np.maximum(np.array([other.cost for other in others], np.float64) - found.cost, 0.0)

    # -- solvers ------------------------------------------------------------------------------------------------

    def solve(self, method: str | None, cost_only: bool, resources: Resources, brute_limit: int = 100_000) -> Answer:
        """Find the cheapest alignment; cost ∞ where there is none (:meth:`result` then says why)."""
        if self.is_extended:
            return self._extended(method, cost_only, resources)
        if method == "brute":
            with within(resources.time_limit, "raise time_limit, or use method='exact'"):
                cost, labels = _brute.solve(self.flow, *self.costs, contiguous=self.contiguous, limit=brute_limit)
            return Answer(cost, None if cost_only else labels, 0.0, self._options("brute", self.costs))
        if method == "anytime":
            return self.search(cost_only, resources)
        if resources.time_limit is None:
            try:
                return self._plain(method, cost_only, resources)
            except TooLargeError as error:
                if method is not None:
                    raise
                return self.search(cost_only, resources, error)
        began = time.monotonic()
        # Half of the time, where the rest is for a search.
        exact = resources.time_limit if method is not None else resources.time_limit / 2
        try:
            with within(exact, "raise time_limit, or use method='anytime'"):
                return self._plain(method, cost_only, resources)
        except TooLargeError as error:
            if method is not None:
                raise
            return self.search(cost_only, _rest(resources, began), error)

    def exact_costs(self) -> ClipCosts:
        """Return the costs in the dtype in which an exact answer is looked for first."""
        return widened(self.costs) if self.costs.match.shape[1] > LONG else self.costs

    def exact_answer(self, cost: float, labels: Labels | None, costs: ClipCosts, resources: Resources) -> Answer:
        """Return the answer that was found with ``costs``, and how."""
        options = self._options("exact", costs)
        options["backend"] = resources.backend
        return Answer(cost, labels, 0.0, options)

    def _plain(self, method: str | None, cost_only: bool, resources: Resources) -> Answer:
        """Solve exactly on the tSort graph."""
        tsort, costs = self.tsort, self.exact_costs()
        if method is None:
            anytime.refuse_long(tsort, costs.match.shape[1])
        return self.exact_answer(*solve_exactly(tsort, costs, self.contiguous, cost_only, resources), resources)

    def search(self, cost_only: bool, resources: Resources, instead_of: TooLargeError | None = None) -> Answer:
        """Search beyond exact reach."""
        found = anytime.solve(self.flow, self.costs, self.contiguous, resources, instead_of)
        return self._told(found, cost_only)

    def _extended(self, method: str | None, cost_only: bool, resources: Resources) -> Answer:
        """Solve exactly on the automaton; where that is too large, with fewer soft edges, or by a search.

        Soft edges are taken as certain where the automaton would be too large otherwise, the surest first. If that is
        not enough, or the time is up, alternatives are searched; repeats and durations are refused.
        """
        if method in ("brute", "anytime"):
            advice = "'graph2vid selfcheck --features' compares them" if method == "brute" else "use method='exact'"
            raise InputError(f"method={method!r} knows no {_EXTENDED}: leave them out, or {advice}")
        began, limit = time.monotonic(), resources.time_limit
        can_search = method is None and self.repeat is None and self.durations is None
        exact = limit if limit is None or not can_search else limit / 2
        seconds = None if method == "exact" else exact or QUICK_SECONDS
        try:
            with within(exact, "raise time_limit, use longer clips, or leave out what makes the procedure large"):
                costs = self.exact_costs()
                while True:
                    asked = automaton_problem(self, costs, resources.memory_limit, seconds=seconds)
                    cost, labels = automata.solve(asked, cost_only, resources)
                    if not abs(cost) > LONG or (wide := widened(costs)) is costs:
                        break
                    costs = wide
        except TooLargeError:
            if not can_search:
                raise
        else:
            found = self.exact_answer(cost, labels, costs, resources)
            return found._replace(options=found.options | automata.report(asked))
        soft = [edge for edge, confidence in self.flow.confidence.items() if confidence < 1.0]
        flow, report = self.flow, {}
        if soft:
            flow = flow.with_confidence(dict.fromkeys(soft, 1.0))
            report = {"made_certain": [list(edge) for edge in soft]}
            warnings.warn(
                f"with soft edges the procedure is too large: all {len(soft)} are taken as certain",
                RuntimeWarning,
                stacklevel=4,
            )
        search = branches.solve if flow.alternatives else anytime.solve_quickly
        return self._told(search(flow, self.costs, _rest(resources, began)), cost_only, report)

    def _plain_posterior(self, costs: ClipCosts, gamma: float, resources: Resources) -> SoftAnswer:
        tsort, clips, memory_limit = self.tsort, costs.match.shape[1], resources.memory_limit
        if resources.backend == "native":
            (found,) = soft_costs(
                [(tsort, costs)],
                gamma=gamma,
                smoothing="softmin",
                contiguous=self.contiguous,
                starts=self.contiguous,
                workers=resources.workers,
                memory_limit=memory_limit,
            )
            assert found.match is not None and found.drop is not None
            return SoftAnswer(found.cost, np.vstack([found.match, found.drop]), found.start)
        needed = 16 * (tsort.n_ideals + tsort.n_states) * (clips + 1)
        if needed > (bound := memory_bound(memory_limit)):
            raise too_large(tsort, clips, needed, bound, "")
        return SoftAnswer(*_reference.forward_backward(tsort, *costs, contiguous=self.contiguous, gamma=gamma))

    # -- parts --------------------------------------------------------------------------------------------------

    def _options(self, method: str, costs: ClipCosts) -> dict[str, Any]:
        return {"method": method, "contiguous": self.contiguous, "dtype": costs.dtype}

    def _told(self, found: Answer, cost_only: bool, report: dict[str, Any] | None = None) -> Answer:
        """Return the answer of a search with all that its options say."""
        options = self._options("exact", self.costs) | found.options | (report or {})
        return Answer(found.cost, None if cost_only else found.labels, found.gap, options)

    def result(self, answer: Answer) -> Alignment:
        """Return an answer as callers see it.

        Raises
        ------
        InputError, InfeasibleError
            Where its cost is not finite: the costs are too large for their dtype, or no alignment is possible.
        """
        self._require_finite(answer.cost)
        if answer.labels is not None:
            answer.labels.setflags(write=False)
        return Alignment(self.flow, answer.cost, answer.labels, answer.gap, answer.options)

    def _require_finite(self, cost: float) -> None:
        if math.isfinite(cost):
            return
        if may_overflow(self.costs, self.costs.largest()):
            raise InputError(
                f"the costs are so large that their sums overflow {self.costs.match.dtype}: scale them down"
            )
        raise InfeasibleError(f"no alignment is possible: {why_infeasible(self.flow, self.costs, self.durations)}")

    def of_clips(self, costs: ClipCosts) -> Problem:
        """Return the same problem of other clips, whose costs are checked already."""
        other = copy.copy(self)
        other.costs = costs
        return other


def _rest(resources: Resources, began: float) -> Resources:
    """Return the resources with the time that is left of them."""
    if resources.time_limit is None:
        return resources
    return resources._replace(time_limit=max(began + resources.time_limit - time.monotonic(), 1e-3))


def _check_repeat(flow: FlowGraph, repeat: Any) -> NDArray[np.float64] | None:
    """Return the repeat costs [K]; None where no step may be repeated."""
    if isinstance(repeat, float) and repeat == np.inf:
        return None
    try:
        given = np.asarray(repeat, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"repeat must be a cost or one for each of the {len(flow)} steps, not {repeat!r}") from None
    if given.shape not in ((), (len(flow),)):
        raise InputError(
            f"repeat has shape {given.shape}: one cost, or one for each of the {len(flow)} steps, is needed"
        )
    costs = np.broadcast_to(given, len(flow)).copy()
    bad = np.flatnonzero(~(costs >= 0))
    if len(bad):
        step = int(bad[0])
        raise InputError(
            f"repeat[{step}] is {costs[step]:g} (step {flow.steps[step].id!r}): the cost of a repeat is at least 0"
        )
    return costs if np.isfinite(costs).any() else None


def _take_pinned_branches(flow: FlowGraph, costs: ClipCosts, constraints: Iterable[Constraint]) -> ClipCosts:
    """Forbid the branches beside those of which a step is pinned; the arrays are changed in place."""
    pinned = {constraint.step for constraint in constraints if constraint.kind in ("within", "show")}
    gone = [
        step
        for group in flow.alternatives
        if any(pinned.intersection(branch) for branch in group)
        for branch in group
        if not pinned.intersection(branch)
        for step in branch
    ]
    costs.match[gone] = np.inf
    if costs.skip is not None:
        costs.skip[gone] = np.inf
    return costs


@renamed(breaking="violation", threads="workers")
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
    violation: float = 1.0,
    constraints: Iterable[Constraint] = (),
    cost_only: bool = False,
    backend: str | None = None,
    workers: int | None = None,
    memory_limit: int | None = None,
    time_limit: float | None = None,
    brute_limit: int = 100_000,
) -> Alignment:
    """Find the cheapest alignment of a procedure with a video, over all orders that respect the procedure.

    Parameters
    ----------
    flow, match, drop, skip, contiguous, repeat, durations, violation, constraints
        The question, as for :class:`Problem`.
    method : {None, "exact", "anytime", "brute"}
        "exact" works on the tSort graph; "anytime" searches for as long as it may and says how far from the optimum
        its answer can be (``gap``); "brute" tries every topological sort, the oracle for small procedures. None is
        exact, and searches where that would take too much memory or states × clips.
    cost_only : bool
        Compute the cost without labels, in little memory.
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
    return Problem(flow, match, drop, skip, repeat, durations, violation, constraints, contiguous).align(
        method,
        cost_only=cost_only,
        backend=backend,
        workers=workers,
        memory_limit=memory_limit,
        time_limit=time_limit,
        brute_limit=brute_limit,
    )


@renamed(breaking="violation")
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
    violation: float = 1.0,
    constraints: Iterable[Constraint] = (),
    **resources: Any,
) -> Posterior:
    """Weigh all alignments by exp(-cost / gamma) and say how probable each label of each clip is.

    Each label sequence counts once, whatever steps are skipped. The computation is in float64.

    Parameters
    ----------
    flow, match, drop, skip, contiguous, repeat, durations, violation, constraints
        The question, as for :class:`Problem`.
    gamma : float
        Temperature of the posterior, > 0; towards 0 only the cheapest alignments count.
    **resources
        ``backend``, ``workers`` and ``memory_limit`` as for :func:`align`; ``time_limit``: seconds after which the call
        is given up, by default it takes as long as it takes.

    Returns
    -------
    Posterior
    """
    problem = Problem(flow, match, drop, skip, repeat, durations, violation, constraints, contiguous)
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
    repeat: Any = None,
    durations: Any = None,
    violation: float = 1.0,
    constraints: Iterable[Constraint] = (),
    **resources: Any,
) -> tuple[Alignment, ...]:
    """Find the k cheapest orders, and for each of them its cheapest alignment.

    An order is that in which the shown steps first appear; two orders differ also where one of them shows more steps.

    Parameters
    ----------
    flow, match, drop, skip, contiguous, repeat, durations, violation, constraints
        The question, as for :class:`Problem`.
    k : int
        How many orders, at least 1.
    **resources
        ``backend``, ``workers`` and ``memory_limit`` as for :func:`align`; ``time_limit``: seconds after which the
        orders found until then are returned, with a warning, by default it takes as long as it takes.

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
    problem = Problem(flow, match, drop, skip, repeat, durations, violation, constraints, contiguous)
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
    **options: Any,
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
    resources = {name: options.pop(name) for name in Resources._fields if name in options}
    return Problem(flow, match, drop, skip, contiguous=contiguous, **options).margins(found, **resources)
