"""How procedures and batches are laid out for the GPU; no GPU is needed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dags import dags

torch = pytest.importorskip("torch", reason="the extra 'learn' is not installed")

from benchmarks.cases import salads, threads  # noqa: E402
from graph2vid import TSortGraph, align  # noqa: E402
from graph2vid.learn.cuda.cuda_graphs import MOST_ALONE, Layout  # noqa: E402
from graph2vid.learn.cuda.cuda_numbers import CHUNK, Numbers  # noqa: E402
from graph2vid.learn.cuda.cuda_packs import Pack, spread  # noqa: E402
from graph2vid.learn.cuda.plan import MOST_THREADS, Fit, plan, together  # noqa: E402

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
        left = waivers.out[waivers.out_start[at] : waivers.out_start[at + 1]]
        assert (waivers.origin[left] == at).all()
    for arc in range(layout.arcs):
        step = layout.step[state[arc]]
        for waived in members(waivers.sets[waivers.waived[arc]], len(flow)):
            assert flow.ancestors[step] >> waived & 1


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 600)), min_size=1, max_size=40),
    st.sampled_from([Numbers(4), Numbers(4, smoothmin=True, contiguous=False), Numbers(8, smoothmin=True)]),
    st.booleans(),
    st.integers(20, 30),
)
@settings(max_examples=60, deadline=None)
def test_parts_hold_every_video_once_and_fit(videos, numbers, skips, power) -> None:
    layouts, numbers = LAYOUTS[skips], replace(numbers, skips=skips)
    which, clips = (np.array(column) for column in zip(*videos, strict=True))
    budget = 2**power
    try:
        parts = plan(layouts, which, clips, numbers, SHARED, budget)
    except MemoryError:
        fits = [Fit.of(layout, numbers, SHARED, int((which == at).sum()), True) for at, layout in enumerate(layouts)]
        assert any(needs_at_least(fits[at], layouts[at], numbers, own) > budget for at, own in videos)
        return
    assert sorted(np.concatenate([part.videos for part in parts])) == list(range(len(videos)))
    for part in parts:
        fit, own = Fit(part.forward, part.backward), [layouts[at] for at in which[part.videos]]
        columns = np.array([fit.column(layout, numbers) for layout in own]) * numbers.bytes
        needed = clips[part.videos] + [fit.lag(layout, numbers) for layout in own]
        assert part.starts[0] == 0 and part.starts[-1] == len(part.videos)
        for first, last, room in zip(part.starts[:-1], part.starts[1:], part.packed, strict=True):
            assert 0 < last - first <= room
            assert len({*which[part.videos[first:last]]}) == 1
        if part.kept >= needed.max():
            assert ((needed + 2) * columns).sum() <= budget
        else:
            assert len(part.videos) == 1
            assert part.kept % CHUNK == 0
            pieces = -(-int(needed[0]) // part.kept)
            left = pieces * fit.in_flight(own[0], numbers) * numbers.bytes
            assert (part.kept + 2 + pieces) * columns[0] + left <= budget
        for kernel in (part.forward, part.backward):
            assert kernel.shared <= SHARED
            assert kernel.threads <= min(kernel.bound, MOST_THREADS)


def needs_at_least(fit: Fit, layout: Layout, numbers: Numbers, clips: int) -> int:
    """Return the bytes of a video with as many checkpoints as there can be."""
    columns = clips + fit.lag(layout, numbers)
    own = fit.column(layout, numbers) + fit.in_flight(layout, numbers)
    return ((CHUNK + 2 + -(-columns // CHUNK)) * own + fit.aside(layout, numbers)) * numbers.bytes


FLOWS = (threads(2, 2, 3, ends=True), threads(3, 3, 3, 3, ends=True), salads())
LAYOUTS = [tuple(Layout.of(TSortGraph.compile(flow), skips) for flow in FLOWS) for skips in (False, True)]


def test_small_procedures_stay_in_registers_and_large_ones_do_not() -> None:
    small, _, large = (Layout.of(TSortGraph.compile(flow)) for flow in FLOWS)
    numbers = Numbers(4, smoothmin=True, contiguous=False)
    assert Fit.of(small, numbers, SHARED, 1, gradient=True).forward.rows
    assert not Fit.of(large, numbers, SHARED, 1, gradient=True).resident
    soft = Fit.of(large, Numbers(4), SHARED, 1, gradient=True)
    assert (soft.forward.rows, soft.forward.width, soft.backward.width) == (0, 12, 12)
    assert Fit.of(large, Numbers(8, smoothmin=True), SHARED, 1, gradient=True).backward.spills


def test_blocks_of_small_procedures_take_several_videos_where_there_are_many() -> None:
    assert [together(38, videos) for videos in (1, 64, 8192)] == [1, 1, 5]  # 190 of 192 lanes, in place of 38 of 64
    assert together(627, 8192) == 1


@given(dags(max_steps=6), st.integers(1, 4), st.booleans())
@settings(max_examples=60, deadline=None)
def test_both_directions_of_a_pack_mean_the_same_states(flow, videos, smoothmin) -> None:
    layout, numbers = Layout.of(TSortGraph.compile(flow)), Numbers(4, smoothmin=smoothmin)
    pack = Pack(layout, videos, layout.width, layout.out_width, numbers, numbers.pack_column(layout, videos))
    arrays, states, ideals = pack.arrays, videos * layout.states, videos * layout.ideals
    told, back_told = ({*zip(arrays[f"{side}own"], arrays[f"{side}lane"], strict=True)} for side in ("", "back_"))
    assert sorted(place for place, _ in told) == sorted(place for place, _ in back_told) == list(range(ideals))
    ideal, back_ideal = dict(told), dict(back_told)
    forward = {
        arrays["slot"][at]: (ideal[arrays["enter"][at]], arrays["lane"][at[1]], arrays["label"][at])
        for at in zip(*np.nonzero(arrays["enter"] < ideals), strict=True)
    }
    there = np.nonzero(arrays["back_target"] < ideals)
    backward = {
        arrays["back_slot"][at]: (
            arrays["back_lane"][at[1]],
            back_ideal[arrays["back_target"][at]],
            arrays["back_label"][at],
        )
        for at in zip(*there, strict=True)
    }
    assert forward == backward
    assert sorted(forward) == list(range(states))
    values = [*arrays["slot"][-1]]
    first = -(-states // 4) * 4
    assert sorted(values) == list(range(first, first + ideals))
    assert dict(zip(arrays["lane"], values, strict=True)) == dict(
        zip(arrays["back_lane"], arrays["back_slot"][-1], strict=True)
    )
    # The gradients of each label of each video lie side by side, each in a place of its own.
    for at in zip(*there, strict=True):
        video, step = divmod(arrays["back_label"][at], layout.steps + 1)
        first, last = arrays["sum_start"][video * layout.steps + step :][:2]
        assert first <= arrays["back_sum"][at] < last
    assert len({*arrays["back_sum"][there]}) == states
    assert (arrays["sum_start"] % 4 == 0).all()


def test_what_is_read_together_lies_in_different_banks() -> None:
    read = np.random.default_rng(0).permutation(64).reshape(2, 32)
    places = spread(np.arange(64) // 32, np.array([32, 32]), read, 1)
    assert sorted(places[:32]) == [*range(32)] and sorted(places[32:]) == [*range(32, 64)]
    assert max(np.bincount(places[row] % 32).max() for row in read) < 3  # at random, 3 or 4


@given(dags(max_steps=6), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_rows_are_the_same_graph(flow, seed) -> None:
    layout, numbers = Layout.of(TSortGraph.compile(flow)), Numbers(4)
    width = max(layout.width, layout.out_width) + 1
    rows = Pack(layout, 1, width, width, numbers, numbers.pack_column(layout, 1)).rows
    random = np.random.default_rng(seed)
    match, drop = random.random((layout.steps, 8)), random.random(8)
    link, slot = rows["link"].reshape(-1, 2).T
    own, back_own, target = rows["own"] // 4, rows["back_own"] // 4, (rows["back_link"] & 0xFFFF) // 4
    ideal = np.concatenate([np.arange(size) for size in np.diff(rows["place"])])
    best = np.full(layout.ideals, np.inf)
    best[own[layout.empty]] = 0
    states = np.full(layout.states, np.inf)
    for clip in range(8):
        states = match[(link >> 16) // 4, clip] + np.minimum(best[(link & 0xFFFF) // 4], states)
        best = best + drop[clip]
        np.minimum.at(best, own[ideal], states)
    assert best[own[layout.full]] == cost_by(layout, match, drop)
    # Backward the same states, by their places in a column: from where, and where to.
    back_ideal = np.concatenate([np.arange(size) for size in np.diff(rows["back_place"])])
    lane = dict(zip(back_own, rows["back_lane"], strict=True))
    assert sorted(own[rows["back_lane"]]) == [*range(layout.ideals)]
    forward = {s: ((f & 0xFFFF) // 4, own[i]) for s, f, i in zip(slot // 4, link, ideal, strict=True)}
    assert forward == {
        s: (own[rows["back_lane"][i]], own[lane[to]]) for s, (i, to) in enumerate(zip(back_ideal, target, strict=True))
    }
    first = -(-layout.states // 4) * 4
    assert (rows["value_slot"][rows["back_lane"]] // 4 == first + np.arange(layout.ideals)).all()
