"""Manifests: what is to be worked on, checked in full before work begins."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

from graph2vid._files import parse_json
from graph2vid.errors import FormatError, InputError
from graph2vid.scale._packages import arrow, parquet
from graph2vid.scale.checking import Checker
from graph2vid.scale.reading import TABLE_ROWS, tables
from graph2vid.scale.rows import ARRAYS, COLUMNS, KINDS, Kind, holds_lists
from graph2vid.scale.settings import ROW_OPTIONS, Context

SUFFIXES = (".jsonl", ".ndjson", ".csv", ".parquet")

Piece: TypeAlias = tuple[Any, list[int]]
"""A table of rows, and the line or row (counted from 1) of each."""


@dataclass(frozen=True)
class Problem:
    """Something wrong with a manifest.

    Attributes
    ----------
    place : str
        Where: ``line 17`` or ``row 17``.
    id : str or None
        Of the row; None where a row cannot even be named, which no run can pass over.
    text : str
        What is wrong, and what to do.
    """

    place: str
    id: str | None
    text: str

    def __str__(self) -> str:
        named = "" if self.id is None else f" ({self.id!r})"
        return f"{self.place}{named}: {self.text}"


@dataclass(frozen=True, eq=False)
class Manifest:
    """A manifest that was read and checked.

    Attributes
    ----------
    path : Path
    rows : Path
        A Parquet file with its rows: the manifest itself where it holds arrays, else a copy sorted by procedure.
    ids : Arrow array of str
    kinds : dict
        How many rows have evidence from arrays, captions, speech.
    problems : list of Problem
    """

    path: Path
    rows: Path
    ids: Any
    kinds: dict[Kind, int]
    problems: list[Problem] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def fatal(self) -> list[Problem]:
        """The problems that no run can pass over."""
        return [problem for problem in self.problems if problem.id is None]

    @property
    def unusable(self) -> dict[str, str]:
        """By id: what is wrong with a row."""
        found: dict[str, str] = {}
        for problem in self.problems:
            if problem.id is not None:
                found.setdefault(problem.id, problem.text)
        return found


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
    pa = arrow()
    pq = parquet()
    path, copy = Path(path), Path(copy)
    if path.suffix.lower() not in SUFFIXES:
        raise FormatError(f"{path}: a manifest is a file in {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise InputError(f"the manifest {path} is not there")
    word = "row" if path.suffix.lower() == ".parquet" else "line"
    problems: list[tuple[int, Problem]] = []

    def tell(place: int, name: str | None, text: str) -> None:
        problems.append((place, Problem(f"{word} {place}", name, text)))

    checker = Checker(context, tell)
    in_place = False
    kept: list[Any] = []
    for table, places in _pieces(path, tell):
        kinds = checker.check(table, places)
        in_place = in_place or any(name in table.column_names and holds_lists(table.column(name)) for name in ARRAYS)
        if not in_place:
            order = pa.array([KINDS.index(kind) for kind in kinds], pa.int8())
            kept.append(table.append_column("_order", order))
    ids = checker.ids()
    if not len(ids) and not problems:
        raise FormatError(f"{path} holds no rows")
    if not in_place and len(ids):
        table = pa.concat_tables(kept, promote_options="default")
        table = table.sort_by([("_order", "ascending"), ("procedure", "ascending"), ("id", "ascending")])
        copy.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.drop_columns(["_order"]), copy, row_group_size=TABLE_ROWS)
    problems.sort(key=lambda entry: entry[0])
    return Manifest(path, path if in_place else copy, ids, checker.kinds, [problem for _, problem in problems])


# -- the three formats ---------------------------------------------------------------------------------------


def _pieces(path: Path, tell: Any) -> Iterator[Piece]:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        yield from _from_parquet(path)
        return
    records = _csv_records(path, tell) if suffix == ".csv" else _json_records(path, tell)
    waiting: list[tuple[int, dict[str, str | None]]] = []
    for record in records:
        waiting.append(record)
        if len(waiting) == TABLE_ROWS:
            yield _table(waiting)
            waiting = []
    if waiting:
        yield _table(waiting)


def _from_parquet(path: Path) -> Iterator[Piece]:
    pa = arrow()
    first = 1
    for table in tables(path):
        _check_columns(table.column_names, path)
        table = table.select([name for name in table.column_names if name in COLUMNS])
        for name in table.column_names:
            kind = table.schema.field(name).type
            if name in ARRAYS and holds_lists(table.column(name)):
                if not _is_matrix(kind):
                    raise FormatError(
                        f"{path}: column {name} must hold paths, or lists of lists of numbers, not {kind}"
                    )
            elif name in ROW_OPTIONS and not pa.types.is_nested(kind):
                continue
            elif pa.types.is_nested(kind):
                raise FormatError(f"{path}: column {name} must hold text, not {kind}")
            elif not pa.types.is_string(kind):
                place = table.column_names.index(name)
                table = table.set_column(place, name, table.column(name).cast(pa.string()))
        yield table, list(range(first, first + len(table)))
        first += len(table)


def _is_matrix(kind: Any) -> bool:
    pa = arrow()
    inner = kind.value_type
    lists = pa.types.is_list(inner) or pa.types.is_large_list(inner) or pa.types.is_fixed_size_list(inner)
    return bool(lists and (pa.types.is_floating(inner.value_type) or pa.types.is_integer(inner.value_type)))


def _json_records(path: Path, tell: Any) -> Iterator[tuple[int, dict[str, str | None]]]:
    with _lines(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = parse_json(line, "this line")
            except FormatError as error:
                tell(number, None, str(error))
                continue
            if not isinstance(record, dict):
                tell(number, None, 'must be an object: {"id": …, "procedure": …, …}')
                continue
            _check_columns(record, path, f", line {number}")
            yield number, {name: _as_text(name, value) for name, value in record.items() if name in COLUMNS}


def _csv_records(path: Path, tell: Any) -> Iterator[tuple[int, dict[str, str | None]]]:
    with _lines(path) as file:
        reader = csv.reader(file, strict=True)
        try:
            names = next(reader, [])
            _check_columns(names, path)
            number = reader.line_num + 1
            for cells in reader:
                if cells and len(cells) != len(names):
                    tell(number, None, f"has {len(cells)} cells, but the first line names {len(names)} columns")
                elif cells:
                    record = dict(zip(names, cells, strict=True))
                    yield number, {name: value or None for name, value in record.items() if name in COLUMNS}
                number = reader.line_num + 1
        except csv.Error as error:
            raise FormatError(f"{path}, line {reader.line_num}: not CSV ({error})") from error


@contextmanager
def _lines(path: Path) -> Iterator[Iterator[str]]:
    """Open a text file for reading line by line; an error names it."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not a UTF-8 text file") from error


def _as_text(name: str, value: Any) -> str | None:
    """Return a JSON value as the text that a cell of a CSV manifest would hold."""
    if value is None or isinstance(value, str):
        return value or None
    if name == "procedure" and isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join([*value, ""])
    return json.dumps(value, ensure_ascii=False)


def _table(records: Sequence[tuple[int, dict[str, str | None]]]) -> Piece:
    pa = arrow()
    present = [name for name in COLUMNS if any(name in record for _, record in records)]
    names = dict.fromkeys(["id", "procedure", *present])
    columns = {name: pa.array([record.get(name) for _, record in records], pa.string()) for name in names}
    return pa.table(columns), [number for number, _ in records]


def _check_columns(names: Any, path: Path, where: str = "") -> None:
    """Refuse columns that nobody knows; those that begin with _ are the user's own."""
    for name in names:
        if name not in COLUMNS and not name.startswith("_"):
            near = get_close_matches(name, COLUMNS, 1)
            advice = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(COLUMNS)}"
            raise FormatError(f"{path}{where}: unknown column {name!r}{advice} (begin your own columns with _)")
    if not where and "id" not in names:
        raise FormatError(f"{path} has no column id")
    if not where and "procedure" not in names:
        raise FormatError(f"{path} has no column procedure")
