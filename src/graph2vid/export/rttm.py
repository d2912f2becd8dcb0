"""RTTM: lines of turns, as diarisation tools read them; a step stands where the speaker does."""

from __future__ import annotations

import re
from pathlib import PurePath
from urllib.parse import quote

from graph2vid.export.shared import file_name, format_named, one_line, printable, seconds, timed
from graph2vid.grounding import Exported, Film, Grounding

# Fields are parted by blanks; a percent sign is written so too, so that names can be read back.
_BLANK = re.compile(r"[\s%]")


@format_named("rttm", ".steps.rttm", "video")
def export_rttm(grounding: Grounding, film: Film) -> Exported:
    """Write a line per segment: the name of the video, start, duration, and the step's id."""
    segments, notes = timed(grounding)
    name = _field(PurePath(file_name(film.name)).stem or one_line(grounding.flow.title)) or "video"
    lines = [
        f"SPEAKER {name} 1 {seconds(segment.start)} {seconds(segment.end - segment.start)} <NA> <NA> "
        f"{_field(grounding.flow.ids[segment.step])} <NA> <NA>\n"
        for segment in segments
    ]
    return Exported("".join(lines), tuple(notes))


def _field(text: str) -> str:
    return _BLANK.sub(lambda sign: quote(sign[0]), printable(text))
