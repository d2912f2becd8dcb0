"""A plain folder of captioned videos.

``captions/VIDEO.vtt`` or ``.srt``; ``annotations/TASK_VIDEO.csv`` or, in a folder with one procedure, ``VIDEO.csv``
(step, start, end), or one ``annotations.json``; ``procedures/TASK.flow`` (or another flow graph, or ``TASK.txt`` with
one step per line); ``durations.csv`` (video, seconds) where known. The files may lie side by side without sub-folders.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph2vid._files import read_json
from graph2vid._values import count_of
from graph2vid.datasets.caption_folder import Narration, NarrationOptions, caption_file, caption_files, clips_to_cover
from graph2vid.datasets.dataset import Annotation, Dataset, HowTo, Recording, Task
from graph2vid.datasets.reader_tools import (
    Trouble,
    annotation,
    as_number,
    entry,
    folder,
    read_lines,
    read_rows,
    reader,
    stems,
)
from graph2vid.errors import FormatError
from graph2vid.evidence import read_captions
from graph2vid.flow import FlowGraph

ANNOTATIONS = "annotations.json"
DURATIONS = "durations.csv"
GRAPHS = (".flow", ".json", ".dot", ".gv")
LIST = ".txt"
_LIST_MARK = re.compile(r"(?:[-*•]|\d{1,9}[.)])\s+")
_BETWEEN_WORDS = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class _Video:
    """An annotated video as listed: its rows are (where they stand, step, start, end), still to be checked."""

    id: str
    name: str
    task: str
    where: str
    rows: list[tuple[str, Any, Any, Any]]
    duration: float | None = None


@dataclass(frozen=True)
class _Places:
    """Where the parts of a folder lie, and what is there."""

    data: Path
    captions: Path
    procedures: Path
    caption_of: Mapping[str, Path]
    procedure_of: Mapping[str, Path]

    def only_task(self, where: str) -> str:
        """Return the task of a video that names none: that of the only procedure."""
        if len(self.procedure_of) == 1:
            return next(iter(self.procedure_of))
        raise FormatError(
            f"{where} does not say which task it is of, and there are {len(self.procedure_of)} procedures"
        )


@reader("captioned", NarrationOptions)
def load(data: Path, options: NarrationOptions, trouble: Trouble) -> Dataset:
    """Read a folder of captioned videos.

    Parameters
    ----------
    data : path
        The folder.
    skip_bad : bool
        Pass over what cannot be used and list it in ``problems``; by default it is an error.
    clip_seconds, offset, embedder, narration, label_rule, label_overlapping
        See :class:`graph2vid.datasets.caption_folder.NarrationOptions`.

    Returns
    -------
    Dataset
        The steps of a task are those of its procedure; a flow graph is ``flows["manual"]``. A video whose duration is
        not given ends with its last caption or annotation.
    """
    places = _find_places(folder(Path(data), "captions/, annotations/ and procedures/"))
    tasks: dict[str, Task] = {}
    source = Narration(places.caption_of, tasks, options.embedder, options.narration)
    durations = _read_durations(places.data / DURATIONS)
    videos = _videos(places, trouble)
    for name in dict.fromkeys(video.task for video in videos):
        with trouble.passing():
            tasks[name] = _task(name, places)
    recordings = []
    for video in videos:
        if video.task in tasks:  # else the task was passed over
            with trouble.passing():
                recordings.append(_recording(video, tasks[video.task], places, durations, options))
    trouble.refuse_nothing_left(recordings, places.data)
    where = {video.id: video.where for video in videos}
    trouble.remark_overlaps(recordings, lambda recording: where[recording.id], options)
    spare = [name for name in places.caption_of if name not in {video.name for video in videos}]
    if spare:
        trouble.remarks.append(
            f"{places.captions}: videos without annotations are left out: {len(spare)}, {spare[0]} first"
        )
    used = {recording.task for recording in recordings}
    return trouble.dataset(
        "captioned",
        options,
        tasks={name: task for name, task in tasks.items() if name in used},
        recordings=tuple(recordings),
        splits=(),
        evidence=source,
        options=options.told,
    )


def _find_places(data: Path) -> _Places:
    captions, procedures = (part if (part := data / name).is_dir() else data for name in ("captions", "procedures"))
    caption_of = caption_files(captions)
    if not caption_of:
        raise FormatError(f"{captions} has no captions: there should be VIDEO.vtt or VIDEO.srt")
    procedure_of: dict[str, Path] = {}
    for path in sorted(procedures.iterdir()):
        if path.suffix.lower() not in (*GRAPHS, LIST) or path.name == ANNOTATIONS or path.name.startswith("."):
            continue
        if path.stem in procedure_of:
            raise FormatError(f"task {path.stem} has two procedures: {procedure_of[path.stem]} and {path.name}")
        procedure_of[path.stem] = path
    if not procedure_of:
        raise FormatError(
            f"{procedures} has no procedure: there should be TASK.flow, .json or .dot, or TASK.txt (a step per line)"
        )
    return _Places(data, captions, procedures, caption_of, procedure_of)


def _read_durations(path: Path) -> dict[str, float]:
    """Read the length of each video in seconds; a first row of headings is allowed."""
    if not path.exists():
        return {}
    rows = read_rows(path, 2)
    if rows and rows[0][1][0].lower() == "video":
        rows = rows[1:]
    return {row[0]: as_number(row[1], f"{path}, line {number}", "the duration") for number, row in rows}


def _videos(places: _Places, trouble: Trouble) -> list[_Video]:
    """List the annotated videos: those of ``annotations.json``, or else one table each."""
    document, directory = places.data / ANNOTATIONS, places.data / "annotations"
    videos = []
    if document.exists():
        if directory.is_dir():
            raise FormatError(f"{document} and {directory} both hold annotations; keep one of them")
        records = read_json(document)
        if not isinstance(records, dict):
            raise FormatError(f"{document} should map each video to its annotations")
        for name, record in records.items():
            with trouble.passing():
                videos.append(_from_record(name, record, document, places))
        return videos
    directory = directory if directory.is_dir() else places.data
    tables = {name: path for name, path in stems(directory, ".csv").items() if path.name != DURATIONS}
    if not tables:
        raise FormatError(f"{directory} has no annotations: there should be TASK_VIDEO.csv, VIDEO.csv or {ANNOTATIONS}")
    for name, path in tables.items():
        with trouble.passing():
            videos.append(_from_table(name, path, places))
    return videos


def _from_record(name: str, record: Any, path: Path, places: _Places) -> _Video:
    where = f"{path}, video {name}"
    listed = entry(record, "annotations", list, where)
    task = str(entry(record, "task", (str, int), where)) if "task" in record else places.only_task(where)
    rows = []
    for number, row in enumerate(listed):
        here = f"{where}, annotation {number}"
        rows.append((here, entry(row, "step", (str, int), here), row.get("start"), row.get("end")))
    duration = as_number(record["duration"], where, "the duration") if "duration" in record else None
    return _Video(name, name, task, where, rows, duration)


def _from_table(name: str, path: Path, places: _Places) -> _Video:
    task, video = _task_and_video(name, path, places)
    table = read_rows(path, 3)
    if table and [cell.lower() for cell in table[0][1][:3]] == ["step", "start", "end"]:
        table = table[1:]
    rows = [(f"{path}, line {number}", *row[:3]) for number, row in table]
    return _Video(name, video, task, str(path), [(here, step, start, end) for here, step, start, end in rows])


def _task_and_video(name: str, path: Path, places: _Places) -> tuple[str, str]:
    """Read the name of a table: TASK_VIDEO, both of which may hold "_", or VIDEO."""
    ways = [(name[:at], name[at + 1 :]) for at, letter in enumerate(name) if letter == "_"]
    tasks = [way for way in ways if way[0] in places.procedure_of]
    if name in places.caption_of:
        return (tasks[-1][0] if tasks else places.only_task(str(path))), name
    for way in reversed(tasks) if tasks else ways:
        if way[1] in places.caption_of:
            return way
    caption_file(places.caption_of, tasks[-1][1] if tasks else name, places.captions)
    raise AssertionError("a video without captions is refused")


def _task(name: str, places: _Places) -> Task:
    path = places.procedure_of.get(name)
    if path is None:
        raise FormatError(f"task {name} has no procedure: there is no {places.procedures / name}.flow, .json or .txt")
    flow = None
    if path.suffix.lower() == LIST:
        texts = tuple(_LIST_MARK.sub("", line, count=1) for _, line in read_lines(path))
        if not texts:
            raise FormatError(f"{path} has no steps: there should be one per line")
    else:
        flow = FlowGraph.load(path)
        texts = tuple(step.text or step.id for step in flow.steps)
    title = (flow.title if flow is not None else "") or name.replace("_", " ")
    same = tuple((step,) for step in range(len(texts)))
    flows = {} if flow is None else {"manual": flow}
    return Task(name, title, texts, texts, same, flows, HowTo(texts, same, flows))


def _recording(
    video: _Video,
    task: Task,
    places: _Places,
    durations: Mapping[str, float],
    options: NarrationOptions,
) -> Recording:
    cues = read_captions(caption_file(places.caption_of, video.name, places.captions))
    duration = video.duration if video.duration is not None else durations.get(video.name)
    step_of = _step_names(task)
    source = places.procedure_of[task.id]
    rows = [_annotation(row, task, step_of, source, duration, max(1.0, options.clip_seconds)) for row in video.rows]
    if not rows:
        raise FormatError(f"{video.where} has no annotations")
    if duration is None:
        duration = max([*(cue.end for cue in cues), *(row.end for row in rows)])
    n_clips = clips_to_cover(duration - options.offset, options.clip_seconds)
    return Recording(
        video.id, task.id, options.clip_seconds, options.offset, n_clips, tuple(rows), {"video": video.name}
    )


def _plain(name: str) -> str:
    """Return a name as it is compared: letters and digits only, in one case."""
    return " ".join(_BETWEEN_WORDS.split(name.casefold())).strip()


def _step_names(task: Task) -> dict[str, list[int]]:
    names: dict[str, list[int]] = {}
    for step, text in enumerate(task.steps):
        names.setdefault(_plain(text), []).append(step)
    for flow in task.flows.values():
        for number, one in enumerate(flow.steps):
            if number not in names.setdefault(_plain(one.id), []):
                names[_plain(one.id)].append(number)
    return names


def _annotation(
    row: tuple[str, Any, Any, Any],
    task: Task,
    step_of: Mapping[str, list[int]],
    source: Path,
    duration: float | None,
    slack: float,
) -> Annotation:
    where, named, start, end = row
    if str(named).isdecimal():
        number = count_of(str(named), f"{where}: the number of a step")
        steps = [number - 1] if 1 <= number <= len(task.steps) else []
    else:
        steps = step_of.get(_plain(str(named)), [])
    if not steps:
        raise FormatError(f"{where}: there is no step {named!r} in {source}, which has {len(task.steps)} (from 1)")
    if len(steps) > 1:
        raise FormatError(f"{where}: {len(steps)} steps of {source} are called {named!r}; give the number (from 1)")
    first, last = as_number(start, where, "the start"), as_number(end, where, "the end")
    return annotation(steps[0], first, last, where, duration, slack)
