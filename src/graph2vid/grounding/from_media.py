"""From what is said in a video to a grounding."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from graph2vid.alignment import Constraint
from graph2vid.errors import InputError
from graph2vid.evidence import Cue, narration_similarity, text_embedder
from graph2vid.evidence.costs import Choice
from graph2vid.flow import FlowGraph
from graph2vid.grounding.from_arrays import ground
from graph2vid.grounding.result import Grounding
from graph2vid.grounding.times import format_time
from graph2vid.tsort import TSortGraph

# How cosines between words said and steps become costs. Most videos leave something out: a step may be not shown.
MATCH = "likelihood_bg"
DROP = "percentile:20"
SKIP = "percentile"
TEMPERATURE = 0.1


def ground_narrated(
    flow: FlowGraph | TSortGraph,
    cues: Sequence[Cue],
    duration: float,
    *,
    embedder: str = "wordllama",
    clip_seconds: float = 1.0,
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
    match, drop, skip, temperature
        How similarities become costs (see :func:`graph2vid.evidence.costs_from_arrays`); by default
        :data:`MATCH`, :data:`DROP`, :data:`SKIP` and :data:`TEMPERATURE`.
    constraints, confidence
        As for :func:`graph2vid.ground`.

    Returns
    -------
    Grounding
        Its options say, under ``"narration"``, what was compared.

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
    scores = narration_similarity(
        procedure.texts,
        said,
        math.ceil(duration / clip_seconds),
        text_embedder(embedder),
        clip_seconds=clip_seconds,
    )
    found = ground(
        flow,
        scores=scores,
        clip_seconds=clip_seconds,
        match=MATCH if match is None else match,
        drop=DROP if drop is None else drop,
        skip=SKIP if skip is None else skip,
        temperature=TEMPERATURE if temperature is None else temperature,
        constraints=constraints,
        confidence=confidence,
    )
    about = {"embedder": embedder, "cues": len(said), "duration": float(duration)}
    return replace(found, options=found.options | {"narration": about})
