"""What users see of the package: names without strays, docstrings, and short representations."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import graph2vid as g2v

PUBLIC = [name for name in g2v.__all__ if not name.startswith("_")]

FLOW = g2v.FlowGraph.from_edges(["cut tomato", "cut cucumber", "mix"], [(0, 2), (1, 2)], title="Salad")
MATCH = np.array([[9.0, 0.0, 9.0, 9.0], [0.0, 9.0, 9.0, 9.0], [9.0, 9.0, 9.0, 0.0]])
LARGE = g2v.FlowGraph.chain([f"step {number} of a long procedure" for number in range(200)])

# Of every public class, how to make one; small and large where the size may show.
MADE: Mapping[str, Callable[[], list[Any]]] = {
    "Alignment": lambda: [g2v.align(FLOW, MATCH, 1.0), g2v.align(LARGE, np.zeros((200, 1000)), 1.0)],
    "Constraint": lambda: [g2v.Constraint("within", 0, 2, 4)],
    "FlowGraph": lambda: [FLOW, LARGE],
    "Grounding": lambda: [g2v.ground(FLOW, scores=-MATCH)],
    "Posterior": lambda: [g2v.posterior(FLOW, MATCH, 1.0), g2v.posterior(LARGE, np.zeros((200, 300)), 1.0)],
    "Problem": lambda: [g2v.Problem(FLOW, MATCH, 1.0), g2v.Problem(LARGE, np.zeros((200, 300)), 1.0)],
    "Procedure": lambda: [g2v.parse("Cut the tomato. Mix.", "linear").procedure],
    "Step": lambda: [FLOW.steps[0]],
    "Stream": lambda: [g2v.Stream(FLOW, lag=2)],
    "TSortGraph": lambda: [g2v.TSortGraph.compile(FLOW), g2v.TSortGraph.compile(LARGE)],
}
ERRORS = {"Graph2VidError"}


def test_dir_shows_the_public_names_alone() -> None:
    assert [name for name in dir(g2v) if not name.startswith("__")] == sorted([*PUBLIC, "learn"])


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_have_a_docstring(name: str) -> None:
    thing = getattr(g2v, name)
    text = inspect.getdoc(thing) or ""
    assert text and text.splitlines()[0].endswith((".", ":")), text[:80]
    if inspect.isclass(thing):
        for inner, member in vars(thing).items():
            if not inner.startswith("_") and callable(member):
                assert inspect.getdoc(member), f"{name}.{inner}"


def test_every_public_class_is_looked_at() -> None:
    classes = {name for name in PUBLIC if inspect.isclass(getattr(g2v, name))}
    assert classes - ERRORS == {*MADE} & {*PUBLIC}


@pytest.mark.parametrize("name", [name for name in MADE if name in PUBLIC])
def test_representations_are_short(name: str) -> None:
    for thing in MADE[name]():
        check_representation(thing)


def check_representation(thing: Any) -> None:
    """Check that the representation of an object is one short line with its name and no address."""
    text = repr(thing)
    assert text.startswith(type(thing).__name__)
    assert "\n" not in text and len(text) <= 200, text
    assert not re.search(r"\bat 0x[0-9a-f]+|object at\b", text), text


def further() -> list[Any]:
    """Return what users meet when they go further than the public names."""
    from graph2vid.alignment import Durations
    from graph2vid.datasets import read_dataset
    from graph2vid.evidence import costs_from_arrays
    from graph2vid.grounding import check_order

    dataset = read_dataset("synthetic", recordings=8)
    recording = dataset.recordings[0]
    found = g2v.ground(FLOW, scores=-MATCH)
    steps = "".join(f"Do step {number} with great care. " for number in range(100))
    things = [dataset, recording, dataset.tasks[recording.task], dataset.evidence(recording), check_order(found)]
    things += [*found.segments, *g2v.align(FLOW, MATCH, 1.0).segments, costs_from_arrays(scores=-MATCH)]
    return [*things, Durations.least(3, n_steps=3), g2v.parse(steps, "linear"), g2v.parse(steps, "linear").procedure]


def test_further_representations_are_short() -> None:
    for thing in further():
        check_representation(thing)


@pytest.mark.parametrize("name", ["Grounding", "FlowGraph", "Alignment"])
def test_str_has_no_memory_address(name: str) -> None:
    for thing in MADE[name]():
        assert " at 0x" not in str(thing) and str(thing).strip()
