"""Corrections: those that contradict others are refused, and the aligner keeps to every one of them."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dags import dags

pytest.importorskip("pydantic", reason="the extra [studio] is not installed")

from graph2vid.errors import FormatError, InfeasibleError, InputError
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding, ground
from graph2vid.studio import corrections as correcting
from graph2vid.studio.corrections import ContradictionError, Correction, usable, with_correction

INF = math.inf


@st.composite
def corrections(draw: st.DrawFn, ids: tuple[str, ...], clips: int) -> Correction:
    kind: Any = draw(st.sampled_from(["exact", "show", "within", "forbid", "background"]))
    start = draw(st.integers(0, clips - 1))
    end = draw(st.integers(start + 1, clips))
    step = None if kind == "background" else draw(st.sampled_from(ids))
    return Correction(kind, step, float(start), float(end))


def all_of(added: list[Correction]) -> tuple[Correction, ...]:
    known: tuple[Correction, ...] = ()
    for correction in added:
        with contextlib.suppress(ContradictionError):
            known = with_correction(known, correction)
    return known


def honours(found: Grounding, correction: Correction) -> bool:
    """Whether a grounding with clips of one second does what a correction says."""
    inside = [j for j in range(len(found.labels)) if correction.start <= j + 0.5 < correction.end]
    labels = found.labels[inside]
    if correction.kind == "background":
        return bool((labels == -1).all())
    assert correction.step is not None
    step = found.flow.index(correction.step)
    shown = np.flatnonzero(found.labels == step).tolist()
    if correction.kind == "forbid":
        return not set(shown) & set(inside)
    if correction.kind == "within":
        return bool(shown) and set(shown) <= set(inside)
    if correction.kind == "exact":
        (segment,) = found.segments_of(step)
        return shown == inside and (segment.start, segment.end) == (correction.start, correction.end)
    return set(inside) <= set(shown)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_aligner_keeps_to_every_correction(data: st.DataObject) -> None:
    flow = data.draw(dags(max_steps=5))
    clips = data.draw(st.integers(len(flow), 14))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    known = all_of(data.draw(st.lists(corrections(flow.ids, clips), max_size=4)))
    constraints = [constraint for correction in known for constraint in correction.constraints(flow)]
    try:
        found = ground(
            flow, scores=rng.normal(size=(len(flow), clips)), skip=1.0, constraints=constraints, confidence=False
        )
    except InfeasibleError:
        return  # the order of the procedure forbids it, or two pins leave no room
    assert all(honours(found, correction) for correction in known)


@given(st.lists(corrections(("a", "b", "c"), 12), max_size=8))
@settings(max_examples=60, deadline=None)
def test_no_clip_is_told_two_things(added: list[Correction]) -> None:
    known = all_of(added)
    for clip in range(12):
        here = [c for c in known if c.start <= clip < c.end]
        filling = {c.step for c in here if c.kind in ("exact", "show")}
        assert len(filling) <= 1
        assert not (filling and any(c.kind == "background" for c in here))
        assert not any(c.kind == "forbid" and c.step in filling for c in here)
    for step in "abc":
        assert sum(c.kind in ("exact", "show", "within") for c in known if c.step == step) <= 1


def test_what_contradicts_another_correction_is_refused_and_names_it() -> None:
    flow = FlowGraph.from_edges([("a", "Cut the onion."), ("b", "Fry it."), ("c", "Toast the bread.")], [("a", "b")])
    known = with_correction((), Correction("background", None, 50, 60), flow)
    known = with_correction(known, Correction("exact", "a", 10, 20), flow)
    refused = {
        Correction("exact", "c", 15, 25): (
            1,
            r"it cannot be that step 3 \(Toast the bread\) is exactly 0:15.0 – 0:25.0: you said that "
            r"step 1 \(Cut the onion\) is exactly 0:10.0 – 0:20.0",
        ),
        Correction("show", "c", 55, 58): (0, "you said that no step is shown in 0:50.0 – 1:00.0"),
        Correction("background", None, 12, 14): (1, "you said that step 1"),
        Correction("exact", "b", 2, 8): (1, "step 1 must be finished before step 2 begins, and you said that step 1"),
        Correction("within", "b", 0, 9): (1, "step 1 must be finished before step 2 begins"),
    }  # fmt: skip
    for new, (other, words) in refused.items():
        with pytest.raises(ContradictionError, match=words) as refusal:
            with_correction(known, new, flow)
        assert refusal.value.other == other
    for new in (Correction("exact", "c", 20, 25), Correction("exact", "b", 20, 30), Correction("forbid", "b", 0, 90)):
        assert with_correction(known, new, flow)[-1] == new


def test_a_correction_of_a_step_takes_the_place_of_older_ones() -> None:
    known = with_correction((Correction("exact", "b", 8, 14),), Correction("exact", "b", 30, 34))
    assert known == (Correction("exact", "b", 30, 34),)
    assert with_correction(known, Correction("forbid", "b", -INF, INF)) == (Correction("forbid", "b", -INF, INF),)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "maybe", "step": "a"}, "unknown correction 'maybe'"),
        ({"kind": "forbid"}, "names a step"),
        ({"kind": "background", "step": "a", "start": 0, "end": 1}, "names a step"),
        ({"kind": "forbid", "step": "a", "start": 5, "end": 5}, "end after it begins"),
        ({"kind": "forbid", "step": "a", "start": "x"}, "must be a number"),
        ({"kind": "forbid", "step": 3}, "the id of a step"),
        ({"kind": "exact", "step": "a", "start": 3}, "both its start and its end"),
        ({"kind": "forbid", "step": "a", "start": math.nan}, "must be a number"),
        ([], "must be an object"),
    ],
)
def test_what_is_no_correction(given: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        Correction.from_json(given)


def test_json_and_words() -> None:
    known = all_of(
        [Correction("exact", "a", 3, 5), Correction("forbid", "b", -INF, INF), Correction("background", None, 60, INF)]
    )
    assert correcting.from_json(correcting.to_json(known), "test") == known
    assert [correction.words for correction in known] == [
        "exactly 0:03.0 – 0:05.0",
        "not shown at all",
        "none in 1:00.0 – the end",
    ]


def test_corrections_of_steps_that_are_gone_are_kept_apart() -> None:
    flow = FlowGraph.bag([("a", "cut")])
    known = [Correction("forbid", "a", 0, 1), Correction("forbid", "b", 0, 1), Correction("background", None, 0, 1)]
    assert usable(known, flow) == [known[0], known[2]]


def test_there_is_an_end_to_corrections() -> None:
    known = tuple(Correction("forbid", "a", float(number), number + 1.0) for number in range(correcting.MOST))
    with pytest.raises(InputError, match="remove some first"):
        with_correction(known, Correction("forbid", "b", 0, 1))
