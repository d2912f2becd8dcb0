"""A local web app: from a procedure and a video to a grounding, by hand where it matters.

Other packages enter by ``server`` (runs it), ``app`` (what is run) and ``access`` (who may use it).
"""

from __future__ import annotations
