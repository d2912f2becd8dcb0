"""What is known of the videos of a batch as an Arrow table: between the stages, and at the end."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from graph2vid.evidence import Cue
from graph2vid.evidence.captions import Word
from graph2vid.grounding.from_video import Narration
from graph2vid.scale._packages import arrow
from graph2vid.scale.aligning import Found
from graph2vid.scale.rows import decode
from graph2vid.scale.settings import Context
from graph2vid.scale.stages import Item

DONE, FAILED = "done", "failed"

_SAID, _EVIDENCE, _FAILURE = "_said", "_evidence", "_failure"
"""Columns that stages add to a table of rows."""


@cache
def video_schema() -> Any:
    """Return the columns of the data set of videos."""
    pa = arrow()
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
    pa = arrow()
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
    """Return the columns of a part: those of a video, its segments within it, and how often it was tried."""
    pa = arrow()
    segments = pa.list_(pa.struct(list(segment_schema())))
    return video_schema().append(pa.field("segments", segments)).append(pa.field("attempt", pa.int32()))


def encode_results(items: Sequence[Item], attempt: int = 0) -> Any:
    """Return the table of results of items that have gone through all stages."""
    pa = arrow()
    founds = [item.found for item in items]
    videos = [_described(item) for item in items]
    columns = [pa.array([video[name] for video in videos], kind) for name, kind in _fields(video_schema())]
    columns.append(_segments(founds))
    columns.append(pa.array(np.full(len(items), attempt, dtype=np.int32)))
    return pa.Table.from_arrays(columns, schema=result_schema())


def failures(ids: Sequence[str], reason: str, attempt: int = 0) -> Any:
    """Return the table of results of rows of which nothing is known but why."""
    pa = arrow()
    empty = {"status": FAILED, "error": reason, "attempt": attempt}
    return pa.Table.from_pylist([{"id": name} | empty for name in ids], schema=result_schema())


def _fields(schema: Any) -> list[tuple[str, Any]]:
    return [(field.name, field.type) for field in schema]


def _described(item: Item) -> dict[str, Any]:
    found = item.found
    if found is None or item.failure is not None:
        empty: dict[str, Any] = dict.fromkeys(video_schema().names)
        return empty | {"id": item.row.id, "status": FAILED, "error": item.failure or "nothing was found"}
    flow, options = found.request.flow, found.request.options
    shown = set(found.steps.tolist())
    return {
        "id": item.row.id,
        "status": DONE,
        "procedure": flow.title or None,
        "n_steps": len(flow),
        "n_clips": found.n_clips,
        "clip_seconds": options["clip_seconds"],
        "offset": options["offset"],
        "cost": found.cost,
        "gap": found.gap,
        "confidence": found.confidence_of_video,
        "plausibility": found.request.plausibility,
        "n_shown": len(shown),
        "not_shown": [name for step, name in enumerate(flow.ids) if step not in shown],
        "error": None,
    }


def _segments(founds: Sequence[Found | None]) -> Any:
    """Return the column of segments: a list for each video."""
    pa = arrow()
    lengths = [0 if found is None else len(found.steps) for found in founds]
    there = [found for found in founds if found is not None and len(found.steps)]
    steps: list[int] = [step for found in there for step in found.steps.tolist()]
    sure = [
        value
        for found in there
        for value in ([None] * len(found.steps) if found.confidence is None else found.confidence.tolist())
    ]
    ids = [found.request.flow.ids for found in there for _ in range(len(found.steps))]
    texts = [found.request.flow.texts for found in there for _ in range(len(found.steps))]
    values = pa.StructArray.from_arrays(
        [
            pa.array(steps, pa.int32()),
            pa.array([names[step] for names, step in zip(ids, steps, strict=True)], pa.string()),
            pa.array([words[step] for words, step in zip(texts, steps, strict=True)], pa.string()),
            pa.array(np.concatenate([np.zeros(0), *(found.starts for found in there)])),
            pa.array(np.concatenate([np.zeros(0), *(found.ends for found in there)])),
            pa.array(sure, pa.float64()),
        ],
        fields=list(segment_schema()),
    )
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values)


# -- between the stages --------------------------------------------------------------------------------------


def decode_items(table: Any, context: Context) -> list[Item]:
    """Return the items of a table of rows, with what earlier stages found."""
    items = [Item(row) for row in decode(table, context)]
    for name, fill in ((_SAID, _read_said), (_EVIDENCE, _read_evidence), (_FAILURE, _read_failure)):
        if name in table.column_names:
            for item, value in zip(items, table.column(name).to_pylist(), strict=True):
                if value is not None:
                    fill(item, value)
    return items


def encode_items(table: Any, items: Sequence[Item]) -> Any:
    """Return the table of rows with what was found of them so far."""
    pa = arrow()
    columns = {
        _SAID: pa.array([None if item.said is None else _said_as_json(item.said) for item in items], pa.string()),
        _EVIDENCE: pa.array([None if item.evidence is None else _npy(item.evidence) for item in items], pa.binary()),
        _FAILURE: pa.array([item.failure for item in items], pa.string()),
    }
    table = table.drop_columns([name for name in columns if name in table.column_names])
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def with_failure(table: Any, reason: str) -> Any:
    """Return a table of rows in which all have failed."""
    pa = arrow()
    if _FAILURE in table.column_names:
        table = table.drop_columns([_FAILURE])
    return table.append_column(_FAILURE, pa.array([reason] * len(table), pa.string()))


def _said_as_json(said: Narration) -> str:
    cues = [
        [cue.start, cue.end, cue.text, [[word.start, word.end, word.text, word.probability] for word in cue.words]]
        for cue in said.cues
    ]
    return json.dumps([cues, said.duration, said.source])


def _read_said(item: Item, text: str) -> None:
    cues, duration, source = json.loads(text)
    found = tuple(Cue(start, end, words, tuple(Word(*word) for word in timed)) for start, end, words, timed in cues)
    item.said = Narration(found, duration, source)


def _npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _read_evidence(item: Item, data: bytes) -> None:
    item.evidence = np.load(io.BytesIO(data), allow_pickle=False)


def _read_failure(item: Item, reason: str) -> None:
    item.failure = reason
