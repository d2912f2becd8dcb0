"""Results on disk: parts that are there whole or not at all, and the data sets that are made of them at the end.

A part is an Arrow file with some rows' results and the digest of its bytes at the end, written under another name and
renamed. The parts are the journal of a run: a row that stands in a sound one is done, any other is not. Arrow crashes
on damaged files, or reads other numbers from them, so no part is parsed before its digest was checked, and what is
parsed is what was checked. The data sets ``videos`` and ``segments`` are made of all parts, sorted by id, so they do
not depend on who worked on what.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from graph2vid._files import hold, write_bytes
from graph2vid.batch.columns import numbers
from graph2vid.batch.results import DONE, FAILED, NO_RESULTS, RESULT_SCHEMA, SEGMENT_SCHEMA, VIDEO_SCHEMA
from graph2vid.errors import Graph2VidError, InputError

VIDEOS, SEGMENTS = "videos", "segments"

_FILE_ROWS = 20_000  # videos in one file of the data sets: what is held in memory at once
_SUFFIX = ".arrow"
_DIGEST_BYTES = 20
_COMPRESSION = "zstd"
_ALL_DIFFERENT = ("id", "cost", "confidence")  # columns in which hardly a value is there twice


class LostRowsError(Exception):
    """Some rows have no sound result, though they were worked on: a part was damaged or removed, or a file changed."""


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
        if not len(table):
            return None
        buffer = pa.BufferOutputStream()
        # Read once and soon: what matters is that it is quickly made.
        with pa.ipc.new_file(buffer, RESULT_SCHEMA, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            writer.write_table(table.cast(RESULT_SCHEMA).combine_chunks())
        data = bytes(memoryview(buffer.getvalue()))
        self.folder.mkdir(parents=True, exist_ok=True)
        attempt, *columns = (table.column(name).to_pylist() for name in ("attempt", "id", "digest"))
        name = repr((max(attempt), sorted(zip(*columns, strict=True)))).encode()
        path = self.folder / f"{_digest(name).hex()}{_SUFFIX}"
        write_bytes(path, data + _digest(data))
        return path

    def files(self) -> list[Path]:
        """Return the parts, by name."""
        return sorted(self.folder.glob(f"*{_SUFFIX}")) if self.folder.is_dir() else []

    def discard_damaged(self) -> int:
        """Remove parts that are damaged, so that their rows are done again; return how many there were."""
        damaged = [path for path in self.files() if _sound(path) is None]
        for path in damaged:
            path.unlink(missing_ok=True)
        return len(damaged)

    def known(self) -> Any:
        """Return a table of id, status, attempt and digest of all rows with a result; a damaged part counts as none."""
        columns = ["id", "status", "attempt", "digest"]
        found = (read_part(path, columns) for path in self.files())
        return pa.concat_tables([table.select(columns) for table in (NO_RESULTS, *found) if table is not None])

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder: two runs must not write to it at once. A run that is killed lets go of it."""
        self.out.mkdir(parents=True, exist_ok=True)
        with (self.out / ".lock").open("w") as file:
            try:
                hold(file)
            except OSError:
                raise Graph2VidError(f"another run is writing to {self.out}: wait for it, or end it") from None
            yield

    def publish(self, wanted: Any) -> None:
        """Make the data sets ``videos`` and ``segments`` of the rows that are wanted: sorted by id, each row once.

        Parameters
        ----------
        wanted : Arrow table of id and digest
            Of the rows of the manifest, each once; see :func:`is_wanted`.

        Raises
        ------
        LostRowsError
            Not all of them have a sound result. Nothing is published.
        """
        of_part = {path: _whole(path, ["id", "digest"]) for path in self.files()}
        rows = pa.concat_tables([table.select(["id", "digest"]) for table in (NO_RESULTS, *of_part.values())])
        chosen = is_wanted(rows, wanted)
        ids = pc.unique(rows.column("id").filter(chosen))
        if len(ids) < len(wanted):
            raise LostRowsError
        ids = ids.take(pc.sort_indices(ids))
        all_wanted = pc.all(chosen, skip_nulls=False).as_py()
        spans = {path: tuple(pc.min_max(table.column("id")).as_py().values()) for path, table in of_part.items()}
        fresh = {name: self.out / f".{name}.new" for name in (VIDEOS, SEGMENTS)}
        for folder in fresh.values():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        for number, start in enumerate(range(0, max(len(ids), 1), _FILE_ROWS)):
            of_file = ids.slice(start, _FILE_ROWS)
            low, high = (end or "" for end in pc.min_max(of_file).as_py().values())
            near = {path: span for path, span in spans.items() if span[0] <= high and low <= span[1]}
            whole = {path for path, (first, last) in near.items() if all_wanted and low <= first and last <= high}
            results = _rows(near, whole, wanted.filter(pc.is_in(wanted.column("id"), value_set=of_file)))
            _write(fresh[VIDEOS] / f"part-{number:05d}.parquet", results.select(VIDEO_SCHEMA.names))
            _write(fresh[SEGMENTS] / f"part-{number:05d}.parquet", _segment_rows(results))
        for name, folder in fresh.items():
            shutil.rmtree(self.out / name, ignore_errors=True)
            folder.rename(self.out / name)


