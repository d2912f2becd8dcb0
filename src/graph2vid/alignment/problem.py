"""What is asked, and every answer to it: `Problem`."""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid._stopping import within
from graph2vid.alignment import _brute, _reference, anytime, automata, clip_costs, orders
from graph2vid.alignment.alignment_result import Alignment, Labels, Posterior
from graph2vid.alignment.anytime import Answer
from graph2vid.alignment.automata import QUICK_SECONDS, SOFT, AutomatonProblem, SoftAnswer, automaton_problem
from graph2vid.alignment.backends import ResourceOptions, Resources, memory_bound, soft_costs, solve_exactly, too_large
from graph2vid.alignment.clip_costs import LONG, ClipCosts, Constraint, check_costs, check_gamma, constrain, widened
from graph2vid.alignment.durations import Durations, check_durations
from graph2vid.errors import InfeasibleError, InputError, TooLargeError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import Restrictions, TSortGraph, made_certain, order_costs

METHODS = ("exact", "anytime", "brute")

_EXTENDED = "repeats, durations and alternatives"
_SEARCH = "raise time_limit, or use method='anytime'"
_LESS = "raise time_limit, use longer clips, or leave out what makes the procedure large"
_UPDATES = 2**25
"""States × clips up to which all legal orders are tried where one is expected: about half a second of a posterior."""

_MOST_IDEALS = 2**20

_NUMBER = int | float | np.number


