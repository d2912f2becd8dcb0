"""What the readers share: bad input passed over or refused, files and folders found, annotations checked."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, TypeVar

from graph2vid._files import read_text
from graph2vid._values import number_of, read_number, table_rows
from graph2vid.datasets.dataset import Annotation, Dataset, Recording
from graph2vid.errors import FormatError, Graph2VidError, InputError, MissingDependencyError
from graph2vid.registry import Registry

_DIGITS = re.compile(r"\d+|\D+")

DATASETS: Registry[Callable[..., Dataset]] = Registry("dataset", "graph2vid.datasets")
"""The readers by the name of their layout: ``load(data, *, skip_bad=False, **options)``; the options are their own."""

Chosen = TypeVar("Chosen")


@dataclass(frozen=True)
class LabelOptions:
    """How long clips are, and how annotations are laid on them.

    Attributes
    ----------
    clip_seconds : float
        Length of a clip.
    label_rule, label_overlapping : str
        See :class:`graph2vid.datasets.Dataset`.
    """

    clip_seconds: float = 1.0
    label_rule: str = "cover"
    label_overlapping: str = "start"


@dataclass(frozen=True)
class ClipOptions(LabelOptions):
    """The same, of clips that begin at ``offset`` seconds."""

    offset: float = 0.0


def reader(
    name: str, options: type[Chosen], *, needs_data: bool = True
) -> Callable[[Callable[[Path, Chosen, Trouble], Dataset]], Callable[..., Dataset]]:
    """Return a decorator that registers a reader, and makes it ``load(data, *, skip_bad=False, **options)``.

    Parameters
    ----------
    name : str
        Of the layout.
    options : type
        A dataclass: the options of the reader.
    needs_data : bool
        Whether there is something to read; otherwise ``data`` is not used.
    """

    def decorate(read: Callable[[Path, Chosen, Trouble], Dataset]) -> Callable[..., Dataset]:
        @wraps(read)
        def load(data: str | Path = ".", *, skip_bad: bool = False, **given: Any) -> Dataset:
            return read(Path(data), options(**given), Trouble(skip_bad))

        own = [
            Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=one.type)
            for one in fields(options)  # type: ignore[arg-type]
        ]
        place, skip_bad, _ = signature(load, follow_wrapped=False).parameters.values()
        if needs_data:
            place = place.replace(default=Parameter.empty)
        load.__signature__ = Signature([place, skip_bad, *own], return_annotation="Dataset")  # type: ignore[attr-defined]
        return DATASETS.register(name)(load)

    return decorate


_MARKS = {"salads50": ("salads50", "mapping.txt"), "crosstask": ("crosstask_narrated", "captions")}
"""Files or folders, one of which shows that a folder holds the dataset."""


def is_dataset_in(data: str | os.PathLike[str], name: str) -> bool:
    """Say whether a folder holds a dataset (salads50 or crosstask), or has it in its usual sub-folder."""
    return any((Path(data) / mark).exists() for mark in _MARKS[name])


def read_dataset(name: str, data: str | Path | None = None, **options: Any) -> Dataset:
    """Read a dataset by its name.

    Parameters
    ----------
    name : str
        A name in :data:`graph2vid.datasets.DATASETS`.
    data : path, optional
        Its folder; needed unless the dataset is made rather than read.
    options
        Of its reader; one that it does not have is an error that lists those it has.
    """
    load = DATASETS.get(name)
    known = signature(load).parameters
    for option in options:
        if option not in known:
            has = ", ".join(key for key in known if key not in ("data", "skip_bad"))
            raise InputError(f"{name} has no option {option!r}; it has: {has}")
    if data is not None:
        return load(Path(data), **options)
    if known["data"].default is Parameter.empty:
        raise InputError(f"{name} is read from a folder: say which with --data DIR")
    return load(**options)


class Trouble:
    """Bad input met by a reader: raised at once, or noted and passed over.

    Parameters
    ----------
    skip_bad : bool
        Whether to go on.
    """

    def __init__(self, skip_bad: bool) -> None:
        self.skip_bad = skip_bad
        self.problems: list[str] = []
        self.remarks: list[str] = []

    @contextlib.contextmanager
    def passing(self) -> Iterator[None]:
        """Note an error raised inside and leave the block, if bad input is passed over."""
        try:
            yield
        except MissingDependencyError:
            raise  # not the input's fault
        except Graph2VidError as error:
            if not self.skip_bad:
                raise
            self.problems.append(str(error))

    def dataset(self, name: str, labels: LabelOptions, **parts: Any) -> Dataset:
        """Return the dataset of these parts, with what was passed over or is worth knowing."""
        return Dataset(
            name=name,
            problems=tuple(self.problems),
            remarks=tuple(self.remarks),
            label_rule=labels.label_rule,
            label_overlapping=labels.label_overlapping,
            **parts,
        )

    def refuse_nothing_left(self, recordings: Iterable[Recording], source: Path) -> None:
        """Raise an error if no recording could be read."""
        if any(True for _ in recordings):
            return
        first = f"; the first of {len(self.problems)} problems: {self.problems[0]}" if self.problems else ""
        raise InputError(f"{source}: there is no usable recording{first}")

    def remark_overlaps(
        self, recordings: Iterable[Recording], where: Callable[[Recording], str], options: LabelOptions
    ) -> None:
        """Remark whose annotations overlap and which one then wins; ``where`` names the place of a recording's."""
        overlapping = [recording for recording in recordings if recording.overlaps]
        if overlapping:
            others = f", here and in {len(overlapping) - 1} other recordings" if len(overlapping) > 1 else ""
            wins = "the one that starts later wins" if options.label_overlapping == "start" else "the later row wins"
            self.remarks.append(f"{where(overlapping[0])}: annotations overlap{others}; {wins}")


