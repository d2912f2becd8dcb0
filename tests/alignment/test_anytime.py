"""The search for procedures beyond exact reach: its answers are legal, and its bounds hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graph2vid as g2v
from dags import dags, thread_flow
from graph2vid.alignment import anytime
from graph2vid.alignment.backends import Resources, native
from graph2vid.alignment.beam import Beam
from graph2vid.alignment.clip_costs import check_costs
from graph2vid.alignment.relaxed import Climb, CompiledClimb, Costs64, Multipliers, Relaxation, Video
from graph2vid.errors import InfeasibleError, InputError, TooLargeError

BACKENDS = ["reference"] if native() is None else ["native", "reference"]
SKIPS = st.sampled_from(["none", "some", "all"])


def draw_costs(
    flow: g2v.FlowGraph, clips: int, seed: int, skips: str, forbidden: float = 0.0
) -> tuple[Costs64, Costs64, Costs64 | None]:
    """Return random match, drop and skip costs; a share of the match costs is infinite."""
    random = np.random.default_rng(seed)
    match = random.normal(1.0, 1.0, (len(flow), clips))
    match[random.random(match.shape) < forbidden] = np.inf
    skip = None if skips == "none" else random.normal(0.5, 1.0, len(flow))
    if skip is not None and skips == "some":
        skip[random.random(len(flow)) < 0.5] = np.inf
    return match, random.normal(0.6, 0.3, clips), skip


def planted(flow: g2v.FlowGraph, clips: int, noise: float, seed: int) -> tuple[Costs64, Costs64]:
    """Return match and drop costs of a video in which a legal order is shown, with background between the steps."""
    random = np.random.default_rng(seed)
    order: list[int] = []
    while len(order) < len(flow):
        ready = [k for k in range(len(flow)) if k not in order and set(flow.predecessors[k]) <= set(order)]
        order.append(int(random.choice(ready)))
    edges = np.sort(random.choice(np.arange(1, clips), 2 * len(flow), replace=False)).reshape(-1, 2)
    match = np.ones((len(flow), clips))
    for step, (start, stop) in zip(order, edges, strict=True):
        match[step, start:stop] = 0.0
    return match + noise * random.normal(size=match.shape), np.full(clips, 0.5)


@settings(max_examples=60, deadline=None)
@given(dags(max_steps=7), st.integers(7, 14), st.integers(0, 2**32 - 1), SKIPS, st.booleans())
def test_small_procedures_are_exact(flow: g2v.FlowGraph, clips: int, seed: int, skips: str, contiguous: bool) -> None:
    match, drop, skip = draw_costs(flow, clips, seed, skips)
    exact = g2v.align(flow, match, drop, skip, contiguous, method="exact")
    found = g2v.align(flow, match, drop, skip, contiguous, method="anytime")
    assert found.cost == pytest.approx(exact.cost, abs=1e-9)
    assert found.gap == 0
    assert found.lower_bound == found.cost


@settings(max_examples=60, deadline=None)
@given(
    dags(max_steps=7),
    st.integers(7, 14),
    st.integers(0, 2**32 - 1),
    SKIPS,
    st.booleans(),
    st.integers(1, 40),
    st.none() | st.floats(-0.5, -1e-6) | st.floats(1e-6, 2.0),  # what is known, over the optimum
)
def test_bounds_hold_whatever_the_multipliers_and_the_width(
    flow: g2v.FlowGraph, clips: int, seed: int, skips: str, contiguous: bool, width: int, known: float | None
) -> None:
    match, drop, skip = draw_costs(flow, clips, seed, skips, forbidden=0.1)
    try:
        optimum = g2v.align(flow, match, drop, skip, contiguous, method="exact").cost
    except InfeasibleError:
        optimum = np.inf
    video = Video(match, drop, np.full(len(flow), np.inf) if skip is None else skip, contiguous)
    relaxation = Relaxation(flow, video)
    random = np.random.default_rng(seed + 1)
    edges = len(relaxation.later)
    at = Multipliers(random.normal(0.0, 2.0, len(flow)), np.maximum(random.normal(0.0, 0.5, (edges, clips)), 0.0))
    solved, bounds = relaxation.solve(at), relaxation.completions(at)
    upper = np.inf if known is None or optimum == np.inf else optimum + known
    assert solved.bound <= optimum + 1e-9
    assert bounds.free[0] == pytest.approx(solved.bound, abs=1e-9)
    found = []
    for backend in BACKENDS:
        swept = Beam(flow, video, backend, 1 << 24).sweep(bounds, upper, width)
        found.append(swept)
        if optimum < upper:
            assert min(swept.cost, swept.dropped) - 1e-9 <= optimum <= swept.cost + 1e-9
            assert swept.expanded > 0
        if swept.labels is not None:
            assert_legal(flow, swept.labels, skip, contiguous)
            assert optimum - 1e-9 <= swept.cost < upper
        if swept.dropped == np.inf:
            assert swept.cost == pytest.approx(optimum if optimum < upper else np.inf, abs=1e-9)
    assert found[0].cost == pytest.approx(found[-1].cost)
    assert found[0].dropped == pytest.approx(found[-1].dropped)
    assert found[0].expanded == found[-1].expanded


@settings(max_examples=40, deadline=None)
@given(dags(max_steps=9), st.integers(9, 30), st.integers(0, 2**32 - 1), SKIPS, st.booleans())
def test_the_compiled_climb_is_the_readable_one(
    flow: g2v.FlowGraph, clips: int, seed: int, skips: str, contiguous: bool
) -> None:
    match, drop, skip = draw_costs(flow, clips, seed, skips)
    optimum = g2v.align(flow, match, drop, skip, contiguous).cost
    video = Video(match, drop, np.full(len(flow), np.inf) if skip is None else skip, contiguous)
    relaxation, when = Relaxation(flow, video), np.arange(len(flow), dtype=np.float64)
    climbs = [Climb(relaxation, when), CompiledClimb(relaxation, when)]
    # Where background may lie inside a step, segments that end with it or before it often cost the same, and rounding
    # decides: only the first change is sure to be the same.
    for rounds in (6, 5) if contiguous else (2,):
        for climb in climbs:
            climb.start()
        slow, fast = (climb.run(rounds, optimum + 0.3, 1e-9) for climb in climbs)
        assert slow == fast
        assert climbs[0].bound == pytest.approx(climbs[1].bound)
        assert climbs[0].bound <= optimum + 1e-9
        if contiguous:
            assert climbs[0].when == pytest.approx(climbs[1].when)
        for one, other in zip(climbs[0].best, climbs[1].best, strict=True):
            assert one == pytest.approx(other, abs=1e-9)
        assert relaxation.solve(climbs[1].best).bound == pytest.approx(climbs[1].bound)
        for one, other in zip(*(climb.completions() for climb in climbs), strict=True):
            assert one == pytest.approx(other, abs=1e-9)


def assert_legal(flow: g2v.FlowGraph, labels: np.ndarray, skip: Costs64 | None, contiguous: bool) -> None:
    """Legal labels stay finite when the exact method is pinned to them, clip by clip."""
    match = np.full((len(flow), len(labels)), np.inf)
    drop = np.where(labels < 0, 0.0, np.inf)
    shown = np.flatnonzero(labels >= 0)
    match[labels[shown], shown] = 0.0
    waived = None if skip is None else np.where(np.isfinite(skip), 0.0, np.inf)
    assert g2v.align(flow, match, drop, waived, contiguous, method="exact").labels.tolist() == labels.tolist()


@settings(max_examples=25, deadline=None)
@given(dags(min_steps=6, max_steps=12), st.integers(12, 40), st.integers(0, 2**32 - 1), SKIPS)
def test_the_optimum_lies_in_the_gap_when_there_is_little_time(
    flow: g2v.FlowGraph, clips: int, seed: int, skips: str
) -> None:
    match, drop, skip = draw_costs(flow, clips, seed, skips)
    optimum = g2v.align(flow, match, drop, skip, method="exact").cost
    found = g2v.align(flow, match, drop, skip, method="anytime", time_limit=0.01)
    assert found.lower_bound - 1e-9 <= optimum <= found.cost + 1e-9
    assert_legal(flow, found.labels, skip, contiguous=True)


@pytest.mark.parametrize("noise", [0.3, 0.7])
def test_exact_sized_procedures_are_proven(noise: float) -> None:
    flows = [thread_flow([4, 4, 3]), thread_flow([2] * 6), g2v.FlowGraph.bag([str(k) for k in range(11)])]
    proven = 0
    for seed, flow in enumerate(flows * 3):
        match, drop = planted(flow, 80, noise, seed)
        exact = g2v.align(flow, match, drop, method="exact")
        found = g2v.align(flow, match, drop, method="anytime")
        assert found.lower_bound - 1e-9 <= exact.cost <= found.cost + 1e-9
        proven += found.gap == 0
        if found.gap == 0:
            assert found.cost == pytest.approx(exact.cost)
    assert proven == 9


@pytest.mark.slow
def test_forty_steps_in_eight_threads() -> None:
    flow = thread_flow([5] * 8)
    match, drop = planted(flow, 300, 0.6, seed=8)
    optimum = g2v.align(flow, match, drop, method="exact", cost_only=True).cost
    found = g2v.align(flow, match, drop, method="anytime", time_limit=120)
    assert found.lower_bound - 1e-9 <= optimum <= found.cost + 1e-9
    assert found.gap == 0


@pytest.mark.slow
def test_thirty_steps_in_any_order() -> None:
    flow = g2v.FlowGraph.bag([str(k) for k in range(30)])
    match, drop = planted(flow, 600, 0.6, seed=9)
    found = g2v.align(flow, match, drop, memory_limit=4 << 30, time_limit=60)
    least = np.minimum(match.min(axis=0), drop).sum()
    assert found.gap <= 0.02 * (found.cost - least)


def test_procedures_beyond_reach_are_searched() -> None:
    flow = g2v.FlowGraph.bag([str(k) for k in range(26)])
    match, drop = planted(flow, 150, 0.3, seed=4)
    found = g2v.align(flow, match, drop, time_limit=60)
    assert found.options["method"] == "anytime"
    assert found.gap == found.options["gap"]
    assert 0 <= found.gap <= 0.02 * abs(found.cost)
    assert sorted(found.order) == list(range(26))
    assert found.cost == pytest.approx(
        match[found.labels, np.arange(150)][found.labels >= 0].sum() + drop[found.labels < 0].sum()
    )
    (many,) = g2v.align_many(flow, [match], [drop])
    assert many.cost == pytest.approx(found.cost)
    assert many.options["method"] == "anytime"
    assert g2v.align(flow, match, drop, cost_only=True).clip_labels is None
    with pytest.raises(TooLargeError, match="ideals"):
        g2v.align(flow, match, drop, method="exact")


def test_more_steps_than_a_word_holds() -> None:
    flow = thread_flow([1] * 30 + [40])
    match, drop = planted(flow, 200, 0.1, seed=1)
    found = g2v.align(flow, match, drop)
    assert found.gap == 0
    assert sorted(found.order) == list(range(70))


def test_states_times_clips_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = g2v.FlowGraph.bag(list("abcd"))
    match, drop = planted(flow, 30, 0.2, seed=0)
    exact = g2v.align(flow, match, drop)
    monkeypatch.setattr(anytime, "EXACT_UPDATES", 4 * 2**3 * 30 - 1)
    for found in (g2v.align(flow, match, drop), *g2v.align_many(flow, [match], drop[None])):
        assert found.options["method"] == "anytime"
        assert found.cost == pytest.approx(exact.cost)
        assert found.labels.tolist() == exact.labels.tolist()
    assert g2v.align(flow, match, drop, method="exact").options["method"] == "exact"


def test_what_is_impossible_is_said() -> None:
    flow = g2v.FlowGraph.bag([str(k) for k in range(26)])
    match, drop = planted(flow, 60, 0.3, seed=2)
    match[3] = np.inf
    with pytest.raises(InfeasibleError, match=r"step '4' .* must be shown, but no clip is allowed"):
        g2v.align(flow, match, drop)
    match[:, 20:] = np.inf
    with pytest.raises(InfeasibleError):
        g2v.align(flow, match, drop)


def test_what_is_not_supported_is_refused() -> None:
    flow = g2v.FlowGraph.bag(list("abc"))
    match = np.ones((3, 5))
    with pytest.raises(InputError, match="method='anytime' knows no repeats"):
        g2v.align(flow, match, 1.0, method="anytime", repeat=1.0)
    for bad in (0, -1.0, np.nan, True, "soon"):
        with pytest.raises(InputError, match="time_limit must be a number of seconds above 0"):
            g2v.align(flow, match, 1.0, time_limit=bad)
    with pytest.raises(TooLargeError, match=r"more memory than the bound of 0\.0 MiB.*raise memory_limit"):
        g2v.align(flow, match, 1.0, method="anytime", memory_limit=1000)


def test_memory_bounds_what_is_kept() -> None:
    flow = g2v.FlowGraph.bag([str(k) for k in range(12)])
    match, drop = planted(flow, 60, 1.5, seed=3)
    costs = check_costs(flow, match, drop, None)
    optimum = g2v.align(flow, match, drop).cost
    found = anytime.solve(flow, costs, True, Resources("native", None, 3 << 20, 5.0))
    assert found.cost - found.gap - 1e-9 <= optimum <= found.cost + 1e-9
