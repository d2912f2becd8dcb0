"""Groundings: when each step happens, in seconds; and `ground`, the service that finds them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from graph2vid._deprecated import warn_renamed
from graph2vid._options import AlignOptions, GroundOptions
from graph2vid.grounding.adaptation import LEAST_LABELLED, TaskVideo, adapt, learn_task, speaking_words
from graph2vid.grounding.calibrator import GAMMAS, NARRATION, Calibrator, Example, Observed, observe
from graph2vid.grounding.clip_files import CARD, HOW_TO, SHEET, ClipFile, most_certain, write_clips
from graph2vid.grounding.doubt import LIKELY, Conflict, conflicts, forced_steps, free_hidden
from graph2vid.grounding.durations_file import durations_of, read_durations
from graph2vid.grounding.exporting import (
    DOUBTFUL,
    FORMATS,
    Exported,
    Film,
    Format,
    export,
    for_publishing,
    write_export,
)
from graph2vid.grounding.from_evidence import ground_evidence
from graph2vid.grounding.grounding_result import GroundedSegment, Grounding, file_name, is_url
from graph2vid.grounding.grounding_service import Features, ground, refuse_address
from graph2vid.grounding.mining import durations_document, executions_of, mine_files, read_executions, text_prior
from graph2vid.grounding.order_check import Deviation, OrderCheck, check_order, find_deviations, smallest_cover
from graph2vid.grounding.quantised import pack
from graph2vid.grounding.same_material import Stretch, common_stretches
from graph2vid.grounding.script_alignment import ORDERS, Said, ScriptAlignment, align_script, align_text
from graph2vid.grounding.step_card import card_html, print_card
from graph2vid.grounding.step_count import StepCount
from graph2vid.grounding.timeline import draw_timeline, print_timeline
from graph2vid.grounding.times import format_time, parse_span, parse_time
from graph2vid.grounding.transfer import Transfer, describe_transfer, transfer

# The service, its options, and what it returns.
__all__ = ["AlignOptions", "Features", "GroundOptions", "GroundedSegment", "Grounding", "ground", "ground_evidence"]
__all__ += ["durations_of", "pack", "read_durations", "refuse_address"]
# What is learnt from videos of one task.
__all__ += ["LEAST_LABELLED", "TaskVideo", "adapt", "learn_task", "speaking_words"]
# How sure a result is, and where a video does not follow its procedure.
__all__ += ["GAMMAS", "LIKELY", "NARRATION", "Calibrator", "Conflict", "Deviation", "Example", "Observed"]
__all__ += [
    "OrderCheck",
    "StepCount",
    "check_order",
    "conflicts",
    "find_deviations",
    "forced_steps",
    "free_hidden",
    "observe",
    "smallest_cover",
]
# Flow graphs from executions.
__all__ += ["durations_document", "executions_of", "mine_files", "read_executions", "text_prior"]
# What is shown and written.
__all__ += [
    "DOUBTFUL",
    "FORMATS",
    "Exported",
    "Film",
    "Format",
    "draw_timeline",
    "export",
    "file_name",
    "format_time",
    "is_url",
]
__all__ += ["for_publishing", "parse_span", "parse_time", "print_timeline", "write_export"]
__all__ += ["CARD", "HOW_TO", "SHEET", "ClipFile", "card_html", "most_certain", "print_card", "write_clips"]
# A script against the speech of a video.
__all__ += ["ORDERS", "Said", "ScriptAlignment", "align_script", "align_text"]
# Another cut of the same video.
__all__ += ["Stretch", "Transfer", "common_stretches", "describe_transfer", "transfer"]


def __getattr__(name: str) -> Any:
    if name not in ("ground_media", "ground_narrated", "ground_video"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_renamed(f"graph2vid.grounding.{name}", "graph2vid.ground")
    return getattr(import_module("graph2vid.grounding.old_names"), name)
