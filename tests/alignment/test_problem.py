"""One object asks everything; the functions are one line each, and old argument names still work."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import graph2vid as g2v
from graph2vid.alignment import Durations, margins
from graph2vid.errors import InfeasibleError, InputError

FLOW = g2v.FlowGraph.from_edges(["cut tomato", "cut cucumber", "mix"], [(0, 2, 0.8), (1, 2)])
RANDOM = np.random.default_rng(0)
MATCH, DROP = RANDOM.random((3, 12)), np.full(12, 0.4)

QUESTIONS: dict[str, dict[str, Any]] = {
    "plain": {"violation": np.inf},
    "skips": {"violation": np.inf, "skip": [1.0, 2.0, np.inf]},
    "background inside": {"violation": np.inf, "contiguous": False},
    "soft precedence": {},
    "repeats": {"repeat": 0.2, "skip": 1.0},
    "durations": {"durations": Durations.log_normal([2.0, 2.0, 3.0], [0.5, 0.5, 0.5])},
    "constraints": {"constraints": [g2v.Constraint("within", 0, 2, 6)]},
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_all_answers_are_those_of_the_functions(name: str) -> None:
    question = QUESTIONS[name]
    problem = g2v.Problem(FLOW, MATCH, DROP, **question)
    best = problem.align()
    assert best.labels.tolist() == g2v.align(FLOW, MATCH, DROP, **question).labels.tolist()
    assert (
        problem.posterior(0.5).probability == g2v.posterior(FLOW, MATCH, DROP, gamma=0.5, **question).probability
    ).all()
    assert [one.cost for one in problem.k_best(3)] == [
        one.cost for one in g2v.k_best(FLOW, MATCH, DROP, k=3, **question)
    ]
    assert problem.k_best(1)[0].cost == pytest.approx(best.cost)
    assert problem.margins().tolist() == margins(FLOW, MATCH, DROP, found=best, **question).tolist()
    assert problem.margins(best, workers=1).shape == (len(best.segments),)


def test_it_is_short_to_read() -> None:
    assert repr(g2v.Problem(FLOW, MATCH, DROP)) == "Problem(3 steps, 12 clips)"
    assert (
        repr(g2v.Problem(FLOW, MATCH, DROP, repeat=1, durations=2)) == "Problem(3 steps, 12 clips, repeat, durations)"
    )
    assert "contiguous=False" in repr(g2v.Problem(FLOW, MATCH, DROP, violation=np.inf, contiguous=False))


def test_it_is_checked_once() -> None:
    with pytest.raises(InputError, match="need contiguous=True"):
        g2v.Problem(FLOW, MATCH, DROP, repeat=1.0, contiguous=False)
    with pytest.raises(InputError, match="violation must be a number of at least 0"):
        g2v.Problem(FLOW, MATCH, DROP, violation=-1.0)
    impossible = g2v.Problem(FLOW, np.full((3, 4), np.inf), 1.0)
    for answer in (impossible.align, impossible.posterior, impossible.k_best, impossible.margins):
        with pytest.raises(InfeasibleError, match="no clip is allowed there"):
            answer()


def test_of_another_video_it_is_as_if_made_anew() -> None:
    random = np.random.default_rng(1)
    match, drop = random.random((3, 9)), random.random(9)
    first = g2v.Problem(FLOW, MATCH, DROP, repeat=0.1, durations=2)
    found, wanted = first.of_video(match, drop).align(), g2v.align(FLOW, match, drop, repeat=0.1, durations=2)
    assert found.cost == wanted.cost and found.labels.tolist() == wanted.labels.tolist()
    with pytest.raises(InputError, match=r"match\[1, 2\] is nan"):
        first.of_video(np.where(np.arange(27).reshape(3, 9) == 11, np.nan, match), drop)


def test_no_alternative_is_infinitely_worse() -> None:
    spare = g2v.Problem(g2v.FlowGraph.chain(["a", "b"]), np.zeros((2, 2)), 1.0).margins()
    assert spare.tolist() == [np.inf, np.inf]


def test_old_argument_names_work_and_warn() -> None:
    def stream(**options: Any) -> float:
        return g2v.Stream(FLOW, **options)._problem.arc.sum()

    calls: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
        (lambda **o: g2v.align(FLOW, MATCH, DROP, **o).cost, {"breaking": 3.0}, {"violation": 3.0}),
        (lambda **o: g2v.align(FLOW, MATCH, DROP, **o).cost, {"threads": 1}, {"workers": 1}),
        (lambda **o: g2v.align_many(FLOW, [MATCH], [DROP], **o)[0].cost, {"threads": 1}, {"workers": 1}),
        (lambda **o: g2v.posterior(FLOW, MATCH, DROP, **o).cost, {"breaking": 0.5}, {"violation": 0.5}),
        (lambda **o: g2v.k_best(FLOW, MATCH, DROP, **o)[0].cost, {"breaking": 0.5}, {"violation": 0.5}),
        (lambda **o: margins(FLOW, MATCH, DROP, **o).sum(), {"breaking": 0.5, "threads": 1}, {"violation": 0.5}),
        (stream, {"breaking": 2.0}, {"violation": 2.0}),
    ]
    for call, old, new in calls:
        with pytest.warns(DeprecationWarning, match=f"is called '{next(iter(new))}' now"):
            found = call(**old)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert found == call(**new)
