"""Run every backend and mode on random cases and compare what they say."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid._processes import worker_pool
from graph2vid.alignment import ClipCosts, Constraint, Problem, Stream, _reference, align_many, backends
from graph2vid.errors import InfeasibleError
from graph2vid.selfcheck.cases import Case, make_case
from graph2vid.selfcheck.enumerate import (
    Enumeration,
    count_sequences,
    enumerate_alignments,
    is_legal,
    labels_cost,
)
from graph2vid.tsort import TSortGraph, count_sorts

_MOST_SEQUENCES = 5_000  # label sequences that are enumerated for one case
_MOST_SORTS = 300  # topological sorts that brute force goes through for one case
_MOST_REPORTED = 50  # mismatches that are kept with their case; all are counted
_CHUNK = 50  # cases that a worker takes at once


class Outcome(NamedTuple):
    """What a solver found; no labels where only the cost was asked for."""

    cost: float
    labels: NDArray[np.int64] | None


class SoftOutcome(NamedTuple):
    """What a solver of the soft form found: the soft cost, probabilities [K+1, N], and (if it says them) those of
    segments beginning [K, N]."""

    cost: float
    probability: NDArray[np.float64]
    start: NDArray[Any] | None

    def distance(self, other: SoftOutcome) -> float:
        """Return by how much probabilities differ at most; ∞ where they are of different shapes."""
        pairs = [(self.probability, other.probability)]
        if self.start is not None and other.start is not None:
            pairs.append((self.start, other.start))
        return max(float(np.abs(a - b).max(initial=0.0)) if a.shape == b.shape else math.inf for a, b in pairs)


@dataclass(frozen=True)
class Asked:
    """A case with what all solvers share; they raise InfeasibleError where there is no finite alignment."""

    case: Case

    @cached_property
    def tsort(self) -> TSortGraph:
        return TSortGraph.compile(self.case.flow)

    @cached_property
    def lowered(self) -> ClipCosts:
        return self.case.lowered()

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        return tuple(Constraint(*rule) for rule in self.case.rules)

    @cached_property
    def whole(self) -> Problem:
        """The problem as everybody asks it: constraints are written into the costs by it."""
        case = self.case
        return Problem(self.tsort, *case.costs, constraints=self.constraints, contiguous=case.contiguous)

    @cached_property
    def enumeration(self) -> Enumeration | None:
        """What enumeration says, where it is cheap enough."""
        case = self.case
        if count_sequences(len(case.flow), len(case.costs.drop)) > _MOST_SEQUENCES:
            return None
        return enumerate_alignments(
            case.flow, *case.costs, contiguous=case.contiguous, gamma=case.gamma, rules=case.rules
        )

    @cached_property
    def few_sorts(self) -> bool:
        return count_sorts(self.case.flow).upper <= _MOST_SORTS


Solver = Callable[[Asked], Outcome | None]
"""Returns None where the case is not for it."""
SoftSolver = Callable[[Asked], SoftOutcome | None]


def _found(cost: float, labels: NDArray[np.int64] | None) -> Outcome:
    if cost == math.inf:
        raise InfeasibleError("no finite alignment")
    return Outcome(cost, labels)


def _by_reference(**options: Any) -> Solver:
    """The NumPy solver itself, on costs into which the constraints were written here."""

    def run(problem: Asked) -> Outcome:
        return _found(*_reference.solve(problem.tsort, *problem.lowered, contiguous=problem.case.contiguous, **options))

    return run


def _by_enumeration(problem: Asked) -> Outcome | None:
    if problem.enumeration is None:
        return None
    return _found(problem.enumeration.cost, problem.enumeration.labels)


def _by_align(**options: Any) -> Solver:
    """The public function, which writes constraints into the costs itself."""

    def run(problem: Asked) -> Outcome | None:
        if options.get("method") == "brute" and not problem.few_sorts:
            return None
        found = problem.whole.align(**options)
        return Outcome(found.cost, None if options.get("cost_only") else found.labels)

    return run


def _by_kernel(*, simd: int = 0, window: int = 0, workers: int = 1, cost_only: bool = False) -> Solver:
    """The compiled kernels themselves, on costs into which the constraints were written here, 8 clips at a time.

    Small cases would otherwise never need a second block, let alone a second window of blocks.
    """

    def run(problem: Asked) -> Outcome:
        native = backends.native()
        assert native is not None
        kernels = backends.procedure(problem.tsort)
        native.use_simd(simd)
        try:
            found = kernels.solve(*problem.lowered, problem.case.contiguous, cost_only, 8, window, workers)
        finally:
            native.use_simd(0)
        return _found(*found)

    return run


def _soft_by_enumeration(problem: Asked) -> SoftOutcome | None:
    found = problem.enumeration
    if found is None:
        return None
    if found.labels is None:
        raise InfeasibleError("no finite alignment")
    return SoftOutcome(found.soft_cost, found.probability, found.start)


def _soft_by_posterior(**resources: Any) -> SoftSolver:
    def run(problem: Asked) -> SoftOutcome:
        found = problem.whole.posterior(problem.case.gamma, **resources)
        return SoftOutcome(found.cost, found.probability, found.start)

    return run


def by_k_best(**resources: Any) -> Callable[[Any], Outcome]:
    """The best of all orders, of which there may be several: its cost is that of the cheapest alignment."""
    return lambda asked: Outcome(asked.whole.k_best(1, **resources)[0].cost, None)


def _by_best_order(problem: Asked) -> Outcome | None:
    return None if problem.enumeration is None else by_k_best()(problem)


def _by_stream(problem: Asked) -> Outcome | None:
    """The video clip by clip, on costs into which the constraints were written here."""
    if problem.enumeration is None:
        return None
    match, drop, skip = problem.lowered.astype(np.float64)
    stream = Stream(problem.tsort, skip, contiguous=problem.case.contiguous)
    for clip, dropped in enumerate(drop.tolist()):
        stream.push(match[:, clip], dropped)
    found = stream.finish()
    return Outcome(found.cost, found.labels)


def has_native() -> bool:
    """Tell whether the compiled kernels are there."""
    return backends.native() is not None


def solvers() -> dict[str, Solver]:
    """Return what is compared on each case; the first one is what the others are held against."""
    table: dict[str, Solver] = {
        "reference": _by_reference(),
        "reference, cost only": _by_reference(cost_only=True),
        "reference, checkpoints": _by_reference(checkpoint=3),
        "enumeration": _by_enumeration,
        "align, reference": _by_align(backend="reference"),
        "align, brute force": _by_align(method="brute"),
        "k_best": _by_best_order,
        "stream": _by_stream,
    }
    if has_native():
        table |= {
            "align, native": _by_align(backend="native"),
            "align, native, cost only": _by_align(backend="native", cost_only=True),
            "kernels, many blocks": _by_kernel(),
            "kernels, many blocks, two workers": _by_kernel(workers=2),
            "kernels, low memory": _by_kernel(window=1),
            "kernels, low memory, two workers": _by_kernel(window=2, workers=2),
            "kernels, many blocks, cost only": _by_kernel(window=1, cost_only=True),
        }
        levels = backends.native().simd_levels()  # type: ignore[union-attr]
        table |= {f"kernels, {name}": _by_kernel(simd=level) for level, name in enumerate(levels) if level > 0}
    return table


def soft_solvers() -> dict[str, SoftSolver]:
    """Return what is compared on each case in the soft form; the first one that answers is the measure."""
    table: dict[str, SoftSolver] = {
        "posterior, enumeration": _soft_by_enumeration,
        "posterior, reference": _soft_by_posterior(backend="reference"),
    }
    if has_native():
        table["posterior, native"] = _soft_by_posterior(backend="native")
    return table


@dataclass(frozen=True)
class Mismatch:
    """One disagreement: which check, what was found, and the case to repeat it with."""

    check: str
    detail: str
    case: Any  # Case or FeatureCase

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {"check": self.check, "detail": self.detail, "case": self.case.to_json()}


@dataclass
class Report:
    """What a run found.

    Attributes
    ----------
    cases, seed
        What was run.
    seconds
        How long it took.
    native
        Whether the compiled kernels were there to be compared.
    checks
        How often each comparison was made.
    failures
        How often each comparison failed.
    infeasible
        How many cases have no finite alignment.
    mismatches
        The first failures, with their cases.
    """

    cases: int
    seed: int
    seconds: float = 0.0
    native: bool = False
    checks: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    infeasible: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)

    @property
    def agreed(self) -> bool:
        """Whether nothing disagreed."""
        return not self.failures

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "cases": self.cases,
            "seed": self.seed,
            "seconds": round(self.seconds, 3),
            "native": self.native,
            "infeasible": self.infeasible,
            "checks": dict(self.checks),
            "failures": dict(self.failures),
            "mismatches": [mismatch.to_json() for mismatch in self.mismatches],
        }


class _Said(NamedTuple):
    """A solver's answer, or "infeasible", or the error it should not have raised."""

    answer: Any
    error: str | None


