"""Groundings: when each step happens, in seconds."""

from __future__ import annotations

from graph2vid.grounding.from_arrays import ground
from graph2vid.grounding.from_media import ground_narrated
from graph2vid.grounding.result import GroundedSegment, Grounding

__all__ = ["GroundedSegment", "Grounding", "ground", "ground_narrated"]
