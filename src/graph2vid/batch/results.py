"""What is found of videos as an Arrow table: between processes, in parts, and in the data sets at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graph2vid.batch.columns import numbers, repeated, strings

if TYPE_CHECKING:
    from graph2vid.batch.stages import Item

DONE, FAILED = "done", "failed"

SECONDS = b"seconds"
"""Under this key the metadata of a table tell the seconds of each stage."""

TOLD = b"told"
"""Under this key the metadata of a table tell what was found of a manifest, beside the ids."""


VIDEO_SCHEMA: Any = pa.schema(
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
"""The columns of the data set of videos."""

SEGMENT_SCHEMA: Any = pa.schema(
    [
        ("step", pa.int32()),
        ("step_id", pa.string()),
        ("text", pa.string()),
        ("start", pa.float64()),
        ("end", pa.float64()),
        ("confidence", pa.float64()),
        ("posterior", pa.float64()),
        ("doubtful", pa.bool_()),
    ]
)
"""The columns of the data set of segments, without the id of their video."""

RESULT_SCHEMA: Any = pa.schema(
    [
        *VIDEO_SCHEMA,
        pa.field("segments", pa.list_(pa.struct(list(SEGMENT_SCHEMA)))),
        pa.field("attempt", pa.int32()),
        pa.field("digest", pa.binary()),
    ]
)
"""The columns of a part: those of a video, its segments, how often it was tried, and the row's digest."""

NO_RESULTS: Any = pa.Table.from_batches([], RESULT_SCHEMA)


def encode_results(items: Sequence[Item], attempt: int = 0) -> Any:
    """Return the table of results of items that have gone through all stages."""
    groups: dict[int | None, list[int]] = {}
    for at, item in enumerate(items):
        found = None if item.failure is not None or item.found is None else id(item.found.answers)
        groups.setdefault(found, []).append(at)
    tables = []
    for answers, members in groups.items():
        group = [items[at] for at in members]
        if answers is None:
            reasons = [item.failure or "nothing was found" for item in group]
            tables.append(failures([item.row.id for item in group], reasons, attempt, [item.digest for item in group]))
        else:
            tables.append(_answered(group, attempt))
    if len(tables) == 1:
        return tables[0]
    order = np.argsort(np.concatenate([*groups.values(), []])).astype(np.int64)
    return pa.concat_tables([NO_RESULTS, *tables]).take(numbers(order)).combine_chunks()


def failures(ids: Sequence[str], reasons: Sequence[str], attempt: int, digests: Sequence[bytes]) -> Any:
    """Return the table of results of rows of which nothing is known but why."""
    told = {"id": strings(ids), "status": repeated(FAILED, len(ids)), "error": strings(reasons)}
    return _results(told, attempt, digests)


def _results(known: dict[str, Any], attempt: int, digests: Sequence[bytes]) -> Any:
    """Return the table of results of rows whose digests these are; columns that are not known are empty."""
    known["attempt"] = numbers(np.full(len(digests), attempt, dtype=np.int32))
    known["digest"] = strings(digests).view(pa.binary())
    columns = [known.get(field.name, pa.nulls(len(digests), field.type)) for field in RESULT_SCHEMA]
    return pa.Table.from_arrays(columns, schema=RESULT_SCHEMA)


def _answered(items: Sequence[Item], attempt: int) -> Any:
    """Return the results of items whose answers lie together."""
    founds = [item.found for item in items if item.found is not None]
    answers, flow = founds[0].answers, founds[0].request.flow
    options = [found.request.options for found in founds]
    videos = np.array([found.at for found in founds])
    counts = np.diff(answers.first)[videos]
    edges = np.concatenate([[0], np.cumsum(counts)])
    segments = np.arange(edges[-1]) + np.repeat(answers.first[videos] - edges[:-1], counts)
    steps = answers.steps[segments]
    shown = np.zeros((len(videos), len(flow)), dtype=bool)
    shown[np.repeat(np.arange(len(videos)), counts), steps] = True
    ids, of_segment = strings(flow.ids), numbers(steps)
    # How plausible it is that the video shows the procedure at all, where narration tells.
    plausible = [found.request.evidence.about.get("narration", {}).get("plausibility") for found in founds]
    struct = [
        of_segment.cast(pa.int32()),
        ids.take(of_segment),
        strings(flow.texts).take(of_segment),
        numbers(answers.starts[segments]),
        numbers(answers.ends[segments]),
        numbers(answers.confidence[segments]),
        numbers(answers.posterior[segments]),
        numbers(answers.doubtful[segments].astype(np.int8)).cast(pa.bool_()),
    ]
    columns = {
        "id": strings(item.row.id for item in items),
        "status": repeated(DONE, len(items)),
        "procedure": repeated(flow.title or None, len(items)),
        "n_steps": numbers(np.full(len(items), len(flow), dtype=np.int32)),
        "n_clips": numbers(answers.n_clips[videos].astype(np.int32)),
        "clip_seconds": numbers(np.array([one["clip_seconds"] for one in options], dtype=np.float64)),
        "offset": numbers(np.array([one["offset"] for one in options], dtype=np.float64)),
        "cost": numbers(answers.cost[videos]),
        "gap": numbers(answers.gap[videos]),
        "confidence": numbers(answers.confidence_of_video[videos]),
        "plausibility": numbers(np.array(plausible, dtype=np.float64)),
        "n_shown": numbers(shown.sum(axis=1, dtype=np.int32)),
        "not_shown": _lists((~shown).sum(axis=1), ids.take(numbers(np.nonzero(~shown)[1]))),
        "segments": _lists(counts, pa.StructArray.from_arrays(struct, fields=list(SEGMENT_SCHEMA))),
    }
    return _results(columns, attempt, [item.digest for item in items])


def _lists(counts: NDArray[np.int64], values: Any) -> Any:
    """Return lists of so many of the values each."""
    return pa.ListArray.from_arrays(numbers(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)), values)


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
