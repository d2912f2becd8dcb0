"""Manifests: what is to be worked on, checked in full before work begins."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from difflib import get_close_matches
from itertools import chain, count, islice
from pathlib import Path
from string import whitespace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from graph2vid._files import naming, parse_json
from graph2vid._values import shown, table_rows
from graph2vid.batch import settings
from graph2vid.batch.batches import TABLE_ROWS, tables
from graph2vid.batch.columns import ARRAYS, COLUMNS, is_list, not_empty, numbers, strings, texts
from graph2vid.batch.results import TOLD, to_bytes
from graph2vid.batch.row_checks import Checker, Tell, problems_of_option
from graph2vid.batch.runs import Manifest, Problem, printable, reason_of
from graph2vid.batch.settings import Context
from graph2vid.errors import FormatError, InputError

SUFFIXES = (".jsonl", ".ndjson", ".csv", ".parquet")

Piece: TypeAlias = tuple[Any, list[int]]
"""A table of rows, and the line or row (counted from 1) of each."""

Record: TypeAlias = tuple[int, dict[str, str | None]]
"""A line, and what it says by the names of columns."""

_LONGEST_CELL = (1 << 31) - 1  # it may hold a matrix
_GROUP_ROWS = 500
_TOLERANT = json.JSONDecoder(strict=False, parse_int=str, parse_float=str, parse_constant=str)


def read_manifest(path: str | Path, copy: str | Path, context: Context) -> Manifest:
    """Read and check a manifest; nothing is worked on yet.

    Parameters
    ----------
    path : path
        ``.jsonl``, ``.csv`` or ``.parquet``.
    copy : path
        Where the rows are written, sorted by procedure; not used for a Parquet manifest that holds arrays itself.
    context : Context
        Where relative paths begin, and the options of all rows.

    Returns
    -------
    Manifest
        With all problems, in the order of the file.

    Raises
    ------
    FormatError
        The manifest as a whole cannot be read, or has columns that nobody knows.
    """
    path, copy = Path(path), Path(copy)
    if path.suffix.lower() not in SUFFIXES:
        raise FormatError(f"{path}: a manifest is a file in {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise InputError(f"the manifest {path} is not there")
    for option, value in context.options.items():
        for wrong in problems_of_option(option, value, context.folder):
            raise InputError(wrong)
    word = "row" if path.suffix.lower() == ".parquet" else "line"
    problems: list[tuple[int, Problem]] = []
    lost: dict[int, tuple[str | None, str]] = {}

    def tell(place: int, name: str | None, text: str) -> None:
        problems.append((place, Problem(f"{word} {place}", name, printable(text))))

    def lose(place: int, name: str | None, text: str) -> None:
        lost[place] = name, printable(text)

    checker = Checker(context, tell)
    in_place = False
    kept: list[Any] = []
    for table, places in _pieces(path, lose):
        kinds = checker.check(table, places)
        in_place = in_place or any(name in table.column_names and is_list(table.column(name).type) for name in ARRAYS)
        if not in_place:
            order = numbers(np.array([settings.KINDS.index(kind) for kind in kinds], dtype=np.int8))
            kept.append(table.append_column("_order", order))
    ids = checker.ids()
    if not len(ids) and not lost:
        raise FormatError(f"{path} holds no rows")
    with naming(copy.parent, "write"):
        copy.parent.mkdir(parents=True, exist_ok=True)
    if not in_place and len(ids):
        table = pa.concat_tables(kept, promote_options="default")
        table = table.sort_by([("_order", "ascending"), ("procedure", "ascending"), ("id", "ascending")])
        with naming(copy, "write"):
            pq.write_table(table.drop_columns(["_order"]), copy, row_group_size=TABLE_ROWS, write_page_checksum=True)
    if in_place and lost:
        _copy_readable(path, copy)
    taken = set(ids.to_pylist()) if lost else set()
    unreadable = {}
    for place, (name, text) in lost.items():
        if not name or name in taken:  # its place, or something like it where that is the id of another
            made = f"{word} {place}"
            name = next(one for one in chain([made], (f"{made} ({n})" for n in count(2))) if one not in taken)
        taken.add(name)
        unreadable[name] = text
        tell(place, name, text)
    ids = pa.concat_arrays([ids, strings(unreadable)])
    told = [problem for _, problem in sorted(problems, key=lambda entry: entry[0])]
    return Manifest(path, path if in_place and not lost else copy, ids, checker.kinds, told, unreadable)


def encode_check(path: str, copy: str, context: Context) -> memoryview:
    """Return what :func:`read_manifest` returns, or the error, as an Arrow stream from a worker to the driver."""
    ids: Any = pa.nulls(0, pa.string())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            found = read_manifest(path, copy, context)
            ids = found.ids
            told: dict[str, Any] = {"rows": str(found.rows), "kinds": found.kinds, "unreadable": found.unreadable}
            told["problems"] = [astuple(problem) for problem in found.problems]
        except Exception as error:
            told = {"error": (type(error).__name__, reason_of(error))}
    told["warnings"] = [str(one.message) for one in caught if issubclass(one.category, UserWarning)]
    return to_bytes(pa.table({"id": ids}).replace_schema_metadata({TOLD: json.dumps(told).encode()}))


# -- the three formats ---------------------------------------------------------------------------------------


def _pieces(path: Path, lose: Tell) -> Iterator[Piece]:
    """Yield the rows that can be read; ``lose`` is told of the others: place, id where that can be read, and why."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        yield from _from_parquet(path, lose)
        return
    records = _readable(_csv_records(path, lose) if suffix == ".csv" else _json_records(path, lose), lose)
    while some := list(islice(records, TABLE_ROWS)):
        yield _table(some)


