"""Groundings: when each step happens, in seconds."""

from __future__ import annotations

from graph2vid.grounding.counts import StepCount
from graph2vid.grounding.from_arrays import ground
from graph2vid.grounding.from_media import ground_media, ground_narrated
from graph2vid.grounding.from_video import ground_video
from graph2vid.grounding.grounding_result import GroundedSegment, Grounding
from graph2vid.grounding.order_check import Deviation, OrderCheck, check_order

__all__ = [
    "Deviation",
    "GroundedSegment",
    "Grounding",
    "OrderCheck",
    "StepCount",
    "check_order",
    "ground",
    "ground_media",
    "ground_narrated",
    "ground_video",
]
