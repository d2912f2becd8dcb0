"""Formats of plain text: captions (WebVTT, SubRip), FFmpeg's chapters, and tables (CSV, CrossTask, RTTM)."""

from __future__ import annotations

import csv
import io
import re
from pathlib import PurePath
from urllib.parse import quote
from xml.sax.saxutils import escape

from graph2vid.export import shared
from graph2vid.grounding import Exported, Film, GroundedSegment, Grounding, file_name

COLUMNS = ("step", "id", "text", "start", "end", "confidence", "order", "doubtful")

# SubRip has no escapes: an arrow would be taken for times, and what stands in angle brackets for formatting.
_SIGNS = str.maketrans("<>", "‹›")
_SPECIAL = re.compile(r"([=;#\\])")  # in FFmpeg's file
# Fields of RTTM are parted by blanks; a percent sign is written so too, so that names can be read back.
_BLANK = re.compile(r"[\s%]")


@shared.format_named("vtt", ".chapters.vtt")
def export_vtt(grounding: Grounding, film: Film) -> Exported:
    """Write WebVTT chapters, for ``<track kind="chapters">`` of HTML players and most others: a cue per segment."""
    segments, notes = shared.timed(grounding)
    cues = _cues(segments, [escape(title) for title in shared.titles(grounding.flow)], ".")
    return Exported("\n".join(["WEBVTT\n", *cues]), tuple(notes))


@shared.format_named("srt", ".steps.srt")
def export_srt(grounding: Grounding, film: Film) -> Exported:
    """Write SubRip, which every player shows: a subtitle per segment."""
    segments, notes = shared.timed(grounding)
    names = [title.replace("-->", "→").translate(_SIGNS) for title in shared.titles(grounding.flow)]
    return Exported("\n".join(_cues(segments, names, ",")), tuple(notes))


def _cues(segments: list[shared.Timed], names: list[str], decimal_sign: str) -> list[str]:
    times = [[shared.clock(at, decimal_sign) for at in (one.start, one.end)] for one in segments]
    return [f"{at + 1}\n{' --> '.join(times[at])}\n{names[one.step]}{one.mark}\n" for at, one in enumerate(segments)]


@shared.format_named("ffmetadata", ".ffmetadata.txt")
def export_ffmetadata(grounding: Grounding, film: Film) -> Exported:
    """Write FFmpeg's metadata: a chapter per segment (milliseconds), and one for what comes before the first step.

    ``ffmpeg -i in.mp4 -i FILE -map_chapters 1 -c copy out.mp4`` puts them into a video.
    """
    chapters, notes = shared.chapters(grounding)
    lines = [";FFMETADATA1"]
    if title := shared.one_line(grounding.flow.title):
        lines.append(f"title={_escaped(title)}")
    for start, end, name in chapters:
        lines += ["", "[CHAPTER]", "TIMEBASE=1/1000", f"START={start}", f"END={end}", f"title={_escaped(name)}"]
    return Exported("\n".join(lines) + "\n", tuple(notes))


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


@shared.format_named("csv", ".steps.csv")
def export_csv(grounding: Grounding, film: Film) -> Exported:
    """Write a row per segment, in order of time, then one without times per step that is not shown.

    Steps are numbered by their places in the procedure, from 1; ``order`` is their place in the order found. Times are
    seconds. A text that a spreadsheet would take for a formula has a ' before it, which our reader takes off again.
    """
    place = {step: at for at, step in enumerate(grounding.order, start=1)}
    rows = [(one.step, f"{one.start:.3f}", f"{one.end:.3f}", _sure(one), one.why) for one in grounding.segments]
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for step, *found, why in [*rows, *((step, "", "", "", "") for step in grounding.not_shown)]:
        named = grounding.flow.steps[step]
        texts = (shared.cell(shared.printable(text)) for text in (named.id, named.text))
        writer.writerow((step + 1, *texts, *found, place.get(step, ""), why))
    return Exported(table.getvalue())


def _sure(segment: GroundedSegment) -> str:
    return segment.sureness if segment.confidence is None else f"{segment.confidence:.4f}"


@shared.format_named("crosstask", ".crosstask.csv")
def export_crosstask(grounding: Grounding, film: Film) -> Exported:
    """Write the annotation file of CrossTask, without a head: the number of the step from 1, start, end (seconds)."""
    segments, notes = shared.timed(grounding)
    lines = [f"{one.step + 1},{shared.seconds(one.start)},{shared.seconds(one.end)}\n" for one in segments]
    return Exported("".join(lines), tuple(notes))


@shared.format_named("rttm", ".steps.rttm", "video")
def export_rttm(grounding: Grounding, film: Film) -> Exported:
    """Write turns as diarisation tools read them: video, start, duration, and the step's id in place of a speaker."""
    segments, notes = shared.timed(grounding)
    name = _field(PurePath(file_name(film.name)).stem or shared.one_line(grounding.flow.title)) or "video"
    lines = [
        f"SPEAKER {name} 1 {shared.seconds(one.start)} {shared.seconds(one.end - one.start)} <NA> <NA> "
        f"{_field(grounding.flow.ids[one.step])} <NA> <NA>\n"
        for one in segments
    ]
    return Exported("".join(lines), tuple(notes))


def _field(text: str) -> str:
    return _BLANK.sub(lambda sign: quote(sign[0]), shared.printable(text))
