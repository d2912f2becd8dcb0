"""FFmpeg's metadata file: chapters to be muxed into a video.

``ffmpeg -i in.mp4 -i FILE -map_chapters 1 -c copy out.mp4`` does so.
"""

from __future__ import annotations

import re

from graph2vid.export.shared import INTRO, format_named, one_line, timed, titles
from graph2vid.grounding import Exported, Film, Grounding

_SPECIAL = re.compile(r"([=;#\\])")


@format_named("ffmetadata", ".ffmetadata.txt")
def export_ffmetadata(grounding: Grounding, film: Film) -> Exported:
    """Write a chapter per segment, in thousandths of a second, and one for what comes before the first step."""
    segments, notes = timed(grounding)
    names = titles(grounding.flow)
    lines = [";FFMETADATA1"]
    if title := one_line(grounding.flow.title):
        lines.append(f"title={_escaped(title)}")
    chapters = [(segment.start, segment.end, names[segment.step]) for segment in segments]
    if chapters and chapters[0][0] > 0:
        chapters.insert(0, (0, chapters[0][0], INTRO))
        notes.append(f'an "{INTRO}" is added before the first step: MP4 lets the first chapter begin at 0 in any case')
    for start, end, name in chapters:
        lines += ["", "[CHAPTER]", "TIMEBASE=1/1000", f"START={start}", f"END={end}", f"title={_escaped(name)}"]
    return Exported("\n".join(lines) + "\n", tuple(notes))


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
