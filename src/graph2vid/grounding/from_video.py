"""From a video, or its captions, to what is said in it and to a grounding."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from graph2vid.errors import InputError
from graph2vid.evidence.cache import Cache
from graph2vid.evidence.captions import SUFFIXES, TRANSCRIPT_SUFFIXES, Cue, read_captions

Progress = Callable[[float, float], None]
"""Is told how many seconds of sound were recognised, of how many in all."""


@dataclass(frozen=True)
class Narration:
    """What is said in a video.

    Attributes
    ----------
    cues : tuple of Cue
        What is said when, in order of time.
    duration : float
        Seconds; of captions alone, where the last of them ends.
    source : str
        Where the words come from, for people.
    """

    cues: tuple[Cue, ...]
    duration: float
    source: str


def hear(
    video: str | os.PathLike[str],
    *,
    captions: str | os.PathLike[str] | None = None,
    model: str | None = None,
    language: str | None = None,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Narration:
    """Find out what is said in a video: from captions, or by speech recognition.

    Parameters
    ----------
    video : path
        A media file, or captions in its place (``.vtt``, ``.srt``, or the JSON of Whisper).
    captions : path, optional
        Captions of the media file; nothing is recognised then.
    model, language, cache, progress
        As for :func:`graph2vid.evidence.speech.transcribe`.

    Returns
    -------
    Narration

    Raises
    ------
    InputError
        Nothing is said, or there is neither sound nor a caption.
    """
    video = Path(video)
    if video.suffix.lower() in (*SUFFIXES, *TRANSCRIPT_SUFFIXES):
        if captions is not None:
            raise InputError(f"{video} holds captions itself: give the video, or these captions alone")
        cues = read_captions(video)
        if not cues:
            raise InputError(f"{video}: nothing is said in these captions")
        return Narration(cues, max(cue.end for cue in cues), f"captions {video.name}")
    from graph2vid.evidence.media import probe

    info = probe(video)
    if info.duration <= 0:
        raise InputError(f"{video} lasts 0 seconds: there is nothing to ground")
    if captions is not None:
        cues = read_captions(captions)
        if not cues:
            raise InputError(f"{captions}: nothing is said in these captions")
        return Narration(cues, info.duration, f"captions {Path(captions).name}")
    from graph2vid.evidence.speech import BUNDLED, transcribe

    cues = transcribe(video, model=model, language=language, cache=cache, progress=progress)
    if not cues:
        raise InputError(f"no words were recognised in {video}: give captions (--captions) or scores (--scores)")
    return Narration(cues, info.duration, f"speech recognition ({model or BUNDLED})")