def _ask(solver: Callable[[Any], Any], problem: Any) -> _Said | None:
    """Run a solver; None where the case is not for it."""
    try:
        answer = solver(problem)
    except InfeasibleError:
        return _Said(None, None)
    except Exception as error:  # a crash is a finding, and must not end the run
        return _Said(None, f"{type(error).__name__}: {error}")
    return None if answer is None else _Said(answer, None)


def tolerance_of(costs: ClipCosts) -> float:
    """Return how far two sums of these costs, added in another order, may lie apart."""
    size = sum(
        float(np.abs(array[np.isfinite(array)]).max(initial=0.0)) * array.shape[-1]
        for array in costs
        if array is not None
    )
    rounding = float(np.finfo(costs.match.dtype).eps)
    return float(16 * rounding * (1 + size))


def _problem_with(case: Case, costs: ClipCosts, found: Outcome, expected: Outcome) -> str | None:
    """Say what is wrong with ``found``, if anything."""
    tolerance = tolerance_of(costs)
    if not math.isfinite(found.cost) or abs(found.cost - expected.cost) > tolerance:
        return f"cost {found.cost!r}, expected {expected.cost!r}"
    labels = found.labels
    if labels is None:
        return None
    if labels.shape != costs.drop.shape:
        return f"{labels.shape} labels for {costs.drop.shape} clips"
    rules = case.rules if costs is case.costs else ()
    if not is_legal(case.flow, labels, case.contiguous, rules):
        return f"labels {labels.tolist()} are not an alignment"
    own_cost = float(labels_cost(labels[None], *costs)[0])
    if not abs(own_cost - found.cost) <= tolerance:
        return f"labels {labels.tolist()} cost {own_cost!r}, but {found.cost!r} was reported"
    if case.exact and expected.labels is not None and not np.array_equal(labels, expected.labels):
        return f"labels {labels.tolist()}, expected {expected.labels.tolist()}"
    return None


