"""Results on disk: parts that are there whole or not at all, and the data sets that are made of them at the end.

A part is an Arrow file with some rows' results, written under another name and renamed. The parts are the journal of
a run: a row that stands in one is done, any other is not. The data sets ``videos`` and ``segments`` are made of all
parts, sorted by id, so they do not depend on who worked on what.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graph2vid._files import write_bytes
from graph2vid.errors import Graph2VidError, InputError
from graph2vid.evidence.cache import text_hash
from graph2vid.scale._packages import arrow, compute, parquet
from graph2vid.scale.results import DONE, FAILED, result_schema, segment_schema, video_schema

VIDEOS, SEGMENTS = "videos", "segments"

_FILE_ROWS = 20_000  # videos in one file of the data sets: what is held in memory at once
_SUFFIX = ".arrow"
_COMPRESSION = "zstd"
_ALL_DIFFERENT = ("id", "cost", "confidence")  # columns in which hardly a value is there twice


class Parts:
    """The parts of a run.

    Parameters
    ----------
    out : path
        The folder of the run; parts lie in its folder ``parts``.
    """

    def __init__(self, out: str | os.PathLike[str]) -> None:
        self.out = Path(out)
        self.folder = self.out / "parts"

    def commit(self, table: Any) -> Path | None:
        """Keep results for good; the same rows tried again give the same file. Return it (None: no rows)."""
        pa = arrow()
        if not len(table):
            return None
        ids, attempt = table.column("id").to_pylist(), compute().max(table.column("attempt")).as_py()
        buffer = pa.BufferOutputStream()
        # Read once and soon: what matters is that it is quickly made.
        with pa.ipc.new_file(buffer, result_schema(), options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            writer.write_table(table.cast(result_schema()).combine_chunks())
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{text_hash(*sorted(ids), str(attempt))}{_SUFFIX}"
        write_bytes(path, buffer.getvalue())
        return path

    def files(self) -> list[Path]:
        """Return the parts, by name."""
        return sorted(self.folder.glob(f"*{_SUFFIX}")) if self.folder.is_dir() else []

    def known(self) -> Any:
        """Return a table of id, status and attempt of all rows with a result; a damaged part counts as none."""
        pa = arrow()
        columns = ["id", "status", "attempt"]
        schema = pa.schema([result_schema().field(name) for name in columns])
        tables = [pa.Table.from_batches([], schema)]
        for path in self.files():
            found = read_part(path, columns)
            if found is not None:
                tables.append(found)
        return pa.concat_tables(tables).combine_chunks()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder: two runs must not write to it at once. A run that is killed lets go of it."""
        self.out.mkdir(parents=True, exist_ok=True)
        with (self.out / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Graph2VidError(f"another run is writing to {self.out}: wait for it, or end it") from None
            yield

    def publish(self) -> None:
        """Make the data sets ``videos`` and ``segments`` of all parts: sorted by id, each row once."""
        pa = arrow()
        pc = compute()
        of_part = {path: found.column("id") for path in self.files() if (found := read_part(path, ["id"])) is not None}
        spans = {path: pc.min_max(column).as_py() for path, column in of_part.items()}
        ids = pc.unique(
            pa.chunked_array([chunk for column in of_part.values() for chunk in column.chunks], pa.string())
        )
        ids = ids.take(pc.sort_indices(ids))
        fresh = {name: self.out / f".{name}.new" for name in (VIDEOS, SEGMENTS)}
        for folder in fresh.values():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        for number, start in enumerate(range(0, max(len(ids), 1), _FILE_ROWS)):
            wanted = ids.slice(start, _FILE_ROWS)
            low, high = (wanted[0].as_py(), wanted[-1].as_py()) if len(wanted) else ("", "")
            near = [path for path, span in spans.items() if span["min"] <= high and low <= span["max"]]
            rows = _rows({path: low <= spans[path]["min"] and spans[path]["max"] <= high for path in near}, wanted)
            _write(fresh[VIDEOS] / f"part-{number:05d}.parquet", rows.select(video_schema().names))
            _write(fresh[SEGMENTS] / f"part-{number:05d}.parquet", _segment_rows(rows))
        for name, folder in fresh.items():
            shutil.rmtree(self.out / name, ignore_errors=True)
            folder.rename(self.out / name)


def check_folder(out: Path, resume: bool) -> None:
    """Refuse a folder that holds the results of another run, unless it is to be gone on with."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; --out names a folder")
    if not resume and (Parts(out).files() or (out / VIDEOS).exists()):
        raise InputError(f"{out} holds results already: add --resume to go on with them, or name another folder")


def read_part(path: Path, columns: Sequence[str] | None = None) -> Any | None:
    """Read a part; None if it is damaged."""
    pa = arrow()
    wanted = [] if columns is None else [result_schema().get_field_index(name) for name in columns]
    try:
        with pa.OSFile(str(path)) as file:
            return pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=wanted)).read_all()
    except (OSError, pa.ArrowException):
        return None


def _rows(paths: Mapping[Path, bool], wanted: Any) -> Any:
    """Return the results of the ids ``wanted``, sorted by id; of an id that was tried again the last attempt.

    ``paths`` are parts, each with whether all its ids are wanted.
    """
    pa = arrow()
    pc = compute()
    tables = [pa.Table.from_batches([], result_schema())]
    for path, whole in paths.items():
        table = read_part(path)
        if table is not None:
            tables.append(table if whole else table.filter(pc.is_in(table.column("id"), value_set=wanted)))
    rows = pa.concat_tables(tables)
    # What failed and was done elsewhere is done, which comes first by its letters, too.
    assert DONE < FAILED
    keys = rows.select(["id", "status", "attempt"])
    order = pc.sort_indices(keys, sort_keys=[("id", "ascending"), ("status", "ascending"), ("attempt", "descending")])
    rows = rows.take(order).combine_chunks()
    ids = rows.column("id").to_pylist()
    first = [at for at, name in enumerate(ids) if at == 0 or ids[at - 1] != name]
    return rows if len(first) == len(rows) else rows.take(pa.array(first, pa.int64()))


def _segment_rows(rows: Any) -> Any:
    """Return one row for each segment, with the id of its video."""
    pa = arrow()
    pc = compute()
    column = rows.column("segments").combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    parents = pc.list_parent_indices(column)
    flat = pc.list_flatten(column)
    schema = segment_schema().insert(0, pa.field("id", pa.string()))
    of_video = rows.column("id").take(parents).combine_chunks()
    return pa.Table.from_arrays([of_video, *flat.flatten()], schema=schema)


def _write(path: Path, table: Any) -> None:
    pq = parquet()
    try:
        repeated = [name for name in table.column_names if name not in _ALL_DIFFERENT]
        pq.write_table(table.combine_chunks(), path, compression=_COMPRESSION, use_dictionary=repeated)
    except OSError as error:
        raise Graph2VidError(f"cannot write {path}: {error}") from error
