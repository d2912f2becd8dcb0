"""Acquiring evidence: from a media file or captions to a transcript and visual features, and from these to log-odds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid._options import CostOptions, EvidenceOptions
from graph2vid._processes import cpu_count
from graph2vid.errors import InputError
from graph2vid.evidence.arrays import read_array
from graph2vid.evidence.captions import Cue
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
from graph2vid.evidence.ocr import CAPTION, SCREEN_CALIBRATION, screen_evidence
from graph2vid.evidence.task_model import TaskModel, clip_vectors
from graph2vid.evidence.topic import likeness, plausibilities, plausibility
from graph2vid.evidence.transcript import AnyPath, Progress, Transcript, clips_of, is_captions, transcript_of
from graph2vid.flow import FlowGraph

_KEYS = {"narration": "narration", "on-screen text": "on_screen", "frames": "frames", "scores": "extra_scores"}
_LONG = 1.0  # minutes of embedding that are said beforehand


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
