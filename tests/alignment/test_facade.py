"""The façade: what it accepts, what it refuses and how it says so."""

from __future__ import annotations

import itertools
import pickle
import threading

import numpy as np
import pytest

import graph2vid as g2v
from graph2vid.alignment import backends
from graph2vid.errors import InfeasibleError, InputError, TooLargeError

SALAD = g2v.FlowGraph.from_edges(["cut tomato", "cut cucumber", "mix"], [(0, 2), (1, 2)])
# Clips show: cucumber, background, tomato, tomato, mix.
MATCH = np.array([[9, 9, 1, 1, 9], [0, 9, 9, 9, 9], [9, 9, 9, 9, 2]], float)
DROP = np.full(5, 3.0)


@pytest.fixture(params=["native", "reference"])
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "native" and backends.native() is None:
        pytest.skip("the compiled kernels are not built")
    return str(request.param)


def test_a_salad(backend: str) -> None:
    a = g2v.align(SALAD, MATCH, DROP, backend=backend)
    assert a.cost == 0 + 3 + 1 + 1 + 2
    assert a.labels.tolist() == [1, -1, 0, 0, 2]
    assert a.order == (1, 0, 2)
    assert [(s.step, s.start, s.stop) for s in a.segments] == [(1, 0, 1), (0, 2, 4), (2, 4, 5)]
    assert a.skipped == ()
    assert a.gap == 0
    assert a.options["backend"] == backend


def test_all_methods_and_inputs_agree(backend: str) -> None:
    exact = g2v.align(SALAD, MATCH, DROP, backend=backend)
    for other in (
        g2v.align(SALAD, MATCH, DROP, method="brute"),
        g2v.align(g2v.TSortGraph.compile(SALAD), MATCH.astype(np.float32), 3, backend=backend),
        g2v.align(SALAD, MATCH.astype(int), DROP.tolist(), backend=backend),
        g2v.align(SALAD, np.asfortranarray(MATCH), DROP, [np.inf] * 3, backend=backend),
    ):
        assert other.cost == exact.cost
        assert other.labels.tolist() == exact.labels.tolist()


def test_several_sinks_are_all_answers(backend: str) -> None:
    flow = g2v.FlowGraph.bag(["a", "b"])
    match = np.array([[5.0, 1.0], [1.0, 5.0]])
    assert g2v.align(flow, match, 9.0, backend=backend).labels.tolist() == [1, 0]
    assert g2v.align(flow, match[::-1].copy(), 9.0, backend=backend).labels.tolist() == [0, 1]


def test_skipped_steps(backend: str) -> None:
    match = MATCH.copy()
    match[0] = 50
    a = g2v.align(SALAD, match, DROP, skip=4.0, backend=backend)
    assert a.skipped == (0,)
    assert a.labels.tolist() == [1, -1, -1, -1, 2]
    assert a.cost == 0 + 9 + 2 + 4


def test_cost_only_has_no_labels(backend: str) -> None:
    a = g2v.align(SALAD, MATCH, DROP, cost_only=True, backend=backend)
    assert a.cost == 7
    with pytest.raises(InputError, match="cost_only"):
        _ = a.labels


def test_constraints(backend: str) -> None:
    def labels(*constraints: g2v.Constraint) -> list[int]:
        return g2v.align(SALAD, MATCH, DROP, backend=backend, constraints=constraints).labels.tolist()

    assert labels(g2v.Constraint("within", 0, 3, 5)) == [1, -1, -1, 0, 2]
    assert labels(g2v.Constraint("forbid", 0, 2, 3)) == [1, -1, -1, 0, 2]
    assert labels(g2v.Constraint("background", None, 2, 3)) == [1, -1, -1, 0, 2]
    assert labels(g2v.Constraint("show", 0, 0, 2)) == [0, 0, 0, 1, 2]
    assert labels(g2v.Constraint("forbid", 1, 0, 1), g2v.Constraint("within", 2, 3, float("inf")))[0] != 1


