"""What is done with the videos of a batch: evidence is acquired and aligned. The same functions for every engine.

A stage takes items and fills in what it finds. An item that fails carries the reason through the stages that follow;
it never stops the others.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from graph2vid.batch.aligning import Found, Request, align_requests, grounding_options
from graph2vid.batch.columns import ARRAYS, strings
from graph2vid.batch.procedures import procedure_of
from graph2vid.batch.rows import Row, decode, matrix_of, row_digests, with_files
from graph2vid.batch.runs import reason_of
from graph2vid.batch.settings import Context
from graph2vid.evidence import Cache, Cue, Evidence, embed_frames, media_evidence, text_hash, transcript_of

_LONGEST_NAME = 200  # of a file, without its suffix
_EVIDENCE, _FAILURE, _DIGEST = "_evidence", "_failure", "_digest"
"""Columns that stages add to a table of rows."""


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


# -- between the stages --------------------------------------------------------------------------------------


def decode_items(table: Any, context: Context) -> list[Item]:
    """Return the items of a table of rows, with what earlier stages found."""
    rows = decode(table, context)
    if _DIGEST not in table.column_names:
        return [Item(row, digest) for row, digest in zip(rows, row_digests(rows, context), strict=True)]
    found = (table.column(name).to_pylist() for name in (_DIGEST, _EVIDENCE, _FAILURE))
    return [
        Item(row, digest, None if evidence is None else _read_evidence(evidence), failure=failure)
        for row, digest, evidence, failure in zip(rows, *found, strict=True)
    ]


def encode_items(table: Any, items: Sequence[Item]) -> Any:
    """Return the table of rows with what was found of them so far."""
    columns = {
        _EVIDENCE: strings(None if item.evidence is None else _evidence_bytes(item.evidence) for item in items).view(
            pa.binary()
        ),
        _FAILURE: strings(item.failure for item in items),
        _DIGEST: strings(item.digest for item in items).view(pa.binary()),
    }
    table = table.drop_columns([name for name in columns if name in table.column_names])
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def with_failure(table: Any, reason: str, context: Context) -> Any:
    """Return a table of rows in which all have failed."""
    items = decode_items(table, context)
    for item in items:
        item.failure = reason
    return encode_items(table, items)


def _evidence_bytes(found: Evidence) -> bytes:
    cues = [[cue.start, cue.end, cue.text] for cue in found.cues]
    told = json.dumps({"preset": found.preset, "cues": cues, "about": found.about}).encode()
    buffer = io.BytesIO()
    np.savez(buffer, scores=found.arrays["scores"], skip=np.asarray(found.skip), told=np.frombuffer(told, np.uint8))
    return buffer.getvalue()


def _read_evidence(data: bytes) -> Evidence:
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        told = json.loads(arrays["told"].tobytes())
        cues = tuple(Cue(*cue) for cue in told["cues"])
        return Evidence({"scores": arrays["scores"]}, told["preset"], arrays["skip"], cues, told["about"])
