"""The transcript of a video: captions, recognised speech, and the text in its picture."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from graph2vid._options import EvidenceOptions
from graph2vid.errors import InputError, TooLargeError, how_to_install
from graph2vid.evidence.captions import SUFFIXES, TRANSCRIPT_SUFFIXES, Cue, in_order, read_captions
from graph2vid.evidence.evidence_cache import Cache
from graph2vid.evidence.ocr import is_installed, read_screen, screen_cues

MOST_HOURS = 24.0
"""Of a video, unless told otherwise."""
MOST_CLIPS = 1_000_000
"""Of a video: a day in clips of a tenth of a second."""
_HARDLY = 5.0  # words a minute: less is hardly anything
_UNDERSTOOD = 0.5  # mean probability of a word; in its own language the bundled model has 0.85, in others up to 0.4

AnyPath: TypeAlias = str | os.PathLike[str]

Progress: TypeAlias = Callable[..., None]
"""Called as (stage, done, total); where the length is not known, as (stage)."""


@dataclass(frozen=True)
class Transcript:
    """The transcript of a video: its words, with their times.

    Attributes
    ----------
    cues : tuple of Cue
        In order of time; those that were read off the picture have a ``kind``.
    duration : float
        Seconds; of captions alone, where the last of them ends.
    source : str
        Where the words come from, for people; why there are none.
    """

    cues: tuple[Cue, ...]
    duration: float
    source: str = "given"


def check_length(duration: float, max_hours: float = MOST_HOURS) -> None:
    """Refuse a video of more than ``max_hours`` (TooLargeError); ``duration`` is in seconds."""
    if not 0 < max_hours < math.inf:
        raise InputError(f"the longest video must be a positive number of hours, not {max_hours!r}")
    if duration > 3600.0 * max_hours:
        limit = f"at most {max_hours:g} are taken (--max-hours): is a time wrong?"
        raise TooLargeError(f"the video, or its last caption, ends after {duration / 3600:,.4g} hours, and {limit}")


def clips_of(duration: float, clip_seconds: float, max_hours: float = MOST_HOURS) -> int:
    """Return how many clips cover a video.

    Parameters
    ----------
    duration, clip_seconds : float
        Seconds.
    max_hours : float
        The longest video that is taken for one.

    Raises
    ------
    TooLargeError
        The video lasts longer, or would have more than a million clips.
    """
    check_length(duration, max_hours)
    if duration / clip_seconds > MOST_CLIPS:
        limit = f"at most {MOST_CLIPS:,} are taken: use longer clips (--clip-seconds)"
        found = f"{duration / clip_seconds:,.4g} of a video of {duration:,.4g} s"
        raise TooLargeError(f"clips of {clip_seconds:g} s make {found}, and {limit}")
    return math.ceil(duration / clip_seconds)


def is_captions(path: AnyPath) -> bool:
    """Say whether a file holds captions, by its suffix."""
    return Path(path).suffix.lower() in (*SUFFIXES, *TRANSCRIPT_SUFFIXES)


def transcript_of(
    video: AnyPath,
    captions: AnyPath | None = None,
    options: EvidenceOptions = EvidenceOptions(),  # noqa: B008
    *,
    required: bool = True,
    procedure: Sequence[str] = (),
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Transcript:
    """Read the transcript of a video from captions, or transcribe its speech; read the text in its picture.

    Parameters
    ----------
    video : path
        A media file, or captions in its place (``.vtt``, ``.srt``, or the JSON of Whisper).
    captions : path, optional
        Captions of the media file; no speech is transcribed then.
    options : EvidenceOptions
        ``speech_model``, ``language``, ``max_hours``, ``on_screen``; at ``narration_weight`` 0 no speech is
        transcribed.
    required : bool
        Whether it is an error if nothing is said, and nothing written.
    procedure : sequence of str
        The steps that are looked for: with ``options.hot_words`` the recogniser is told of them.
    cache : Cache, optional
        Where transcripts are kept.
    progress : callable, optional
        Is told how far the work is.

    Raises
    ------
    InputError
        The captions are empty, or the video has no words where that is required; the message says what to give.
    TooLargeError
        The video lasts longer than ``max_hours``.
    """
    video = Path(video)
    if is_captions(video):
        if options.on_screen == "on":
            raise InputError(f"{video} holds captions, which have no picture to read text in: give the video itself")
        if options.narration_weight != 0:
            if captions is not None:
                raise InputError(f"{video} holds captions itself: give the video, or these captions alone")
            cues = _captions(video)
            return Transcript(cues, max(cue.end for cue in cues), f"captions {video.name}")
    from graph2vid.evidence.media import probe

    info = probe(video)
    check_length(info.duration, options.max_hours)
    cues, source = (), "not transcribed"
    if options.narration_weight != 0:
        # As sentences: told of bare words, the recogniser leaves out the full stops that part cues.
        hot = " ".join(procedure) if options.hot_words else ""
        if captions is not None:
            cues, source = _captions(Path(captions)), f"captions {Path(captions).name}"
        elif info.has_audio:
            cues, source = _recognised(video, options, hot, cache, progress)
        else:
            source = "no sound"
    written: tuple[Cue, ...] = ()
    unread = "" if info.has_video else ", and it has no picture"
    if info.has_video and _is_read(cues, info.duration, options):
        if options.on_screen == "auto" and not is_installed():
            unread = f"; the text in its picture was not read ({how_to_install('ocr')})"
        else:
            tell = None if progress is None else lambda done, total: progress("reading on-screen text", done, total)
            written = screen_cues(read_screen(video, info.duration, cache=cache, progress=tell), info.duration)
            unread = ", and there is no text in its picture"
            if written:
                source = f"{source}, on-screen text" if cues else "on-screen text"
    if required and not cues and not written:
        why = f"no words were recognised in {video}" if info.has_audio else f"{video} has no sound"
        if options.narration_weight == 0:
            why = f"the speech in {video} was not transcribed"
        models = "a model that embeds its frames (--frames MODEL), or scores (--scores FILE)"
        raise InputError(f"{why}{unread}: give captions (--captions FILE), {models}")
    return Transcript(in_order(cues + written), info.duration, source)


def _recognised(
    video: Path, options: EvidenceOptions, hot_words: str, cache: Cache | None, progress: Progress | None
) -> tuple[tuple[Cue, ...], str]:
    """Transcribe the speech of a video; return its narration, and where that is from."""
    from graph2vid.evidence.speech import BUNDLED, transcribe

    tell = None if progress is None else lambda done, total: progress("transcribing", done, total)
    model = options.speech_model
    told: dict[str, Any] = {"hot_words": hot_words} if hot_words else {}
    cues = transcribe(video, model=model, language=options.language, cache=cache, progress=tell, **told)
    _warn_of_guesses(video, cues)
    return cues, f"speech recognition ({model or BUNDLED})" if cues else "no words recognised"


def _is_read(cues: Sequence[Cue], duration: float, options: EvidenceOptions) -> bool:
    """Say whether the text in the picture is to be read, given the narration."""
    if options.on_screen != "auto":
        return options.on_screen == "on"
    words = sum(len(cue.text.split()) for cue in cues)
    return options.narration_weight != 0 and words < _HARDLY * duration / 60.0


def _captions(path: Path) -> tuple[Cue, ...]:
    cues = read_captions(path)
    if not cues:
        raise InputError(f"{path}: nothing is said in these captions")
    return cues


def _warn_of_guesses(video: Path, cues: Sequence[Cue]) -> None:
    """Warn where a recogniser was so unsure of its words that it hardly understood the language."""
    sure = [word.probability for cue in cues for word in cue.words if word.probability is not None]
    if sure and (mean := sum(sure) / len(sure)) < _UNDERSTOOD:
        warnings.warn(
            f"the speech in {video} was hardly understood (a word is right with {mean:.0%}): if its language is not "
            "one of the model's, give captions or another model (--speech-model small)",
            stacklevel=3,
        )