def test_a_pinned_step_is_not_skipped(backend: str) -> None:
    match = MATCH.copy()
    match[0] = 50
    a = g2v.align(SALAD, match, DROP, 4.0, constraints=[g2v.Constraint("within", 0, 1, 2)], backend=backend)
    assert a.labels.tolist() == [1, 0, -1, -1, 2]


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (g2v.Constraint("within", 3, 0, 1), "no step 3"),
        (g2v.Constraint("within", None, 0, 1), "no step None"),
        (g2v.Constraint("background", 1, 0, 1), "concerns no step"),
        (g2v.Constraint("within", 0, 5, 9), "holds no clip of the video, which has 5"),
        (g2v.Constraint("within", 0, 2, 2), "holds no clip"),
        (g2v.Constraint("within", 0, 0.5, 2), "whole clips"),
        (g2v.Constraint("within", 0, float("nan"), 2), "whole clips"),
        (g2v.Constraint("before", 0, 0, 1), "unknown constraint 'before'"),  # type: ignore[arg-type]
    ],
)
def test_bad_constraints(constraint: g2v.Constraint, message: str) -> None:
    with pytest.raises(InputError, match=message):
        g2v.align(SALAD, MATCH, DROP, constraints=[constraint])


@pytest.mark.parametrize(
    ("match", "drop", "skip", "message"),
    [
        (MATCH[0], DROP, None, r"shape \(5,\); it must be \[steps, clips\] = \[3, N\]"),
        (MATCH[:2], DROP, None, r"shape \(2, 5\): axis 0 is 2 long, but the procedure has 3 steps"),
        (MATCH.T, DROP, None, "transpose it"),
        (MATCH[:, :0], DROP[:0], None, "no clips"),
        (MATCH, DROP[:4], None, r"drop has shape \(4,\), but match has shape \(3, 5\): .* 5 clips"),
        (MATCH, DROP, [1, 2], r"skip has shape \(2,\), but match has shape \(3, 5\): .* 3 steps"),
        (np.where(MATCH == 2, np.nan, MATCH), DROP, None, r"match\[2, 4\] is nan \(step '3'\)"),
        (np.where(MATCH == 2, -np.inf, MATCH), DROP, None, r"match\[2, 4\] is -inf"),
        (MATCH, np.array([1, 1, np.nan, 1, 1]), None, r"drop\[2\] is nan"),
        (MATCH, DROP, [1, 2, -np.inf], r"skip\[2\] is -inf \(step '3'\)"),
        ("text", DROP, None, "match must hold real numbers"),
        ([[1, 2], [3]], DROP, None, "match cannot be read as an array"),
    ],
)
def test_bad_arrays(match: object, drop: object, skip: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        g2v.align(SALAD, match, drop, skip)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "unknown method 'magic'"),
        ({"backend": "magic"}, "unknown backend 'magic'"),
        ({"workers": 0}, "workers must be"),
        ({"memory_limit": 0}, "memory_limit must be"),
    ],
)
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        g2v.align(SALAD, MATCH, DROP, **options)  # type: ignore[arg-type]


INF = np.inf


@pytest.mark.parametrize(
    ("match", "drop", "skip", "message"),
    [
        (MATCH[:, :2], DROP[:2], None, "2 clips, but 3 steps"),
        (np.vstack([MATCH[:2], np.full(5, INF)]), DROP, None, r"step '3' \(mix\) must be shown, but no clip"),
        (
            np.where(np.arange(5) == 3, INF, MATCH),
            np.where(np.arange(5) == 3, INF, DROP),
            None,
            "clip 3 can be neither",
        ),
        (
            np.array([[INF, INF, INF, INF, 1], [0, 0, 0, 0, 0], [0, 0, 0, 0, INF]]),
            DROP,
            None,
            r"'3' \(mix\) is allowed only up to clip 3, but steps '1' \(cut tomato\), '2' .* until clip 5",
        ),
        (
            np.array([[0, INF, INF], [0, INF, INF], [0, 0, 0]]),
            DROP[:3],
            None,
            "need a clip each, but are allowed in only 1",
        ),
    ],
)
def test_why_there_is_no_alignment(match: object, drop: object, skip: object, message: str, backend: str) -> None:
    with pytest.raises(InfeasibleError, match=message):
        g2v.align(SALAD, match, drop, skip, backend=backend)
    with pytest.raises(InfeasibleError, match=message):
        g2v.posterior(SALAD, match, drop, skip, backend=backend)


