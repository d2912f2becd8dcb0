"""``ground``: the one service behind the command line, the studio, batches and Python."""

from __future__ import annotations

import inspect
import os
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from graph2vid import evidence as acquisition
from graph2vid._options import EvidenceOptions, GroundOptions
from graph2vid.alignment import Constraint
from graph2vid.errors import Graph2VidError, InputError, TooLargeError
from graph2vid.evidence import Cache, Cue, Evidence, NarrationSettings, Transcript, VisualFeatures
from graph2vid.flow import FlowGraph
from graph2vid.grounding.durations_file import durations_of
from graph2vid.grounding.from_evidence import ground_evidence
from graph2vid.grounding.grounding_result import Grounding
from graph2vid.grounding.order_check import check_order
from graph2vid.grounding.times import format_time
from graph2vid.text import Procedure, parse, procedure_from_text, read_flow
from graph2vid.tsort import TSortGraph

ProcedureLike: TypeAlias = "str | os.PathLike[str] | Procedure | FlowGraph | TSortGraph"
_ADDRESS = re.compile(r"(https?|ftp|rtmp):/+(.*)", re.IGNORECASE)  # a path has lost one of the slashes
Constraints: TypeAlias = "Iterable[Constraint] | Callable[[FlowGraph], Iterable[Constraint]]"


class Features(Protocol):
    """Trained features, as :func:`graph2vid.learn.load_features` returns them: they turn vectors into evidence."""

    def arrays(self, steps: Any, clips: Any) -> dict[str, Any]:
        """Return arrays of evidence from vectors of steps and clips; and the drop policy, if they have their own."""

    def said(
        self, steps: Sequence[str], cues: Sequence[Cue], duration: float, *, clip_seconds: float, max_hours: float
    ) -> dict[str, Any]:
        """Return arrays of evidence from the texts of steps and a transcript."""


