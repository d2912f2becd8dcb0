"""The check of a manifest, column by column: what can be wrong with a row before anything is worked on."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import Graph2VidError, InputError
from graph2vid.evidence import DROP_POLICIES, SKIP_POLICIES, read_array, text_embedder
from graph2vid.evidence.captions import SUFFIXES, TRANSCRIPT_SUFFIXES
from graph2vid.evidence.costs import resolve_choice
from graph2vid.scale._packages import arrow, compute
from graph2vid.scale.procedures import flow_of
from graph2vid.scale.rows import ARRAYS, FILES, KINDS, Kind, holds_lists, matrices, matrix_of
from graph2vid.scale.settings import DEFAULTS, OF_ARRAYS, OF_NARRATION, ROW_OPTIONS, Context, check_option

Tell: TypeAlias = Callable[[int, str | None, str], None]
"""Is told the place of a problem, the id of the row (None: no run can pass over it) and what is wrong."""

_CAPTIONS = (*SUFFIXES, *TRANSCRIPT_SUFFIXES)
_REMEMBERED = 10_000


class Checker:
    """Checks table after table of one manifest, and tells what is wrong.

    Parameters
    ----------
    context : Context
        Where relative paths begin, and the options of all rows.
    tell : callable
    """

    def __init__(self, context: Context, tell: Tell) -> None:
        self.kinds: dict[Kind, int] = dict.fromkeys(KINDS, 0)
        self._context = context
        self._usual = dict(DEFAULTS) | dict(context.options)
        self._tell = tell
        self._ids: list[Any] = []
        self._places: list[NDArray[np.int64]] = []
        self._steps: dict[tuple[str, str], int | str] = {}
        self._alike: dict[Any, tuple[Kind, tuple[str, ...]]] = {}

    def check(self, table: Any, places: list[int]) -> list[Kind]:
        """Check some rows; return where the evidence of each comes from."""
        names = [name for name in (*FILES, *ARRAYS) if name in table.column_names]
        ids = table.column("id").to_pylist()
        self._ids.append(table.column("id"))
        self._places.append(np.asarray(places))
        given = list(zip(*(_present(table.column(name)).tolist() for name in names), strict=True)) or [()] * len(ids)
        chosen = [name for name in ROW_OPTIONS if name in table.column_names]
        options = list(zip(*(table.column(name).to_pylist() for name in chosen), strict=True)) or [()] * len(ids)
        arrays = {name: matrices(table.column(name)) for name in ARRAYS if name in names}
        doubtful = {name for name in arrays if name != "log_probabilities" and not _all_finite(table.column(name))}
        files = {name: table.column(name).to_pylist() for name in FILES if name in names}
        procedures = table.column("procedure").to_pylist()
        kinds: list[Kind] = []
        for at, (place, name) in enumerate(zip(places, ids, strict=True)):
            if not name:
                self._tell(place, None, "has no id")
            # Most rows have the same columns and options as others: those are looked at once.
            kind, problems = self._of_columns(tuple(names), given[at], tuple(chosen), options[at])
            kinds.append(kind)
            self.kinds[kind] += 1
            for problem in (*problems, *self._of_files({column: of_row[at] for column, of_row in files.items()})):
                self._tell(place, name, problem)
            parser = options[at][chosen.index("parser")] if "parser" in chosen else None
            n_steps = self._steps_of(procedures[at], parser or self._usual["parser"])
            if isinstance(n_steps, str):
                self._tell(place, name, n_steps)
                continue
            for column, of_row in arrays.items():
                if of_row[at] is not None:
                    wrong = self._of_array(column, of_row[at], n_steps, column in doubtful)
                    if wrong:
                        self._tell(place, name, wrong)
        return kinds

    def ids(self) -> Any:
        """Return the ids of all rows; of those that are there twice is told."""
        pa = arrow()
        pc = compute()
        ids = pa.chunked_array(self._ids, pa.string()).combine_chunks() if self._ids else pa.array([], pa.string())
        counts = pc.value_counts(ids)
        doubled = counts.filter(pc.greater(counts.field("counts"), 1)).field("values").drop_null()
        if len(doubled):
            places = np.concatenate(self._places)
            first: dict[str, int] = {}
            for at in np.flatnonzero(pc.is_in(ids, value_set=doubled).to_numpy(zero_copy_only=False)).tolist():
                name = ids[at].as_py()
                if name in first:
                    self._tell(int(places[at]), None, f"the id {name!r} is taken by {first[name]}")
                first.setdefault(name, int(places[at]))
        return ids

    def _of_columns(
        self, names: tuple[str, ...], given: tuple[bool, ...], chosen: tuple[str, ...], values: tuple[Any, ...]
    ) -> tuple[Kind, tuple[str, ...]]:
        """Return where the evidence of a row comes from, and what is wrong with its columns and options."""
        key = (names, given, chosen, values)
        if key not in self._alike:
            there = {name for name, present in zip(names, given, strict=True) if present}
            kind: Kind = "captions" if "captions" in there else "speech" if "video" in there else "arrays"
            problems = _of_evidence(there)
            for name, value in zip(chosen, values, strict=True):
                if value is None or value == "":
                    continue
                if name in (OF_NARRATION if kind == "arrays" else OF_ARRAYS):
                    whose = "narration" if kind == "arrays" else "arrays"
                    problems.append(f"{name} is for {whose}; this row has {kind}")
                problems += _of_option(name, value, self._context.folder)
            if kind != "arrays":
                given_options = dict(zip(chosen, values, strict=True))
                problems += _of_packages(kind, given_options.get("embedder") or self._usual["embedder"])
            if len(self._alike) >= _REMEMBERED:
                self._alike.clear()
            self._alike[key] = kind, tuple(problems)
        return self._alike[key]

    def _of_files(self, files: dict[str, str | None]) -> list[str]:
        found = []
        for name, path in files.items():
            if not path:
                continue
            whole = Path(self._context.folder) / path
            if not whole.is_file():
                found.append(f"{name} {whole} is not there")
            elif name == "captions" and whole.suffix.lower() not in _CAPTIONS:
                found.append(f"captions {whole}: use one of {', '.join(_CAPTIONS)}")
            elif name == "video" and whole.suffix.lower() in _CAPTIONS:
                found.append(f"video {whole} holds captions: name it in the column captions")
        return found

    def _steps_of(self, procedure: str | None, parser: str) -> int | str:
        """Return the number of steps of a procedure, or what is wrong with it."""
        if not procedure:
            return "has no procedure"
        key = (procedure, parser)
        if key not in self._steps:
            try:
                self._steps[key] = len(flow_of(procedure, parser, self._context.folder, self._context.cache))
            except Graph2VidError as error:
                self._steps[key] = f"procedure: {error}"
        return self._steps[key]

    def _of_array(self, name: str, value: Any, n_steps: int, doubtful: bool) -> str | None:
        if isinstance(value, str):
            try:
                value = _opened(value, self._context.folder)
            except Graph2VidError as error:
                return f"{name}: {error}"
        if value.size == 0 or value.ndim != 2:
            return f"{name} must be a matrix, with two axes and not empty: lists of numbers, all equally long"
        if name != "clips" and len(value) != n_steps:
            turned = "; it looks transposed" if value.shape[1] == n_steps else ""
            return f"{name} has shape {value.shape}, but the procedure has {n_steps} steps (axis 0){turned}"
        if doubtful and not isinstance(value, np.memmap) and not np.isfinite(value).all():
            return f"{name} must be finite numbers"
        return None


def _of_option(name: str, value: Any, folder: str) -> list[str]:
    """Return what is wrong with the value of an option, if anything is."""
    try:
        checked = check_option(name, value)
        if name in ("drop", "skip") and not str(checked).endswith(".npy"):
            registry: Any = DROP_POLICIES if name == "drop" else SKIP_POLICIES
            registry.get(resolve_choice(checked, registry, of_array="")[0])
        elif name in ("drop", "skip"):
            read_array(Path(folder) / checked.partition(":")[2])
    except Graph2VidError as error:
        return [str(error)]
    return []


def _of_packages(kind: Kind, embedder: str) -> list[str]:
    """Return what is missing on this machine to make use of narration."""
    missing = []
    if kind == "speech" and find_spec("faster_whisper") is None:
        missing.append("recognising speech needs the package faster-whisper: pip install 'graph2vid[media]'")
    try:
        text_embedder(embedder)
    except Graph2VidError as error:
        missing.append(str(error))
    return missing


def _of_evidence(given: set[str]) -> list[str]:
    kinds = [
        name
        for name, there in (
            ("scores", "scores" in given),
            ("log_probabilities", "log_probabilities" in given),
            ("clips and steps", bool(given & {"clips", "steps"})),
            ("video or captions", bool(given & set(FILES))),
        )
        if there
    ]
    if len(kinds) != 1:
        found = ", and ".join(kinds) or "nothing"
        return [f"give one of scores, log_probabilities, clips and steps, video or captions; found {found}"]
    if kinds == ["clips and steps"] and not given >= {"clips", "steps"}:
        return ["clips and steps are given together: the embeddings of both are compared"]
    return []


def _opened(value: str, folder: str) -> NDArray[Any]:
    """Return the array of a row without reading what its file holds; JSON is read."""
    if value.lstrip().startswith("["):
        return matrix_of(value, folder)
    path = Path(folder) / value
    if not path.is_file():
        raise InputError(f"{path} is not there")
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError, SyntaxError):
        return read_array(path)  # which says what is wrong with it
    return array


def _present(column: Any) -> NDArray[np.bool_]:
    """Return where a column holds something."""
    pa = arrow()
    pc = compute()
    there = column.is_valid()
    if pa.types.is_string(column.type):
        there = pc.and_(there, pc.fill_null(pc.not_equal(column, ""), False))
    found: NDArray[np.bool_] = there.to_numpy(zero_copy_only=False)
    return found


def _all_finite(column: Any) -> bool:
    """Tell whether the numbers of a column are all finite; of a column of paths or JSON it cannot be told."""
    pc = compute()
    if not holds_lists(column):
        return False
    numbers = pc.list_flatten(pc.list_flatten(column))
    return bool(pc.all(pc.is_finite(numbers), skip_nulls=False, min_count=0).as_py())
