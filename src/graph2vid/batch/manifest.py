"""Manifests: what is to be worked on, checked in full before work begins."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from difflib import get_close_matches
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain, count, islice
from pathlib import Path
from string import whitespace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from graph2vid._arrays import real
from graph2vid._files import parse_json
from graph2vid._values import shown, table_rows
from graph2vid.batch import settings
from graph2vid.batch.batches import TABLE_ROWS, tables
from graph2vid.batch.columns import (
    ARRAYS,
    COLUMNS,
    FILES,
    by_row,
    is_list,
    matrices,
    not_empty,
    numbers,
    strings,
    texts,
)
from graph2vid.batch.results import TOLD, to_bytes
from graph2vid.batch.rows import flow_of, is_json, matrix_of
from graph2vid.batch.runs import Manifest, Problem, printable, reason_of
from graph2vid.batch.settings import Context, Kind
from graph2vid.errors import FormatError, InputError, how_to_install

SUFFIXES = (".jsonl", ".ndjson", ".csv", ".parquet")

Piece: TypeAlias = tuple[Any, list[int]]
"""A table of rows, and the line or row (counted from 1) of each."""

Record: TypeAlias = tuple[int, dict[str, str | None]]
"""A line, and what it says by the names of columns."""

Tell: TypeAlias = Callable[[int, str | None, str], None]
"""Is told the place of a problem, the id of the row (None: no run can pass over it) and what is wrong.

