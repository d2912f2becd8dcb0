"""Repeats, alternatives, soft precedence and durations: known answers, the plain kernels on larger cases, bad input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from dags import dags
from graph2vid.alignment import (
    Constraint,
    Durations,
    Problem,
    align,
    align_many,
    automata,
    backends,
    many,
    posterior,
    solve_side_by_side,
)
from graph2vid.errors import InfeasibleError, InputError, TooLargeError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph
from graph2vid.tsort.automaton import Automaton

ABC = ["a", "b", "c"]
BACKENDS = [
    "reference",
    pytest.param("native", marks=pytest.mark.skipif(backends.native() is None, reason="kernels are not built")),
]


def costs_of(labels: list[int], n_steps: int, height: float = 4.0) -> tuple[Any, Any]:
    """Costs of a video that shows just this: 0 where it does, else ``height``; background likewise."""
    match = np.full((n_steps, len(labels)), height)
    drop = np.full(len(labels), height)
    for clip, label in enumerate(labels):
        (drop if label < 0 else match[label])[clip] = 0.0
    return match, drop


@pytest.mark.parametrize("backend", BACKENDS)
def test_repeats_are_segments_of_their_own(backend: str) -> None:
    shown = [0, 0, 1, 0, 0, -1, 0, 2]
    flow = FlowGraph.chain(ABC)
    found = align(flow, *costs_of(shown, 3), repeat=1.5, backend=backend)
    assert found.labels.tolist() == shown
    assert found.cost == 3.0
    assert [segment.step for segment in found.segments] == [0, 1, 0, 0, 2]
    assert found.order == (0, 1, 2)
    assert align(flow, *costs_of(shown, 3), backend=backend).labels.tolist() != shown


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_waived_step_shown_later_costs_its_skip_and_a_repeat(backend: str) -> None:
    shown = [1, 1, 0, 2]
    found = align(FlowGraph.chain(ABC), *costs_of(shown, 3), skip=[2.0, 9.0, 9.0], repeat=1.0, backend=backend)
    assert found.labels.tolist() == shown
    assert found.cost == 3.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_branch_is_done_and_optional_steps_are_free(backend: str) -> None:
    flow = FlowGraph.from_edges(
        [(name, name) for name in ("cut", "fry", "boil", "drain", "serve")],
        [(0, 1), (0, 2), (2, 3), (1, 4), (3, 4)],
        optional=["cut", "serve"],
        alternatives=[[1, [2, 3]]],
    )
    for shown in ([1, 4], [2, 2, 3, 4], [2, 3], [0, 1]):
        found = align(flow, *costs_of(shown, 5), backend=backend)
        assert (found.labels.tolist(), found.cost) == (shown, 0.0)
    cost = align(flow, *costs_of([2, 1, 3], 5), backend=backend).cost
    assert cost > 0  # never both branches
    with pytest.raises(InfeasibleError):  # neither branch can be done, and "serve" alone is optional
        align(replace(flow, optional=(4,)), *costs_of([0], 5), backend=backend)
    pinned = align(flow, *costs_of([2, 3, 4, 1], 5), constraints=[Constraint("within", 1, 0, 4)], backend=backend)
    assert set(pinned.order) <= {0, 1, 4} and 1 in pinned.order


@pytest.mark.parametrize("backend", BACKENDS)
def test_soft_edges_are_violated_for_their_log_odds(backend: str) -> None:
    flow = FlowGraph.from_edges(ABC, [(0, 1, 0.75), (1, 2)])
    match, drop = costs_of([1, 0, 2], 3)
    found = align(flow, match, drop, backend=backend)
    assert found.labels.tolist() == [1, 0, 2]
    assert found.cost == pytest.approx(np.log(3))
    assert align(flow, match, drop, violation=0.0, backend=backend).cost == 0.0
    certain = FlowGraph.chain(ABC)
    assert align(flow, match, drop, violation=np.inf, backend=backend).cost == align(certain, match, drop).cost


@pytest.mark.parametrize("backend", BACKENDS)
def test_segments_have_their_least_length(backend: str) -> None:
    match, drop = costs_of([0, 1, 1, 1, 1, 2], 3)
    found = align(FlowGraph.chain(ABC), match, drop, durations=2, backend=backend)
    assert found.labels.tolist() == [0, 0, 1, 1, 2, 2]
    given = Durations(np.array([[0.0, 9.0], [9.0, 0.0], [0.0, 9.0]]), np.array([9.0, 9.0, 9.0]))
    found = align(FlowGraph.chain(ABC), match, drop, durations=given, backend=backend)
    assert found.labels.tolist() == [0, 1, 1, -1, -1, 2]  # the smallest among equals, read from the end


LARGER = {
    "threads": FlowGraph.from_edges([str(i) for i in range(9)], [(i, i + 1) for i in range(8) if i % 3 != 2]),
    "bag": FlowGraph.bag([str(i) for i in range(8)]),
    "chain of 70": FlowGraph.chain([str(i) for i in range(70)]),
}


@pytest.mark.skipif(backends.native() is None, reason="the compiled kernels are not built")
@pytest.mark.parametrize("name", LARGER)
@pytest.mark.parametrize("skips", [False, True])
def test_an_automaton_without_features_is_the_plain_alignment(name: str, skips: bool) -> None:
    flow, random = LARGER[name], np.random.default_rng(7)
    match = random.integers(0, 9, (len(flow), 90)).astype(float)
    drop = random.integers(0, 5, 90).astype(float)
    match[random.random(match.shape) < 0.05] = np.inf
    skip = random.integers(-1, 9, len(flow)).astype(float) if skips else None
    plain = align(flow, match, drop, skip)
    for longest in (1, 7):  # a table of lengths that says nothing must change nothing
        free = Durations(np.zeros((len(flow), longest)), np.zeros(len(flow)))
        found = align(flow, match, drop, skip, durations=free)
        assert found.cost == plain.cost
        assert found.labels.tolist() == plain.labels.tolist()
        soft, plain_soft = posterior(flow, match, drop, skip, durations=free), posterior(flow, match, drop, skip)
        assert soft.cost == pytest.approx(plain_soft.cost, rel=1e-12)
        assert np.abs(soft.probability - plain_soft.probability).max() < 1e-9


@settings(deadline=None, max_examples=40)
@given(dags(max_steps=7))
def test_the_automaton_of_a_plain_procedure_is_its_tsort_graph(flow: FlowGraph) -> None:
    automaton, tsort = Automaton.compile(flow, 0, 0), TSortGraph.compile(flow)
    assert (automaton.n_nodes, automaton.n_states) == (tsort.n_ideals, tsort.n_states)
    assert automaton.state_step.tolist() == tsort.state_step.tolist()
    assert automaton.arc_from.tolist() == tsort.state_from.tolist()


@pytest.mark.skipif(backends.native() is None, reason="the compiled kernels are not built")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("durations", [None, 3])
def test_workers_change_nothing(dtype: Any, durations: int | None) -> None:
    flow = FlowGraph.from_edges([str(i) for i in range(9)], [(0, 1), (2, 3), (4, 5, 0.8)], alternatives=[[[6], [7, 8]]])
    random = np.random.default_rng(1)
    match = random.normal(size=(9, 70)).astype(dtype)
    match[random.random(match.shape) < 0.05] = np.inf
    problem = Problem(flow, match, dtype(0.3), 2.0, 1.5, durations)
    one, two = problem.align(workers=1), problem.align(workers=2)
    assert one.cost == two.cost and one.labels.tolist() == two.labels.tolist()
    assert one.options["dtype"] == np.dtype(dtype).name
    assert one.cost == pytest.approx(problem.align(cost_only=True).cost)
    soft, other = problem.posterior(workers=1), problem.posterior(workers=2)
    assert soft.cost == other.cost and (soft.probability == other.probability).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_single_precision_is_computed_in_single_precision(backend: str) -> None:
    """The sum of three costs that float64 tells from 1 and float32 does not."""
    match, drop = np.array([[1.0, 1e-9, 1e-9]], np.float32), np.full(3, 5.0, np.float32)
    flow = FlowGraph.chain(["a"])
    single = align(flow, match, drop, durations=2, backend=backend)
    assert (single.cost, single.options["dtype"]) == (1.0, "float32")
    double = align(flow, match.astype(np.float64), drop, durations=2, backend=backend)
    assert double.cost > 1.0 and double.options["dtype"] == "float64"


@pytest.mark.parametrize("backend", BACKENDS)
def test_single_precision_is_widened_where_it_tells_nothing_apart(backend: str) -> None:
    match = np.full((1, 6), 3e6, np.float32)
    match[0, 2:4] -= 0.25
    found = align(FlowGraph.chain(["a"]), match, 3e6, durations=2, backend=backend)
    assert found.options["dtype"] == "float64" and found.labels.tolist() == [-1, -1, 0, 0, -1, -1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_expected_times_with_durations(backend: str) -> None:
    """Of the alignments that show a step; against the labels of a posterior that is all but certain."""
    shown = [0, 0, -1, 1, 1, 1, 2, 2, -1]
    flow = FlowGraph.from_edges(ABC, [(0, 1, 0.9), (1, 2)])
    problem = Problem(flow, *costs_of(shown, 3), durations=2)
    assert problem.posterior(0.05, backend=backend).expected == pytest.approx(
        np.array([[0, 2], [3, 6], [6, 8]]), abs=1e-6
    )
    soft = problem.posterior(2.0, backend=backend)
    assert soft.start is not None and soft.start.sum(axis=1) == pytest.approx(1.0)
    again = Problem(flow, *costs_of(shown, 3), repeat=1.0).posterior(backend=backend)
    with pytest.raises(InputError, match="one unbroken"):
        _ = again.expected


def test_many_videos_are_as_each_alone() -> None:
    random = np.random.default_rng(3)
    flow = FlowGraph.from_edges(ABC, [(0, 2, 0.9), (1, 2)])
    plain = FlowGraph.chain(ABC)
    matches = [random.random((3, n)) for n in (12, 7, 9)]
    drops = [np.full(match.shape[1], 0.3) for match in matches]
    found = align_many([flow, plain, flow], matches, drops, 1.0, repeats=[None, None, 0.2], durations=[2, None, None])
    alone = [
        align(flow, matches[0], drops[0], 1.0, durations=2),
        align(plain, matches[1], drops[1], 1.0),
        align(flow, matches[2], drops[2], 1.0, repeat=0.2),
    ]
    for one, other in zip(found, alone, strict=True):
        assert one.cost == other.cost
        assert one.labels.tolist() == other.labels.tolist()


@pytest.mark.skipif(backends.native() is None, reason="the compiled kernels are not built")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("durations", [None, 3, "prior"])
@pytest.mark.parametrize("number", [1, 2, 11])
@pytest.mark.parametrize("shared", [False, True])
def test_videos_side_by_side_are_as_each_alone_to_the_bit(
    dtype: Any, durations: Any, number: int, shared: bool
) -> None:
    flow = FlowGraph.from_edges([str(i) for i in range(8)], [(0, 1), (2, 3), (4, 5, 0.8)], alternatives=[[[6], [7]]])
    random = np.random.default_rng(number)
    if durations == "prior":
        durations = Durations.log_normal(random.uniform(2, 6, 8), np.full(8, 0.5))
    problems = {}
    for i in range(number):
        match = random.normal(size=(8, int(random.integers(20, 90)))).astype(dtype)
        match[random.random(match.shape) < 0.05] = np.inf
        drop, skip, repeat = dtype(random.random()), random.random(8), random.random(8)
        if shared and problems:
            problems[i] = problems[0].of_video(match, drop, problems[0].costs.skip)
        else:
            problems[i] = Problem(flow, match, drop, skip, repeat, durations)
    resources = backends.Resources.check(workers=1)
    found = {i: one for some in solve_side_by_side(problems, False, resources, 0.7) for i, one in some.items()}
    assert found.keys() == problems.keys()
    for i, one in found.items():
        alone, soft = problems[i].align(), problems[i].posterior(0.7)
        assert one.cost == alone.cost and one.labels.tolist() == alone.labels.tolist()  # type: ignore[union-attr]
        assert one.soft is not None and one.soft.cost == soft.cost
        assert (one.soft.probability == soft.probability).all()


@pytest.mark.skipif(backends.native() is None, reason="the compiled kernels are not built")
def test_what_videos_share_is_worked_out_for_the_longest_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(problem: Problem, *given: Any, **options: Any) -> automata.AutomatonProblem:
        asked.append(len(problem.costs.drop))
        return automata.automaton_problem(problem, *given, **options)

    monkeypatch.setattr(many, "automaton_problem", counted)
    first = Problem(FlowGraph.chain(ABC), np.zeros((3, 9)), 1.0, repeat=1.0)
    lengths = (9, 5, 12, 9, 12)
    problems = {i: first.of_video(np.zeros((3, length)), 1.0) for i, length in enumerate(lengths)}
    resources = backends.Resources.check(workers=1)
    (found,) = solve_side_by_side(problems, False, resources)
    assert [len(found[i].labels) for i in range(5)] == list(lengths)  # type: ignore[arg-type]
    assert asked == [9, 12]
    other = Problem(FlowGraph.chain(ABC), np.zeros((3, 9)), 1.0, repeat=2.0)
    (found,) = solve_side_by_side({0: first, 1: other, 2: first}, False, resources)
    assert found.keys() == {0, 1, 2} and asked == [9, 12, 9, 9]


@pytest.mark.skipif(backends.native() is None, reason="the compiled kernels are not built")
def test_a_video_too_long_for_all_soft_edges_does_not_keep_shorter_ones_from_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(many, "_fits", lambda *_: True)
    steps = [str(i) for i in range(10)]
    flow = FlowGraph.from_edges(steps, [(i, i + 1, 0.9 if i % 2 else 0.8) for i in range(9)])
    random = np.random.default_rng(0)
    problems = {i: Problem(flow, random.random((10, length)), 0.5) for i, length in enumerate((12, 40, 12, 40, 11))}
    (found,) = solve_side_by_side(problems, False, backends.Resources.check(workers=1, memory_limit=240_000))
    assert found.keys() == {0, 2, 4}
    assert all(one.cost == problems[i].align().cost for i, one in found.items())


@pytest.mark.skipif(backends.native() is None, reason="the compiled kernels are not built")
@pytest.mark.parametrize("longest", [9, 16, 17, 40])
def test_long_tables_of_lengths_are_those_of_the_reference(longest: int) -> None:
    """Blocks of lengths that cannot count are passed over, and sums that vanish are formed one by one."""
    random = np.random.default_rng(longest)
    flow = FlowGraph.from_edges(ABC, [(0, 2, 0.9)])
    match, drop = random.integers(0, 9, (3, 45)).astype(float), random.integers(0, 5, 45).astype(float)
    match[random.random(match.shape) < 0.04] = np.inf
    length = random.integers(0, 30, (3, longest)).astype(float)
    length[0, : longest // 2] = np.inf
    length[1, 2:-1] = 2000.0
    given = Problem(flow, match, drop, 9.0, 4.0, Durations(length, random.integers(0, 3, 3)))
    one, other = (given.align(backend=backend) for backend in ("native", "reference"))
    assert one.cost == other.cost and one.labels.tolist() == other.labels.tolist()
    for gamma in (0.05, 1.0, 30.0):
        soft, wanted = (given.posterior(gamma, backend=backend) for backend in ("native", "reference"))
        assert soft.cost == pytest.approx(wanted.cost, rel=1e-11)
        assert np.abs(soft.probability - wanted.probability).max() < 1e-9


def test_far_orders_are_left_out_where_the_memory_is_short() -> None:
    steps = [str(i) for i in range(10)]
    flow = FlowGraph.from_edges(steps, [(i, i + 1, 0.9 if i % 2 else 0.8) for i in range(9)])
    random = np.random.default_rng(0)
    match, drop = random.random((10, 12)), np.full(12, 0.5)
    whole = align(flow, match, drop, repeat=1.0)
    assert "displacement" not in whole.options
    short = align(flow, match, drop, repeat=1.0, memory_limit=57_500 + 8 * 20 * 600)  # one node, and the table
    assert 0 <= short.options["displacement"] < 9 and short.cost >= whole.cost
    with pytest.raises(TooLargeError, match="nodes"):
        align(
            FlowGraph.bag(steps), match, drop, repeat=1.0, memory_limit=57_500 + 8 * 20 * 600
        )  # one node, and the table


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeat": -1.0}, "repeat[0] is -1 (step '1'): the cost of a repeat is at least 0"),
        ({"repeat": [1.0, np.nan, 1.0]}, "repeat[1] is nan"),
        ({"repeat": [1.0, 2.0]}, "repeat has shape (2,)"),
        ({"repeat": "much"}, "repeat must be a cost"),
        ({"durations": 0}, "the least number of clips of a segment is a whole number of at least 1"),
        ({"durations": [1, 2]}, "one for each of the 3 steps"),
        ({"durations": Durations.least(2, 4)}, "durations are of 4 steps, but the procedure has 3"),
        ({"violation": -1}, "violation must be a number of at least 0"),
        ({"repeat": 1.0, "contiguous": False}, "need contiguous=True"),
        ({"durations": 2, "method": "brute"}, "method='brute' knows no repeats"),
    ],
)
def test_bad_input_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        align(FlowGraph.chain(ABC), np.zeros((3, 4)), np.zeros(4), **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("durations", "message"),
    [
        ([1, 5, 1], "step '2' (b) takes at least 5 clips, but the video has 4"),
        (2, "the 3 steps that must be shown take at least 6 clips together, but the video has 4"),
    ],
)
def test_segments_longer_than_the_video_are_named(durations: Any, message: str) -> None:
    with pytest.raises(InfeasibleError) as caught:
        align(FlowGraph.chain(ABC), np.zeros((3, 4)), np.zeros(4), durations=durations)
    assert message in str(caught.value)


def test_the_automaton_is_built_once() -> None:
    problem = Problem(FlowGraph.chain(ABC), np.zeros((3, 4)), 1.0, repeat=1.0)
    first = automata.automaton_problem(problem, problem.costs, None)
    again = automata.automaton_problem(problem, problem.costs, None)
    assert first.automaton is again.automaton


def test_costs_of_arcs_are_kept_as_long_as_they_are_the_same() -> None:
    def asked(repeat: float, skip: float, dtype: type) -> automata.AutomatonProblem:
        problem = Problem(FlowGraph.chain(ABC), np.zeros((3, 4), dtype), 1.0, skip, repeat=repeat)
        return automata.automaton_problem(problem, problem.costs, None)

    first = asked(1.0, 2.0, np.float32)
    assert asked(1.0, 2.0, np.float32).arc is first.arc
    for repeat, skip, dtype in [(1.0, 2.0, np.float64), (3.0, 2.0, np.float32), (1.0, 4.0, np.float32)]:
        other = asked(repeat, skip, dtype)
        assert other.automaton is first.automaton
        arc, end = other.automaton.costs(np.full(3, skip), np.full(3, repeat), np.zeros(0))
        np.testing.assert_array_equal(other.arc, arc.astype(dtype), strict=True)
        np.testing.assert_array_equal(other.end, end.astype(dtype), strict=True)
    np.testing.assert_array_equal(asked(1.0, 2.0, np.float32).arc, first.arc)


def test_how_much_memory_there_is_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20 steps there might be a million nodes; once the automaton is built, there are 21."""
    problem = Problem(FlowGraph.chain(list("abcdefghijklmnopqrst")), np.zeros((20, 30)), 1.0, repeat=1.0)
    asked = []
    monkeypatch.setattr(automata, "memory_bound", lambda limit: asked.append(limit) or 1 << 30)
    first = automata.automaton_problem(problem, problem.costs, None)
    assert automata.automaton_problem(problem, problem.costs, None).automaton is first.automaton
    assert len(asked) == 1
