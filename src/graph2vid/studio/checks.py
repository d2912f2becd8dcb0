"""What a check of a result found, read back from its file."""

from __future__ import annotations

import math
from typing import Any

from graph2vid._files import check_format
from graph2vid.errors import FormatError
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Deviation


def deviations_from_json(value: Any, flow: FlowGraph, source: str) -> tuple[Deviation, ...]:
    """Read the JSON document of a check of a procedure; messages name ``source``."""
    document = check_format(value, kind="graph2vid-check", version=1, source=source)
    try:
        return tuple(_deviation(entry, flow) for entry in document["deviations"])
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{source}: this is no list of deviations ({error})") from None


def _deviation(entry: dict[str, Any], flow: FlowGraph) -> Deviation:
    after, start, end, margin = (entry[key] for key in ("after", "start", "end", "margin"))
    return Deviation(
        entry["kind"],
        flow.index(entry["step"]),
        None if after is None else flow.index(after),
        None if start is None else float(start),
        None if end is None else float(end),
        math.inf if margin is None else float(margin),
        float(entry["certainty"]),
    )
