"""What is done with the videos of a batch: evidence is acquired and aligned. The same functions for every engine.

A stage takes items and fills in what it finds. An item that fails carries the reason through the stages that follow;
it never stops the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from graph2vid.batch.aligning import Found, Request, align_requests, grounding_options
from graph2vid.batch.columns import ARRAYS, FILES
from graph2vid.batch.rows import Row, matrix_of, procedure_of, with_files
from graph2vid.batch.runs import reason_of
from graph2vid.batch.settings import Context
from graph2vid.evidence import Cache, Evidence, embed_frames, media_evidence, text_hash, transcript_of

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


def acquire(items: Sequence[Item], context: Context) -> None:
    """Compare transcripts, and frames if asked to, with the steps; transcripts and embeddings are kept in the cache."""
    for item in items:
        if not item.row.inputs.keys().isdisjoint(FILES):
            try:
                item.evidence = _evidence(item.row, context)
            except Exception as error:
                item.failure = reason_of(error)


def align(items: Sequence[Item], context: Context) -> None:
    """Align the videos with their procedures, those of one procedure side by side."""
    requests: dict[int, Request] = {}
    for at, item in enumerate(items):
        try:
            requests[at] = _request(item, context)
        except Exception as error:
            item.failure = reason_of(error)
    for at, found in zip(requests, align_requests(list(requests.values())), strict=True):
        if isinstance(found, Exception):
            items[at].failure = reason_of(found)
        else:
            items[at].found = found


STAGES: Mapping[str, Callable[[Sequence[Item], Context], None]] = {"acquire": acquire, "align": align}
"""The stages by name, in order."""


def run_stages(items: Sequence[Item], context: Context) -> dict[str, float]:
    """Take items through the stages; return the seconds of each."""
    seconds = {}
    for item in items:
        item.failure = context.problems.get(item.row.id)
    for name, stage in STAGES.items():
        began = time.perf_counter()
        stage([item for item in items if item.failure is None], context)
        seconds[name] = time.perf_counter() - began
    return seconds


def _evidence(row: Row, context: Context) -> Evidence:
    """Return the evidence of a row with a video or captions, as :func:`graph2vid.ground` acquires it."""
    options = with_files(row.options, context.folder)
    asked, cache = grounding_options(options).evidence, Cache(context.cache)
    flow, _ = procedure_of(row.procedure, options["parser"], context.folder, context.cache)
    media = [str(Path(context.folder) / row.inputs[name]) for name in FILES if name in row.inputs]
    video, captions = media if len(media) == 2 else (media[0], None)  # captions alone stand in the video's place
    needed = asked.frames is None and asked.extra_scores is None
    transcript = transcript_of(video, captions, asked, required=needed, procedure=flow.texts, cache=cache)
    if "duration" in options:
        transcript = replace(transcript, duration=options["duration"])
    visual = None
    if asked.frames is not None:
        transcript, visual = embed_frames(video, transcript, asked, cache=cache)
    return media_evidence(flow, transcript, visual, asked, cache=cache)


def _request(item: Item, context: Context) -> Request:
    row, folder = item.row, context.folder
    flow, tsort = procedure_of(row.procedure, row.options["parser"], folder, context.cache)
    evidence = item.evidence or Evidence(
        {name: matrix_of(row.inputs[name], folder) for name in ARRAYS if name in row.inputs}
    )
    video = str(Path(folder) / row.inputs["video"]) if "video" in row.inputs else None
    document = None if context.documents is None else document_path(context.documents, row.id)
    return Request(flow, tsort, evidence, with_files(row.options, folder), video, document)


def document_path(documents: str, name: str) -> Path:
    """Return where the grounding of a row is written: a file named by its id, in one of 256 folders."""
    number = text_hash(name)
    quoted = quote(name, safe=" ")
    return Path(documents) / number[:2] / f"{quoted if len(quoted) <= _LONGEST_NAME else number}.json"