def _soft_problem_with(case: Case, found: SoftOutcome, expected: SoftOutcome) -> str | None:
    tolerance = tolerance_of(case.costs.astype(np.float64)) + 1e-12 * case.gamma
    if not abs(found.cost - expected.cost) <= 10 * tolerance:
        return f"soft cost {found.cost!r}, expected {expected.cost!r} (gamma {case.gamma})"
    # The error of a probability is that of the log weights, which are costs divided by gamma.
    apart = found.distance(expected)
    if not apart <= 1e-9 + 10 * tolerance / case.gamma:
        return f"probabilities differ by {apart:.3g} (gamma {case.gamma})"
    return None


def check_case(case: Case) -> Report:
    """Compare every solver on one case."""
    report = Report(cases=1, seed=case.seed, native=has_native())
    problem = Asked(case)

    def note(check: str, trouble: str | None) -> None:
        report.checks[check] += 1
        if trouble is not None:
            report.failures[check] += 1
            report.mismatches.append(Mismatch(check, trouble, case))

    expected = compare(solvers(), problem, note, lambda a, b: _problem_with(case, case.costs, a, b))
    report.infeasible = int(expected is None)
    compare(soft_solvers(), problem, note, lambda a, b: _soft_problem_with(case, a, b))
    if case.others:
        _check_batch(problem, note)
    return report


def compare(
    table: dict[str, Callable[[Any], Any]],
    problem: Any,
    note: Callable[[str, str | None], None],
    trouble: Callable[[Any, Any], str | None],
) -> Any:
    """Hold every solver against the first one that answers; return that one's answer, None for infeasible."""
    expected: _Said | None = None
    for name, solver in table.items():
        said = _ask(solver, problem)
        if said is None:
            continue
        if said.error is not None:
            note(name, said.error)
            continue
        if expected is None:
            expected = said
        if (said.answer is None) != (expected.answer is None):
            found = "infeasible" if said.answer is None else f"cost {said.answer.cost!r}"
            other = "infeasible" if expected.answer is None else f"cost {expected.answer.cost!r}"
            note(name, f"{found}, expected {other}")
        else:
            note(name, None if said.answer is None else trouble(said.answer, expected.answer))
    return None if expected is None else expected.answer