def ground(
    procedure: ProcedureLike | Sequence[ProcedureLike],
    video: str | os.PathLike[str] | Transcript | None = None,
    *,
    captions: str | os.PathLike[str] | None = None,
    scores: ArrayLike | None = None,
    clips: ArrayLike | None = None,
    steps: ArrayLike | None = None,
    log_probabilities: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    visual: VisualFeatures | None = None,
    features: Features | None = None,
    constraints: Constraints = (),
    check: bool = False,
    video_name: str | None = None,
    settings: NarrationSettings | None = None,
    cache: Cache | bool = True,
    progress: Callable[..., None] | None = None,
    **options: Any,
) -> Grounding:
    """Say when each step of a procedure happens in a video.

    Parameters
    ----------
    procedure : path, str, Procedure, FlowGraph or TSortGraph; or a list of these
        A file with a procedure in words or a flow graph, or such a procedure itself (K steps). A string of several
        lines, or one that reads like a sentence, is the text of a procedure. Of several procedures that is grounded
        which fits the video best; ``options["ranking"]`` of the result lists them.
    video : path or Transcript, optional
        A media file; or captions, or a transcript, in its place. Beside arrays: the video that they are of.
    captions : path, optional
        Captions of the media file; its speech is transcribed otherwise.
    scores : array [K, N], optional
        In place of a video: how well each step matches each clip; higher is better.
    clips, steps : arrays [N, D] and [K, D], optional
        In place of a video: embeddings of clips and steps, compared by cosine.
    log_probabilities : array [K, N] or [K + 1, N], optional
        In place of a video: log p(step | clip). A row more, the last, is of background.
    classes : int array [K], optional
        Beside arrays: steps with one number count as one and the same.
    visual : VisualFeatures, optional
        Beside a transcript: embeddings of the clips.
    features : Features, optional
        Trained features (:func:`graph2vid.learn.load_features`) of ``clips``, or of the transcript.
    constraints : iterable of Constraint, or function from a FlowGraph to such
        Pins and forbidden spans, in **seconds**. A clip belongs to a span if its middle lies in start ≤ t < stop;
        ±∞ is an open end. A span that holds no clip is an error.
    check : bool
        Whether to look for deviations of the video from the procedure; they are kept in ``options["check"]``.
    video_name : str, optional
        How the result names the video: a path or a URL; by default by ``video``.
    settings : NarrationSettings, optional
        How a transcript becomes log-odds of steps against background.
    cache : Cache or bool
        Where transcripts and embeddings are kept: by default in the cache of the user; False: nowhere.
    progress : callable, optional
        Called as (stage, done, total), or as (stage) where the length is not known.
    **options
        Fields of ``ProcedureOptions``, ``EvidenceOptions``, ``CostOptions`` and ``AlignOptions``: ``clip_seconds``,
        ``frames``, ``drop``, ``skip``, ``repeat``, ``gamma``, … ``help(graph2vid.ground)`` lists them, and
        ``graph2vid ground --help-all`` says what they mean.

    Returns
    -------
    Grounding
        Complete: with the video, the transcript and its source, the options, the plausibility of the procedure, the
        ranking and the check, where there are any.

    Warns
    -----
    UserWarning
        The transcript hardly goes with the procedure; there are fewer clips than steps; confidences, margins or the
        check need more memory or time than there is.

    Examples
    --------
    >>> import graph2vid as g2v
    >>> found = g2v.ground("recipe.txt", "video.mp4")  # doctest: +SKIP
    >>> found = g2v.ground(flow, scores=scores, clip_seconds=2.0)  # doctest: +SKIP
    """
    chosen = GroundOptions.from_mapping(options, text=False)
    acquisition.check_policies(chosen.costs, chosen.alignment.repeat)
    given = {"scores": scores, "clips": clips, "steps": steps, "log_probabilities": log_probabilities}
    arrays: dict[str, Any] = {name: array for name, array in given.items() if array is not None}
    tell = progress or (lambda *_: None)
    for given_path in (video, captions):
        refuse_address(given_path)
    if not arrays:
        _check_media(video, visual, features, chosen.evidence)
    tell("reading the procedure")
    listed = procedure if isinstance(procedure, list | tuple) else [procedure]
    procedures = [procedure_of(one, chosen.procedure.parser) for one in listed]
    flows = [one if isinstance(one, FlowGraph) else one.flow for one in procedures]
    rules = [tuple(constraints(flow) if callable(constraints) else constraints) for flow in flows]
    for flow in flows:  # a file that cannot be read is refused before the work
        durations_of(flow, chosen.evidence.clip_seconds, chosen.alignment.durations, chosen.alignment.min_clips)
    if (arrays or features is not None) and len(procedures) != 1:
        raise InputError(f"with arrays or trained features there is one procedure, not {len(procedures)}")
    best, ranking = 0, None
    if arrays:
        if features is not None:
            if arrays.keys() != {"clips", "steps"}:
                raise InputError("trained features work on embeddings: give clips and steps, or a video and no arrays")
            arrays = features.arrays(**arrays)
        drop = arrays.pop("drop", None)
        _check_clips(arrays, video, video_name, chosen.evidence)
        evidence = Evidence(arrays if classes is None else {**arrays, "classes": classes}, drop=drop)
    else:
        kept = (Cache() if cache else None) if isinstance(cache, bool) else cache
        if isinstance(video, Transcript):
            transcript = video
        else:
            assert video is not None  # it was checked above
            hot = flows[0].texts if len(flows) == 1 else ()  # of several procedures none is to be favoured
            how: dict[str, Any] = {"procedure": hot, "cache": kept, "progress": progress}
            transcript, visual = acquisition.acquire(video, captions, chosen.evidence, **how)
        tell("comparing the transcript with the steps" if visual is None else "comparing the video with the steps")
        if features is not None:
            evidence = _of_features(features, flows[0], transcript, chosen.evidence)
        else:
            if len(flows) > 1:
                ranking = acquisition.rank_procedures(flows, transcript, visual, chosen.evidence, kept)
                best = ranking[0][0]
            about_media = flows[best], transcript, visual, chosen.evidence
            evidence = acquisition.media_evidence(*about_media, settings=settings, cache=kept)
    tell("aligning")
    if ranking is not None:
        names = [flow.title or f"procedure {at + 1}" for at, flow in enumerate(flows)]
        evidence.about["ranking"] = [{"procedure": names[at], "plausibility": fit} for at, fit in ranking]
    if video_name is None and isinstance(video, str | os.PathLike) and not acquisition.is_captions(video):
        video_name = os.fspath(video)
    found = ground_evidence(procedures[best], evidence, chosen, constraints=rules[best], video=video_name)
    _warn(found)
    if check:
        try:
            return replace(found, options=found.options | {"check": check_order(found).to_json()})
        except TooLargeError as error:
            warnings.warn(f"not checked: {error}", stacklevel=2)
    return found


# What `help` shows: the options by their names, in place of **options.
_SIGNATURE = inspect.signature(ground)
_OPTIONS = [
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
    for name, default in GroundOptions().to_mapping().items()
]
ground.__signature__ = _SIGNATURE.replace(  # type: ignore[attr-defined]
    parameters=[*list(_SIGNATURE.parameters.values())[:-1], *_OPTIONS]
)


