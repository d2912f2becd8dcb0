"""From what is said and seen in a video to a grounding."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid.alignment import Constraint, Durations
from graph2vid.errors import InputError
from graph2vid.evidence import (
    Cue,
    NarrationSettings,
    Seen,
    Source,
    check_language,
    frames_evidence,
    fuse,
    narration_evidence,
    plausibility,
    text_embedder,
)
from graph2vid.evidence.costs import Choice
from graph2vid.evidence.embed import cached
from graph2vid.evidence.evidence_cache import Cache
from graph2vid.evidence.length import MOST_HOURS, clips_of
from graph2vid.flow import FlowGraph
from graph2vid.grounding.from_arrays import ground
from graph2vid.grounding.grounding_result import Grounding
from graph2vid.grounding.times import format_time
from graph2vid.tsort import TSortGraph


@dataclass(frozen=True, eq=False)
class MediaEvidence:
    """What speaks for each step in each clip of a video.

    Attributes
    ----------
    log_odds : float64 [K, N]
        Of the K steps against background in the N clips.
    skip : float64 [K]
        The price of not showing a step.
    cues : tuple of Cue
        What is said before the video ends.
    about : dict
        Under ``"narration"`` and ``"frames"``: what was compared, in a form fit for JSON.
    """

    log_odds: NDArray[np.float64]
    skip: NDArray[np.float64]
    cues: tuple[Cue, ...]
    about: dict[str, Any]


def ground_media(
    flow: FlowGraph | TSortGraph,
    duration: float,
    *,
    cues: Sequence[Cue] = (),
    seen: Seen | None = None,
    embedder: str = "wordllama",
    language: str | None = None,
    narration_weight: float = 1.0,
    frames_weight: float = 1.0,
    clip_seconds: float = 1.0,
    max_hours: float = MOST_HOURS,
    settings: NarrationSettings | None = None,
    match: str | None = None,
    drop: Choice | None = None,
    skip: Choice | None = None,
    temperature: float | None = None,
    repeat: Choice | None = None,
    durations: Durations | ArrayLike | None = None,
    breaking: float = 1.0,
    constraints: Iterable[Constraint] = (),
    time_limit: float | None = None,
    confidence: bool = True,
    margins: bool = False,
    gamma: float = 1.0,
    cache: Cache | None = None,
) -> Grounding:
    """Say when each step happens in a video, from what is said in it, from what is seen in it, or from both.

    Parameters
    ----------
    flow : FlowGraph or TSortGraph
        The procedure.
    duration : float
        Length of the video in seconds.
    cues : sequence of Cue
        What is said when, read (:func:`graph2vid.evidence.read_captions`) or recognised
        (:func:`graph2vid.evidence.speech.transcribe`). What lies beyond the end of the video is left out.
    seen : Seen, optional
        What is seen in clips of ``clip_seconds`` (:func:`graph2vid.grounding.from_video.see`).
    embedder : str
        What compares words said with steps: a name of :func:`graph2vid.evidence.text_embedder`.
    language : str, optional
        The code of the language spoken, such as ``"en"``; by default it is found out
        (:func:`graph2vid.evidence.language_of`).
    narration_weight, frames_weight : float
        How much a nat of either counts (:func:`graph2vid.evidence.fuse`).
    clip_seconds : float
        The video is cut into clips of this many seconds; the last may reach beyond its end.
    max_hours : float
        The longest video that is taken for one; a longer one is an error.
    settings : NarrationSettings, optional
        How what is said becomes log-odds of steps against background.
    match, drop, skip, temperature
        How log-odds become costs (see :func:`graph2vid.evidence.costs_from_arrays`); by default preset ``log_odds``.
        The price of not showing a step is by default what :func:`graph2vid.evidence.narration_evidence` tells, since
        most videos leave something out; without narration it is 0: a step is shown where something speaks for it.
    repeat, durations, breaking, constraints, time_limit, confidence, margins, gamma
        As for :func:`graph2vid.ground`.
    cache : Cache, optional
        Where embeddings of texts are kept.

    Returns
    -------
    Grounding
        Its options say, under ``"narration"`` and ``"frames"``, what was compared and, for narration, how plausible
        it is that the video shows this procedure at all (:func:`graph2vid.evidence.plausibility`).

    Raises
    ------
    InputError
        Nothing is said or seen in the video, or it is said in a language that the embedder does not know.
    """
    if not isinstance(flow, FlowGraph | TSortGraph):
        raise InputError(f"a FlowGraph or TSortGraph is needed, not {type(flow).__name__}; see FlowGraph.load")
    if not 0 < duration < math.inf:
        raise InputError(f"the duration must be a positive number of seconds, not {duration!r}")
    if not 0 < clip_seconds < math.inf:
        raise InputError(f"clip_seconds must be positive, not {clip_seconds!r}")
    evidence = media_evidence(
        flow if isinstance(flow, FlowGraph) else flow.flow,
        duration,
        cues=cues,
        seen=seen,
        embedder=embedder,
        language=language,
        narration_weight=narration_weight,
        frames_weight=frames_weight,
        clip_seconds=clip_seconds,
        max_hours=max_hours,
        settings=settings,
        cache=cache,
    )
    found = ground(
        flow,
        scores=evidence.log_odds,
        clip_seconds=clip_seconds,
        preset="log_odds",
        match=match,
        drop=drop,
        skip=evidence.skip if skip is None else skip,
        temperature=temperature,
        repeat=repeat,
        durations=durations,
        breaking=breaking,
        constraints=constraints,
        time_limit=time_limit,
        confidence=confidence,
        margins=margins,
        gamma=gamma,
    )
    clips, steps = len(found.labels), len(found.flow)
    if clips < steps:
        warnings.warn(
            f"{format_time(duration)} in clips of {clip_seconds:g} s are {clips} clips, fewer than the {steps} steps: "
            f"at least {steps - clips} cannot be shown; make the clips shorter (clip_seconds)",
            stacklevel=2,
        )
    return replace(found, options=found.options | evidence.about, cues=evidence.cues)


def media_evidence(
    procedure: FlowGraph,
    duration: float,
    *,
    cues: Sequence[Cue] = (),
    seen: Seen | None = None,
    embedder: str = "wordllama",
    language: str | None = None,
    narration_weight: float = 1.0,
    frames_weight: float = 1.0,
    clip_seconds: float = 1.0,
    max_hours: float = MOST_HOURS,
    settings: NarrationSettings | None = None,
    cache: Cache | None = None,
) -> MediaEvidence:
    """Weigh what is said and what is seen in a video for the steps of a procedure; see :func:`ground_media`."""
    n_clips = clips_of(duration, clip_seconds, max_hours)
    chosen = settings or NarrationSettings()
    sources: list[Source] = []
    about: dict[str, Any] = {}
    said = [replace(cue, end=min(cue.end, duration)) for cue in cues if 0 <= cue.start < duration]
    if said:
        embed = text_embedder(embedder)
        check_language(said, embed, language)
        if cache is not None:
            embed = cached(embed, cache)
        heard = narration_evidence(procedure.texts, said, n_clips, embed, clip_seconds=clip_seconds, settings=chosen)
        sources.append(Source("narration", heard.log_likelihood, narration_weight, heard.skip))
        about["narration"] = {
            "embedder": embedder,
            "weight": float(narration_weight),
            "cues": len(said),
            "duration": float(duration),
            "plausibility": plausibility(procedure.texts, said, embed, title=procedure.title).probability,
        }
    elif cues:
        raise InputError(
            f"none of the {len(cues)} cues lies within the video, which lasts {format_time(duration)}: "
            "are they of another video?"
        )
    if seen is not None:
        if len(seen.clips) != n_clips:
            raise InputError(
                f"{len(seen.clips)} clips were embedded, but a video of {format_time(duration)} has {n_clips} of "
                f"{clip_seconds:g} s"
            )
        sources.append(Source("frames", frames_evidence(procedure.texts, seen), frames_weight))
        about["frames"] = {"embedder": seen.embedder.name, "weight": float(frames_weight)}
    if not sources:
        raise InputError("nothing is said in the video: give captions, embeddings of its frames, or scores")
    log_odds, told = fuse(sources, level=chosen.level)
    return MediaEvidence(log_odds, np.zeros(len(procedure)) if told is None else told, tuple(said), about)


def ground_narrated(flow: FlowGraph | TSortGraph, cues: Sequence[Cue], duration: float, **options: Any) -> Grounding:
    """Say when each step happens in a video, from what is said in it: :func:`ground_media` without frames."""
    return ground_media(flow, duration, cues=cues, **options)
