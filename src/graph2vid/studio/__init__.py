"""A local web app: from a procedure and a video to a grounding, by hand where it matters."""

from __future__ import annotations
