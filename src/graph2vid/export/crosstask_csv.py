"""The annotation files of CrossTask: step (from 1), start, end, without a head."""

from __future__ import annotations

from graph2vid.export.shared import format_named, seconds, timed
from graph2vid.grounding import Exported, Film, Grounding


@format_named("crosstask", ".crosstask.csv")
def export_crosstask(grounding: Grounding, film: Film) -> Exported:
    """Write a line per segment: the number of the step from 1, start and end in seconds."""
    segments, notes = timed(grounding)
    lines = [f"{segment.step + 1},{seconds(segment.start)},{seconds(segment.end)}\n" for segment in segments]
    return Exported("".join(lines), tuple(notes))
