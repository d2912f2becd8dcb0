"""What people look at: a grounding as a page."""

from __future__ import annotations

from graph2vid.report.document import Spans, conflicts_of, drawn_plan, mark_of, view_model
from graph2vid.report.page import STATIC, page, refuse_video_outside, write_report

__all__ = [
    "STATIC",
    "Spans",
    "conflicts_of",
    "drawn_plan",
    "mark_of",
    "page",
    "refuse_video_outside",
    "view_model",
    "write_report",
]
