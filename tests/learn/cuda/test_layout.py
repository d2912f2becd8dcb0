"""How procedures and batches are laid out for the GPU; no GPU is needed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dags import dags

torch = pytest.importorskip("torch", reason="the extra 'learn' is not installed")

from benchmarks.cases import salads, threads  # noqa: E402
from graph2vid import TSortGraph, align  # noqa: E402
from graph2vid.learn.cuda.cuda_graphs import MOST_ALONE, Layout  # noqa: E402
from graph2vid.learn.cuda.plan import CHUNK, MOST_THREADS, Numbers, plan, shape  # noqa: E402

SHARED = 227 * 1024


def cost_by(layout: Layout, match: np.ndarray, drop: np.ndarray) -> float:
    """Return the hard cost by the recursion over a layout, as the kernels do it."""
    best = np.full(layout.ideals, np.inf)
    best[layout.empty] = 0
    states = np.full(layout.states, np.inf)
    ideal = np.concatenate([np.arange(size) for size in np.diff(layout.place)])
    for clip in range(match.shape[1]):
        states = match[layout.step, clip] + np.minimum(best[layout.origin], states)
        best = best + drop[clip]
        np.minimum.at(best, ideal, states)
    return float(best[layout.full])


@given(dags(max_steps=6), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_a_layout_is_the_same_graph(flow, seed) -> None:
    tsort = TSortGraph.compile(flow)
    layout = Layout.of(tsort)
    random = np.random.default_rng(seed)
    clips = len(flow) + int(random.integers(0, 5))
    match, drop = random.random((len(flow), clips)), random.random(clips)
    assert cost_by(layout, match, drop) == pytest.approx(align(tsort, match, drop).cost)
    assert (np.diff(layout.count) <= 0).all()
    for ideal in range(layout.ideals):
        entered = layout.out[layout.out_start[ideal] : layout.out_start[ideal + 1]]
        assert (layout.origin[entered] == ideal).all()
    for step in range(layout.steps):
        shown = layout.of_step[layout.of_start[step] : layout.of_start[step + 1]]
        assert (layout.step[shown] == step).all()
    assert sorted(layout.out) == sorted(layout.of_step) == list(range(layout.states))


def members(mask: np.ndarray, steps: int) -> list[int]:
    return [step for step in range(steps) if int(mask[step // 64]) >> step % 64 & 1]


@given(dags(max_steps=6), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_entries_are_all_ways_to_begin_a_step_and_none_twice(flow, seed) -> None:
    tsort = TSortGraph.compile(flow)
    layout = Layout.of(tsort, skips=True)
    waivers = layout.waivers
    random = np.random.default_rng(seed)
    match, drop, skip = random.random((len(flow), 7)), random.random(7), random.random(len(flow)) - 0.2
    cost = np.array([skip[members(mask, len(flow))].sum() for mask in waivers.sets])
    best = np.full(layout.ideals, np.inf)
    best[layout.empty] = 0
    states = np.full(layout.states, np.inf)
    ideal = np.concatenate([np.arange(size) for size in np.diff(layout.place)])
    for clip in range(match.shape[1]):
        enter = np.minimum.reduceat(best[waivers.origin] + cost[waivers.waived], waivers.start[:-1])
        states = match[layout.step, clip] + np.minimum(enter, states)
        best = best + drop[clip]
        np.minimum.at(best, ideal, states)
    assert (best + cost[waivers.ends]).min() == pytest.approx(align(tsort, match, drop, skip=skip).cost)
    state = np.repeat(np.arange(layout.states), np.diff(waivers.start))
    assert len({*zip(state, waivers.origin, strict=True)}) == layout.arcs
    assert (waivers.wide_at[waivers.wide] == np.arange(len(waivers.wide))).all()
    assert ((waivers.wide_at >= 0) == (np.diff(waivers.start) > MOST_ALONE)).all()
    for at in range(layout.ideals):
        left = layout.out[layout.out_start[at] : layout.out_start[at + 1]]
        assert (waivers.origin[left] == at).all()
    for arc in range(layout.arcs):
        step = layout.step[state[arc]]
        for waived in members(waivers.sets[waivers.waived[arc]], len(flow)):
            assert flow.ancestors[step] >> waived & 1


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 600)), min_size=1, max_size=40),
    st.sampled_from([Numbers(4, 1), Numbers(4, 2), Numbers(8, 2)]),
    st.integers(20, 30),
)
@settings(max_examples=60, deadline=None)
def test_parts_hold_every_video_once_and_fit(videos, numbers, power) -> None:
    layouts = tuple(Layout.of(TSortGraph.compile(flow)) for flow in FLOWS)
    which, clips = (np.array(column) for column in zip(*videos, strict=True))
    budget = 2**power
    try:
        parts = plan(layouts, which, clips, numbers, SHARED, budget)
    except MemoryError:
        column = max(numbers.column(layouts[at]) for at in which) * numbers.bytes
        assert (CHUNK + 2) * column > budget / 2
        return
    assert sorted(np.concatenate([part.videos for part in parts])) == list(range(len(videos)))
    for part in parts:
        columns = np.array([numbers.column(layouts[at]) for at in which[part.videos]]) * numbers.bytes
        if part.kept >= clips[part.videos].max():
            assert ((clips[part.videos] + 2) * columns).sum() <= budget
        else:
            assert len(part.videos) == 1
            assert part.kept % CHUNK == 0
            pieces = -(-int(clips[part.videos[0]]) // part.kept)
            assert (part.kept + 2 + pieces) * columns[0] <= budget
        for kernel in (part.forward, part.backward):
            assert kernel.shared <= SHARED
            assert kernel.threads <= min(kernel.bound, MOST_THREADS)


FLOWS = (threads(2, 2, 3, ends=True), threads(3, 3, 3, 3, ends=True), salads())


def test_small_procedures_stay_in_registers_and_large_ones_do_not() -> None:
    small, _, large = (Layout.of(TSortGraph.compile(flow)) for flow in FLOWS)
    for kernel in ("forward", "backward"):
        assert shape(kernel, small, Numbers(4, 2), SHARED).rows == 1
        assert shape(kernel, large, Numbers(4, 2), SHARED).rows == 0
    assert shape("backward", large, Numbers(8, 2), SHARED).spills
