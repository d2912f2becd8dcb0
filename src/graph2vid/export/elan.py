"""ELAN's annotation files (.eaf), written and read through pympi-ling (extra ``export``)."""

from __future__ import annotations

import mimetypes
import os
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from graph2vid._files import read_bytes
from graph2vid._values import number_of
from graph2vid.errors import FormatError, InputError, needing
from graph2vid.export.shared import format_named, labels, one_line, timed
from graph2vid.grounding import Exported, Film, Grounding, file_name, is_url

TIER = "steps"
"""The tier that holds the segments."""
_CONFIDENCE = "confidence"
_LANGUAGE = "und"  # undetermined


@format_named("elan", ".steps.eaf", "video")
def export_elan(grounding: Grounding, film: Film) -> Exported:
    """Write a tier "steps", whose values are chosen from a vocabulary of the steps, and one of confidences."""
    pympi = _pympi()
    segments, notes = timed(grounding)
    names = labels(grounding.flow)
    eaf = pympi.Elan.Eaf(author="graph2vid")
    eaf.header |= {"MEDIA_FILE": "", "TIME_UNITS": "milliseconds"}
    if film.name:
        eaf.add_linked_file(*_media(film.name))
    else:
        notes.append("the video is not known: link it in ELAN (Edit, Linked Files), or name it with --video")
    eaf.add_language(_LANGUAGE, "http://cdb.iso.org/lg/CDB-00130975-001", "undetermined (und)")
    eaf.add_controlled_vocabulary(TIER)
    eaf.add_cv_description(TIER, _LANGUAGE, one_line(grounding.flow.title) or None)
    for number, name in enumerate(names, start=1):
        eaf.add_cv_entry(TIER, f"step{number}", [(name, _LANGUAGE, one_line(grounding.flow.ids[number - 1]))])
    kind = {"LINGUISTIC_TYPE_ID": TIER, "TIME_ALIGNABLE": "true", "GRAPHIC_REFERENCES": "false"}
    eaf.add_linguistic_type(TIER, param_dict=kind | {"CONTROLLED_VOCABULARY_REF": TIER})
    eaf.add_tier(TIER, TIER)
    eaf.remove_tier("default")
    for segment in segments:
        eaf.add_annotation(TIER, segment.start, segment.end, names[segment.step])
    if any(segment.confidence is not None for segment in segments):  # a tier with a value for each annotation
        eaf.add_linguistic_type(_CONFIDENCE, constraints="Symbolic_Association", timealignable=False)
        eaf.add_tier(_CONFIDENCE, _CONFIDENCE, parent=TIER)
    for annotation, segment in zip(list(eaf.tiers[TIER][0]), segments, strict=True):
        if segment.confidence is not None:
            number = eaf.generate_annotation_id()
            eaf.tiers[_CONFIDENCE][1][number] = (annotation, f"{segment.confidence:.2f}{segment.mark}", None, None)
    document = pympi.Elan.to_adocument(eaf)
    text = ElementTree.tostring(document, encoding="unicode", xml_declaration=False)
    return Exported(f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n', tuple(notes))


def _media(video: str) -> tuple[str, str | None, str]:
    """Return the URL of the video, its name beside the file, and its kind."""
    kind = mimetypes.guess_type(file_name(video))[0] or "video/*"
    path = Path(video)
    return (video, None, kind) if is_url(video) else (path.resolve().as_uri(), f"./{path.name}", kind)


def read_elan(path: str | os.PathLike[str], tier: str | None = None) -> list[tuple[str, float, float]]:
    """Read the annotations of one tier as (value, start, end), in seconds.

    Parameters
    ----------
    path : path
        An .eaf file.
    tier : str, optional
        The tier; by default the one called "steps", or the only one that has annotations with times.
    """
    pympi = _pympi()
    read_bytes(path, 1)  # whether it is there at all, with our words
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer versions of the format are read alike
            eaf = pympi.Elan.Eaf(Path(path).resolve())
    except Exception as error:  # pympi raises whatever comes its way
        reason = " ".join(str(error).split())[:200]
        raise FormatError(f"{path} cannot be read as an ELAN file ({type(error).__name__}: {reason})") from error
    name = _chosen_tier(path, eaf, tier)
    found = []
    for annotation, (begin, end, value, _) in eaf.tiers[name][0].items():
        start, stop = eaf.timeslots.get(begin), eaf.timeslots.get(end)
        if start is None or stop is None:
            raise FormatError(f"{path}, tier {name!r}: annotation {annotation} ({value!r}) has no times")
        where = f"{path}, tier {name!r}: a time"
        found.append((value, number_of(start, where) / 1000, number_of(stop, where) / 1000))
    return found


def _chosen_tier(path: str | os.PathLike[str], eaf: Any, tier: str | None) -> str:
    if (wanted := tier or TIER) in eaf.tiers:
        return wanted
    if tier is not None:
        raise InputError(f"{path} has no tier {tier!r}; it has {', '.join(map(repr, eaf.tiers)) or 'none'}")
    filled: list[str] = [name for name, parts in eaf.tiers.items() if parts[0]]
    if len(filled) != 1:
        named = ", ".join(map(repr, filled)) or "none"
        message = f"{path} has no tier {TIER!r}, and of the others not one alone has annotations ({named}): name one"
        raise InputError(message)
    return filled[0]


def _pympi() -> Any:
    with needing("ELAN files need pympi-ling", "export"):
        import pympi
    return pympi
