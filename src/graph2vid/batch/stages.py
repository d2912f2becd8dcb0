"""What is done with the videos of a batch: hearing, embedding, aligning. The same functions for every engine.

A stage takes items and fills in what it finds. An item that fails carries the reason through the stages that follow;
it never stops the others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from graph2vid.batch.aligning import Found, Request, align_requests, grounding_options
from graph2vid.batch.procedures import procedure_of
from graph2vid.batch.rows import Row, evidence_of, with_files
from graph2vid.batch.settings import Context
from graph2vid.errors import Graph2VidError
from graph2vid.evidence import (
    Cache,
    Evidence,
    Transcript,
    embed_frames,
    media_evidence,
    text_embedder,
    text_hash,
    transcript_of,
)
from graph2vid.grounding import ground_evidence

_OF_MEDIA = ("embedder", "language", "narration_weight", "frames_weight", "clip_seconds", "max_hours")
_OF_LOG_ODDS = {"preset": "log_odds", "offset": 0.0, "contiguous": True}
_EVIDENCE = 2  # to be raised when narration is weighed in another way
_LONGEST_NAME = 200  # of a file, without its suffix


@dataclass(slots=True, eq=False)
class Item:
    """A row on its way through the stages.

    Attributes
    ----------
    row : Row
    digest : bytes
        Of the row's content, before anything was read; see :func:`graph2vid.batch.rows.row_digests`.
    said : Transcript or None
        What is said in the video, after ``hear``.
    evidence : float64 [K + 1, N + 1] or None
        After ``embed``: log-odds of steps against background in clips, the price of not showing a step as last
        column, and in the corner the plausibility of the procedure (NaN: not known).
    found : Found or None
        After ``align``.
    failure : str or None
        Why there is nothing.
    """

    row: Row
    digest: bytes
    said: Transcript | None = None
    evidence: NDArray[np.float64] | None = None
    found: Found | None = None
    failure: str | None = None


Stage: TypeAlias = Callable[[Sequence[Item], Context], None]


def hear(items: Sequence[Item], context: Context) -> None:
    """Find out what is said: captions are read, speech is recognised (and kept by the content of the sound)."""
    cache = Cache(context.cache)
    for item in items:
        if item.row.kind == "arrays":
            continue
        with _failing(item):
            options = item.row.options
            video, captions = media_of(item.row, context)
            said = transcript_of(
                video,
                captions,
                grounding_options(options).evidence,
                required="frames" not in options,
                cache=cache,
            )
            item.said = replace(said, duration=options["duration"]) if "duration" in options else said


def embed(items: Sequence[Item], context: Context) -> None:
    """Make evidence of what is said and seen, kept by its content and that of the procedure."""
    cache = Cache(context.cache)
    for item in items:
        if item.said is not None:
            with _failing(item):
                item.evidence = _kept_evidence(item.row, item.said, context, cache)


def align(items: Sequence[Item], context: Context) -> None:
    """Align the videos with their procedures, those of one procedure side by side."""
    requests: dict[int, Request] = {}
    for at, item in enumerate(items):
        with _failing(item):
            requests[at] = _request(item, context)
    for at, found in zip(requests, align_requests(list(requests.values())), strict=True):
        if isinstance(found, Exception):
            items[at].failure = reason_of(found)
        else:
            items[at].found = found
    if context.documents is not None:
        for item in items:
            with _failing(item):
                _write_document(item, context)


STAGES: Mapping[str, Stage] = {"hear": hear, "embed": embed, "align": align}
"""The stages by name, in order."""


def run_stages(items: Sequence[Item], names: Sequence[str], context: Context) -> dict[str, float]:
    """Take items through some stages; return the seconds of each."""
    seconds = {}
    for item in items:
        if item.failure is None:
            item.failure = context.problems.get(item.row.id)
    for name in names:
        began = time.perf_counter()
        STAGES[name]([item for item in items if item.failure is None], context)
        seconds[name] = time.perf_counter() - began
    return seconds


def reason_of(error: BaseException) -> str:
    """Return why something failed, in one line."""
    if isinstance(error, MemoryError):
        return "out of memory"
    said = printable(" ".join(str(error).split()))
    if isinstance(error, Graph2VidError):
        return said
    return f"{type(error).__name__}: {said}"


def printable(text: str) -> str:
    """Return text in which nothing is left that no file can hold: lone surrogates are written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


