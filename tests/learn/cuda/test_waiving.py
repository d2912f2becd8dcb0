"""What the kernels with videos in packs read of steps that may be left out; no GPU is needed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dags import dags

torch = pytest.importorskip("torch", reason="the extra 'learn' is not installed")

from benchmarks.cases import salads, threads  # noqa: E402
from graph2vid import TSortGraph  # noqa: E402
from graph2vid.learn.cuda.cuda_graphs import Layout  # noqa: E402
from graph2vid.learn.cuda.cuda_waiving import ALL, LANES, MOST_STEPS, Waiving  # noqa: E402

VIDEO = np.uint64(MOST_STEPS)


def cost_of(sets: np.ndarray, skip: np.ndarray) -> np.ndarray:
    """Return what is waived by sets with their videos above; +inf where there is no arc. skip: [videos, steps]."""
    found = np.full(sets.shape, np.inf)
    for at in zip(*np.nonzero(sets != ALL), strict=True):
        video, steps = int(sets[at] >> VIDEO), int(sets[at]) & (1 << MOST_STEPS) - 1
        found[at] = sum(skip[video, step] for step in range(skip.shape[1]) if steps >> step & 1)
    return found


def minima_of_arcs(layout: Layout, best: np.ndarray, skip: np.ndarray) -> np.ndarray:
    """Return the minimum over the arcs of each state, as they are listed: [videos, states]."""
    waivers = layout.waivers
    cost = np.stack([cost_of(waivers.sets[:, 0], own[None]) for own in skip])  # the sets have no video: they are of one
    sources = best.reshape(len(skip), -1)[:, waivers.origin] + cost[:, waivers.waived]
    return np.minimum.reduceat(sources, waivers.start[:-1], axis=1)


@given(dags(max_steps=6), st.integers(1, 3), st.booleans(), st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None)
def test_paths_and_jobs_give_the_minima_over_all_arcs(flow, videos, paths, seed) -> None:
    layout = Layout.of(TSortGraph.compile(flow), skips=True)
    waiving = Waiving(layout, videos, paths)
    random = np.random.default_rng(seed)
    best, skip = random.random(videos * layout.ideals), random.random((videos, layout.steps)) - 0.2
    told = random.permutation(videos * layout.ideals)
    values = np.empty(len(told) + 1)
    values[told], values[-1] = best, np.inf
    read = waiving.forward(told)
    found = np.full(waiving.roots, np.nan)
    costs = cost_of(read["link_waived"], skip)
    for first, rows in read["path"]:
        low = np.full(LANES, np.inf)
        for row in range(first, first + rows):
            low = np.minimum(values[read["path_link"][row, :, 0]], low + costs[row])
            served = read["path_link"][row, :, 1]
            assert np.isnan(found[served[served >= 0]]).all()  # each root once
            found[served[served >= 0]] = low[served >= 0]
    costs = cost_of(read["wide_waived"], skip)
    for first, rows, roots, number in read["job"]:
        lanes, count = roots & 255, roots >> 8
        least = (values[read["wide_arc"][first : first + rows]] + costs[first : first + rows]).min(axis=0)
        found[number : number + count] = least.reshape(-1, lanes).min(axis=1)[:count]
    wanted = minima_of_arcs(layout, best, skip)
    there = waiving.number >= 0
    assert sorted(waiving.number[there]) == list(range(waiving.roots))
    assert (there == (layout.waivers.counts > 1)).all()
    np.testing.assert_allclose(found[waiving.number[there]], wanted[there])
    assert paths or not len(read["path"])


@given(dags(max_steps=6), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_every_arc_of_a_root_is_there_once_backward(flow, videos) -> None:
    layout = Layout.of(TSortGraph.compile(flow), skips=True)
    waiving, waivers = Waiving(layout, videos, paths=True), layout.waivers
    lanes = np.argsort(waiving.back_region, kind="stable")
    read = waiving.backward(lanes)
    found = set()
    for warp, (first, last) in enumerate(zip(read["back_rows"][:-1], read["back_rows"][1:], strict=True)):
        for row, lane in zip(*np.nonzero(read["back_waived"][first:last] != ALL), strict=True):
            at = (first + row, lane)
            video, ideal = divmod(int(lanes[warp * LANES + lane]), layout.ideals)
            assert int(read["back_waived"][at] >> VIDEO) == video
            found.add((ideal, int(read["back_arc"][at]), int(read["back_waived"][at]) & (1 << MOST_STEPS) - 1))
    wanted = {
        (int(waivers.origin[arc]), int(waiving.number[video, state]), int(waivers.sets[waivers.waived[arc], 0]))
        for video in range(videos)
        for state in waivers.roots
        for arc in range(waivers.start[state], waivers.start[state + 1])
    }
    assert found == wanted
    assert sorted(waiving.lane[waiving.lane >= 0]) == list(range(videos * layout.ideals))


def test_threads_are_paths_and_what_joins_them_is_wide() -> None:
    layout = Layout.of(TSortGraph.compile(threads(3, 3, 3, ends=True)), skips=True)
    waiving = Waiving(layout, 1, paths=True)
    assert waiving.roots - waiving.chains == 1  # the last step comes after all threads
    assert len(waiving.lane) % LANES == 1 and waiving.lane[-1] == layout.full  # and has a warp of its own
    large = Waiving(Layout.of(TSortGraph.compile(salads()), skips=True), 1, paths=False)
    assert not large.chains and large.roots == 1880
