"""What is known of the videos of a batch as an Arrow table: between the stages, and at the end."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graph2vid.batch.aligning import Request
from graph2vid.batch.rows import decode, row_digests
from graph2vid.batch.settings import Context
from graph2vid.batch.stages import Item
from graph2vid.evidence import Cue, Evidence

DONE, FAILED = "done", "failed"

SECONDS = b"seconds"
"""Under this key the metadata of a table tell the seconds of each stage."""

TOLD = b"told"
"""Under this key the metadata of a table tell what was found of a manifest, beside the ids."""

_EVIDENCE, _FAILURE, _DIGEST = "_evidence", "_failure", "_digest"
"""Columns that stages add to a table of rows."""


@cache
def video_schema() -> Any:
    """Return the columns of the data set of videos."""
    return pa.schema(
        [
            ("id", pa.string()),
            ("status", pa.string()),
            ("procedure", pa.string()),
            ("n_steps", pa.int32()),
            ("n_clips", pa.int32()),
            ("clip_seconds", pa.float64()),
            ("offset", pa.float64()),
            ("cost", pa.float64()),
            ("gap", pa.float64()),
            ("confidence", pa.float64()),
            ("plausibility", pa.float64()),
            ("n_shown", pa.int32()),
            ("not_shown", pa.list_(pa.string())),
            ("error", pa.string()),
        ]
    )


@cache
def segment_schema() -> Any:
    """Return the columns of the data set of segments, without the id of their video."""
    return pa.schema(
        [
            ("step", pa.int32()),
            ("step_id", pa.string()),
            ("text", pa.string()),
            ("start", pa.float64()),
            ("end", pa.float64()),
            ("confidence", pa.float64()),
        ]
    )


@cache
def result_schema() -> Any:
    """Return the columns of a part: those of a video, its segments, how often it was tried, and the row's digest."""
    segments = pa.list_(pa.struct(list(segment_schema())))
    more = [pa.field("segments", segments), pa.field("attempt", pa.int32()), pa.field("digest", pa.binary())]
    return pa.schema([*video_schema(), *more])


def encode_results(items: Sequence[Item], attempt: int = 0) -> Any:
    """Return the table of results of items that have gone through all stages."""
    groups: dict[int, list[int]] = {}
    failed = []
    for at, item in enumerate(items):
        if item.found is None or item.failure is not None:
            failed.append(at)
        else:
            groups.setdefault(id(item.found.answers), []).append(at)
    tables = [_answered([items[at] for at in members], attempt) for members in groups.values()]
    if failed:
        reasons = [items[at].failure or "nothing was found" for at in failed]
        digests = [items[at].digest for at in failed]
        tables.append(failures([items[at].row.id for at in failed], reasons, attempt, digests))
    order = np.argsort(np.concatenate([*groups.values(), failed]).astype(np.int64))
    return pa.concat_tables([result_schema().empty_table(), *tables]).take(order).combine_chunks()


def failures(ids: Sequence[str], reasons: Sequence[str], attempt: int, digests: Sequence[bytes]) -> Any:
    """Return the table of results of rows of which nothing is known but why."""
    told = {"id": pa.array(ids, pa.string()), "error": pa.array(reasons, pa.string())}
    told["digest"] = pa.array(digests, pa.binary())
    told |= {"status": pa.repeat(FAILED, len(ids)), "attempt": pa.repeat(pa.scalar(attempt, pa.int32()), len(ids))}
    columns = [told.get(name, pa.nulls(len(ids), kind)) for name, kind in _fields(result_schema())]
    return pa.Table.from_arrays(columns, schema=result_schema())


def _fields(schema: Any) -> list[tuple[str, Any]]:
    return [(field.name, field.type) for field in schema]


