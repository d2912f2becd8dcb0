"""Groundings as tables of pandas, a row per segment, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graph2vid._frames import data_frame, rows_of
from graph2vid._values import number_of
from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph, unknown_step
from graph2vid.grounding.grounding_result import GroundedSegment, Grounding

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = ("step", "id", "text", "start", "end", "confidence", "posterior", "margin", "order", "doubtful", "why")
_NUMBERS = ("confidence", "posterior", "margin")


def to_frame(grounding: Grounding) -> DataFrame:
    """Return a row per segment, in order of time, then one without times per step that is not shown."""
    place = {step: at for at, step in enumerate(grounding.order, start=1)}
    rows: list[dict[str, Any]] = [
        {name: getattr(one, name) for name in ("id", "text", "start", "end", *_NUMBERS, "why")}
        | {"step": one.step + 1, "order": place.get(one.step), "doubtful": one.is_doubtful}
        for one in grounding.segments
    ]
    for step in grounding.not_shown:
        named = grounding.flow.steps[step]
        rows.append({"step": step + 1, "id": named.id, "text": named.text, "doubtful": False, "why": ""})
    frame = data_frame(rows, COLUMNS)
    kinds = dict.fromkeys(("start", "end", *_NUMBERS), "float64") | {"step": "int64", "order": "Int64"}
    return frame.astype(kinds | {"doubtful": "bool"})


def from_frame(
    frame: DataFrame,
    procedure: FlowGraph | Grounding,
    *,
    clip_seconds: float = 1.0,
    duration: float | None = None,
    video: str | None = None,
) -> Grounding:
    """Return the grounding that a table says; see :meth:`Grounding.from_frame`."""
    flow = procedure.flow if isinstance(procedure, Grounding) else procedure
    names = {name: step for step, named in reversed(list(enumerate(flow.steps))) for name in (named.text, named.id)}
    which = "id" if "id" in frame.columns else "step"
    segments = []
    for number, row in enumerate(rows_of(frame, (which, "start", "end"), "the table of segments")):
        where = f"row {number} of the table"
        step = _step(row[which], flow, names, where)
        if row["start"] is None and row["end"] is None:  # not shown
            continue
        start, end = (number_of(row[name], f"{where}, {name}") for name in ("start", "end"))
        if end <= start:
            raise InputError(f"{where}: step {flow.ids[step]!r} ends at {end:g} s and starts at {start:g} s")
        segments.append(_segment(row, step, flow, start, end))
    segments.sort(key=lambda one: (one.start, one.step))
    order = tuple(dict.fromkeys(one.step for one in segments))
    if isinstance(procedure, Grounding):
        base = replace(procedure, probability=None, absent=())
    else:
        if not 0 < clip_seconds < math.inf:
            raise InputError(f"clip_seconds must be a finite number above 0, not {clip_seconds!r}")
        last = max((one.end for one in segments), default=0.0) if duration is None else duration
        clips = np.full(math.ceil(last / clip_seconds - 1e-9), -1)
        base = Grounding(flow, (), (), (), 0.0, clips, clip_seconds, video=video)
    labels = np.full(len(base.labels), -1)
    for one in segments:  # a clip shows what its middle shows; of overlapping segments the later one
        first, stop = ((at - base.offset) / base.clip_seconds - 0.5 for at in (one.start, one.end))
        labels[max(math.ceil(first - 1e-9), 0) : max(math.ceil(stop - 1e-9), 0)] = one.step
    return replace(
        base,
        segments=tuple(segments),
        order=order,
        not_shown=tuple(step for step in range(len(flow)) if step not in order),
        labels=labels,
    )


def _step(value: Any, flow: FlowGraph, names: Mapping[str, int], where: str) -> int:
    if isinstance(value, str):
        if value not in names:
            raise InputError(f"{where}: {unknown_step(value, flow.ids)}")
        return names[value]
    number = number_of(value, f"{where}, step")
    if not (number.is_integer() and 1 <= number <= len(flow)):
        raise InputError(f"{where}: there is no step {number:g}; the steps are numbered from 1 to {len(flow)}")
    return int(number) - 1


def _segment(row: Mapping[str, Any], step: int, flow: FlowGraph, start: float, end: float) -> GroundedSegment:
    known = {name: None if row.get(name) is None else float(row[name]) for name in _NUMBERS}
    return GroundedSegment(
        step=step,
        id=flow.ids[step],
        text=flow.texts[step],
        start=start,
        end=end,
        why=str(row.get("why") or ""),
        **known,
    )
