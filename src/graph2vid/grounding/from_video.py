"""From a video, or its captions, to what is said and seen in it, and to a grounding."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graph2vid.errors import InputError
from graph2vid.evidence import Seen
from graph2vid.evidence.captions import SUFFIXES, TRANSCRIPT_SUFFIXES, Cue, read_captions
from graph2vid.evidence.embed import Frames, cached, joint_embedder, video_clips
from graph2vid.evidence.evidence_cache import Cache
from graph2vid.evidence.length import MOST_HOURS, check_length, clips_of
from graph2vid.flow import FlowGraph
from graph2vid.grounding.from_media import ground_media
from graph2vid.grounding.grounding_result import Grounding
from graph2vid.tsort import TSortGraph

_UNDERSTOOD = 0.5  # mean probability of a word; in its own language the bundled model has 0.85, in others up to 0.4

Progress = Callable[[float, float], None]
"""Is told how many seconds of the video are done, of how many in all."""


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
        Where the words come from, for people; why there are none.
    """

    cues: tuple[Cue, ...]
    duration: float
    source: str


def is_captions(path: Path) -> bool:
    """Say whether a file holds captions, by its suffix."""
    return path.suffix.lower() in (*SUFFIXES, *TRANSCRIPT_SUFFIXES)


def hear(
    video: str | os.PathLike[str],
    *,
    captions: str | os.PathLike[str] | None = None,
    model: str | None = None,
    language: str | None = None,
    max_hours: float = MOST_HOURS,
    cache: Cache | None = None,
    progress: Progress | None = None,
    required: bool = True,
    listen: bool = True,
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
    max_hours : float
        The longest media file that is taken for a video; a longer one is refused before anything is recognised.
    required : bool
        Whether it is an error if there is no sound, or no word in it.
    listen : bool
        Whether what is said counts; if not, only the length of the video is found out.

    Returns
    -------
    Narration

    Raises
    ------
    InputError
        Nothing is said in the captions, or in the video where that is required; the message says what to give.
    TooLargeError
        The video lasts longer than ``max_hours``.
    """
    video = Path(video)
    if not listen:
        from graph2vid.evidence.media import probe

        duration = probe(video).duration
        check_length(duration, max_hours)
        return Narration((), duration, "not listened to")
    if is_captions(video):
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
    check_length(info.duration, max_hours)
    if captions is not None:
        cues = read_captions(captions)
        if not cues:
            raise InputError(f"{captions}: nothing is said in these captions")
        return Narration(cues, info.duration, f"captions {Path(captions).name}")
    from graph2vid.evidence.speech import BUNDLED, transcribe

    cues, source = (), "no sound"
    if info.has_audio:
        cues = transcribe(video, model=model, language=language, cache=cache, progress=progress)
        source = f"speech recognition ({model or BUNDLED})" if cues else "no words recognised"
        _warn_of_guesses(video, cues)
    if required and not cues:
        why = f"no words were recognised in {video}" if info.has_audio else f"{video} has no sound"
        raise InputError(
            f"{why}: give captions (--captions FILE), a model that sees its frames (--frames MODEL), or scores "
            "(--scores FILE)"
        )
    return Narration(cues, info.duration, source)


def _warn_of_guesses(video: Path, cues: Sequence[Cue]) -> None:
    """Warn where a recogniser was so unsure of its words that it hardly understood the language."""
    sure = [word.probability for cue in cues for word in cue.words if word.probability is not None]
    if sure and (mean := sum(sure) / len(sure)) < _UNDERSTOOD:
        warnings.warn(
            f"the speech in {video} was hardly understood (a word is right with {mean:.0%}): if its language is not "
            "one of the model's, give captions or another model (--speech-model small)",
            stacklevel=3,
        )


def see(
    video: str | os.PathLike[str],
    frames: str,
    duration: float,
    *,
    clip_seconds: float = 1.0,
    max_hours: float = MOST_HOURS,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Seen:
    """Embed what is seen in the clips of a video.

    Parameters
    ----------
    video : path
        A media file. Of captions nothing is seen, unless ``frames`` names arrays.
    frames : str
        An embedder whose texts and clips may be compared: a name of :func:`graph2vid.evidence.embed.joint_embedder`.
    duration : float
        Length of the video in seconds.
    clip_seconds : float
        Length of a clip in seconds.
    max_hours : float
        The longest video that is taken for one.
    cache : Cache, optional
        Where embeddings are kept, of clips and of texts; what is there is neither decoded nor embedded.
    progress : callable, optional
        Is told the seconds done and the seconds in all.
    """
    chosen = joint_embedder(frames)
    video = Path(video)
    if is_captions(video):
        clips = chosen.clips(_none_of(video), clip_seconds=clip_seconds)
    else:
        clips = video_clips(
            video,
            chosen,
            clip_seconds=clip_seconds,
            n_clips=clips_of(duration, clip_seconds, max_hours=max_hours),
            cache=cache,
            progress=None if progress is None else lambda seconds: progress(seconds, duration),
        )
    return Seen(clips, chosen if cache is None else cached(chosen, cache))


def watch(
    video: str | os.PathLike[str],
    *,
    captions: str | os.PathLike[str] | None = None,
    frames: str | None = None,
    listen: bool = True,
    model: str | None = None,
    language: str | None = None,
    clip_seconds: float = 1.0,
    max_hours: float = MOST_HOURS,
    cache: Cache | None = None,
    listening: Progress | None = None,
    looking: Progress | None = None,
) -> tuple[Narration, Seen | None]:
    """Find out what is said in a video and, if asked to, what is seen in it: :func:`hear` and :func:`see`.

    Parameters
    ----------
    video, captions, model, language, max_hours, cache
        As for :func:`hear`.
    frames : str, optional
        As for :func:`see`; by default only what is said counts. With frames, nothing need be said.
    listen : bool
        Whether what is said counts; if not, no speech is recognised.
    clip_seconds : float
        Length of a clip in seconds.
    listening, looking : callable, optional
        Are told how far :func:`hear` and :func:`see` are.
    """
    narration = hear(
        video,
        captions=captions,
        model=model,
        language=language,
        max_hours=max_hours,
        cache=cache,
        progress=listening,
        required=frames is None,
        listen=listen,
    )
    if frames is None:
        return narration, None
    return look(video, narration, frames, clip_seconds=clip_seconds, max_hours=max_hours, cache=cache, progress=looking)


def look(
    video: str | os.PathLike[str], narration: Narration, frames: str, *, clip_seconds: float = 1.0, **options: Any
) -> tuple[Narration, Seen]:
    """See a video that was heard (:func:`see`); beside captions alone, the arrays tell how long it is."""
    seen = see(video, frames, narration.duration, clip_seconds=clip_seconds, **options)
    if is_captions(Path(video)):
        narration = replace(narration, duration=len(seen.clips) * clip_seconds)
    return narration, seen


def ground_video(
    flow: FlowGraph | TSortGraph,
    video: str | os.PathLike[str],
    *,
    captions: str | os.PathLike[str] | None = None,
    frames: str | None = None,
    model: str | None = None,
    language: str | None = None,
    narration_weight: float = 1.0,
    clip_seconds: float = 1.0,
    max_hours: float = MOST_HOURS,
    cache: Cache | None = None,
    **options: Any,
) -> Grounding:
    """Say when each step happens in a video file: :func:`watch` and :func:`ground_media`.

    Parameters
    ----------
    flow : FlowGraph or TSortGraph
        The procedure.
    video, captions, frames, model, language, clip_seconds, max_hours, cache
        As for :func:`watch`.
    narration_weight : float
        As for :func:`ground_media`; at 0 no speech is recognised.
    **options
        As for :func:`ground_media`.
    """
    narration, seen = watch(
        video,
        captions=captions,
        frames=frames,
        listen=narration_weight != 0,
        model=model,
        language=language,
        clip_seconds=clip_seconds,
        max_hours=max_hours,
        cache=cache,
    )
    return ground_media(
        flow,
        narration.duration,
        cues=narration.cues,
        seen=seen,
        language=language,
        narration_weight=narration_weight,
        clip_seconds=clip_seconds,
        max_hours=max_hours,
        cache=cache,
        **options,
    )


def _none_of(captions: Path) -> Frames:
    raise InputError(f"{captions} holds captions, in which nothing is seen: give the video itself")
    yield
