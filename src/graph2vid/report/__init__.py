"""What people look at: a grounding as a page."""

from __future__ import annotations

from graph2vid.report.document import Spans, view_model
from graph2vid.report.page import STATIC, page, refuse_video_outside, write_report

__all__ = ["STATIC", "Spans", "page", "refuse_video_outside", "view_model", "write_report"]
