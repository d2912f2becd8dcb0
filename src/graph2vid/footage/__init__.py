"""Video files written: chapters put into a copy, stretches cut out.

Nothing here knows of procedures: times are seconds from the start of the file, as in ``graph2vid.evidence.media``.
"""

from __future__ import annotations

from graph2vid.footage.remuxing import CONTAINERS, Chapter, cut, write_chapters

__all__ = ["CONTAINERS", "Chapter", "cut", "write_chapters"]
