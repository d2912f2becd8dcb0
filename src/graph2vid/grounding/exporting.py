"""Handing a grounding to other programs: what a format is, and the table of formats."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from graph2vid._files import write_text
from graph2vid.errors import InputError
from graph2vid.registry import Registry

if TYPE_CHECKING:
    from graph2vid.grounding.grounding_result import Grounding


@dataclass(frozen=True)
class Exported:
    """A grounding in another format.

    Attributes
    ----------
    text : str
        What the file holds.
    notes : tuple of str
        What was changed to fit the format's rules, and what is left to do; a line each, for people.
    """

    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Film:
    """The video, as a format may want to name it.

    Attributes
    ----------
    name : str
        A path or a URL; empty if it is not known.
    frame_rate : float or None
        Frames per second; None if it is not known (a format that needs it looks at the file).
    images : mapping of int to str
        Pictures of steps, by their numbers from 0: files or URLs.
    """

    name: str = ""
    frame_rate: float | None = None
    images: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Format:
    """A format to export to.

    Attributes
    ----------
    suffix : str
        How the names of its files end by default (``.chapters.vtt``): in two parts, so that no file of the user's
        that is named after the video is in the way.
    export : callable
        Takes a grounding and the film, and writes the one as text.
    uses : frozenset of str
        What of the film it asks for: ``"video"`` (its name), ``"frame_rate"``.
    """

    suffix: str
    export: Callable[[Grounding, Film], Exported]
    uses: frozenset[str] = frozenset({"video", "frame_rate"})


FORMATS: Registry[Format] = Registry("export format", "graph2vid.formats")
"""The formats by name, offered in the entry-point group ``graph2vid.formats`` by graph2vid and other packages."""


DOUBTFUL = ("mark", "omit")
"""What is done with doubtful segments."""


def export(
    grounding: Grounding,
    format: str,
    *,
    video: str | None = None,
    frame_rate: float | None = None,
    short_titles: bool = False,
    doubtful: str = "mark",
    images: Mapping[int, str] | None = None,
) -> Exported:
    """Write a grounding in another format.

    Parameters
    ----------
    grounding : Grounding
        When each step happens.
    format : str
        The name of a format, such as ``"vtt"`` or ``"youtube"``.
    video : str, optional
        How the export shall name the video: a path or a URL. By default as the grounding does.
    frame_rate : float, optional
        Frames per second, for formats that count frames. By default that of the video, where it is a file.
    short_titles : bool
        Whether steps are called by verb and object, in at most 40 characters, rather than by their texts.
    doubtful : str
        ``"mark"``: doubtful segments are marked, where the format has a way to; ``"omit"``: they are left out.
    images : mapping of int to str, optional
        Pictures of steps, by their numbers from 0, for formats that name them (howto, recipe): files or URLs.

    Returns
    -------
    Exported
        The text, and notes on what was changed to fit the format.
    """
    if frame_rate is not None and not 0 < frame_rate < math.inf:
        raise InputError(f"the frame rate must be a positive number of frames per second, not {frame_rate!r}")
    grounding = for_publishing(grounding, short_titles=short_titles, doubtful=doubtful)
    return FORMATS.get(format).export(grounding, Film(video or grounding.video or "", frame_rate, images or {}))


def for_publishing(grounding: Grounding, *, short_titles: bool = False, doubtful: str = "mark") -> Grounding:
    """Return a grounding whose steps have short titles in place of their texts, and doubtful segments are left out.

    Parameters
    ----------
    grounding : Grounding
    short_titles, doubtful
        As for :func:`export`.
    """
    if doubtful not in DOUBTFUL:
        raise InputError(f"doubtful segments are kept by 'mark' or left out by 'omit', not {doubtful!r}")
    if doubtful == "omit":
        kept = tuple(one for one in grounding.segments if not one.is_doubtful)
        shown = {one.step for one in kept}
        grounding = replace(grounding, segments=kept, order=tuple(step for step in grounding.order if step in shown))
    if short_titles:
        from graph2vid.text import short_titles as shortened

        flow = grounding.flow
        named = shortened([step.text or step.id for step in flow.steps])
        steps = tuple(replace(step, text=title) for step, title in zip(flow.steps, named, strict=True))
        segments = tuple(replace(one, text=named[one.step]) for one in grounding.segments)
        grounding = replace(grounding, flow=replace(flow, steps=steps), segments=segments)
    return grounding


def write_export(
    path: str | os.PathLike[str],
    grounding: Grounding,
    format: str,
    *,
    video: str | None = None,
    frame_rate: float | None = None,
    short_titles: bool = False,
    doubtful: str = "mark",
) -> tuple[str, ...]:
    """Write a grounding in another format to a file, whole or not at all, and return the notes.

    Parameters
    ----------
    path : path
        The file.
    grounding, format, video, frame_rate, short_titles, doubtful
        As for :func:`export`.
    """
    exported = export(
        grounding, format, video=video, frame_rate=frame_rate, short_titles=short_titles, doubtful=doubtful
    )
    write_text(path, exported.text)
    return exported.notes