def _readable(records: Iterator[Record], lose: Tell) -> Iterator[Record]:
    """Pass on the records whose texts can be written to a file, and that have an id."""
    for place, record in records:
        broken = [name for name, value in record.items() if value is not None and not _is_unicode(value)]
        name = record.get("id")
        if broken:
            lose(place, None if "id" in broken else name, f"{broken[0]} is not text in UTF-8")
        elif not name:
            lose(place, None, "has no id")
        else:
            yield place, record


def _is_unicode(text: str | bytes) -> bool:
    """Tell whether text is UTF-8, without lone surrogates, which also stand for bytes that are not."""
    try:
        text.encode("utf-8") if isinstance(text, str) else text.decode("utf-8")
    except UnicodeError:
        return False
    return True


def _from_parquet(path: Path, lose: Tell) -> Iterator[Piece]:
    first = 1
    for table in tables(path):
        table = table.rename_columns(_current(table.column_names))
        _check_columns(table.column_names, path)
        try:
            table = _as_columns(table.select([name for name in table.column_names if name in COLUMNS]), path)
        except pa.ArrowException as error:
            raise FormatError(f"{path}: a column cannot be read as text: {' '.join(str(error).split())}") from error
        places = list(range(first, first + len(table)))
        first += len(table)
        bad = _unreadable(table)
        for at, (name, why) in bad.items():
            lose(places[at], name, why)
        if bad:
            left = [at for at in range(len(table)) if at not in bad]
            table, places = table.take(numbers(np.array(left, dtype=np.int64))), [places[at] for at in left]
        if places:
            yield table, places


def _as_columns(table: Any, path: Path) -> Any:
    """Return the columns of a Parquet manifest in the types that the check knows."""
    for place, name in enumerate(table.column_names):
        kind = table.schema.field(name).type
        if name in ARRAYS and is_list(kind):
            number = kind.value_type.value_type if is_list(kind.value_type) else kind
            if not (pa.types.is_floating(number) or pa.types.is_integer(number)):
                raise FormatError(f"{path}: column {name} must hold paths, or lists of lists of numbers, not {kind}")
        elif pa.types.is_nested(kind):
            raise FormatError(f"{path}: column {name} must hold text, not {kind}")
        elif not pa.types.is_string(kind) and (name not in settings.ROW_OPTIONS or _is_text(kind)):
            table = table.set_column(place, name, texts(table, name))
    return table


def _is_text(kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind))


def _unreadable(table: Any) -> dict[int, tuple[str | None, str]]:
    """Return by their places in a table the rows that cannot be read: the id, if that can be, and why."""
    found: dict[int, tuple[str | None, str]] = {}
    for name in (name for name in table.column_names if pa.types.is_string(table.schema.field(name).type)):
        column = table.column(name)
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            for at, value in enumerate(column.cast(pa.binary()).to_pylist()):
                if value is not None and not _is_unicode(value):
                    found.setdefault(at, (None, f"{name} is not text in UTF-8"))
    ids = table.column("id")
    missing = pc.invert(not_empty(ids))
    if found or pc.any(missing).as_py():
        for at, (value, nothing) in enumerate(zip(ids.cast(pa.binary()).to_pylist(), missing.to_pylist(), strict=True)):
            if nothing:
                found[at] = None, "has no id"
            elif at in found and _is_unicode(value):
                found[at] = value.decode(), found[at][1]
    return found