def test_align_many_is_align_for_each(backend: str) -> None:
    rng = np.random.default_rng(4)
    chain = g2v.FlowGraph.chain([str(i) for i in range(5)])
    flows = [SALAD, chain, g2v.TSortGraph.compile(chain)] * 9
    sizes = rng.integers(5, 90, len(flows))
    matches = [
        rng.integers(0, 9, (5 if i % 3 else 3, n)).astype(np.float32 if i % 2 else np.float64)
        for i, n in enumerate(sizes)
    ]
    drops = [rng.integers(0, 9, n).astype(float) for n in sizes]
    skips = [None if i % 4 else 2.0 for i in range(len(flows))]
    told: list[tuple[int, int]] = []
    many = g2v.align_many(flows, matches, drops, skips, backend=backend, progress=lambda *x: told.append(x))
    assert told[-1] == (len(flows), len(flows))
    for flow, match, drop, skip, found in zip(flows, matches, drops, skips, many, strict=True):
        alone = g2v.align(flow, match, drop, skip, backend=backend)
        assert found.cost == alone.cost
        assert found.labels.tolist() == alone.labels.tolist()


def test_align_many_names_the_video() -> None:
    with pytest.raises(InputError, match="video 1: drop has shape"):
        g2v.align_many(SALAD, [MATCH, MATCH], [DROP, DROP[:3]])
    with pytest.raises(InfeasibleError, match="video 1: no alignment is possible: the video has 2 clips"):
        g2v.align_many(SALAD, [MATCH, MATCH[:, :2]], [DROP, DROP[:2]])
    with pytest.raises(InputError, match="drops has 1 entries, but matches has 2"):
        g2v.align_many(SALAD, [MATCH, MATCH], [DROP])
    assert g2v.align_many(SALAD, [], []) == []


def test_memory_is_bounded_and_refused_in_words() -> None:
    flow = g2v.FlowGraph.bag([str(i) for i in range(9)])
    rng = np.random.default_rng(0)
    match, drop = rng.integers(0, 9, (9, 400)).astype(float), np.full(400, 2.0)
    full = g2v.align(flow, match, drop)
    for backend in backends.BACKENDS if backends.native() else ("reference",):
        low = g2v.align(flow, match, drop, memory_limit=3 << 20, backend=backend)
        assert low.cost == full.cost
        assert low.labels.tolist() == full.labels.tolist()
        with pytest.raises(
            TooLargeError, match=r"512 ideals and 2,304 states, and 400 clips, need .*iB; .*use cost_only"
        ):
            g2v.align(flow, match, drop, memory_limit=1000, backend=backend)
    with pytest.raises(TooLargeError, match=r"the bound is 1\.0 KiB"):
        g2v.posterior(flow, match, drop, memory_limit=1000)
    with pytest.raises(TooLargeError, match="topological sorts"):
        g2v.align(flow, match, drop, method="brute", brute_limit=1000)


def test_posterior_of_a_salad(backend: str) -> None:
    p = g2v.posterior(SALAD, MATCH, DROP, gamma=0.05, backend=backend)
    best = g2v.align(SALAD, MATCH, DROP)
    assert p.probability.shape == (4, 5)
    assert np.allclose(p.probability.sum(axis=0), 1)
    assert p.cost <= best.cost
    assert p.probability.argmax(axis=0).tolist() == [1, 3, 0, 0, 2]
    assert all(p.confidence(segment) > 0.9 for segment in best.segments)


@pytest.mark.parametrize("gamma", [0, -1, np.inf, np.nan, "1"])
def test_bad_gamma(gamma: object) -> None:
    with pytest.raises(InputError, match="gamma must be"):
        g2v.posterior(SALAD, MATCH, DROP, gamma=gamma)  # type: ignore[arg-type]


def test_many_threads_may_share_a_procedure() -> None:
    tsort = g2v.TSortGraph.compile(g2v.FlowGraph.bag([str(i) for i in range(7)]))
    rng = np.random.default_rng(1)
    problems = [(rng.integers(0, 9, (7, 60)).astype(float), np.full(60, 3.0)) for _ in range(16)]
    expected = [g2v.align(tsort, *problem, backend="reference").labels.tolist() for problem in problems]
    found: list[list[int] | None] = [None] * 16

    def work(i: int) -> None:
        found[i] = g2v.align(tsort, *problems[i]).labels.tolist()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def test_results_can_be_pickled() -> None:
    a = pickle.loads(pickle.dumps(g2v.align(SALAD, MATCH, DROP)))
    assert a.labels.tolist() == [1, -1, 0, 0, 2]
    assert repr(a) == "Alignment(cost=7, 3 of 3 steps shown)"