Whatever goes wrong with a row, of whichever kind the error is, is a problem of that row and of no other.
"""

_REMEMBERED = 10_000
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
    copy.parent.mkdir(parents=True, exist_ok=True)
    if not in_place and len(ids):
        table = pa.concat_tables(kept, promote_options="default")
        table = table.sort_by([("_order", "ascending"), ("procedure", "ascending"), ("id", "ascending")])
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
    with pq.ParquetWriter(copy, first.schema, write_page_checksum=True) as writer:
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


# -- the check, column by column -----------------------------------------------------------------------------


class Checker:
    """Checks table after table of one manifest, and tells what is wrong.

    Parameters
    ----------
    context : Context
        Where relative paths begin, and the options of all rows.
    tell : callable
    """

    def __init__(self, context: Context, tell: Tell) -> None:
        self.kinds: dict[Kind, int] = dict.fromkeys(settings.KINDS, 0)
        self._context = context
        self._usual = dict(settings.DEFAULTS) | dict(context.options)
        self._tell = tell
        self._ids: list[Any] = []
        self._places: list[NDArray[np.int64]] = []
        self._columns = lru_cache(_REMEMBERED)(self._of_columns)  # most rows are like others
        self._steps = lru_cache(_REMEMBERED)(self._steps_of)
        self._durations = lru_cache(_REMEMBERED)(self._of_durations)

    def check(self, table: Any, places: list[int]) -> list[Kind]:
        """Check some rows; return where the evidence of each comes from."""
        names = tuple(name for name in (*FILES, *ARRAYS) if name in table.column_names)
        chosen = tuple(name for name in settings.ROW_OPTIONS if name in table.column_names)
        self._ids += table.column("id").chunks
        self._places.append(np.asarray(places))
        ids, procedures = table.column("id").to_pylist(), table.column("procedure").to_pylist()
        given = by_row((not_empty(table.column(name)).to_pylist() for name in names), len(ids))
        options = by_row((table.column(name).to_pylist() for name in chosen), len(ids))
        arrays = {name: matrices(table.column(name)) for name in ARRAYS if name in names}
        doubtful = {name for name in arrays if name != "log_probabilities" and not _all_finite(table.column(name))}
        files = {name: table.column(name).to_pylist() for name in FILES if name in names}
        # Where no files are named, most rows are like others in all that is checked: those are looked at once.
        repeating = not files and not doubtful and all(is_list(table.column(name).type) for name in arrays)
        shapes = [[getattr(value, "shape", None) for value in of_row] for of_row in arrays.values()]
        good: dict[Any, Kind] = {}
        kinds: list[Kind] = []
        for at, (name, *alike) in enumerate(zip(ids, given, options, procedures, *shapes, strict=True)):
            key = tuple(alike) if repeating else at
            kind = good.get(key)
            if kind is None:
                row = {column: of_row[at] for column, of_row in (files | arrays).items()}
                try:
                    kind, found = self._columns(names, given[at], chosen, options[at])
                    own = dict(zip(chosen, options[at], strict=True))
                    found = [*found, *self._of_files(row), *self._of_procedure(procedures[at], own, row, doubtful)]
                except Exception as error:
                    kind, found = "arrays", [reason_of(error)]
                for problem in found:
                    self._tell(places[at], name, problem)
                if not found:
                    good[key] = kind
            kinds.append(kind)
            self.kinds[kind] += 1
        return kinds

    def ids(self) -> Any:
        """Return the ids of all rows; of those that are there twice is told."""
        ids = pa.concat_arrays([strings(()), *self._ids])
        if len(pc.unique(ids)) < len(ids):
            first: dict[str, int] = {}
            for name, place in zip(ids.to_pylist(), np.concatenate(self._places).tolist(), strict=True):
                if first.setdefault(name, place) != place:
                    self._tell(place, None, f"the id {name!r} is taken by {first[name]}")
        return ids

    def _of_columns(
        self, names: tuple[str, ...], given: tuple[bool, ...], chosen: tuple[str, ...], values: tuple[Any, ...]
    ) -> tuple[Kind, list[str]]:
        """Return where the evidence of a row comes from, and what is wrong with its columns and options."""
        there = {name for name, present in zip(names, given, strict=True) if present}
        kind: Kind = "captions" if "captions" in there else "speech" if "video" in there else "arrays"
        problems = _of_evidence(there)
        own = {name: value for name, value in zip(chosen, values, strict=True) if value not in (None, "")}
        for name, value in own.items():
            if name in (settings.OF_NARRATION if kind == "arrays" else settings.OF_ARRAYS):
                whose = "narration" if kind == "arrays" else "arrays"
                problems.append(f"{name} is for {whose}; this row has {kind}")
            problems += problems_of_option(name, value, self._context.folder)
        if kind != "arrays" and not problems:
            problems += _of_media(kind, "video" in there, self._usual | own)
        return kind, problems

    def _of_files(self, row: dict[str, Any]) -> list[str]:
        given = {name: Path(self._context.folder) / row[name] for name in FILES if row.get(name)}
        if not given:
            return []
        from graph2vid.evidence import SUFFIXES, TRANSCRIPT_SUFFIXES

        found, known = [], (*SUFFIXES, *TRANSCRIPT_SUFFIXES)
        for name, whole in given.items():
            if not whole.is_file():
                found.append(f"{name} {whole} is not there")
            elif name == "captions" and whole.suffix.lower() not in known:
                found.append(f"captions {whole}: use one of {', '.join(known)}")
            elif name == "video" and whole.suffix.lower() in known:
                found.append(f"video {whole} holds captions: name it in the column captions")
        return found

    def _of_procedure(
        self, procedure: str | None, options: dict[str, Any], row: dict[str, Any], doubtful: set[str]
    ) -> list[str]:
        """Return what is wrong with the procedure of a row, or with its arrays beside it."""
        parser = options.get("parser") or self._usual["parser"]
        if isinstance(n_steps := self._steps(procedure, parser), str):
            return [n_steps]
        given = [name for name in ARRAYS if row.get(name) is not None]
        wrong = [self._of_array(name, row[name], n_steps, name in doubtful) for name in given]
        if file := options.get("durations") or self._usual.get("durations"):
            wrong.append(self._durations(file, procedure, parser))
        return [problem for problem in wrong if problem is not None]

    def _of_durations(self, file: str, procedure: str, parser: str) -> str | None:
        """Return what is wrong with a file of durations beside a procedure, if anything is."""
        from graph2vid.grounding import read_durations

        try:
            flow = flow_of(procedure, parser, self._context.folder, self._context.cache)
            read_durations(Path(self._context.folder) / file, flow, 1.0)
        except Exception as error:
            return f"durations: {reason_of(error)}"
        return None

    def _steps_of(self, procedure: str | None, parser: str) -> int | str:
        """Return the number of steps of a procedure, or what is wrong with it."""
        if not procedure:
            return "has no procedure"
        try:
            return len(flow_of(procedure, parser, self._context.folder, self._context.cache))
        except Exception as error:
            return f"procedure: {reason_of(error)}"

    def _of_array(self, name: str, value: Any, n_steps: int, doubtful: bool) -> str | None:
        if isinstance(value, str):
            try:
                value = _opened(value, self._context.folder)
            except Exception as error:
                return f"{name}: {reason_of(error)}"
        if value.size == 0 or value.ndim != 2:
            return f"{name} must be a matrix, with two axes and not empty: lists of numbers, all equally long"
        if name != "clips" and len(value) != n_steps:
            turned = "; it looks transposed" if value.shape[1] == n_steps else ""
            return f"{name} has shape {value.shape}, but the procedure has {n_steps} steps (axis 0){turned}"
        if doubtful and not isinstance(value, np.memmap) and not np.isfinite(value).all():
            return f"{name} must be finite numbers"
        return None


def problems_of_option(name: str, value: Any, folder: str) -> list[str]:
    """Return what is wrong with the value of an option, if anything is."""
    from graph2vid import alignment, evidence, text

    known: dict[str, Any] = {
        "drop": evidence.DROP_POLICIES,
        "skip": evidence.SKIP_POLICIES,
        "repeat": evidence.REPEAT_POLICIES,
        "parser": text.PARSERS,
        "preset": evidence.PRESETS,
        "match": evidence.MATCH_POLICIES,
        "method": alignment.METHODS,
    }
    try:
        checked = settings.check_option(name, value)
        if name in settings.POLICIES and str(checked).endswith(".npy"):
            evidence.read_array(Path(folder) / checked.partition(":")[2])
        elif name in settings.POLICIES:
            known[name].get(evidence.resolve_choice(checked, known[name], of_array="")[0])
        elif name == "frames":
            evidence.EMBEDDERS.get(checked.partition(":")[0])
        elif name in known and checked not in known[name]:
            return [f"{name} must be one of {', '.join(sorted(known[name]))}, not {shown(value)}"]
    except Exception as error:
        return [reason_of(error)]
    return []


def _of_media(kind: Kind, is_video: bool, options: dict[str, Any]) -> list[str]:
    """Return what is wrong with the options of a transcript or frames, or missing on this machine for them."""
    from graph2vid.evidence import text_embedder

    frames, transcribed = options.get("frames"), float(options["narration_weight"]) != 0
    wrong = []
    if frames is None and not transcribed:
        wrong.append("with narration_weight 0 nothing is left to go by: set frames, too")
    if frames is not None and not is_video and not frames.startswith("array:"):
        wrong.append("frames are of a video, but the row has captions alone: name the video, too")
    if kind == "speech" and transcribed and find_spec("faster_whisper") is None:
        wrong.append(f"transcribing speech needs the package faster-whisper: {how_to_install('media')}")
    try:
        text_embedder(options["embedder"])
    except Exception as error:
        wrong.append(reason_of(error))
    return wrong


def _of_evidence(given: set[str]) -> list[str]:
    of_kind = {
        "scores": {"scores"},
        "log_probabilities": {"log_probabilities"},
        "clips and steps": {"clips", "steps"},
        "video or captions": set(FILES),
    }
    kinds = [kind for kind, names in of_kind.items() if given & names]
    if len(kinds) != 1:
        found = ", and ".join(kinds) or "nothing"
        return [f"give one of scores, log_probabilities, clips and steps, video or captions; found {found}"]
    if kinds == ["clips and steps"] and not given >= {"clips", "steps"}:
        return ["clips and steps are given together: the embeddings of both are compared"]
    return []


def _opened(value: str, folder: str) -> NDArray[Any]:
    """Return the array of a row without reading what its file holds; JSON is read."""
    if is_json(value):
        return matrix_of(value, folder)
    path = Path(folder) / value
    if not path.is_file():
        raise InputError(f"{path} is not there")
    try:
        array: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    except Exception:
        return matrix_of(value, folder)  # which says what is wrong with it
    return real(array, str(path), FormatError)


def _all_finite(column: Any) -> bool:
    """Tell whether the numbers of a column are all finite; of a column of paths or JSON it cannot be told."""
    if not is_list(column.type):
        return False
    numbers = pc.list_flatten(pc.list_flatten(column))
    return bool(pc.all(pc.is_finite(numbers), skip_nulls=False, min_count=0).as_py())
