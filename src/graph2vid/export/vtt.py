"""WebVTT chapters: ``<track kind="chapters">`` of HTML players, and most others."""

from __future__ import annotations

from graph2vid.export.shared import clock, format_named, timed, titles
from graph2vid.grounding import Exported, Film, Grounding


@format_named("vtt", ".chapters.vtt")
def export_vtt(grounding: Grounding, film: Film) -> Exported:
    """Write a cue per segment."""
    segments, notes = timed(grounding)
    names = [_escaped(title) for title in titles(grounding.flow)]
    cues = [
        f"{number}\n{clock(segment.start)} --> {clock(segment.end)}\n{names[segment.step]}\n"
        for number, segment in enumerate(segments, start=1)
    ]
    return Exported("\n".join(["WEBVTT\n", *cues]), tuple(notes))


def _escaped(title: str) -> str:
    return title.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
