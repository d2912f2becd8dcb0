"""What the readers share: bad input passed over or refused, files found, annotations checked, captions as evidence."""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from graph2vid import evidence
from graph2vid._files import read_json, read_text
from graph2vid._values import number_of, read_number, table_rows
from graph2vid.datasets.dataset import Annotation, Dataset, Embeddings, Evidence, Recording, Split, Task
from graph2vid.errors import FormatError, Graph2VidError, GraphError, InputError, MissingDependencyError
from graph2vid.flow import FlowGraph
from graph2vid.registry import Registry

_DIGITS = re.compile(r"\d+|\D+")

DATASETS: Registry[Callable[..., Dataset]] = Registry("dataset", "graph2vid.datasets")
"""The readers by the name of their layout: ``load(data, *, skip_bad=False, **options)``; the options are their own."""

Chosen = TypeVar("Chosen")
Found = TypeVar("Found")


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

    told: ClassVar[tuple[str, ...]] = ("clip_seconds",)  # what a dataset tells of them

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
            chosen = options(**given)
            return read(Path(data), chosen, Trouble(skip_bad, name, chosen))

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
    name : str
        Of the dataset.
    labels : LabelOptions
        The options that it is read with.
    """

    def __init__(self, skip_bad: bool, name: str = "", labels: Any = None) -> None:
        self.skip_bad, self.name, self.labels = skip_bad, name, labels
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

    def each(self, items: Iterable[tuple[Any, ...]], read: Callable[..., Found]) -> list[Found]:
        """Return what is read of each item, given its parts as arguments; bad ones may be passed over."""
        found = []
        for item in items:
            with self.passing():
                found.append(read(*item))
        return found

    def dataset(
        self,
        recordings: Sequence[Recording],
        source: Path,
        where: Callable[[Recording], str] = lambda recording: recording.id,
        remarks: Iterable[str] = (),
        **parts: Any,
    ) -> Dataset:
        """Return the dataset of these parts, with what was passed over or is worth knowing.

        Parameters
        ----------
        source : path
            What an error names if no recording could be read.
        where : callable
            Names the place of a recording's annotations, for the remark that they overlap.
        remarks : iterable of str
            Further ones.
        """
        if not recordings:
            first = f"; the first of {len(self.problems)} problems: {self.problems[0]}" if self.problems else ""
            raise InputError(f"{source}: there is no usable recording{first}")
        overlapping = [recording for recording in recordings if recording.overlaps]
        if overlapping:
            others = f", here and in {len(overlapping) - 1} other recordings" if len(overlapping) > 1 else ""
            wins = "one that starts later" if self.labels.label_overlapping == "start" else "later row"
            self.remarks.append(f"{where(overlapping[0])}: annotations overlap{others}; the {wins} wins")
        return Dataset(
            name=self.name,
            recordings=tuple(recordings),
            problems=tuple(self.problems),
            remarks=(*self.remarks, *remarks),
            label_rule=self.labels.label_rule,
            label_overlapping=self.labels.label_overlapping,
            **{"options": {name: getattr(self.labels, name) for name in self.labels.told}} | parts,
        )


def split(name: str, train: Iterable[str], test: Iterable[str]) -> tuple[Split, ...]:
    """Return the split into these recordings, if there are some on both sides."""
    found = Split(name, tuple(train), tuple(test))
    return (found,) if found.train and found.test else ()


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


def read_document(path: Path, kind: type[Found], what: str) -> Found:
    """Return what a JSON file holds, which must be of this kind; ``what`` says in an error what it should be."""
    document = read_json(path)
    if not isinstance(document, kind):
        raise FormatError(f"{path} should {what}, not a {type(document).__name__}")
    return document


def as_number(value: Any, where: str, what: str) -> float:
    """Return a finite number; ``where`` and ``what`` are named in the error."""
    read = read_number if isinstance(value, str) else number_of
    return read(value, f"{where}: {what}")


def annotation(step: int, start: Any, end: Any, where: str, duration: float | None, slack: float) -> Annotation:
    """Return an annotation after checking that its times are numbers that lie inside the video.

    Parameters
    ----------
    duration : float or None
        Length of the video in seconds, where known.
    slack : float
        How far, in seconds, an annotation may reach beyond the end: clips and times are rounded.
    """
    first, last = as_number(start, where, "the start"), as_number(end, where, "the end")
    if last < first:
        raise FormatError(f"{where}: the annotation ends ({last:g} s) before it starts ({first:g} s)")
    if first < 0 or (duration is not None and last > duration + slack):
        length = "" if duration is None else f" (0 to {duration:g} s)"
        raise FormatError(f"{where}: the annotation from {first:g} s to {last:g} s lies outside the video{length}")
    return Annotation(step, first, last)


def flow_graph(steps: Sequence[Any], edges: Sequence[Any], title: str, where: str) -> FlowGraph:
    """Return the flow graph of a file, whose place an error names."""
    try:
        return FlowGraph.from_edges(steps, edges, title)
    except GraphError as error:
        raise FormatError(f"{where}: {error}") from error


def first_axis(asked: str | Sequence[str], time: str, other: str) -> str:
    """Read which axis of arrays is time, two names with a comma between: "auto", "first" or "second"."""
    parts = tuple(asked.split(",")) if isinstance(asked, str) else tuple(map(str, asked))
    ways = {("auto",): "auto", (time, other): "first", (other, time): "second"}
    if parts not in ways:
        raise InputError(f"axis is auto, {time},{other} or {other},{time}, not {','.join(parts)!r}")
    return ways[parts]


def time_axis(shape: tuple[int, ...], width: int, n_labels: int, stated: str, path: Path, of: str, what: str) -> int:
    """Return which of two axes is time: the one beside that of ``width``.

    Parameters
    ----------
    shape : (int, int)
    width : int
        How many classes or dimensions there should be.
    n_labels : int
        An axis of this length is time, even where it has the width by chance.
    stated : {"auto", "first", "second"}
    path, of, what
        Of the error: the file, what says the width, and what is counted.
    """
    ways = [
        way
        for way, (length, size) in enumerate((shape, shape[::-1]))
        if size == width
        and (stated == ("first", "second")[way] or (stated == "auto" and (length == n_labels or size != n_labels)))
    ]
    if not ways:
        read = {"first": ", read time-major,", "second": ", read feature-major,"}.get(stated, "")
        raise FormatError(f"{path} has shape {shape}{read} but {of} has {width} {what}")
    if len(ways) == 2:
        raise FormatError(
            f"{path} has shape {shape}: state whether it is time-major or feature-major (layout; axis of framewise)"
        )
    return ways[0]


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


# -- captions ------------------------------------------------------------------------------------------------

NARRATIONS = ("weighed", "plain")
"""How the transcript becomes evidence: weighed against background, or the plain cosines of a clip's cues."""


