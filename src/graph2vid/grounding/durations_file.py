"""How long steps last, in files: seconds, by the ids of steps.

    {"format": "graph2vid-durations", "version": 1, "weight": 2.0,
     "steps": {"tomato": {"median": 25.0, "spread": 0.6}, …},
     "others": {"median": 20.0, "spread": 0.8}}

The cost of a segment is -log of its log-normal probability, times the weight; its most probable length costs nothing.
``others`` is for the steps that are not named; without it they may last as long as they like.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from graph2vid._files import check_format, parse_json, read_text
from graph2vid._values import number_of
from graph2vid.alignment import Durations
from graph2vid.errors import FormatError, InputError
from graph2vid.evidence import MOST_CLIPS
from graph2vid.flow import FlowGraph, quoted, unknown_step

KIND = "graph2vid-durations"
VERSION = 1
_LEAST = 1e-6  # of a weight, a median in seconds, a spread


def read_durations(path: str | os.PathLike[str], flow: FlowGraph, clip_seconds: float) -> Durations:
    """Read how long the steps of a procedure last, for clips of ``clip_seconds``.

    Raises
    ------
    FormatError
        What is wrong with the file, and where.
    """
    source = os.fspath(path)
    document = check_format(parse_json(read_text(path), source), kind=KIND, version=VERSION, source=source)
    weight = number_of(document.get("weight", 1.0), f"{source}: weight", least=_LEAST)
    named = document.get("steps", {})
    if not isinstance(named, dict):
        raise FormatError(f"{source}: steps must be an object, not {quoted(named)}")
    known_ids = set(flow.ids)
    if unknown := [step_id for step_id in named if step_id not in known_ids]:
        raise FormatError(f"{source}: steps: {unknown_step(unknown[0], flow.ids)}")
    entries = {step_id: named.get(step_id, document.get("others")) for step_id in flow.ids}
    rows = [None if entry is None else _entry(entry, f"{source}: {step_id}") for step_id, entry in entries.items()]
    known = [row for row in rows if row is not None]
    if not known:
        raise FormatError(f"{source}: it says of no step how long it lasts")
    median, spread = np.array([row or known[0] for row in rows]).T
    made = Durations.log_normal(median / clip_seconds, spread, weight=weight)
    free = [step for step, row in enumerate(rows) if row is None]
    made.length[free], made.tail[free] = 0.0, 0.0
    return made


def durations_of(flow: FlowGraph, clip_seconds: float, given: Any, min_clips: int) -> Durations | ArrayLike | None:
    """Return what durations and a least number of clips say together; None where they say nothing.

    ``given`` is a file, or what :func:`graph2vid.align` takes.
    """
    if min_clips > MOST_CLIPS:
        raise InputError(f"a step of at least {min_clips:,} clips is longer than any video, of {MOST_CLIPS:,} at most")
    if given is None:
        return None if min_clips == 1 else Durations.least(min_clips, len(flow))
    if isinstance(given, str | os.PathLike):
        given = read_durations(given, flow, clip_seconds)
    if isinstance(given, Durations):
        return given.with_least(min_clips)
    if min_clips > 1:
        raise InputError("min_clips and durations that are numbers of clips say the same: give one of them")
    return given  # type: ignore[no-any-return]


def _entry(entry: Any, where: str) -> tuple[float, float]:
    if not isinstance(entry, Mapping) or not {"median", "spread"} <= set(entry):
        raise FormatError(f"{where}: a median (seconds) and a spread are needed, not {quoted(entry)}")
    median, spread = (number_of(entry[key], f"{where}.{key}", least=_LEAST) for key in ("median", "spread"))
    return median, spread
