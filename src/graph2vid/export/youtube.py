"""Chapters for the description of a YouTube video.

YouTube takes them only if the first begins at 0:00, there are at least three, in ascending order, and each lasts 10
seconds or more. A chapter lasts until the next one begins.
"""

from __future__ import annotations

from dataclasses import dataclass

from graph2vid.errors import InputError
from graph2vid.export.shared import format_named, timed, titles
from graph2vid.flow import counted
from graph2vid.grounding import Exported, Film, Grounding, format_time

LEAST_CHAPTERS = 3
LEAST_SECONDS = 10
MOST_BYTES = 5000
"""The longest description that YouTube takes."""
_LONGEST_TITLE = 100


@dataclass
class _Chapter:
    start: int  # whole seconds
    titles: list[str]

    @property
    def title(self) -> str:
        title = " / ".join(dict.fromkeys(self.titles))
        if len(title) <= _LONGEST_TITLE:
            return title
        whole = title[: _LONGEST_TITLE - 1].rpartition(" ")[0]  # a word too long for it is cut all the same
        return (whole or title[: _LONGEST_TITLE - 2]).rstrip(" /,;:") + " …"


@format_named("youtube", ".youtube.txt")
def export_youtube(grounding: Grounding, film: Film) -> Exported:
    """Write a line per chapter; steps too short for one are merged, an intro is added where none is."""
    segments, notes = timed(grounding)
    names = [title.replace("<", "‹").replace(">", "›") for title in titles(grounding.flow)]
    if names != titles(grounding.flow):
        notes.append("< and > are written as ‹ and ›: YouTube takes no angle brackets")
    end = int(grounding.end)
    chapters = [_Chapter(one.start // 1000, [names[one.step] + one.mark]) for one in segments]
    if not chapters:
        raise InputError("YouTube chapters need at least one step that is shown; here none is")
    notes += _begin_at_zero(chapters)
    last_end = segments[-1].end // 1000 + (segments[-1].end % 1000 > 0)
    merged, merges = _long_enough(chapters, end)
    if len(merged) < LEAST_CHAPTERS and end - last_end >= LEAST_SECONDS:
        merged, merges = _long_enough([*chapters, _Chapter(last_end, ["Outro"])], end)
        notes.append(f'an "Outro" is added at {_clock(last_end)}: YouTube wants three chapters')
    if len(merged) < LEAST_CHAPTERS:
        raise InputError(
            f"YouTube wants at least {LEAST_CHAPTERS} chapters of {LEAST_SECONDS} s or more; the "
            f"{counted(len(segments), 'segment')} of this video of {end} s give {len(merged)}: use another format, "
            "such as vtt"
        )
    notes += merges
    text = "".join(f"{_clock(chapter.start)} {chapter.title}\n" for chapter in merged)
    if len(text.encode()) > MOST_BYTES:
        notes.append(f"these are {len(text.encode())} bytes; YouTube takes descriptions of up to {MOST_BYTES}: shorten")
    return Exported(text, tuple(notes))


def _begin_at_zero(chapters: list[_Chapter]) -> list[str]:
    first = chapters[0].start
    if first == 0:
        return []
    if first >= LEAST_SECONDS:
        chapters.insert(0, _Chapter(0, ["Intro"]))
        return [f'an "Intro" is added from 0:00 to {_clock(first)}: YouTube wants the first chapter at 0:00']
    chapters[0].start = 0
    return [
        f"the first chapter begins at 0:00, not at {_clock(first)}: YouTube wants it so, and too little for an intro"
    ]


def _long_enough(chapters: list[_Chapter], end: int) -> tuple[list[_Chapter], list[str]]:
    """Merge chapters, from the left, until each lasts long enough; this gives as many as can be."""
    merged: list[_Chapter] = []
    for chapter in chapters:
        if merged and chapter.start - merged[-1].start < LEAST_SECONDS:
            merged[-1].titles += chapter.titles
        else:
            merged.append(_Chapter(chapter.start, list(chapter.titles)))
    if len(merged) > 1 and end - merged[-1].start < LEAST_SECONDS:
        short = merged.pop()
        merged[-1].titles += short.titles
    return merged, [
        f"{len(chapter.titles)} steps are one chapter at {_clock(chapter.start)}: YouTube wants {LEAST_SECONDS} s each"
        for chapter in merged
        if len(chapter.titles) > 1
    ]


def _clock(seconds: int) -> str:
    return format_time(seconds).removesuffix(".0")