def folder(path: Path, what: str) -> Path:
    """Return ``path`` if it is a folder; else raise an error that says what should be in it."""
    if not path.is_dir():
        raise FormatError(f"{path} is not a folder; there should be {what}")
    return path


def data_folder(data: str | Path, sub_folder: str, marker: str, what: str) -> Path:
    """Return the folder that holds ``marker``: ``data`` itself, or ``sub_folder`` in or beside it."""
    data = folder(Path(data), what)
    for candidate in (data, data / sub_folder, data.parent / sub_folder):
        if (candidate / marker).exists():
            return candidate
    raise FormatError(f"{data} has no {marker} ({what}), nor has {data / sub_folder}")


def stems(directory: Path, *suffixes: str) -> dict[str, Path]:
    """Return the files of a folder with one of these suffixes by their name without it, in natural order."""
    found = (path for path in directory.iterdir() if path.suffix.lower() in suffixes and not path.name.startswith("."))
    return {path.stem: path for path in sorted(found, key=lambda path: natural(path.name))}


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts "split2" before "split10"."""
    parts = _DIGITS.findall(name)
    return [(0, int(part), "") if part.isdecimal() and len(part) < 20 else (1, 0, part) for part in parts]


def read_lines(path: Path) -> list[tuple[int, str]]:
    """Return the lines of a text file that are not blank, stripped, with their numbers from 1."""
    lines = ((number, line.strip()) for number, line in enumerate(read_text(path).splitlines(), 1))
    return [(number, line) for number, line in lines if line]


def read_rows(path: Path, columns: int) -> list[tuple[int, list[str]]]:
    """Return the rows of a CSV file with their line numbers; each must have at least ``columns`` fields."""
    rows = []
    for number, line in read_lines(path):
        row = [field.strip() for _, row in table_rows([line], f"{path}, line {number}") for field in row]
        if len(row) < columns:
            raise FormatError(f"{path}, line {number}: {len(row)} fields where there should be {columns}: {line!r}")
        rows.append((number, row))
    return rows


def as_number(value: Any, where: str, what: str) -> float:
    """Return a finite number; ``where`` and ``what`` are named in the error."""
    read = read_number if isinstance(value, str) else number_of
    return read(value, f"{where}: {what}")


def annotation(step: int, start: float, end: float, where: str, duration: float | None, slack: float) -> Annotation:
    """Return an annotation after checking that it lies inside the video.

    Parameters
    ----------
    duration : float or None
        Length of the video in seconds, where known.
    slack : float
        How far, in seconds, an annotation may reach beyond the end: clips and times are rounded.
    """
    if end < start:
        raise FormatError(f"{where}: the annotation ends ({end:g} s) before it starts ({start:g} s)")
    if start < 0 or (duration is not None and end > duration + slack):
        length = "" if duration is None else f" (0 to {duration:g} s)"
        raise FormatError(f"{where}: the annotation from {start:g} s to {end:g} s lies outside the video{length}")
    return Annotation(step, start, end)


def choice(value: str, name: str, known: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``known``."""
    if value not in known:
        raise InputError(f"{name} is one of {', '.join(known)}, not {value!r}")
    return value


def entry(record: Any, key: str, kind: type | tuple[type, ...], where: str) -> Any:
    """Return ``record[key]`` of a parsed JSON object; it must be there and of the kind."""
    if not isinstance(record, dict) or key not in record:
        raise FormatError(f"{where} has no {key!r}")
    value = record[key]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        names = kind.__name__ if isinstance(kind, type) else " or ".join(one.__name__ for one in kind)
        raise FormatError(f"{where}: {key!r} must be a {names}, not {type(value).__name__}")
    return value
