"""Flow graphs over instructions, carried over to steps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph2vid.datasets import onto_steps
from graph2vid.flow import FlowGraph


def project(n: int, edges: list[tuple[int, int]], correspondence: list[list[int]]) -> tuple[tuple[int, int], ...]:
    flow = FlowGraph.from_edges([str(i) for i in range(n)], edges)
    return onto_steps(flow, correspondence, [f"step {i}" for i in range(len(correspondence))]).edges


@pytest.mark.parametrize(
    ("edges", "correspondence", "expected"),
    [
        ([(0, 1), (1, 2)], [[2], [0]], ((1, 0),)),  # through an instruction of no step
        ([(0, 1), (1, 2)], [[0], [1], [2]], ((0, 1), (1, 2))),  # reduced
        ([(0, 1), (1, 2)], [[0], [], [2]], ((0, 2),)),  # a step without instruction is free
        ([(0, 1)], [[0], [0], [1]], ((0, 2), (1, 2))),  # steps that share their instruction
        ([(0, 1), (1, 2)], [[0, 2], [1]], ()),  # both ways
        ([(0, 2)], [[0, 1], [2]], ((0, 1),)),  # one of two instructions is enough
        # 0 before 1 by (0, 1), 1 before 2 by (2, 3), 2 before 0 by (4, 5): the last pair closes the cycle
        ([(0, 1), (2, 3), (4, 5)], [[0, 5], [1, 2], [3, 4]], ((0, 1), (1, 2))),
    ],
)
def test_by_hand(
    edges: list[tuple[int, int]], correspondence: list[list[int]], expected: tuple[tuple[int, int], ...]
) -> None:
    assert project(6, edges, correspondence) == expected


@settings(deadline=None)
@given(st.data())
def test_one_instruction_per_step_keeps_every_precedence(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 7))
    pairs = [(a, b) for b in range(n) for a in range(b)]
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    order = data.draw(st.permutations(range(n)))
    flow = FlowGraph.from_edges([str(i) for i in range(n)], edges)
    steps = onto_steps(flow, [[instruction] for instruction in order], [str(i) for i in range(n)])
    for one in range(n):
        for other in range(n):
            assert (steps.descendants[one] >> other & 1) == (flow.descendants[order[one]] >> order[other] & 1)
