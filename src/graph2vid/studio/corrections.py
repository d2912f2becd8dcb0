"""What a person knows about a video, and the constraints of the aligner that say the same."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from graph2vid._files import check_format
from graph2vid._values import number_of
from graph2vid.alignment import Constraint
from graph2vid.errors import FormatError, InputError
from graph2vid.flow import FlowGraph
from graph2vid.grounding import format_time

KIND = "graph2vid-corrections"
VERSION = 1
MOST = 1000
"""The most corrections of a project."""

CorrectionKind = Literal["exact", "show", "within", "forbid", "background"]
_PINS, _FILLS = ("exact", "show", "within"), ("exact", "show")
_SAID = {"exact": "exactly", "show": "shown", "within": "only within", "forbid": "not in", "background": "none in"}


@dataclass(frozen=True)
class Correction:
    """One thing that is known about the video.

    Attributes
    ----------
    kind : {"exact", "show", "within", "forbid", "background"}
        ``exact``: the step fills the span and is shown nowhere else. ``show``: the step fills the span, and may go on
        beside it. ``within``: the step is shown, inside the span only. ``forbid``: the step is not shown in the span.
        ``background``: no step is shown in the span.
    step : str or None
        The id of the step; None for ``background``.
    start, end : float
        The span in seconds; infinite where it is open.
    """

    kind: CorrectionKind
    step: str | None
    start: float = -math.inf
    end: float = math.inf

    def __post_init__(self) -> None:
        if self.kind not in get_args(CorrectionKind):
            raise InputError(f"unknown correction {self.kind!r}; known: {', '.join(get_args(CorrectionKind))}")
        if (self.step is None) != (self.kind == "background"):
            raise InputError("a correction names a step, unless it says that there is none (background)")
        if not self.start < self.end:
            raise InputError("the span of a correction must end after it begins")
        if self.kind in _FILLS and math.isinf(self.end - self.start):
            raise InputError(f"a correction {self.kind!r} needs both its start and its end")

    @property
    def words(self) -> str:
        """The correction in words, without the step."""
        start = "the start" if math.isinf(self.start) else format_time(self.start)
        end = "the end" if math.isinf(self.end) else format_time(self.end)
        everywhere = math.isinf(self.start) and math.isinf(self.end)
        return "not shown at all" if everywhere and self.kind == "forbid" else f"{_SAID[self.kind]} {start} – {end}"

    def to_json(self) -> dict[str, Any]:
        """Return the correction for JSON; an open end is None."""
        start, end = (None if math.isinf(at) else at for at in (self.start, self.end))
        return {"kind": self.kind, "step": self.step, "start": start, "end": end}

    @classmethod
    def from_json(cls, value: Any, source: str = "correction") -> Correction:
        """Read what :meth:`to_json` gives."""
        if not isinstance(value, dict):
            raise FormatError(f"{source} must be an object")
        ends = {
            key: number_of(value[key], f"{source}: {key}") for key in ("start", "end") if value.get(key) is not None
        }
        if value.get("step") is not None and not isinstance(value["step"], str):
            raise FormatError(f"{source}: step is the id of a step or null")
        try:
            return cls(value.get("kind"), value.get("step"), **ends)  # type: ignore[arg-type]  # checked at once
        except InputError as error:
            raise FormatError(f"{source}: {error}") from None

    def constraints(self, flow: FlowGraph) -> list[Constraint]:
        """Return what this means to the aligner, in seconds."""
        step = None if self.step is None else flow.index(self.step)
        if self.kind == "exact":
            return [Constraint(kind, step, self.start, self.end) for kind in ("show", "within")]
        return [Constraint(self.kind, step, self.start, self.end)]


class ContradictionError(InputError):
    """A correction contradicts another one; ``other`` is the place of that in the list."""

    status = 422

    def __init__(self, message: str, other: int) -> None:
        super().__init__(message)
        self.other = other


def with_correction(
    corrections: Iterable[Correction], new: Correction, flow: FlowGraph | None = None
) -> tuple[Correction, ...]:
    """Return the corrections with one more.

    A new correction of a step takes the place of older ones of that step. What contradicts a correction of
    another step, or the order of the flow graph together with one, is refused.

    Raises
    ------
    ContradictionError
        Names the other correction, in the words of the person who made it.
    """
    known = tuple(corrections)
    kept: list[Correction] = []
    for place, old in enumerate(known):
        if old.step == new.step and old.kind != "background":
            is_older_pin = new.kind in _PINS and old.kind in _PINS
            if old != new and not is_older_pin:
                kept += _outside(old, new) if _contradicts(new, old) and _meet(new, old) else [old]
        elif old != new:
            kept.append(old)
            if _contradicts(new, old) and _meet(new, old):
                raise ContradictionError(_refusal(new, old, "", flow), place)
            if (order := _order_against(new, old, flow)) is not None:
                raise ContradictionError(_refusal(new, old, order, flow), place)
    if len(kept) >= MOST:
        raise InputError(f"a project holds up to {MOST} corrections; remove some first")
    return (*kept, new)


def _meet(one: Correction, other: Correction) -> bool:
    return one.start < other.end and other.start < one.end


def _contradicts(new: Correction, old: Correction) -> bool:
    """Whether a clip in both spans cannot do what both say."""
    kinds, is_same = {new.kind, old.kind}, old.step == new.step
    if kinds <= {*_FILLS}:
        return not is_same
    fills_one = bool(kinds & {*_FILLS})
    return fills_one and ("background" in kinds or ("forbid" in kinds and is_same))


def _order_against(new: Correction, old: Correction, flow: FlowGraph | None) -> str | None:
    """Say which order of the flow graph two pins contradict, or None."""
    if flow is None or new.kind not in _PINS or old.kind not in _PINS or {new.step, old.step} - {*flow.ids}:
        return None
    later = flow.sure.descendants
    for first, second in ((new, old), (old, new)):
        a, b = (flow.index(str(one.step)) for one in (first, second))
        # The first goes on until here at least, and the second has begun by then.
        until = first.end if first.kind in _FILLS else first.start
        begun = second.start if second.kind in _FILLS else second.end
        if later[a] >> b & 1 and until > begun:
            return f"step {a + 1} must be finished before step {b + 1} begins, and "
    return None


def _refusal(new: Correction, old: Correction, order: str, flow: FlowGraph | None) -> str:
    def said(one: Correction) -> str:
        if one.step is None:
            return f"no step is shown in {one.words.removeprefix('none in ')}"
        place = flow.ids.index(one.step) if flow is not None and one.step in flow.ids else None
        text = one.step if flow is None or place is None else flow.texts[place] or one.step
        number = "" if place is None else f" {place + 1}"
        return f"step{number} ({text.rstrip('. ')}) is {one.words}"

    return f"it cannot be that {said(new)}: {order}you said that {said(old)}"


def _outside(old: Correction, new: Correction) -> list[Correction]:
    """Return what is left of a correction outside of another's span."""
    pieces = [
        replace(old, start=start, end=end)
        for start, end in ((old.start, min(old.end, new.start)), (max(old.start, new.end), old.end))
        if start < end
    ]
    if old.kind in _PINS and len(pieces) > 1:  # a step has one place: the longer piece
        return [max(pieces, key=lambda piece: piece.end - piece.start)]
    return pieces


def usable(corrections: Iterable[Correction], flow: FlowGraph) -> list[Correction]:
    """Return the corrections whose step still is in the flow graph."""
    return [correction for correction in corrections if correction.step is None or correction.step in flow.ids]


def to_json(corrections: Iterable[Correction]) -> dict[str, Any]:
    """Return corrections as a JSON document."""
    return {"format": KIND, "version": VERSION, "corrections": [correction.to_json() for correction in corrections]}


def from_json(value: Any, source: str) -> tuple[Correction, ...]:
    """Read the JSON document of corrections."""
    document = check_format(value, kind=KIND, version=VERSION, source=source)
    entries = document.get("corrections")
    if not isinstance(entries, list):
        raise FormatError(f"{source}: corrections must be a list")
    return tuple(
        Correction.from_json(entry, f"{source}: corrections[{number}]") for number, entry in enumerate(entries)
    )
