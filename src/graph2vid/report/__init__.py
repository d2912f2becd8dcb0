"""What people look at: a grounding as a page."""

from __future__ import annotations

from graph2vid.report.page import page, write_report

__all__ = ["page", "write_report"]
