"""Branches of a network side by side."""

from __future__ import annotations

import threading

import pytest

from graph2vid.text.learned.parallel import side_by_side


@pytest.fixture(autouse=True)
def several_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graph2vid.text.learned.parallel.cpu_count", lambda: 2)


def test_results_come_in_the_order_of_the_items() -> None:
    meet = threading.Barrier(3, timeout=10)  # all are under way at the same time

    def squared(number: int) -> int:
        meet.wait()
        return number * number

    assert side_by_side(squared, (1, 2, 3)) == [1, 4, 9]
    assert side_by_side(str, (1,)) == ["1"]
    assert side_by_side(str, ()) == []


@pytest.mark.parametrize("bad", [0, 1])
def test_errors_come_through(bad: int) -> None:
    def fail_at(number: int) -> None:
        if number == bad:
            raise ValueError(f"number {number}")

    with pytest.raises(ValueError, match=f"number {bad}"):
        side_by_side(fail_at, (0, 1))