def test_costs_that_overflow_are_refused() -> None:
    with pytest.raises(InputError, match="overflow float64"):
        g2v.align(SALAD, np.full((3, 5), -1e308), 0.0)
    with pytest.raises(InputError, match="overflow float32"):
        g2v.align(SALAD, np.full((3, 5), 3e38, np.float32), np.inf)
    with pytest.raises(InputError, match="drop holds numbers too large for float32"):
        g2v.align(SALAD, MATCH.astype(np.float32), 1e300)
    with pytest.raises(InputError, match="gamma=1e-09 is lost in the rounding"):
        g2v.posterior(SALAD, np.full((3, 5), 1e305), DROP, gamma=1e-9)


@pytest.mark.parametrize("flow", ["a flow", None, 3])
def test_what_is_no_procedure(flow: object) -> None:
    with pytest.raises(InputError, match="must be a FlowGraph or a TSortGraph, not"):
        g2v.align(flow, MATCH, DROP)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must be a FlowGraph or a TSortGraph, not"):
        g2v.posterior(flow, MATCH, DROP)  # type: ignore[arg-type]


def test_align_many_takes_one_number_for_all() -> None:
    many = g2v.align_many(SALAD, (MATCH for _ in range(3)), 3.0, 4.0)
    assert [a.cost for a in many] == [7, 7, 7]


def test_labels_cannot_be_written(backend: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        g2v.align(SALAD, MATCH, DROP, backend=backend).labels[0] = 2


def test_expected_begin_and_end_are_those_of_all_alignments(backend: str) -> None:
    gamma, skip = 1.5, np.array([np.inf, 2.0, 1.0])
    weights, spans = [], []
    for labels in itertools.product(range(-1, 3), repeat=5):
        places = [[clip for clip, label in enumerate(labels) if label == step] for step in range(3)]
        if any(shown and shown != list(range(shown[0], shown[-1] + 1)) for shown in places) or not places[0]:
            continue
        if places[2] and any(before and before[0] > places[2][0] for before in places[:2]):
            continue
        cost = sum(DROP[clip] if label < 0 else MATCH[label, clip] for clip, label in enumerate(labels))
        cost += sum(skip[step] for step in range(3) if not places[step])
        weights.append(np.exp(-cost / gamma))
        spans.append([(shown[0], shown[-1] + 1) if shown else (np.nan, np.nan) for shown in places])
    found = g2v.posterior(SALAD, MATCH, DROP, skip, gamma=gamma, backend=backend)
    assert found.cost == pytest.approx(-gamma * np.log(np.sum(weights)))
    for step in range(3):
        of_step = np.array(spans)[:, step]
        shown = ~np.isnan(of_step[:, 0])
        mean = np.average(of_step[shown], axis=0, weights=np.array(weights)[shown])
        assert found.expected[step] == pytest.approx(mean)


def test_only_unbroken_steps_have_one_end(backend: str) -> None:
    with pytest.raises(InputError, match="unbroken"):
        _ = g2v.posterior(SALAD, MATCH, DROP, contiguous=False, backend=backend).expected


def test_edges_up_to_even_odds_cost_nothing_and_are_left_out() -> None:
    soft = g2v.FlowGraph.from_edges(["a", "b", "c"], [(0, 1, 0.3), (1, 2)])
    match = np.array([[9.0, 0.0, 9.0], [0.0, 9.0, 9.0], [9.0, 9.0, 0.0]])
    found = g2v.Problem(soft, match, np.full(3, 5.0)).align()
    assert found.cost == 0 and found.labels.tolist() == [1, 0, 2]
    assert not g2v.Problem(soft, match, np.full(3, 5.0)).is_extended
    assert g2v.Problem(soft, match, np.full(3, 5.0), violation=np.inf).align().cost > 0
