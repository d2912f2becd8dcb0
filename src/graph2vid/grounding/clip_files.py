"""A file per segment of a grounding, a still of each, and a sheet of all stills."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graph2vid import footage
from graph2vid._files import naming, write_bytes, write_text
from graph2vid.errors import InputError, MissingDependencyError
from graph2vid.grounding.exporting import export, for_publishing
from graph2vid.grounding.step_card import CARD_KINDS, card_html, find_browser, print_card
from graph2vid.grounding.times import format_time

if TYPE_CHECKING:
    from graph2vid.grounding.grounding_result import GroundedSegment, Grounding

SHEET = "contact-sheet"
"""The name of the sheet of stills, without its suffix (.svg, .png)."""

CARD = "card"
"""The name of the card, without its suffix (.html, .pdf, .png)."""

HOW_TO = "howto.jsonld"

MOST_GIF_SECONDS = 10.0
"""A moving picture shows so much of a segment, around its most certain moment."""

_AROUND = 1.0  # seconds about the most certain moment in which the sharpest frame is looked for, a clip at least
_NOT_WORDS = re.compile(r"\W+")


@dataclass(frozen=True)
class ClipFile:
    """What was written for a segment.

    Attributes
    ----------
    segment : GroundedSegment
    path : Path
        The clip.
    start, end : float
        What it shows, in seconds of the video: more than the segment where it is cut at key frames.
    still, gif : Path or None
        A picture, and a moving one.
    still_at : float or None
        When in the video the picture is, in seconds.
    """

    segment: GroundedSegment
    path: Path
    start: float
    end: float
    still: Path | None = None
    still_at: float | None = None
    gif: Path | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the entry of a JSON document; files by their names."""
        files = {name: path.name for name in ("still", "gif") if (path := getattr(self, name)) is not None}
        times = {"start": self.start, "end": self.end} | ({} if self.still_at is None else {"still_at": self.still_at})
        return {"segment": self.segment.to_json(), "clip": self.path.name, **times, **files}


def write_clips(
    grounding: Grounding,
    folder: str | os.PathLike[str],
    *,
    video: str | os.PathLike[str] | None = None,
    precise: bool = False,
    gif: bool = False,
    cards: Iterable[str] = (),
    doubtful: str = "mark",
    progress: Callable[..., None] | None = None,
) -> tuple[ClipFile, ...]:
    """Write a clip of the video and a still (JPEG) for each segment, and a contact sheet (SVG, and PNG by resvg-py).

    Beside them ``howto.jsonld``: the steps as search engines read them, each with its clip and its picture.

    Files are called by the number of the step and its short title: ``03-whisk-the-eggs.mp4``, and
    ``03-whisk-the-eggs-2.mp4`` where a step is repeated. Each is written whole or not at all; the video is only read.

    Parameters
    ----------
    grounding : Grounding
    folder : path
        Where; it is made if need be.
    video : path, optional
        The video; by default the one that the grounding names.
    precise : bool
        Whether clips begin and end with the segment, to the frame, encoded anew; otherwise their packets are copied,
        from the key frame before the segment on.
    gif : bool
        Whether moving pictures (GIF) are made, too, of at most ten seconds around the most certain moment.
    cards : iterable of str
        ``"html"``, ``"pdf"``, ``"png"``: a card of all steps to print, with texts, times and pictures. PDF and PNG are
        printed by Chromium or Chrome.
    doubtful : str
        ``"mark"`` or ``"omit"``: whether clips are made of doubtful segments.
    progress : callable, optional
        Called as (stage, done, total).

    Returns
    -------
    tuple of ClipFile
        In order of time.
    """
    source = Path(video or grounding.video or "")
    if not source.name or not source.is_file():
        raise InputError(f"clips are cut from the video, which is not there ({source if source.name else 'not named'})")
    kinds = tuple(dict.fromkeys(cards))
    if unknown := [kind for kind in kinds if kind not in CARD_KINDS]:
        raise InputError(f"a card is {', '.join(CARD_KINDS)}, not {unknown[0]!r}")
    if {*kinds} - {"html"}:
        find_browser()  # what cannot be printed is refused before the work
    named = for_publishing(grounding, short_titles=True, doubtful=doubtful)
    places = [one for one in named.segments if one.end > 0]
    if not places:
        raise InputError("there is no clip to cut: no step is shown")
    target = Path(folder)
    with naming(folder, "make the folder"):
        target.mkdir(parents=True, exist_ok=True)
    suffix = source.suffix.lower() if not precise and source.suffix.lower() in footage.CONTAINERS else ".mkv"
    cut, suffix = (footage.cut_precisely, ".mp4") if precise else (footage.cut, suffix)
    found, stills = [], []
    pictures: dict[int, bytes] = {}
    for at, (segment, name) in enumerate(zip(places, _names(places), strict=True)):
        if progress is not None:
            progress("cutting", at, len(places))
        path = target / f"{name}{suffix}"
        start, end = cut(source, path, max(segment.start, 0.0), segment.end)
        files: dict[str, Any] = {}
        picture = _still(named, segment, source)
        if picture is not None:
            files = {"still": target / f"{name}.jpg", "still_at": picture[0]}
            write_bytes(files["still"], footage.to_jpeg(picture[1]))
            about = f"{segment.step + 1} · {format_time(segment.start)}–{format_time(segment.end)}"
            title = segment.text + (" (?)" if segment.is_doubtful else "")
            stills.append(footage.Still.of(picture[1], title, about))
            pictures.setdefault(segment.step, stills[-1].jpeg)
            if gif:
                files["gif"] = target / f"{name}.gif"
                footage.write_gif(source, files["gif"], *_around(named, segment, MOST_GIF_SECONDS))
        found.append(ClipFile(segment, path, start, end, **files))
    if stills:
        sheet = footage.contact_sheet(stills, named.flow.title)
        write_text(target / f"{SHEET}.svg", sheet.svg)
        with suppress(MissingDependencyError):
            write_bytes(target / f"{SHEET}.png", sheet.to_png())
    shown = for_publishing(grounding, doubtful=doubtful)
    images = {one.segment.step: one.still.name for one in reversed(found) if one.still is not None}
    write_text(target / HOW_TO, export(shown, "howto", video=str(source), images=images).text)
    if kinds:
        page = card_html(replace(shown, video=str(source)), pictures)
        for kind in kinds:
            path = target / f"{CARD}.{kind}"
            write_text(path, page) if kind == "html" else print_card(page, path)
    return tuple(found)


