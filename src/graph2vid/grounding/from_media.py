"""From what is said in a video to a grounding."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from graph2vid.alignment import Constraint
from graph2vid.errors import InputError
from graph2vid.evidence import Cue, NarrationSettings, narration_evidence, plausibility, text_embedder
from graph2vid.evidence.costs import Choice
from graph2vid.flow import FlowGraph
from graph2vid.grounding.from_arrays import ground
from graph2vid.grounding.result import Grounding
from graph2vid.grounding.times import format_time
from graph2vid.tsort import TSortGraph


def ground_narrated(
    flow: FlowGraph | TSortGraph,
    cues: Sequence[Cue],
    duration: float,
    *,
    embedder: str = "wordllama",
    clip_seconds: float = 1.0,
    settings: NarrationSettings | None = None,
    match: str | None = None,
    drop: Choice | None = None,
    skip: Choice | None = None,
    temperature: float | None = None,
    constraints: Iterable[Constraint] = (),
    confidence: bool = True,
) -> Grounding:
    """Say when each step happens in a video, from what is said in it.

    Parameters
    ----------
    flow : FlowGraph or TSortGraph
        The procedure.
    cues : sequence of Cue
        What is said when, read (:func:`graph2vid.evidence.read_captions`) or recognised
        (:func:`graph2vid.evidence.speech.transcribe`). What lies beyond the end of the video is left out.
    duration : float
        Length of the video in seconds.
    embedder : str
        What compares words said with steps: a name of :func:`graph2vid.evidence.text_embedder`.
    clip_seconds : float
        The video is cut into clips of this many seconds; the last may reach beyond its end.
    settings : NarrationSettings, optional
        How what is said becomes log-odds of steps against background.
    match, drop, skip, temperature
        How log-odds become costs (see :func:`graph2vid.evidence.costs_from_arrays`); by default preset ``log_odds``,
        and the prices of not showing a step that :func:`graph2vid.evidence.narration_evidence` tells: most videos
        leave something out.
    constraints, confidence
        As for :func:`graph2vid.ground`.

    Returns
    -------
    Grounding
        Its options say, under ``"narration"``, what was compared, and how plausible it is that the video shows this
        procedure at all (:func:`graph2vid.evidence.plausibility`).

    Raises
    ------
    InputError
        Nothing is said in the video.
    """
    if not isinstance(flow, FlowGraph | TSortGraph):
        raise InputError(f"a FlowGraph or TSortGraph is needed, not {type(flow).__name__}; see FlowGraph.load")
    if not 0 < duration < math.inf:
        raise InputError(f"the duration must be a positive number of seconds, not {duration!r}")
    if not 0 < clip_seconds < math.inf:
        raise InputError(f"clip_seconds must be positive, not {clip_seconds!r}")
    said = [replace(cue, end=min(cue.end, duration)) for cue in cues if 0 <= cue.start < duration]
    if not said:
        raise InputError(
            f"none of the {len(cues)} cues lies within the video, which lasts {format_time(duration)}: "
            "are they of another video?"
            if cues
            else "nothing is said in the video: give captions, or scores of another kind"
        )
    procedure = flow if isinstance(flow, FlowGraph) else flow.flow
    embed = text_embedder(embedder)
    evidence = narration_evidence(
        procedure.texts,
        said,
        math.ceil(duration / clip_seconds),
        embed,
        clip_seconds=clip_seconds,
        settings=settings,
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
        constraints=constraints,
        confidence=confidence,
    )
    about = {
        "embedder": embedder,
        "cues": len(said),
        "duration": float(duration),
        "plausibility": plausibility(procedure.texts, said, embed, title=procedure.title).probability,
    }
    return replace(found, options=found.options | {"narration": about})
