"""What is done with the videos of a batch: evidence is acquired and aligned. The same functions for every engine.

A stage takes items and fills in what it finds. An item that fails carries the reason through the stages that follow;
it never stops the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from graph2vid.batch.aligning import Found, Request, align_requests, grounding_options
from graph2vid.batch.procedures import procedure_of
from graph2vid.batch.rows import Row, evidence_of, with_files
from graph2vid.batch.settings import Context
from graph2vid.errors import Graph2VidError
from graph2vid.evidence import (
    Cache,
    Evidence,
    embed_frames,
    media_evidence,
    text_hash,
    transcript_of,
)

_LONGEST_NAME = 200  # of a file, without its suffix


@dataclass(slots=True, eq=False)
class Item:
    """A row on its way through the stages.

    Attributes
    ----------
    row : Row
    digest : bytes
        Of the row's content, before anything was read; see :func:`graph2vid.batch.rows.row_digests`.
    evidence : Evidence or None
        After ``acquire``, of rows without arrays.
    found : Found or None
        After ``align``.
    failure : str or None
        Why there is nothing.
    """

    row: Row
    digest: bytes
    evidence: Evidence | None = None
    found: Found | None = None
    failure: str | None = None


Stage: TypeAlias = Callable[[Sequence[Item], Context], None]


def acquire(items: Sequence[Item], context: Context) -> None:
    """Compare transcripts, and frames if asked to, with the steps; transcripts and embeddings are kept in the cache."""
    for item in items:
        if item.row.kind != "arrays":
            with _failing(item):
                item.evidence = _evidence(item.row, context)


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


STAGES: Mapping[str, Stage] = {"acquire": acquire, "align": align}
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


def _evidence(row: Row, context: Context) -> Evidence:
    """Return the evidence of a row with a video or captions, as :func:`graph2vid.ground` acquires it."""
    options = with_files(row.options, context.folder)
    asked, cache = grounding_options(options).evidence, Cache(context.cache)
    flow, _ = procedure_of(row.procedure, options["parser"], context.folder, context.cache)
    video, captions = media_of(row, context)
    transcript = transcript_of(video, captions, asked, required=asked.frames is None, cache=cache)
    if "duration" in options:
        transcript = replace(transcript, duration=options["duration"])
    visual = None
    if asked.frames is not None:
        transcript, visual = embed_frames(video, transcript, asked, cache=cache)
    return media_evidence(flow, transcript, visual, asked, cache=cache)


def _request(item: Item, context: Context) -> Request:
    row = item.row
    flow, tsort = procedure_of(row.procedure, row.options["parser"], context.folder, context.cache)
    evidence = item.evidence or Evidence(evidence_of(row.inputs, context.folder))
    video = str(Path(context.folder) / row.inputs["video"]) if "video" in row.inputs else None
    document = None if context.documents is None else document_path(context.documents, row.id)
    return Request(flow, tsort, evidence, with_files(row.options, context.folder), video, document)


def document_path(documents: str, name: str) -> Path:
    """Return where the grounding of a row is written: a file named by its id, in one of 256 folders."""
    number = text_hash(name)
    quoted = quote(name, safe=" ")
    return Path(documents) / number[:2] / f"{quoted if len(quoted) <= _LONGEST_NAME else number}.json"