@dataclass(frozen=True)
class NarrationOptions(ClipOptions):
    """How captioned videos are read.

    Attributes
    ----------
    embedder : str
        The text embedder.
    narration : {"weighed", "plain"}
        How the transcript becomes evidence, see :class:`Narration`.
    """

    told: ClassVar[tuple[str, ...]] = ("clip_seconds", "offset", "embedder", "narration")

    embedder: str = "wordllama"
    narration: str = "weighed"


@dataclass(frozen=True)
class Narration:
    """Evidence from captions.

    Attributes
    ----------
    files : mapping of str to Path
        The caption file of each video; recordings name their video in ``notes["video"]``.
    tasks : mapping of str to Task
    embedder : str
        The name of the text embedder.
    narration : {"weighed", "plain"}
        ``weighed``: log-odds against background, and skip costs
        (:func:`graph2vid.evidence.narration_evidence`). ``plain``: each clip is as like a step as the most alike of
        the cues that it touches (:func:`graph2vid.evidence.narration_similarity`), and every step must appear.
    """

    files: Mapping[str, Path]
    tasks: Mapping[str, Task]
    embedder: str
    narration: str = "weighed"

    def __post_init__(self) -> None:
        choice(self.narration, "narration", NARRATIONS)
        evidence.text_embedder(self.embedder)  # a missing package is named now, not in the middle of the work

    def embeddings(self, recording: Recording) -> Embeddings:
        """Return vectors of the steps and of the transcript around each clip."""
        steps, cues, embed, clips = self._compared(recording)
        vectors = evidence.said_vectors(cues, recording.n_clips, embed, **clips)
        return Embeddings(evidence.step_vectors(steps, embed), vectors)

    def __call__(self, recording: Recording) -> Evidence:
        steps, cues, embed, clips = self._compared(recording)
        if self.narration == "plain":
            similarity = evidence.narration_similarity(steps, cues, recording.n_clips, embed, **clips)
            return Evidence(similarity, None, "cosine")
        found = evidence.narration_evidence(steps, cues, recording.n_clips, embed, **clips)
        background = np.zeros(recording.n_clips, dtype=np.float32)
        return Evidence(found.log_odds.astype(np.float32), background, "log_odds", found.skip.astype(np.float32))

    def _compared(self, recording: Recording) -> tuple[Any, ...]:
        """Return the steps, the transcript, what compares them, and where the clips lie."""
        cues = evidence.read_captions(self.files[recording.notes["video"]])
        clips = {"clip_seconds": recording.clip_seconds, "offset": recording.offset}
        return self.tasks[recording.task].procedure, cues, evidence.text_embedder(self.embedder), clips


def caption_files(directory: Path) -> dict[str, Path]:
    """Return the caption files of a folder by the name of their video."""
    return stems(folder(directory, "VIDEO.vtt or VIDEO.srt"), *evidence.SUFFIXES)


def caption_file(files: Mapping[str, Path], video: str) -> Path:
    """Return the caption file of a video; one without is an error."""
    if video not in files:
        place = next((path.parent for path in files.values()), Path())
        wanted = f"{place / video}.vtt or .srt"
        raise FormatError(f"video {video} is annotated but has no captions: there is no {wanted}")
    return files[video]


def clips_to_cover(seconds: float, clip_seconds: float) -> int:
    """Return how many clips cover a video of this length; at least one."""
    return max(1, math.ceil(seconds / clip_seconds - 1e-9))


def captioned_recording(
    name: str,
    task: str,
    rows: Sequence[Annotation],
    duration: float | None,
    path: Path,
    options: NarrationOptions,
    **notes: Any,
) -> Recording:
    """Return a recording with its caption file; where no duration is known, it ends with the last cue or annotation."""
    cues = evidence.read_captions(path)
    if duration is None:
        duration = max([*(cue.end for cue in cues), *(row.end for row in rows)])
    n_clips = clips_to_cover(duration - options.offset, options.clip_seconds)
    return Recording(name, task, options.clip_seconds, options.offset, n_clips, tuple(rows), notes)