def _answered(items: Sequence[Item], attempt: int) -> Any:
    """Return the results of items whose answers lie together."""
    founds = [item.found for item in items if item.found is not None]
    answers, flow = founds[0].answers, founds[0].request.flow
    requests = [found.request for found in founds]
    videos = np.array([found.at for found in founds])
    counts = np.diff(answers.first)[videos]
    edges = np.concatenate([[0], np.cumsum(counts)])
    segments = np.arange(edges[-1]) + np.repeat(answers.first[videos] - edges[:-1], counts)
    steps = answers.steps[segments]
    shown = np.zeros((len(videos), len(flow)), dtype=bool)
    shown[np.repeat(np.arange(len(videos)), counts), steps] = True
    ids, texts = pa.array(flow.ids, pa.string()), pa.array(flow.texts, pa.string())
    columns = {
        "id": pa.array([item.row.id for item in items], pa.string()),
        "status": pa.repeat(DONE, len(items)),
        "procedure": pa.repeat(pa.scalar(flow.title or None, pa.string()), len(items)),
        "n_steps": pa.array(np.full(len(items), len(flow), dtype=np.int32)),
        "n_clips": pa.array(answers.n_clips[videos].astype(np.int32)),
        "clip_seconds": pa.array([request.options["clip_seconds"] for request in requests], pa.float64()),
        "offset": pa.array([request.options["offset"] for request in requests], pa.float64()),
        "cost": pa.array(answers.cost[videos]),
        "gap": pa.array(answers.gap[videos]),
        "confidence": _known(answers.confidence_of_video[videos]),
        "plausibility": pa.array([_plausibility(request) for request in requests], pa.float64()),
        "n_shown": pa.array(shown.sum(axis=1).astype(np.int32)),
        "not_shown": _lists((~shown).sum(axis=1), ids.take(np.nonzero(~shown)[1])),
        "error": pa.nulls(len(items), pa.string()),
        "segments": _lists(
            counts,
            pa.StructArray.from_arrays(
                [
                    pa.array(steps.astype(np.int32)),
                    ids.take(steps),
                    texts.take(steps),
                    pa.array(answers.starts[segments]),
                    pa.array(answers.ends[segments]),
                    _known(answers.confidence[segments]),
                ],
                fields=list(segment_schema()),
            ),
        ),
        "attempt": pa.array(np.full(len(items), attempt, dtype=np.int32)),
        "digest": pa.array([item.digest for item in items], pa.binary()),
    }
    return pa.Table.from_arrays([columns[name] for name in result_schema().names], schema=result_schema())


def _plausibility(request: Request) -> float | None:
    """Return how plausible it is that the video shows the procedure at all, where narration tells."""
    found: float | None = request.evidence.about.get("narration", {}).get("plausibility")
    return found


def _known(numbers: NDArray[np.float64]) -> Any:
    """Return numbers of which NaN are not known."""
    return pa.array(numbers, mask=np.isnan(numbers))


def _lists(counts: NDArray[np.int64], values: Any) -> Any:
    """Return lists of so many of the values each."""
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)), values)


# -- between the stages --------------------------------------------------------------------------------------


def decode_items(table: Any, context: Context) -> list[Item]:
    """Return the items of a table of rows, with what earlier stages found."""
    rows = decode(table, context)
    digests = table.column(_DIGEST).to_pylist() if _DIGEST in table.column_names else row_digests(rows, context)
    items = [Item(row, digest) for row, digest in zip(rows, digests, strict=True)]
    if _FAILURE in table.column_names:
        found = zip(items, *(table.column(name).to_pylist() for name in (_EVIDENCE, _FAILURE)), strict=True)
        for item, evidence, failure in found:
            item.evidence, item.failure = None if evidence is None else _read_evidence(evidence), failure
    return items


def encode_items(table: Any, items: Sequence[Item]) -> Any:
    """Return the table of rows with what was found of them so far."""
    columns = {
        _EVIDENCE: pa.array([item.evidence and _evidence_bytes(item.evidence) for item in items], pa.binary()),
        _FAILURE: pa.array([item.failure for item in items], pa.string()),
        _DIGEST: pa.array([item.digest for item in items], pa.binary()),
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


# -- between processes ---------------------------------------------------------------------------------------


def to_bytes(table: Any) -> memoryview:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())


def from_bytes(data: bytes) -> Any:
    """Return the table of an Arrow stream."""
    with pa.ipc.open_stream(pa.BufferReader(data)) as reader:
        return reader.read_all()
