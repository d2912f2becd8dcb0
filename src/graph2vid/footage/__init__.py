"""Video files written: chapters put into a copy, stretches cut out, stills and contact sheets.

Nothing here knows of procedures: times are seconds from the start of the file, as in ``graph2vid.evidence.media``.
"""

from __future__ import annotations

from graph2vid.footage.encoding import cut_precisely, write_gif
from graph2vid.footage.filmstrip import filmstrip, loudness
from graph2vid.footage.remuxing import CONTAINERS, Chapter, cut, write_chapters
from graph2vid.footage.stills import Still, contact_sheet, sharpest_frame, to_jpeg

__all__ = ["CONTAINERS", "Chapter", "Still", "contact_sheet", "cut", "cut_precisely", "sharpest_frame", "to_jpeg"]
__all__ += ["filmstrip", "loudness", "write_chapters", "write_gif"]
