"""SubRip: the steps as subtitles, in every player."""

from __future__ import annotations

from graph2vid.export.shared import clock, format_named, timed, titles
from graph2vid.grounding import Exported, Film, Grounding

# SubRip has no escapes: an arrow would be taken for times, and what stands in angle brackets for formatting.
_SIGNS = str.maketrans("<>", "‹›")


@format_named("srt", ".steps.srt")
def export_srt(grounding: Grounding, film: Film) -> Exported:
    """Write a subtitle per segment."""
    segments, notes = timed(grounding)
    names = [title.translate(_SIGNS) for title in (title.replace("-->", "→") for title in titles(grounding.flow))]
    blocks = [
        f"{number}\n{clock(segment.start, ',')} --> {clock(segment.end, ',')}\n{names[segment.step]}\n"
        for number, segment in enumerate(segments, start=1)
    ]
    return Exported("\n".join(blocks), tuple(notes))
