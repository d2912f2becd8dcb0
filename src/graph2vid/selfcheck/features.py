"""Random cases of the extended model, against enumeration by definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from graph2vid.alignment import ClipCosts, Constraint, Durations, Problem
from graph2vid.errors import GraphError, InfeasibleError
from graph2vid.flow import FlowGraph
from graph2vid.selfcheck.cases import Floats, draw_rule, plain
from graph2vid.selfcheck.comparison import (
    Mismatch,
    Outcome,
    Report,
    SoftOutcome,
    by_k_best,
    compare,
    has_native,
    tolerance_of,
)
from graph2vid.selfcheck.definition import enumerate_segments
from graph2vid.selfcheck.enumerate import Enumeration, Rule

FEATURES = ("skip", "repeat", "optional", "alternatives", "soft precedence", "durations")
_MOST_CLIPS = {1: 8, 2: 6, 3: 5, 4: 4}  # by the number of steps, so that enumeration stays cheap


@dataclass(frozen=True, eq=False)
class FeatureCase:
    """One random problem with some features; ``kind`` names the feature, or is "together"."""

    seed: int
    index: int
    kind: str
    flow: FlowGraph
    costs: ClipCosts
    repeat: Floats | None
    durations: Durations | None
    violation: float
    gamma: float
    rules: tuple[Rule, ...]
    exact: bool

    @cached_property
    def whole(self) -> Problem:
        """The problem as everybody asks it."""
        rules = [Constraint(*rule) for rule in self.rules]
        return Problem(self.flow, *self.costs, self.repeat, self.durations, self.violation, rules)

    def to_json(self) -> dict[str, Any]:
        """Return everything about the case as plain JSON values (∞ is written "inf")."""
        durations = None
        if self.durations is not None:
            durations = {"length": plain(self.durations.length), "tail": plain(self.durations.tail)}
        return {
            "seed": self.seed,
            "index": self.index,
            "kind": self.kind,
            "flow": self.flow.to_json(),
            "dtype": str(self.costs.match.dtype),
            "costs": {name: plain(array) for name, array in self.costs._asdict().items()},
            "repeat": plain(self.repeat),
            "durations": durations,
            "violation": self.violation,
            "gamma": self.gamma,
            "rules": [list(rule) for rule in self.rules],
            "exact": self.exact,
        }


def make_feature_case(seed: int, index: int) -> FeatureCase:
    """Make case ``index`` of the series ``seed``; the same one for ever, whatever was made before it."""
    random = np.random.default_rng([seed, index, 8])
    kind = FEATURES[index % len(FEATURES)] if random.random() < 0.5 else "together"
    n_steps = int(random.integers(1, 5))
    n_clips = int(random.integers(1, _MOST_CLIPS[n_steps] + 1))
    exact = bool(random.random() < 0.6)
    dtype = np.float32 if np.random.default_rng([seed, index, 9]).random() < 0.3 else np.float64

    def draw(*shape: int) -> Floats:
        if exact:
            return random.integers(0, 4, shape).astype(np.float64)
        return random.normal(1, 2, shape)

    def draw_costs(*shape: int, never: float = 0.25) -> Floats:
        found = np.abs(draw(*shape))
        found[random.random(shape) < never] = np.inf
        return found

    def has(feature: str, share: float = 0.5) -> bool:
        return kind == feature or (kind == "together" and random.random() < share)

    flow = _draw_flow(
        random, n_steps, has("optional", 0.3), has("alternatives"), has("soft precedence"), bool(random.random() < 0.2)
    )
    match, drop = draw(n_steps, n_clips), draw(n_clips)
    match[random.random(match.shape) < 0.12] = np.inf
    drop[random.random(drop.shape) < 0.06] = np.inf
    skip = None
    if has("skip", 0.6):
        skip = draw(n_steps) - (1 if random.random() < 0.3 else 0)  # not to show a step may be worth something
        skip[random.random(n_steps) < 0.25] = np.inf
    return FeatureCase(
        seed=seed,
        index=index,
        kind=kind,
        flow=flow,
        costs=ClipCosts(match, drop, skip).astype(dtype),
        repeat=draw_costs(n_steps) if has("repeat", 0.6) else None,
        durations=_draw_durations(random, n_steps, draw_costs) if has("durations") else None,
        # The cost of violating an edge is a logarithm; where sums must be exact it is nothing.
        violation=0.0 if exact else float(random.choice([0.0, 0.5, 1.0, 3.0])),
        gamma=float(random.choice([0.05, 0.3, 1.0, 10.0])),
        rules=(draw_rule(random, n_steps, n_clips),) if random.random() < 0.15 else (),
        exact=exact,
    )


def _draw_flow(random: Generator, n_steps: int, optional: bool, alternatives: bool, soft: bool, bag: bool) -> FlowGraph:
    name = random.permutation(n_steps)
    while True:
        edges = [
            (int(name[a]), int(name[b]), float(random.choice([0.4, 0.7, 0.95])) if soft else 1.0)
            for b in range(n_steps)
            for a in range(b)
            if not bag and random.random() < 0.45
        ]
        edges = [(a, b, 1.0 if random.random() < 0.3 else sure) for a, b, sure in edges]
        groups = []
        if alternatives and n_steps > 1:
            order = random.permutation(n_steps).tolist()
            first = int(random.integers(1, n_steps))
            groups = [[order[:first], order[first : int(random.integers(first + 1, n_steps + 1))]]]
            if n_steps == 4 and random.random() < 0.3:
                groups = [[order[:1], order[1:2]], [order[2:3], order[3:]]]
        try:
            return FlowGraph.from_edges(
                [f"step {step}" for step in range(n_steps)],
                edges,
                optional=[step for step in range(n_steps) if optional and random.random() < 0.5],
                alternatives=groups,
            )
        except GraphError:  # an order between the branches: draw again
            continue


def _draw_durations(random: Generator, n_steps: int, draw_costs: Callable[..., Floats]) -> Durations:
    if random.random() < 0.4:
        return Durations.least(random.integers(1, 4, n_steps), n_steps)
    length = draw_costs(n_steps, int(random.integers(1, 4)), never=0.15)
    length[:, -1] = np.where(np.isfinite(length[:, -1]), length[:, -1], 1.0)
    return Durations(length.astype(np.float64), draw_costs(n_steps, never=0.0).astype(np.float64))


def _by_align(**options: Any) -> Callable[[FeatureCase], Outcome]:
    def run(case: FeatureCase) -> Outcome:
        found = case.whole.align(**options)
        return Outcome(found.cost, found.labels)

    return run


def _by_posterior(**options: Any) -> Callable[[FeatureCase], SoftOutcome]:
    def run(case: FeatureCase) -> SoftOutcome:
        found = case.whole.posterior(case.gamma, **options)
        return SoftOutcome(found.cost, found.probability, found.start)

    return run


def check_feature_case(case: FeatureCase) -> Report:
    """Compare enumeration with the reference and the compiled kernels on one case, hard and soft."""
    report = Report(cases=1, seed=case.seed, native=has_native())
    known: Enumeration = enumerate_segments(
        case.flow,
        case.costs,
        repeat=case.repeat,
        durations=case.durations,
        violation=case.violation,
        gamma=case.gamma,
        rules=case.rules,
    )
    report.infeasible = int(known.labels is None)
    ways: dict[str, dict[str, Any]] = {"reference": {"backend": "reference"}}
    if has_native():
        ways |= {"native": {"backend": "native"}, "native, two workers": {"backend": "native", "workers": 2}}

    def enumeration(_: FeatureCase) -> Outcome:
        if known.labels is None:
            raise InfeasibleError("no finite alignment")
        return Outcome(known.cost, known.labels)

    def soft_enumeration(_: FeatureCase) -> SoftOutcome:
        return SoftOutcome(known.soft_cost if enumeration(case) else 0.0, known.probability, known.start)

    def note(check: str, trouble: str | None) -> None:
        if "enumeration" in check:
            return
        name = f"{case.kind}: {check}"
        report.checks[name] += 1
        if trouble is not None:
            report.failures[name] += 1
            report.mismatches.append(Mismatch(name, trouble, case))

    tolerance, soft_tolerance = (
        10 * tolerance_of(costs) + 1e-11 for costs in (case.costs, case.costs.astype(np.float64))
    )

    def wrong(found: Outcome, expected: Outcome) -> str | None:
        if abs(found.cost - expected.cost) > tolerance:
            return f"cost {found.cost!r}, expected {expected.cost!r}"
        if case.exact and found.labels is not None and not np.array_equal(found.labels, expected.labels):  # type: ignore[arg-type]
            return f"labels {found.labels}, expected {expected.labels}"
        return None

    def soft_wrong(found: SoftOutcome, expected: SoftOutcome) -> str | None:
        apart = found.distance(expected)
        if abs(found.cost - expected.cost) > soft_tolerance or apart > 1e-9 + soft_tolerance / case.gamma:
            return f"soft cost {found.cost!r}, expected {expected.cost!r}; probabilities differ by {apart:.3g}"
        return None

    hard: dict[str, Callable[[FeatureCase], Outcome]] = {"enumeration": enumeration}
    hard |= {f"align, {way}": _by_align(**options) for way, options in ways.items()}
    compare(hard | {"k_best": by_k_best()}, case, note, wrong)
    soft: dict[str, Callable[[FeatureCase], SoftOutcome]] = {"enumeration": soft_enumeration}
    compare(
        soft | {f"posterior, {way}": _by_posterior(**options) for way, options in ways.items()}, case, note, soft_wrong
    )
    return report