class Problem:
    """A procedure, the costs of a video, and what an alignment may do: checked once, and then asked as often as needed.

    The solver is chosen once, too: the plain kernels on the tSort graph, or, for repeats, durations and alternatives,
    the automaton of the extended model. Where neither is within reach, :meth:`align` searches. Where soft edges expect
    an order, orders too far from it to be within reach are left out: ``options["displacement"]`` says how many places
    two steps may stand apart in it and still be shown the other way round.

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
        Factor of what it costs to show a soft edge the other way round, its log-odds log(confidence / (1 -
        confidence)). +∞: all edges are certain; 0: soft ones say nothing.
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

    __slots__ = (
        "compiled",
        "contiguous",
        "costs",
        "durations",
        "flow",
        "is_extended",
        "model",
        "order",
        "pinned",
        "repeat",
        "restriction",
        "violation",
    )

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
        if isinstance(violation, bool) or not isinstance(violation, _NUMBER) or not violation >= 0:
            raise InputError(f"violation must be a number of at least 0, not {violation!r}")
        self.repeat = None if repeat is None else _check_repeat(self.flow, repeat)
        self.durations = None if durations is None else check_durations(durations, len(self.flow))
        self.violation, self.contiguous = float(violation), bool(contiguous)
        # Steps that are pinned may be shown however far from where they are expected.
        self.pinned = frozenset(rule.step for rule in rules if rule.step is not None and rule.kind != "forbid")
        is_certain = self.violation == np.inf and bool(self.flow.confidences)
        self.model = made_certain(self.flow) if is_certain else self.flow
        self.restriction: Mapping[str, Any] = {}
        if self.compiled is not None:
            self.compiled = self.compiled.with_violation(self.violation)
            self.order = self.compiled.order
        else:
            self.order = None if is_certain else order_costs(self.flow, self.violation)
        # Optional steps alone are but skip costs of 0.
        self.is_extended = bool(self.flow.alternatives) or self.repeat is not None or self.durations is not None
        if self.is_extended and not self.contiguous:
            raise InputError(f"{_EXTENDED} need contiguous=True: they are about unbroken segments of clips")

    @property
    def tsort(self) -> TSortGraph:
        """The compiled procedure, with all legal orders; compiled when it is first needed."""
        if self.compiled is None or self.restriction:
            self.compiled, self.restriction = _compiled(self.model, self.violation), {}
        return self.compiled

    @property
    def most_states(self) -> int | None:
        """States of the compiled procedure that are within reach where orders may be left out; None: they may not."""
        if not self.model.confidences:
            return None
        return int(2 ** (_UPDATES // len(self.costs.drop)).bit_length())

    def reachable(self) -> tuple[TSortGraph, Mapping[str, Any]]:
        """Return the compiled procedure, without the orders that are out of reach and far from the expected one."""
        if self.compiled is None:
            number, states = 0, self.most_states
            if states is not None:
                restrictions = Restrictions(self.model, self.pinned)
                number = restrictions.fitting(min(states, _MOST_IDEALS), states)
                self.restriction = restrictions.report(number)
                self.compiled = _compiled(restrictions[number], self.violation)
            else:
                self.compiled = _compiled(self.model, self.violation)
        return self.compiled, self.restriction

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
        brute_limit: int = 100_000,
        **resources: Unpack[ResourceOptions],
    ) -> Alignment:
        """Find the cheapest alignment, over all orders that respect the procedure; options as for :func:`align`."""
        if method is not None and method not in METHODS:
            raise InputError(f"unknown method {method!r}; known: {', '.join(METHODS)}")
        return self.result(self.solve(method, cost_only, Resources.check(**resources), brute_limit))

    def posterior(self, gamma: float = 1.0, **resources: Unpack[ResourceOptions]) -> Posterior:
        """Weigh all alignments by exp(-cost / gamma); options as for :func:`posterior`."""
        gamma, given = check_gamma(gamma), Resources.check(**resources)
        self.reachable()
        costs = self.costs.astype(np.float64)
        clip_costs.refuse_gamma(costs, gamma)
        options: dict[str, Any] = {"gamma": gamma, "contiguous": self.contiguous, "backend": given.backend}
        with within(given.time_limit):
            if self.is_extended:
                asked = self.on_automaton(costs, given)
                (found,) = automata.posterior([asked], gamma, given)
                options |= automata.report(asked)
            else:
                found = self._plain_posterior(costs, gamma, given)
                options |= self.restriction
        self._require_finite(found.cost)
        has_start = self.contiguous and self.repeat is None
        return Posterior(self.flow, found.cost, found.probability, options, found.start if has_start else None)

    def k_best(self, k: int = 5, **resources: Unpack[ResourceOptions]) -> tuple[Alignment, ...]:
        """Find the k cheapest orders, and for each its cheapest alignment; options as for :func:`k_best`."""
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise InputError(f"k must be a whole number of orders, at least 1, not {k!r}")
        given, found = Resources.check(**resources), []
        with within(given.time_limit):
            try:
                for answer in orders.best_orders(self, int(k), given):
                    found.append(self.result(answer))
            except TimeoutError:
                if not found:
                    raise
                message = f"the {len(found)} best orders were found in {given.time_limit:g} s, not {k}"
                warnings.warn(message, stacklevel=2)
        if not found:
            self._require_finite(np.inf)
        return tuple(sorted(found, key=lambda one: one.cost))

    def margins(self, found: Alignment | None = None, **resources: Unpack[ResourceOptions]) -> NDArray[np.float64]:
        """Return for each segment of an alignment how much more its best alternative costs; see :func:`margins`."""
        from graph2vid.alignment.many import solve_many

        given = Resources.check(**resources)
        with within(given.time_limit):
            within_it = given._replace(time_limit=None)
            if found is None:
                found = self.result(self.solve(None, False, within_it))
            forbidden = (Constraint("forbid", one.step, one.start, one.stop) for one in found.segments)
            alternatives = [self.of_clips(constrain(self.costs, [rule])) for rule in forbidden]
            others = solve_many(alternatives, cost_only=True, resources=within_it)
        # Rounding may carry an equally good alternative a hair below the optimum.
        return np.maximum(np.array([other.cost for other in others], np.float64) - found.cost, 0.0)

    # -- solvers ------------------------------------------------------------------------------------------------

    def solve(self, method: str | None, cost_only: bool, resources: Resources, brute_limit: int = 100_000) -> Answer:
        """Find the cheapest alignment; cost ∞ where there is none (:meth:`result` then says why)."""
        if self.is_extended and method in ("brute", "anytime"):
            advice = "'graph2vid selfcheck --features' compares them" if method == "brute" else "use method='exact'"
            raise InputError(f"method={method!r} knows no {_EXTENDED}: leave them out, or {advice}")
        if method == "brute":
            flow, violation = self.model, 1.0 if self.violation == np.inf else self.violation
            with within(resources.time_limit, "raise time_limit, or use method='exact'"):
                cost, labels = _brute.solve(flow, self.costs, self.contiguous, brute_limit, violation)
            return Answer(cost, None if cost_only else labels, 0.0, self._options("brute"))
        if method == "anytime":
            return self.search(cost_only, resources)
        began, limit = time.monotonic(), resources.time_limit
        can_search = method is None and self.repeat is None and self.durations is None
        exact = limit / 2 if limit is not None and can_search else limit  # the rest is for a search
        try:
            if exact is None:
                return self._exact(method, cost_only, resources, QUICK_SECONDS)
            with within(exact, _LESS if self.is_extended else _SEARCH):
                return self._exact(method, cost_only, resources, exact)
        except TooLargeError as error:
            if not can_search:
                raise
            if limit is not None:
                resources = resources._replace(time_limit=max(began + limit - time.monotonic(), 1e-3))
            return self.search(cost_only, resources, error)

    def exact_costs(self) -> ClipCosts:
        """Return the costs in the dtype in which an exact answer is looked for first."""
        return widened(self.costs) if self.costs.match.shape[1] > LONG else self.costs

    def exact_answer(self, cost: float, labels: Labels | None, costs: ClipCosts, resources: Resources) -> Answer:
        """Return the answer that was found with ``costs``, and how."""
        how = {"method": "exact", "contiguous": self.contiguous, "dtype": costs.dtype, "backend": resources.backend}
        return Answer(cost, labels, 0.0, how | {**self.restriction})

    def on_automaton(self, costs: ClipCosts, resources: Resources | None = None) -> AutomatonProblem:
        """Put the problem, which is of the extended model, on its automaton: for a sum over all alignments."""
        seconds, memory = (resources.time_limit, resources.memory_limit) if resources else (None, None)
        return automaton_problem(self, costs, memory, tables=2, work=SOFT, seconds=seconds or QUICK_SECONDS)

    def _exact(self, method: str | None, cost_only: bool, resources: Resources, seconds: float) -> Answer:
        """Solve exactly, on the tSort graph or on the automaton, where need be without orders that are not expected."""
        costs = self.exact_costs()
        if not self.is_extended:
            tsort = self.reachable()[0] if method is None else self.tsort
            if method is None:
                anytime.refuse_long(tsort, len(costs.drop))
            return self.exact_answer(*solve_exactly(tsort, costs, self.contiguous, cost_only, resources), resources)
        quickly = seconds if method is None else None
        while True:
            asked = automaton_problem(self, costs, resources.memory_limit, seconds=quickly)
            ((cost, labels),) = automata.solve([asked], cost_only, resources)
            if not abs(cost) > LONG or (wide := widened(costs)) is costs:
                break
            costs = wide
        found = self.exact_answer(cost, labels, costs, resources)
        return found._replace(options=found.options | automata.report(asked))

    def search(self, cost_only: bool, resources: Resources, instead_of: TooLargeError | None = None) -> Answer:
        """Search beyond exact reach, with all edges certain; there are no repeats and no durations."""
        flow, report = self.model, {}
        if soft := [edge for edge, confidence in flow.confidence.items() if confidence < 1.0]:
            report = {"made_certain": [list(edge) for edge in soft]}
            message = f"with soft edges the procedure is too large: all {len(soft)} are taken as certain"
            warnings.warn(message, RuntimeWarning, stacklevel=4)
        flow = made_certain(flow)
        if flow.alternatives:
            found = anytime.solve_alternatives(flow, self.costs, resources)
        else:
            found = anytime.solve(flow, self.costs, self.contiguous, resources, instead_of)
        options = self._options("exact") | found.options | report
        return Answer(found.cost, None if cost_only else found.labels, found.gap, options)

    def _plain_posterior(self, costs: ClipCosts, gamma: float, resources: Resources) -> SoftAnswer:
        tsort, clips, memory_limit = self.reachable()[0], costs.match.shape[1], resources.memory_limit
        if resources.backend == "native":
            how: dict[str, Any] = {"smoothing": "softmin", "contiguous": self.contiguous, "starts": self.contiguous}
            how |= {"workers": resources.workers, "memory_limit": memory_limit}
            (found,) = soft_costs([(tsort, costs)], gamma=gamma, **how)
            assert found.match is not None and found.drop is not None
            return SoftAnswer(found.cost, np.vstack([found.match, found.drop]), found.start)
        needed = 16 * (tsort.n_ideals + tsort.n_states) * (clips + 1)
        if needed > (bound := memory_bound(memory_limit)):
            raise too_large(tsort, clips, needed, bound, "")
        return SoftAnswer(*_reference.forward_backward(tsort, costs, self.contiguous, gamma))

    # -- parts --------------------------------------------------------------------------------------------------

    def _options(self, method: str) -> dict[str, Any]:
        return {"method": method, "contiguous": self.contiguous, "dtype": self.costs.dtype}

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
        if clip_costs.may_overflow(self.costs, self.costs.largest()):
            raise InputError(f"the costs are so large that their sums overflow {self.costs.dtype}: scale them down")
        why = clip_costs.why_infeasible(self.flow, self.costs, self.durations)
        raise InfeasibleError(f"no alignment is possible: {why}")

    def of_video(self, match: Any, drop: Any, skip: Any = None) -> Problem:
        """Return the same problem, but for constraints, of another video: only its costs are checked."""
        return self.of_clips(check_costs(self.flow, match, drop, skip))

    def with_flow(self, flow: FlowGraph) -> Problem:
        """Return the same problem with other edges, or another expected order, between its steps."""
        other = Problem(flow, *self.costs, self.repeat, self.durations, self.violation, (), self.contiguous)
        other.pinned = self.pinned
        return other

    def of_clips(self, costs: ClipCosts) -> Problem:
        """Return the same problem of other clips, whose costs are checked already."""
        other = copy.copy(self)
        other.costs = costs
        return other


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
    if not (costs >= 0).all():
        step = int((costs >= 0).argmin())
        name = f"repeat[{step}] is {costs[step]:g} (step {flow.steps[step].id!r})"
        raise InputError(f"{name}: the cost of a repeat is at least 0")
    return costs if np.isfinite(costs).any() else None


def _take_pinned_branches(flow: FlowGraph, costs: ClipCosts, constraints: Iterable[Constraint]) -> ClipCosts:
    """Forbid the branches beside those of which a step is pinned; the arrays are changed in place."""
    pinned = {constraint.step for constraint in constraints if constraint.kind in ("within", "show")}
    for group in flow.alternatives:
        beside = [branch for branch in group if not pinned.intersection(branch)]
        gone = [step for branch in beside for step in branch] if len(beside) < len(group) else []
        costs.match[gone] = np.inf
        if costs.skip is not None:
            costs.skip[gone] = np.inf
    return costs


def _compiled(flow: FlowGraph, violation: float) -> TSortGraph:
    """Compile a procedure; with soft edges, or hand out the graph of an earlier video."""
    return _kept(flow, violation) if flow.confidences else TSortGraph.compile(flow).with_violation(violation)


@lru_cache(maxsize=8)
def _kept(flow: FlowGraph, violation: float) -> TSortGraph:
    return TSortGraph.compile(flow).with_violation(violation)
