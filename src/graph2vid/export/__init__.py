"""Groundings in the formats of other programs, and annotations read back from them."""

from __future__ import annotations

from graph2vid.export import chapter_formats as chapter_formats
from graph2vid.export import elan as elan  # imported, as those beside it, so that it enters its formats into the table
from graph2vid.export import label_formats as label_formats
from graph2vid.export import structured_formats as structured_formats
from graph2vid.export import text_formats as text_formats
from graph2vid.export import youtube as youtube
from graph2vid.export.annotations import Annotation, read_annotations, read_video_annotations, to_constraints
from graph2vid.export.chapter_formats import CHAPTER_FORMATS, chapters_into_copy
from graph2vid.grounding import FORMATS, Exported, Film, Format, export, write_export

__all__ = ["FORMATS", "Annotation", "Exported", "Film", "Format", "export", "read_annotations", "to_constraints"]
__all__ += ["CHAPTER_FORMATS", "chapters_into_copy", "read_video_annotations", "write_export"]
