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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph2vid._processes import worker_pool
from graph2vid.alignment import ClipCosts, Stream, _reference, align_many, backends
from graph2vid.errors import InfeasibleError
from graph2vid.selfcheck.cases import Case, make_case, make_feature_case
from graph2vid.selfcheck.enumerate import is_legal, labels_cost
from graph2vid.tsort import count_sorts

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


Solver = Callable[[Case], Outcome | None]
"""Returns None where the case is not for it, and raises InfeasibleError where there is no finite alignment."""
SoftSolver = Callable[[Case], SoftOutcome | None]


def _found(cost: float, labels: NDArray[np.int64] | None) -> Outcome:
    if cost == math.inf:
        raise InfeasibleError("no finite alignment")
    return Outcome(cost, labels)


def _by_reference(**options: Any) -> Solver:
    """The NumPy solver itself, on costs into which the constraints were written here."""

    def run(case: Case) -> Outcome:
        return _found(*_reference.solve(case.tsort, case.lowered, contiguous=case.contiguous, **options))

    return run


def _by_enumeration(case: Case) -> Outcome | None:
    found = case.enumeration
    return None if found is None else _found(found.cost, found.labels)


def _by_align(**options: Any) -> Solver:
    """The public function, which writes constraints into the costs itself."""

    def run(case: Case) -> Outcome | None:
        if options.get("method") == "brute" and count_sorts(case.flow).upper > _MOST_SORTS:
            return None
        found = case.whole.align(**options)
        return Outcome(found.cost, None if options.get("cost_only") else found.labels)

    return run


def _by_kernel(*, simd: int = 0, window: int = 0, workers: int = 1, cost_only: bool = False) -> Solver:
    """The compiled kernels themselves, on costs into which the constraints were written here, 8 clips at a time.

    Small cases would otherwise never need a second block, let alone a second window of blocks.
    """

    def run(case: Case) -> Outcome:
        native = backends.native()
        assert native is not None
        kernels = backends.procedure(case.tsort)
        native.use_simd(simd)
        try:
            found = kernels.solve(*case.lowered, case.contiguous, cost_only, 8, window, workers)
        finally:
            native.use_simd(0)
        return _found(*found)

    return run


def _soft_by_enumeration(case: Case) -> SoftOutcome | None:
    found = case.enumeration
    if found is None:
        return None
    _found(found.cost, found.labels)
    return SoftOutcome(found.soft_cost, found.probability, found.start)


def _soft_by_posterior(**resources: Any) -> SoftSolver:
    def run(case: Case) -> SoftOutcome:
        found = case.whole.posterior(case.gamma, **resources)
        return SoftOutcome(found.cost, found.probability, found.start)

    return run


def _by_k_best(case: Case) -> Outcome | None:
    """The best of all orders, of which there may be several: its cost is that of the cheapest alignment."""
    return None if case.enumeration is None else Outcome(case.whole.k_best(1)[0].cost, None)


def _by_stream(case: Case) -> Outcome | None:
    """The video clip by clip, on costs into which the constraints were written here."""
    if case.enumeration is None:
        return None
    match, drop, skip = case.lowered.astype(np.float64)
    stream = Stream(case.tsort, skip, contiguous=case.contiguous)
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
        "k_best": _by_k_best,
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
    ways = {way: _soft_by_posterior(**options) for way, options in _ways().items() if "workers" not in options}
    return {"posterior, enumeration": _soft_by_enumeration} | {f"posterior, {way}": run for way, run in ways.items()}


def feature_solvers() -> tuple[dict[str, Solver], dict[str, SoftSolver]]:
    """Return what is compared on each case of the extended model, and in the soft form."""
    hard = {f"align, {way}": _by_align(**options) for way, options in _ways().items()}
    soft = {f"posterior, {way}": _soft_by_posterior(**options) for way, options in _ways().items()}
    return {"": _by_enumeration, **hard, "k_best": _by_k_best}, {"": _soft_by_enumeration, **soft}


def _ways() -> dict[str, dict[str, Any]]:
    ways: dict[str, dict[str, Any]] = {"reference": {"backend": "reference"}}
    if has_native():
        ways |= {"native": {"backend": "native"}, "native, two workers": {"backend": "native", "workers": 2}}
    return ways


@dataclass(frozen=True)
class Mismatch:
    """One disagreement: which check, what was found, and the case to repeat it with."""

    check: str
    detail: str
    case: Case

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
        mismatches = [mismatch.to_json() for mismatch in self.mismatches]
        return vars(self) | {"seconds": round(self.seconds, 3), "mismatches": mismatches}


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


def _tolerance(case: Case, costs: ClipCosts) -> float:
    """Return how far two sums of these costs, added in another order, may lie apart."""
    parts = [part for part in costs if part is not None]
    size = sum(float(np.abs(part[np.isfinite(part)]).max(initial=0.0)) * part.shape[-1] for part in parts)
    tolerance = float(16 * float(np.finfo(costs.match.dtype).eps) * (1 + size))
    return 10 * tolerance + 1e-11 if case.has_features else tolerance


