"""Acquiring evidence: from a media file or captions to a transcript and visual features, and from these to log-odds."""

from __future__ import annotations

import math
import os
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid._options import CostOptions, EvidenceOptions
from graph2vid._processes import cpu_count
from graph2vid.errors import InputError, TooLargeError, how_to_install
from graph2vid.evidence.arrays import read_array
from graph2vid.evidence.captions import SUFFIXES, TRANSCRIPT_SUFFIXES, Cue, in_order, read_captions
from graph2vid.evidence.costs import Costs, costs_from_arrays
from graph2vid.evidence.embed import Frames, Grid, cached, joint_embedder, text_embedder, video_clips
from graph2vid.evidence.evidence_cache import Cache
from graph2vid.evidence.fusion import (
    Source,
    VisualFeatures,
    contributions,
    frames_evidence,
    frames_likeness,
    fuse,
    given_evidence,
    source_weights,
)
from graph2vid.evidence.language import check_language
from graph2vid.evidence.narration import CALIBRATION as NARRATION_CALIBRATION
from graph2vid.evidence.narration import NarrationSettings, narration_evidence
from graph2vid.evidence.ocr import (
    CAPTION,
    SCREEN_CALIBRATION,
    is_installed,
    read_screen,
    screen_cues,
    screen_evidence,
)
from graph2vid.evidence.task_model import TaskModel, clip_vectors
from graph2vid.evidence.topic import likeness, plausibilities, plausibility
from graph2vid.flow import FlowGraph

MOST_HOURS = 24.0
"""Of a video, unless told otherwise."""
MOST_CLIPS = 1_000_000
"""Of a video: a day in clips of a tenth of a second."""
_KEYS = {"narration": "narration", "on-screen text": "on_screen", "frames": "frames", "scores": "extra_scores"}
_LONG = 1.0  # minutes of embedding that are said beforehand
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


@dataclass(frozen=True, eq=False)
class Evidence:
    """What speaks for each step in each clip of a video, before it becomes costs.

    Attributes
    ----------
    arrays : mapping
        ``scores``, ``log_probabilities``, or ``clips`` and ``steps``; and ``classes``, if given: as
        :func:`graph2vid.evidence.costs_from_arrays` takes them.
    preset : str or None
        The settings of costs that suit the arrays, unless the user chooses others.
    skip : float64 [K] or None
        The cost of not showing a step, unless the user chooses another.
    drop : (str, array) or None
        A drop policy and its value, unless the user chooses one, or a preset.
    cues : tuple of Cue
        The transcript, as far as it lies within the video.
    about : dict
        Under ``"narration"``, ``"on_screen"``, ``"frames"`` and ``"extra_scores"``: what was compared, in a form fit
        for JSON.
    calibration : dict or None
        The calibrator that a task model has for this evidence, as JSON.
    sources : mapping of str to float64 [K, N]
        What each of several sources adds to the evidence, in nats; empty where there is one.
    """

    arrays: Mapping[str, Any]
    preset: str | None = None
    skip: NDArray[np.float64] | None = None
    cues: tuple[Cue, ...] = ()
    about: dict[str, Any] = field(default_factory=dict)
    calibration: dict[str, Any] | None = None
    drop: tuple[str, Any] | None = None
    sources: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    def costs(self, options: CostOptions, n_steps: int) -> Costs:
        """Return the costs of the clips for a procedure of so many steps."""
        skip = self.skip if options.skip is None else options.skip
        drop = self.drop if options.drop is None and options.preset is None else options.drop
        chosen = replace(options, preset=options.preset or self.preset, drop=drop, skip=skip)
        return costs_from_arrays(chosen, **self.arrays, n_steps=n_steps)


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


