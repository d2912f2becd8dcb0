"""What the kernels with states in shared memory read of steps that may be left out; no GPU is needed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dags import dags

torch = pytest.importorskip("torch", reason="the extra 'learn' is not installed")

from benchmarks.cases import salads  # noqa: E402
from graph2vid import TSortGraph  # noqa: E402
from graph2vid.learn.cuda.cuda_graphs import Layout  # noqa: E402
from graph2vid.learn.cuda.cuda_waiving import AHEAD, ALL, LANES, Waiving  # noqa: E402


def cost_of(sets: np.ndarray, skip: np.ndarray) -> np.ndarray:
    """Return what sets of steps cost; +inf where there is no arc."""
    found = np.full(sets.shape, np.inf)
    for at in zip(*np.nonzero(sets != ALL), strict=True):
        found[at] = sum(cost for step, cost in enumerate(skip) if int(sets[at]) >> step & 1)
    return found


@given(dags(max_steps=6), st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None)
def test_jobs_give_the_minima_over_all_arcs(flow, seed) -> None:
    layout = Layout.of(TSortGraph.compile(flow), skips=True)
    waiving, waivers = Waiving(layout), layout.waivers
    random = np.random.default_rng(seed)
    best, skip = random.random(layout.ideals), random.random(layout.steps) - 0.2
    told = random.permutation(layout.ideals)
    values = np.empty(len(told) + 1)
    values[told], values[-1] = best, np.inf
    read = waiving.forward(told)
    found = np.full(waiving.roots, np.nan)
    costs = cost_of(read["wide_waived"], skip)
    assert read["job_start"][-1] == len(read["job"])
    assert (np.diff(read["job_start"]) >= 0).all()
    assert (read["job"][1:, 0] == read["job"][:-1, :2].sum(axis=1)).all()  # rows follow one another, and are read ahead
    for first, rows, roots, number in read["job"]:
        assert rows % AHEAD == 0
        lanes, count = 1 << (roots & 7), roots >> 8
        least = (values[read["wide_arc"][first : first + rows]] + costs[first : first + rows]).min(axis=0)
        found[number : number + count] = least.reshape(-1, lanes).min(axis=1)[:count]
    sources = best[waivers.origin] + cost_of(waivers.sets[:, 0], skip)[waivers.waived]
    wanted = np.minimum.reduceat(sources, waivers.start[:-1])
    there = waiving.number >= 0
    assert sorted(waiving.number[there]) == list(range(waiving.roots))
    assert (there == (waivers.counts > 1)).all()
    np.testing.assert_allclose(found[waiving.number[there]], wanted[there])


@given(dags(max_steps=6))
@settings(max_examples=60, deadline=None)
def test_every_arc_of_a_root_is_there_once_backward(flow) -> None:
    layout = Layout.of(TSortGraph.compile(flow), skips=True)
    waiving, waivers = Waiving(layout), layout.waivers
    lanes = np.argsort(waiving.back_region, kind="stable")
    read = waiving.backward(lanes)
    found = set()
    for warp, (first, last) in enumerate(zip(read["back_rows"][:-1], read["back_rows"][1:], strict=True)):
        for row, lane in zip(*np.nonzero(read["back_waived"][first:last] != ALL), strict=True):
            at = (first + row, lane)
            ideal = int(lanes[warp * LANES + lane])
            found.add((ideal, int(read["back_arc"][at]), int(read["back_waived"][at])))
    wanted = {
        (int(waivers.origin[arc]), int(waiving.number[state]), int(waivers.sets[waivers.waived[arc], 0]))
        for state in waivers.roots
        for arc in range(waivers.start[state], waivers.start[state + 1])
    }
    assert found == wanted


def test_a_large_procedure_has_few_roots() -> None:
    assert Waiving(Layout.of(TSortGraph.compile(salads()), skips=True)).roots == 1880