def _problem_with(case: Case, costs: ClipCosts, found: Outcome, expected: Outcome) -> str | None:
    """Say what is wrong with ``found``, if anything."""
    tolerance, labels = _tolerance(case, costs), found.labels
    if not abs(found.cost - expected.cost) <= tolerance:
        return f"cost {found.cost!r}, expected {expected.cost!r}"
    if labels is None:
        return None
    if labels.shape != costs.drop.shape:
        return f"{labels.shape} labels for {costs.drop.shape} clips"
    if not case.has_features:
        if not is_legal(case.flow, labels, case.contiguous, case.rules if costs is case.costs else ()):
            return f"labels {labels.tolist()} are not an alignment"
        own_cost = float(labels_cost(labels[None], *costs)[0])
        if not abs(own_cost - found.cost) <= tolerance:
            return f"labels {labels.tolist()} cost {own_cost!r}, but {found.cost!r} was reported"
    if case.exact and expected.labels is not None and not np.array_equal(labels, expected.labels):
        return f"labels {labels.tolist()}, expected {expected.labels.tolist()}"
    return None


def _soft_problem_with(case: Case, found: SoftOutcome, expected: SoftOutcome) -> str | None:
    tolerance = _tolerance(case, case.costs.astype(np.float64))
    if not case.has_features:
        tolerance = 10 * (tolerance + 1e-12 * case.gamma)
    if not abs(found.cost - expected.cost) <= tolerance:
        return f"soft cost {found.cost!r}, expected {expected.cost!r} (gamma {case.gamma})"
    # The error of a probability is that of the log weights, which are costs divided by gamma.
    apart = found.distance(expected)
    if not apart <= 1e-9 + tolerance / case.gamma:
        return f"probabilities differ by {apart:.3g} (gamma {case.gamma})"
    return None


def check_case(case: Case) -> Report:
    """Compare every solver on one case."""
    report = Report(cases=1, seed=case.seed, native=has_native())

    def note(check: str, trouble: str | None) -> None:
        if not check:
            return
        name = f"{case.kind}: {check}" if case.has_features else check
        report.checks[name] += 1
        if trouble is not None:
            report.failures[name] += 1
            report.mismatches.append(Mismatch(name, trouble, case))

    hard, soft = feature_solvers() if case.has_features else (solvers(), soft_solvers())
    expected = compare(hard, case, note, lambda a, b: _problem_with(case, case.costs, a, b))
    report.infeasible = int(expected is None)
    compare(soft, case, note, lambda a, b: _soft_problem_with(case, a, b))
    if case.others:
        _check_batch(case, note)
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


def _check_batch(case: Case, note: Callable[[str, str | None], None]) -> None:
    """Many videos at once against each of them alone by the reference."""

    def run(videos: list[ClipCosts], **options: Any) -> list[Outcome]:
        matches, drops, skips = (list(parts) for parts in zip(*videos, strict=True))
        rules = [case.constraints if costs is case.costs else () for costs in videos]
        skip = None if case.costs.skip is None else skips
        found = align_many(case.tsort, matches, drops, skip, case.contiguous, constraints=rules, **options)
        return [Outcome(one.cost, one.labels) for one in found]

    videos, expected = [], []
    for costs in (case.costs, *case.others):
        lowered = case.lowered if costs is case.costs else costs
        cost, labels = _reference.solve(case.tsort, lowered, case.contiguous)
        if labels is not None:
            videos.append(costs)
            expected.append(Outcome(cost, labels))
    if len(videos) <= len(case.others):
        said = _ask(lambda _: run([case.costs, *case.others]), case)
        refused = said == _Said(None, None)
        note("align_many, infeasible", None if refused else f"{said}, expected InfeasibleError")
    if not videos:
        return
    ways = {way: options for way, options in _ways().items() if way != "native"}
    if has_native():
        ways = {"reference": ways["reference"], "native, one worker": {"backend": "native", "workers": 1}} | ways
    for way, options in ways.items():
        name = f"align_many, {way}"
        said = _ask(lambda _: run(videos, **options), case)  # noqa: B023
        if said is None or said.answer is None or len(said.answer) != len(videos):
            note(name, f"{said.error or said.answer if said else 'nothing'}, for {len(videos)} videos")
            continue
        troubles = (_problem_with(case, *compared) for compared in zip(videos, said.answer, expected, strict=True))
        note(name, next((f"video {n}: {trouble}" for n, trouble in enumerate(troubles) if trouble), None))


def _check_chunk(task: tuple[bool, int, int, int]) -> Report:
    of_features, seed, start, stop = task
    report = Report(cases=0, seed=seed, native=has_native())
    for index in range(start, stop):
        _add(report, check_case((make_feature_case if of_features else make_case)(seed, index)))
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
