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

from graph2vid.errors import Graph2VidError, InputError
from graph2vid.evidence import Cue, check_language, narration_evidence, plausibility, read_array, text_embedder
from graph2vid.evidence.cache import Cache, text_hash
from graph2vid.grounding import ground, ground_narrated
from graph2vid.grounding.from_video import Narration
from graph2vid.grounding.from_video import hear as hear_video
from graph2vid.scale.aligning import Found, Request, align_requests
from graph2vid.scale.procedures import compiled, flow_of
from graph2vid.scale.rows import Row, evidence_of
from graph2vid.scale.settings import Context

_EVIDENCE = 1  # to be raised when narration is weighed in another way
_LONGEST_NAME = 200  # of a file, without its suffix


@dataclass(slots=True, eq=False)
class Item:
    """A row on its way through the stages.

    Attributes
    ----------
    row : Row
    said : Narration or None
        What is said in the video, after ``hear``.
    evidence : float64 [K + 1, N + 1] or None
        After ``embed``: log-odds of steps against background in clips, the price of not showing a step as last
        column, and in the corner the plausibility of the procedure.
    found : Found or None
        After ``align``.
    failure : str or None
        Why there is nothing.
    """

    row: Row
    said: Narration | None = None
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
            inputs = {name: str(Path(context.folder) / path) for name, path in item.row.inputs.items()}
            video, captions = inputs.get("video"), inputs.get("captions")
            options = item.row.options
            said = hear_video(
                video or captions or "",
                captions=captions if video else None,
                model=options.get("speech_model"),
                language=options.get("language"),
                cache=cache,
            )
            item.said = replace(said, duration=options["duration"]) if "duration" in options else said


def embed(items: Sequence[Item], context: Context) -> None:
    """Make evidence of what is said, kept by its content and that of the procedure."""
    cache = Cache(context.cache)
    for item in items:
        if item.said is not None:
            with _failing(item):
                item.evidence = _narrated(item.row, item.said, context, cache)


def align(items: Sequence[Item], context: Context) -> None:
    """Align the videos with their procedures, those of one procedure side by side."""
    requests: dict[int, Request] = {}
    for at, item in enumerate(items):
        with _failing(item):
            requests[at] = _request(item, context)
    for at, found in zip(requests, align_requests(list(requests.values()), context.threads), strict=True):
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
    said = " ".join(str(error).split())
    if isinstance(error, Graph2VidError):
        return said
    return f"{type(error).__name__}: {said}"


@contextmanager
def _failing(item: Item) -> Iterator[None]:
    """Turn an error into the item's failure."""
    try:
        yield
    except Exception as error:
        item.failure = reason_of(error)


def _flow(row: Row, context: Context) -> Any:
    return flow_of(row.procedure, row.options["parser"], context.folder, context.cache)


def _cues_within(said: Narration) -> list[Cue]:
    """Return what is said before the video ends."""
    cues = [replace(cue, end=min(cue.end, said.duration)) for cue in said.cues if 0 <= cue.start < said.duration]
    if not cues:
        raise InputError(f"none of the {len(said.cues)} cues lies within the video, which lasts {said.duration:g} s")
    return cues


def _narrated(row: Row, said: Narration, context: Context, cache: Cache) -> NDArray[np.float64]:
    flow = _flow(row, context)
    name, seconds = row.options["embedder"], row.options["clip_seconds"]
    embedder = text_embedder(name)
    cues = _cues_within(said)
    check_language(cues, embedder, row.options.get("language"))
    n_clips = math.ceil(said.duration / seconds)

    def make() -> NDArray[np.float64]:
        found = narration_evidence(flow.texts, cues, n_clips, embedder, clip_seconds=seconds)
        packed = np.zeros((len(flow) + 1, n_clips + 1))
        packed[:-1, :-1] = found.log_odds
        packed[:-1, -1] = found.skip
        packed[-1, -1] = plausibility(flow.texts, cues, embedder, title=flow.title).probability
        return packed

    spoken = [f"{cue.start} {cue.end} {cue.text} {[(word.start, word.end) for word in cue.words]}" for cue in cues]
    key = {
        "said": text_hash(*spoken),
        "steps": text_hash(flow.title, *flow.texts),
        "clips": [n_clips, seconds],
        "embedder": [name, embedder.version],
        "evidence": _EVIDENCE,
    }
    return cache.array("narration", key, make)


def _request(item: Item, context: Context) -> Request:
    row = item.row
    options = row.options | {
        name: _policy(row.options[name], context.folder) for name in ("drop", "skip") if name in row.options
    }
    flow = _flow(row, context)
    evidence: dict[str, Any]
    plausible = None
    if item.evidence is None:
        evidence = evidence_of(row.inputs, context.folder)
    else:
        plausible = float(item.evidence[-1, -1])
        evidence = {"scores": item.evidence[:-1, :-1]}
        if "skip" not in options:
            evidence["skip"] = item.evidence[:-1, -1]
        options = {"preset": "log_odds"} | options
    return Request(flow, compiled(flow), evidence, options, plausible)


def _policy(text: str, folder: str) -> Any:
    """Return POLICY[:VALUE], in which the value may be the name of a ``.npy`` file."""
    name, colon, value = text.partition(":")
    return (name, read_array(Path(folder) / value)) if colon and value.endswith(".npy") else text


def document_path(documents: str, name: str) -> Path:
    """Return where the grounding of a row is written: a file named by its id, in one of 256 folders."""
    number = text_hash(name)
    quoted = quote(name, safe=" ")
    return Path(documents) / number[:2] / f"{quoted if len(quoted) <= _LONGEST_NAME else number}.json"


def _write_document(item: Item, context: Context) -> None:
    if item.found is None:
        return
    request, options = item.found.request, item.found.request.options
    common: dict[str, Any] = {
        name: options.get(name) for name in ("match", "drop", "skip", "temperature", "clip_seconds", "confidence")
    }
    if item.said is not None:
        grounding = ground_narrated(
            request.flow, item.said.cues, item.said.duration, embedder=options["embedder"], **common
        )
    else:
        own: dict[str, Any] = {name: options.get(name) for name in ("offset", "preset", "contiguous", "gamma")}
        grounding = ground(request.tsort or request.flow, **(dict(request.evidence) | common | own))
    if "video" in item.row.inputs:
        grounding = replace(grounding, video=str(Path(context.folder) / item.row.inputs["video"]))
    path = document_path(context.documents or "", item.row.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    grounding.save(path)
