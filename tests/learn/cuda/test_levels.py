"""What is waived level by level is what can be waived; no GPU is needed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dags import dags

torch = pytest.importorskip("torch", reason="the extra 'learn' is not installed")

from graph2vid import TSortGraph, align  # noqa: E402
from graph2vid.learn.cuda.cuda_graphs import Layout  # noqa: E402


@given(dags(max_steps=6), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_levels_give_the_cost_with_skips(flow, seed) -> None:
    tsort = TSortGraph.compile(flow)
    levels = Layout.of(tsort, skips=True).levels
    arrays = levels.arrays(levels.width)
    random = np.random.default_rng(seed)
    match, drop, skip = random.random((len(flow), 7)), random.random(7), random.random(len(flow)) - 0.2
    skips = np.append(skip, np.inf)
    order = sorted(range(levels.ideals), key=lambda lane: levels.masks[lane].bit_count())
    start, extra = arrays["extra_start"], arrays["extra"]

    def told(best: np.ndarray) -> np.ndarray:
        """Return what ideals and nodes tell; each needs what those of one step less tell alone."""
        values = np.full(levels.told + 2, np.inf)
        for lane in order:
            values[lane] = best[lane]
            for place, child, waived, _, base, *_ in extra[start[lane] : start[lane + 1]] // 4:
                values[place] = min(values[base], values[child] + skips[waived])
            for w in range(levels.width):
                place, child, base, waived = (arrays[name][w, lane] // 4 for name in ("place", "child", "base", "skip"))
                values[place] = min(values[base], values[child] + skips[waived])
        return values

    best = np.full(levels.ideals, np.inf)
    best[levels.rank[0]] = 0
    states = np.full((levels.width, levels.ideals), np.inf)
    for clip in range(7):
        values = told(best)
        values[levels.told :] = np.inf
        states = match[arrays["label"] // 4, clip] + np.minimum(values[arrays["enter"] // 4], states)
        best = np.minimum(best + drop[clip], states.min(axis=0))
    ends = [
        cost + sum(skip[k] for k in range(len(flow)) if not levels.masks[i] >> k & 1) for i, cost in enumerate(best)
    ]
    assert min(ends) == pytest.approx(align(tsort, match, drop, skip=skip).cost)


@given(dags(max_steps=6))
@settings(max_examples=60, deadline=None)
def test_what_is_passed_back_arrives_once(flow) -> None:
    levels = Layout.of(TSortGraph.compile(flow), skips=True).levels
    arrays = levels.arrays(levels.width)
    lists = [*arrays["plain_parents"], *arrays["parents"].reshape(-1), *arrays["extra"][:, 6]]
    read = [place for parents in lists for place in range(parents & 0xFFFF, (parents & 0xFFFF) + (parents >> 16))]
    passed = [*arrays["pass"][arrays["step"] >= 0], *arrays["extra"][:, 5]]
    assert sorted(read) == sorted(place // 4 for place in passed) == list(range(len(levels.nodes)))
    slots = [*arrays["out_slot"][arrays["out_slot"] < 4 * (levels.column - 4)], *arrays["stay"], *arrays["extra"][:, 3]]
    slots += [*arrays["share"][arrays["step"] >= 0]]
    assert sorted(slots) == [4 * n for n in range(len(slots))] and len(slots) <= levels.column - 4
    assert sorted(arrays["slot"].reshape(-1)) == sorted(arrays["out_slot"].reshape(-1))