def most_certain(grounding: Grounding, segment: GroundedSegment) -> float:
    """Return the moment of a segment at which its step is most certain, in seconds: the middle of its best clip.

    By the probability of the step, or by the evidence for it; where neither is known, the middle of the segment.
    """
    known = grounding.probability if grounding.probability is not None else grounding.evidence
    if known is None:
        return (segment.start + segment.end) / 2
    middles = grounding.offset + (np.arange(known.shape[1]) + 0.5) * grounding.clip_seconds
    inside = np.flatnonzero((middles > segment.start) & (middles < segment.end))
    if not len(inside):
        return (segment.start + segment.end) / 2
    return float(middles[inside[np.argmax(known[segment.step, inside])]])


def _still(grounding: Grounding, segment: GroundedSegment, source: Path) -> tuple[float, Any] | None:
    """Return the sharpest frame near the most certain moment, or anywhere in the segment; None without a picture."""
    near = _around(grounding, segment, max(_AROUND, grounding.clip_seconds))
    for start, end in (near, (max(segment.start, 0.0), segment.end)):
        with suppress(InputError):  # a sound, or a video of very few frames
            return footage.sharpest_frame(source, start, end)
    return None


def _around(grounding: Grounding, segment: GroundedSegment, seconds: float) -> tuple[float, float]:
    """Return a span about the most certain moment of a segment, inside of it, of this length if it has that."""
    begins = max(segment.start, 0.0)
    start = min(max(most_certain(grounding, segment) - seconds / 2, begins), max(segment.end - seconds, begins))
    return start, min(start + seconds, segment.end)


def _names(segments: list[GroundedSegment]) -> list[str]:
    """Return a name per segment, fit for files: the number of the step and its title; and a count of repeats."""
    seen = Counter[int]()
    names = []
    for one in segments:
        seen[one.step] += 1
        words = _NOT_WORDS.sub("-", one.text.lower().removesuffix("…")).strip("-")
        repeat = f"-{seen[one.step]}" if seen[one.step] > 1 else ""
        names.append(f"{one.step + 1:02d}-{words or 'step'}{repeat}")
    return names