def _copy_readable(path: Path, copy: Path) -> None:
    """Copy a Parquet manifest that holds its matrices without the rows that cannot be read."""
    tables = (table for table, _ in _from_parquet(path, lambda *_: None))
    first = next(tables)
    with naming(copy, "write"), pq.ParquetWriter(copy, first.schema, write_page_checksum=True) as writer:
        for table in chain([first], tables):
            writer.write_table(table, row_group_size=_GROUP_ROWS)


def _json_records(path: Path, lose: Tell) -> Iterator[Record]:
    with _lines(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = parse_json(line, "this line", infinite=True)
                if not isinstance(record, dict):
                    raise FormatError('must be an object: {"id": …, "procedure": …, …}')
                record = dict(zip(_current(record), record.values(), strict=True))
                texts = {name: _as_text(name, value) for name, value in record.items() if name in COLUMNS}
            except Exception as error:
                lose(number, _id_in(line), reason_of(error))
                continue
            _check_columns(record, path, f", line {number}")
            yield number, texts


def _id_in(line: str) -> str | None:
    """Return the id of a line that cannot be read as a whole, if it stands before what is wrong with it."""
    found: list[Any] = []  # names and values in turns
    rest = line.partition("{")[2]
    with suppress(ValueError, RecursionError):
        while len(found) % 2 or found[-2:-1] != ["id"]:
            rest = rest.lstrip(whitespace + ":,")
            value, end = _TOLERANT.raw_decode(rest)
            rest = rest[end:]
            found.append(value)
        return value if isinstance(value, str) and _is_unicode(value) else None
    return None


def _csv_records(path: Path, lose: Tell) -> Iterator[Record]:
    with _lines(path) as file:
        rows = table_rows(file, str(path), longest=_LONGEST_CELL)
        names = _current(next(rows, (1, []))[1])
        _check_columns(names, path)
        for number, cells in rows:
            if cells and len(cells) != len(names):
                lose(number, None, f"has {len(cells)} cells, but the first line names {len(names)} columns")
            elif cells:
                record = dict(zip(names, cells, strict=True))
                yield number, {name: value or None for name, value in record.items() if name in COLUMNS}


@contextmanager
def _lines(path: Path) -> Iterator[Iterator[str]]:
    """Open a text file for reading line by line; an error names it. Bytes that are not UTF-8 are lone surrogates."""
    try:
        with path.open("rb") as start:
            if b"\0" in start.read(4096):  # another encoding, or no text at all
                raise FormatError(f"{path} is not a UTF-8 text file")
        with path.open(encoding="utf-8-sig", newline="", errors="surrogateescape") as file:
            yield file
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def _as_text(name: str, value: Any) -> str | None:
    """Return a JSON value as the text that a cell of a CSV manifest would hold."""
    if value is None or isinstance(value, str):
        return value or None
    if name == "procedure" and isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join([*value, ""])
    return json.dumps(value, ensure_ascii=False)


def _table(records: Sequence[Record]) -> Piece:
    present = [name for name in COLUMNS if any(name in record for _, record in records)]
    names = dict.fromkeys(["id", "procedure", *present])
    columns = {name: strings(record.get(name) for _, record in records) for name in names}
    return pa.table(columns), [number for number, _ in records]


def _current(names: Iterable[str]) -> list[str]:
    """Return the names of columns with those of the release before replaced by those of today."""
    for name in names:
        if name in settings.RENAMED:
            warnings.warn(f"the column {name} is called {settings.RENAMED[name]} now: rename it", stacklevel=2)
    return [settings.RENAMED.get(name, name) for name in names]


def _check_columns(names: Any, path: Path, where: str = "") -> None:
    """Refuse columns that nobody knows; those that begin with _ are the user's own."""
    for name in names:
        if name not in COLUMNS and not name.startswith("_"):
            near = get_close_matches(name[:100], COLUMNS, 1)
            advice = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(COLUMNS)}"
            raise FormatError(f"{path}{where}: unknown column {shown(name)}{advice} (begin your own columns with _)")
    for name in ("id", "procedure"):
        if not where and name not in names:
            raise FormatError(f"{path} has no column {name}")
