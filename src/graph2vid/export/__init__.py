"""Groundings in the formats of other programs, a module each, and annotations read back from them."""

from __future__ import annotations

from graph2vid.export import (
    crosstask_csv,
    csv_table,
    elan,
    ffmetadata,
    label_studio,
    native,
    rttm,
    schema_org,
    srt,
    via3,
    vtt,
    youtube,
)
from graph2vid.export.annotations import Annotation, read_annotations, to_constraints
from graph2vid.grounding import FORMATS, Exported, Film, Format, export, write_export

__all__ = [
    "FORMATS",
    "Annotation",
    "Exported",
    "Film",
    "Format",
    "export",
    "read_annotations",
    "to_constraints",
    "write_export",
]

# Imported so that each enters its format into the table.
_MODULES = (crosstask_csv, csv_table, elan, ffmetadata, label_studio, native, rttm, schema_org, srt, via3, vtt, youtube)