def refuse_address(path: Any) -> None:
    """Refuse a web address in place of a file, and say how to get the file: nothing is fetched."""
    if isinstance(path, str | os.PathLike) and (address := _ADDRESS.match(os.fspath(path))):
        raise InputError(
            f"{address[1]}://{address[2]} is a web address: download the video first (yt-dlp -f mp4 URL), or its "
            "captions (yt-dlp --skip-download --write-subs --write-auto-subs URL), and give that file"
        )


def _check_media(
    video: Any, visual: VisualFeatures | None, features: Features | None, options: EvidenceOptions
) -> None:
    """Refuse what cannot be grounded before it is transcribed at great cost."""
    if video is None and visual is None:
        arrays = "scores, clips and steps, or log_probabilities"
        raise InputError(f"give a video, captions, or one of {arrays}; found nothing")
    if features is not None:
        if options.frames is not None:
            raise InputError("frames are for a video without trained features, which take the place of its frames")
        return
    if options.narration_weight != 0:
        acquisition.text_embedder(options.embedder)
    elif options.frames is None and options.extra_scores is None and visual is None and options.on_screen != "on":
        raise InputError("with narration_weight 0 nothing is left to go by: name what embeds the frames, too")
    if options.frames is not None:
        acquisition.joint_embedder(options.frames)


def _check_clips(arrays: dict[str, Any], video: Any, video_name: str | None, options: EvidenceOptions) -> None:
    """Refuse arrays whose clips are not as long as their video, where that is a media file here."""
    path = video if isinstance(video, str | os.PathLike) else video_name
    if path is None or not Path(path).is_file() or acquisition.is_captions(path):
        return
    shape = np.shape(arrays["clips"]) if "clips" in arrays else np.shape(next(iter(arrays.values())))[::-1]
    try:
        duration = acquisition.probe(path).duration
    except Graph2VidError:  # what cannot be played has no length
        return
    if len(shape) == 2:  # others are refused later
        acquisition.check_clips(str(path), shape[0], options.clip_seconds, options.offset, duration=duration)


def procedure_of(given: Any, parser: str) -> FlowGraph | TSortGraph:
    """Return a procedure as a flow graph, or as it was compiled."""
    if isinstance(given, FlowGraph | TSortGraph):
        return given
    if isinstance(given, str):
        words = "\n" in given or (" " in given.strip() and not Path(given).suffix and not Path(given).exists())
        given = procedure_from_text(given, source="the procedure") if words else Path(given)
    if isinstance(given, Procedure):
        return parse(given, parser).flow
    if isinstance(given, os.PathLike):
        return read_flow(given, parser)
    raise InputError(
        f"a procedure is a path, a text, a FlowGraph or a TSortGraph, not {type(given).__name__}; see FlowGraph.load"
    )


def _of_features(features: Features, flow: FlowGraph, transcript: Transcript, options: EvidenceOptions) -> Evidence:
    """Return the evidence that trained features see in a transcript."""
    limits = {"clip_seconds": options.clip_seconds, "max_hours": options.max_hours}
    arrays = features.said(flow.texts, transcript.cues, transcript.duration, **limits)
    about = {"cues": len(transcript.cues), "duration": transcript.duration, "source": transcript.source}
    return Evidence(arrays, cues=transcript.cues, about={"narration": about}, drop=arrays.pop("drop", None))


def _warn(found: Grounding) -> None:
    """Warn of a procedure that the video hardly shows, and of clips that are too few."""
    compared = [found.options[name] for name in ("narration", "on_screen") if name in found.options]
    plausible = max((one.get("plausibility", 1.0) for one in compared), default=1.0)
    if plausible < acquisition.UNLIKELY:
        warnings.warn(
            f"the transcript hardly goes with this procedure ({plausible:.0%}); is it the right one for this video, "
            "and in the language spoken? (--embedder names one for other languages)",
            stacklevel=3,
        )
    clips, count = len(found.labels), len(found.flow)
    if clips < count and not found.options.keys().isdisjoint({"narration", "on_screen", "frames", "extra_scores"}):
        warnings.warn(
            f"{format_time(found.duration)} in clips of {found.clip_seconds:g} s are {clips} clips, fewer than the "
            f"{count} steps: at least {count - clips} cannot be shown; make the clips shorter (clip_seconds)",
            stacklevel=3,
        )