def embed_frames(
    video: AnyPath,
    transcript: Transcript,
    options: EvidenceOptions,
    *,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> tuple[Transcript, VisualFeatures]:
    """Embed the frames of a video, clip by clip.

    Parameters
    ----------
    video : path
        A media file. Captions have no frames, unless ``options.frames`` names arrays; these then tell how long the
        video is.
    transcript : Transcript
        Of the video, with its length.
    options : EvidenceOptions
        ``frames`` (a name of :func:`graph2vid.evidence.embed.joint_embedder`), ``clip_seconds``, ``max_hours``.
    cache : Cache, optional
        Where embeddings are kept, of clips and of texts; what is there is neither decoded nor embedded.
    progress : callable, optional
        Is told how far the work is.
    """
    chosen = joint_embedder(options.frames or "")
    seconds, duration = options.clip_seconds, transcript.duration
    if is_captions(video):
        clips = chosen.clips(_no_frames(video), clip_seconds=seconds)
        transcript = replace(transcript, duration=len(clips) * seconds)
    else:
        tell = None if progress is None else lambda done: progress("embedding frames", done, duration)
        n_clips = clips_of(duration, seconds, max_hours=options.max_hours)
        minutes = n_clips * max(seconds / chosen.clip_seconds, 1.0) * chosen.window_seconds / cpu_count() / 60.0
        if minutes > _LONG and progress is not None:
            progress(f"embedding frames, which takes about {minutes:.0f} minutes here")
        clips = video_clips(video, chosen, clip_seconds=seconds, n_clips=n_clips, cache=cache, progress=tell)
    return transcript, VisualFeatures(clips, chosen if cache is None else cached(chosen, cache))


def _no_frames(captions: AnyPath) -> Frames:
    raise InputError(f"{captions} holds captions, which have no frames: give the video itself")
    yield


def acquire(
    video: AnyPath,
    captions: AnyPath | None = None,
    options: EvidenceOptions = EvidenceOptions(),  # noqa: B008
    *,
    procedure: Sequence[str] = (),
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> tuple[Transcript, VisualFeatures | None]:
    """Return the transcript of a video and, if ``options.frames`` asks for them, its visual features.

    With visual features the video need not have a transcript. See :func:`transcript_of` and :func:`embed_frames`.
    """
    if progress is not None:
        progress("loading the video and models")
    kept: dict[str, Any] = {"procedure": procedure, "cache": cache, "progress": progress}
    needed = options.frames is None and options.extra_scores is None
    found = transcript_of(video, captions, options, required=needed, **kept)
    if options.frames is None:
        return found, None
    return embed_frames(video, found, options, cache=cache, progress=progress)


def media_evidence(
    procedure: FlowGraph,
    transcript: Transcript,
    visual: VisualFeatures | None = None,
    options: EvidenceOptions = EvidenceOptions(),  # noqa: B008
    *,
    settings: NarrationSettings | None = None,
    cache: Cache | None = None,
) -> Evidence:
    """Compare the transcript of a video, its visual features, or both with the steps of a procedure.

    Parameters
    ----------
    procedure : FlowGraph
        Of K steps.
    transcript : Transcript
        What lies beyond the end of the video is left out.
    visual : VisualFeatures, optional
        Of clips of ``options.clip_seconds``.
    options : EvidenceOptions
        ``embedder``, ``language``, ``clip_seconds``, ``max_hours``, ``narration_weight``, ``frames_weight``,
        ``extra_scores``, ``adapted`` (a :class:`TaskModel`, or the path of one).
    settings : NarrationSettings, optional
        How the transcript becomes log-odds of steps against background.
    cache : Cache, optional
        Where embeddings of texts are kept.

    Returns
    -------
    Evidence
        Log-odds of the steps against background in the N clips. The cost of not showing a step is what
        :func:`graph2vid.evidence.narration_evidence` tells, since most videos leave something out; without a
        transcript it is 0: a step is shown where something speaks for it. ``about["narration"]`` says how plausible it
        is that the video shows this procedure at all (:func:`graph2vid.evidence.plausibility`).

    Raises
    ------
    InputError
        There is neither a transcript nor visual features, or they are not of this video.
    """
    duration, seconds = transcript.duration, options.clip_seconds
    if not 0 < duration < np.inf:
        raise InputError(f"the duration must be a positive number of seconds, not {duration!r}")
    n_clips = clips_of(duration, seconds, options.max_hours)
    chosen = settings or NarrationSettings()
    model = None if options.adapted is None else task_model(procedure, options, visual)
    sources: list[Source] = []
    about: dict[str, Any] = {}
    cues = [replace(cue, end=min(cue.end, duration)) for cue in transcript.cues if 0 <= cue.start < duration]
    said = [cue for cue in cues if not cue.kind]
    written = [cue for cue in cues if cue.kind]
    if cues or model is not None:
        embed = text_embedder(options.embedder)
        check_language([cue for cue in cues if cue.kind in ("", CAPTION)], embed, options.language)
        if cache is not None:
            embed = cached(embed, cache)
    if said:
        found = narration_evidence(procedure.texts, said, n_clips, embed, clip_seconds=seconds, settings=chosen)
        weighed = options.narration_weight, found.skip
        sources.append(Source("narration", found.log_likelihood, *weighed, calibration=NARRATION_CALIBRATION))
        about["narration"] = {
            "embedder": options.embedder,
            "cues": len(said),
            "duration": float(duration),
            "plausibility": plausibility(procedure.texts, said, embed, title=procedure.title).probability,
            "likeness": likeness(procedure.texts, said, embed),
            "source": transcript.source,
        }
    elif transcript.cues and not cues:
        given = f"none of the {len(transcript.cues)} cues lies within the video, which lasts {duration:g} s"
        raise InputError(f"{given}: are they of another video?")
    if written:
        shown = screen_evidence(procedure.texts, written, embed, Grid(seconds, n_clips, 0.0), title=procedure.title)
        about["on_screen"] = {
            "cues": len(written),
            "kinds": dict(Counter(cue.kind for cue in written)),
            "numbered": shown.numbered,
            "plausibility": plausibility(procedure.texts, written, embed, title=procedure.title).probability,
            "source": transcript.source,
        }
        if about["on_screen"]["kinds"].get(CAPTION):
            odds = shown.log_odds
            if said or visual is not None or options.extra_scores is not None:
                odds = np.where(shown.near, odds, np.nan)
            stated: dict[str, Any] = {"is_odds": True, "calibration": SCREEN_CALIBRATION}
            sources.append(Source("on-screen text", odds, None, shown.skip, **stated))
    if visual is not None:
        if len(visual.clips) != n_clips:
            wanted = f"a video of {duration:g} s has {n_clips} of {seconds:g} s"
            raise InputError(f"{len(visual.clips)} clips were embedded, but {wanted}")
        sources.append(Source("frames", frames_evidence(procedure.texts, visual), options.frames_weight))
        about["frames"] = {"embedder": visual.embedder.name}
        unknown = ~visual.embedder.texts(procedure.texts).any(axis=1)
        if unknown.any():  # the embedder knows nothing like these steps: its frames say nothing for or against them
            about["frames"]["silent_about"] = [procedure.ids[step] for step in np.flatnonzero(unknown)]
    if options.extra_scores is not None:
        if model is not None:
            raise InputError("a task model is of words and frames alone: leave out extra_scores, or adapted")
        scores = read_array(options.extra_scores)
        nats = given_evidence(scores, len(procedure), n_clips, str(options.extra_scores))
        sources.append(Source("scores", nats, None))
        about["extra_scores"] = {"file": Path(options.extra_scores).name}
    if not sources:
        what = "nothing is said in the video"
        if written:
            kinds = ", ".join(sorted({cue.kind for cue in written}))
            what = f"{what}, and no caption is in its picture (only {kinds})"
        raise InputError(f"{what}: give captions, embeddings of its frames, or scores")
    weights = source_weights(sources, clip_seconds=seconds, level=chosen.level)
    sources = [replace(source, weight=weight) for source, weight in zip(sources, weights, strict=True)]
    for source in sources:
        about[_KEYS[source.name]]["weight"] = float(np.round(source.weight or 0.0, 4))
    log_odds, skip = fuse(sources, level=chosen.level)
    apart = dict(zip([source.name for source in sources], contributions(sources), strict=True))
    apart = apart if len(sources) > 1 else {}
    skip = np.zeros(len(procedure)) if skip is None else skip
    if model is None:
        return Evidence({"scores": log_odds}, "log_odds", skip, tuple(cues), about, sources=apart)
    vectors, _ = clip_vectors(cues, embed, Grid(seconds, n_clips, 0.0), None if visual is None else visual.clips)
    scores, skip = model.apply(vectors, log_odds, skip)
    about["narration" if said else "on_screen" if written else "frames"]["adapted"] = {
        name: value for name, value in model.about.items() if name != "words"
    }
    return Evidence({"scores": scores}, "log_odds", skip, tuple(cues), about, model.calibration, sources=apart)


def task_model(procedure: FlowGraph, options: EvidenceOptions, visual: VisualFeatures | None = None) -> TaskModel:
    """Return the task model that ``options.adapted`` names; one of another procedure or embedder is refused."""
    if options.narration_weight != 1:
        raise InputError("a task model is learnt beside narration as it is: leave out narration_weight, or adapted")
    given = options.adapted
    if isinstance(given, TaskModel):
        found, source = given, "the task model"
    else:
        path = Path(given)
        found, source = _read_task_model(path, path.stat().st_mtime_ns if path.exists() else 0), str(path)
    found.check(procedure.texts, text_embedder(options.embedder), None if visual is None else visual.embedder, source)
    return found


@lru_cache(maxsize=64)
def _read_task_model(path: Path, changed: int) -> TaskModel:
    """Read a task model once, unless its file was changed."""
    return TaskModel.load(path)


def rank_procedures(
    procedures: Sequence[FlowGraph],
    transcript: Transcript,
    visual: VisualFeatures | None,
    options: EvidenceOptions,
    cache: Cache | None = None,
) -> list[tuple[int, float | None]]:
    """Return the indices of procedures, that which fits a video best first, with its plausibility where it is known.

    They are ranked by the transcript or, where there is none, by the visual features.
    """
    if transcript.cues:
        embed = text_embedder(options.embedder)
        asked = [(procedure.title, procedure.texts) for procedure in procedures]
        fits = plausibilities(asked, transcript.cues, embed if cache is None else cached(embed, cache))
        scored: list[tuple[float, float | None]] = [(fit.score, fit.probability) for fit in fits]
    elif visual is not None:
        scored = [(frames_likeness(procedure.texts, visual), None) for procedure in procedures]
    else:
        raise InputError("nothing is said in the video, and it has no visual features: there is nothing to rank by")
    order = sorted(range(len(procedures)), key=lambda at: -scored[at][0])
    return [(at, scored[at][1]) for at in order]