@contextmanager
def _failing(item: Item) -> Iterator[None]:
    """Turn an error into the item's failure."""
    try:
        yield
    except Exception as error:
        item.failure = reason_of(error)


def media_of(row: Row, context: Context) -> tuple[str, str | None]:
    """Return the video of a row, or captions in its place, and the captions beside a video."""
    video, captions = (
        str(Path(context.folder) / row.inputs[name]) if name in row.inputs else None for name in ("video", "captions")
    )
    return (captions or "", None) if video is None else (video, captions)


def _evidence(row: Row, said: Transcript, context: Context) -> Evidence:
    """Weigh what is said in a video and, if asked to, what is seen in it (of which the clips' embeddings are kept)."""
    options = with_files(row.options, context.folder)
    flow, _ = procedure_of(row.procedure, options["parser"], context.folder, context.cache)
    seen = None
    if "frames" in options:
        video, _ = media_of(row, context)
        said, seen = embed_frames(video, said, grounding_options(options).evidence, cache=Cache(context.cache))
    return media_evidence(flow, said, seen, grounding_options(options).evidence)


def _of_media(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in _OF_MEDIA if name in options}


def _packed(found: Evidence) -> NDArray[np.float64]:
    """Return evidence as one array, [K + 1, N + 1]; see :class:`Item`."""
    log_odds = found.arrays["scores"]
    packed = np.zeros((len(log_odds) + 1, log_odds.shape[1] + 1))
    packed[:-1, :-1] = log_odds
    packed[:-1, -1] = found.skip
    packed[-1, -1] = found.about.get("narration", {}).get("plausibility", np.nan)
    return packed


def _kept_evidence(row: Row, said: Transcript, context: Context, cache: Cache) -> NDArray[np.float64]:
    """Return the packed evidence of a row: kept by what is said, unless something is seen, too."""
    if "frames" in row.options:
        return _packed(_evidence(row, said, context))
    flow, _ = procedure_of(row.procedure, row.options["parser"], context.folder, context.cache)
    spoken = [f"{cue.start} {cue.end} {cue.text} {[(word.start, word.end) for word in cue.words]}" for cue in said.cues]
    key = {
        "said": text_hash(*spoken),
        "steps": text_hash(flow.title, *flow.texts),
        "duration": said.duration,
        "options": _of_media(row.options),
        "embedder": text_embedder(row.options["embedder"]).version,
        "evidence": _EVIDENCE,
    }
    return cache.array("narration", key, lambda: _packed(_evidence(row, said, context)))


def _request(item: Item, context: Context) -> Request:
    row = item.row
    flow, tsort = procedure_of(row.procedure, row.options["parser"], context.folder, context.cache)
    options = with_files(row.options, context.folder)
    if item.evidence is None:
        return Request(flow, tsort, evidence_of(row.inputs, context.folder), options)
    evidence = {"scores": item.evidence[:-1, :-1]}
    if "skip" not in options:
        evidence["skip"] = item.evidence[:-1, -1]
    plausible = float(item.evidence[-1, -1])
    return Request(flow, tsort, evidence, options | _OF_LOG_ODDS, None if math.isnan(plausible) else plausible)


def document_path(documents: str, name: str) -> Path:
    """Return where the grounding of a row is written: a file named by its id, in one of 256 folders."""
    number = text_hash(name)
    quoted = quote(name, safe=" ")
    return Path(documents) / number[:2] / f"{quoted if len(quoted) <= _LONGEST_NAME else number}.json"


def _write_document(item: Item, context: Context) -> None:
    if item.found is None:
        return
    request = item.found.request
    evidence = Evidence(dict(request.evidence)) if item.said is None else _evidence(item.row, item.said, context)
    options = grounding_options(with_files(item.row.options, context.folder))
    video = str(Path(context.folder) / item.row.inputs["video"]) if "video" in item.row.inputs else None
    grounding = ground_evidence(request.tsort or request.flow, evidence, options, video=video)
    path = document_path(context.documents or "", item.row.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    grounding.save(path)
