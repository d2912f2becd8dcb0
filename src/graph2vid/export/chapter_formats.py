"""Chapters beside a video (Matroska's XML, podcasts, LosslessCut), and in a copy of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.sax.saxutils import escape

from graph2vid.errors import InputError
from graph2vid.export import shared
from graph2vid.footage import write_chapters
from graph2vid.grounding import Exported, Film, Grounding, file_name, is_url

CHAPTER_FORMATS = ("youtube", "vtt", "ffmetadata", "matroska", "podcast", "losslesscut")
"""The formats that hold chapters of one video, by name."""


@shared.format_named("matroska", ".chapters.xml")
def export_matroska(grounding: Grounding, film: Film) -> Exported:
    """Write Matroska's chapters as XML, for ``mkvmerge --chapters FILE`` and, beside the video, for media servers."""
    chapters, notes = shared.chapters(grounding)
    atoms = "".join(
        f"    <ChapterAtom>\n      <ChapterUID>{number}</ChapterUID>\n"
        f"      <ChapterTimeStart>{shared.clock(one.start)}000000</ChapterTimeStart>\n"
        f"      <ChapterTimeEnd>{shared.clock(one.end)}000000</ChapterTimeEnd>\n"
        f"      <ChapterDisplay>\n        <ChapterString>{escape(one.title)}</ChapterString>\n"
        f"        <ChapterLanguage>und</ChapterLanguage>\n      </ChapterDisplay>\n    </ChapterAtom>\n"
        for number, one in enumerate(chapters, start=1)
    )
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE Chapters SYSTEM "matroskachapters.dtd">\n'
    return Exported(f"{head}<Chapters>\n  <EditionEntry>\n{atoms}  </EditionEntry>\n</Chapters>\n", tuple(notes))


@shared.format_named("podcast", ".chapters.json", "video")
def export_podcast(grounding: Grounding, film: Film) -> Exported:
    """Write the JSON chapters of podcasts (version 1.2.0), which players load by ``<podcast:chapters>`` of a feed."""
    chapters, notes = shared.chapters(grounding)
    document = {
        "version": "1.2.0",
        "title": shared.one_line(grounding.flow.title),
        "fileName": file_name(film.name),
        "chapters": [
            {"startTime": one.start / 1000, "endTime": one.end / 1000, "title": one.title} for one in chapters
        ],
    }
    kept = {key: value for key, value in document.items() if value != ""}
    return Exported(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", tuple(notes))


@shared.format_named("losslesscut", ".steps.llc", "video")
def export_losslesscut(grounding: Grounding, film: Film) -> Exported:
    """Write a project of LosslessCut: a segment to cut out, with its name, per segment."""
    segments, notes = shared.timed(grounding)
    names = shared.titles(grounding.flow)
    if not film.name:
        notes.append("the video is not known: LosslessCut asks for it; name it with --video")
    cuts = [{"start": one.start / 1000, "end": one.end / 1000, "name": names[one.step] + one.mark} for one in segments]
    project = {"version": 1, "mediaFileName": file_name(film.name), "cutSegments": cuts}
    return Exported(json.dumps(project, indent=2, ensure_ascii=False) + "\n", tuple(notes))


def chapters_into_copy(
    path: str | os.PathLike[str],
    grounding: Grounding,
    *,
    video: str | os.PathLike[str] | None = None,
) -> tuple[str, ...]:
    """Write a copy of the video that has a chapter per segment, and return notes; nothing is encoded anew.

    Parameters
    ----------
    path : path
        The copy: MP4 or Matroska (.mp4, .m4v, .m4a, .mov, .mkv, .mka). It is written under another name and renamed:
        whatever happens, the video itself stays as it is.
    grounding : Grounding
        :func:`graph2vid.grounding.for_publishing` gives it short titles, or leaves out what is doubtful.
    video : path, optional
        The video; by default the one that the grounding names.
    """
    source = str(video or grounding.video or "")
    if not source or is_url(source) or not Path(source).is_file():
        raise InputError(f"chapters are written into a copy of the video, which is not there ({source or 'not named'})")
    chapters, notes = shared.chapters(grounding)
    if not chapters:
        raise InputError("there is no chapter to write: no step is shown")
    return (*notes, *write_chapters(source, path, chapters))