def _check_batch(problem: Asked, note: Callable[[str, str | None], None]) -> None:
    """Many videos at once against each of them alone by the reference."""
    case = problem.case

    def run(videos: list[ClipCosts], **options: Any) -> list[Outcome]:
        found = align_many(
            problem.tsort,
            [costs.match for costs in videos],
            [costs.drop for costs in videos],
            None if case.costs.skip is None else [costs.skip for costs in videos],
            contiguous=case.contiguous,
            constraints=[problem.constraints if costs is case.costs else () for costs in videos],
            **options,
        )
        return [Outcome(one.cost, one.labels) for one in found]

    videos, expected = [], []
    for costs in (case.costs, *case.others):
        lowered = problem.lowered if costs is case.costs else costs
        cost, labels = _reference.solve(problem.tsort, *lowered, contiguous=case.contiguous)
        if labels is not None:
            videos.append(costs)
            expected.append(Outcome(cost, labels))
    if len(videos) <= len(case.others):
        said = _ask(lambda _: run([case.costs, *case.others]), problem)
        refused = said == _Said(None, None)
        note("align_many, infeasible", None if refused else f"{said}, expected InfeasibleError")
    if not videos:
        return
    ways: list[tuple[str, dict[str, Any]]] = [("reference", {"backend": "reference"})]
    if has_native():
        ways += [
            ("native, one worker", {"backend": "native", "workers": 1}),
            ("native, two workers", {"backend": "native", "workers": 2}),
        ]
    for way, options in ways:
        name = f"align_many, {way}"
        said = _ask(lambda _: run(videos, **options), problem)  # noqa: B023
        if said is None or said.answer is None or len(said.answer) != len(videos):
            note(name, f"{said.error or said.answer if said else 'nothing'}, for {len(videos)} videos")
            continue
        troubles = (_problem_with(case, *compared) for compared in zip(videos, said.answer, expected, strict=True))
        note(name, next((f"video {n}: {trouble}" for n, trouble in enumerate(troubles) if trouble), None))


def _check_chunk(task: tuple[bool, int, int, int]) -> Report:
    of_features, seed, start, stop = task
    report = Report(cases=0, seed=seed, native=has_native())
    for index in range(start, stop):
        if of_features:
            from graph2vid.selfcheck.features import check_feature_case, make_feature_case

            _add(report, check_feature_case(make_feature_case(seed, index)))
        else:
            _add(report, check_case(make_case(seed, index)))
    return report


def _add(report: Report, part: Report) -> None:
    report.cases += part.cases
    report.infeasible += part.infeasible
    report.checks += part.checks
    report.failures += part.failures
    report.mismatches += part.mismatches[: _MOST_REPORTED - len(report.mismatches)]


def selfcheck(
    cases: int = 2000,
    seed: int = 0,
    *,
    features: bool = False,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Compare all backends on random cases.

    Parameters
    ----------
    cases
        How many.
    seed
        Which series; case n of a series is always the same.
    features
        Cases of the extended model: skips, repeats, optional and alternative steps, soft precedence,
        durations, each alone and together.
    workers
        Processes to spread the cases over; by default one per processor. The findings do not depend on it.
    progress
        Called with the number of cases done since the last call.

    Returns
    -------
    Report
        Counts, and the first mismatches with all that is needed to repeat them.
    """
    began = time.perf_counter()
    report = Report(cases=0, seed=seed, native=has_native())
    tasks = [(features, seed, start, min(start + _CHUNK, cases)) for start in range(0, cases, _CHUNK)]
    workers = min(workers or os.cpu_count() or 1, len(tasks))
    for part in _work(tasks, workers):
        _add(report, part)
        if progress is not None:
            progress(part.cases)
    report.seconds = time.perf_counter() - began
    return report


def _work(tasks: list[tuple[bool, int, int, int]], workers: int) -> Iterator[Report]:
    if workers <= 1:
        yield from map(_check_chunk, tasks)
        return
    # Fresh processes: forking one whose kernels have started threads is not safe.
    try:
        with worker_pool(workers, start="spawn", initializer=_be_quiet) as pool:
            yield from pool.map(_check_chunk, tasks)
    except BrokenProcessPool as error:
        raise RuntimeError("a worker process died: a kernel crashed; one worker shows where") from error


def _be_quiet() -> None:
    warnings.simplefilter("ignore")  # the parent has said already what there is to say