def is_wanted(rows: Any, wanted: Any) -> Any:
    """Tell of each of some results whether it is that of a row of the manifest as the row is now.

    Parameters
    ----------
    rows : Arrow table with the columns id and digest
    wanted : Arrow table with the columns id and digest
        Of the rows of the manifest. Where there is no digest the id is enough: nothing was known of the row before.
    """
    place = pc.index_in(rows.column("id"), value_set=wanted.column("id"))
    now = pa.chunked_array(wanted.column("digest").take(place), pa.binary())
    same = pc.or_kleene(pc.is_null(now), pc.equal(now, rows.column("digest")))
    return pc.and_kleene(pc.is_valid(place), same)


def check_folder(out: Path, resume: bool) -> None:
    """Refuse a folder that holds the results of another run, unless it is to be gone on with."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; --out names a folder")
    if not resume and (Parts(out).files() or (out / VIDEOS).exists()):
        raise InputError(f"{out} holds results already: add --resume to go on with them, or name another folder")


def read_part(path: Path, columns: Sequence[str] | None = None) -> Any | None:
    """Read a part; None if it is damaged, or gone."""
    data = _sound(path)
    if data is None:
        return None
    wanted = [] if columns is None else [RESULT_SCHEMA.get_field_index(name) for name in columns]
    options = pa.ipc.IpcReadOptions(included_fields=wanted)
    return pa.ipc.open_file(pa.BufferReader(data), options=options).read_all()


def _sound(path: Path) -> memoryview | None:
    """Return the bytes of a part without their digest; None if they are not what was written."""
    try:
        data = path.read_bytes()
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EIO):
            return None
        raise Graph2VidError(f"cannot read {path}: {error.strerror or error}") from error
    whole = memoryview(data)[:-_DIGEST_BYTES]
    return whole if _digest(whole) == data[-_DIGEST_BYTES:] else None


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


def _whole(path: Path, columns: Sequence[str] | None = None) -> Any:
    """Read a part that must not be damaged."""
    table = read_part(path, columns)
    if table is None:
        raise LostRowsError
    return table


def _rows(paths: Iterable[Path], whole: Container[Path], wanted: Any) -> Any:
    """Return the results that are ``wanted``, sorted by id; of an id that was tried again the last attempt.

    Of the parts that are ``whole`` all are wanted.
    """
    tables = [NO_RESULTS]
    for path in paths:
        table = _whole(path)
        tables.append(table if path in whole else table.filter(is_wanted(table, wanted)))
    rows = pa.concat_tables(tables)
    # What failed and was done elsewhere is done, which comes first by its letters, too.
    assert DONE < FAILED
    keys = rows.select(["id", "status", "attempt"])
    order = pc.sort_indices(keys, sort_keys=[("id", "ascending"), ("status", "ascending"), ("attempt", "descending")])
    rows = rows.take(order).combine_chunks()
    ids = rows.column("id").to_pylist()
    first = np.array([at == 0 or ids[at - 1] != name for at, name in enumerate(ids)], dtype=bool)
    return rows if first.all() else rows.take(numbers(np.flatnonzero(first)))


def _segment_rows(rows: Any) -> Any:
    """Return one row for each segment, with the id of its video."""
    column = rows.column("segments").combine_chunks()
    parents = pc.list_parent_indices(column)
    flat = pc.list_flatten(column)
    schema = SEGMENT_SCHEMA.insert(0, pa.field("id", pa.string()))
    of_video = rows.column("id").take(parents).combine_chunks()
    return pa.Table.from_arrays([of_video, *flat.flatten()], schema=schema)


def _write(path: Path, table: Any) -> None:
    repeated = [name for name in table.column_names if name not in _ALL_DIFFERENT]
    how: dict[str, Any] = {"compression": _COMPRESSION, "use_dictionary": repeated}
    try:
        # Readers that look at the checksums of pages see a damaged file.
        pq.write_table(table.combine_chunks(), path, write_page_checksum=True, **how)
    except OSError as error:
        raise Graph2VidError(f"cannot write {path}: {error}") from error
