"""Groundings: when each step happens, in seconds; and `ground`, the service that finds them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from graph2vid._deprecated import warn_renamed
from graph2vid._options import AlignOptions, GroundOptions
from graph2vid.grounding.calibrator import GAMMAS, NARRATION, Calibrator, Example, Observed, observe
from graph2vid.grounding.doubt import LIKELY, Conflict, conflicts, forced_steps
from graph2vid.grounding.durations_file import read_durations
from graph2vid.grounding.exporting import FORMATS, Exported, Film, Format, export, write_export
from graph2vid.grounding.from_evidence import ground_evidence
from graph2vid.grounding.grounding_result import GroundedSegment, Grounding, file_name, is_url
from graph2vid.grounding.grounding_service import Features, ground
from graph2vid.grounding.order_check import Deviation, OrderCheck, check_order, find_deviations
from graph2vid.grounding.quantised import pack
from graph2vid.grounding.step_count import StepCount
from graph2vid.grounding.timeline import draw_timeline, print_timeline
from graph2vid.grounding.times import format_time, parse_span, parse_time

__all__ = [
    "FORMATS",
    "GAMMAS",
    "LIKELY",
    "NARRATION",
    "AlignOptions",
    "Calibrator",
    "Conflict",
    "Deviation",
    "Example",
    "Exported",
    "Features",
    "Film",
    "Format",
    "GroundOptions",
    "GroundedSegment",
    "Grounding",
    "Observed",
    "OrderCheck",
    "StepCount",
    "check_order",
    "conflicts",
    "draw_timeline",
    "export",
    "file_name",
    "find_deviations",
    "forced_steps",
    "format_time",
    "ground",
    "ground_evidence",
    "is_url",
    "observe",
    "pack",
    "parse_span",
    "parse_time",
    "print_timeline",
    "read_durations",
    "write_export",
]


def __getattr__(name: str) -> Any:
    if name not in ("ground_media", "ground_narrated", "ground_video"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_renamed(f"graph2vid.grounding.{name}", "graph2vid.ground")
    return getattr(import_module("graph2vid.grounding.old_names"), name)
