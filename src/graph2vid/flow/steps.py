"""Steps, and the forms in which a caller may hand them in or name them."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from graph2vid.errors import GraphError
from graph2vid.flow.messages import check_text, no_such_index, quoted, unknown_step


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of a procedure.

    Attributes
    ----------
    id : str
        A name that no other step of the flow graph has.
    text : str
        The instruction in words; may be empty.
    """

    id: str
    text: str

    def __post_init__(self) -> None:
        check_text(self.id, "the id of a step")
        check_text(self.text, "the text of a step")
        if not self.id:
            raise GraphError("the id of a step must not be empty")


StepLike: TypeAlias = str | Step | tuple[str, str]
"""A text, a :class:`Step`, or a pair (id, text)."""

StepReference: TypeAlias = int | str
"""A step by its index (int) or its id (str)."""


def index_by_id(steps: tuple[Step, ...]) -> dict[str, int]:
    """Return the index of each id; an id that comes twice is an error."""
    index_of: dict[str, int] = {}
    for index, step in enumerate(steps):
        if not isinstance(step, Step):
            raise GraphError(f"step {index} must be a Step, not {quoted(step)}; FlowGraph.from_edges takes texts")
        first = index_of.setdefault(step.id, index)
        if first != index:
            raise GraphError(f"two steps have the id {quoted(step.id)} (steps {first} and {index}, counted from 0)")
    return index_of


def as_step(step: StepLike, index: int) -> Step:
    """Return the step that was handed in at place ``index`` in whichever form."""
    if isinstance(step, Step):
        return step
    if isinstance(step, str):
        return Step(str(index + 1), step)
    if isinstance(step, tuple | list) and len(step) == 2:
        return Step(*step)
    raise GraphError(f"step {index} must be a text, a Step or a pair (id, text), not {quoted(step)}")


def resolve(step: StepReference, index_of: Mapping[str, int]) -> int:
    """Return the index of a step named by its index or id."""
    if isinstance(step, str):
        if step not in index_of:
            raise GraphError(unknown_step(step, index_of))
        return index_of[step]
    try:
        if isinstance(step, bool):
            raise TypeError
        index = operator.index(step)
    except TypeError:
        raise GraphError(f"a step is named by its index or id, not by {quoted(step)}") from None
    if not 0 <= index < len(index_of):
        raise GraphError(no_such_index(index, len(index_of)))
    return index


def resolve_all(steps: StepReference | Iterable[StepReference], index_of: Mapping[str, int]) -> tuple[int, ...]:
    """Return the indices of steps, handed in as one step or several."""
    return tuple(resolve(step, index_of) for step in ([steps] if isinstance(steps, str | int) else steps))
