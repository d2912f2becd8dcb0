"""The check of a manifest, column by column: what is wrong with its rows, said of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graph2vid._arrays import real
from graph2vid._values import shown
from graph2vid.batch import settings
from graph2vid.batch.columns import ARRAYS, FILES, by_row, is_list, matrices, not_empty, strings
from graph2vid.batch.rows import flow_of, is_json, matrix_of
from graph2vid.batch.runs import reason_of
from graph2vid.batch.settings import Context, Kind
from graph2vid.errors import FormatError, InputError, how_to_install

Tell: TypeAlias = Callable[[int, str | None, str], None]
"""Is told the place of a problem, the id of the row (None: no run can pass over it) and what is wrong.

Whatever goes wrong with a row, of whichever kind the error is, is a problem of that row and of no other.
"""

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
